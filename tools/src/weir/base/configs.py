# SPDX-License-Identifier: BSD-3-Clause
"""Configs as Python has them: values as text, YAML files as dicts, dicts as files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec

from weir.base import foreign
from weir.base.errors import UserError

Config = dict[str, Any]  # a resolved config, or a map inside one; each scalar is text


class Shape(msgspec.Struct):
    """Sections of a resolved config that its readers rely on; weir-sim checks all the rest."""

    paths: dict[str, list[Config]] = {}
    flows: list[Config] | Literal[""] = []
    live: Config | Literal[""] = {}


def text(value: object) -> str:
    """Returns a value as a config writes it: yes and no, numbers, text, {a: b} and [a, b]."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value)


def plain(value: object) -> object:
    """Returns a value with all values in its dicts and lists as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else text(value)


def mapping(path: Path) -> Config:
    """Returns the map in a YAML file, all values as text; UserError: there is none."""
    try:
        data = foreign.read_bytes(path, foreign.YAML_BYTES_MAX).decode()
        content = foreign.decode_yaml(data, str(path))
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not text in UTF-8") from None
    except UserError as error:
        raise UserError(str(error)) from None  # a config that is wrong: status 2
    if not isinstance(content, dict):
        raise UserError(f"{path} is no map of keys to values")
    return content


def leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields each value of a config as text, by its key for -o: paths.forward.link.rate.

    The name of a plug-in is a value too: flows.0.cc is copa, paths.forward is "link, delay".
    """
    inside = f"{path}." if path else ""
    if isinstance(value, Mapping):
        if path and len(value) == 1:
            yield path, str(next(iter(value)))
        for key, inner in value.items():
            yield from leaves(inner, f"{inside}{key}")
    elif isinstance(value, list):
        types = [next(iter(item)) if is_typed(item) else None for item in value]
        if any(types):
            yield path, ", ".join(map(str, types))
        for index, (item, kind) in enumerate(zip(value, types, strict=True)):
            place = types[: index + 1].count(kind)
            named = f"{inside}{kind}{place if place > 1 else ''}"
            yield from leaves(item[kind], named) if kind else leaves(item, f"{inside}{index}")
    else:
        yield path, str(value)


def is_typed(item: object) -> bool:
    """Returns whether an item of a list is named by its one key, as {link: {...}} is."""
    return isinstance(item, Mapping) and len(item) == 1


OUTSIDE = ("plugin", "python")  # keys of `cc` that name a control of the user's own


def control(cc: object) -> str:
    """Returns the name of a control; that of a user's own is its file's or its class's.

    A plug-in may call itself otherwise than its file: that name is in a run's summary.
    """
    if not isinstance(cc, Mapping):
        return str(cc)
    if "plugin" in cc:
        return Path(str(cc["plugin"])).stem.removeprefix("file-")
    if "python" in cc:
        return str(cc["python"]).rpartition(":")[2]
    return str(next(iter(cc), ""))


def controls(config: Config, measured: Sequence[str]) -> dict[str, str]:
    """Returns the names of the user's own controls by their keys, such as flows.0.cc.

    measured: the name of each group's control in the run's summary, which is preferred.
    """
    flows = config.get("flows")
    found = {}
    for index, flow in enumerate(flows if isinstance(flows, list) else ()):
        cc = flow.get("cc") if isinstance(flow, Mapping) else None
        if isinstance(cc, Mapping) and any(key in cc for key in OUTSIDE):
            known = measured[index] if index < len(measured) else None
            found[f"flows.{index}.cc"] = str(known or control(cc))
    return found


@contextmanager
def as_file(config: Path | str | Config) -> Iterator[Path]:
    """Yields the path of a config; that of a dict is a temporary file."""
    if not isinstance(config, Mapping):
        yield Path(config)
        return
    import yaml

    with TemporaryDirectory(prefix="weir-") as place:
        path = Path(place) / "config.yaml"
        path.write_text(yaml.safe_dump(plain(config), sort_keys=False, allow_unicode=True))
        yield path


def control_of(text: str) -> object:
    """Returns what a config has of a control that a command names: its `cc`, or a guest's `stack`.

    It is one of weir list cc, FILE.so, linux:CC, quic:STACK:CC, or with parameters what `cc` is in
    a config: {plugin: FILE.so, rmax: 1Gbit}, {copa: {delta: 0.4}}. Files are those of this folder.
    """
    if not text.startswith("{"):
        plugin = {"plugin": str(Path(text).resolve())} if text.endswith(".so") else text
        return stack_of(text) or plugin
    value = foreign.decode_yaml(text, text)
    assert isinstance(value, dict)  # else it is bad YAML
    here = {key: Path(own) for key, own in value.items() if isinstance(own, str)}
    return value | {
        key: str(own.resolve()) for key, own in here.items() if key in OUTSIDE or own.is_file()
    }


def control_name(text: str) -> str:
    """Returns what files call a control that a command names: mine, linux-bbr, copa-delta-0.4."""
    if text.startswith("{"):
        value = control_of(text)
        own = re.sub(r"(plugin|python): *[^,}]*", control(value), text)
        return re.sub(r"[^\w.]+", "-", own).strip("-")
    return Path(text).name.removesuffix(".so").replace(":", "-")


def stack_of(text: str) -> Config | None:
    """Returns the `stack` of linux:CC or quic:STACK:CC; None: it names none."""
    kind, _, name = text.partition(":")
    stack, _, control = name.partition(":")
    if kind == "linux":
        return {"linux": {"cc": name}}
    own = {"cc": control} if control else {}
    return {"quic": {stack: {**own, "qlog": "no"}}} if kind == "quic" else None

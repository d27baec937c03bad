# SPDX-License-Identifier: BSD-3-Clause
"""A run's summary as readers see it: of any kind of run, written by any version since 1.0.

The parts are the classes of weir.analysis.model_parts, which has each member of any kind too. Lists
and maps that a kind of run does not have are empty, anything else that it does not have is None.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct, field

from weir.analysis import model_parts as parts
from weir.analysis.model import AnySummary, BetweenHosts, RunHost
from weir.analysis.model_parts import Fact, Group, IpFlow, Packets, PathLedger, Program, Records
from weir.base import foreign
from weir.base.errors import UserError
from weir.base.foreign import Json

Part = TypeVar("Part", bound=Struct)

# Parts whose required members every version writes; those of others may be absent.
WHOLE = (Fact, Packets, PathLedger, BetweenHosts, Records, Program, IpFlow)
ROWS_MAX = 1000


class RunLedger(parts.AnyLedger, kw_only=True):
    """The account of every packet; of a live run with its programs, which may have written none."""

    programs: dict[str, bool | None] = field(default_factory=dict)
    between_hosts: list[BetweenHosts] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.balanced is not None or bool(self.programs)


class RunSummary(parts.AnyKind, kw_only=True):
    """Outcome of a run; all of it is empty if the run never ended."""

    schema: int | None = None
    kind: str = ""
    ledger: RunLedger = field(default_factory=RunLedger)
    captured: parts.Captured | None = None  # of an analysis: `capture` in its file
    emulation: parts.Emulation = field(default_factory=parts.Emulation)
    hosts: dict[str, RunHost] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.kind != ""

    def mode(self, group: int, number: float) -> str:
        """Returns the name of a control's mode, or its number if no name was recorded."""
        names = self.groups[group].modes if group < len(self.groups) else []
        name = names[int(number)] if number < len(names) else ""
        return name or f"mode {number:g}"


@cache
def loose(kind: Any, any_length: bool = False) -> Any:
    """Returns a type as any version may have written it: without some members, with others.

    Members that every kind of run has are None where they are absent, lists and maps empty. Groups
    of captures and of results of other programs lack some numbers, or have means of them. A list
    or a map has no more members than a page or a terminal has lines, unless it may have any number.
    """
    if isinstance(kind, type) and issubclass(kind, Struct):
        every = msgspec.structs.fields(kind)
        members = [(one.name, *_member(kind, one)) for one in every]
        names = {one.name: one.encode_name for one in every}
        return msgspec.defstruct(
            kind.__name__, members, bases=(kind,), rename=names, kw_only=True,
            forbid_unknown_fields=False,
        )  # fmt: skip
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return Union[tuple(loose(one, any_length) for one in inner)]  # noqa: UP007
    if origin not in (list, dict, tuple):
        return kind
    made = origin[tuple(map(loose, inner))]
    return made if any_length or origin is tuple else Annotated[made, Meta(max_length=ROWS_MAX)]


def _member(kind: type[Struct], one: msgspec.structs.FieldInfo) -> tuple[Any, Any]:
    """Returns the type of a member as any version may have written it, and its default."""
    type_ = loose(one.type, one.name.endswith(("flows", "cdf")))
    if kind is Group:
        type_ = type_ | parts.Number | None if one.type is parts.Count else type_ | None
    if one.required and kind in WHOLE:
        return type_, NODEFAULT
    if one.required:
        several = get_origin(one.type) in (list, dict)
        return type_, field(default_factory=get_origin(one.type)) if several else None
    factory = one.default_factory
    return type_, one.default if factory is NODEFAULT else field(default_factory=factory)


def decode(document: Json, place: str) -> RunSummary:
    """Returns a summary of any version. UserError: a member has another type, or too many rows."""
    kinds = {one.__struct_config__.tag: one for one in get_args(AnySummary)}
    given = {"kind": "simulation"} | document
    kind = kinds.get(str(given["kind"]))
    if kind is None:
        raise UserError(f"{place}: this version knows no summary of the kind '{given['kind']}'", 1)
    if kind is parts.Analysis and "capture" in given:
        given["captured"] = given.pop("capture")
    if kind is parts.Comparison:
        given.pop("flows", None)  # those of the matched packets: see comparison()
    found: RunSummary = foreign.check(given, loose(RunSummary), place)
    return found


def read(data: bytes, place: str) -> RunSummary:
    """Returns the summary that a file's JSON is. UserError: as decode()'s.

    That of weir-sim is read at once, which takes a third of the time.
    """
    with contextlib.suppress(UserError):
        found: RunSummary = foreign.decode(data, loose(RunSummary), place)
        if found.kind == "simulation":
            return found
    return decode(foreign.decode(data, Json, place), place)


def part(kind: type[Part], numbers: Mapping[str, object]) -> Part:
    """Returns a part of a summary from what is known of it by other means than its file."""
    known = {name: value for name, value in numbers.items() if value is not None and value == value}
    found: Part = msgspec.convert(known, loose(kind))
    return found


def comparison(document: Json, place: str) -> parts.Comparison:
    """Returns what `weir pcap compare` found. UserError: as decode()'s."""
    found: parts.Comparison = foreign.check(document, loose(parts.Comparison), place)
    return found

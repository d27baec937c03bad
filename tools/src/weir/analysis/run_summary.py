# SPDX-License-Identifier: BSD-3-Clause
"""A run's summary as readers see it: of any kind of run, written by any version since 1.0.

The parts are the classes of weir.analysis.model_parts, which has each member of any kind too. Lists
and maps that a kind of run does not have are empty, anything else that it does not have is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct, field

from weir.analysis.model import AnySummary, BetweenHosts, RunHost
from weir.analysis.model_parts import (
    Analysis,
    AnyKind,
    AnyLedger,
    Captured,
    Comparison,
    Count,
    Emulation,
    Fact,
    Group,
    IpFlow,
    Number,
    Packets,
    PathLedger,
    Program,
    Records,
)
from weir.base import foreign
from weir.base.errors import UserError
from weir.base.foreign import Json

Part = TypeVar("Part", bound=Struct)

# Parts whose required members every version writes; those of others may be absent.
WHOLE = (Fact, Packets, PathLedger, BetweenHosts, Records, Program, IpFlow)
ROWS_MAX = 1000


class RunLedger(AnyLedger, kw_only=True):
    """The account of every packet; of a live run with its programs, which may have written none."""

    programs: dict[str, bool | None] = field(default_factory=dict)
    between_hosts: list[BetweenHosts] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.balanced is not None or bool(self.programs)


class RunSummary(AnyKind, kw_only=True):
    """Outcome of a run; all of it is empty if the run never ended."""

    schema: int | None = None
    kind: str = ""
    ledger: RunLedger = field(default_factory=RunLedger)
    captured: Captured | None = None  # that was analysed: `capture` in the file of an analysis
    emulation: Emulation = field(default_factory=Emulation)
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
def loose(kind: Any) -> Any:
    """Returns a type as any version may have written it: without some members, with others.

    Members that every kind of run has are None where they are absent, lists and maps empty. Groups
    of captures and of results of other programs lack some numbers, or have means of them.
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
        return Union[tuple(map(loose, inner))]  # noqa: UP007
    return origin[tuple(map(loose, inner))] if origin in (list, dict, tuple) else kind


def _member(kind: type[Struct], one: msgspec.structs.FieldInfo) -> tuple[Any, Any]:
    """Returns the type of a member as any version may have written it, and its default."""
    type_ = loose(one.type)
    if kind is Group:
        type_ = type_ | Number | None if one.type is Count else type_ | None
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
    if kind is Analysis and "capture" in given:
        given["captured"] = given.pop("capture")
    if kind is Comparison:
        given.pop("flows", None)  # those of the matched packets: see comparison()
    found: RunSummary = foreign.check(given, loose(RunSummary), place)
    if long := next(too_long(document, "members"), None):
        raise UserError(f"{place}: has more than {ROWS_MAX:,} {long}, the most that is read", 1)
    return found


def part(kind: type[Part], numbers: Mapping[str, object]) -> Part:
    """Returns a part of a summary from what is known of it by other means than its file."""
    known = {name: value for name, value in numbers.items() if value is not None and value == value}
    found: Part = msgspec.convert(known, loose(kind))
    return found


def comparison(document: Json, place: str) -> Comparison:
    """Returns what `weir pcap compare` found. UserError: as decode()'s."""
    found: Comparison = foreign.check(document, loose(Comparison), place)
    return found


def too_long(value: object, name: str) -> Iterator[str]:
    """Yields names of lists and dicts that have more members than a page or a terminal has lines.

    Those of flows and distributions may have any number.
    """
    if isinstance(value, dict | list) and not name.endswith(("flows", "cdf")):
        if len(value) > ROWS_MAX:
            yield name
        each = value.items() if isinstance(value, dict) else ((name, one) for one in value)
        for inside, one in each:
            yield from too_long(one, inside)

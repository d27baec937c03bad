# SPDX-License-Identifier: BSD-3-Clause
"""weir import: a result of flent or of iperf3 as a run folder, for `weir compare`.

What the program has measured is in `summary.json`; what it has not is null. A group is what the
program names. Of flent, `NAME::1`, `NAME::2` are flows of NAME; `NAME::tcp_rtt`, `NAME::tcp_cwnd`
are statistics of NAME's socket, and averages, sums and fairness are computed of others: neither is
a flow. Of iperf3 it is the streams of one direction, by the name of their congestion control.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from weir import __version__
from weir.analysis import folder, metrics
from weir.analysis.summary import total
from weir.base import foreign
from weir.base.errors import UserError
from weir.base.foreign import Json

SCHEMA = 1
# What a summary's groups have and these programs may not say.
UNKNOWN = ("jfi", "rtt_mean_ns", "acked_bytes", "sent_segs", "retransmits", "cwnd_reductions")
DERIVED = (" avg", " sum", " total", " totals", " fairness")  # flent computes these of others
UNITS = {"TCP": "Mbits/s", "SCTP": "Mbits/s", "Ping": "ms"}  # of series that begin so
MBIT, MS = 1e6, 1e6

# Rates of up to 1 Pbit/s, in bit/s or Mbit/s; times of up to 30 years, in s, ms or us.
Known = Annotated[float, Meta(ge=0, le=1e15)]
Amount = Annotated[int, Meta(ge=0, le=2**53)]
Series = list[Known | None]
NumberOrNull = Known | None


class Point(Struct, gc=False):
    """A sample of flent's raw values."""

    tcp_rtt: NumberOrNull = None


class SeriesMeta(Struct):
    """Members of a series that flent describes."""

    UNITS: object = None  # a text, or a list of several


class FlentMeta(Struct):
    """Members of a test that flent describes."""

    SERIES_META: dict[str, SeriesMeta] = {}


class Counted(Struct):
    """Counters of an end of iperf3, of a stream or of all; of UDP what both ends have."""

    sender: bool = True  # the client is the one that sends
    bytes: Amount | None = None
    bits_per_second: NumberOrNull = None
    retransmits: Amount | None = None
    mean_rtt: NumberOrNull = None
    packets: Amount | None = None
    lost_packets: float | None = None  # below 0 where packets were duplicated


NOTHING = Counted()  # one for all of which nothing was counted: there may be millions


class Stream(Struct, gc=False):
    """A stream of iperf3; UDP has one block for both ends."""

    sender: Counted | None = None
    receiver: Counted | None = None
    udp: Counted | None = None


class End(Struct):
    """Content of what iperf3 prints at its end."""

    streams: list[Stream] = []
    sum_received: Counted | None = None
    sum_received_bidir_reverse: Counted | None = None
    sender_tcp_congestion: str | None = None


class TestStart(Struct):
    """Options with which iperf3 was called."""

    protocol: str = "TCP"
    duration: NumberOrNull = None


class Start(Struct):
    """Content of what iperf3 prints at its start."""

    test_start: TestStart | None = None


class Document(Struct):
    """A file of either program; series are decoded where they are wanted."""

    version: object = None
    metadata: FlentMeta | None = None
    results: dict[str, msgspec.Raw] | None = None
    raw_values: dict[str, msgspec.Raw] | None = None
    x_values: Series | None = None
    start: Start | None = None
    end: End | None = None
    error: str | None = None


def write(file: Path, out: Path, force: bool = False) -> Path:
    """Writes a run folder, and returns it. UserError: the file is of neither, or `out` exists."""
    found = summary(file)
    if out.exists() and not force:
        raise UserError(f"{out}: is there: choose another --out, or --force replaces it")
    if folder.is_run(out):
        folder.clear(out)
    out.mkdir(parents=True, exist_ok=True)
    manifest = {key: found[key] for key in ("kind", "program", "version", "title")}
    folder.write_json(out / folder.MANIFESTS[0], manifest)
    folder.write_json(out / folder.SUMMARIES[0], found)
    return out


def summary(file: Path) -> Json:
    """Returns a summary of what another program has measured."""
    given = foreign.read_json(file, Document)
    if given.metadata is not None and given.results is not None:
        program, length_s, groups = flent(given, file)
    elif given.start is not None and given.end is not None:
        program, length_s, groups = iperf3(given, file)
    else:
        raise UserError(f"{file}: neither a data file of flent nor the JSON of iperf3 (-J)", 1)
    if not groups:
        raise UserError(f"{file}: {program} has measured nothing in it", 1)
    return {
        "schema": SCHEMA,
        "kind": "import",
        "program": program,
        "version": __version__,
        "title": file.name,
        "wall_s": length_s,
        "verdict": None,  # nobody has judged it
        "verdicts": [],
        "groups": groups,
        "telemetry": {"level": 0, "streams": {}},
    }


def group(name: str, cc: str | None, flows: int, **known: float | None) -> Json:
    """Returns a group of a summary; what is not known is null."""
    unknown: Json = dict.fromkeys(("goodput_bps", *UNKNOWN))
    return {"name": name, "cc": cc, "flows": flows, **unknown, **known}


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def flent(given: Document, file: Path) -> tuple[str, float, list[Json]]:
    """Returns program, length in s and groups of flent's data file, format version 2 to 4.

    Its rates are in Mbit/s, its times in ms.
    """
    version = given.version
    if not isinstance(version, int) or not 2 <= version <= 4:
        raise UserError(f"{file}: flent's format version {version}; 2, 3 and 4 can be read", 1)
    instants = given.x_values or []
    alike: dict[str, dict[str, Series]] = {}
    for name, text in (given.results or {}).items():
        if is_flow(name, given):
            values = foreign.decode(bytes(text), Series, f"{file}: series '{name}'")
            if len(values) != len(instants):
                many = f"{len(values)} values for {len(instants)} times"
                raise UserError(f"{file}: series '{name}' has {many}", 1)
            alike.setdefault(name.partition("::")[0], {})[name] = values
    groups = []
    for stem, each in alike.items():
        if stem.startswith("Ping"):
            known, rtts = {}, [value for values in each.values() for value in values]
        else:
            known = rates_of(list(each.values()))
            rtts = [point.tcp_rtt for name in each for point in samples(name, given, file)]
        if known or (stem.startswith("Ping") and mean(rtts) is not None):
            rtt = times(mean(rtts), MS)
            groups.append(group(stem, None, len(each), rtt_mean_ns=rtt, **known))
    return "flent", max((at for at in instants if at is not None), default=0.0), groups


def is_flow(name: str, given: Document) -> bool:
    """Returns whether a series was measured, not computed, and has rates or pings."""
    stem, _, number = name.partition("::")
    unit = next((unit for start, unit in UNITS.items() if stem.startswith(start)), None)
    series = given.metadata.SERIES_META if given.metadata is not None else {}
    return (
        unit is not None
        and (name not in series or series[name].UNITS in (None, unit))
        and (not number or number.isdigit())
        and not name.endswith(DERIVED)
        and (not given.raw_values or name in given.raw_values)
    )


def samples(name: str, given: Document, file: Path) -> list[Point]:
    """Returns what flent's runner of a series has recorded, one by one."""
    text, shape = (given.raw_values or {}).get(name), list[Point]
    return [] if text is None else foreign.decode(bytes(text), shape, f"{file}: raw '{name}'")


def rates_of(flows: list[Series]) -> dict[str, float | None]:
    """Returns goodput and JFI of flows in Mbit/s, over intervals in which any has a rate.

    That is the mean of flent's own sum of them. A flow without a rate there has sent nothing.
    """
    used = [row for row in zip(*flows, strict=True) if any(rate is not None for rate in row)]
    if not used:
        return {}
    shares = [sum(rate or 0.0 for rate in flow) / len(used) * MBIT for flow in flows]
    return {"goodput_bps": sum(shares), "jfi": metrics.jfi(shares)}


def iperf3(given: Document, file: Path) -> tuple[str, float, list[Json]]:
    """Returns program, length in s and groups (one per direction) of `iperf3 -J` at the client."""
    if given.error:
        raise UserError(f"{file}: iperf3 failed: {given.error}", 1)
    end, test = given.end or End(), (given.start or Start()).test_start or TestStart()
    udp = test.protocol.upper() == "UDP"
    cc = "udp" if udp else end.sender_tcp_congestion or "tcp"
    ways = {
        sends: [one for one in end.streams if (one.sender or one.udp or NOTHING).sender == sends]
        for sends in (True, False)
    }
    groups = []
    for sends, own in ways.items():
        if own and udp:
            back = not sends and bool(ways[True])
            received = end.sum_received_bidir_reverse if back else end.sum_received
            known = udp_numbers(own, received)
        elif own:
            known = tcp_numbers(own)
        else:
            continue
        groups.append(group(cc if sends else f"{cc}, to the client", cc, len(own), **known))
    return "iperf3", test.duration or 0.0, groups


def tcp_numbers(streams: list[Stream]) -> dict[str, float | None]:
    """Returns a group's numbers from its TCP streams; goodput is what receivers have counted."""
    sent = [one.sender or NOTHING for one in streams]
    received = [one.receiver or NOTHING for one in streams]
    rates = [one.bits_per_second for one in received]
    rtt = mean(one.mean_rtt or None for one in sent)  # 0: the server's, which are not sent
    return {
        "goodput_bps": total(rates),
        "jfi": jfi(rates),
        "rtt_mean_ns": None if rtt is None else rtt * 1e3,  # iperf3 has microseconds
        "retransmits": total(one.retransmits for one in sent),
        "acked_bytes": total(one.bytes for one in received),
    }


def udp_numbers(streams: list[Stream], received: Counted | None) -> dict[str, float | None]:
    """Returns a group's numbers from UDP streams, which say what was sent and how much was lost.

    iperf3 3.10 and later add what the receiver of all has counted.
    """
    kept = [(one.udp or NOTHING, kept_of(one.udp or NOTHING)) for one in streams]
    rates = [times(one.bits_per_second, part) for one, part in kept]
    amounts = [times(one.bytes, part) for one, part in kept]
    return {
        "goodput_bps": total(rates) if received is None else received.bits_per_second,
        "jfi": jfi(rates),
        "acked_bytes": total(amounts) if received is None else received.bytes,
    }


def kept_of(udp: Counted) -> float | None:
    """Returns the share of a stream's packets that arrived; None: not known."""
    if not udp.packets or udp.lost_packets is None:
        return None
    return min(1.0, max(0.0, 1 - udp.lost_packets / udp.packets))


def times(value: float | None, part: float | None) -> float | None:
    """Returns a product, null where one is not known."""
    return None if value is None or part is None else value * part


def jfi(rates: list[float | None]) -> float | None:
    """Returns Jain's index; null where a rate is not known."""
    return None if None in rates else metrics.jfi([rate or 0.0 for rate in rates])

# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of other programs as steps; tools/docs/how-to/traces.md says what each format has.

What is recorded packet by packet becomes the mean rate of intervals of `step_ns`.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

from weir.base import foreign
from weir.base.errors import UserError
from weir.trace import steps
from weir.trace.steps import NS_PER_S, STEPS_MAX, Floats, Steps

MS = 1e6
OPPORTUNITY_BITS = 1500 * 8  # of mahimahi: 1500 bytes of IP packets
LEOCC_DELAY_NS = 10 * MS
# Columns of the 5G data sets, whose lines are a second apart, and their units in bit/s.
MOBILE_RATES = {"Throughput": 1e6, "DL_bitrate": 1e3}


@dataclass(frozen=True)
class Reading:
    """Options of the command line about a file, besides its format."""

    step_ns: float = 100 * MS
    columns: Mapping[str, str] = field(default_factory=dict)  # csv: {"rate": "dl_kbps"}
    delays: Path | None = None  # leocc: the file of delays


def of_intervals(ends_ns: Floats, bits: Floats) -> Steps:
    """Returns mean rates of intervals; a last one that is short belongs to the one before it."""
    edges = np.append(0.0, ends_ns)
    if len(bits) > 1 and edges[-1] - edges[-2] < (edges[-2] - edges[-3]) / 2:
        edges, bits = np.delete(edges, -2), np.append(bits[:-2], bits[-2:].sum())
    return steps.make(edges[:-1], edges[-1], bits * NS_PER_S / np.diff(edges))


def binned(at_ns: Floats, bits: Floats | float, step_ns: float) -> Steps:
    """Returns mean rates of packets; a packet at the end of an interval counts in it."""
    if not np.isfinite(at_ns).all() or at_ns.min() < 0 or at_ns[-1] > STEPS_MAX * step_ns:
        raise UserError(f"a time is negative or no number, or beyond {STEPS_MAX:,} intervals")
    count = max(1, int(np.ceil(at_ns[-1] / step_ns - 1e-9)))
    ends = np.append(np.arange(1.0, count) * step_ns, at_ns[-1])
    place = np.clip(np.ceil(at_ns / step_ns - 1e-9).astype(np.int64) - 1, 0, count - 1)
    weights = np.broadcast_to(np.asarray(bits, dtype=np.float64), at_ns.shape)
    return of_intervals(ends, np.asarray(np.bincount(place, weights, count), np.float64))


def lines(file: Path, lines_max: int = foreign.LINES_MAX) -> Iterator[tuple[str, list[str]]]:
    """Yields the place and the words of each line that has some and is no comment."""
    for place, line in foreign.text_lines(file, lines_max=lines_max):
        words = line.split()
        if words and not words[0].startswith("#"):
            yield place, words


def numbers(file: Path) -> Floats:
    """Returns a number from each line."""
    found = array("d")
    for place, words in lines(file):
        try:
            found.append(float(words[0]))
        except ValueError:
            raise UserError(f"{place}: '{words[0]}' is not a number") from None
    return np.array(found)


def mahimahi(file: Path, reading: Reading) -> Steps:
    """Reads lines that are times in ms at which 1500 bytes may leave; the last one ends a round."""
    at_ns = numbers(file) * MS
    if not len(at_ns) or (np.diff(at_ns) < 0).any() or at_ns[-1] <= 0:
        raise UserError(f"{file}: no times in ms that never fall, the last above 0")
    return binned(at_ns, OPPORTUNITY_BITS, reading.step_ns)


def leocc(file: Path, reading: Reading) -> Steps:
    """Reads mahimahi's lines, and in a file of its own the one-way delay in ms of each 10 ms."""
    rates = mahimahi(file, reading)
    if reading.delays is None:
        raise UserError("leocc: name the file of one-way delays with --delays")
    delays = numbers(reading.delays) * MS
    if not len(delays):
        raise UserError(f"{reading.delays}: no delays in it")
    at = np.unique(np.append(rates.at_ns, np.arange(rates.end_ns / LEOCC_DELAY_NS) * 10 * MS))
    at = at[at < rates.end_ns]
    rate = rates.rate_bps[np.searchsorted(rates.at_ns, at, side="right") - 1]
    place = np.minimum(at // LEOCC_DELAY_NS, len(delays) - 1).astype(np.int64)
    return steps.make(at, rates.end_ns, rate, delays[place])


def theaterq(file: Path, reading: Reading) -> Steps:
    """Reads KEEP,LATENCY,RATE,LOSS,LIMIT with units, or in us, ns, bit/s, 1/(2^32-1), packets."""
    rows = array("d")
    for place, words in lines(file, STEPS_MAX):
        cells = "".join(words).split(",")
        if not cells[0][:1].isdigit():
            continue
        if len(cells) != 5:
            raise UserError(f"{place}: {len(cells)} columns, not the five of KEEP,...,LIMIT")
        names = ("at_us", "delay_ns", "rate_bps", "loss", "limit_pkts")
        row = [steps.value(name, cell, place) for name, cell in zip(names, cells, strict=True)]
        row[3] /= 2**32 - 1 if cells[3].isdigit() else 1
        rows.extend(row)
    if not rows:
        raise UserError(f"{file}: no steps in it")
    keep, delay, rate, loss, limit = np.array(rows).reshape(-1, 5).T
    ends = np.cumsum(keep)
    return steps.make(ends - keep, ends[-1], rate, delay, loss, limit)


def table(file: Path) -> tuple[list[str], Iterator[tuple[str, dict[str, str]]]]:
    """Returns the names of a CSV file's columns, and the place and cells of each row."""
    text = (line for _, line in foreign.text_lines(file, lines_max=STEPS_MAX))
    reader = csv.DictReader(text, skipinitialspace=True)
    reader.fieldnames = names = [name.strip() for name in reader.fieldnames or ()]
    rows = ((f"{file}:{n}", row) for n, row in enumerate(reader, 2))
    first = next(rows, None)
    if first is None:
        raise UserError(f"{file}: no rows below a header")
    return names, chain([first], rows)


def from_csv(file: Path, reading: Reading) -> Steps:
    """Reads columns as ours (rate_mbps, at_s), or those of the command line (dl:kbps)."""
    names, rows = table(file)
    chosen, found = {}, {}
    for stem in ("at", "rate", "delay", "loss"):
        given = reading.columns.get(stem)
        own = next((name for name in names if name.split("_")[0] == stem), None)
        column, _, unit = (given or own or "").partition(":")
        if not column:
            continue
        if column not in names:
            raise UserError(f"{file}: no column is called '{column}'; there is {', '.join(names)}")
        kind = f"{stem}_{unit}" if unit else column
        steps.factor(kind)
        chosen[stem], found[stem] = (column, kind), array("d")
    if not {"at", "rate"} <= chosen.keys():
        raise UserError(f"{file}: say with --at and --rate which columns are time and rate")
    for place, row in rows:
        for stem, (column, kind) in chosen.items():
            found[stem].append(steps.value(kind, row[column] or "", place))
    values = {stem: np.array(column) for stem, column in found.items()}
    at = values.pop("at")
    if len(at) < 2 or (np.diff(at) <= 0).any():
        raise UserError(f"{file}: its times do not rise from row to row")
    # The last row holds as long as most do.
    return steps.make(
        at - at[0],
        at[-1] - at[0] + float(np.median(np.diff(at))),
        values["rate"],
        values.get("delay", 0.0),
        values.get("loss", 0.0),
    )


def mobile(file: Path, reading: Reading) -> Steps:
    """Reads 5G sets, a line a second: a column of MOBILE_RATES, or without a header Mbit/s last."""
    names, rows = table(file)
    column = next((name for name in MOBILE_RATES if name in names), None)
    if column is not None:
        cells = (steps.value("rate_bps", row[column] or "0", place) for place, row in rows)
        rate = np.fromiter(cells, np.float64) * MOBILE_RATES[column]
    elif re.fullmatch(r"[\d.eE+-]+", " ".join(names).rpartition(" ")[2]):
        last = ((place, re.split(r"[,\s]+", " ".join(words))[-1]) for place, words in lines(file))
        cells = (steps.value("rate_bps", cell, place) for place, cell in last)
        rate = np.fromiter(cells, np.float64) * 1e6
    else:
        raise UserError(f"{file}: no column is {' or '.join(MOBILE_RATES)}")
    return steps.make(np.arange(len(rate)) * NS_PER_S, len(rate) * NS_PER_S, rate)


class Iperf3Sum(msgspec.Struct):
    """The sum of all streams in an interval."""

    start: float
    end: float
    bits_per_second: float
    omitted: bool = False
    lost_percent: float = 0


class Iperf3Interval(msgspec.Struct):
    """An interval of a result."""

    sum: Iperf3Sum


class Iperf3(msgspec.Struct):
    """A result of `iperf3 --json`."""

    intervals: list[Iperf3Interval] = []


def iperf3(file: Path, reading: Reading) -> Steps:
    """Reads `iperf3 --json`: the rate of each interval, and what UDP's receiver lost."""
    said = foreign.read_json(file, Iperf3).intervals
    # The times of the others begin again behind those that -O leaves out.
    sums = [interval.sum for interval in said if not interval.sum.omitted]
    if not sums:
        raise UserError(f"{file}: no result of iperf3 --json with intervals")
    at = np.array([one.start for one in sums]) - sums[0].start
    end, rates = sums[-1].end - sums[0].start, [one.bits_per_second for one in sums]
    lost = [one.lost_percent / 100 for one in sums]
    return steps.make(at * NS_PER_S, end * NS_PER_S, rates, loss=lost)


def pantheon(file: Path, reading: Reading) -> Steps:
    """Reads a tunnel's or mm-link's log: `ms # bytes`, `ms + bytes`, `ms - bytes ms`, or
    `ms d pkts bytes`.

    The rate is that of the opportunities (#), or where there are none that of what left (-). The
    delay is the smallest of the log, for the rest is the queue that its senders made; the loss is
    that of the whole log where no queue is known to have dropped.
    """
    seen = {kind: array("d") for kind in "#+-d"}  # a time and a size of each
    delays = array("d")
    for place, words in lines(file):
        try:
            at, kind, size = float(words[0]), words[1], float(words[2])
            seen[kind].extend((at, size))
            if kind == "-":
                delays.append(float(words[3]))
        except (ValueError, KeyError, IndexError):
            raise UserError(f"{place}: not 'ms # bytes', 'ms + bytes' or 'ms - bytes ms'") from None
    at_ms, sizes = np.array(seen["#"] or seen["-"] or (0.0, 0.0)).reshape(-1, 2).T
    if at_ms[-1] <= at_ms[0]:
        raise UserError(f"{file}: no packets leave in it")
    lost = 0.0
    if seen["+"] and not seen["#"]:
        lost = max(0.0, 1 - len(seen["-"]) / len(seen["+"]))
    at_ns = (at_ms - at_ms[0]) * MS
    found = binned(at_ns, sizes * 8, reading.step_ns)
    delay_ns = min(delays, default=0.0) * MS
    return steps.make(found.at_ns, found.end_ns, found.rate_bps, delay_ns, lost)


def capture(file: Path, reading: Reading) -> Steps:
    """Reads pcap and pcapng: the frames of each interval, without FCS, as a run's traffic."""
    from weir.analysis.ring import open_ring
    from weir.base import programs

    config: dict[str, object] = {
        "duration": "24h",
        "telemetry": {"level": 1, "interval": f"{round(reading.step_ns)}ns"},
        "paths": {
            "forward": [
                {"source": {"pcap": str(file.resolve())}},
                {"link": {"rate": "1Tbit", "queue": {"fifo": {"limit": "1GB"}}}},
            ]
        },
    }
    with tempfile.TemporaryDirectory(prefix="weir-trace-") as folder:
        out = Path(folder) / "run"
        argv = [str(programs.find_program("sim")), "-", "--out", str(out)]
        done = subprocess.run(argv, input=json.dumps(config), capture_output=True, text=True)
        if done.returncode:
            raise UserError(f"{file}: {done.stderr.strip().splitlines()[-1]}", done.returncode)
        records = open_ring(out / "links.ring").records
        ends = np.asarray(records["ts_ns"], dtype=np.float64)
        bits = (records["out_bytes"] - 4.0 * records["out_pkts"]) * 8
    return of_intervals(ends, bits)


FORMATS: dict[str, Callable[[Path, Reading], Steps]] = {
    "steps": lambda file, _: steps.read(file),  # what this command has written
    "mahimahi": mahimahi,
    "csv": from_csv,
    "pcap": capture,
    "iperf3": iperf3,
    "leocc": leocc,
    "pantheon": pantheon,
    "5g": mobile,
    "theaterq": theaterq,
}


def read(file: Path, name: str, reading: Reading) -> Steps:
    """Reads a file in the format of this name; UserError says what is wrong with it."""
    if name not in FORMATS:
        raise UserError(f"--from: '{name}' is not a format; there is {', '.join(FORMATS)}")
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # infinite is refused below
            found = FORMATS[name](file, reading)
    except UserError as error:
        text = str(error)
        raise UserError(text if str(file) in text else f"{file}: {text}") from None
    except (OSError, csv.Error) as error:
        raise UserError(f"{file}: {error}") from None
    numbers = (found.at_ns, found.rate_bps, found.delay_ns, found.loss, found.limit_pkts)
    if not all((np.isfinite(one) & (one >= 0)).all() for one in (*numbers, found.end_ns)):
        raise UserError(f"{file}: a time, rate, delay, loss or limit is negative or no number")
    if (np.diff(found.at_ns, append=found.end_ns) <= 0).any():
        raise UserError(f"{file}: its times do not rise from step to step")
    if not (found.rate_bps > 0).any():
        raise UserError(f"{file}: no step has a rate")
    return found

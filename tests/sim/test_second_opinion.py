# SPDX-License-Identifier: BSD-3-Clause
"""Every number of a run, computed a second time (tests/swarm/second_opinion.py): its summary, its
report's tables, its public frames, its exported files. And that a wrong number would be noticed.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from swarm.second_opinion import (
    OPINIONS,
    Second,
    jain,
    known_sum,
    mean,
    of_group,
    per_flow,
    rank,
    second_opinion,
)
from weir.analysis import folder
from weir.export import tables
from weir.report import data, page, sections
from weir.report.figure import numbers

from .conftest import ROOT, RUN_S_MAX

pytestmark = pytest.mark.slow

PATHS = """
seed: 1
paths:
  forward:
    - link: {rate: 10Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
"""
OUTAGE = (
    "duration: 12s\nwarmup: 1s\n"
    + PATHS
    + """
schedule: [{at: 5s, forward.link.rate: 0bit}, {at: 6500ms, forward.link.rate: 10Mbit}]
flows:
  - {name: onoff, count: 4, cc: cubic, source: {on_off: {on: 200ms, off: 2s}}}
  - {name: probes, cc: reno, source: {probe: {}}, base_rtt: 40ms, start: 900ms}
telemetry: {level: 3, interval: 100ms}
"""
)
INSIDE = (
    "duration: 3s\nwarmup: 1050ms\n"
    + PATHS.replace("10Mbit", "100Mbit")
    + "flows: [{count: 2, cc: cubic}]\ntelemetry: {level: 3, interval: 500ms}\n"
)
RATE, LEVEL_3 = "paths.forward.link.rate", "telemetry.level=3"
SHORT = ("duration=4s", "warmup=1s")
SLOW_SEARCH = (f"{RATE}=400Mbit", "flows.0.source.poisson.load=240Mbit")
KINDS: dict[str, tuple[str, tuple[str, ...], bool]] = {  # config, overrides, is it captured?
    "quickstart": ("quickstart", (), False),  # 25 million packets
    "a hundredth of it": ("quickstart", (f"{RATE}=100Mbit", "flows.0.count=10", *SHORT), True),
    "transfers": ("web-search", (LEVEL_3,), False),
    "slow transfers": ("web-search", (*SLOW_SEARCH, "paths.forward.edges.rate=100Mbit"), True),
    "churn": ("churn", ("duration=3s", "flows.0.stagger=300ms", "flows.0.stop=2s"), True),
    "on and off, and an outage": (OUTAGE, (), True),
    "a warm-up inside an interval": (INSIDE, (), True),
}
SIZES = (10e3, 64e3, 100e3, 1e6, 10e6)
UNITS = {
    **{"": 1.0, "%": 0.01, "pkt": 1.0},
    **{"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    **{"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9},
}
UNNOTICED = {
    "wall_s": "a clock of the machine",
    "measured.wall_s": "a clock of the machine",
    "measured.cpu_s": "a clock of the machine",
    "schema": "the form of the file",
    "threads": "of the command line: tests/sim/test_threads.py",
    "two_threads_s": "a clock of the machine",
    "dropped_elsewhere": "each is of a test in tests/unit/why_test.c",
    "memory.": "no record tells it",
    "segments.unacceptable": "no record tells it; each is of a test in tests/unit",
    "segments.refused": "no record tells it; the verdict does",
    "receivers.ranges_refused": "no record tells it; the verdict does",
    ".transfers.waited": "no record tells how often",
    ".transfers.skipped": "what is skipped leaves no record",
    ".ce_segs": "what a peer has said is in the ACKs; receivers.ce_segs is compared",
}


@dataclass(frozen=True)
class Made:
    """A run of one kind."""

    path: Path
    capture: Path | None

    @property
    def own(self) -> Second:
        return Second(self.path, self.capture)

    @property
    def data(self) -> data.RunData:
        return data.read(folder.load(self.path))


@pytest.fixture(scope="module", params=KINDS)
def made(
    request: pytest.FixtureRequest, weir_sim: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Made]:
    """A run of each kind, with a capture of its paths if that is small enough for tshark."""
    text, overrides, captured = KINDS[request.param]
    place = tmp_path_factory.mktemp("second")
    config = ROOT / "configs" / f"{text}.yaml"
    if "\n" in text:
        config = place / "config.yaml"
        config.write_text(text)
    argv = [str(weir_sim), str(config), "--out", str(place / "run")]
    if captured:
        overrides += ("telemetry.capture=paths", LEVEL_3)
        argv += ["--pcap", str(place / "run.pcapng")]
    argv += [arg for override in overrides for arg in ("-o", override)]
    subprocess.run(argv, check=True, timeout=RUN_S_MAX)
    yield Made(place / "run", place / "run.pcapng" if captured else None)
    for file in [*place.glob("*.pcapng"), *place.glob("run/*.ring")]:
        file.unlink()  # half a gigabyte


def shows(cell: str, value: float | None, share: float = 0.0) -> bool:
    """Is a cell of a table this number, within half of its last digit and a share?"""
    if value is None:
        return cell == "–"
    number, _, unit = cell.replace(",", "").partition(" ")
    scale, digits = UNITS[unit], number.partition("e")[0].partition(".")[2]
    half = 0.5001 * 10.0 ** -len(digits) * 10.0 ** int(number.partition("e")[2] or 0) * scale
    return abs(float(number) * scale - value) <= half + share * abs(value)


def test_the_summary(made: Made) -> None:
    assert second_opinion(made.path, made.capture) == []


def test_the_reports_table_of_groups(made: Made) -> None:
    own, numbers = made.own, made.data.numbers
    table = page.traffic(numbers)[0]
    found = [of_group(own, i) for i in range(len(own.config["flows"]))]
    total = sum(float(group["goodput_bps"] or 0) for group in found)

    assert len(table.rows) == len(found)
    for row, group in zip(table.rows, found, strict=True):
        cells = dict(zip(table.columns, row, strict=True))
        for column, value in (
            ("goodput", group["goodput_bps"]),
            ("share", float(group["goodput_bps"] or 0) / total),
            ("JFI", group["jfi"]),
            ("mean RTT", group["rtt_mean_ns"]),
            ("drops", group["drops"]),
            ("retransmits", group["retransmits"]),
            ("bytes resent", group["rtx_overhead"]),
            ("window reductions", group["cwnd_reductions"]),
        ):
            assert shows(cells[column], value, 1e-6), (column, cells[column], value)


def test_the_reports_table_of_links(made: Made) -> None:
    """Percentiles are those of the summary, which are compared with every packet's."""
    own = made.own
    table = page.traffic(made.data.numbers)[1]

    for i, (row, link) in enumerate(zip(table.rows, own.summary["links"].values(), strict=True)):
        mine = own.late(own.of("links", link=i))
        cells = dict(zip(table.columns, row, strict=True))
        sojourn = mean(mine["sojourn_mean_ns"], mine["out_pkts"].astype(float))
        if own.complete:
            left = own.since(own.of("packets", event="dequeue", link=i))
            sojourn = mean(left["sojourn_ns"])
        for column, value, share in (
            ("used", link["utilisation"], 0),
            ("mean queue", link["queue_mean_pkts"], 0),
            ("delay", sojourn, 1e-4),  # of the intervals' packets, those on the wire apart
            ("p99 delay", link["sojourn_p99_ns"], 0),
            ("drops", int(mine["drops"].sum()), 0),
            ("marks", int(mine["marks"].sum()), 0),
        ):
            assert shows(cells[column], value, share), (column, cells[column], value)


def test_the_reports_table_of_transfers(made: Made) -> None:
    own = made.own
    found = page.transfers(made.data)
    if "transfers" not in own.records:
        assert found == []
        return
    records = own.records["transfers"]
    records = records[records["start_ns"] >= own.warmup_ns]
    (_, table), rows = found[0], iter(found[0][1].rows)
    size = np.searchsorted(SIZES, records["size_bytes"].astype(float))
    size[records["size_bytes"] == 2**64 - 1] = len(SIZES) + 1
    for group, place in sorted(set(zip(records["group"].tolist(), size.tolist(), strict=True))):
        mine = records[(records["group"] == group) & (size == place)]
        closed = mine[mine["event"] == own.values["transfers", "event"]["close"]]
        took = (closed["ts_ns"] - closed["start_ns"]).astype(float)
        known = closed["ideal_ns"] > 0
        slow = took[known] / closed["ideal_ns"][known]
        cells = dict(zip(table.columns, next(rows), strict=True))
        assert (cells["size"] == "not known") == (place > len(SIZES))
        for column, value in (
            ("transfers", len(closed)),
            ("unfinished", len(mine) - len(closed)),
            ("mean", mean(took)),
            *((f"p{p}", rank(took, p / 100)) for p in (50, 95, 99)),
            ("slowdown", mean(slow)),
            ("p99 slowdown", rank(slow, 0.99)),
        ):
            assert shows(cells[column], value, 1e-9), (column, cells[column], value)
    assert next(rows, None) is None


def test_the_reports_ledger(made: Made) -> None:
    """What goes into a path and out of it is in the table, and nothing is left."""
    heading, *_, table = page.ledger(made.data.numbers)
    assert heading.words == ["Ledger: ", "balanced"]
    rows = iter(table.rows)
    for name, path in made.own.summary["ledger"]["paths"].items():
        left = {"packets": 0, "bytes": 0}
        for row in rows:
            if row[1] == "= 0":
                assert row[2:] == ["0", "0"]
                break
            sign = -1 if row[1].startswith("−") else 1
            for unit, cell in zip(left, row[2:], strict=True):
                left[unit] += sign * int(cell.replace(",", ""))
            if row[1] == "in":
                assert [int(cell.replace(",", "")) for cell in row[2:]] == list(path["in"].values())
        assert left == {"packets": 0, "bytes": 0}, name


def steps(run: Second, ends: np.ndarray) -> np.ndarray:
    """The lengths of the intervals that end then, in seconds; the warm-up ends one, too."""
    every = np.unique(np.concatenate([run.records["links"]["ts_ns"], ends])).astype(float)
    lengths = np.diff(np.concatenate([[0.0], np.minimum(every, run.duration_ns)]))
    return np.asarray(lengths[np.searchsorted(every, ends)] / 1e9)


def test_the_reports_figures_in_numbers(made: Made) -> None:
    """First, smallest, mean, largest and last of what each line of flows and queues is drawn of."""
    own, run = made.own, made.data
    tables = {
        drawn.name: numbers(drawn) for drawn in sections.draw(run) if drawn.name in ("rtt", "queue")
    }
    few = len(np.unique(own.records["interval"]["flow_id"])) <= 10
    lines = {row[0]: row[2:] for row in tables["rtt"]}
    for flow in np.unique(own.records["interval"]["flow_id"]) if few else ():
        mine = own.of("interval", flow_id=flow)
        rtts = mine["rtt_mean_ns"][mine["rtt_samples"] > 0].astype(float)
        group = own.summary["groups"][int(mine["group"][0])]
        name = group["name"] if group["flows"] == 1 else f"flow {flow}"
        if group["flows"] > 1 and len(own.summary["groups"]) > 1:
            name = f"{group['name']}, {name}"
        divisor = next(d for d, u in ((1e9, "(s)"), (1e6, "(ms)")) if u in tables["rtt"][0][1])
        if rtts.size < 2:  # no line
            assert name not in lines
            continue
        values = [rtts[0], rtts.min(), rtts.mean(), rtts.max(), rtts[-1]]
        for cell, value in zip(lines[name], values, strict=True):
            assert shows(cell, value / divisor, 1e-6), (name, lines[name], values)
    queue = own.of("links", link=0)["queue_mean_pkts"].astype(float)
    cells = tables["queue"][0][2:]
    for cell, value in zip(
        cells, [queue[0], queue.min(), queue.mean(), queue.max(), queue[-1]], strict=True
    ):
        assert shows(cell, value, 1e-6), (cells, queue)


def test_the_reports_frames(made: Made) -> None:
    """What figures are drawn from: totals of flows, and rates of intervals and windows."""
    own, flows = made.own, made.data.flows
    assert flows is not None
    late = own.late(own.records["interval"])
    each = flows.each.sort("flow_id")
    shares = per_flow(own, each["flow_id"].to_list(), late)
    assert np.allclose(each["goodput_bps"].to_numpy(), 8 * shares / own.measured_s, rtol=1e-9)
    for i in range(len(own.config["flows"])):
        mine = each.filter(pl.col("group") == i)
        for key in ("acked_bytes", "sent_segs", "retransmits"):
            right = known_sum(own.late(own.of("interval", group=i)), key)
            assert int(mine[key].fill_null(0).sum()) == right, key
        assert mine.height == 0 or jain(mine["goodput_bps"].to_numpy()) == pytest.approx(
            own.summary["groups"][i]["jfi"], rel=1e-6
        )
    rated = flows.rated.sort("ts_ns", "flow_id")
    order = np.lexsort((own.records["interval"]["flow_id"], own.records["interval"]["ts_ns"]))
    records = own.records["interval"][order]
    bps = 8 * records["delivered_bytes"] / steps(own, records["ts_ns"])
    assert np.allclose(rated["goodput_bps"].to_numpy(), bps, rtol=1e-6, atol=1)


def test_the_exported_tables(made: Made, tmp_path: Path) -> None:
    """Parquet holds each record, and null where a number is not known."""
    own = made.own
    run = folder.load(made.path)
    for name, records in own.records.items():
        tables.parquet(run.stream(name), tmp_path / f"{name}.parquet", [])
        frame = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert frame.height == len(records), name
        for field in records.dtype.names or ():
            column, right = frame[field], records[field]
            known = column.is_not_null().to_numpy()
            assert np.array_equal(column.drop_nulls().to_numpy(), right[known], equal_nan=True)
            assert (right[~known] == np.iinfo(right.dtype).max).all() if not known.all() else True


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Every number of a summary."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from leaves(inner, (*place, key))
        elif isinstance(inner, int | float) and not isinstance(inner, bool):
            yield (*place, key), inner


@pytest.mark.parametrize("made", ["slow transfers", "on and off, and an outage"], indirect=True)
def test_a_wrong_number_would_be_noticed(made: Made) -> None:
    """Each number of the summary is made larger by a tenth, or 2 of 0: who says so?

    Those that nothing of a run can tell are few, each with its reason.
    """
    run = made.own
    right = json.loads(json.dumps(run.summary))
    missed = []
    for place, number in leaves(right):
        run.summary = copy.deepcopy(right)
        inner = run.summary
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = number * 1.1 if number else 2
        if not any(says for opinion in OPINIONS for says in opinion(run)):
            missed.append(".".join(map(str, place)))
    assert [name for name in missed if not any(known in name for known in UNNOTICED)] == []

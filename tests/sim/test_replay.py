# SPDX-License-Identifier: BSD-3-Clause
"""A run's arrivals, put through its paths again, meet the same decisions: weir replay."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weir.analysis.ring import open_ring

from .conftest import Replay, Simulate
from .test_determinism import MIXED

RECORD = ("telemetry.arrivals=yes", "duration=3s", "warmup=0s", "schedule.0.at=1s")
QUEUES = [
    "fifo: {limit: 30pkt}",
    "fifo: {limit: 30pkt, drop: head}",
    "codel: {law: exact}",
    "codel: {law: linux, ecn: yes}",
    "pie: {ecn: yes, max_burst: 0}",
    "docsis_pie: {}",
    "red: {ecn: yes, adaptive: yes}",
    "step: {threshold: 20pkt, others: drop}",
    "dualpi2: {classify: any_ect, derandomise: no}",
]
ARRIVED, CHANGED, END = 1, 2, 3
ENQUEUE, DEQUEUE, DROP = 1, 2, 3


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory, weir_sim: Path) -> Path:
    """One recorded run in `run`, to be copied."""
    folder = tmp_path_factory.mktemp("recorded")
    config = folder / "mixed.yaml"
    config.write_text(MIXED)
    argv = [str(weir_sim), str(config), "--out", str(folder / "run")]
    subprocess.run([*argv, *(x for o in RECORD for x in ("-o", o))], check=True, timeout=60)
    return folder / "run"


@pytest.fixture
def recording(recordings: Path, tmp_path: Path) -> Path:
    """A recorded run to spoil."""
    return shutil.copytree(recordings, tmp_path / "copy")


def change(folder: Path, name: str, choose: Any, field: str, value: Any) -> np.void:
    """Changes a field of the middle one of the chosen records; the record as it was."""
    path = folder / f"{name}.ring"
    records = np.memmap(path, open_ring(path).dtype, "r+", offset=4096)
    chosen = np.flatnonzero(choose(records))
    index = chosen[len(chosen) // 2]
    before = records[index].copy()
    records[field][index] = value(before[field])
    records.flush()
    return before


@pytest.mark.slow
@pytest.mark.parametrize("queue", QUEUES)
def test_a_replay_decides_the_same(simulate: Simulate, replay: Replay, queue: str) -> None:
    """All stages there are, groups with delays of their own, and a change of rate."""
    config = MIXED.replace("codel: {ecn: yes}", queue)
    edges = "  forward:\n    - edges: {count: 3, rate: 100Mbit}\n"
    hosts = "hosts={receiving: {count: 2, cpu: 400us, ring: 64}}"
    run = simulate(config.replace("  forward:\n", edges), *RECORD, hosts)
    done = replay(run.folder)

    packets = open_ring(run.folder / "packets.ring").records
    arrivals = open_ring(run.folder / "arrivals.ring").records
    assert (done.status, done.err) == (0, "")
    assert (arrivals["event"] == CHANGED).sum() == 1
    counts = {n: (packets["event"] == n).sum() for n in (ENQUEUE, DEQUEUE, DROP, 4)}
    assert done.out.startswith(
        f"identical: {(arrivals['event'] == ARRIVED).sum():,} arrivals and 1 parameter changes "
        "replayed, the same decisions: "
        f"{counts[1]:,} enqueue, {counts[2]:,} dequeue, {counts[3]:,} drop"
    )
    marking = "ecn: yes" in queue or queue.startswith(("step", "dualpi2"))
    assert ("mark" in done.out) == marking
    # Drops of all stages are there: what the ledger counts.
    drops = [p["drops"] for p in run.summary["ledger"]["paths"].values()]
    assert sum(d["pkts"] for of in drops for d in of.values()) == counts[3]
    assert (packets["link"][packets["event"] == DROP] == 255).sum() > 10


def test_recording_changes_nothing_else(simulate: Simulate) -> None:
    """The digest of all other telemetry stays."""
    plain = simulate(MIXED, "duration=3s")
    recorded = simulate(MIXED, "duration=3s", "telemetry.arrivals=yes")

    assert plain.summary["digest"] == recorded.summary["digest"]
    assert not (plain.folder / "arrivals.ring").exists()


def test_a_subset_of_flows_is_compared(simulate: Simulate, replay: Replay) -> None:
    """Level 2: all arrivals are recorded, decisions of some."""
    run = simulate(MIXED, *RECORD, "telemetry.level=2", "telemetry.sample=30%")
    done = replay(run.folder)

    assert (done.status, done.err) == (0, "")
    some = len(open_ring(run.folder / "packets.ring"))
    assert 0 < some < len(open_ring(run.folder / "arrivals.ring"))


def test_parameters_are_found_by_name(recording: Path, replay: Replay) -> None:
    """A parameter more in a stage's table: the change was made to the one before it."""
    change(recording, "arrivals", lambda r: r["event"] == CHANGED, "param", lambda n: n + 1)
    done = replay(recording)

    assert (done.status, done.err) == (0, "")


def test_a_changed_decision_is_named(recording: Path, replay: Replay) -> None:
    """One byte of packets.ring."""
    was = change(recording, "packets", lambda r: r["event"] == DEQUEUE, "event", lambda _: DROP)
    done = replay(recording)

    what = f"of packet {was['pkt_id']} at {was['ts_ns'] / 1e9:.9f} s"
    assert done.status == 1
    assert done.out == (
        f"first difference in forward.link: recorded drop (none) {what}; replayed dequeue {what}\n"
    )


def test_a_changed_figure_is_named(recording: Path, replay: Replay) -> None:
    """The same decision, another backlog."""
    was = change(
        recording, "packets", lambda r: r["event"] == ENQUEUE, "queue_bytes", lambda n: n + 1
    )
    done = replay(recording)

    assert done.status == 1
    assert f"recorded enqueue of packet {was['pkt_id']} at" in done.out
    assert f"queue_bytes {was['queue_bytes'] + 1}; replayed enqueue" in done.out
    assert done.out.endswith(f"queue_bytes {was['queue_bytes']}\n")


@pytest.mark.parametrize(
    ("field", "value"),
    [("ts_ns", lambda t: t + 1), ("size_bytes", lambda n: n - 1)],
)
def test_a_changed_arrival_is_named(
    recording: Path, replay: Replay, field: str, value: Callable[[int], int]
) -> None:
    """Another time or size of one packet: nothing differs before it."""
    was = change(
        recording, "arrivals", lambda r: (r["event"] == ARRIVED) & (r["path"] == 0), field, value
    )
    done = replay(recording)

    assert done.status == 1
    assert "first difference in forward." in done.out
    when = re.search(r" at ([\d.]+) s", done.out)
    assert when is not None
    assert float(when[1]) * 1e9 >= was["ts_ns"] - 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choose", "field", "value", "sentence"),
    [
        (ARRIVED, "pkt_id", 7, r"record \d+: a packet before it is missing"),
        (ARRIVED, "path", 9, r"record \d+: the config has no such path"),
        (ARRIVED, "size_bytes", 0, r"record \d+: not a packet"),
        (ARRIVED, "event", 9, r"record \d+: neither a packet nor a change"),
        (CHANGED, "value", 1.0, r"record \d+: forward.link: rate cannot have become 1"),
        (CHANGED, "flow_id", 99, r"record \d+: forward: there is no such parameter"),
        (END, "event", ARRIVED, r"record \d+: "),
    ],
)
def test_what_no_run_wrote_is_refused(
    recording: Path, replay: Replay, choose: int, field: str, value: float, sentence: str
) -> None:
    """A spoilt arrivals.ring: the record is named."""
    change(recording, "arrivals", lambda r: r["event"] == choose, field, lambda _: value)
    done = replay(recording)

    assert (done.status, done.out) == (1, "")
    assert re.fullmatch(rf"weir: \S+arrivals.ring: {sentence}.*\n", done.err)


def test_holes_are_counted(recording: Path, replay: Replay) -> None:
    """Lost records, in a file as the live switch leaves it."""
    path = recording / "arrivals.ring"
    produced = len(open_ring(path))
    page = np.memmap(path, "<u8", "r+", shape=(512,))
    page[128 // 8] += 5  # head
    page[128 // 8 + 3] = 5  # lost
    page.flush()
    done = replay(recording)

    assert (done.status, done.out) == (1, "")
    assert (
        f"the recording has holes: 5 of {produced + 5:,} records of arrivals.ring were lost"
        in done.err
    )


def test_a_recording_without_an_end_is_refused(recording: Path, replay: Replay) -> None:
    """As kill -9 leaves it."""
    page = np.memmap(recording / "packets.ring", "<u8", "r+", shape=(512,))
    page[392 // 8] = 0
    page.flush()
    done = replay(recording)

    assert (done.status, done.out) == (1, "")
    assert "packets.ring has no end: its writer was killed" in done.err


def test_rings_of_two_runs_are_refused(recording: Path, replay: Replay, simulate: Simulate) -> None:
    """A folder in which somebody mixed files."""
    other = simulate(MIXED, *RECORD, "seed=8")
    shutil.copy(other.folder / "packets.ring", recording / "packets.ring")
    done = replay(recording)

    assert (done.status, done.out) == (1, "")
    assert "not of one run" in done.err


@pytest.mark.slow
def test_what_was_not_recorded_is_said(simulate: Simulate, replay: Replay, tmp_path: Path) -> None:
    """With the option that records it."""
    plain = simulate(MIXED, "duration=1s", "warmup=0s")
    coarse = simulate(
        MIXED, "duration=1s", "warmup=0s", "telemetry.level=1", "telemetry.arrivals=yes"
    )

    assert "has no arrivals.ring: run it with -o telemetry.arrivals=yes" in replay(plain.folder).err
    assert "has no packets.ring: run it with -o telemetry.level=3" in replay(coarse.folder).err
    assert "no such run folder" in replay(tmp_path / "nowhere").err
    idle = simulate(
        "duration: 1s\npaths: {forward: [delay: {delay: 1ms}], reverse: [delay: {delay: 1ms}]}\n"
        "flows: [{count: 1, cc: copa, start: 2s}]\ntelemetry: {level: 3, arrivals: yes}\n"
    )
    assert "no packet arrived: there is nothing to replay" in replay(idle.folder).err


def test_weir_sim_refuses_other_files(recordings: Path, weir_sim: Path, tmp_path: Path) -> None:
    """One sentence, no run folder."""
    short = tmp_path / "short"
    short.write_bytes(b"WEIRTEL1")
    other = tmp_path / "other"
    recorded = (recordings / "arrivals.ring").read_bytes()
    other.write_bytes(recorded[:12] + b"\2\0" + recorded[14:])
    for file, status, sentence in (
        (other, 2, "of format version 2; this program wants 3"),
        (recordings / "packets.ring", 2, "not a recording of arrivals"),
        (recordings / "config.yaml", 2, "not a recording of arrivals"),
        (short, 2, "not a recording of arrivals"),
        (tmp_path / "none", 2, "No such file or directory"),
    ):
        argv = [weir_sim, recordings / "config.yaml", "--replay", file, "--out", tmp_path / "out"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (status, f"weir-sim: {file}: {sentence}\n")
        assert not (tmp_path / "out").exists()
    argv = [weir_sim, recordings / "config.yaml", "--seed", "8", "--replay"]
    done = subprocess.run(
        [*argv, recordings / "arrivals.ring"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "was recorded with seed 7, the config has 8" in done.stderr

# SPDX-License-Identifier: BSD-3-Clause
"""Links and policers in a closed loop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .conftest import ROOT, Replay, Simulate

DROP_TAIL = (
    "paths.forward=[{link: {rate: 10Mbit, queue: {fifo: {limit: 1BDP}}}}, {delay: {delay: 10ms}}]"
)
BASE_RTT_NS = 20e6


def test_a_policer_takes_throughput_and_adds_no_delay(simulate: Simulate) -> None:
    """Its signature, beside a drop-tail queue of the same rate (Flach et al., SIGCOMM 2016, 3)."""
    policed, queued = simulate("policer"), simulate("policer", DROP_TAIL)

    # Losses without a queue before them, where drop-tail loses only what a full queue refuses.
    assert policed.groups[0]["rtt_mean_ns"] < BASE_RTT_NS + 1e6
    assert queued.groups[0]["rtt_mean_ns"] > BASE_RTT_NS + 10e6
    assert set(policed.summary["ledger"]["paths"]["forward"]["drops"]) == {"policed"}
    assert policed.groups[0]["rtx_overhead"] > 3 * queued.groups[0]["rtx_overhead"]
    # At the rate: goodput counts payload, 1448 of the 1500 bytes that the policer counts.
    assert 0.8 * 10e6 < policed.groups[0]["goodput_bps"] < 10e6 * 1448 / 1500
    assert queued.groups[0]["goodput_bps"] > 0.9 * 10e6
    # In no interval more than the rate and the burst.
    most = 10e6 * 0.1 / 8 + 25e3
    links = policed.records("links")
    sent = links["out_bytes"] - 18.0 * links["out_pkts"]
    assert len(sent) > 400
    assert sent.max() <= most


def test_a_queue_of_10_seconds_is_10_seconds_everywhere(simulate: Simulate) -> None:
    """What the summary says, every record says, beyond 2^32 ns (4.29 s), too."""
    run = simulate("""
duration: 60s
warmup: 30s
paths:
  forward: [{link: {rate: 1Mbit, queue: {fifo: {limit: 10s}}}}, {delay: {delay: 50ms}}]
  reverse: [{delay: {delay: 50ms}}]
flows: [{count: 1, cc: cubic}]
telemetry: {level: 3}
""")
    longest_ns = run.link["sojourn_max_ns"]
    assert 8e9 < longest_ns < 10.1e9
    assert run.records("links")["sojourn_max_ns"].max() == longest_ns
    packets = run.records("packets")
    assert packets["sojourn_ns"][packets["event"] == 2].max() == longest_ns
    rtts = run.records("cc")["rtt_ns"]
    assert longest_ns < run.records("interval")["rtt_max_ns"].max() == rtts.max() < 10.3e9
    assert run.records("flows")["srtt_ns"].max() > 8e9


def test_a_slow_uplink_carries_the_acks_that_matter(simulate: Simulate, replay: Replay) -> None:
    """A download needs 4060 ACKs/s, for two segments each; 1 Mbit/s carries 1390 frames of 90 B.

    Without the filter they wait in a queue until COBALT drops some. With it the download has its
    link, less headers: 1448 of 1538 bytes. A replay of what was recorded decides the same.
    """
    down = 100e6 * 1448 / 1538
    length = ("duration=10s", "warmup=5s", "telemetry={level: 3, arrivals: yes}")
    goodput, rtt = {}, {}
    for mode in ("no", "filter", "aggressive"):
        chosen = f"paths.reverse.link.queue.cake.ack_filter={mode}"
        run = simulate("asymmetric-uplink", chosen, *length)
        goodput[mode] = run.groups[0]["goodput_bps"]
        rtt[mode] = run.groups[0]["rtt_mean_ns"]
        drops = run.summary["ledger"]["paths"]["reverse"]["drops"]
        assert set(drops) == ({"aqm"} if mode == "no" else {"ack_filter"})
        if mode == "filter":
            assert replay(run.folder).out.startswith("identical:")

    assert goodput["no"] < 0.85 * down
    assert rtt["no"] > 100e6  # 10 ms each way, CAKE's 5 ms of data, and ACKs that wait
    for mode in ("filter", "aggressive"):
        assert goodput[mode] > 0.98 * down
        assert rtt[mode] < 40e6


def test_a_link_that_is_down_counts_the_time_and_recovers(simulate: Simulate) -> None:
    """Rate 0 from 20 s to 22 s: two seconds without a packet, then as before."""
    run = simulate(
        "policer",
        DROP_TAIL,
        "schedule=[{at: 20s, forward.link.rate: 0}, {at: 22s, forward.link.rate: 10Mbit}]",
    )
    links = run.records("links")
    down = (links["ts_ns"] > 20.1e9) & (links["ts_ns"] <= 22e9)

    assert run.link["down_ns"] == 2e9
    assert run.link["rate_min_bps"] == 0
    assert links["out_pkts"][down].sum() == 0
    assert links["out_bytes"][links["ts_ns"] > 30e9].sum() * 8 > 0.9 * 10e6 * 30
    assert run.link["utilisation"] > 0.9  # of what it could have sent


def opportunities(path: Path, unit_ns: int, window_ns: int, end_ns: int) -> np.ndarray:
    """Opportunities of a mahimahi file in each window (from, to], counted without the C code."""
    times = [int(line) * unit_ns for line in path.read_text().split()]
    count = [0] * (end_ns // window_ns)
    for start in range(0, end_ns + 1, times[-1]):
        for at in times:
            window = (start + at - 1) // window_ns
            if 0 <= window < len(count):
                count[window] += 1
    return np.array(count)


BACKLOGGED = """
duration: 3s
warmup: 1s
paths:
  forward:
    - mahimahi_link: {file: x, queue: {fifo: {limit: 1GB}}}
  reverse:
    - delay: {delay: 1ms}
flows:
  - {cc: {fixed: {cwnd: 1000}}}
telemetry: {level: 1, interval: 100ms}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lte", "fast"])
def test_a_backlogged_link_sends_what_its_trace_offers(
    simulate: Simulate, tmp_path: Path, name: str
) -> None:
    """Bytes per 100 ms are the opportunities, exactly: LTE-like and near 10 Gbit/s."""
    make = [sys.executable, ROOT / "configs/traces/make.py", name]
    trace = tmp_path / "made.trace"
    trace.write_bytes(subprocess.run(make, capture_output=True, check=True).stdout)
    fast = name == "fast"
    run = simulate(
        BACKLOGGED,
        f"paths.forward.mahimahi_link.file={trace}",
        f"paths.forward.mahimahi_link.unit={'1us' if fast else '1ms'}",
        f"flows.0.cc.fixed.cwnd={20_000 if fast else 1000}",
        f"duration={'2s' if fast else '12s'}",
    )
    links = run.records("links")
    offered = opportunities(
        trace, 1_000 if fast else 1_000_000, 100_000_000, round(run.summary["virtual_s"] * 1e9)
    )
    # The records of the warm-up are left out: up to 1 s, so that one ends at 1.1 s.
    first = int(links["ts_ns"][0] // 100_000_000) - 1
    sent = links["out_bytes"] - 18 * links["out_pkts"].astype(np.int64)

    # IP packets are of 1500 bytes: of so many opportunities, so many.
    assert (sent == 1500 * links["out_pkts"].astype(np.int64)).all()
    np.testing.assert_array_equal(links["out_pkts"], offered[first:])
    np.testing.assert_allclose(links["rate_bps"], offered[first:] * 1500 * 8 * 10, atol=1)
    assert offered.sum() * 1500 * 8 / run.summary["virtual_s"] > (9e9 if fast else 10e6)


def test_the_committed_traces_are_what_the_script_makes() -> None:
    """configs/traces/make.py."""
    for name, file in (("lte", "lte-like.trace"), ("steps", "handover.csv")):
        make = [sys.executable, ROOT / "configs/traces/make.py", name]
        made = subprocess.run(make, capture_output=True, check=True).stdout
        assert made == (ROOT / "configs/traces" / file).read_bytes()


def test_a_run_folder_has_the_trace_and_repeats_the_run(
    simulate: Simulate, weir_sim: Path, tmp_path: Path
) -> None:
    """config.yaml of a run names the copy beside it; another file is refused."""
    first = simulate("lte-trace", "duration=12s")
    copy = first.folder / "file-lte-like.trace"
    repeat = [weir_sim, first.folder / "config.yaml", "--out", tmp_path / "again", "--json"]
    done = subprocess.run(repeat, capture_output=True, text=True, check=True)

    assert copy.read_bytes() == (ROOT / "configs/traces/lte-like.trace").read_bytes()
    assert json.loads(done.stdout)["digest"] == first.summary["digest"]
    assert (tmp_path / "again/config.yaml").read_text() == (
        first.folder / "config.yaml"
    ).read_text()
    copy.write_text(copy.read_text() + "20000\n")
    done = subprocess.run([*repeat, "--force"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "it is another file; leave digest out to use it" in done.stderr


def test_codel_bounds_the_queue_of_a_cellular_link(simulate: Simulate) -> None:
    """A FIFO's delay rises as the rate falls, CoDel's much less; the capacity is the trace's."""
    fifo = simulate("lte-trace").link
    codel = simulate("lte-trace", "paths.forward.mahimahi_link.queue=codel").link
    trace = ROOT / "configs/traces/lte-like.trace"
    offered = opportunities(trace, 1_000_000, 10_000_000_000, 60_000_000_000)[1:].sum()

    assert fifo["rate_mean_bps"] == codel["rate_mean_bps"] == offered * 1500 * 8 / 50
    # A smallest rate above the mean would be one that the link never had.
    assert fifo["rate_min_bps"] is fifo["rate_max_bps"] is None
    assert fifo["sojourn_p99_ns"] > 300e6
    assert codel["sojourn_p99_ns"] < 150e6


def test_handovers_are_those_of_the_file(simulate: Simulate) -> None:
    """Rate, delay and outage of each cell, in their 4 s."""
    run = simulate("handover")
    links = run.records("links")
    links = links[links["link"] == 0]
    ms = (links["ts_ns"] // 1_000_000) % 4000
    rtt = run.records("interval")
    at = (rtt["ts_ns"] // 1_000_000) % 4000

    assert run.link["down_ns"] == 13 * 80e6
    assert set(links["rate_bps"][(ms > 0) & (ms <= 2000)]) == {40_000_000}
    assert set(links["rate_bps"][(ms > 2200) | (ms == 0)]) == {15_000_000}
    assert (rtt["rtt_mean_ns"][(at > 500) & (at <= 2000)] >= 40e6).all()
    assert (rtt["rtt_mean_ns"][(at > 2500) | (at == 0)] >= 70e6).all()


def test_a_markov_link_has_the_mean_of_its_chain(simulate: Simulate) -> None:
    """A thousand cycles: the share of time in the bad state within 5 standard deviations."""
    run = simulate(
        "markov-link",
        "duration=1210s",
        "flows.0.cc={fixed: {cwnd: 10}}",
        "flows.0.count=1",
        "telemetry.interval=10s",
    )
    # Each cycle's bad share has about the deviation of both times: 1/6 * 5/6 * sqrt(2 / 1000).
    bad = (50e6 - run.link["rate_mean_bps"]) / 45e6
    assert bad == pytest.approx(1 / 6, abs=5 * (5 / 36) * (2 / 1000) ** 0.5)

# SPDX-License-Identifier: BSD-3-Clause
"""How exact a live link is: its rate as really transmitted, its departures never early."""

import numpy as np
import pytest
from lab import QUIET, Lab, quiet
from loopback_test import Loop

DEPARTED = 5
PPM_MAX = quiet(10, 100)


@pytest.fixture
def lab(tmp_path, build, weir_switch, weir_sender):
    with Lab(tmp_path, build) as lab:
        yield lab


def punctual(late_ns, first, last):
    """The most punctual of a range of packets: a stall says nothing about a rate."""
    return first + int(np.argmin(late_ns[first:last]))


def measured_ppm(packets, rate_bps):
    """The rate between two departures of the longest busy period, against the configured one."""
    left = packets[(packets["event"] == DEPARTED) & (packets["link"] == 0)]
    due_ns, late_ns = left["ts_ns"].astype(np.int64), left["sojourn_ns"].astype(np.int64)
    wire_bits = (left["size_bytes"].astype(np.int64) - 4 + 24) * 8
    busy = np.abs(np.diff(due_ns) - wire_bits[1:] * 1e9 / rate_bps) <= 1
    edges = np.flatnonzero(~np.concatenate([[False], busy, [False]]))
    longest = int(np.argmax(np.diff(edges)))
    first, last = int(edges[longest]), int(edges[longest + 1])
    tenth = max(1, (last - first) // 10)
    a = punctual(late_ns, first, first + tenth)
    b = punctual(late_ns, last - tenth, last)
    took_ns = (due_ns[b] + late_ns[b]) - (due_ns[a] + late_ns[a])
    bits = wire_bits[a + 1 : b + 1].sum()
    return took_ns / 1e9, (bits / (took_ns / 1e9) / rate_bps - 1) * 1e6


@pytest.mark.parametrize(
    ("rate", "flows", "duration"), [("1Mbit", 2, 8), ("100Mbit", 20, 5), ("10Gbit", 1000, 5)]
)
def test_rate(lab, root, rate, flows, duration):
    ring = pytest.importorskip("weir.ring")
    every_packet = rate != "10Gbit"
    options = ["-o", f"paths.forward.link.rate={rate}", "-o", f"flows.0.count={flows}"]
    options += ["--duration", f"{duration}s", "-o", "warmup=1s", "-o", "flows.0.cc=newreno"]
    options += ["-o", f"telemetry.level={3 if every_packet else 1}"]
    if every_packet:  # a queue long enough that the link is busy for seconds
        options += ["-o", "paths.forward.link.queue.fifo.limit=300ms"]
    loop = Loop(lab, root, *options)
    switch, _ = loop.run()
    forward = next(p for p in switch["emulation"]["ports"] if p["path"] == "forward")
    assert switch["emulation"]["early"] == 0
    if forward["rate_error_ppm"] is None and not QUIET:
        pytest.skip(f"hardly a moment was undisturbed: {switch['verdict']}")
    assert abs(forward["rate_error_ppm"]) <= PPM_MAX
    if every_packet:
        packets = ring.open_ring(loop.folder / "packets.ring").records
        rate_bps = switch["links"]["forward"]["rate_bps"]
        took_s, ppm = measured_ppm(packets, rate_bps)
        assert took_s > 1
        assert abs(ppm) <= PPM_MAX

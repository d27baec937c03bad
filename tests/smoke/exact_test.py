# SPDX-License-Identifier: BSD-3-Clause
"""How exact a live link is: its rate as really transmitted, its departures never early."""

import numpy as np
import pytest
from lab import QUIET
from loopback_test import Loop
from weir.analysis.ring import open_ring

DEPARTED = 5
PPM_MAX = 10


RATES = {"1Mbit": 2, "100Mbit": 20}  # and flows


def departures(packets):
    """Records of what left the first link's path."""
    return packets[(packets["event"] == DEPARTED) & (packets["link"] == 0)]


def wire_bits(packets):
    """What each takes of the wire."""
    return (packets["size_bytes"].astype(np.int64) - 4 + 24) * 8


def punctual(late_ns, first, last):
    """The most punctual of a range of packets: a stall says nothing about a rate."""
    return first + int(np.argmin(late_ns[first:last]))


def measured_ppm(packets, rate_bps):
    """The rate between two departures of the longest busy period, against the configured one."""
    left = departures(packets)
    due_ns, late_ns = left["ts_ns"].astype(np.int64), left["sojourn_ns"].astype(np.int64)
    bits = wire_bits(left)
    busy = np.abs(np.diff(due_ns) - bits[1:] * 1e9 / rate_bps) <= 1
    edges = np.flatnonzero(~np.concatenate([[False], busy, [False]]))
    longest = int(np.argmax(np.diff(edges)))
    first, last = int(edges[longest]), int(edges[longest + 1])
    tenth = max(1, (last - first) // 10)
    a = punctual(late_ns, first, first + tenth)
    b = punctual(late_ns, last - tenth, last)
    took_ns = (due_ns[b] + late_ns[b]) - (due_ns[a] + late_ns[a])
    sent = bits[a + 1 : b + 1].sum()
    return took_ns / 1e9, (sent / (took_ns / 1e9) / rate_bps - 1) * 1e6


def record(lab, root, rate, seconds, warmup):
    """A link that is busy for most of a run, each packet recorded; the switch's summary too."""
    options = [f"paths.forward.link.rate={rate}", "paths.forward.link.queue.fifo.limit=300ms"]
    options += [f"flows.0.count={RATES[rate]}", "flows.0.cc=newreno"]
    options += ["telemetry.level=3", f"warmup={warmup}"]
    overrides = [arg for option in options for arg in ("-o", option)]
    loop = Loop(lab, root, *overrides, "--duration", f"{seconds}s")
    switch, _ = loop.run()
    return loop, switch


@pytest.mark.parametrize("rate", RATES)
def test_no_departure_is_early(lab, root, rate):
    """However late the loop comes round: a packet is due when the wire has sent it."""
    loop, switch = record(lab, root, rate, 2, "0s")
    assert switch["emulation"]["early"] == 0
    packets = open_ring(loop.folder / "packets.ring").records
    left = departures(packets)
    due_ns, late_ns = left["ts_ns"].astype(np.int64), left["sojourn_ns"].astype(np.int64)
    assert switch["telemetry"]["streams"]["packets"]["lost"] == 0
    assert late_ns.min() >= 0
    rate_bps = switch["links"]["forward"]["rate_bps"]
    spaces_ns = np.diff(due_ns) - wire_bits(left)[1:] * 1e9 / rate_bps
    assert spaces_ns.min() >= -1
    # Back to back, to the nanosecond, as the rate has it.
    assert (spaces_ns <= 1).sum() > 10


@pytest.mark.skipif(not QUIET, reason="WEIR_QUIET=1: how fast a link is by the wall clock")
@pytest.mark.parametrize(("rate", "seconds"), [("1Mbit", 8), ("100Mbit", 5)])
def test_rate(lab, root, rate, seconds):
    loop, switch = record(lab, root, rate, seconds, "1s")
    forward = next(p for p in switch["emulation"]["ports"] if p["path"] == "forward")
    assert abs(forward["rate_error_ppm"]) <= PPM_MAX
    packets = open_ring(loop.folder / "packets.ring").records
    took_s, ppm = measured_ppm(packets, switch["links"]["forward"]["rate_bps"])
    assert took_s > 1
    assert abs(ppm) <= PPM_MAX


@pytest.mark.skipif(not QUIET, reason="WEIR_QUIET=1: how fast a link is by the wall clock")
def test_rate_of_10_gbit(lab, root):
    options = ("-o", "flows.0.cc=newreno", "-o", "warmup=1s", "--duration", "5s")
    switch, _ = Loop(lab, root, *options).run()
    forward = next(p for p in switch["emulation"]["ports"] if p["path"] == "forward")
    assert abs(forward["rate_error_ppm"]) <= PPM_MAX

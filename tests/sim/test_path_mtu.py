# SPDX-License-Identifier: BSD-3-Clause
"""Paths with hops of another MTU, and jumbo frames."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Simulate

PATH_MTU, RTT_NS, CLOSE = 14, 40_000_000, 2
NO_HOP = "paths.forward.2.mtu.mtu=1500B"
BLACK_HOLE = "paths.forward.2.mtu.black_hole=yes"
SMALL = "flows.0.mss=1360B"  # what fits into 1400 bytes
# Ethernet, IP, TCP with timestamps, FCS; preamble and gap.
HEADERS, WIRE = 14 + 20 + 32 + 4, 20


def ends_ns(run: Any) -> int:
    """When all of the first flow was acknowledged."""
    flows = run.records("flows")
    return int(flows["ts_ns"][flows["event"] == CLOSE][0])


def ledger(run: Any) -> dict[str, Any]:
    """The forward path's."""
    assert run.summary["ledger"]["balanced"]
    path: dict[str, Any] = run.summary["ledger"]["paths"]["forward"]
    return path


@pytest.mark.parametrize("cc", ["cubic", "copa", "bbr"])
@pytest.mark.parametrize("ip", ["ipv4", "ipv6"])
def test_a_transfer_loses_a_round_trip_and_no_window(simulate: Simulate, cc: str, ip: str) -> None:
    """Against a sender that knew of the MTU: its first ten segments are late by a round trip."""
    small = SMALL if ip == "ipv4" else "flows.0.mss=1340B"
    flow = [f"flows.0.cc={cc}", f"flows.0.ip={ip}"]
    reported = simulate("path-mtu", *flow)
    knew = simulate("path-mtu", *flow, small, NO_HOP)
    assert ledger(reported)["drops"]["too_big"]["pkts"] == 10
    assert ledger(reported)["duplicated"]["pkts"] == 10
    assert reported.groups[0]["retransmits"] == 10 + knew.groups[0]["retransmits"]
    assert reported.groups[0]["cwnd_reductions"] == knew.groups[0]["cwnd_reductions"]
    assert reported.groups[0]["timeouts"] == 0
    assert RTT_NS * 0.8 < ends_ns(reported) - ends_ns(knew) < RTT_NS * 1.5
    event = reported.records("events")
    event = event[event["event"] == PATH_MTU]
    payload = 1400 - (20 if ip == "ipv4" else 40) - 32
    assert (event["before"] - event["value"]).tolist() == [100 if ip == "ipv4" else 1428 - payload]
    assert event["value"].tolist() == [payload]


def test_nothing_passes_a_black_hole(simulate: Simulate) -> None:
    """Without probing a sender repeats what is too large until it gives up."""
    run = simulate("path-mtu", BLACK_HOLE)
    assert run.groups[0]["goodput_bps"] == 0
    assert run.groups[0]["timeouts"] >= 4
    assert set(ledger(run)["drops"]) == {"too_big"}
    assert ledger(run)["duplicated"]["pkts"] == 0


@pytest.mark.parametrize(("probing", "timeouts"), [("black_hole", 4), ("always", 0)])
def test_probing_finds_the_way_through_a_black_hole(
    simulate: Simulate, probing: str, timeouts: int
) -> None:
    """In segments of 1024 bytes, then in those that fit; a lost probe reduces no window."""
    run = simulate("path-mtu", BLACK_HOLE, f"flows.0.mtu_probing={probing}")
    assert run.summary["ledger"]["balanced"]
    assert run.groups[0]["timeouts"] == timeouts
    assert run.groups[0]["cwnd_reductions"] == 0
    assert run.summary["groups"][0]["goodput_bps"] * 10 / 8 == 10e6
    events = run.records("events")
    assert 1340 <= events["value"][events["event"] == PATH_MTU][-1] <= 1348


def test_a_path_may_change(simulate: Simulate) -> None:
    """What is in flight when the MTU falls is cut anew, with SACKed segments among it."""
    falls = "schedule=[{at: 1s, forward.mtu.mtu: 900B}]"
    run = simulate("path-mtu", NO_HOP, falls, "flows.0.source.size.bytes=20MB")
    assert run.summary["ledger"]["balanced"]
    assert ledger(run)["drops"]["too_big"]["pkts"] > 100
    assert run.groups[0]["cwnd_reductions"] == run.groups[0]["timeouts"] == 0
    assert ends_ns(run) < 4.2e9


def test_the_number_of_threads_changes_nothing(weir_sim: Path, tmp_path: Path) -> None:
    """A message crosses from one thread to the other twice."""
    config = ROOT / "configs" / "path-mtu.yaml"
    digests = set()
    for threads in ("1", "2"):
        argv = [weir_sim, config, "--threads", threads, "--out", tmp_path / threads, "--json"]
        run = subprocess.run(argv, capture_output=True, check=True, text=True)
        digests.add(json.loads(run.stdout)["digest"])
    assert len(digests) == 1


@pytest.mark.parametrize("mss", [1460, 8960])
def test_jumbo_frames_carry_more(simulate: Simulate, mss: int) -> None:
    """Of 9038 bytes on the wire 8948 are payload, of 1538 bytes 1448."""
    run = simulate("quickstart", f"flows.0.mss={mss}B", "duration=3s", "warmup=1s")
    payload = mss - 12
    part = payload / (payload + HEADERS + WIRE)
    assert run.groups[0]["goodput_bps"] == pytest.approx(part * 10e9, rel=0.001)

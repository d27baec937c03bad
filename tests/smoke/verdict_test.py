# SPDX-License-Identifier: BSD-3-Clause
"""A live run names what fell behind in it, and when."""

import json
import signal
import time

import pytest
from lab import LCORE, quiet, wait_for
from loopback_test import Loop

STOPPED_S = 0.5

IDLE = f"""
seed: 1
paths: {{forward: [{{link: {{rate: 1Gbit}}}}, {{delay: {{delay: 1ms}}}}]}}
live:
  switch:
    lcores: [{LCORE}]
    prefix: PREFIX
    ports: [{{name: in, dev: net_null0}}, {{name: out, dev: net_null1, path: forward}}]
"""


def now_s(lab, prefix):
    """The program's clock."""
    return lab.telemetry("/weir/info", prefix)["now_ns"] / 1e9


def stop_for_a_while(lab, child, clock):
    """Stops a process and lets it go on; when that was, on the clock of `clock`."""
    before = now_s(lab, clock)
    child.send(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    child.send(signal.SIGCONT)
    # A program that has just been continued may tell the last time that it had read.
    wait_for(lambda: now_s(lab, clock) >= before + STOPPED_S, "the clock after it")
    return before, now_s(lab, clock)


def found(summary, cause):
    """Its findings of a kind, in times of the program's clock."""
    start = summary["start_s"]
    return [
        {**each, "from_s": each["from_s"] + start, "to_s": each["to_s"] + start}
        for each in summary["verdicts"]
        if each["cause"] == cause
    ]


def check_stall(summary, begin_s, end_s):
    """One of the findings is our stall, unless the host made a longer one within a second of it."""
    stalls = [x for x in found(summary, "host") if x["from_s"] < end_s and x["to_s"] > begin_s]
    worst = max(stalls, key=lambda each: each["worst_s"])
    assert worst["worst_s"] >= STOPPED_S * 0.9
    at_s = worst["worst_at_s"] + summary["start_s"]
    if worst["worst_s"] <= end_s - begin_s:
        assert begin_s <= at_s <= end_s - worst["worst_s"]
    assert worst["from_s"] <= at_s + 1e-6
    assert worst["to_s"] >= at_s + worst["worst_s"] - 1e-6
    assert worst["sentence"].startswith(f"lcore {summary['lcore']['cpu']} had no CPU for")


def test_a_stopped_switch_says_when(lab):
    switch = lab.start("switch/weir-switch", IDLE.replace("PREFIX", lab.prefix), duration="60s")
    assert switch.ready(), switch.err
    # A busy machine may disturb all packets of a while, or of the run.
    wait_for(lambda: now_s(lab, lab.prefix) > 2, "two seconds")
    begin_s, end_s = stop_for_a_while(lab, switch, lab.prefix)
    wait_for(lambda: now_s(lab, lab.prefix) > end_s + 1, "a sample after it")
    lab.telemetry("/weir/stop")
    assert switch.wait() == 0
    summary = switch.summary()
    check_stall(summary, begin_s, end_s)
    # The packets that were due meanwhile left late, and are known to be disturbed.
    emulation = summary["emulation"]
    assert emulation["early"] == 0
    assert emulation["delay_error_max_ns"] >= STOPPED_S * 0.9e9
    undisturbed = emulation["undisturbed"]
    assert quiet(1, 0) <= undisturbed["packets"] < emulation["packets"]
    if undisturbed["packets"] > 0:
        assert undisturbed["delay_error_max_ns"] < STOPPED_S * 0.9e9
    assert summary["host"]["stalled_ns"] >= STOPPED_S * 0.9e9
    assert summary["verdict"] == summary["verdicts"][0]["sentence"]
    manifest = json.loads((switch.folder / "manifest-switch.json").read_text())
    assert manifest["verdict"] == summary["verdict"]


@pytest.mark.parametrize("ago_s", [0, 40 * 3600])
def test_the_clocks_error_is_of_the_run(lab, ago_s):
    """Not of the time since the moment that programs call 0 ns."""
    options = ("-o", f"live.epoch={time.time_ns() - ago_s * 1_000_000_000}") if ago_s else ()
    config = IDLE.replace("PREFIX", lab.prefix)
    switch = lab.start("switch/weir-switch", config, *options, duration="1s")
    assert switch.wait(60) == 0, switch.err
    summary = switch.summary()
    clock = summary["clock"]
    assert summary["start_s"] >= ago_s
    # Begun a little before it; of 40 hours nothing would be left.
    error_ns = clock["error_ppm"] * 1e3 * summary["wall_s"]
    assert error_ns == pytest.approx(clock["offset_ns"], rel=0.95)


def test_a_slow_consumer_is_named(lab, root):
    # Ten packets of each of 1000 flows, and the switch has the path's delay for its own.
    flows = ("-o", "flows.0.cc={fixed: {cwnd: 10}}", "-o", "flows.0.jitter=0s")
    link = ("-o", "paths.forward.link.rate=1Gbit", "-o", "paths.forward.delay.delay=300ms")
    loop = Loop(lab, root, "-o", "warmup=0s", *flows, *link, "--duration", "300s")
    switch, sender = loop.switch(), loop.sender()
    assert sender.ready(), sender.err
    prefix = f"{lab.prefix}switch"

    def inside_pkts():
        return lab.telemetry("/weir/paths", prefix)["forward"]["inside_pkts"]

    def stopped():
        """Stops taking while three times what the ring holds is on its way; so the ring fills."""
        wait_for(lambda: inside_pkts() > 3072, "traffic")
        sender.send(signal.SIGSTOP)
        if inside_pkts() > 3072:
            return True
        sender.send(signal.SIGCONT)
        return False

    wait_for(stopped, "traffic when it stops")
    begin_s = now_s(lab, prefix)
    # Until its packets have left the delay, and half a second of a full port.
    wait_for(lambda: now_s(lab, prefix) > begin_s + 0.3 + STOPPED_S, "a full port")
    sender.send(signal.SIGCONT)
    end_s = now_s(lab, prefix)
    assert (sender.stop(), switch.stop()) == (0, 0), (sender.err, switch.err)
    summary = switch.summary()
    ports = [each for each in found(summary, "port") if each["port"] == "right"]
    ours = [each for each in ports if each["from_s"] < end_s and each["to_s"] > begin_s]
    # A lcore that is interrupted all the time blames the host first (tests/unit/watch_test.c).
    if ours or summary["host"]["stalled_ns"] < STOPPED_S * 1e9 / 8:
        assert len(ours) == 1, summary["verdicts"]
        assert "the program at the other end of net_memif" in ours[0]["sentence"]
    worst = max(found(sender.summary(), "host"), key=lambda each: each["worst_s"])
    assert worst["worst_s"] >= STOPPED_S * 0.9

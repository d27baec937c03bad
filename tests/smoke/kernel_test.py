# SPDX-License-Identifier: BSD-3-Clause
"""A real kernel's TCP through weir-switch, over both kinds of veth port."""

import pytest
from lab import Lab, best_of, iperf_result, median, quiet, wait_for
from weir.ring import open_ring

TEL_DROP, DROP_AQM = 3, 2
# A segment of 1448 B is a frame of 1514 B and takes 1538 B of the wire.
FULL_BPS = 100e6 * 1448 / 1538
PATHS = """
  forward: [{link: {rate: 100Mbit, queue: %s}}, {delay: {delay: 10ms}}]
  reverse: [{link: {rate: 100Mbit}}, {delay: {delay: 10ms}}]"""
FIFO = "{fifo: {limit: 500kB}}"  # two bandwidth-delay products: 41.6 ms with the frames' overhead
FIFO_MS = 500e3 / 1518 * 1538 * 8 / 100e6 * 1e3
FRAME_MS = 1538 * 8 / 100e6 * 1e3
CODEL = "codel"
# Cubic and reno keep a queue, which hides that a sender's timers fire late. bbr paces itself at
# 99 % of what it measured: 92.5 to 93 Mbit/s where the CPU is free, less where it is not.
NEAR = {"cubic": 0.02, "reno": 0.02, "bbr": 0.10}


@pytest.fixture
def lab(tmp_path, build, weir_switch):
    with Lab(tmp_path, build) as lab:
        yield lab


def goodput_bps(lab, congestion, off, seconds=4):
    def once():
        result = iperf_result(lab.iperf(congestion, seconds))
        return result["end"]["sum_received"]["bits_per_second"]

    return best_of(3, lambda bps: bps > (1 - off) * FULL_BPS, once)


def check_ledger(switch):
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert summary["verdict"] == "interrupted"
    return summary


@pytest.mark.parametrize("dev", ["af_packet", "af_xdp"])
def test_carries_what_the_link_carries(lab, dev):
    switch = lab.switch(PATHS % FIFO, dev=dev)
    idle_ms = best_of(3, lambda ms: ms <= 20.3, lambda: median(lab.ping()))

    assert 20.0 <= idle_ms <= quiet(20.3, 60)
    for congestion, off in NEAR.items():
        bps = goodput_bps(lab, congestion, off)
        assert quiet(1 - off, 0.2) * FULL_BPS <= bps <= 1.02 * FULL_BPS, congestion
    assert switch.stop() == 0
    summary = check_ledger(switch)
    assert set(summary["ledger"]["drops"]) <= {"queue_full"}


def loaded_ms(lab, seconds=5):
    """Round-trip times while one cubic flow fills the link."""
    load = lab.iperf("cubic", seconds + 1)
    wait_for(lambda: lab.telemetry("/weir/links")["forward/link"]["queue_pkts"] > 5, "a queue")
    times = lab.ping(count=int(seconds / 0.05))
    iperf_result(load)
    return times


def test_fifo_fills_its_buffer(lab):
    switch = lab.switch(PATHS % FIFO)
    times = best_of(2, lambda ms: max(ms) <= 23 + FIFO_MS, lambda: loaded_ms(lab))

    assert switch.stop() == 0
    # The queue's own figures do not depend on when the ping's processes ran.
    link = check_ledger(switch)["links"]["forward"]
    # A ping fits where a full frame does not; before it are all of them and the one on the wire.
    assert 0.97 * FIFO_MS <= link["sojourn_max_ns"] / 1e6 <= FIFO_MS + FRAME_MS
    assert max(times) >= 20 + quiet(0.9, 0.5) * FIFO_MS
    assert median(times) >= 20 + quiet(0.4, 0.1) * FIFO_MS
    assert link["drops"] > 0


def test_codel_stays_near_its_target(lab):
    switch = lab.switch(PATHS % CODEL)
    times = best_of(2, lambda ms: median(ms) <= 30, lambda: loaded_ms(lab))

    assert switch.stop() == 0
    link = check_ledger(switch)["links"]["forward"]
    assert median(times) <= quiet(30, 50)
    # Half of the packets wait no longer than twice the target of 5 ms.
    assert link["sojourn_p50_ns"] <= quiet(10e6, 20e6)
    assert link["drops"] > 0


def test_codel_marks_what_can_be_marked(lab):
    for host in ("a", "b"):
        lab.sh(host, "sysctl", "-qw", "net.ipv4.tcp_ecn=1")
    switch = lab.switch(PATHS % "{codel: {ecn: yes}}", "-o", "telemetry.level=3")
    iperf_result(lab.iperf("cubic", 4))
    seen = int(lab.sh("b", "nstat", "-asz", "IpExtInCEPkts").split()[-2])

    assert switch.stop() == 0
    summary = check_ledger(switch)
    link = summary["links"]["forward"]
    assert link["marks"] > 0
    # Every mark arrived, and marks took the place of drops, but of what may not be marked:
    # retransmissions (RFC 3168, section 6.1.5), after a stall of the machine filled the queue.
    assert seen == link["marks"]
    packets = open_ring(switch.folder / "packets.ring").records
    dropped = packets[(packets["event"] == TEL_DROP) & (packets["reason"] == DROP_AQM)]
    assert summary["ledger"]["drops"].get("aqm", 0) == len(dropped) < link["marks"]
    assert not dropped["ecn"].any()

# SPDX-License-Identifier: BSD-3-Clause
"""A real kernel's TCP through weir-switch, over both kinds of veth port."""

import json
import signal
import sys

import pytest
from lab import ADDRESS, QUIET, best_of, iperf_result, median, quiet, wait_for
from weir.analysis.ring import open_ring

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


def goodput_bps(lab, congestion, off):
    """What iperf3 receives; on a quiet machine the first good result of three, as it should be."""

    def once():
        result = iperf_result(lab.iperf(congestion, quiet(4, 1), omit=quiet(1, 0)))
        return result["end"]["sum_received"]["bits_per_second"]

    return best_of(quiet(3, 1), lambda bps: bps > (1 - off) * FULL_BPS, once)


def check_ledger(switch):
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert summary["verdict"] == "interrupted"
    return summary


@pytest.mark.parametrize("dev", ["net_af_packet", "net_af_xdp", "kernel"])
def test_carries_what_the_link_carries(lab, dev):
    switch = lab.switch(PATHS % FIFO, dev=dev)
    idle_ms = best_of(quiet(3, 1), lambda ms: ms <= 20.3, lambda: median(lab.ping(quiet(40, 10))))
    assert idle_ms >= 20.0
    for congestion, off in NEAR.items():
        bps = goodput_bps(lab, congestion, off)
        if QUIET:
            assert (1 - off) * FULL_BPS <= bps <= 1.02 * FULL_BPS, congestion
    if QUIET:
        assert idle_ms <= 20.3
    assert switch.stop() == 0
    summary = check_ledger(switch)
    assert set(summary["ledger"]["drops"]) <= {"queue_full"}
    assert 0 < summary["links"]["forward"]["utilisation"] <= 1


SIZES = (1000, 1472, 1473, 1600, 1980, 2100, 4000, 20000)
RECEIVE = """
import socket
port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
port.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)  # SO_RCVBUFFORCE: for all, if it has no CPU
port.bind(("", 7777))
print("bound", flush=True)
while True:
    print(len(port.recv(65536)), flush=True)
"""
SEND = f"""
import socket, time
port = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(5):
    for size in {SIZES}:
        port.sendto(bytes(size), ("198.19.0.1", 7777))
        time.sleep(0.01)
"""


def test_fragments_pass_a_port(lab):
    """DPDK asked the kernel to reassemble datagrams: what was longer than the MTU was lost."""
    switch = lab.switch(PATHS % FIFO)
    receiver = lab.host("b", sys.executable, "-c", RECEIVE)
    wait_for(lambda: receiver.out, "a socket")
    lab.ping(count=3)  # ARP is done
    lab.sh("a", sys.executable, "-c", SEND)
    wait_for(lambda: receiver.out.count(str(SIZES[-1])) == 5, "the last datagrams")
    assert {size: receiver.out.count(str(size)) for size in SIZES} == dict.fromkeys(SIZES, 5)
    assert switch.stop() == 0
    ledger = check_ledger(switch)["ledger"]
    assert ledger["drops"] == {}
    assert ledger["received"] == ledger["transmitted"] + ledger["inside"]


def right_port(lab):
    return lab.telemetry("/weir/ports")["right"]


def test_what_an_interface_does_not_send_is_dropped_and_named(lab):
    """Of frames above the MTU the kernel sends none: the ledger had them as transmitted."""
    lab.sh("sw", "ip", "link", "set", "right", "mtu", "1400")
    switch = lab.switch(PATHS % FIFO)
    assert lab.ping(count=3, size=1372 - 20)  # 1400 bytes of IP but for 20
    lab.ping(count=5, size=1400, wait=1)
    wait_for(lambda: right_port(lab)["tx_dropped"] >= 5, "all five")
    assert switch.stop() == 0
    summary = check_ledger(switch)
    port = next(each for each in summary["ports"] if each["name"] == "right")
    assert summary["ledger"]["drops"] == {"mtu": 5}
    assert (port["tx_too_long"], port["tx_unsent"]) == (5, 0)
    assert {
        "cause": "beyond_mtu",
        "port": "right",
        "count": 5,
        "sentence": "port right: 5 frames were dropped: they are longer than the MTU of right,"
        " 1400 bytes of IP",
    } in summary["faults"]


def test_an_mtu_that_changes_during_the_run(lab):
    """The kernel says nothing of what became too long: it had counted as transmitted."""
    switch = lab.switch(PATHS % FIFO)
    assert lab.ping(count=3, size=1400)
    lab.sh("sw", "ip", "link", "set", "right", "mtu", "1400")

    def known():
        """The switch asks ten times a second, if it has a CPU."""
        lab.ping(count=1, size=1400, wait=1)
        return right_port(lab)["tx_dropped"]

    before = wait_for(known, "a drop")
    assert lab.ping(count=5, size=1400, wait=1) == []
    wait_for(lambda: right_port(lab)["tx_dropped"] >= before + 5, "all five")
    assert switch.stop() == 0
    drops = check_ledger(switch)["ledger"]["drops"]
    assert set(drops) == {"mtu"}
    assert drops["mtu"] >= before + 5


def test_hosts_that_offload_are_named(lab):
    """A connection never opened, and the sentence was that 0.00169 % of the link was offered."""
    lab.sh("a", "ethtool", "-K", "eth0", "tx", "on")
    switch = lab.switch(PATHS % FIFO)
    lab.ping(count=2)
    lab.sh("a", sys.executable, "-c", CONNECT)
    assert switch.stop() == 0
    verdict = switch.summary()["verdict"]
    assert "the host behind port left leaves checksums to its card" in verdict
    assert "ethtool -K IFACE tx off" in verdict


CONNECT = """
import contextlib, socket
port = socket.socket()
port.settimeout(2)
with contextlib.suppress(OSError):
    port.connect(("198.19.0.1", 7778))
"""


def forward_link(lab):
    return lab.telemetry("/weir/links")["forward/link"]


def loaded_ms(lab):
    """Round-trip times while a cubic flow fills the link: some seconds, and until it has lost."""
    lab.iperf("cubic", 100)
    wait_for(lambda: forward_link(lab)["queue_pkts"] > 5, "a queue")
    times = lab.ping(count=quiet(100, 20))
    wait_for(lambda: forward_link(lab)["drops"] > 0, "a drop")
    lab.end_traffic()
    wait_for(lambda: forward_link(lab)["queue_pkts"] == 0, "an empty queue")
    return times


def test_fifo_fills_its_buffer(lab):
    switch = lab.switch(PATHS % FIFO)
    times = loaded_ms(lab)

    assert switch.stop() == 0
    # The queue's own figures do not depend on when the ping's processes ran.
    link = check_ledger(switch)["links"]["forward"]
    # A ping fits where a full frame does not; before it are all of them and the one on the wire.
    assert 0.97 * FIFO_MS <= link["sojourn_max_ns"] / 1e6 <= FIFO_MS + FRAME_MS
    assert min(times) >= 20
    if QUIET:
        assert 20 + 0.9 * FIFO_MS <= max(times) <= 23 + FIFO_MS
        assert median(times) >= 20 + 0.4 * FIFO_MS


def test_codel_stays_near_its_target(lab):
    switch = lab.switch(PATHS % CODEL)
    times = loaded_ms(lab)

    assert switch.stop() == 0
    link = check_ledger(switch)["links"]["forward"]
    assert min(times) >= 20
    # What CoDel decides at which delay is compared with virtual time in replay_test.py. Half of the
    # packets wait no longer than twice its target of 5 ms where the flow is not interrupted itself.
    if QUIET:
        assert median(times) <= 30
        assert link["sojourn_p50_ns"] <= 10e6


def ce_pkts(lab):
    """Packets marked CE that b's kernel received."""
    return int(lab.sh("b", "nstat", "-asz", "IpExtInCEPkts").split()[-2])


def test_codel_marks_what_can_be_marked(lab):
    lab.enable_ecn()
    often = "{codel: {ecn: yes, target: 1ms, interval: 20ms}}"  # also where iperf3 runs seldom
    switch = lab.switch(PATHS % often, "-o", "telemetry.level=3")
    lab.iperf("cubic", 100)
    wait_for(lambda: forward_link(lab)["marks"] > 3, "marks")
    lab.end_traffic()
    wait_for(lambda: lab.telemetry("/weir/paths")["forward"]["inside_pkts"] == 0, "an empty path")
    lost, marks = lab.lost("sw", "right"), forward_link(lab)["marks"]
    seen = wait_for(lambda: ce_pkts(lab) >= marks - lost and ce_pkts(lab), "the kernel to count")

    assert switch.stop() == 0
    summary = check_ledger(switch)
    # Every mark arrived, but for what the kernel dropped before it counted.
    assert summary["links"]["forward"]["marks"] == marks >= seen
    # What is dropped could not be marked: retransmissions (RFC 3168, section 6.1.5).
    packets = open_ring(switch.folder / "packets.ring").records
    dropped = packets[(packets["event"] == TEL_DROP) & (packets["reason"] == DROP_AQM)]
    assert summary["ledger"]["drops"].get("aqm", 0) == len(dropped)
    assert not dropped["ecn"].any()


FLOOD = f"""
import socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])):
    out.sendto(bytes(100), ("{ADDRESS["b"]}", 9))
"""


def handed_to_wire(lab):
    """Frames that host a's end of the veth was given, sent or dropped, by its own counters."""
    seen = json.loads(lab.sh("a", "ip", "-j", "-s", "link", "show", "eth0"))[0]["stats64"]["tx"]
    return seen["packets"] + seen["dropped"]


@pytest.mark.parametrize(
    ("dev", "frames"), [("net_af_packet", 20000), ("net_af_xdp", 20000), ("kernel", 80000)]
)
def test_what_is_lost_before_a_port_is_counted(lab, dev, frames):
    """A switch that stands still overruns its socket: those frames were in no counter."""
    switch = lab.switch(PATHS % FIFO, dev=dev)
    before = handed_to_wire(lab)
    lab.ping(count=2)  # ARP is done
    switch.send(signal.SIGSTOP)
    try:
        lab.sh("a", sys.executable, "-c", FLOOD, frames)
    finally:
        switch.send(signal.SIGCONT)
    wait_for(lambda: lab.ping(count=1, wait=1), "an answer: all that had room was received")
    assert switch.stop() == 0
    summary = switch.summary()
    left = next(each for each in summary["ports"] if each["name"] == "left")
    assert left["driver_missed"] > 1000
    assert left["rx_pkts"] + left["driver_missed"] == handed_to_wire(lab) - before

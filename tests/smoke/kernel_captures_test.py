# SPDX-License-Identifier: BSD-3-Clause
"""weir pcap on captures of real programs, beside the kernel's own counters and tcptrace.

peer.py, http.server with curl and iperf3 send from c to d over links of all kinds (network.py),
while tcpdump captures at many points at once. The kernel says at each socket's end what it counted
(TCP_INFO, by `ss --events`), and for each host (nstat). Beside the data's sender a capture has to
agree with its socket, beside the receiver with the one there.

A captured packet may hold several segments (offloads). The kernel counts those on the wire, so the
packets' are counted by its MSS.
"""

from __future__ import annotations

import csv
import ipaddress
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from lab import PEER, QUIET, quiet, sh, wait_for
from network import HTTP_PORT, LINKS, NUMBER, SIX, Info, Network, Sockets, nstat
from tcpdump import Capture, rows
from weir.analysis import captures, folder

pytestmark = pytest.mark.slow

PORT = 5001
BASE_US = 20_000  # no packet leaves the switch before its delay
PATHS = """
  forward:
    - loss: {rate: 0%}
    - link: {rate: 100Mbit, queue: {fifo: {limit: 1MB}}}
    - delay: {delay: 10ms, late: 0%, late_by: 4ms}
  reverse:
    - loss: {rate: 0%}
    - delay: {delay: 10ms}"""
SETTINGS = {
    "loss": {"forward.loss.rate": "1%"},
    "late": {"forward.loss.rate": "0%", "forward.delay.late": "2%"},
    "acks": {"forward.delay.late": "0%", "reverse.loss.rate": "5%"},
    "clean": {"reverse.loss.rate": "0%"},
}
RETRANSMISSION, DUPLICATE, KEEP_ALIVE, DSACK = 1, 8, 32, 512  # kind of a segment
FIN = 1


@dataclass(frozen=True)
class Point:
    """Where and how a capture is made, and which links' connections it has."""

    space: str
    interface: str
    links: tuple[str, ...]
    options: tuple[str, ...] = ()
    snap: int = 0
    wire: bool = False  # no packet has more than one segment
    tcptrace: bool = True  # it reads such a capture

    def __str__(self):
        more = (*self.options, *(["-s", str(self.snap)] if self.snap else []))
        return " ".join((f"{self.space}:{self.interface}", *more))

    def beside(self, space):
        """On this side of the switch?"""
        return (self.space in "ca") == (space == "c")


WIRE = Point("c", "wire", ("wire",), wire=True)
FEW = ("wire", "plain")
COOKED = "LINUX_SLL2"  # link type of `-i any`; tcptrace knows only the first version


def common(links):
    return (
        WIRE,
        Point("c", "plain", ("plain",)),
        Point("a", "eth0", links, wire=True),
        Point("b", "eth0", links, wire=True),
        Point("d", "eth0", links),
    )


POINTS = {
    "loss": (
        *common(LINKS),
        Point("c", "wire", ("wire",), snap=96, wire=True),
        Point("c", "wire", ("wire",), ("-C", "1"), wire=True),
        Point("c", "vlan", ("vlan",)),
        Point("c", "qinq", ("qinq",), tcptrace=False),
        Point("c", "gre", ("gre",), tcptrace=False),
        Point("c", "ipip", ("ipip",), tcptrace=False),
        Point("c", "vxlan0", ("under",)),
        Point("c", "under", ("under",), tcptrace=False),
        Point("c", "srv6", ("srv6",), tcptrace=False),
        Point("c", "macvlan0", ("parent",)),
        Point("c", "parent", ("parent",)),
        Point("c", "bridge0", ("port",)),
        Point("c", "port", ("port",)),
        Point("c", "six", ("six",)),
        Point("c", "lo", ("lo",)),
        Point("c", "any", LINKS, ("-y", COOKED), tcptrace=False),
        Point("a", "any", LINKS, ("-y", COOKED), tcptrace=False),
        Point("b", "any", LINKS, ("-y", COOKED), tcptrace=False),
        Point("d", "any", LINKS, ("-y", COOKED), tcptrace=False),
        Point("d", "any", LINKS, ("-y", "LINUX_SLL")),
        Point("d", "eth0", LINKS, snap=96),
    ),
    "late": common(FEW),
    "acks": common(FEW),
    "clean": common(FEW),
}
# Where all that a host sends is captured, and nothing twice.
ALL_OF = {"c": ("a:eth0", "c:lo"), "d": ("d:eth0",)}
CAPTURES = [(kind, point) for kind, points in POINTS.items() for point in points]
each_capture = pytest.mark.parametrize(
    "which", CAPTURES, ids=lambda which: f"{which[0]}, {which[1]}"
)

Key = tuple[str, int, str, int]  # address and port of the sender, then of the receiver


@dataclass
class Found:
    """A capture as weir-pcap and tcptrace have it."""

    summary: dict
    flows: dict[Key, dict]
    segments: dict[Key, pl.DataFrame]  # of a flow, with payload
    acks: dict[Key, pl.DataFrame]  # what came back
    tcptrace: dict[Key, dict[str, str]]


@dataclass
class Made:
    found: dict[tuple[str, Point], Found]
    files: dict[tuple[str, Point], list[Path]]
    sockets: dict[Key, Info]
    hosts: dict[str, dict[str, int]]  # nstat
    dropped: tuple[int, int]  # by the switch, towards d: by its loss stage, and in all
    resent: Counter[Key]  # SYNs, SYN-ACKs and FINs without payload that were sent again


def ends(text):
    address, port = text.rsplit(":", 1)
    return address.strip("[]"), int(port)


def host_of(key):
    """Which host sends: d has the addresses 10.9.N.1 and fd09::1."""
    return "d" if key[0].startswith(("10.9.", "fd09:")) else "c"


def loses_acks(kind, key):
    """Does the switch lose some of what comes back to this sender?"""
    return kind == ("acks" if host_of(key) == "c" else "loss")


def read(weir_pcap, files, out):
    argv = [weir_pcap, "analyze", *files, "--out", out, "--level", "3"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    run = folder.load(out)
    keys = {ends(flow["src"]) + ends(flow["dst"]): flow for flow in captures.flows(run).to_dicts()}
    segments, acks = {}, {}
    for key, flow in keys.items():
        own = run.frame("segments").filter(pl.col("flow_id") == flow["flow_id"])
        segments[key] = own.filter((pl.col("forward") == 1) & (pl.col("payload_bytes") > 0))
        acks[key] = own.filter(pl.col("forward") == 0)
    return Found(run.summary_json, keys, segments, acks, tcptrace(files, out))


def tcptrace(files, out):
    """It reads one file, and takes packets as they come: they are put into the order of time."""
    whole, ordered = files[0], out / "ordered.pcap"
    if len(files) > 1:
        whole = out / "whole.pcap"
        sh("mergecap", "-a", "-w", whole, *files)
    sh("reordercap", whole, ordered)
    argv = ["tcptrace", "-n", "-l", "-r", "--csv", ordered]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=60)
    table = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    found = {}
    for row in csv.DictReader(table, skipinitialspace=True):
        a, b = (
            (str(ipaddress.ip_address(row[f"host_{end}"])), int(row[f"port_{end}"])) for end in "ab"
        )
        for way, key in (("_a2b", a + b), ("_b2a", b + a)):
            found[key] = {
                name.removesuffix(way): text for name, text in row.items() if name.endswith(way)
            }
    return found


def resent_handshakes(pcap):
    """Whose SYNs, SYN-ACKs and FINs without payload are not their first."""
    fields = ("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport")
    more = ("tcp.flags.syn", "tcp.len")
    wanted = "tcp.flags.syn == 1 || tcp.flags.fin == 1"
    seen = set()
    for src4, src6, src_port, dst4, dst6, dst_port, syn, size in rows(pcap, wanted, *fields, *more):
        key = (src4 or src6, int(src_port), dst4 or dst6, int(dst_port))
        if (key, syn) in seen and size == "0":
            yield key
        seen.add((key, syn))


def transfer(lab, kind):
    """Starts all programs that send, and waits for them; how many connections c and d had."""
    peers = [name for name in LINKS if name not in ("plain", "six")] if kind == "loss" else ["wire"]
    count = {name: 3 if name == "wire" else 1 for name in peers}
    sinks = [lab.sink(sum(count.values()), "d", PORT)]
    if kind == "loss":
        sinks.append(lab.sink(1, "c", PORT))
        lab.iperf_server("d")
    source = [sys.executable, PEER, "source"]
    sent = []
    for name in peers:
        size = 700_000 if kind == "loss" and name == "wire" else 300_000
        argv = (*source, f"10.9.{NUMBER[name]}.1", PORT, count[name], size, "cubic")
        sent.append(lab.host("c", *argv))
    if kind == "loss":
        sent.append(lab.host("c", *source, "127.0.0.1", PORT, 1, 3_000_000, "cubic"))
        sent.append(lab.host("c", "iperf3", "-6", "-c", SIX, "-n", "300K", "-C", "bbr"))
    own = ("--interface", f"10.9.{NUMBER['plain']}.1")
    url = f"http://10.8.{NUMBER['plain']}.2:{HTTP_PORT}/file"
    sent.append(lab.host("d", "curl", "-sS", "-o", "/dev/null", "--max-time", "60", *own, url))
    for program in (*sent, *sinks):
        assert program.wait() == 0, (program.argv, program.out, program.err)
    over = sum(count.values()) + 1
    return (over + 2 + 2, over + 2) if kind == "loss" else (over, over)


def unclosed(lab):
    lines = "".join(lab.sh(host, "ss", "-Htna") for host in "cd").splitlines()
    return [line for line in lines if not line.startswith(("LISTEN", "TIME-WAIT"))]


def capture(lab, kind, index, point):
    # A loopback's packets pass the filter twice, and then `wrote_all` cannot tell.
    what = "not host 127.0.0.1" if str(point).startswith("c:any") else ""
    name, more = f"{kind}-{index}", {"snap": point.snap, "many": True}
    return Capture(lab, point.space, point.interface, *point.options, what=what, name=name, **more)


def make(lab):
    """All captures, and what the sockets and the hosts counted."""
    switch = lab.switch(PATHS)
    sockets = [Sockets(lab, space) for space in "cd"]
    (lab.tmp / "file").write_bytes(bytes(range(200)) * 2000)
    served = ("-m", "http.server", str(HTTP_PORT), "-d", lab.tmp)
    server = lab.host("c", sys.executable, "-u", *served)
    wait_for(lambda: server.out, "http.server")
    files, ended = {}, [0, 0]
    for kind, points in POINTS.items():
        for name, value in SETTINGS[kind].items():
            assert "error" not in lab.telemetry(f"/weir/set,{name}={value}")
        taken = [capture(lab, kind, i, point) for i, point in enumerate(points)]
        ended = [n + more for n, more in zip(ended, transfer(lab, kind), strict=True)]
        wait_for(lambda: not unclosed(lab), lambda: f"the connections' ends: {unclosed(lab)}")
        for said, least in zip(sockets, ended, strict=True):
            wait_for(lambda s=said, n=least: len(s.found()) >= n, "what ss says of them")
        for point, one in zip(points, taken, strict=True):
            one.stop()
            files[kind, point] = sorted(lab.tmp.glob(f"{one.path.name}*"))
    hosts = {space: nstat(lab, space) for space in "cd"}
    assert switch.stop() == 0, switch.err
    drops = switch.summary()["ledger"]["paths"]["forward"]["drops"]
    found = {key: info for said in sockets for key, info in said.found().items()}
    dropped = (drops["loss"]["pkts"], sum(drop["pkts"] for drop in drops.values()))
    return files, found, hosts, dropped


@pytest.fixture(scope="module")
def made(weir_switch, weir_pcap, tmp_path_factory, build):
    tmp = tmp_path_factory.mktemp("captures")
    with Network(tmp, build) as lab:
        files, sockets, hosts, dropped = make(lab)
    found = {
        which: read(weir_pcap, paths, tmp / f"read{i}")
        for i, (which, paths) in enumerate(files.items())
    }
    resent = Counter()
    for (_, point), paths in files.items():
        for host, where in ALL_OF.items():
            if str(point) in where:
                resent.update(key for key in resent_handshakes(paths[0]) if host_of(key) == host)
    return Made(found, files, sockets, hosts, dropped, resent)


def wire_segments(made, found, key, kind=0):
    """Segments on the wire of a flow's packets, of all or of those of a kind."""
    mss = made.sockets[key].count("mss")
    said = found.segments[key]
    if kind:
        said = said.filter(pl.col("kind") & kind != 0)
    else:
        said = said.filter(pl.col("kind") & (DUPLICATE | KEEP_ALIVE) == 0)
    return int(((said["payload_bytes"].cast(pl.Int64) + mss - 1) // mss).sum())


def after_fin(found, key):
    """DSACKs behind the peer's FIN: if it is in TIME-WAIT by then, the socket counts none."""
    acks = found.acks[key]
    fins = acks.filter(pl.col("flags") & FIN != 0)
    if fins.is_empty():
        return 0
    return acks.filter((pl.col("kind") & DSACK != 0) & (pl.col("ts_ns") > fins["ts_ns"][0])).height


def peer_of(made, key):
    return made.sockets[key[2:] + key[:2]]


def test_there_are_25_captures_and_more():
    assert len(CAPTURES) >= 25


@each_capture
def test_its_flows_are_the_sockets_that_sent(made, which):
    point = which[1]
    found = made.found[which]
    special = {"six": "fd08::2", "lo": "127.0.0.1"}
    addresses = {special.get(name) or f"10.8.{NUMBER[name]}.2" for name in point.links}
    for key, flow in found.flows.items():
        assert key[0] in addresses or key[2] in addresses
        assert made.sockets[key].count("bytes_sent") > 0
        # iperf3 ends a test with data on their way.
        assert flow["end"] == "close" or (flow["end"] == "reset" and "fd08::2" in key), key
    passed = {key[0] for key in found.flows}
    assert addresses <= passed
    ledger = found.summary["ledger"]["capture"]
    assert ledger["malformed"] == ledger["truncated"] == ledger["fragments"] == 0
    assert ledger["link_type"] == ledger["encrypted"] == 0


@each_capture
def test_beside_the_sender_all_is_what_its_socket_counted(made, which):
    kind, point = which
    found = made.found[which]
    for key, flow in found.flows.items():
        if not point.beside(host_of(key)):
            continue
        socket = made.sockets[key]
        sent = wire_segments(made, found, key)
        resent = wire_segments(made, found, key, RETRANSMISSION)
        assert flow["sent_bytes"] == socket.count("bytes_sent"), key
        assert sent == socket.count("data_segs_out"), key
        assert not point.wire or flow["sent_segs"] == sent, key
        assert flow["retransmit_bytes"] == socket.count("bytes_retrans"), key
        # The socket's count has those of the handshakes too: it inherits its SYN-ACKs.
        assert resent + made.resent[key] == socket.count("retrans"), key
        # So has what was acknowledged: one who connects counts its SYN, and all their FINs.
        numbers = socket.count("bytes_acked") - flow["acked_bytes"] - bool(flow["client"])
        assert numbers == 1 if flow["end"] == "close" else numbers in (0, 1), key
        dsacks = flow["dsacks"]
        assert dsacks - after_fin(found, key) <= socket.count("dsack_dups") <= dsacks, key
        # Of what is sent again while its ACK comes in, the DSACK may be lost.
        assert flow["spurious"] == dsacks or (
            loses_acks(kind, key) and flow["spurious"] > dsacks
        ), key
        assert flow["lost_before"] == flow["uncaptured_bytes"] == 0, key
        # Between c and a packets may overtake each other: c sends on both CPUs.
        assert point.space == "a" or flow["out_of_order"] == 0, key
        assert not point.wire or flow["lost_segs"] == flow["retransmits"] - flow["spurious"], key


@each_capture
def test_beside_the_receiver_all_is_what_came_to_its_socket(made, which):
    """Segments that came without need are those beyond the first of each."""
    point = which[1]
    found = made.found[which]
    for key, flow in found.flows.items():
        if point.beside(host_of(key)):
            continue
        socket, arrived = made.sockets[key], peer_of(made, key).count("data_segs_in")
        sent, repeated = (wire_segments(made, found, key, k) for k in (0, RETRANSMISSION))
        first = socket.count("data_segs_out") - (socket.count("retrans") - made.resent[key])
        if flow["end"] == "reset":
            assert arrived <= sent, key  # what came to a socket that was closed is counted by none
            continue
        assert sent == arrived, key
        assert not point.wire or flow["sent_segs"] == sent, key
        assert flow["acked_bytes"] == socket.count("bytes_sent") - socket.count("bytes_retrans")
        assert flow["sent_bytes"] <= socket.count("bytes_sent"), key
        if point.wire:
            assert flow["retransmits"] - flow["lost_before"] == arrived - first, key
            assert flow["retransmits"] == repeated, key


@each_capture
def test_losses_are_what_did_not_come(made, which):
    """A segment was lost, or came; beside its sender each that was lost is sent again."""
    kind, point = which
    found = made.found[which]
    if not point.wire:
        return  # packets are lost by segments
    for key, flow in found.flows.items():
        if flow["end"] == "reset":
            continue
        lost = made.sockets[key].count("data_segs_out") - peer_of(made, key).count("data_segs_in")
        if not point.beside(host_of(key)):
            assert flow["lost_before"] <= lost, key  # some are lost again, or have none behind them
        elif loses_acks(kind, key):
            assert flow["lost_segs"] >= lost, key  # the DSACK may be lost that tells it was not
        else:
            assert flow["lost_segs"] == lost, key


def least_rtt_ns(flow):
    """The handshake's among them, as in the socket's."""
    handshake = flow["syn_rtt_ns"] if flow["client"] else flow["syn_ack_rtt_ns"]
    return min(ns for ns in (flow["rtt_min_ns"], handshake) if ns is not None)


@each_capture
def test_the_least_rtt_beside_the_sender(made, which):
    """Both stamps of a packet in the capture lie within the socket's: its RTT is the longer one.

    The socket's is a difference of two microseconds, each cut off. Where data were sent again it
    takes one from TSval too, in milliseconds, of a segment that weir-pcap leaves out (Karn); and
    where a SACK's block ends within a captured packet, one of that part.
    """
    point = which[1]
    found = made.found[which]
    for key, flow in found.flows.items():
        if not point.beside(host_of(key)):
            continue
        socket = made.sockets[key]
        least_ns = least_rtt_ns(flow)
        if "lo" not in point.links:
            assert least_ns >= BASE_US * 1000, key
        exact = point.wire or flow["sack_acks"] == 0
        if exact and socket.count("retrans") == 0:
            assert least_ns <= (socket.min_rtt_us + 1) * 1000, key
        elif "lo" not in point.links:
            assert socket.min_rtt_us >= BASE_US - 1000, key
        # Between the stamps the kernel may wait for a CPU, but not for each of many segments.
        if flow["rtt_samples"] >= 10:
            assert socket.min_rtt_us - least_ns / 1000 <= quiet(2_000, BASE_US), key


@each_capture
def test_tcptrace_counts_the_same(made, which):
    """Where it reads the packets: not behind two tags, in no tunnel, no `-i any` of today.

    It counts packets as they were captured, and SYN and FIN as bytes of data. At the receiver it
    takes all that fills a hole for reordered (kernel_pcap_test.py tells more).
    """
    point = which[1]
    found = made.found[which]
    assert bool(found.tcptrace) == point.tcptrace
    for key, flow in found.flows.items():
        if not point.tcptrace or flow["end"] == "reset":
            continue
        theirs = found.tcptrace[key]
        assert flow["sent_segs"] == int(theirs["actual_data_pkts"]), key
        assert flow["sent_bytes"] == int(theirs["actual_data_bytes"]), key
        assert flow["acked_bytes"] == int(theirs["unique_bytes_sent"]), key
        resent, late = int(theirs["rexmt_data_pkts"]), int(theirs["outoforder_pkts"])
        more = made.resent[key]
        ours = flow["retransmits"] + flow["out_of_order"]
        if point.beside(host_of(key)):
            assert (flow["retransmits"] + more, flow["out_of_order"]) == (resent, late), key
        elif point.wire:  # else a packet may begin with old data and end with new
            assert ours <= resent + late <= ours + more, key  # that may have been lost


def test_hosts_counted_the_same(made):
    """nstat, of all sockets of c."""
    resent = dsacks = uncounted = 0
    for (_, point), found in made.found.items():
        for key, flow in found.flows.items():
            if str(point) in ALL_OF["c"] and host_of(key) == "c":
                resent += flow["retransmits"]
                dsacks += flow["dsacks"]
                uncounted += after_fin(found, key)
    resent += sum(n for key, n in made.resent.items() if host_of(key) == "c")
    assert resent == made.hosts["c"]["TcpRetransSegs"]
    counts = made.hosts["c"]
    received = counts["TcpExtTCPDSACKRecv"] + counts["TcpExtTCPDSACKOfoRecv"]
    assert dsacks - uncounted <= received <= dsacks


def test_what_the_switch_lost_between_two_captures(made, weir_pcap, tmp_path):
    a, b = (Point(space, "eth0", LINKS, wire=True) for space in "ab")
    sides = [made.files["loss", point][0] for point in (a, b)]
    argv = [weir_pcap, "compare", *sides, "--out", tmp_path / "both"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    found = json.loads((tmp_path / "both/summary.json").read_text())["links"]["forward"]
    if QUIET:  # what went in less than the longest delay before a capture's end may yet have come
        assert found["not_judged"] == 0
    # Of all else that IPv6 sends by itself the switch may lose some too, or not yet be there.
    other = [made.found["loss", point].summary["ledger"]["capture"]["not_tcp"] for point in (a, b)]
    least, most = made.dropped  # its queue may have lost some, then or later
    lost = found["drops"] + found["not_judged"]
    assert least - max(other[0] - other[1], 0) <= lost
    assert found["drops"] <= most


def test_offloads_were_at_work(made):
    """Else the points with and without them are the same."""
    for point in (Point("c", "plain", ("plain",)), Point("d", "eth0", FEW)):
        found = made.found["clean", point]
        assert any(
            flow["sent_segs"] < wire_segments(made, found, key) for key, flow in found.flows.items()
        )
    rotated = Point("c", "wire", ("wire",), ("-C", "1"), wire=True)
    assert len(made.files["loss", rotated]) > 1
    cooked = made.found["loss", Point("a", "any", LINKS, ("-y", COOKED), tcptrace=False)]
    assert cooked.summary["capture"]["recut"] > 0
    assert cooked.summary["ledger"]["capture"]["copies"] > 0


def line_of(made, which):
    """A row of the table: sums over its flows."""
    kind, point = which
    found = made.found[which]
    sums = dict.fromkeys(("segs", "kernel", "resent", "kernel_resent"), 0)
    least, kernels = [], []
    for key, flow in found.flows.items():
        socket, here = made.sockets[key], point.beside(host_of(key))
        sums["segs"] += wire_segments(made, found, key)
        sums["kernel"] += (
            socket.count("data_segs_out") if here else peer_of(made, key).count("data_segs_in")
        )
        sums["resent"] += wire_segments(made, found, key, RETRANSMISSION)
        sums["kernel_resent"] += socket.count("retrans") - made.resent[key]
        if here and flow["rtt_samples"] >= 10:
            least.append(least_rtt_ns(flow) / 1000)
            kernels.append(socket.min_rtt_us)
    theirs = [found.tcptrace[key] for key in found.flows if key in found.tcptrace]
    packets = sum(flow["sent_segs"] for flow in found.flows.values())
    trace = [sum(int(t[n]) for t in theirs) for n in ("actual_data_pkts", "rexmt_data_pkts")]
    packets_theirs, resent_theirs = trace if theirs else ("-", "-")
    rtt = f"{min(least):9.0f} {min(kernels):7d}" if least else f"{'-':>9} {'-':>7}"
    return (
        f"{kind:6} {point!s:22} {len(found.flows):4d} {sums['segs']:6d} {sums['kernel']:6d} "
        f"{packets:6d} {packets_theirs:>6} {sums['resent']:5d} {sums['kernel_resent']:5d} "
        f"{resent_theirs:>5} {rtt}"
    )


HEAD = f"""
{"":33} {"segments":>13} {"packets":>13} {"sent again":>17} {"min RTT us":>17}
{"kind":6} {"point":22} flow   weir kernel   weir  trace  weir  kern trace      weir  kernel"""


def test_the_table(made, capsys):
    with capsys.disabled():
        print(HEAD)
        for which in CAPTURES:
            print(line_of(made, which))

# SPDX-License-Identifier: BSD-3-Clause
"""Any IP packet of a guest passes the paths: counts, and times to the nanosecond.

What is expected follows from sizes, rates and delays.
"""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from weir.analysis import folder, qlog
from weir.analysis.run_summary import decode
from weir.analysis.summary import groups as groups_table

from .test_guests import alone, digest, kernel, refused, run, write

pytestmark = pytest.mark.slow
__all__ = ["alone", "kernel", "run", "write"]  # fixtures

SENT, GOT, LOST = "sent_pkts", "received_pkts", "drops"


@pytest.fixture
def place():
    """A folder that guests see: /tmp is their own."""
    with tempfile.TemporaryDirectory(dir=Path.home()) as name:
        yield Path(name)


def program(place, text):
    """The command that runs a Python program in a guest."""
    (place / "program.py").write_text(text)
    return f"/usr/bin/python3 {place}/program.py {{peer}}"


def group(stack, peer="linux", more="count: 2"):
    return f"{{{more}, stack: {{linux: {{run: {json.dumps(stack)}}}}}, peer: {peer}}}"


def ip_flows(summary):
    """By direction, protocol and ports; what is not known is null."""
    found = {}
    for flow in summary["ip_flows"]:
        unknown = ("rtt_mean_ns", "retransmits", "cwnd_reductions")
        assert [flow[name] for name in unknown] == [None] * 3
        assert flow[SENT] == flow[GOT] + flow[LOST]
        found[flow["direction"], flow["protocol"], flow["src_port"], flow["dst_port"]] = flow
    assert len(found) == len(summary["ip_flows"])
    return found


def test_ping_in_whole_and_in_fragments(write, run, tmp_path):
    """Five echoes, and two of three fragments each; ping's own times are the paths'."""
    command = "ping -c 5 -i 0.2 {peer}; ping -c 2 -i 0.2 -s 3000 {peer}"
    config = write(group(command), rate="10Mbit", queue="{fifo: {limit: 100pkt}}")
    summary = run(config)
    flows = ip_flows(summary)
    assert set(flows) == {(way, "icmp", None, None) for way in ("forward", "reverse")}
    for way, least_ns in (("forward", 10e6 + (98 + 24) * 800), ("reverse", 10e6)):
        flow = flows[way, "icmp", None, None]
        assert (flow[SENT], flow[GOT], flow[LOST]) == (11, 11, 0)
        assert flow["sent_bytes"] == flow["received_bytes"] == 5 * 64 + 2 * 3008
        assert flow["delay_min_ns"] == least_ns
    assert flows["reverse", "icmp", None, None]["delay_max_ns"] == 10e6
    said = (tmp_path / "run/guest-0.out").read_text()
    assert "5 packets transmitted, 5 received, 0% packet loss" in said
    # 20 ms, the frame's 97.6 us, and what ping reads its clock for; it rounds to microseconds.
    assert re.search(r"rtt min/avg/max/mdev = 20\.09[78]/20\.09[78]/20\.09[78]/0\.00\d ms", said)
    rows = {row[0]: row for row in groups_table(decode(summary, "summary")).rows}
    assert rows["linux cubic, icmp"][2] == rows["linux cubic, icmp back"][2] == "1"
    recorded = folder.load(tmp_path / "run").frame("ip_flows")
    assert recorded.group_by("forward").sum().sort("forward")["sent_pkts"].to_list() == [11, 11]


LISTENER = (
    "{linux: {run: \"/usr/bin/python3 -c 'import socket; s = socket.socket(2, 2); "
    "s.bind((str(), 9)); [s.recv(9) for _ in iter(int, 1)]'\"}}"
)
UDP = """
import socket, sys, time
ends = []
for codepoint in (0, 2):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("", 10000 + len(ends)))
    end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, codepoint)
    end.connect((sys.argv[1], 9))
    ends.append(end)
for i in range(600):
    ends[0].send(bytes(972))
    if i % 10 == 0:
        ends[1].send(bytes(972))
    time.sleep(0.0005)
"""


def test_flow_queues_tell_datagrams_apart(write, run, place, tmp_path):
    """16 Mbit/s and 1.6 in a link of 10: the second loses nothing, and is marked if it is ECN's."""
    config = write(
        group(program(place, UDP), peer=LISTENER),
        rate="10Mbit",
        queue="{fq_codel: {limit: 100pkt}}",
        duration="2s",
    )
    summary = run(config, "run", "-o", "telemetry.level=3")
    flows = ip_flows(summary)
    fast = flows["forward", "udp", 10000, 9]
    slow = flows["forward", "udp", 10001, 9]
    assert (fast[SENT], slow[SENT]) == (600, 60)
    assert fast[LOST] > 100
    assert slow[LOST] == 0
    assert summary["links"]["forward"]["drops"] == fast[LOST]
    assert slow["delay_max_ns"] < 10e6 + 5 * 800e3 < fast["delay_mean_ns"]
    # The queue's time of each packet stands under the same flow_id.
    packets = folder.load(tmp_path / "run").frame("packets")
    events = folder.load(tmp_path / "run").values("packets", "event")
    left = packets.filter(
        (packets["flow_id"] == fast["flow_id"]) & (packets["event"] == events["dequeue"])
    )
    assert len(left) == fast[GOT]
    frame_ns = (972 + 8 + 20 + 14 + 4 + 20) * 800
    queue_ns = fast["delay_mean_ns"] - 10e6 - frame_ns
    assert left["sojourn_ns"].mean() == pytest.approx(queue_ns, abs=2)


def test_marks_of_datagrams_are_counted(write, run, place):
    sender = UDP.replace("i % 10", "i % 1")
    config = write(
        group(program(place, sender), peer=LISTENER),
        rate="10Mbit",
        queue="{step: {limit: 1000pkt, threshold: 5ms}}",
        duration="2s",
    )
    summary = run(config)
    flows = ip_flows(summary)
    assert flows["forward", "udp", 10000, 9]["ce_pkts"] == 0
    assert flows["forward", "udp", 10001, 9]["ce_pkts"] > 500
    assert summary["links"]["forward"]["marks"] == flows["forward", "udp", 10001, 9]["ce_pkts"]


MARKED = """
import socket, sys, time
ends = []
for dscp in (0, 8, 34, 46):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind(("", 10000 + dscp))
    end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
    end.connect((sys.argv[1], 9))
    ends.append(end)
while True:
    for end in ends:
        end.send(bytes(972))
    time.sleep(0.0005)
"""


def test_a_dscp_that_a_program_sets_has_its_tin(write, run, place, tmp_path, replay):
    """Datagrams of best effort, CS1, AF41 and EF, each more than the link carries, in diffserv4.

    A sixteenth is CS1's, a half AF41's, a quarter EF's, the rest best effort's. Recorded arrivals
    have the DSCPs, so that a replay decides the same.
    """
    config = write(
        group(program(place, MARKED), peer=LISTENER, more="count: 64"),
        rate="10Mbit",
        queue="{cake: {diffserv: diffserv4, target: 1s, interval: 100s}}",
        duration="3s",
    )
    summary = run(config, "run", "-o", "telemetry={level: 3, arrivals: yes}")
    got = {flow["src_port"] - 10000: flow[GOT] for flow in summary["ip_flows"]}
    shares = {dscp: pkts / sum(got.values()) for dscp, pkts in got.items()}
    assert shares == pytest.approx({0: 3 / 16, 8: 1 / 16, 34: 1 / 2, 46: 1 / 4}, abs=0.005)
    arrivals = folder.load(tmp_path / "run").frame("arrivals")
    events = folder.load(tmp_path / "run").values("arrivals", "event")
    heads = arrivals.filter((arrivals["event"] == events["headers"]) & (arrivals["path"] == 0))
    assert set(heads["param"]) == {0, 8, 34, 46}
    assert replay(tmp_path / "run").out.startswith("identical:")


def sent_and_received(capture):
    """Time in ns and length of each frame, at the sender."""
    argv = ["tshark", "-r", capture, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = [line.split("\t") for line in shown.splitlines()]
    return [(int(time.replace(".", "")), int(length)) for time, length in rows]


def test_packets_of_each_kind_at_exact_times(write, run, place, tmp_path):
    """Each answer comes a round trip after what it answers, to the nanosecond, in each run.

    Serialised at 10 Mbit/s there, and at both cards at 10 Gbit/s, rounded up.
    """
    shutil.copy(Path(__file__).with_name("guest_probe.py"), place)
    config = write(
        group(f"/usr/bin/python3 {place}/guest_probe.py {{peer}}"),
        rate="10Mbit",
        queue="{fifo: {limit: 100pkt}}",
        duration="1s",
    )
    digests = []
    for number in range(10):
        name = f"run{number}"
        summary = run(config, name, "--pcap", str(tmp_path / f"{name}.pcapng"))
        digests.append(digest(tmp_path / name))
    assert digests == digests[:1] * 10
    times = sent_and_received(tmp_path / "run0.pcapng")

    def wire_ns(length, ns_per_byte):
        return -int(-(length + 24) * ns_per_byte // 1)

    # Request and answer of: UDP, ICMP echo, SCTP, TCP's handshake.
    answered = [(0, 1), (2, 3), (4, 5), (6, 7)]
    lengths = [(142, 170), (142, 142), (134, 162), (74, 74)]
    for (request, answer), (length, back) in zip(answered, lengths, strict=True):
        assert (times[request][1], times[answer][1]) == (length, back)
        trip_ns = wire_ns(length, 800) + 20_000_000 + wire_ns(back, 0.8)
        assert times[answer][0] - times[request][0] == trip_ns
    # IPv6, which nobody answers; and three fragments, behind whose last there is one answer.
    assert [length for _, length in times[9:14]] == [154, 1514, 1514, 82, 590]
    trip_ns = 2 * wire_ns(1514, 800) + wire_ns(82, 800) + 20_000_000 + wire_ns(590, 0.8)
    assert times[13][0] - times[10][0] == trip_ns
    # Each left when it was to, but for the time in which the card sends it and clocks are read.
    starts = [times[index][0] for index in (0, 2, 4, 6, 9, 10)]
    assert all(0 <= at - 100_000_000 * (i + 1) < 2_000 for i, at in enumerate(starts))
    kinds = {(way, protocol) for way, protocol, _, _ in ip_flows(summary)}
    assert kinds == {
        ("forward", "udp"),
        ("forward", "icmp"),
        ("forward", "sctp"),
        ("reverse", "icmp"),
    }
    assert summary["guests"]["other_frames"] == 0


@pytest.mark.parametrize(("stack", "peer", "more", "said"), [
    ("ping -c 1 {peer}", "weir", "count: 1", "sends icmp, and Weir's own stack has TCP alone"),
    ("ping -c 1 {peer}", "{linux: {hosts: 2}}", "count: 2", "sends icmp to one of 2 guests"),
])  # fmt: skip
def test_packets_without_a_receiver_are_said(weir_sim, write, tmp_path, stack, peer, more, said):
    refused(weir_sim, write(group(stack, peer, more)), tmp_path, said)


def test_what_a_program_writes_is_kept(weir_sim, write, run, tmp_path):
    """The files of one that ends and of one that runs on; a folder without any is not there."""
    stack = "mkdir $WEIR_OUT/a; echo one > $WEIR_OUT/a/b; ping -c 1 {peer}"
    peer = '{linux: {run: "echo two > $WEIR_OUT/c; exec sleep 99"}}'
    config = write(group(stack, peer), duration="1s")
    summary = run(config)
    made = tmp_path / "run"
    assert (made / "guest-0/a/b").read_text() == "one\n"
    assert (made / "guest-1/c").read_text() == "two\n"
    assert [p["files"] for p in summary["guests"]["programs"]] == ["guest-0", "guest-1"]
    config = write(group("ping -c 1 {peer}"), duration="1s")
    summary = run(config, "run", "--force")
    assert summary["guests"]["programs"][0]["files"] is None
    assert not (made / "guest-0").exists()


NGTCP2 = (
    "head -c 300000 /dev/zero > /tmp/data; gtlsclient -q --no-pmtud --exit-on-all-streams-close "
    "--qlog-dir=$WEIR_OUT -d /tmp/data -m PUT {peer} 4433 https://weir/"
)
NGTCP2_SERVER = (
    "cd /tmp; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key "
    "-out cert -subj /CN=weir 2>&-; exec gtlsserver -q --qlog-dir=$WEIR_OUT '*' 4433 key cert"
)


@pytest.mark.skipif(shutil.which("gtlsclient") is None, reason="ngtcp2-client is not installed")
def test_quic_and_its_own_log(write, run, tmp_path):
    """ngtcp2 through loss, twice: its losses are the drops, its least RTT is the paths'.

    Bits that it draws from std::random_device differ in its frames; their sizes and times do not.
    """
    peer = f"{{linux: {{run: {json.dumps(NGTCP2_SERVER)}}}}}"
    config = write(
        group(NGTCP2, peer, "name: quic, count: 1"), before="{loss: {rate: 2%}}, ", duration="3s"
    )
    logs = []
    for name in ("a", "b"):
        summary = run(config, name)
        typed = decode(summary, "summary")
        client, server = qlog.of_run(tmp_path / name, typed)
        log = [(tmp_path / name / of.name).read_bytes() for of in (client, server)]
        logs.append((summary["digest"], *log))
    assert logs[0] == logs[1]
    assert (client.by, server.by) == ("client", "server")
    assert client.path.drops > 3
    lost = client.lost_indeed + client.unacked
    assert lost == client.path.drops
    assert client.min_rtt_ns == 20e6 == client.path.least_rtt_ns // 1e6 * 1e6
    assert client.path.least_rtt_ns < client.smoothed_rtt_ns < 2 * 20e6
    (sent,) = (f for f in summary["ip_flows"] if f["direction"] == "forward")
    assert sent["received_bytes"] > 300_000
    assert [row[0] for row in groups_table(typed).rows] == ["quic", "quic, udp", "quic, udp back"]

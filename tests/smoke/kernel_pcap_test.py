# SPDX-License-Identifier: BSD-3-Clause
"""weir pcap on the kernel's TCP through the live switch, beside tshark and tcptrace.

All three read the same file, so what they say of it can be compared exactly. Where they differ, a
model of a few lines says what each of them means; and the other end's capture, who is right.
"""

import csv
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import polars as pl
import pytest
from lab import ADDRESS, PEER, Lab, sh
from tcpdump import Capture
from weir.analysis import captures, folder

PORT, FLOWS = 5001, 3
PATHS = """
  forward:
    - loss: {rate: %s}
    - link: {rate: 50Mbit, queue: {fifo: {limit: 1MB}}}
    - delay: {delay: 10ms, late: %s, late_by: 4ms}
  reverse: [{delay: {delay: 10ms}}]"""
# Nothing gets through for two seconds, several retransmission timeouts. Times count from the first
# SYN, and the link is busy with the transfers for a second at least: it is in the middle of them.
OUTAGE = "schedule: [{at: 400ms, forward.loss.rate: 100%}, {at: 2400ms, forward.loss.rate: 0%}]"
# Loss, late packets, bytes of each connection.
KINDS = {
    "loss": ("1%", "0%", 600_000),
    "reordering": ("0%", "2%", 600_000),
    "outage": ("0%", "0%", 2_000_000),
}
RETRANSMISSION, OUT_OF_ORDER = 1, 4  # kind of a segment
FIELDS = {
    "ns": "frame.time_epoch", "src": "tcp.srcport", "dst": "tcp.dstport", "id": "ip.id",
    "seq": "tcp.seq", "end": "tcp.nxtseq", "ack": "tcp.ack", "bytes": "tcp.len",
    "rtt": "tcp.analysis.ack_rtt", "retransmission": "tcp.analysis.retransmission",
    "out_of_order": "tcp.analysis.out_of_order",
    "left": "tcp.options.sack_le", "right": "tcp.options.sack_re",
}  # fmt: skip


@dataclass
class Read:
    """A capture as each of the three has it: per packet, and per connection by its port."""

    packets: list[dict[str, str]]  # tshark
    segments: list[dict[str, int]]  # weir-pcap, in the same order
    flows: dict[int, dict[str, int]]
    tcptrace: dict[int, dict[str, str]]

    def data(self, port):
        """Packets with payload of a connection's client, and what weir-pcap says of them."""
        both = zip(self.packets, self.segments, strict=True)
        return [(p, s) for p, s in both if int(p["src"]) == port and p["bytes"] != "0"]


def read(weir_pcap, pcap, out):
    argv = [weir_pcap, "analyze", pcap, "--out", out, "--level", "3"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    run = folder.load(out)
    flows = captures.flows(run).filter(pl.col("dst_port") == PORT).to_dicts()
    wanted = [arg for name in FIELDS.values() for arg in ("-e", name)]
    lines = sh("tshark", "-r", pcap, "-Y", "tcp", "-T", "fields", *wanted, timeout=60).splitlines()
    rows = [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in lines]
    lines = sh("tcptrace", "-n", "-l", "-r", "--csv", pcap).splitlines()
    table = [line for line in lines if line and not line.startswith("#")]
    theirs = csv.DictReader(table, skipinitialspace=True)
    return Read(
        rows,
        run.frame("segments").to_dicts(),
        {flow["src_port"]: flow for flow in flows},
        {int(row["port_a"]): row for row in theirs},
    )


@pytest.fixture(scope="module")
def runs(weir_switch, weir_pcap, tmp_path_factory, build):
    """runs[kind]: what the sender's host and the receiver's captured."""
    found = {}
    with Lab(tmp_path_factory.mktemp("kernel"), build) as lab:
        for host in "ab":
            lab.sh(host, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
        for kind, (loss, late, size) in KINDS.items():
            top = OUTAGE if kind == "outage" else ""
            switch = lab.switch(PATHS % (loss, late), top=top, live="    start: traffic")
            sides = [Capture(lab, host, "eth0") for host in "ab"]
            sink = lab.sink(FLOWS, port=PORT)
            argv = ("source", ADDRESS["b"], PORT, FLOWS, size, "cubic")
            source = lab.host("a", sys.executable, PEER, *argv)
            assert (source.wait(), sink.wait()) == (0, 0)
            lab.wait_closed()
            assert switch.stop() == 0
            for side in sides:
                side.close()
            found[kind] = [
                read(weir_pcap, side.path, lab.tmp / f"{kind}-{host}")
                for host, side in zip("ab", sides, strict=True)
            ]
            lab.end_children()
    return found


def second_transmissions(read_at_sender):
    """Connection and IP identification of the segments that begin below what was sent before."""
    found, top = set(), defaultdict(int)
    for packet in read_at_sender.packets:
        if int(packet["dst"]) != PORT or packet["bytes"] == "0":
            continue
        port = packet["src"]
        if int(packet["seq"]) < top[port]:
            found.add((port, packet["id"]))
        top[port] = max(top[port], int(packet["end"]))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_flows_bytes_and_retransmissions_of_the_sender(runs, kind):
    """There nothing is reordered: all three count the same."""
    here, size = runs[kind][0], KINDS[kind][2]
    repeated = Counter(int(port) for port, _ in second_transmissions(here))
    assert here.flows.keys() == here.tcptrace.keys()
    assert (
        len(here.flows) == len({p["src"] for p in here.packets if p["dst"] == str(PORT)}) == FLOWS
    )
    for port, flow in here.flows.items():
        theirs, data = here.tcptrace[port], here.data(port)
        assert flow["acked_bytes"] == int(theirs["unique_bytes_sent_a2b"]) == size
        assert flow["sent_bytes"] == int(theirs["actual_data_bytes_a2b"])
        assert flow["sent_bytes"] == sum(int(packet["bytes"]) for packet, _ in data)
        assert flow["sent_segs"] == int(theirs["actual_data_pkts_a2b"]) == len(data)
        assert flow["retransmits"] == int(theirs["rexmt_data_pkts_a2b"]) == repeated[port]
        assert flow["out_of_order"] == int(theirs["outoforder_pkts_a2b"]) == 0
        # tshark takes a retransmission that soon follows newer data for one that came late.
        seen = [p["retransmission"] + p["out_of_order"] != "" for p, _ in data]
        assert [segment["kind"] & RETRANSMISSION != 0 for _, segment in data] == seen
    assert kind == "reordering" or repeated.total() > 0
    if kind == "outage":
        assert sum(flow["timeouts"] for flow in here.flows.values()) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_retransmissions_told_from_reordering_at_the_receiver(runs, kind):
    """All three find the same packets out of sequence. Which of them were sent again, the sender's
    capture shows: weir-pcap says so of each (by TSval, then by IP identification). tshark goes by
    the time that has passed, and tcptrace takes all that lies in a hole for reordered.
    """
    there, here = runs[kind]
    repeated = second_transmissions(there)
    for port, flow in here.flows.items():
        theirs, data = here.tcptrace[port], here.data(port)
        mine = flow["retransmits"] + flow["out_of_order"]
        tshark = [p["retransmission"] + p["out_of_order"] != "" for p, _ in data]
        tcptrace = int(theirs["rexmt_data_pkts_a2b"]) + int(theirs["outoforder_pkts_a2b"])
        assert mine == sum(tshark) == tcptrace
        for (packet, segment), unusual in zip(data, tshark, strict=True):
            said = segment["kind"] & (RETRANSMISSION | OUT_OF_ORDER)
            truth = RETRANSMISSION if (packet["src"], packet["id"]) in repeated else OUT_OF_ORDER
            assert said == (truth if unusual else 0), packet


@dataclass
class Sent:
    """A segment: its first number, the one behind it, when it was sent, and what was said of it."""

    seq: int
    end: int
    at_ns: list[int] = field(default_factory=list)
    delivered: bool = False  # acknowledged, cumulatively or by SACK
    acked: bool = False  # cumulatively


def edges(packet):
    """SACK blocks."""
    pairs = zip(packet["left"].split(","), packet["right"].split(","), strict=True)
    return [(int(left), int(right)) for left, right in pairs if left]


def on_ack(sent, packet, now_ns):
    """The RTT that weir-pcap and tshark find in an ACK, in ns, 0: none; updates what was sent."""
    ack, blocks = int(packet["ack"]), edges(packet)
    news = [
        s
        for s in sent
        if not s.delivered
        and (s.end <= ack or any(left <= s.seq and s.end <= right for left, right in blocks))
    ]
    last = next((s for s in sent if s.end == ack and not s.acked), None)
    # Karn: that sent last among those newly acknowledged, unless it was sent twice.
    newest = max(news, key=lambda s: (s.at_ns[-1], s.seq), default=None)
    mine = 0
    if newest is not None and len(newest.at_ns) == 1 and newest.seq > 0:  # the SYN is apart
        mine = now_ns - newest.at_ns[0]
    for s in news:
        s.delivered = True
    for s in sent:
        s.acked |= s.end <= ack
    return mine, now_ns - last.at_ns[0] if last is not None else 0


@pytest.mark.parametrize("kind", KINDS)
def test_rtt_samples_of_each_ack(runs, kind):
    """Where an ACK newly acknowledges one segment that was sent once, the samples are the same.

    weir-pcap takes its samples from SACKs too, and none of what was sent twice. tshark goes by the
    segment that ends where the ACK does, from its first transmission: of one that was sent twice,
    or that SACK had acknowledged before, that is too long. tcptrace takes none of these, and
    counts them apart.
    """
    here = runs[kind][0]
    sent, samples = defaultdict(list), Counter()
    for packet, segment in zip(here.packets, here.segments, strict=True):
        now_ns = int(packet["ns"].replace(".", ""))
        if packet["dst"] == str(PORT):
            port, seq, end = packet["src"], int(packet["seq"]), int(packet["end"])
            same = [s for s in sent[port] if s.seq < end and seq < s.end]
            if not same and end > seq:
                sent[port].append(Sent(seq, end, [now_ns]))
            for s in same:
                s.at_ns.append(now_ns)
            continue
        mine, tsharks = on_ack(sent[packet["dst"]], packet, now_ns)
        samples[int(packet["dst"])] += tsharks > 0
        assert segment["rtt_ns"] == mine, packet
        theirs = round(float(packet["rtt"]) * 1e9) if packet["rtt"] else 0
        assert abs(theirs - tsharks) <= 1, packet
    for port, theirs in here.tcptrace.items():
        apart = int(theirs["post-loss_acks_a2b"]) + int(theirs["ambiguous_acks_a2b"])
        assert int(theirs["RTT_samples_a2b"]) + apart == samples[port]
        assert here.flows[port]["rtt_samples"] > 0

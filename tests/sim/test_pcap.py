# SPDX-License-Identifier: BSD-3-Clause
"""Captures that weir-sim writes, as tshark reads them."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from weir.analysis import captures, folder, segments
from weir.analysis.ring import open_ring
from weir.base import programs
from weir.report import data, sections

from .conftest import Program, tshark

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

LOSSY = """
seed: 3
duration: 10s
paths:
  forward:
    - loss: {rate: 1%}
    - link: {rate: 20Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 4, cc: newreno, source: {size: {bytes: 2MB}}}
  - {count: 2, cc: copa, stop: 8s}
telemetry: {level: 1}
"""


MARKING = """
seed: 4
duration: 3s
paths:
  forward:
    - loss: {rate: 1%}
    - link: {rate: 20Mbit, queue: {codel: {ecn: yes}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 3, cc: newreno, ecn: ect0}
  - {count: 3, cc: newreno, ecn: off}
telemetry: {level: 3, capture: paths}
"""


@pytest.mark.slow
def test_tshark_agrees(sim: Program) -> None:
    """No malformed packet, as many retransmissions as we count, all the payload, both ends."""
    summary, _, pcap = simulated(sim, LOSSY, file="x.pcap")
    repeated = "tcp.analysis.retransmission || tcp.analysis.out_of_order"

    assert tshark(pcap, "_ws.malformed || ip.checksum.status == 0", "frame.number") == []
    found = len(tshark(pcap, f"tcp.dstport == 5001 && ({repeated})", "frame.number"))
    assert found == sum(g["retransmits"] for g in summary["groups"])
    assert found > 100
    assert len(tshark(pcap, "tcp.flags.syn == 1 && tcp.flags.ack == 0", "frame.number")) == 6
    streams = {row[0] for row in tshark(pcap, "tcp.flags.fin == 1", "tcp.stream")}
    assert len(streams) == 6
    # All of it was acknowledged: the receiver's last ACK covers the data, SYN and FIN.
    acks = [
        int(row[0])
        for row in tshark(
            pcap, "tcp.srcport == 5001 && tcp.dstport == 10000 && tcp.flags.fin == 1", "tcp.ack"
        )
    ]
    assert max(acks) == 2_000_000 + 2


def analysed(pcap: Path) -> folder.Run:
    """What weir-pcap makes of a capture."""
    program, out = programs.find_program("pcap"), pcap.with_name("seen")
    subprocess.run([program, "analyze", pcap, "--out", out, "--level", "3"], check=True, timeout=60)
    return folder.load(out)


@pytest.mark.parametrize("reorder", ["", "    - delay: {delay: 1ms, late: 2%, late_by: 3ms}\n"])
def test_a_capture_tells_what_the_sender_counted(sim: Program, reorder: str) -> None:
    """Flow by flow: bytes, retransmissions, timeouts, window reductions, every RTT sample, srtt."""
    config = LOSSY.replace("    - link", reorder + "    - link")
    _, run, pcap = simulated(sim, config, file="x.pcap")
    sent, seen = folder.load(run), analysed(pcap)
    flows = sent.frame("flows").filter(pl.col("event") != 1)
    both = flows.join(seen.frame("flows"), on=["src_ip", "src_port"], suffix="_seen")
    assert both.height == 6
    counts = ("acked_bytes", "sent_segs", "retransmits", "timeouts")
    for name in ("start_ns", *counts, "srtt_ns", "event"):
        assert both[name].to_list() == both[f"{name}_seen"].to_list(), name
    # Copa does not reduce its window for a loss: its packets do not tell that.
    reno = both.filter(pl.col("group") == 0)
    differ = (reno["cwnd_reductions"] - reno["cwnd_reductions_seen"].cast(pl.Int64)).abs()
    # With reordering the sender may enter recovery and find that nothing is to be sent again.
    assert differ.max() <= (1 if reorder else 0)

    def rtt(loaded: folder.Run) -> pl.DataFrame:
        weighed = pl.col("rtt_mean_ns").cast(pl.Float64) * pl.col("rtt_samples")
        return (
            loaded.frame("interval")
            .group_by("flow_id")
            .agg(
                pl.col("rtt_samples", "delivered_bytes", "lost_segs").sum(),
                pl.col("rtt_max_ns").max(),
                rtt=weighed.sum(),
            )
        )

    ids = both.select("flow_id", "flow_id_seen")
    same = ids.join(rtt(sent), on="flow_id").join(
        rtt(seen), left_on="flow_id_seen", right_on="flow_id", suffix="_seen"
    )
    for name in ("rtt_samples", "rtt_max_ns", "rtt", "delivered_bytes"):
        assert same[name].to_list() == same[f"{name}_seen"].to_list(), name


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
def test_tshark_and_tcptrace_agree_with_weir_pcap(sim: Program) -> None:
    """Bytes, retransmissions and RTT samples of each flow; where they differ, why is said below."""
    _, _, pcap = simulated(sim, LOSSY, file="x.pcap")
    flows = captures.flows(analysed(pcap))
    argv = ["tcptrace", "-n", "-l", "-r", "--csv", str(pcap)]
    text = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    theirs = list(csv.DictReader(lines, skipinitialspace=True))
    assert len(theirs) == flows.height == 6
    data = "tcp.len > 0 && tcp.dstport == 5001"
    repeated = "(tcp.analysis.retransmission || tcp.analysis.out_of_order)"
    for row in theirs:
        mine = flows.filter(pl.col("src_port") == int(row["port_a"])).to_dicts()[0]
        assert int(row["unique_bytes_sent_a2b"]) == mine["acked_bytes"]
        assert int(row["actual_data_bytes_a2b"]) == mine["sent_bytes"]
        assert int(row["rexmt_data_pkts_a2b"]) == mine["retransmits"]
        # tcptrace takes samples by cumulative ACKs only, and counts the SYN's.
        cumulative = mine["rtt_samples"] - mine["rtt_sack_samples"]
        assert abs(int(row["RTT_samples_a2b"]) - cumulative - 1) <= 2 + mine["retransmits"]
        of = f"tcp.srcport == {mine['src_port']} && {data}"
        assert len(tshark(pcap, of, "frame.number")) == mine["sent_segs"]
        assert len(tshark(pcap, f"{of} && {repeated}", "frame.number")) == mine["retransmits"]


@pytest.mark.slow
@pytest.mark.parametrize(("cc", "fits"), [("newreno", True), ("cubic", True), ("bbr", False)])
def test_mathis_is_fitted_where_losses_lower_the_window(sim: Program, cc: str, fits: bool) -> None:
    """Mathis et al., CCR 1997, is of windows that fall by a factor at each loss: not of BBR's."""
    config = LOSSY.split("flows:")[0].replace("- loss: {rate: 1%}", "- loss: {rate: 0.1%}")
    config += f"flows: [{{count: 3, cc: {cc}}}]\n"
    said = captures.corescale(analysed(simulated(sim, config)[-1]))

    assert any(line.startswith("Mathis C from") for line in said) == fits
    assert any(line.startswith("Mathis C leaves 3 of 3 flows out") for line in said) == (not fits)


@pytest.mark.slow
def test_a_time_sequence_graph_has_what_was_sent_and_acknowledged(sim: Program) -> None:
    """Lines end at the flow's bytes, above each other; what was sent again has dots."""
    config = LOSSY.split("flows:")[0] + "flows: [{count: 2, cc: newreno, stagger: 1s}]\n"
    run = analysed(simulated(sim, config)[-1])
    read = data.read(run)
    duration_ns = read.scene.duration_s * 1e9
    drawn = {each.name: each for each in sections.draw(read)}["sequence"]
    flows, segments = captures.flows(run).to_dicts(), run.frame("segments")

    assert [panel.title for panel in drawn.panels] == [flow["src"] for flow in flows]
    for panel, flow in zip(drawn.panels, flows, strict=True):
        lines = {mark.style.label: (mark.x, mark.y) for mark in panel.marks}
        (sent_s, sent), (acked_s, acked) = lines["sent"], lines["acknowledged"]
        assert max(acked) * 1e6 == pytest.approx(flow["acked_bytes"] + 1, abs=1)  # the SYN's
        assert np.all(np.interp(acked_s, sent_s, sent) >= acked)
        own = segments.filter((pl.col("flow_id") == flow["flow_id"]) & (pl.col("kind") & 1 != 0))
        resent_s, _ = lines["sent again"]
        bins = own["ts_ns"] / duration_ns * sections.SEQUENCE_POINTS
        bin_of = dict(zip(own["ts_ns"] / 1e9, bins.cast(int), strict=True))
        assert {bin_of[at] for at in resent_s} == set(bin_of.values())  # some of each bin


def test_sequence_numbers_go_on_beyond_their_width() -> None:
    """RFC 9293 section 3.4: modulo 2^32, in each direction and flow by themselves."""
    wide = [2**32 - 3000, 2**32 - 1500, 2**32, 2**32 - 1500, 2**32 + 1500]  # one sent again
    frame = pl.DataFrame({"flow_id": 0, "forward": True, "seq": [n % 2**32 for n in wide]})
    assert frame.select(segments.unwrapped(pl.col("seq")))["seq"].to_list() == wide


def packets(pcap: Path, interface: str) -> dict[int, tuple[int, str]]:
    """Number in the path -> time and comment of the frames of an interface."""
    rows = tshark(
        pcap,
        f'frame.interface_name == "{interface}"',
        "frame.packet_id",
        "frame.time_epoch",
        "frame.comment",
    )
    return {
        int(number) & 0xFFFFFFFF: (int(time.replace(".", "")), text) for number, time, text in rows
    }


def simulated(
    sim: Program, config: str, *options: str, file: str = "x.pcapng"
) -> tuple[dict[str, Any], Path, Path]:
    """The summary, the run folder and the capture of a run."""
    summary = sim.summary(config, "--pcap", file, *options)
    return summary, sim.folder / "run", sim.folder / file


@pytest.mark.slow
def test_every_point_of_a_path_agrees_with_the_records(sim: Program) -> None:
    """Each arrival, departure and drop once, its time in the queue, who marked or dropped it."""
    summary, run, pcap = simulated(sim, MARKING, "-o", "telemetry.arrivals=yes")
    ledger = summary["ledger"]["paths"]["forward"]
    events = open_ring(run / "packets.ring").records
    events = events[events["path"] == 0]
    arrived, left, dropped = (packets(pcap, f"forward {point}") for point in ("in", "out", "drop"))

    assert tshark(pcap, "_ws.malformed || ip.checksum.status == 0", "frame.number") == []
    assert len(arrived) == ledger["in"]["pkts"]
    assert len(left) == ledger["out"]["pkts"]
    assert summary["capture"]["packets"] == len(arrived) + len(left) + len(dropped) + sum(
        summary["ledger"]["paths"]["reverse"][way]["pkts"] for way in ("in", "out")
    )
    arrivals = open_ring(run / "arrivals.ring").records
    arrivals = arrivals[(arrivals["path"] == 0) & (arrivals["event"] == 1)]
    assert [(a["pkt_id"], a["ts_ns"], f"flow {a['flow_id']}") for a in arrivals] == [
        (number, *row) for number, row in sorted(arrived.items())
    ]
    drops = {int(e["pkt_id"]): e for e in events[events["event"] == 3]}
    assert {number: row[0] for number, row in dropped.items()} == {
        number: e["ts_ns"] for number, e in drops.items()
    }
    names = {1: "link: queue_full", 2: "link: aqm", 3: "loss: loss"}
    assert {e["reason"] for e in drops.values()} == set(names)
    for number, (_, text) in dropped.items():
        assert f", dropped at forward.{names[drops[number]['reason']]}" in text
    sojourn = {int(e["pkt_id"]): int(e["sojourn_ns"]) for e in events[events["event"] == 2]}
    marked = set(events[events["event"] == 4]["pkt_id"].tolist())
    assert len(marked & set(left)) > 10
    for number, (_, text) in left.items():
        ms = f"{sojourn[number] // 10**6}.{sojourn[number] % 10**6:06}"
        mark = ", CE marked at forward.link" if number in marked else ""
        assert text.partition(", ")[2] == f"queue {ms} ms{mark}"


def test_the_flows_that_are_recorded_are_captured(sim: Program) -> None:
    """At level 2, the same part of them."""
    options = ("-o", "telemetry.level=2", "-o", "telemetry.sample=40%", "-o", "flows.0.count=20")
    _, run, pcap = simulated(sim, MARKING, *options)
    recorded = np.unique(open_ring(run / "packets.ring").records["flow_id"])
    found = {int(row[0].split()[1].rstrip(",")) for row in tshark(pcap, "frame", "frame.comment")}

    assert 0 < len(recorded) < 23
    assert found == set(recorded.tolist())


def test_a_capture_is_bounded(sim: Program) -> None:
    """Two files hold the newest packets, and the summary counts those that went."""
    summary, _, pcap = simulated(sim, LOSSY, "-o", "telemetry.rotate=1MB")
    counted = summary["capture"]
    previous = pcap.with_name("x.1.pcapng")
    kept = [len(tshark(file, "frame", "frame.number")) for file in (previous, pcap)]

    assert pcap.stat().st_size <= 1_000_000
    assert previous.stat().st_size <= 1_000_000
    assert counted["bytes"] > 2_000_000
    assert counted["rotated_away"] == counted["packets"] - sum(kept) > 0
    assert counted["lost"] == 0


def test_the_same_bytes_each_time(sim: Program) -> None:
    """A capture has no clock and no host in it, but the run's."""
    first = simulated(sim, MARKING)[-1].read_bytes()

    assert simulated(sim, MARKING)[-1].read_bytes() == first

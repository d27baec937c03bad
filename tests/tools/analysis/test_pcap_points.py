# SPDX-License-Identifier: BSD-3-Clause
"""weir-pcap: packets captured at several points, in several files, out of order, by a bad clock."""

from __future__ import annotations

import json
import struct
import subprocess

import pytest
from frames import MS, MSS, PROGRAM, US, Connection, Frame, pcap
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from test_pcap import interfaces, through
from weir.analysis import captures, folder

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

BACK = 3500 * US


def sides(lost: tuple[int, ...] = (4,)) -> tuple[list[Frame], list[Frame]]:
    """A connection left and right of a switch that loses some: 5 ms there, 3.5 ms back."""
    c = Connection()
    options = [("MSS", MSS + 12), ("SAckOK", b""), ("WScale", 2)]
    c.send(0, 0, 0, flags="S", options=options)
    c.send(1, 0, 1, flags="SA", options=options, after=5 * MS)
    c.send(0, 1, 1, after=BACK)
    start, gone = c.now_ns + MS, set()
    for i in range(12):
        c.now_ns = start + i * MS
        c.data(i)
        gone |= {len(c.frames) - 1} if i in lost else set()
    has = [i for i in range(12) if i not in lost]
    for i in has:
        c.now_ns = start + (i + 5) * MS
        first = min(lost, default=12)
        if i < first:
            c.ack(i + 1)
        else:
            c.ack(first, sack=c.sacked(first + 1, i + 1))
    for i in lost:
        c.now_ns = start + 20 * MS
        c.data(i)
        c.ack(12, after=5 * MS)
    left, right = [], []
    for number, frame in enumerate(c.frames):
        client = Ether(frame[1])[IP].src == "192.0.2.1"
        near, far = (left, right) if client else (right, left)
        near.append(frame)
        if number not in gone:
            far += through([frame], 5 * MS if client else BACK)
    return sorted(left), sorted(right)


def server(frames: list[Frame]) -> list[Frame]:
    """What the server sent."""
    return [frame for frame in frames if Ether(frame[1])[IP].src == "192.0.2.2"]


def figures(flow: dict) -> dict:
    """What a flow has in common with that of one point, all but the server's round trip."""
    return {name: value for name, value in flow.items() if name != "syn_ack_rtt_ns"}


def test_both_ports_of_a_switch(analyse):
    """Every figure is that of the data's sender: nothing is sent, lost or acknowledged twice."""
    left, right = sides()
    alone = analyse(left)
    sent = len(server(left))
    alone.shows(retransmits=1, lost_segs=1, rtt_min_ns=8500 * US, syn_rtt_ns=8500 * US)
    for names in (("left", "right"), ("right", "left")):
        both = analyse(interfaces(dict(zip(names, (left, right), strict=True))))
        assert figures(both.flow) == figures(alone.flow)
        assert both.flow["syn_ack_rtt_ns"] == 8500 * US
        assert both.summary["ledger"]["capture"]["copies"] == len(right)
        points = {p["name"]: (p["tcp"], p["copies"]) for p in both.summary["capture"]["points"]}
        assert points[names[0]] == (len(left), sent)  # what the server sent came there second
        assert points[names[1]] == (len(right), len(right) - sent)
        assert both.summary["verdict"] == "ok"
        assert [s["rtt_ns"] for s in both.segments if s["rtt_ns"]] == [
            s["rtt_ns"] for s in alone.segments if s["rtt_ns"]
        ]


def test_every_point_of_a_path(analyse):
    """As `capture: paths` writes it: what goes in, out and is dropped, by direction."""
    left, right = sides()
    alone = analyse(left).flow
    end = {"192.0.2.1": "forward", "192.0.2.2": "reverse"}
    points: dict[str, list[Frame]] = {}
    for side, names in ((left, ("in", "out")), (right, ("out", "in"))):
        for frame in side:
            way = end[Ether(frame[1])[IP].src]
            name = f"{way} {names[way == 'reverse']}"
            points.setdefault(name, []).append(frame)
    seen = {Ether(frame)[IP].id for _, frame in points["forward out"]}
    dropped = [f for f in points["forward in"] if Ether(f[1])[IP].id not in seen]
    points["forward drop"] = through(dropped, MS)
    assert len(dropped) == 1
    assert figures(analyse(interfaces(points)).flow) == figures(alone)


def test_only_some_interfaces(analyse):
    left, right = sides()
    both = interfaces({"left": left, "right": right})
    found = analyse(both, "--interface", "left")
    assert found.flow == analyse(left).flow
    assert found.counts == {"read": len(left + right), "tcp": len(left),
                            "other_interfaces": len(right)}  # fmt: skip
    assert analyse(both, "--interface", "right,left").flow == analyse(both).flow
    assert analyse(both, "--interface", "lft", status=2).err == (
        "weir-pcap: --interface: no packet is of 'lft'; the capture has 'left', 'right'\n"
    )


@pytest.mark.slow
def test_the_commands_say_the_point_of_view(weir, tmp_path):
    left, right = sides()
    (tmp_path / "x.pcapng").write_bytes(interfaces({"left": left, "right": right}))
    done = weir("pcap", "flows", "x.pcapng").worked()
    said = f"left ({len(left)} TCP packets, {len(server(left))} of them seen elsewhere before)"
    assert said in done.out
    done = weir("pcap", "flows", "x.pcapng", "--interface", "left", "--json")
    assert json.loads(done.out)[0]["retransmits"] == 1
    done = weir("pcap", "analyze", "x.pcapng", "--interface", "right", "--out", "run").worked()
    assert f"{len(left)} other" in done.out


def test_packets_that_take_one_of_two_interfaces(analyse):
    """No packet is at both: all count, and each ACK where it is."""
    left, _ = sides()
    alone = analyse(left).flow
    assert analyse(interfaces({"a": left[::2], "b": left[1::2]})).flow == alone


def sll(frames: list[tuple[int, int, bool, bytes]], version: int) -> bytes:
    """A capture of `-i any`: time, number of the interface, sent here?, Ethernet frame."""
    link = 113 if version == 1 else 276
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link)]
    for ns, number, out, frame in frames:
        kind = 4 if out else 0
        if version == 1:
            head = struct.pack(">HHH8s", kind, 1, 6, bytes(8)) + frame[12:14]
        else:
            head = frame[12:14] + struct.pack(">HIHBB8s", 0, number, 1, kind, 6, bytes(8))
        data = head + frame[14:]
        parts.append(struct.pack("<IIII", ns // 10**9, ns % 10**9, len(data), len(data)) + data)
    return b"".join(parts)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("v6", [False, True])
def test_a_bond_and_its_card(analyse, version, v6):
    """`-i any`: what is sent is seen at the bond first, what comes at its card."""
    c = Connection(v6=v6).open().talk(5)
    alone = analyse(c.frames).flow
    twice = []
    for ns, frame in c.frames:
        out = Ether(frame)[IP if not v6 else 1].src in ("192.0.2.1", "2001:db8::1")
        first, second = (3, 2) if out else (2, 3)
        twice += [(ns, first, out, frame), (ns + 2 * US, second, out, frame)]
    if v6 and version == 1:
        pytest.skip("nothing tells an ACK without IP identification from the next one")
    flow = analyse(sll(twice, version)).flow
    for name in ("sent_segs", "retransmits", "lost_segs", "duplicate_acks", "acked_bytes",
                 "rtt_samples", "spurious", "window_max_bytes"):  # fmt: skip
        assert flow[name] == alone[name], name
    assert abs(flow["syn_rtt_ns"] - 10 * MS) <= 2 * US
    assert abs(flow["rtt_max_ns"] - 10 * MS) <= 2 * US


def test_an_ack_passes_three_points(analyse):
    """A tunnel on a router: an ACK counts at the last of its points, not at one between."""
    c = Connection().open().talk(5)
    alone = analyse(c.frames).flow
    thrice = []
    for ns, frame in c.frames:
        out = Ether(frame)[IP].src == "192.0.2.1"
        where = (1, 2, 3) if out else (3, 2, 1)
        thrice += [(ns + i * US, point, i > 0, frame) for i, point in enumerate(where)]
    flow = analyse(sll(thrice, 2)).flow
    for name in ("sent_segs", "retransmits", "acked_bytes", "rtt_samples", "duplicate_acks"):
        assert flow[name] == alone[name], name
    assert flow["rtt_min_ns"] == alone["rtt_min_ns"] + 2 * US


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(("v6", "timestamps"), [(False, True), (False, False), (True, True)])
def test_a_host_takes_packets_apart_or_puts_them_together(analyse, apart, timestamps, v6):
    """Segmentation offload between two interfaces: what the second has is not sent again."""
    whole, cut = (Connection(v6=v6, timestamps=timestamps).open() for _ in range(2))
    for i in range(0, 15, 3):
        whole.send(0, 1 + i * MSS, 1, 3 * MSS, "PA", after=MS, ip_id=100 + i)
        cut.now_ns = whole.now_ns
        for j in range(i, i + 3):
            cut.data(j, ip_id=100 + j)
    for c in (whole, cut):
        c.ack(6, after=6 * MS, sack=c.sacked(9, 15))
        for i in (6, 7, 8):
            c.data(i, after=MS, ip_id=120 + i)
        c.ack(15, after=10 * MS)
    first, second = (whole, cut) if apart else (cut, whole)
    here, there = [], []
    for c, is_first in ((first, True), (second, False)):
        for ns, frame in c.frames:
            forward = Ether(frame)[1].src in ("192.0.2.1", "2001:db8::1")
            later = US if forward != is_first else 0
            (here if is_first else there).append((ns + later, frame))
    alone = analyse(here).flow
    found = analyse(interfaces({"first": here, "second": there}))
    for name in ("sent_segs", "sent_bytes", "retransmits", "lost_segs", "out_of_order",
                 "duplicates", "spurious", "acked_bytes", "rtt_samples"):  # fmt: skip
        assert found.flow[name] == alone[name], name
    assert alone["retransmits"] == 3
    assert found.summary["capture"]["recut"] == (15 if apart else 5)


def test_an_ack_of_a_part_of_a_packet(analyse):
    """Of several segments in one packet (offload) each ACK gives a sample, as in the kernel."""
    c = Connection().open()
    c.send(0, 1, 1, 3 * MSS, "PA", after=MS)
    c.ack(1, after=10 * MS, tsecr=c.now_ns // MS)
    c.ack(3, after=2 * MS, tsecr=c.now_ns // MS - 10)
    flow = analyse(c.frames).flow
    assert (flow["rtt_samples"], flow["rtt_min_ns"], flow["rtt_max_ns"]) == (2, 10 * MS, 12 * MS)
    assert (flow["tsrtt_samples"], flow["tsrtt_min_ns"]) == (1, 10 * MS)


@pytest.mark.parametrize("version", [1, 2])
def test_a_loopback(analyse, version):
    """`-i any`: each packet is sent, and received, by the same interface."""
    c = Connection().open().talk(5, rtt=MS)
    both = [row for ns, f in c.frames for row in ((ns, 1, True, f), (ns + US, 1, False, f))]
    found = analyse(sll(both, version))
    found.shows(sent_segs=5, retransmits=0, duplicate_acks=0, duplicates=0)
    assert found.summary["ledger"]["capture"]["copies"] == len(c.frames)


def test_a_mirror_port_of_both_directions(analyse):
    """Every packet twice at one point: copies are counted, and are no duplicate ACKs."""
    left, _ = sides()
    alone = analyse(left)
    found = analyse(sorted(left + [(ns + 5 * US, frame) for ns, frame in left]))
    for name in ("sent_segs", "retransmits", "lost_segs", "duplicate_acks", "sack_acks",
                 "rtt_samples", "rtt_mean_ns", "syn_rtt_ns", "cwnd_reductions"):  # fmt: skip
        assert found.flow[name] == alone.flow[name], name
    assert found.summary["capture"]["duplicates"] == len(left)


def parts(tmp_path, *files: bytes) -> list[dict]:
    """The flows of several files, in the order given."""
    names = []
    for number, file in enumerate(files):
        names.append(tmp_path / f"part{number}")
        names[-1].write_bytes(file)
    out = tmp_path / "parts"
    argv = [PROGRAM, "analyze", *names, "--out", out, "--force"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return captures.as_dicts(captures.flows(folder.load(out)))


def test_parts_in_any_order(analyse, tmp_path):
    """The shell puts cap10 before cap2; an empty part is no beginning."""
    left, _ = sides()
    whole = [analyse(left).flow]
    pieces = [pcap(left[at : at + 4]) for at in range(0, len(left), 4)]
    assert parts(tmp_path, *pieces) == whole
    assert parts(tmp_path, *pieces[::-1], pcap([])) == whole
    assert (
        parts(tmp_path, *(pieces[i] for i in (0, 3, 1, 5, 2, 4, 6, *range(7, len(pieces)))))
        == whole
    )


def test_files_of_the_same_time(analyse, tmp_path):
    """Two taps, a file for each direction: side by side, not one behind the other."""
    left, _ = sides()
    ways = [[f for f in left if Ether(f[1])[IP].src == ip] for ip in ("192.0.2.1", "192.0.2.2")]
    assert parts(tmp_path, *map(pcap, ways)) == [analyse(left).flow]
    assert parts(tmp_path, *map(pcap, ways[::-1])) == [analyse(left).flow]
    argv = [PROGRAM, "analyze", tmp_path / "part0", tmp_path / "missing", "--out", tmp_path / "no"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert (done.returncode, (tmp_path / "no").exists()) == (2, False)
    assert "missing: cannot be opened" in done.stderr


def test_late_packets_are_put_into_their_place(analyse):
    """Several queues of a card: the packets are out of order in the file, their times are right."""
    left, _ = sides()
    alone = analyse(left)
    mixed = [left[i] for i in (2, 0, 1, *range(3, 10), 13, 12, 11, 10, *range(14, len(left)))]
    late = sum(ns < max(mixed[:i], default=(0, b""))[0] for i, (ns, _) in enumerate(mixed))
    found = analyse(mixed)
    assert found.flow == alone.flow
    capture = found.summary["capture"]
    assert (capture["reordered"], capture["backwards"], capture["clock_steps"]) == (late, 0, 0)
    assert [v["cause"] for v in found.summary["verdicts"]] == ["reordered"]
    assert capture["duration_s"] == alone.summary["capture"]["duration_s"]


@pytest.mark.slow
def test_a_packet_too_late_to_be_put_into_its_place(analyse):
    c = Connection().open().talk(2500, after=10 * US, rtt=10 * US)
    found = analyse([*c.frames[:20], *c.frames[21:], c.frames[20]])
    assert found.summary["capture"]["backwards"] == 1
    assert "reordercap" in found.summary["verdict"]
    assert found.flow["rtt_min_ns"] == 10 * US


def test_a_clock_that_is_set_back(analyse):
    """Times go on; of what was on its way there is no RTT, least of all one of 0."""
    c = Connection().open()
    for i in range(10):
        c.data(i, after=MS)
        if i == 5:
            c.now_ns -= 4 * 10**9
        c.ack(i + 1, after=10 * MS)
    found = analyse(c.frames)
    found.shows(rtt_samples=9, rtt_min_ns=10 * MS, rtt_max_ns=10 * MS, retransmits=0)
    capture = found.summary["capture"]
    assert (capture["clock_steps"], capture["clock_step_max_ns"]) == (1, 4 * 10**9 - 10 * MS)
    assert capture["duration_s"] == pytest.approx(0.110, abs=1e-6)  # but for that RTT
    assert found.summary["verdict"].startswith("the clock was set back 1 times, by up to 3.990 s")


def test_a_packet_with_a_wrong_time(analyse):
    """One stamp of another day: what follows keeps its own."""
    c = Connection().open().talk(10)
    frames = list(c.frames)
    frames[7] = (0, frames[7][1])
    found = analyse(frames)
    assert found.summary["capture"]["clock_steps"] == 1
    assert found.summary["capture"]["duration_s"] == pytest.approx(0.120, abs=1e-6)
    assert found.flow["rtt_max_ns"] == 10 * MS


def causes(found) -> dict[str, tuple[int, int | None]]:
    return {v["cause"]: (v["count"], v["of"]) for v in found.summary["verdicts"]}


def test_what_an_analysis_cannot_know_is_in_its_verdict(analyse):
    """Facts with their share; an analysis without any is ok."""
    left, _ = sides()
    assert analyse(left).summary["verdict"] == "ok"
    assert causes(analyse(left)) == {}
    assert causes(analyse(left[3:])) == {"begun_before": (1, 1)}
    client = [f for f in left if Ether(f[1])[IP].src == "192.0.2.1"]
    assert causes(analyse(client)) == {"one_sided": (1, 1)}
    assert causes(analyse([f for f in left if f not in client[3:6]])) == {"uncaptured": (1, 1)}
    middle = through([f for f in left if f in client], MS)
    middle += [(ns - MS, frame) for ns, frame in left if (ns, frame) not in client]
    assert causes(analyse(sorted(middle))) == {"middle": (1, 1)}
    bad = [(left[0][0], bytes(Ether(left[0][1])[Ether])[:14] + b"\x43" + left[0][1][15:])]
    assert causes(analyse(bad + left)) == {"malformed": (1, len(left) + 1)}
    cut = analyse(pcap(left, snap=60))
    assert causes(cut)["options_cut"][0] > 0
    assert causes(analyse(pcap(left, snap=40)))["truncated"] == (len(left), len(left))
    nothing = analyse([(1, bytes(60))])
    assert causes(nothing) == {"no_tcp": (1, None)}
    assert (nothing.summary["capture"]["rtt_p50_ns"], nothing.flows) == (None, [])


def test_an_empty_capture_has_no_times(analyse):
    capture = analyse([]).summary["capture"]
    assert (capture["start_utc_ns"], capture["duration_s"]) == (None, None)

# SPDX-License-Identifier: BSD-3-Clause
"""weir-pcap: how connections begin, which end opened them, and packets that only look like data."""

from __future__ import annotations

import pytest
from frames import MS, MSS, PROGRAM, Connection

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


def swapped(frames, first, second):
    """The frames with two of them recorded in the place, and at the time, of each other."""
    frames = list(frames)
    (one_ns, one), (other_ns, other) = frames[first], frames[second]
    frames[first], frames[second] = (one_ns, other), (other_ns, one)
    return frames


def test_window_probes_of_one_byte(analyse):
    """The next byte into a closed window, until it opens: nothing of that is lost."""
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS, window=0)
    for wait in (300, 600, 1200):
        c.send(0, 1 + MSS, 1, 1, after=wait * MS)
        c.ack(1, after=10 * MS, window=0)
    c.ack(1, after=500 * MS, window=1000)
    for i in (1, 2):
        c.data(i, after=MS)
        c.ack(i + 1, after=10 * MS)
    flow = analyse(c.frames).flow
    for name in ("retransmits", "lost_segs", "timeouts", "duplicate_acks", "uncaptured_bytes"):
        assert flow[name] == 0, name
    assert (flow["sent_segs"], flow["sent_bytes"], flow["acked_bytes"]) == (3, 3 * MSS, 3 * MSS)
    assert (flow["keep_alives"], flow["zero_windows"], flow["rtt_samples"]) == (3, 1, 3)


def test_a_window_probe_that_is_taken(analyse):
    """The receiver has room for the probe's byte: it was data after all."""
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS, window=0)
    for wait in (300, 600):
        c.send(0, 1 + MSS, 1, 1, after=wait * MS)
    c.send(1, 1, 2 + MSS, after=10 * MS, window=1000)
    c.send(0, 2 + MSS, 1, MSS, after=MS)
    c.send(1, 1, 2 + 2 * MSS, after=10 * MS)
    flow = analyse(c.frames).flow
    assert (flow["retransmits"], flow["lost_segs"], flow["uncaptured_bytes"]) == (0, 0, 0)
    assert (flow["sent_bytes"], flow["acked_bytes"]) == (2 * MSS + 1, 2 * MSS + 1)
    assert (flow["sent_segs"], flow["keep_alives"]) == (3, 1)


def test_window_probes_of_what_is_outstanding(analyse):
    """The window closed over data in flight: the probe is its first byte."""
    c = Connection().open()
    c.data(0, 1)
    c.ack(1, after=10 * MS, window=0)
    for wait in (300, 600):
        c.send(0, 1 + MSS, 1, 1, after=wait * MS)
        c.ack(1, after=10 * MS, window=0)
    c.ack(2, after=500 * MS)
    flow = analyse(c.frames).flow
    assert (flow["retransmits"], flow["lost_segs"], flow["duplicate_acks"]) == (0, 0, 0)
    assert (flow["sent_bytes"], flow["keep_alives"], flow["timeouts"]) == (2 * MSS, 2, 0)


@pytest.mark.parametrize("handshake", [True, False])
def test_a_keep_alive_of_a_server_is_no_flow(analyse, handshake):
    """One byte below what is acknowledged, of a direction that carries no payload."""
    c = Connection()
    if handshake:
        c.open()
    c.data(0)
    c.ack(1, after=10 * MS)
    c.send(1, 0, 1 + MSS, 1, after=10**9)
    c.send(0, 1 + MSS, 1, after=10 * MS)
    found = analyse(c.frames)
    assert (found.flow["src"], found.flow["acked_bytes"]) == ("192.0.2.1:40000", MSS)


@pytest.mark.parametrize("repeated", ["", "S"])
def test_data_that_a_syn_ack_refuses_is_not_lost(analyse, repeated):
    """RFC 7413: it is sent once more behind the handshake; the SYN itself may have gone twice."""
    c = Connection()
    c.send(0, 0, 0, 500, "S", options=[("MSS", MSS), ("WScale", 2)])
    if repeated:
        c.send(0, 0, 0, flags="S", after=1000 * MS, options=[("MSS", MSS), ("WScale", 2)])
    c.send(1, 0, 1, flags="SA", after=10 * MS, options=[("MSS", MSS), ("WScale", 2)])
    c.send(0, 1, 1, 500, "PA", after=MS)
    c.send(1, 1, 501, after=10 * MS)
    flow = analyse(c.frames).flow
    for name in ("retransmits", "lost_segs", "timeouts", "cwnd_reductions", "spurious"):
        assert flow[name] == 0, name
    assert (flow["acked_bytes"], flow["sent_segs"]) == (500, 2)
    assert flow["syn_rtt_ns"] == (None if repeated else 10 * MS)


def test_data_that_a_syn_ack_takes(analyse):
    """The handshake has its round trip, too."""
    c = Connection()
    c.send(0, 0, 0, 500, "S")
    c.send(1, 0, 501, flags="SA", after=10 * MS)
    c.send(0, 501, 1)
    c.send(0, 501, 1, 500, "PA", after=MS)
    c.send(1, 1, 1001, after=10 * MS)
    flow = analyse(c.frames).flow
    assert (flow["acked_bytes"], flow["retransmits"], flow["uncaptured_bytes"]) == (1000, 0, 0)
    assert (flow["sent_segs"], flow["syn_rtt_ns"]) == (2, 10 * MS)


def test_a_syn_behind_its_syn_ack(analyse):
    """Two taps or a mirror port: one connection, its windows scaled; the SYN's RTT is not known."""
    c = Connection().open().talk(5)
    for places in ((0, 1), (0, 2), (0, 3)):
        flow = analyse(swapped(c.frames, *places)).flow
        assert (flow["src"], flow["client"], flow["end"]) == ("192.0.2.1:40000", 1, "still_open")
        assert (flow["acked_bytes"], flow["retransmits"], flow["lost_segs"]) == (5 * MSS, 0, 0)
        assert (flow["window_max_bytes"], flow["window_limited"]) == (240_000, 0)
        assert flow["syn_rtt_ns"] is None


def test_ports_used_again_behind_a_syn_ack(analyse):
    """A SYN that the SYN-ACK does not answer opens another connection."""
    c = Connection()
    c.send(1, 0, 1, flags="SA")
    c.send(0, 77_777, 0, flags="S", after=MS)
    assert [flow["end"] for flow in analyse(c.frames).flows] == ["replaced", "half_open"]


def test_a_simultaneous_open(analyse):
    """RFC 9293, figure 8: two SYNs that cross are one connection, and nothing is sent twice."""
    c = Connection()
    scale = [("MSS", MSS), ("WScale", 2)]
    c.send(0, 0, 0, flags="S", options=scale)
    c.send(1, 0, 0, flags="S", options=scale, after=MS)
    c.send(0, 0, 1, flags="SA", options=scale, after=10 * MS)
    c.send(1, 0, 1, flags="SA", options=scale, after=MS)
    c.data(0, after=10 * MS)
    c.ack(1, after=10 * MS)
    found = analyse(c.frames)
    found.shows(src="192.0.2.1:40000", acked_bytes=MSS, window_max_bytes=240_000)
    assert [s["kind"] for s in found.segments] == [0] * 6


@pytest.mark.parametrize(("port", "client"), [(40000, 1), (1023, 1), (79, 0)])
def test_the_end_that_opened_it_by_its_port(analyse, port, client):
    """Without a SYN ports tell, or which came first: here a segment of the server."""
    c = Connection(port=port)
    c.send(1, 1, 1, MSS, "PA")
    c.send(0, 1, 1 + MSS, 10, "PA", after=MS)
    flows = {flow["src"]: flow["client"] for flow in analyse(c.frames).flows}
    if port == 40000:
        assert flows == {"192.0.2.1:40000": 1, "192.0.2.2:80": 0}
    else:  # both are services' ports
        assert flows == {f"192.0.2.1:{port}": 0, "192.0.2.2:80": 1}


def test_a_window_whose_scale_is_not_known(analyse):
    """The capture begins behind the handshake, or with its SYN-ACK, or cuts its options off."""
    c = Connection().open()
    c.data(*range(20))
    c.ack(20, after=10 * MS, window=15_000)
    whole = analyse(c.frames).flow
    assert (whole["window_max_bytes"], whole["window_limited"]) == (60_000, 0)
    later = analyse(c.frames[3:])
    assert later.flow["window_limited"] is None
    assert (later.flow["window_min_bytes"], later.flow["window_max_bytes"]) == (None, None)
    assert later.segments[-1]["window_bytes"] is None
    # Only the server's own SYN tells of its scale; that it has one says that the client's has one.
    assert analyse(c.frames[1:]).flow["window_max_bytes"] == 60_000
    assert analyse([c.frames[0], *c.frames[2:]]).flow["window_max_bytes"] is None


def test_what_a_flow_without_samples_does_not_tell(analyse):
    """Null, not 0: times of nothing are none."""
    c = Connection()
    c.data(0)
    flow = analyse(c.frames).flow
    for name in ("rtt_mean_ns", "rtt_min_ns", "srtt_ns", "tsrtt_mean_ns", "syn_rtt_ns", "data_ns",
                 "ack_gap_max_ns", "window_limited", "goodput_bps"):  # fmt: skip
        assert flow[name] is None, name
    assert (flow["sent_bytes"], flow["acked_bytes"]) == (MSS, 0)

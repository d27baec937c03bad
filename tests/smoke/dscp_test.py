# SPDX-License-Identifier: BSD-3-Clause
"""CAKE's tins live: frames of four DSCPs, each offered at twice the link's rate, in weir-switch.

Frames are made by scapy and counted behind the switch by tshark: UDP in IPv4 and IPv6, without a
tag, behind one and behind two. In diffserv4 EF has a quarter of a link that all of them fill, AF41
a half, CS1 a sixteenth, and best effort what is left. With WEIR_KERNELS=1 the same frames pass
sch_cake in a Linux guest as well.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from lab import best_of
from replay_test import replay
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from tcpdump import Capture, rows
from weir.analysis.ring import open_ring
from weir.guests import build as kernel_build
from weir.guests import kernels
from weir.guests.recipe import Recipe

FRAMES_SENT = Path(__file__).with_name("frames_sent.py")
SHARES = {0: 3 / 16, 8: 1 / 16, 34: 1 / 2, 46: 1 / 4}  # of best effort, CS1, AF41, EF
TAGS = ((), (Dot1Q(vlan=5),), (Dot1AD(vlan=7), Dot1Q(vlan=5)))
PATHS = """
  forward: [{link: {rate: %dbit, queue: {cake: {diffserv: diffserv4}}}}]
  reverse: [{delay: {delay: 1ms}}]"""
SECONDS, FILLED_S = 4, 1
# A share is of 1300 frames or more, and a tin may be a frame ahead of its part. Where the sender
# had no CPU for long, the queues of EF and AF41 become empty, and others have their parts.
TOLERANCE = 0.01
HEADERS = 4  # enum tel_arrival


def frames(length):
    """Frames of each kind, with that length without FCS."""
    made = []
    for kind, (ip, tags) in enumerate((ip, tags) for ip in (IP, IPv6) for tags in TAGS):
        for dscp in SHARES:
            frame = Ether(src="02:00:00:00:00:0a", dst="02:00:00:00:00:0c")
            for tag in tags:
                frame /= tag
            field = {"tos" if ip is IP else "tc": dscp << 2}
            frame /= ip(**field) / UDP(sport=1000 + kind, dport=2000 + dscp)
            made.append(bytes(frame / bytes(length - len(frame))))
    assert {len(frame) for frame in made} == {length}
    return made


def write_frames(place, length):
    """The file for frames_sent.py."""
    file = Path(place) / "frames"
    file.write_text("\n".join(frame.hex() for frame in frames(length)))
    return file


def frames_per_s(length, rate_bps):
    """Of all DSCPs together, each of which fills the link twice: with FCS, preamble and gap."""
    return 2 * len(SHARES) * rate_bps / (8 * (length + 24))


def received(capture):
    """Frames of each kind and DSCP, once the queue was full and until the sender ended."""
    fields = ("frame.time_epoch", "udp.srcport", "udp.dstport", "ip.dsfield.dscp")
    found = rows(capture.path, "udp.port >= 2000", *fields, "ipv6.tclass.dscp")
    begin = float(found[0][0])
    count = Counter()
    for at, kind, port, *dscp in found:
        assert sorted(dscp) == sorted(["", str(int(port) - 2000)])
        if FILLED_S <= float(at) - begin <= SECONDS:
            count[int(kind), int(port) - 2000] += 1
    return count


def carry(lab, length, rate_bps):
    """Eight times what the link carries, for some seconds; the run's folder, and what b got."""
    file = write_frames(lab.tmp, length)
    options = ("-o", "telemetry.level=3", "-o", "telemetry.arrivals=yes")
    switch = lab.switch(PATHS % rate_bps, *options)
    capture = Capture(lab, "b", "eth0", what="")
    argv = (FRAMES_SENT, "eth0", file, frames_per_s(length, rate_bps), SECONDS)
    sender = lab.host("a", sys.executable, *argv)
    assert sender.wait() == 0
    assert switch.stop() == 0
    capture.close()
    assert switch.summary()["ledger"]["balanced"]
    return switch.folder, received(capture)


def shares(count):
    whole = sum(count.values())
    return {dscp: sum(n for (_, at), n in count.items() if at == dscp) / whole for dscp in SHARES}


# Small frames wait outside their mbufs, once there are some hundred.
@pytest.mark.parametrize(("length", "rate_bps"), [(1400, 5_000_000), (76, 500_000)])
def test_frames_join_the_tins_of_their_dscps(lab, build, length, rate_bps):
    """Whatever is around the DSCP; and a replay of the recorded arrivals decides the same."""
    wanted = pytest.approx(SHARES, abs=TOLERANCE)
    folder, count = best_of(
        3,
        lambda found: shares(found[1]) == wanted,
        lambda: carry(lab, length, rate_bps),
    )
    assert shares(count) == wanted
    # In a tin all kinds are alike: each is a flow with a queue of its own.
    for dscp, share in SHARES.items():
        flows = [count[kind, dscp] for kind in range(2 * len(TAGS))]
        assert max(flows) - min(flows) <= 0.05 * sum(flows) + 2, (dscp, share, flows)

    arrivals = open_ring(folder / "arrivals.ring").records
    heads = arrivals[(arrivals["event"] == HEADERS) & (arrivals["path"] == 0)]
    assert set(SHARES) == set(heads["param"])
    done = replay(folder, build)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("identical:")


# Linux's count of a tin's bytes is of those that joined it, dropped later or not.
GUEST = """
seed: 1
duration: {duration}s
paths:
  forward: [{{link: {{rate: 1Gbit, queue: fifo}}}}]
  reverse: [{{delay: {{delay: 1ms}}}}]
flows:
  - stack: {{linux: {{kernel: more, run: {run}}}}}
    peer: {{linux: {{kernel: more, run: sleep 99}}}}
"""
QDISC = "root cake bandwidth {rate_bps}bit diffserv4 ethernet"
TIN_DSCPS = (8, 0, 34, 46)  # of Linux's tins in their order


@pytest.mark.skipif(os.environ.get("WEIR_KERNELS") != "1", reason="needs WEIR_KERNELS=1")
def test_linux_parts_the_same_frames_alike(weir_sim, lab):
    """sch_cake of Linux 6.12 in a guest, its counts per tin, beside the live switch."""
    length, rate_bps = 1400, 10_000_000
    if kernels.find("more") is None:
        more = kernel_build.OPTIONS.with_name("more.config")
        kernel_build.build(kernel_build.Steps(), Recipe(name="more", fragment=more))
    with tempfile.TemporaryDirectory(dir=Path.home()) as place:  # /tmp is a guest's own
        shutil.copy(FRAMES_SENT, place)
        file = write_frames(place, length)
        sender = (
            f"{place}/{FRAMES_SENT.name} eth0 {file} {frames_per_s(length, rate_bps)} {SECONDS}"
        )
        tc = "/usr/sbin/tc -s -j qdisc"
        command = f"{tc} add dev eth0 {QDISC.format(rate_bps=rate_bps)}; "
        command += f"/usr/bin/python3 {sender}; {tc} show dev eth0"
        config = lab.config(GUEST.format(duration=SECONDS + 1, run=json.dumps(command)))
        argv = [weir_sim, config, "--out", lab.tmp / "guest", "--json"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (qdisc,) = json.loads((lab.tmp / "guest/guest-0.out").read_text())
    sent = [
        (tin["sent_bytes"] - tin["backlog_bytes"]) / length - tin["drops"] for tin in qdisc["tins"]
    ]
    assert sum(sent) == pytest.approx(qdisc["packets"], abs=2)  # beside them ARP or ICMPv6
    linux = {dscp: pkts / sum(sent) for dscp, pkts in zip(TIN_DSCPS, sent, strict=True)}
    alike = pytest.approx(linux, abs=TOLERANCE)
    count = best_of(
        3, lambda found: shares(found) == alike, lambda: carry(lab, length, rate_bps)[1]
    )
    assert shares(count) == alike

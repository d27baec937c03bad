# SPDX-License-Identifier: BSD-3-Clause
"""Captures through paths: what arrives is what was captured, and what departs can be computed."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weir.analysis.ring import open_ring

from .conftest import Program, Replay

FIFO = """
duration: 1s
paths:
  forward:
    - source: {pcap: in.pcap}
    - link: {rate: 10Mbit, overhead: 0B, queue: {fifo: {limit: 2pkt}}}
    - delay: {delay: 5ms}
telemetry: {level: 3}
"""
HOSTS = """
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
  - {count: 3, cc: newreno}
telemetry: {level: 3, arrivals: yes, capture: paths}
"""
OFFLINE = (
    HOSTS[: HOSTS.index("flows:")].replace(
        "    - loss", "    - source: {pcap: in.pcapng}\n    - loss", 1
    )
    + "telemetry: {level: 3, arrivals: yes}\n"
)
START_NS = 1_700_000_000 * 10**9
DEQUEUE = 2  # enum tel_packet_event


def ipv4(length: int, number: int, ecn: int = 0) -> bytes:
    """A UDP packet from one host to another, numbered in its IP header and in its payload."""
    head = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        ecn,
        length - 14,
        number,
        0,
        64,
        17,
        0,
        bytes([192, 0, 2, 1]),
        bytes([192, 0, 2, 2]),
    )
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", 0xFFFF - total) + head[12:]
    frame = bytes(6) + bytes(6) + b"\x08\x00" + head
    frame += struct.pack("!HHHH", 1000, 2000, length - 34, 0)
    return frame + bytes([number % 256]) * (length - len(frame))


def write_pcap(file: Path, frames: list[tuple[int, bytes]], link_type: int = 1) -> None:
    """A classic capture with nanoseconds, of a machine with the other byte order."""
    out = struct.pack(">IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link_type)
    for ns, data in frames:
        size = len(data)
        out += struct.pack(">IIII", ns // 10**9, ns % 10**9, size, size) + data
    file.write_bytes(out)


def read_pcapng(file: Path) -> list[tuple[int, bytes, str]]:
    """Times, bytes and comments of the packets of a file of ours."""
    text, at = file.read_bytes(), 0
    found = []
    while at < len(text):
        kind, total = struct.unpack_from("<II", text, at)
        if kind == 6:
            _, high, low, captured, _ = struct.unpack_from("<IIIII", text, at + 8)
            data = text[at + 28 : at + 28 + captured]
            option = at + 28 + (captured + 3 & ~3)
            code, size = struct.unpack_from("<HH", text, option)
            assert code == 1
            comment = text[option + 4 : option + 4 + size].decode()
            found.append((high << 32 | low, data, comment))
        at += total
    return found


@dataclass
class Done:
    """A run with a capture."""

    summary: dict[str, Any]
    folder: Path
    pcap: Path

    @property
    def packets(self) -> list[tuple[int, bytes, str]]:
        """What was captured."""
        return read_pcapng(self.pcap)

    def records(self, stream: str) -> np.ndarray:
        """The records of `forward`."""
        records = open_ring(self.folder / f"{stream}.ring").records
        return records[records["path"] == 0]


def run(weir_sim: Path, folder: Path, config: str, *overrides: str, out: str = "out") -> Done:
    """weir-sim, in a folder where captures are."""
    (folder / f"{out}.yaml").write_text(config)
    argv = [weir_sim, f"{out}.yaml", "--force", "--out", out, "--pcap", f"{out}.pcapng"]
    for override in overrides:
        argv += ["-o", override]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    summary = json.loads((folder / out / "summary.json").read_text())
    assert summary["ledger"]["balanced"]
    return Done(summary, folder / out, folder / f"{out}.pcapng")


def test_a_captured_frame_leaves_twice(weir_sim: Path, tmp_path: Path) -> None:
    """A copy has the bytes of its packet, a way of its own through the queue, and its own bits."""
    config = FIFO.replace("    - link", "    - duplicate: {rate: 100%}\n    - link")
    write_pcap(tmp_path / "in.pcap", [(START_NS + i * 10**7, ipv4(1000, i, 2)) for i in range(3)])
    done = run(weir_sim, tmp_path, config, "telemetry.arrivals=yes")
    forward = done.summary["ledger"]["paths"]["forward"]
    assert forward["duplicated"] == forward["in"] == {"pkts": 3, "bytes": 3 * 1004}
    left = [(ns, data, text) for ns, data, text in done.packets if ns >= START_NS + 5 * 10**6]
    twice = [(ns, data, text) for ns, data, text in left if (ns - START_NS) % 10**7 > 0]
    assert [data for _, data, _ in twice] == [ipv4(1000, i // 2, 2) for i in range(6)]
    assert [(ns - START_NS) % 10**7 for ns, _, _ in twice] == [5_800_000, 6_600_000] * 3
    assert [text.split(", ")[-1] for _, _, text in twice] == [
        "queue 0.000000 ms",
        "queue 0.800000 ms",
    ] * 3


@pytest.mark.slow
def test_captured_frames_join_the_tins_of_their_dscps(
    weir_sim: Path, tmp_path: Path, replay: Replay
) -> None:
    """Best effort, CS1, AF41 and EF, each more than the link carries, every other one tagged.

    Of a link that all fill, diffserv4 gives EF a quarter, AF41 a half, CS1 a sixteenth.
    """
    dscps = (0, 8, 34, 46)
    frames = [ipv4(1000, i, dscps[i % 4] << 2) for i in range(8)]
    frames[4:] = [data[:12] + b"\x81\x00\x00\x05" + data[12:] for data in frames[4:]]
    write_pcap(tmp_path / "in.pcap", [(START_NS + i * 200_000, frames[i % 8]) for i in range(5000)])
    cake = "cake: {diffserv: diffserv4, target: 1s, interval: 100s}"
    config = FIFO.replace("fifo: {limit: 2pkt}", cake)
    assert cake in config
    done = run(weir_sim, tmp_path, config, "telemetry.arrivals=yes")
    packets = done.records("packets")
    taken = packets["pkt_id"][packets["event"] == DEQUEUE]
    shares = {dscp: float(np.mean(taken % 4 == i)) for i, dscp in enumerate(dscps)}
    assert shares == pytest.approx({0: 3 / 16, 8: 1 / 16, 34: 1 / 2, 46: 1 / 4}, abs=0.01)
    assert replay(done.folder).out.startswith("identical:")


def test_a_run_folder_is_enough_to_repeat_the_run(weir_sim: Path, tmp_path: Path) -> None:
    """Its config names the capture so that it is found from any folder, and from the run folder."""
    write_pcap(tmp_path / "in.pcap", [(START_NS + i * 10**6, ipv4(1000, i)) for i in range(9)])
    done = run(weir_sim, tmp_path, FIFO)
    argv = [weir_sim, "config.yaml", "--json", "--out", tmp_path / "repeated"]
    repeated = subprocess.run(argv, cwd=done.folder, capture_output=True, text=True, timeout=60)
    assert repeated.returncode == 0, repeated.stderr
    assert json.loads(repeated.stdout)["digest"] == done.summary["digest"]
    argv = [weir_sim, "out.yaml", "--print-config"]
    printed = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert f"pcap: {tmp_path}/in.pcap" in printed.stdout


# Frames of 1000 bytes take 800 us each at 10 Mbit/s.
ARRIVALS_US = [0, 0, 0, 0, 1000, 1700, 5000]


def test_a_fifo_by_hand(weir_sim: Path, tmp_path: Path) -> None:
    """The fourth finds two in the queue; the others leave one after the other, 5 ms later."""
    frames = [(START_NS + us * 1000, ipv4(1000, number)) for number, us in enumerate(ARRIVALS_US)]
    write_pcap(tmp_path / "in.pcap", frames)
    done = run(weir_sim, tmp_path, FIFO)
    flow = done.packets[0][2].partition(",")[0]
    # On the wire from .. to: 0-800, 800-1600, 1600-2400; the fifth came at 1000, when one
    # waited, and the sixth at 1700, when one waited: 2400-3200, 3200-4000; the last finds none.
    expected = [
        (800, 0, 0),
        (1600, 800, 1),
        (2400, 1600, 2),
        (3200, 1400, 4),
        (4000, 1500, 5),
        (5800, 0, 6),
    ]

    assert done.packets == [
        (
            START_NS + (us + 5000) * 1000,
            frames[number][1],
            f"{flow}, queue {queue_us // 1000}.{queue_us % 1000:03}000 ms",
        )
        for us, queue_us, number in expected
    ]
    assert done.summary["ledger"]["paths"]["forward"]["drops"] == {
        "queue_full": {"pkts": 1, "bytes": 1004}
    }
    assert done.summary["virtual_s"] == 0.0108
    source = done.summary["sources"]["forward"]
    assert (source["packets"], source["bytes"], source["ended"]) == (7, 7028, True)
    dropped = done.records("packets")
    dropped = dropped[dropped["event"] == 3]
    assert dropped["pkt_id"].tolist() == [3]


def test_hosts_are_the_addresses_of_a_capture(weir_sim: Path, tmp_path: Path) -> None:
    """CAKE with a queue per source: the other source's frame waits for two of the first, not five.

    One is on the wire, and one uses up the first one's quantum of 1518 bytes.
    """
    frame = ipv4(1000, 0)
    other = frame[:29] + bytes([frame[29] + 1]) + frame[30:]  # the source's last byte
    frames = [(START_NS, frame)] * 5 + [(START_NS, other)]
    write_pcap(tmp_path / "in.pcap", frames)
    cake = FIFO.replace("fifo: {limit: 2pkt}", "cake: {isolation: srchost}")
    done = run(weir_sim, tmp_path, cake, "telemetry.arrivals=yes")
    arrivals = done.records("arrivals")[:6]

    assert [sent for _, sent, _ in done.packets].index(other) == 2
    assert (arrivals["value"] >= 0x80008000).all()
    sources, destinations = divmod(arrivals["value"].astype(np.int64), 65536)
    assert len(set(sources)) == 2
    assert set(sources[:5]) != set(sources[5:])
    assert len(set(destinations)) == 1


def ipv6(source: int, port: int, tag: bytes = b"") -> bytes:
    """A UDP packet of 1000 bytes, behind a VLAN tag if one is given."""
    hosts = b"".join(bytes([0x20, 1, 0x0D, 0xB8, *bytes(11), host]) for host in (source, 9))
    head = struct.pack("!IHBB", 6 << 28, 946 - len(tag), 17, 64) + hosts
    udp = struct.pack("!HHHH", port, 2000, 946 - len(tag), 0)
    return bytes(12) + tag + b"\x86\xdd" + head + udp + bytes(938 - len(tag))


def test_flows_and_hosts_of_ipv6_are_told_apart(weir_sim: Path, tmp_path: Path) -> None:
    """Each address and each port is another flow, a VLAN tag is none; so each has its turn."""
    tag = b"\x81\x00\x00\x05"
    one, port, host = ipv6(1, 1000), ipv6(1, 1001), ipv6(2, 1000)
    frames = [one, one, one, ipv6(1, 1000, tag), port, host]
    write_pcap(tmp_path / "in.pcap", [(START_NS, frame) for frame in frames])
    fair = FIFO.replace("fifo: {limit: 2pkt}", "fq_codel: {}")
    done = run(weir_sim, tmp_path, fair, "telemetry.arrivals=yes")
    arrivals = done.records("arrivals")[:6]
    flows = arrivals["flow_id"].tolist()
    sources, destinations = divmod(arrivals["value"].astype(np.int64), 65536)

    assert len(set(flows[:4])) == 1
    assert len(set(flows)) == 3
    assert len(set(sources)) == 2
    assert len(set(destinations)) == 1
    # One is on the wire, and one uses up its flow's quantum of 1518 bytes.
    assert sorted([sent for _, sent, _ in done.packets].index(x) for x in (port, host)) == [2, 3]


def test_what_the_source_can_do(weir_sim: Path, tmp_path: Path) -> None:
    """It scales the times, filters, moves up what is stamped too early, and pads short frames."""
    frames = [
        (START_NS, ipv4(60, 0)),
        (START_NS + 4000, ipv4(200, 1)),
        (START_NS + 3000, ipv4(200, 2)),
        (START_NS + 9000, ipv4(42, 3)),
    ]
    write_pcap(tmp_path / "in.pcap", frames)
    config = FIFO.replace("link: {rate: 10Mbit, overhead: 0B, queue: {fifo: {limit: 2pkt}}}", "")
    config = config.replace("    - \n", "")
    done = run(weir_sim, tmp_path, config, "paths.forward.source.scale=2.5")
    source = done.summary["sources"]["forward"]

    assert [(ns - START_NS, data) for ns, data, _ in done.packets] == [
        (5_000_000, frames[0][1]),
        (5_010_000, frames[1][1]),
        (5_010_000, frames[2][1]),
        (5_022_500, frames[3][1]),
    ]
    assert (source["reordered"], source["step_back_max_ns"]) == (1, 1000)
    assert source["bytes"] == 64 + 204 + 204 + 64

    done = run(weir_sim, tmp_path, config, "paths.forward.source.filter=greater 100")
    source = done.summary["sources"]["forward"]
    assert (source["packets"], source["filtered"]) == (2, 2)
    assert done.packets[0][0] == START_NS + 5_004_000

    write_pcap(tmp_path / "in.pcap", [(START_NS, ipv4(size, 0)) for size in (1515, 65000)])
    source = run(weir_sim, tmp_path, config).summary["sources"]["forward"]
    # Without a SYN the hosts' MTU is not known: the first may be a jumbo frame.
    assert (source["packets"], source["oversize"]) == (2, 1)
    write_pcap(tmp_path / "in.pcap", [])
    assert run(weir_sim, tmp_path, config).packets == []


def syn(mss: int) -> bytes:
    """Without options but the MSS."""
    options = struct.pack("!BBH", 2, 4, mss)
    tcp = struct.pack("!HHIIBBHHH", 1000, 5001, 0, 0, 6 << 4, 2, 65535, 0, 0) + options
    return ipv4(34 + len(tcp), 0)[:23] + b"\x06" + ipv4(34 + len(tcp), 0)[24:34] + tcp


@pytest.mark.parametrize(
    ("frames", "oversize"),
    [
        # 802.1Q and 802.1ad come on top of 1518 bytes: 1522 and 1526 with FCS are full frames.
        ([syn(1460), b"\x81\0\0\5", b"\x88\xa8\0\6\x81\0\0\5", b""], 0),
        # An MTU of 9000 is what its host's SYN says; so 9014 bytes are a frame, and 9015 are not.
        ([syn(8960), 9014, 9015], 1),
        ([syn(1460), syn(8960), 9014], 0),
        # Where the SYN says 1500, the same is what a host that offloads captures.
        ([syn(1460), 9014, 1514, 1515], 2),
        # Without a SYN it may be either.
        ([9014, 9015], 1),
    ],
)
def test_frames_of_usual_sizes_are_not_oversize(
    weir_sim: Path, tmp_path: Path, frames: list[bytes | int], oversize: int
) -> None:
    """A capture behind a VLAN counted each full frame as oversize."""
    full, written = ipv4(1514, 1), []
    for frame in frames:
        if isinstance(frame, int):
            written.append(ipv4(frame, 1))
        else:
            written.append(frame if len(frame) > 12 else full[:12] + frame + full[12:])
    write_pcap(tmp_path / "in.pcap", [(START_NS + i, frame) for i, frame in enumerate(written)])
    source = run(weir_sim, tmp_path, FIFO).summary["sources"]["forward"]
    assert (source["packets"], source["oversize"]) == (len(frames), oversize)


def test_both_directions_of_one_capture(weir_sim: Path, tmp_path: Path) -> None:
    """Each path takes its own, and the departures of both are in order of time."""
    run(weir_sim, tmp_path, HOSTS, "telemetry.capture=port", out="in")
    config = OFFLINE.replace("in.pcapng}", 'in.pcapng, filter: "dst port 5001"}').replace(
        "reverse: [", 'reverse: [{source: {pcap: in.pcapng, filter: "src port 5001"}}, '
    )
    done = run(weir_sim, tmp_path, config)
    sources = done.summary["sources"]
    times = [ns for ns, _, _ in done.packets]

    assert sources["forward"]["packets"] == sources["reverse"]["filtered"] > 1000
    assert sources["reverse"]["packets"] == sources["forward"]["filtered"] > 1000
    assert times == sorted(times)
    assert len(times) == sum(
        done.summary["ledger"]["paths"][name]["out"]["pkts"] for name in ("forward", "reverse")
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_run_again_from_its_capture(weir_sim: Path, tmp_path: Path) -> None:
    """What entered a path in one run, fed to the next, meets the same fate at the same times."""
    first = run(weir_sim, tmp_path, HOSTS, out="first")
    point = 'frame.interface_name == "forward {}"'
    for name in ("in", "out"):
        argv = ["tshark", "-r", first.pcap, "-Y", point.format(name), "-w", f"{name}.pcapng"]
        subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    second = run(weir_sim, tmp_path, OFFLINE, out="second")
    twice = run(weir_sim, tmp_path, OFFLINE, out="twice")

    assert len(second.packets) > 3000
    assert second.packets == read_pcapng(tmp_path / "out.pcapng")
    assert second.records("packets").tobytes() == first.records("packets").tobytes()
    for field in ("ts_ns", "flow_id", "pkt_id", "size_bytes", "event", "ecn"):
        assert np.array_equal(second.records("arrivals")[field], first.records("arrivals")[field])
    assert twice.pcap.read_bytes() == second.pcap.read_bytes()
    assert twice.summary["digest"] == second.summary["digest"]
    bad = ["tshark", "-r", second.pcap, "-Y", "_ws.malformed || ip.checksum.status == 0"]
    assert subprocess.run(bad, capture_output=True, check=True, timeout=60).stdout == b""
    assert sum("CE marked" in comment for _, _, comment in second.packets) > 10
    assert all(
        (data[15] & 3 == 3) == ("CE marked" in comment) for _, data, comment in second.packets
    )


def test_a_run_that_ends_before_its_capture(sim: Program, tmp_path: Path) -> None:
    """It says so, and its recording of arrivals is replayed like any other."""
    write_pcap(tmp_path / "in.pcap", [(START_NS + i * 10**6, ipv4(1000, i)) for i in range(100)])
    words = ("-o", "duration=50ms", "-o", "telemetry.arrivals=yes", "--out")
    done = sim(FIFO, *words, "a")
    assert sim(FIFO, *words, "b", "--replay", "a/arrivals.ring").returncode == 0
    summary = json.loads((tmp_path / "a/summary.json").read_text())
    first, second = (open_ring(tmp_path / run / "packets.ring").records for run in "ab")

    assert done.stderr == (
        "weir-sim: warning: x.yaml:5:15: source: the capture's end is never reached: "
        "the run ends after 0.05 s\n"
    )
    source = summary["sources"]["forward"]
    assert (source["packets"], source["ended"]) == (50, False)
    assert len(first) > 90
    assert second.tobytes() == first.tobytes()


def test_a_capture_without_a_packet_says_so(sim: Program, tmp_path: Path) -> None:
    """The flows of a capture are not known before it is read: a sample may have none of them."""
    write_pcap(tmp_path / "in.pcap", [(START_NS, ipv4(100, 0))])
    for more, sentence in {
        ("-o", "telemetry={level: 2, sample: 0%}"): (
            "weir-sim: warning: --pcap out.pcapng: no packet was captured: telemetry level 2 "
            "samples the flows, and packets of none of them came\n"
        ),
        ("-o", "paths.forward.source.filter=tcp"): (
            "weir-sim: warning: --pcap out.pcapng: no packet was captured\n"
        ),
        ("-o", "telemetry.level=1"): "",
    }.items():
        done = sim(FIFO, "--out", "out", "--pcap", "out.pcapng", *more, "--force")
        assert (done.returncode, done.stderr) == (0, sentence)


def test_a_source_that_cannot_be(sim: Program, tmp_path: Path) -> None:
    """One sentence with the place, before anything runs."""
    write_pcap(tmp_path / "in.pcap", [(START_NS, ipv4(100, 0))])
    write_pcap(tmp_path / "raw.pcap", [(START_NS, ipv4(100, 0))], link_type=101)
    (tmp_path / "text.pcap").write_text("no capture at all, but long enough for its header")
    key = "paths.forward.source."
    for override, sentence in {
        f"{key}pcap=none.pcap": (
            "source: pcap: none.pcap: cannot be opened: No such file or directory; its name is "
            "relative to the working directory\n"
        ),
        f"{key}pcap=text.pcap": "source: pcap: text.pcap: not a capture: it begins like neither",
        f"{key}pcap=raw.pcap": "source: pcap: raw.pcap: its link type is 101, and only Ethernet",
        f"{key}filter=no no": "source: filter: 'no no': can't parse filter expression",
        f"{key}scale=0": "scale: 0 is not in",
        f"{key}file=x": "source: unknown key 'file'",
        "flows=[{cc: copa}]": "forward: source: a run has either flows or captures as its traffic",
        "paths.forward=[{source: {pcap: in.pcap}}]": "forward: no stage follows the source",
        "paths.forward=[{source: {}}, {delay: {delay: 1ms}}]": "source: pcap is required",
        "stop.metric=jfi": "stop: what it waits for are figures of flows",
    }.items():
        sim.refuse(FIFO, sentence, "-o", override)


def test_a_capture_that_is_cut(sim: Program, tmp_path: Path) -> None:
    """The run is of what came until then, and says so: tcpdump may have been killed."""
    write_pcap(tmp_path / "in.pcap", [(START_NS + i, ipv4(100, i)) for i in range(3)])
    data = (tmp_path / "in.pcap").read_bytes()
    (tmp_path / "in.pcap").write_bytes(data[:-50])
    done = sim(FIFO, "--out", "out")
    summary = json.loads((tmp_path / "out/summary.json").read_text())

    sentence = "in.pcap: ends in the middle of a record, which begins at byte 256"
    assert done.returncode == 0
    assert done.stderr == f"weir-sim: warning: {sentence}\n"
    assert summary["verdict"] == sentence
    assert summary["ledger"]["balanced"]
    assert summary["sources"]["forward"]["packets"] == 2


def test_a_clock_that_was_set_back(sim: Program, tmp_path: Path) -> None:
    """What is stamped earlier than frames before arrives at once: the run says so."""
    second = 10**9
    frames = [(START_NS + i * 10**6, ipv4(100, i)) for i in range(10)]
    frames += [(ns - 3 * second, data) for ns, data in frames]
    write_pcap(tmp_path / "in.pcap", frames)
    done = sim(FIFO, "--out", "out")
    summary = json.loads((tmp_path / "out/summary.json").read_text())

    sentence = (
        "in.pcap: 10 frames are stamped earlier than one before them, by up to 3.009 s, and "
        "arrived with it: sort the capture by time (reordercap), or cut it where its clock was set "
        "back"
    )
    assert (done.returncode, done.stderr) == (0, f"weir-sim: warning: {sentence}\n")
    assert summary["verdict"] == sentence
    assert summary["sources"]["forward"]["reordered"] == 10


@pytest.mark.parametrize("tag", [b"", b"\x81\0\0\5", b"\x88\xa8\0\6\x81\0\0\5"])
def test_frames_that_were_cut_have_their_length_from_ip(
    weir_sim: Path, tmp_path: Path, tag: bytes
) -> None:
    """The file has the captured length as the frame's: queues count what was on the wire."""
    whole = [ipv4(1000, i) for i in range(5)]
    whole = [frame[:12] + tag + frame[12:] for frame in whole]
    cut = [(START_NS + i * 10**7, frame[:64]) for i, frame in enumerate(whole)]
    write_pcap(tmp_path / "in.pcap", cut)
    done = run(weir_sim, tmp_path, FIFO)
    source = done.summary["sources"]["forward"]
    assert (source["packets"], source["lengths_from_ip"]) == (5, 5)
    assert source["bytes"] == 5 * (1000 + len(tag) + 4)
    # 10 Mbit/s and 5 ms: the time on the link is that of the whole frame.
    bits = (1000 + len(tag)) * 8
    assert done.packets[0][0] - START_NS == 5_000_000 + bits * 100


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_a_compressed_capture(weir_sim: Path, tmp_path: Path, how: str) -> None:
    """As `weir pcap` reads it; its name does not matter."""
    write_pcap(tmp_path / "in.pcap", [(START_NS + i, ipv4(100, i)) for i in range(300)])
    plain = run(weir_sim, tmp_path, FIFO, out="plain")
    data = (tmp_path / "in.pcap").read_bytes()
    packed = subprocess.run([how, "-c"], input=data, capture_output=True, check=True).stdout
    (tmp_path / "in.pcap").write_bytes(packed)
    done = run(weir_sim, tmp_path, FIFO)
    assert done.packets == plain.packets
    assert done.summary["digest"] == plain.summary["digest"]


def test_interfaces_of_other_link_types(weir_sim: Path, tmp_path: Path) -> None:
    """Their frames are left out and counted."""

    def block(kind: int, body: bytes) -> bytes:
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    def packet(interface: int, data: bytes) -> bytes:
        head = struct.pack("<IIIII", interface, 0, 1000, len(data), len(data))
        return block(6, head + data + bytes(-len(data) % 4))

    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    parts += [block(1, struct.pack("<HHI", link_type, 0, 0)) for link_type in (1, 101)]
    frame = ipv4(100, 0)
    (tmp_path / "in.pcap").write_bytes(
        b"".join([*parts, packet(0, frame), packet(1, frame[14:]), packet(0, frame)])
    )
    source = run(weir_sim, tmp_path, FIFO).summary["sources"]["forward"]
    assert (source["packets"], source["not_ethernet"]) == (2, 1)


def test_a_live_switch_checks_its_captures(weir_switch: Path, tmp_path: Path) -> None:
    """What a config may say of them, and one sentence with the place for what it may not."""
    write_pcap(tmp_path / "in.pcap", [(START_NS, ipv4(100, 0))])
    live = (
        "lcores: [0], ports: [{name: a, dev: net_null0}, {name: b, dev: net_null1, path: forward}]"
    )
    (tmp_path / "x.yaml").write_text(f"{FIFO}live: {{switch: {{{live}}}}}\n")
    for override, status, sentence in [
        ("seed=1", 0, ""),
        (
            "flows=[{cc: copa}]",
            2,
            "weir-switch: x.yaml:5:7: forward: source: a run has either flows or captures as its "
            "traffic\n",
        ),
        (
            "live.switch.lcores=[0, 1]",
            2,
            "weir-switch: -o live.switch.lcores=[0, 1]: lcores: 2 CPUs are named, but where a path "
            "has a source, one lcore serves all paths: name one CPU\n",
        ),
        (
            "paths.forward.source.pcap=none.pcap",
            2,
            "weir-switch: x.yaml:5:15: source: pcap: none.pcap: cannot be opened: No such file or "
            "directory; its name is relative to the working directory\n",
        ),
    ]:
        argv = [weir_switch, "x.yaml", "--check", "-o", override]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (status, sentence), override

# SPDX-License-Identifier: BSD-3-Clause
"""The packets stream as pcapng: what happened to each packet, for Wireshark and tshark.

Of a packet the records know its size, its flow, its ECN bits and its number; of the flow, addresses
and ports. A frame is therefore an IPv4 header and the two ports of TCP, 24 bytes, captured of a
packet of its original length: there are no sequence numbers and no payload, and Wireshark calls it
"packet size limited during capture". The sender's MSS decides whether a packet has data, so nothing
is said of that. Addresses are 0.0.0.0 where the run recorded no flows. Flows of IPv6 have
the IPv4 addresses that are the last 32 bits of theirs; `--pcap` writes them as they are.

A packet is a frame for each thing that happened to it, on an interface that says what: "forward
link 0 enqueue", "forward link 0 drop queue_full". epb_packetid is the number of the path times 2^32
plus pkt_id: the same packet has the same number on all interfaces, and its low half is the IPv4
identification. Frames are in the order of the file: those of an interface by time, but one link may
be ahead of another by what it had queued.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from weir import routes
from weir.analysis.folder import Run
from weir.analysis.header import NO_LINK
from weir.analysis.stream import Batch, Stream
from weir.export.tables import selected

LINKTYPE_IPV4 = 228
ETHERNET_BYTES = 18  # header and FCS: counted in size_bytes, not in the frame
_HEADER = struct.Struct("<IIIHHqI")  # section header block
_FRAME = np.dtype(  # enhanced packet block with one option
    [
        ("type", "<u4"),
        ("length", "<u4"),
        ("interface", "<u4"),
        ("time_high", "<u4"),
        ("time_low", "<u4"),
        ("captured", "<u4"),
        ("original", "<u4"),
        ("version", "u1"),
        ("tos", "u1"),
        ("total", ">u2"),
        ("id", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("source", ">u4"),
        ("destination", ">u4"),
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
        ("option", "<u2"),
        ("option_length", "<u2"),
        ("packet_id", "<u8"),
        ("end", "<u4"),
        ("trailing_length", "<u4"),
    ]
)
_CAPTURED = 24
_ENDPOINTS = np.dtype(
    [("src_ip", "u4"), ("dst_ip", "u4"), ("src_port", "u2"), ("dst_port", "u2"), ("group", "u2")]
)


def write(run: Run, path: Path, flows: Sequence[int]) -> None:
    """Writes the packets of a run. UserError: they were not recorded (level 2 or 3)."""
    packets = run.packets
    paths = list(run.config.get("paths", {}))
    ends = endpoints(run)
    back = routes.backward(run.config)
    with path.open("wb") as file:
        file.write(_HEADER.pack(0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28))
        interfaces: dict[int, int] = {}  # by what happened: their numbers
        for batch in selected(packets, flows):
            numbers = _interfaces(file, packets, batch, paths, interfaces)
            frames(batch, numbers, run.start_utc_ns, ends, back).tofile(file)


def endpoints(run: Run) -> npt.NDArray[Any]:
    """Addresses, ports and group by flow; zeros where they are not known."""
    if "flows" not in run.streams or len(run.flows) == 0:
        return np.zeros(1, _ENDPOINTS)
    flow = run.flows["flow_id"]
    known = np.zeros(int(flow.max()) + 2, _ENDPOINTS)  # the last one stays unknown
    for name in _ENDPOINTS.names or ():
        known[name][flow] = run.flows[name]
    return known


def _interfaces(
    file: BinaryIO, packets: Stream, batch: Batch, paths: Sequence[str], known: dict[int, int]
) -> npt.NDArray[np.uint32]:
    """The interface of each packet; blocks of new ones are written."""
    parts = [batch[name].astype(np.uint32) for name in ("path", "link", "event", "reason")]
    codes = parts[0] << np.uint32(24) | parts[1] << np.uint32(16) | parts[2] << np.uint32(8)
    distinct, where = np.unique(codes | parts[3], return_inverse=True)
    for code in distinct.tolist():
        if code not in known:
            known[code] = len(known)
            file.write(_interface(name_of(packets, paths, *code.to_bytes(4, "big"))))
    return np.array([known[code] for code in distinct.tolist()], np.uint32)[where]


def name_of(
    packets: Stream, paths: Sequence[str], path: int, link: int, event: int, reason: int
) -> str:
    """What happened, and where."""
    events = {number: name for name, number in packets.field("event").values.items()}
    reasons = {number: name for name, number in packets.field("reason").values.items()}
    words = [paths[path] if path < len(paths) else f"path {path}"]
    words += [] if link == NO_LINK else [f"link {link}"]
    words.append(events.get(event, f"event {event}"))
    words += [reasons.get(reason, f"reason {reason}")] if reason else []
    return " ".join(words)


def _interface(name: str) -> bytes:
    """An interface description block: its name, and times in ns."""
    text = name.encode()
    padded = text + bytes(-len(text) % 4)
    options = struct.pack("<HH", 2, len(text)) + padded + struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0)
    length = 20 + len(options)
    head = struct.pack("<IIHHI", 1, length, LINKTYPE_IPV4, 0, 0)
    return head + options + struct.pack("<I", length)


def frames(
    batch: Batch,
    interfaces: npt.NDArray[np.uint32],
    start_ns: int,
    ends: npt.NDArray[Any],
    back_paths: npt.NDArray[np.bool_],
) -> npt.NDArray[np.void]:
    """A block for each packet, shape (n,). `back_paths`: those of ACKs, by group and path."""
    made = np.zeros(len(batch), _FRAME)
    made["type"], made["length"], made["trailing_length"] = 6, _FRAME.itemsize, _FRAME.itemsize
    made["interface"] = interfaces
    times = batch["ts_ns"] + np.uint64(start_ns)
    made["time_high"], made["time_low"] = times >> np.uint64(32), times & np.uint64(0xFFFFFFFF)
    length = np.maximum(batch["size_bytes"].astype(np.int64) - ETHERNET_BYTES, _CAPTURED)
    made["captured"], made["original"], made["total"] = _CAPTURED, length, length
    made["version"], made["tos"], made["ttl"], made["protocol"] = 0x45, batch["ecn"], 64, 6
    made["id"] = batch["pkt_id"] & np.uint32(0xFFFF)
    of = ends[np.minimum(batch["flow_id"], len(ends) - 1)]
    group = np.minimum(of["group"], len(back_paths) - 1)
    back = back_paths[group, np.minimum(batch["path"], back_paths.shape[1] - 1)]
    made["source"] = np.where(back, of["dst_ip"], of["src_ip"])
    made["destination"] = np.where(back, of["src_ip"], of["dst_ip"])
    made["source_port"] = np.where(back, of["dst_port"], of["src_port"])
    made["destination_port"] = np.where(back, of["src_port"], of["dst_port"])
    made["checksum"] = checksum(made)
    made["option"], made["option_length"] = 5, 8
    made["packet_id"] = batch["path"].astype(np.uint64) << np.uint64(32) | batch["pkt_id"]
    return made


def checksum(made: npt.NDArray[np.void]) -> npt.NDArray[np.uint32]:
    """Of the IPv4 headers (RFC 791): the ones' complement of the sum of their 16-bit words."""
    total: npt.NDArray[np.uint32] = made["version"].astype(np.uint32) << np.uint32(8)
    total += made["tos"]
    total += made["total"].astype(np.uint32) + made["id"]
    total += (made["ttl"].astype(np.uint32) << np.uint32(8)) + made["protocol"]
    for name in ("source", "destination"):
        address = made[name].astype(np.uint32)
        total += (address >> np.uint32(16)) + (address & np.uint32(0xFFFF))
    for _ in range(2):
        total = (total & np.uint32(0xFFFF)) + (total >> np.uint32(16))
    return ~total & np.uint32(0xFFFF)

# SPDX-License-Identifier: BSD-3-Clause
"""The packets stream as pcapng: what happened to each packet, for Wireshark and tshark.

Of a packet the records know its size, its flow, its ECN bits and its number; of the flow, addresses
and ports; the config knows the version of IP and the DSCP of the flow's group. A frame is therefore
a header of IPv4 or IPv6 and the two ports of TCP, 24 or 44 bytes, captured of a packet of its
original length: there are no sequence numbers and no payload, and Wireshark calls it "packet size
limited during capture". The sender's MSS decides whether a packet has data, so nothing is said of
that. Addresses are 0.0.0.0 where the run recorded no flows.

A packet is a frame for each thing that happened to it, on an interface that says what: "forward
link 0 enqueue", "forward link 0 drop queue_full". epb_packetid is the number of the path times 2^32
plus pkt_id: the same packet has the same number on all interfaces, and its low half is the
identification of IPv4. Frames are in the order of the file: those of an interface by time, but one
link may be ahead of another by what it had queued.

A frame's comment (opt_comment, `frame.comment` in tshark) has what the record says besides:
"drop queue_full, queue 151800 B, sojourn 0.000 us, CE".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.analysis import routes
from weir.analysis.folder import Run
from weir.analysis.header import NO_LINK
from weir.analysis.stream import Batch, Stream
from weir.export.tables import selected

LINKTYPE_RAW = 101  # IPv4 or IPv6, by the first four bits
ETHERNET_BYTES = 18  # header and FCS: counted in size_bytes, not in the frame
IPV6_PREFIX = (0x20010002, 0, 0)  # routes.host_address: an address is the last 32 bits
_SECTION = struct.Struct("<IIIHHqI")  # section header block
_HEAD = np.dtype(  # of an enhanced packet block
    [(name, "<u4") for name in ("type", "length", "interface", "time_high", "time_low")]
    + [("captured", "<u4"), ("original", "<u4")]
)
_IPV4 = np.dtype(
    [
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
    ]
)
_IPV6 = np.dtype(
    [
        ("version", ">u4"),  # and traffic class
        ("payload", ">u2"),
        ("protocol", "u1"),
        ("ttl", "u1"),
        ("source", ">u4", 4),
        ("destination", ">u4", 4),
    ]
)
_PORTS = np.dtype([("source", ">u2"), ("destination", ">u2")])
_IDENTIFIED = np.dtype([("option", "<u2"), ("size", "<u2"), ("packet_id", "<u8")])
_OPTION = np.dtype([("option", "<u2"), ("size", "<u2")])
_END = np.dtype([("end", "<u4"), ("length", "<u4")])
TCP, TTL = 6, 64
BLOCK_BYTES = sum(of.itemsize for of in (_HEAD, _OPTION, _IDENTIFIED, _END))
PADS = pa.array([b"\0" * count for count in range(4)])
PIECE = 100_000  # packets whose blocks are made at a time: each needs some 600 bytes meanwhile
CE = 3
Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_ENDPOINTS = np.dtype(
    [("src_ip", "u4"), ("dst_ip", "u4"), ("src_port", "u2"), ("dst_port", "u2"), ("group", "u2")]
)


def write(run: Run, path: Path, flows: Sequence[int]) -> None:
    """Writes the packets of a run. UserError: they were not recorded (level 2 or 3)."""
    packets = run.packets
    paths = list(run.config.get("paths", {}))
    known = Known(
        run.start_utc_ns,
        endpoints(run),
        routes.backward(run.config),
        np.array([*routes.is_ipv6(run.config), False]),
        np.array([*(int(g.get("dscp", 0)) for g in routes.groups(run.config)), 0], np.uint8),
    )
    with path.open("wb") as file:
        file.write(_SECTION.pack(0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28))
        interfaces: dict[int, int] = {}  # by what happened: their numbers
        for batch in selected(packets, flows):
            for some in batch.batches(PIECE):
                codes, where = codes_of(some)
                words = [
                    words_of(packets, paths, *code.to_bytes(4, "big")) for code in codes.tolist()
                ]
                numbers = _interfaces(file, codes, words, interfaces)
                happened = pa.array([" ".join(of[1:]) for of in words]).take(where)
                file.write(blocks(some, numbers[where], happened, known))


@dataclass(frozen=True)
class Known:
    """Facts of a run that all its blocks need."""

    start_ns: int
    ends: npt.NDArray[np.void]
    backward: Mask  # by group and path: those of ACKs
    ipv6: Mask  # by group, and False at the end
    dscp: Bytes  # likewise


def endpoints(run: Run) -> npt.NDArray[np.void]:
    """Returns addresses, ports and group by flow; zeros where they are not known."""
    if "flows" not in run.streams or len(run.flows) == 0:
        return np.zeros(1, _ENDPOINTS)
    flow = run.flows["flow_id"]
    known = np.zeros(int(flow.max()) + 2, _ENDPOINTS)  # the last one stays unknown
    for name in _ENDPOINTS.names or ():
        known[name][flow] = run.flows[name]
    return known


def codes_of(batch: Batch) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.intp]]:
    """Returns distinct codes (bytes: path, link, event, reason) and each record's index in them."""
    parts = [batch[name].astype(np.uint32) for name in ("path", "link", "event", "reason")]
    codes = parts[0] << np.uint32(24) | parts[1] << np.uint32(16) | parts[2] << np.uint32(8)
    return np.unique(codes | parts[3], return_inverse=True)


def _interfaces(
    file: BinaryIO,
    codes: npt.NDArray[np.uint32],
    words: Sequence[Sequence[str]],
    known: dict[int, int],
) -> npt.NDArray[np.uint32]:
    """Returns the interface of each code; blocks of new ones are written."""
    for code, of in zip(codes.tolist(), words, strict=True):
        if code not in known:
            known[code] = len(known)
            file.write(_interface(" ".join(of)))
    return np.array([known[code] for code in codes.tolist()], np.uint32)


def words_of(
    packets: Stream, paths: Sequence[str], path: int, link: int, event: int, reason: int
) -> list[str]:
    """Returns the place, the event and, where there is one, the reason of a code as words."""
    events = {number: name for name, number in packets.field("event").values.items()}
    reasons = {number: name for name, number in packets.field("reason").values.items()}
    place = paths[path] if path < len(paths) else f"path {path}"
    words = [place if link == NO_LINK else f"{place} link {link}"]
    words.append(events.get(event, f"event {event}"))
    return words + ([reasons.get(reason, f"reason {reason}")] if reason else [])


def _interface(name: str) -> bytes:
    """Returns an interface description block: its name, and times in ns."""
    text = name.encode()
    padded = text + bytes(-len(text) % 4)
    options = struct.pack("<HH", 2, len(text)) + padded + struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0)
    length = 20 + len(options)
    head = struct.pack("<IIHHI", 1, length, LINKTYPE_RAW, 0, 0)
    return head + options + struct.pack("<I", length)


def blocks(
    batch: Batch, interfaces: npt.NDArray[np.uint32], happened: pa.Array, known: Known
) -> pa.Buffer:
    """Returns an enhanced packet block for each packet; happened: the beginnings of comments."""
    of = known.ends[np.minimum(batch["flow_id"], len(known.ends) - 1)]
    group = np.minimum(of["group"], len(known.backward) - 1)
    back = known.backward[group, np.minimum(batch["path"], known.backward.shape[1] - 1)]
    six = known.ipv6[np.minimum(of["group"], len(known.ipv6) - 1)]
    tos = known.dscp[np.minimum(of["group"], len(known.dscp) - 1)] << np.uint8(2) | batch["ecn"]
    ends = [np.where(back, of[b], of[a]) for a, b in (("src_ip", "dst_ip"), ("dst_ip", "src_ip"))]
    ports = np.zeros(len(batch), _PORTS)
    ports["source"] = np.where(back, of["dst_port"], of["src_port"])
    ports["destination"] = np.where(back, of["src_port"], of["dst_port"])
    text = comments(batch, happened)
    sizes = pc.binary_length(text).to_numpy()
    padding = -sizes % 4
    captured = np.where(six, _IPV6.itemsize, _IPV4.itemsize) + _PORTS.itemsize
    length = np.maximum(batch["size_bytes"].astype(np.int64) - ETHERNET_BYTES, captured)
    option, identified = np.zeros(len(batch), _OPTION), np.zeros(len(batch), _IDENTIFIED)
    option["option"], option["size"] = 1, sizes
    identified["option"], identified["size"] = 5, 8
    identified["packet_id"] = batch["path"].astype(np.uint64) << np.uint64(32) | batch["pkt_id"]
    head, end = np.zeros(len(batch), _HEAD), np.zeros(len(batch), _END)
    whole = captured + sizes + padding + BLOCK_BYTES
    head["type"], head["length"], end["length"] = 6, whole, whole
    head["interface"], head["captured"], head["original"] = interfaces, captured, length
    times = batch["ts_ns"] + np.uint64(known.start_ns)
    head["time_high"], head["time_low"] = times >> np.uint64(32), times & np.uint64(0xFFFFFFFF)
    four, version6 = ipv4(length, tos, batch["pkt_id"], ends), ipv6(length, tos, ends)
    made = pc.binary_join_element_wise(
        as_bytes(head),
        pc.if_else(six, as_bytes(version6), as_bytes(four)),
        *(as_bytes(ports), as_bytes(option), text, PADS.take(padding)),
        *(as_bytes(identified), as_bytes(end), b""),
    )
    return made.buffers()[2]


def as_bytes(made: npt.NDArray[np.void]) -> pa.Array:
    kind = pa.binary(made.dtype.itemsize)
    return pa.Array.from_buffers(kind, len(made), [None, pa.py_buffer(made)]).cast(pa.binary())


def comments(batch: Batch, happened: pa.Array) -> pa.Array:
    """Returns a comment per record."""
    queued, sojourn = batch["queue_bytes"], batch["sojourn_ns"]
    us, ns = (pa.array(part).cast(pa.string()) for part in divmod(sojourn, np.uint64(1000)))
    marked = pc.if_else(batch["ecn"] == CE, ", CE", "")
    return pc.binary_join_element_wise(
        *(happened, ", queue ", pa.array(queued).cast(pa.string()), " B, sojourn "),
        *(us, ".", pc.utf8_lpad(ns, 3, "0"), " us", marked, ""),
    ).cast(pa.binary())


def ipv4(
    length: Numbers, tos: Bytes, number: npt.NDArray[np.uint32], ends: Sequence[Numbers]
) -> npt.NDArray[np.void]:
    """Returns IPv4 headers; length: bytes of packets, ends: source and destination addresses."""
    made = np.zeros(len(length), _IPV4)
    made["version"], made["tos"], made["ttl"], made["protocol"] = 0x45, tos, TTL, TCP
    made["total"], made["id"] = length, number & np.uint32(0xFFFF)
    made["source"], made["destination"] = ends
    made["checksum"] = checksum(made)
    return made


def ipv6(length: Numbers, tos: Bytes, ends: Sequence[Numbers]) -> npt.NDArray[np.void]:
    """Returns IPv6 headers; length: bytes of packets, ends: source and destination addresses."""
    made = np.zeros(len(length), _IPV6)
    made["version"] = np.uint32(6 << 28) | tos.astype(np.uint32) << np.uint32(20)
    made["payload"], made["protocol"], made["ttl"] = length - _IPV6.itemsize, TCP, TTL
    for name, address in zip(("source", "destination"), ends, strict=True):
        made[name][:, :3], made[name][:, 3] = IPV6_PREFIX, address
    return made


def checksum(made: npt.NDArray[np.void]) -> npt.NDArray[np.uint32]:
    """Returns the checksums of IPv4 headers (RFC 791).

    That is the ones' complement of the ones' complement sum of a header's 16-bit words.
    """
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

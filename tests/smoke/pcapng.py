# SPDX-License-Identifier: BSD-3-Clause
"""What is in a capture that weir-switch wrote: pcapng, little endian, nanoseconds."""

import struct


def blocks(data):
    """Type and bytes of each block."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert struct.unpack_from("<I", data, at + size - 4) == (size,)
        yield kind, data[at : at + size]
        at += size


def packets(data, interface):
    """Time, bytes, comment and number in the path of the packets of an interface."""
    found = []
    for kind, block in blocks(data):
        if kind != 6 or struct.unpack_from("<I", block, 8) != (interface,):
            continue
        high, low, captured = struct.unpack_from("<III", block, 12)
        options, at = {}, 28 + (captured + 3 & ~3)
        while at < len(block) - 4:
            code, size = struct.unpack_from("<HH", block, at)
            options[code] = block[at + 4 : at + 4 + size]
            at += 4 + (size + 3 & ~3)
        number = struct.unpack("<Q", options.get(5, bytes(8)))[0] & 0xFFFFFFFF
        text = options.get(1, b"").decode()
        found.append((high << 32 | low, block[28 : 28 + captured], text, number))
    return found


def chosen(data, choose):
    """The capture with those packets only for which choose(interface, time) is true."""

    def stays(block):
        interface, high, low = struct.unpack_from("<III", block, 8)
        return choose(interface, high << 32 | low)

    return b"".join(block for kind, block in blocks(data) if kind != 6 or stays(block))


def only(data, interface):
    """The capture without the packets of other interfaces."""
    return chosen(data, lambda number, _: number == interface)


def is_transport(frame):
    """TCP or UDP over IPv4."""
    return frame[12:14] == b"\x08\x00" and frame[23] in (6, 17)

# SPDX-License-Identifier: BSD-3-Clause
"""A kernel's TCP as the peer of weir-sender, run as a child of the smoke tests.

peer.py sink PORT CONNECTIONS    accepts, reads to the end of each, prints what came
peer.py sink6 PORT CONNECTIONS   likewise, connections of IPv6 too
peer.py source ADDRESS PORT CONNECTIONS BYTES [CONGESTION]    connects, sends, waits for the FIN
peer.py bulk ADDRESS PORT CONGESTION SECONDS    sends that long, prints samples of TCP_INFO
"""

import json
import selectors
import socket
import struct
import sys
import time

# Below what the buffer gives: else Linux acknowledges no further than this process has read.
WINDOW_MAX = 1 << 21


def sink(port, connections, **both):
    """Counts the bytes of each connection; all must be zeros, and end with a FIN."""
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("", port), backlog=1024, **both)
    selector.register(listener, selectors.EVENT_READ)
    print("listening", flush=True)
    counts, ended, zeros = {}, 0, True
    while ended < connections:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, WINDOW_MAX)
                counts[client] = 0
                selector.register(client, selectors.EVENT_READ)
                continue
            data = key.fileobj.recv(1 << 16)
            counts[key.fileobj] += len(data)
            zeros = zeros and not data.strip(b"\0")
            if not data:
                selector.unregister(key.fileobj)
                key.fileobj.shutdown(socket.SHUT_WR)
                ended += 1
    print(json.dumps({"bytes": list(counts.values()), "zeros": zeros}), flush=True)


def source(address, port, connections, size, congestion=None):
    """Sends over several connections at a time; each ends when the peer has all of it."""
    selector = selectors.DefaultSelector()
    left = {}
    for _ in range(connections):
        client = socket.create_connection((address, port), timeout=60)
        if congestion is not None:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        client.setblocking(False)
        left[client] = size
        selector.register(client, selectors.EVENT_WRITE)
    while left:
        for key, _ in selector.select():
            client = key.fileobj
            if left[client] > 0:
                left[client] -= client.send(bytes(min(left[client], 1 << 16)))
                if left[client] == 0:
                    client.shutdown(socket.SHUT_WR)
                    selector.modify(client, selectors.EVENT_READ)
                continue
            if not client.recv(1):
                selector.unregister(client)
                client.close()
                del left[client]
    print("done", flush=True)


TCP_INFO = struct.Struct("8x24I4Q")  # as far as bytes_received
SAMPLE_S = 0.005


def tcp_info(client):
    """What the kernel says of a connection; times in us, windows in segments."""
    fields = TCP_INFO.unpack(client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size))
    return {
        "rtt": fields[15],
        "ssthresh": fields[17],
        "cwnd": fields[18],
        "retransmits": fields[23],
        "acked": fields[26],
    }


def bulk(address, port, congestion, seconds):
    """One connection with always something to send, looked at every 5 ms."""
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    client.connect((address, port))
    client.setblocking(False)
    selector = selectors.DefaultSelector()
    selector.register(client, selectors.EVENT_WRITE)
    zeros, samples, start = bytes(1 << 18), [], time.monotonic()
    now = start
    while now < start + seconds:
        due = start + len(samples) * SAMPLE_S
        if now >= due:
            samples.append({"at": now - start, **tcp_info(client)})
        elif selector.select(due - now):
            client.send(zeros)
        now = time.monotonic()
    samples.append({"at": now - start, **tcp_info(client)})
    client.setblocking(True)
    client.shutdown(socket.SHUT_WR)
    client.recv(1)
    print(json.dumps(samples), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "sink":
        sink(*map(int, sys.argv[2:4]))
    elif sys.argv[1] == "sink6":
        sink(*map(int, sys.argv[2:4]), family=socket.AF_INET6, dualstack_ipv6=True)
    elif sys.argv[1] == "bulk":
        bulk(sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
    else:
        source(sys.argv[2], *map(int, sys.argv[3:6]), *sys.argv[6:])

# SPDX-License-Identifier: BSD-3-Clause
"""Sends the frames of a file, a line of hexadecimal digits each, in turn and at a fixed rate.

frames_sent.py INTERFACE FILE FRAMES_PER_S SECONDS
"""

import socket
import sys
import time
from pathlib import Path

SO_SNDBUFFORCE = 32  # socket(7); Python has no name for it

interface, file, rate, seconds = (
    sys.argv[1],
    sys.argv[2],
    float(sys.argv[3]),
    float(sys.argv[4]),
)
frames = [bytes.fromhex(line) for line in Path(file).read_text().split()]
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)  # no queue keeps it from sending
out.bind((interface, 0))
start, sent = time.monotonic(), 0
while (now := time.monotonic() - start) < seconds:
    while sent < now * rate:
        out.send(frames[sent % len(frames)])
        sent += 1
    time.sleep(0.001)

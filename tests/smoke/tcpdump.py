# SPDX-License-Identifier: BSD-3-Clause
"""Captures that tcpdump makes in a lab, read by tshark."""

import re
import signal
from collections import defaultdict

from lab import sh, wait_for


class Capture:
    """What passes an interface that no program polls, for tshark; with room for all of a test."""

    def __init__(self, lab, space, interface, *, what="tcp", snap=0):
        self.path = lab.tmp / f"{space}-{interface}.pcap"
        options = ["--immediate-mode", "-B", "65536", "-Z", "root"]
        options += ["-s", snap, "--time-stamp-precision=nano"]
        argv = ["tcpdump", "-i", interface, "-w", self.path, *options]
        self.child = lab.host(space, *argv, what)
        wait_for(lambda: any("listening" in line for line in self.child.err), "tcpdump")

    def close(self):
        """Once the programs have ended, which poll both CPUs."""
        wait_for(self.wrote_all, "tcpdump to write what it received")
        self.child.send(signal.SIGINT)
        self.child.wait()
        assert any(re.match(r"0 packets dropped", line) for line in self.child.err)

    def wrote_all(self):
        """tcpdump's answer to SIGUSR1: '9 packets captured, 9 packets received by filter, ...'."""
        said = len(self.child.err)
        self.child.send(signal.SIGUSR1)
        wait_for(lambda: len(self.child.err) > said, "tcpdump's counts")
        counts = re.search(r"(\d+) packets? captured, (\d+) packets? rec", self.child.err[-1])
        return counts and counts[1] == counts[2]

    def malformed(self):
        # A sum of 0 is written as 0xffff by Linux: the same number in ones' complement (RFC 1624).
        bad = 'tcp.checksum.status == "Bad" && tcp.checksum != 0xffff'
        return rows(
            self.path,
            f'_ws.malformed || ({bad}) || ip.checksum.status == "Bad"',
            "frame.number",
        )


def rows(path, condition, *fields):
    """Packets of a capture that a display filter chooses, some of their fields."""
    wanted = [arg for field in fields for arg in ("-e", field)]
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    argv = ["tshark", "-r", path, *checks, "-Y", condition, "-T", "fields", *wanted]
    return [line.split("\t") for line in sh(*argv, timeout=60).splitlines()]


def retransmissions(path, port):
    """Segments towards a port that begin with a byte that was there before."""
    top, second = defaultdict(int), 0
    condition = f"tcp.dstport == {port} && (tcp.len > 0 || tcp.flags.fin == 1)"
    for stream, start, end in rows(path, condition, "tcp.stream", "tcp.seq", "tcp.nxtseq"):
        second += int(start) < top[stream]
        top[stream] = max(top[stream], int(end))
    return second

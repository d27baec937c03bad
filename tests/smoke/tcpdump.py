# SPDX-License-Identifier: BSD-3-Clause
"""Captures that tcpdump makes in a lab, read by tshark."""

import re
import signal
from collections import defaultdict

from lab import sh, wait_for


class Capture:
    """What passes an interface that no program polls, for tshark; with room for all of a test."""

    def __init__(self, lab, space, interface, *options, what="tcp", snap=0, name="", many=False):
        self.path = lab.tmp / f"{name or f'{space}-{interface}'}.pcap"
        # A loopback's packet passes the filter on its way out and in; libpcap writes it once.
        self.passes = 2 if interface == "lo" else 1
        argv = ["tcpdump", "-i", interface, "-w", self.path, "-Z", "root", "-s", snap]
        # At once, each packet has a place of the snap length, 64 KB with offloads; else blocks that
        # are handed over after a second.
        argv += ["-B", "8192"] if many else ["-B", "65536", "--immediate-mode"]
        argv += ["--time-stamp-precision=nano", *options]
        self.child = lab.host(space, *argv, what)
        wait_for(lambda: any("listening" in line for line in self.child.err), "tcpdump")

    def close(self):
        """Once the programs have ended, which poll both CPUs.

        The kernel stamps packets on several CPUs: some are in the file a little late. weir-pcap
        puts these into their place, tshark and tcptrace take them as they come.
        """
        self.stop()
        as_written = self.path.rename(self.path.with_suffix(".written.pcap"))
        sh("reordercap", as_written, self.path)
        as_written.unlink()

    def stop(self):
        """Leaves what tcpdump wrote as it is."""
        wait_for(self.wrote_all, lambda: f"tcpdump to write all: {self.child.err[-1:]}")
        self.child.send(signal.SIGINT)
        self.child.wait()
        assert any(re.match(r"0 packets dropped", line) for line in self.child.err)

    def wrote_all(self):
        """tcpdump's answer to SIGUSR1: '9 packets captured, 9 packets received by filter, ...'."""
        said = len(self.child.err)
        self.child.send(signal.SIGUSR1)
        wait_for(lambda: len(self.child.err) > said, "tcpdump's counts")
        counts = re.search(r"(\d+) packets? captured, (\d+) packets? rec", self.child.err[-1])
        return counts and self.passes * int(counts[1]) == int(counts[2])

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
    """Segments of data towards a port that begin with a byte that was there before."""
    top, second = defaultdict(int), 0
    condition = f"tcp.dstport == {port} && tcp.len > 0"
    for stream, start, end in rows(path, condition, "tcp.stream", "tcp.seq", "tcp.nxtseq"):
        second += int(start) < top[stream]
        top[stream] = max(top[stream], int(end))
    return second

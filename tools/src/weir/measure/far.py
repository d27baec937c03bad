# SPDX-License-Identifier: BSD-3-Clause
"""The programs of a measurement: iperf3 at both ends, captures and pings; all of them end with it.

The other end is one command over ssh. It ends its programs when its standard input is closed, so
also when the connection or this program is gone.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

import msgspec

from weir.analysis import imported
from weir.analysis.measured import Count, Sample, Trial
from weir.base.errors import UserError
from weir.runner.child import Child

READY_S_MAX = 20
LATE_S_MAX = 10.0  # that iperf3 may take beyond its time
CAPTURE = "tcpdump -i any -n -s 128 -B 8192 -w"
# $1 and $2: the ports of the server and of the connection that is captured.
AT_HOST = f"""
PATH=$PATH:/usr/sbin:/sbin
command -v iperf3 >/dev/null || {{ echo "iperf3 is not there: apt-get install iperf3"; exit 1; }}
d=$(mktemp -d) || exit 1
t=
trap 'kill $s $t 2>/dev/null; rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
iperf3 -s -p $1 -i 0.1 --forceflush >"$d/server" 2>&1 & s=$!
if command -v tcpdump >/dev/null; then {CAPTURE} "$d/pcap" tcp port $2 2>"$d/said" & t=$!; fi
until grep -q listening "$d/server"; do
  kill -0 $s 2>/dev/null || {{ tail -n 1 "$d/server"; exit 1; }}
  sleep 0.1
done
while [ "$t" ] && kill -0 $t 2>/dev/null && ! grep -q "listening on" "$d/said"; do sleep 0.1; done
echo ready
read -r line || exit 0
if [ "$t" ]; then kill -INT $t 2>/dev/null; wait $t; fi
if [ -s "$d/pcap" ]; then cat "$d/pcap"; fi
"""
TEXT = re.compile(
    r"^\[ *\d+\] +([\d.]+)-([\d.]+) +sec +[\d.]+ \w*Bytes +([\d.]+) (\w?)bits/sec"
    r"(?: +[\d.]+ ms +(-?\d+)/(\d+) \([^)]*\))? *$",
    re.MULTILINE,
)
REACHED = re.compile("connect|in time|stream")  # in what iperf3 says where it meets no server
# Of UDP's sockets: Linux keeps twice as much for one that asks for what is the default, so that a
# receiver may stand still for longer before it loses what the path has carried.
BUFFER = "208K"
FACTOR = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}


class Far:
    """iperf3 at the other end, and a capture there if that is permitted. A context manager."""

    def __init__(self, ssh: str, host: str, port: int, flow_port: int) -> None:
        at = shlex.join(["sh", "-c", AT_HOST, "weir", str(port), str(flow_port)])
        argv = [*shlex.split(ssh), "-o", f"ConnectTimeout={READY_S_MAX}", host, at]
        self.host = host
        try:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise UserError(f"--ssh: {argv[0]} cannot be run: {error.strerror}", 1) from None

    def __enter__(self) -> Self:
        try:
            said = ""
            while (line := self.out.readline().decode(errors="replace")) != "ready\n":
                said = line.strip() or said
                if line:
                    continue
                more = self.process.communicate(timeout=READY_S_MAX)[1].decode(errors="replace")
                why = said or (more.strip() or "ssh ended").splitlines()[-1]
                raise UserError(
                    f"{self.host}: {why} (if a server runs there already, --server measures"
                    " without ssh)",
                    1,
                )
        except BaseException:
            self.__exit__()
            raise
        return self

    @property
    def out(self) -> IO[bytes]:
        assert self.process.stdout
        return self.process.stdout

    def capture(self, file: Path) -> bool:
        """Ends what runs there, and writes its capture; returns whether there is one."""
        assert self.process.stdin
        with suppress(BrokenPipeError), self.process.stdin as ask:
            ask.write(b"end\n")
        with file.open("wb") as captured:
            shutil.copyfileobj(self.out, captured)
        if file.stat().st_size == 0:
            file.unlink()
        return file.exists()

    def __exit__(self, *_: object) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                with suppress(OSError):
                    stream.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def address_of(ssh: str, host: str) -> str:
    """Returns the address that ssh would connect to: names may be those of its configuration."""
    with suppress(OSError, subprocess.SubprocessError):
        argv = [*shlex.split(ssh), "-G", host]
        said = subprocess.run(argv, capture_output=True, text=True, timeout=5, check=True).stdout
        return next(line.split()[1] for line in said.splitlines() if line.startswith("hostname "))
    return host.rpartition("@")[2]


def resolved(name: str) -> str:
    """Returns a host's IP address. UserError: it has none."""
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise UserError(f"{name}: no such host: {error.strerror}", 1) from None


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("", 0))
        return int(unused.getsockname()[1])


def needed(program: str) -> str:
    """Returns a program's path. UserError: it is not installed here."""
    if found := shutil.which(program):
        return found
    raise UserError(f"{program} is not on this machine: apt-get install {program}", 1)


class Pings(Child):
    """Pings until it is stopped."""

    def __init__(self, address: str) -> None:
        for every in ("0.02", "0.2"):  # older ones refuse users less
            argv = [needed("ping"), "-D", "-n", "-i", every, address]
            super().__init__(argv, first=False, env=os.environ | {"LC_ALL": "C"})
            try:
                self.process.wait(0.2)
            except subprocess.TimeoutExpired:
                break
            except BaseException:
                self.kill()
                raise

    def answered(self, since: float) -> list[tuple[float, float]]:
        """Returns when each answered ping was sent, in s after `since`, and its RTT in ns."""
        found = re.findall(r"^\[([\d.]+)\] .*time=([\d.]+) ms", "\n".join(self.out), re.MULTILINE)
        return [(float(at) - since - float(ms) / 1e3, float(ms) * 1e6) for at, ms in found]


class Capture(Child):
    """tcpdump of a connection on this machine, if that is permitted."""

    def __init__(self, file: Path, flow_port: int) -> None:
        super().__init__([*CAPTURE.split(), file, "tcp", "port", flow_port], first=False)

    def wait_ready(self) -> None:
        """Waits until it captures, or has ended because it may not."""
        until = time.monotonic() + READY_S_MAX
        while self.running and time.monotonic() < until:
            if any("listening on" in line for line in self.err):
                return
            time.sleep(0.02)


class Row(msgspec.Struct):
    """A stream in an interval of iperf3."""

    start: float
    end: float
    bits_per_second: float
    rtt: float | None = None  # in us
    snd_cwnd: int | None = None
    retransmits: int | None = None
    packets: int | None = None
    lost_packets: int | None = None


class Interval(msgspec.Struct):
    streams: list[Row] = []


class Result(imported.Document):
    """What `iperf3 -J` prints at the client, with its intervals."""

    intervals: list[Interval] = msgspec.field(default_factory=list)
    server_output_text: str = ""

    @property
    def rows(self) -> list[Row]:
        return [interval.streams[0] for interval in self.intervals if interval.streams]

    def samples(self) -> list[Sample]:
        """Returns tcp_info of the sender, if that is here."""
        return [
            Sample(row.end, row.rtt * 1e3, row.snd_cwnd, row.retransmits)
            for row in self.rows
            if row.rtt
        ]

    def counted(self, download: bool) -> list[Count]:
        """Returns what the receiver counted by interval."""
        if download:
            return [count(r.start, r.end, r.bits_per_second, r.lost_packets, r.packets)
                    for r in self.rows]  # fmt: skip
        return [
            count(float(begin), float(end), float(rate) * FACTOR[unit.upper()],
                  int(lost) if lost else None, int(sent) if sent else None)
            for begin, end, rate, unit, lost, sent in TEXT.findall(self.server_output_text)
        ]  # fmt: skip


def count(begin: float, end: float, bps: float, lost: int | None, sent: int | None) -> Count:
    received = None if sent is None or lost is None else sent - lost
    return Count(begin, end, bps, received, lost)


class Client:
    """iperf3 on this machine."""

    def __init__(self, host: str, address: str, port: int, download: bool) -> None:
        self.host, self.port, self.download = host, port, download
        self.argv = [needed("iperf3"), "-c", address, "-p", str(port), "-J", "-i", "0.1",
                     "--get-server-output", "--connect-timeout", "5000"]  # fmt: skip
        self.argv += ["-R"] if download else []

    def run(self, seconds: float, *more: str) -> tuple[float, float, Result]:
        """Returns when it began and ended, and its result, also as `text`. UserError: it failed."""
        begin = time.time()
        with Child([*self.argv, "-t", f"{seconds:g}", *more], first=False) as child:
            try:
                child.wait(seconds + LATE_S_MAX)
            except TimeoutError:
                raise self.failed("it did not end in time") from None
        self.text = "\n".join(child.out)
        try:
            result = msgspec.json.decode(self.text, type=Result)
        except msgspec.DecodeError:
            why = (child.err or child.out or ["no result"])[-1]
            raise self.failed(why) from None
        if result.error:
            raise self.failed(result.error)
        return begin, time.time(), result

    def failed(self, why: str) -> UserError:
        way = f": does a server run there, and does a firewall let port {self.port} through?"
        return UserError(f"{self.host}: iperf3: {why}{way if REACHED.search(why) else ''}", 1)

    def trial(self, rate_bps: float, seconds: float, payload: int, since: float) -> Trial:
        """Sends UDP at a rate of payload, and returns what arrived."""
        rate = ("-u", "-l", str(payload), "-b", f"{rate_bps:.0f}", "--pacing-timer", "200")
        try:
            begin, end, result = self.run(seconds, *rate, "-w", BUFFER)
        except UserError:  # the datagram that opens it was lost, or a host refuses the buffer
            begin, end, result = self.run(seconds, *rate)
        return Trial(rate_bps, begin - since, end - since, result.counted(self.download))

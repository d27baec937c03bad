# SPDX-License-Identifier: BSD-3-Clause
"""Tools of `weir bench live`: processes, counters, ports, network namespaces, hugepages.

Each program is measured from outside and in the same way: packets from DPDK's telemetry socket,
processor time of its busiest thread, between two moments. A packet's cost is the one over the
other, so that what else runs on a shared machine counts little. A polling thread is never idle.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeVar

from weir import bootstrap
from weir.base.errors import UserError
from weir.live import client, laboratory
from weir.live.laboratory import ADDRESS, Laboratory
from weir.runner.child import Child

CPUS = sorted(os.sched_getaffinity(0))
FIRST, LAST = CPUS[0], CPUS[-1]  # the neighbours' core, and that of what is measured
START_S_MAX = 20.0
WARM_S = 0.6
POLL_S = 0.02
HUGEPAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
PAGE_BYTES = 2 << 20
# FCS not counted, as testpmd counts. IMIX: seven to four to one, as weir-live-load sends it.
FRAMES = {"64": 64.0, "512": 512.0, "1500": 1500.0, "imix": (7 * 64 + 4 * 570 + 1514) / 12}
SIDES = ("left", "right")
NUMBERS = count()
OURS = f"weirbench{os.getpid()}x"  # what every prefix begins with


T = TypeVar("T")


class Skipped(Exception):
    """A program that cannot be measured here; the text is a sentence that says why."""


@dataclass(frozen=True)
class Sample:
    """Counters of a program over one measurement."""

    pkts: float
    bits: float  # of frames: no FCS, preamble or gap
    cpu_ns: float  # of its busiest thread
    wall_ns: float
    tsc_hz: float | None = None
    lost: float = 0.0  # share of telemetry records, counted by the program

    @property
    def ns(self) -> float:
        return self.cpu_ns / self.pkts


@dataclass(frozen=True)
class Case:
    """A row of the table: what comes in, and what is done with it."""

    port: str  # null, memif, xdp; sender: into a sink; sender-switch: through weir-switch
    frame: str  # of FRAMES; a sender's: number of flows
    aqm: str = "fifo"
    delay_ms: int = 0  # each way; of a sink: from the data to its ACK
    level: int = 0
    gbit: int = 0  # what comes in per second, on the wire; 0: as much as is taken
    flows: int = 1  # of memif's load

    @property
    def is_sender(self) -> bool:
        return self.port.startswith("sender")

    @property
    def name(self) -> str:
        """A name such as null-64-fifo-10ms-level3, memif-1500-fifo-25g, memif-64-drr-5000flows."""
        delay = f"-{self.delay_ms}ms" if self.delay_ms else ""
        if self.is_sender:
            return f"{self.port}-{self.frame}{delay}"
        level = f"-level{self.level}" if self.level else ""
        rate = f"-{self.gbit}g" if self.gbit else ""
        flows = f"-{self.flows}flows" if self.flows > 1 else ""
        return f"{self.port}-{self.frame}-{self.aqm}{flows}{delay}{rate}{level}"

    @property
    def frame_bytes(self) -> float:
        return FRAMES[self.frame]


class Measured(Child):
    """A process of the benchmark, in a network namespace or not."""

    def __init__(self, argv: Sequence[object], space: str | None = None):
        super().__init__(laboratory.enter(space, *argv), stdin=subprocess.DEVNULL)
        self.name = Path(str(argv[0])).name

    def why(self) -> str:
        """Returns the last line that it said, progress left out."""
        lines = [line.strip() for line in (*self.out, *self.err)]
        said = [line for line in lines if line and not line.startswith("{")]
        status = self.process.poll()
        ended = f"signal {-status}" if status is not None and status < 0 else "it said nothing"
        return (said or [ended])[-1][:300]

    def wait_for(self, condition: Callable[[], T | None], what: str) -> T:
        """Polls until there is a value; Skipped if the program ends before or takes too long."""
        deadline = time.monotonic() + START_S_MAX
        while True:
            value = condition()
            if value:
                return value
            if not self.running:
                self.stop()  # for all that it said
                raise Skipped(f"{self.name} ended: {self.why()}")
            if time.monotonic() > deadline:
                raise Skipped(f"{self.name}: no {what} within {START_S_MAX:.0f} s: {self.why()}")
            time.sleep(POLL_S)


def busiest_ns(pid: int, before: dict[str, int]) -> tuple[float, dict[str, int]]:
    """Returns the time of the thread that used most since `before`, and all threads' times now."""
    now: dict[str, int] = {}
    with contextlib.suppress(OSError):  # the program has ended, or below it a thread
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                now[thread.name] = int((thread / "schedstat").read_text().split()[0])
    used = [value - before.get(thread, 0) for thread, value in now.items()]
    return float(max(used, default=0)), now


class Counters(client.Program):
    """Counters of a DPDK program's ports, or the first `ports` of them, from its socket."""

    def __init__(self, path: Path, ports: int | None = None):
        super().__init__(path)
        self.ports: list[int] = (self.ask("/ethdev/list") or [])[:ports]

    def of_ports(self, what: str, *keys: str) -> list[list[int]]:
        answers = [self.ask(f"/ethdev/{what},{port}") or {} for port in self.ports]
        return [[int(answer.get(key, 0)) for key in keys] for answer in answers]

    def started(self) -> bool:
        return bool(self.ports) and min(self.of_ports("info", "dev_started")) == [1]

    def sent(self) -> tuple[int, int]:
        """Returns packets and bytes that all ports sent together."""
        counts = self.of_ports("stats", "opackets", "obytes")
        return sum(pkts for pkts, _ in counts), sum(size for _, size in counts)


def counters(prefix: str, ports: int | None = None) -> Counters | None:
    """Returns a program's counters once its ports are started, or None."""
    with contextlib.suppress(client.Ended, TimeoutError, PermissionError):
        found = Counters(client.runtime_folder() / prefix / client.SOCKET, ports)
        with contextlib.suppress(client.Ended, TimeoutError):
            if found.started():
                return found
        found.close()
    return None


def wait_started(child: Measured, prefix: str) -> None:
    """Waits until a program's ports are started: a memif before that is turned away."""
    child.wait_for(lambda: counters(prefix), "started port").close()


def measure(
    child: Measured,
    prefix: str,
    seconds: float,
    frame_bytes: float | None,
    ports: int | None = None,
) -> Sample:
    """Measures a running DPDK program once packets flow, and stops it.

    Packets are what all its ports sent, or the first `ports` of them. They are asked for bytes too
    if frame_bytes is None.
    """
    counted = child.wait_for(lambda: counters(prefix, ports), "telemetry socket")
    try:
        child.wait_for(lambda: counted.sent()[0] > 0, "packet")
        time.sleep(WARM_S)
        pid = child.process.pid
        (pkts, size), begin = counted.sent(), time.monotonic_ns()
        _, threads = busiest_ns(pid, {})
        time.sleep(seconds)
        (pkts_after, size_after), end = counted.sent(), time.monotonic_ns()
        cpu_ns, _ = busiest_ns(pid, threads)
        # Before its neighbours: a memif port may crash if its peer leaves in the middle of a burst.
        child.stop()
    except client.Ended:
        raise Skipped(f"{child.name} ended: {child.why()}") from None
    finally:
        counted.close()
    pkts = pkts_after - pkts
    if pkts == 0 or cpu_ns == 0:
        raise Skipped(f"{child.name} sent nothing")
    size = size_after - size if frame_bytes is None else round(pkts * frame_bytes)
    return Sample(pkts, 8 * size, cpu_ns, end - begin)


@dataclass
class Bench:
    """Folder and length of all measurements, and names that nobody else has."""

    folder: Path
    seconds: float

    def name(self, what: str) -> str:
        return f"{OURS}{next(NUMBERS)}{what}"

    def clean(self) -> None:
        """Removes what DPDK leaves behind in its runtime folder, one folder per prefix."""
        for left in client.runtime_folder().glob(f"{OURS}*"):
            shutil.rmtree(left, ignore_errors=True)

    def socket(self) -> Path:
        """Returns a path for a memif's socket, which only this user can open."""
        return self.folder / self.name("m")


def eal(prefix: str, lcores: str, memory_mb: int) -> list[str]:
    """Returns arguments of a DPDK program: as weir's own, with hugepages."""
    argv = ["--no-pci", "--in-memory", "--single-file-segments", "--file-prefix", prefix]
    return [*argv, "--lcores", lcores, "-m", str(memory_mb), "--log-level", "4"]


def null_ports(frame: str) -> list[str]:
    """Returns two ports that give frames of zeros and take any, at no cost but a buffer's.

    Their frames have one size, so that no row of them has imix.
    """
    return [f"net_null{i},size={frame},copy=0" for i in range(2)]


def memif(role: str, socket: Path, number: int) -> str:
    """Returns one side of a shared-memory port."""
    where = f"socket={socket},socket-abstract=no"
    return f"net_memif{number},role={role},id={number},{where},rsize=10"


def veth() -> Laboratory:
    """Returns network namespaces of the benchmark's own: a ---- left [ sw ] right ---- b."""
    return Laboratory(f"weirb{os.getpid()}x{next(NUMBERS)}")


@contextmanager
def traffic(wires: Laboratory, cpu: int | None) -> Iterator[Measured]:
    """Sends kernel TCP from a to b as fast as it goes; on a CPU, or where the kernel likes."""
    iperf = [*(["taskset", "-c", cpu] if cpu is not None else []), bootstrap.tool("iperf3")]
    with Measured([*iperf, "-s", "--forceflush"], wires.space("b")) as server:
        server.wait_for(lambda: "listening" in "".join(server.out), "iperf3 server")
        argv = [*iperf, "-c", ADDRESS["b"], "-t", "3600", "--forceflush"]
        with Measured(argv, wires.space("a")) as sender:
            yield sender


@contextmanager
def hugepages(need_bytes: int, say: Callable[[str], None]) -> Iterator[None]:
    """Reserves 2 MB pages if fewer are free, and frees them at the end."""
    file = HUGEPAGES / "nr_hugepages"
    had, free = (int((HUGEPAGES / f"{what}_hugepages").read_text()) for what in ("nr", "free"))
    want = had + max(0, -(-need_bytes // PAGE_BYTES) - free)
    if want == had:
        yield
        return
    try:
        file.write_text(str(want))
        got = int(file.read_text())
        if got < want:
            raise UserError(
                f"hugepages: {need_bytes / 1e6:.0f} MB are needed and only {got - had + free} pages"
                " of 2 MB are free; free memory, or choose rows that need less (--rows)",
                1,
            )
        say(f"vm.nr_hugepages: {want} instead of {had} until the benchmark ends")
        yield
    finally:
        with contextlib.suppress(OSError):
            file.write_text(str(had))

# SPDX-License-Identifier: BSD-3-Clause
"""Linux's own TCP beside ours: the cells of `weir reproduce linux`, and what is measured in them.

Each cell is run with an unmodified kernel at both ends (User Mode Linux in virtual time, see
tools/sim/guest), and with our transport and our control of the same name; then, where the kernel
has the control in a file of its own, with our transport and that file (weir new cc --linux): what
then remains of a difference is the transport's. Links, queues, starts and the random draws of the
paths are the same. Both sides are measured by the bottleneck's own
telemetry, but for goodput, which is what TCP says was acknowledged:

    RTT      the base round trip and the mean time in the queue
    losses   data packets that the path dropped, before the warm-up's end and after it
    marks    data packets that the bottleneck marked after it

Kernels run with pfifo_fast, which adds nothing: BBR paces itself, all others send what ACKs permit.
Ours are Linux's hosts (`host: linux`) with receive buffers as large as the kernels' here. Cards of
guests cannot divide segments, but their kernels collect as many and divide them last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

import polars as pl

from weir.analysis import metrics
from weir.analysis.folder import Run
from weir.base import units
from weir.runner.options import Options

Side = Literal["linux", "weir", "source"]
SIDES: tuple[Side, ...] = ("linux", "weir")
SEEDS = 10
WIRE_BITS = 8 * 1538  # of a full segment
FRAMES_PER_SEGMENT = 1.5  # with its part of an ACK
FLOWS_OF_MIX = 2  # of each control

HYSTART_PP = "{cubic: {reno_alpha: constant}}"  # our default slow start


class Control(NamedTuple):
    """A control's name for people, ours with what makes it the kernel's, and if that has a file."""

    name: str
    ours: str
    in_file: bool = True


ALL = {  # by the kernel's names; Reno is in its core, and Copa it has not
    "reno": Control("Reno", "{newreno: {abc_limit: 0}}", False),
    "cubic": Control("CUBIC", "{cubic: {reno_alpha: constant, slow_start: hystart, abc_limit: 0}}"),
    "bbr": Control("BBR", "bbr"),
    "vegas": Control("Vegas", "{vegas: {abc_limit: 0}}"),
    "dctcp": Control("DCTCP", "{dctcp: {abc_limit: 0}}"),
    "westwood": Control("Westwood+", "{westwood: {dialect: linux, abc_limit: 0}}"),
    "illinois": Control("Illinois", "{illinois: {abc_limit: 0}}"),
    "copa": Control("Copa", "copa", False),
}
IN_FILES = tuple(cc for cc, one in ALL.items() if one.in_file)
CONTROLS = ("reno", *IN_FILES)
MIXES = (
    ("cubic", "reno"),
    ("cubic", "bbr"),
    ("bbr", "reno"),
    ("vegas", "cubic"),
    ("copa", "cubic"),
)
QUEUES = ("fifo", "codel")
MARKED = {"codel-ecn": ("reno", "cubic", "vegas", "westwood", "illinois"), "step": ("dctcp",)}

# Guests as large as small servers, and buffers that hold no flow back. Their cards interrupt for
# each frame, so that GRO has nothing to collect at these rates.
HOST = "host: linux, gro: 0s, rmem: 32MiB, wmem: 32MiB"
MEMORY = "512MB"
SYSCTL = 'tcp_rmem: "4096 131072 33554432", tcp_wmem: "4096 16384 33554432"'


@dataclass(frozen=True)
class Link:
    """A bottleneck, half of its round trip on each side of it, and how long flows are watched."""

    name: str
    rate_mbit: int
    rtt_ms: int
    limit: str
    quick_s: tuple[int, int]  # warm-up and end of --quick
    full_s: tuple[int, int]
    behind: str = ""  # stages between the bottleneck and the receiver

    def paths(self, queue: str, ecn: bool) -> str:
        """Writes the config's paths."""
        discipline = f"fifo: {{limit: {self.limit}}}"
        if queue == "step":
            discipline = f"step: {{limit: 4BDP, threshold: {max(1, self.rtt_ms // 4)}ms}}"
        elif queue != "fifo":
            discipline = f"codel: {{ecn: {'yes' if ecn else 'no'}}}"
        half = f"{{delay: {{delay: {1000 * self.rtt_ms // 2}us}}}}"
        forward = [f"{{link: {{rate: {self.rate_mbit}Mbit, queue: {{{discipline}}}}}}}"]
        forward += [self.behind] if self.behind else []
        return f"paths:\n  forward: [{', '.join([*forward, half])}]\n  reverse: [{half}]\n"


LINKS = (
    Link("5M-20ms-4BDP", 5, 20, "4BDP", (10, 50), (10, 90)),
    Link("5M-200ms-0.5BDP", 5, 200, "0.5BDP", (20, 100), (20, 140)),
    Link("10M-40ms-1BDP", 10, 40, "1BDP", (10, 50), (10, 90)),
    Link("20M-100ms-0.3BDP", 20, 100, "0.3BDP", (10, 40), (20, 100)),
    Link("20M-40ms-2BDP", 20, 40, "2BDP", (10, 35), (20, 80)),
    Link("50M-20ms-1BDP", 50, 20, "1BDP", (5, 18), (10, 50)),
    Link("100M-5ms-2BDP", 100, 5, "2BDP", (2, 8), (5, 25)),
    Link("100M-20ms-1BDP", 100, 20, "1BDP", (5, 13), (10, 40)),
    Link("200M-10ms-0.5BDP", 200, 10, "0.5BDP", (2, 6), (5, 20)),
    Link("500M-5ms-0.3BDP", 500, 5, "0.3BDP", (1, 3), (3, 12)),
    Link("20M-40ms-1BDP-loss", 20, 40, "1BDP", (10, 35), (10, 70), "{loss: {rate: 0.1%}}"),
    Link(
        "20M-40ms-1BDP-reordering",
        *(20, 40, "1BDP", (10, 35), (10, 70)),
        behind="{delay: {delay: 0ms, late: 1%, late_by: 4ms}}",
    ),
)
MIX_LINK = Link("10M-40ms-1BDP", 10, 40, "1BDP", (5, 30), (10, 60))


@dataclass(frozen=True)
class Comparison:
    """A comparison: one control alone, or flows of two, on a link with a queue."""

    link: Link
    queue: str
    controls: tuple[str, ...]
    quick: bool
    seeds: int = 1

    @property
    def warmup_s(self) -> int:
        """The warm-up: losses up to its end are the start's; nothing else is measured before it."""
        return (self.link.quick_s if self.quick else self.link.full_s)[0]

    @property
    def duration_s(self) -> int:
        return (self.link.quick_s if self.quick else self.link.full_s)[1]

    @property
    def mixed(self) -> bool:
        """True if there are flows of two controls."""
        return len(self.controls) > 1

    @property
    def ecn(self) -> bool:
        """True if packets say that they may be marked."""
        return self.queue in MARKED or "dctcp" in self.controls

    @property
    def marks(self) -> bool:
        """True if packets are marked, which a FIFO does not do."""
        return self.ecn and self.queue != "fifo"

    @property
    def name(self) -> str:
        return f"{self.link.name}-{self.queue}-{'-'.join(self.controls)}"

    def run_name(self, side: str, seed: int) -> str:
        """Returns the name of a run's folder."""
        return f"{self.name}-{side}-{seed}" if self.seeds > 1 else f"{self.name}-{side}"

    def sides(self) -> tuple[str, ...]:
        """Names what is run: each side with its seeds."""
        source = ("source",) if set(self.controls) & set(IN_FILES) else ()
        hystartpp = ("weir-hystartpp",) if self.controls == ("cubic",) else ()
        return (*SIDES, *source, *hystartpp)

    def config(self, side: str) -> str:
        """Writes what is run, as a config."""
        count = FLOWS_OF_MIX if self.mixed else 1
        jitter = ", jitter: 1s" if self.mixed else ""
        groups = [
            f"  - {{count: {count}{jitter}, {group(side, cc, self.ecn)}}}" for cc in self.controls
        ]
        title = f"{' beside '.join(ALL[cc].name for cc in self.controls)}, {self.link.name}"
        return (
            f"title: {title}, {self.queue}, {side}\n"
            f"duration: {self.duration_s}s\nwarmup: {self.warmup_s}s\n"
            f"{self.link.paths(self.queue, self.ecn)}flows:\n"
            + "\n".join(groups)
            + "\ntelemetry: {level: 1, interval: 100ms}\n"
        )

    def frames(self) -> float:
        segments = self.link.rate_mbit * 1e6 / WIRE_BITS * self.duration_s
        return segments * FRAMES_PER_SEGMENT


def group(side: str, cc: str, marked: bool) -> str:
    """Writes control and stack of a group's flows; the kernel has no Copa, ours sends there too."""
    if side == "linux" and cc != "copa":
        ecn = ", tcp_ecn: 1" if marked else ""
        kernel = f"cc: {cc}, memory: {MEMORY}, qdisc: pfifo_fast, sysctl: {{{SYSCTL}{ecn}}}"
        return f"stack: {{linux: {{{kernel}}}}}"
    ours = HYSTART_PP if side == "weir-hystartpp" else ALL[cc].ours
    if side == "source" and cc in IN_FILES:
        ours = f"{{plugin: ../controls/{cc}/{cc}.so}}"
    if cc == "copa":
        return f"cc: {ours}, ack_every: 1"  # as Copa's authors acknowledge
    return f"cc: {ours}, {HOST}{', ecn: ect0' if marked else ''}"


def cases(quick: bool) -> list[Comparison]:
    """Makes all that is compared."""
    by_queue = {**dict.fromkeys(QUEUES, CONTROLS), **MARKED}
    alone = [
        Comparison(link, q, (cc,), quick)
        for link in LINKS
        for q, ccs in by_queue.items()
        for cc in ccs
    ]
    queues = QUEUES[:1] if quick else QUEUES
    return alone + [
        Comparison(MIX_LINK, queue, mix, quick, SEEDS) for queue in queues for mix in MIXES
    ]


@dataclass(frozen=True)
class Matrix:
    """Every case on each side and with each seed, and the folder of all."""

    quick: bool
    out: Path
    cases: Sequence[Comparison]

    @property
    def controls(self) -> Path:
        """Returns the folder of the plug-ins of IN_FILES, NAME/NAME.so."""
        return self.out / "controls"

    def runs(self) -> Iterator[tuple[Comparison, str, int]]:
        longest = sorted(self.cases, key=lambda case: -case.frames())
        for side in ("linux", "weir", "source", "weir-hystartpp"):
            for case in longest:
                if side in case.sides():
                    yield from ((case, side, seed) for seed in range(1, case.seeds + 1))

    def cell(self, case: Comparison, side: str, seed: int) -> Options:
        config = self.out / "configs" / f"{case.name}-{side}.yaml"
        return Options(config=config, out=Path(case.run_name(side, seed)), seed=seed)

    def write_configs(self) -> None:
        (self.out / "configs").mkdir(parents=True, exist_ok=True)
        for case in self.cases:
            for side in case.sides():
                self.cell(case, side, 1).config.write_text(case.config(side), encoding="utf-8")


# What is measured.


@dataclass(frozen=True)
class About:
    """Columns of the table that are about a run, and of its guests' kernel."""

    wall_s: float | None = None
    virtual_s: float | None = None
    digest: str | None = None
    kernel: str | None = None
    options: str | None = None
    frames: int | None = None


@dataclass(frozen=True)
class SideNumbers:
    """The numbers of one run."""

    goodput_bps: float  # of all flows
    rtt_ms: float
    losses_start: int
    losses: int  # after the warm-up
    marks: int
    quota: float  # the first group's part of the goodput
    cwnd: pl.DataFrame  # time_s, cwnd_segs of the first flow; of a mix: empty
    balanced: bool
    about: About


def measure(case: Comparison, run: Run) -> SideNumbers:
    """Reads a run folder."""
    summary, link = run.summary, run.summary.links["forward"]
    guests = summary.guests
    warmup_ns = case.warmup_s * metrics.NS_PER_S
    interval = pl.concat(
        [
            pl.DataFrame(part)
            for part in run.chunks("interval", ("ts_ns", "flow_id", "cwnd_segs", "drops"))
        ]
    )
    early = pl.col("ts_ns") <= warmup_ns
    goodputs = [float(each.goodput_bps) for each in summary.groups]
    first = interval.filter(pl.col("flow_id") == 0) if not case.mixed else interval.clear()
    return SideNumbers(
        sum(goodputs),
        case.link.rtt_ms + units.measured(link.queue_mean_ns) / 1e6,
        int(interval.filter(early)["drops"].sum()),
        int(interval.filter(~early)["drops"].sum()),
        int(link.marks),
        goodputs[0] / sum(goodputs),
        first.select(time_s=pl.col("ts_ns") / metrics.NS_PER_S, cwnd_segs="cwnd_segs"),
        bool(summary.ledger.balanced),
        About(
            summary.wall_s,
            summary.virtual_s,
            summary.digest,
            *((guests.release, guests.options, guests.tx_frames) if guests else ()),
        ),
    )


@dataclass(frozen=True)
class Pair:
    """A case's runs: by side, one per seed."""

    case: Comparison
    runs: dict[str, list[SideNumbers]]

    def mean(self, side: str, name: str) -> float:
        return fmean(float(getattr(one, name)) for one in self.runs[side])

    def relative(self, name: str, side: Side = "weir") -> float:
        """Returns a side's over the kernel's, less 1; two that are alike, 0 too, give 0."""
        theirs, ours = self.mean("linux", name), self.mean(side, name)
        return 0.0 if ours == theirs else ours / theirs - 1 if theirs else float("inf")


def collect(matrix: Matrix, found: dict[str, SideNumbers]) -> list[Pair]:
    """Pairs the cases of which every run is there."""
    pairs = []
    for case in matrix.cases:
        names = {
            side: [case.run_name(side, seed) for seed in range(1, case.seeds + 1)]
            for side in case.sides()
        }
        if all(name in found for of_side in names.values() for name in of_side):
            runs = {side: [found[name] for name in of_side] for side, of_side in names.items()}
            pairs.append(Pair(case, runs))
    return pairs


def table(pairs: Iterable[Pair]) -> pl.DataFrame:
    """Makes a table with a row per run."""
    rows = [
        {
            "case": pair.case.name,
            "link": pair.case.link.name,
            "queue": pair.case.queue,
            "controls": "-".join(pair.case.controls),
            "side": side,
            "seed": seed,
            **{
                name: getattr(one, name)
                for name in ("goodput_bps", "rtt_ms", "losses_start", "losses", "marks", "quota")
            },
            "balanced": one.balanced,
            **asdict(one.about),
        }
        for pair in pairs
        for side, ran in pair.runs.items()
        for seed, one in enumerate(ran, start=1)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)

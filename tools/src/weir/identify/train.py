# SPDX-License-Identifier: BSD-3-Clause
"""The known runs of weir pcap identify, and how often it is right. A module to be run.

python -m weir.identify.train makes runs over paths that are drawn at random, and writes known.csv.
python -m weir.identify.train --test --seed 2 makes others and prints for what they are taken.
--kernel NAME has another guest kernel in them (weir guests build).
--left-out runs nothing and prints the table of captures.md: what each control is taken for.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import random
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from weir.analysis import folder
from weir.base import markdown, programs
from weir.base.page import Table
from weir.base.signals import end_in_order
from weir.identify import behaviour, classifier, table
from weir.identify.behaviour import NAMES, Behaviour
from weir.identify.classifier import Known

LINUX = ("reno", "cubic", "bbr", "vegas", "dctcp", "westwood", "illinois")
OURS = ("copa", "bbr3", "ledbat", "vivace")
SECONDS = 60
PACKET = 1500  # bytes, of a BDP in packets
BDP_MIN = 8  # packets: below, a window is a few
CYCLE_MAX_S = 14  # of NewReno's sawtooth: a run holds four of them
CONFIG = """
seed: {seed}
duration: {seconds}s
paths:
  forward:
    - link: {{rate: {kbit}kbit, queue: {queue}}}
    - loss: {{rate: {loss}}}
    - delay: {{delay: {delay_us}us}}
  reverse:
    - delay: {{delay: {delay_us}us}}
flows:
  - {{count: 1, {flow}}}
telemetry: {{level: 0}}
"""


@dataclass(frozen=True)
class Drawn:
    """A path: one link, and the way there and back."""

    kbit: int
    rtt_ms: float
    buffer: float  # BDP
    loss: float  # share of packets, at random

    @property
    def bdp(self) -> float:
        return self.kbit * self.rtt_ms / 8 / PACKET

    @property
    def cycle_s(self) -> float:
        """Period in s of NewReno's sawtooth, from half of the largest window to that."""
        return (self.buffer + 1) * self.bdp / 2 * self.rtt_ms / 1e3 * (1 + self.buffer / 2)


def drawn(rng: random.Random) -> Drawn:
    """Draws a path that shows a sawtooth often enough; one in four loses packets by itself."""

    def between(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    while True:
        kbit, rtt, buffer = round(between(5e3, 6e4)), between(10, 120), between(0.5, 4)
        loss = rng.choice([0.0, 0.0, 0.0, between(2e-4, 3e-3)])
        path = Drawn(kbit, rtt, buffer, loss)
        if path.bdp >= BDP_MIN and path.cycle_s < CYCLE_MAX_S:
            return path


def config(path: Drawn, control: str, kernel: str | None, seed: int) -> str:
    """Returns a config of a flow over the path; without marks DCTCP would be Reno."""
    queue = f"{{fifo: {{limit: {max(8, round(path.buffer * path.bdp))}pkt}}}}"
    if control == "dctcp":
        threshold = max(1000, round(path.buffer * path.rtt_ms * 300))
        queue = f"{{step: {{threshold: {threshold}us, limit: {max(20, round(4 * path.bdp))}pkt}}}}"
    flow = f"cc: {control}"
    if control in LINUX:
        flow = f"stack: {{linux: {{cc: {control}{f', kernel: {kernel}' if kernel else ''}}}}}"
    return CONFIG.format(
        seed=seed, seconds=SECONDS, kbit=path.kbit, queue=queue, loss=f"{path.loss:.6f}",
        delay_us=round(path.rtt_ms * 500), flow=flow,
    )  # fmt: skip


def run(text: str) -> Behaviour | None:
    """Returns the behaviour that a capture of the run shows."""
    with TemporaryDirectory(prefix="weir-identify-") as temporary:
        place = Path(temporary)
        (place / "config.yaml").write_text(text)
        capture = place / "c.pcapng"
        program("sim", place / "config.yaml", "--out", place / "run", "--pcap", capture)
        options = ("--interval", table.INTERVAL, "--out", place / "capture")
        program("pcap", "analyze", *options, capture)
        return behaviour.of_run(folder.load(place / "capture")).get(0)


def program(name: str, *argv: Path | str) -> None:
    command = [programs.find_program(name), *argv]
    with programs.child(command, stdout=subprocess.DEVNULL) as process:
        status = process.wait()
    if status != 0:
        raise subprocess.CalledProcessError(status, command)


@dataclass(frozen=True)
class Row:
    """A known run of a control."""

    control: str
    name: str  # of its path
    path: Drawn
    behaviour: Behaviour


def runs(seed: int, paths: int, controls: Sequence[str], kernel: str | None) -> list[Row]:
    """Runs each control over each path; those that are too short to tell are left out."""
    rng = random.Random(seed)
    drawn_paths = [drawn(rng) for _ in range(paths)]
    cells = [(n, path, control) for n, path in enumerate(drawn_paths) for control in controls]
    texts = [config(path, control, kernel, n + 1) for n, path, control in cells]
    found = programs.several(partial(run, text) for text in texts)
    return [
        Row(control, f"{seed}.{n}", path, of)
        for (n, path, control), of in zip(cells, found, strict=True)
        if of
    ]


def write(rows: Sequence[Row], path: Path) -> None:
    """Writes the table of known runs."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["control", "path", *NAMES])
        for one in rows:
            numbers = ("" if math.isnan(v) else f"{v:.5g}" for v in one.behaviour.vector())
            out.writerow([one.control, one.name, *numbers])


def confusion(rows: Sequence[Row]) -> str:
    """Returns a table with a row for what a flow is, a column for what it is taken for."""
    taken = [(one.control, classifier.identify(one.behaviour).control) for one in rows]
    controls = sorted({control for control, _ in taken})
    columns = [*controls, *sorted({found for _, found in taken} - set(controls))]
    counts = [[one, *(taken.count((one, column)) or "" for column in columns)] for one in controls]
    lossless = [pair for pair, one in zip(taken, rows, strict=True) if not one.path.loss]
    said = f"Right: {right(taken)}; on paths that lose nothing by themselves {right(lossless)}."
    return f"{markdown.table(Table(('', *columns), counts))}\n\n{said}"


def taken(of: Known, control: str, by: Known) -> Counter[str]:
    """Counts what a control's runs are taken for by known runs over other paths."""
    own = zip(of.controls, of.paths, of.vectors, strict=True)
    return Counter(
        classifier.identify(Behaviour(*vector), by, path).control
        for name, path, vector in own
        if name == control
    )


def left_out(of: Known) -> str:
    """Returns a table of what controls are taken for by all known runs, and by those of others."""
    rows = [["right"], ["another"], ["left out: unknown"]]
    controls = list(dict.fromkeys(of.controls))
    for control in controls:
        others = np.array(of.controls) != control
        names, paths = (list(itertools.compress(both, others)) for both in (of.controls, of.paths))
        without = classifier.known_from(names, paths, of.vectors[others])
        known, unknown = taken(of, control, of), taken(of, control, without)[classifier.UNKNOWN]
        another = known.total() - known[control] - known[classifier.UNKNOWN]
        for row, count in zip(rows, (known[control], another, unknown), strict=True):
            row.append(str(count))
    return markdown.table(Table(("", *controls), rows)) + "\n"


def right(taken: Sequence[tuple[str, str]]) -> str:
    """Returns how many flows are taken for what they are, as text."""
    count = sum(control == found for control, found in taken)
    return f"{count} of {len(taken)} ({count / max(len(taken), 1):.1%})"


def main() -> None:
    """Makes the table of known runs, or tests it."""
    end_in_order()
    parser = argparse.ArgumentParser(prog="python -m weir.identify.train")
    parser.add_argument("--paths", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernel", help="another guest kernel")
    parser.add_argument("--test", action="store_true", help="print for what the runs are taken")
    parser.add_argument("--left-out", action="store_true", help="print what is known of unknowns")
    args = parser.parse_args()
    if args.left_out:
        print(left_out(classifier.known()), end="")
        return
    controls = LINUX if args.test else (*LINUX, *OURS)
    rows = runs(args.seed, args.paths, controls, args.kernel)
    if args.test:
        print(confusion(rows))
    else:
        write(rows, classifier.KNOWN)


if __name__ == "__main__":
    main()

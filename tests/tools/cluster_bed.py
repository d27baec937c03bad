# SPDX-License-Identifier: BSD-3-Clause
"""What tests/slurm and tests/ssh share: waiting, tables, and their rows in a page."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import polars as pl
from small import HOW
from waiting import wait_for

PAGE = Path(__file__).resolve().parents[2] / "tools/docs/how-to/clusters.md"
BEGIN, END = "<!-- tried: tests/slurm, tests/ssh -->\n", "<!-- end of tried -->\n"
TITLES = "| script | hosts | meanwhile | result | time | tried |\n|---|---|---|---|---:|---|\n"
DEADLINE_S = 300
until = partial(wait_for, seconds=DEADLINE_S)


def table(path):
    """A sweep's table as bytes, without how it was made."""
    return pl.read_parquet(path / "table.parquet").drop(HOW).write_csv().encode()


def counts(out):
    """The line of a sweep that says how many cells there are."""
    return next(line for line in out.splitlines() if " cells: " in line)


def record(script, hosts, meanwhile, result, wall_s):
    """Prints a script's row of the page and puts it there."""
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    row = f"| `{script}` | {hosts} | {meanwhile} | {result} | {wall_s:.0f} s | {today} |"
    print(row)
    PAGE.write_text(with_row(PAGE.read_text(), row))


def with_row(page, row):
    """A page whose table has a row in place of the one of the same script."""
    head, begin, rest = page.partition(BEGIN)
    old, end, tail = rest.partition(END)
    first = row.partition(" | ")[0]
    rows = [line for line in old.splitlines()[2:] if line.partition(" | ")[0] != first]
    return head + begin + TITLES + "\n".join(sorted([*rows, row])) + "\n" + end + tail

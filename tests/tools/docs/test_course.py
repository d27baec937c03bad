# SPDX-License-Identifier: BSD-3-Clause
"""The course: its sheets are short, and the numbers of the answers are those of the runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_tutorials import BLOCK, ROOT, blocks, clone, lines, weir
from weir.analysis import folder, windows
from weir.analysis.folder import Run
from weir.docs import playground
from weir.report import data

COURSE = ROOT / "tools/docs/course"
SHEETS = sorted(p.stem for p in COURSE.glob("*.md") if p.stem not in ("README", "teacher"))
WORDS_MAX = 350  # of a sheet
__all__ = ["clone"]  # a fixture


def title(sheet: str) -> str:
    return (COURSE / f"{sheet}.md").read_text().splitlines()[0].removeprefix("# ")


def section(sheet: str) -> str:
    """The sheet's part of the teacher's page."""
    return (COURSE / "teacher.md").read_text().split(f"## {title(sheet)}\n")[1].split("\n## ")[0]


def commands(sheet: str) -> list[str]:
    """The commands whose runs answer a sheet."""
    [(_, _, text)] = [block for block in BLOCK.findall(section(sheet)) if block[0] == "sh"]
    return list(playground.commands_of(text))


def rows(sheet: str) -> list[str]:
    """What they print of tables and lines."""
    [(_, _, text)] = [block for block in BLOCK.findall(section(sheet)) if block[0] == "text"]
    return lines(text)


@pytest.mark.parametrize("sheet", SHEETS)
def test_a_sheet_is_short_and_each_question_has_an_answer(sheet: str) -> None:
    text = (COURSE / f"{sheet}.md").read_text()
    assert len(text.split()) <= WORDS_MAX
    numbered = [re.findall(r"^(\d)\. ", part, re.MULTILINE) for part in (text, section(sheet))]
    assert numbered[0] == numbered[1]
    assert 3 <= len(numbered[0]) <= 5


@pytest.mark.parametrize("sheet", SHEETS)
def test_the_options_of_a_sheet_are_those_of_its_answers(sheet: str) -> None:
    """Each option is part of a command of the teacher's page, and so is each command."""
    text = (COURSE / f"{sheet}.md").read_text()
    answered = commands(sheet)
    for _, _, block in blocks(COURSE / f"{sheet}.md"):
        assert set(playground.commands_of(block)) <= set(answered)
    inline = re.findall(r"`(-o [^`]*)`", re.sub(BLOCK, "", text))
    assert inline
    for option in inline:
        assert any(" ".join(option.split()) in command for command in answered), option


@pytest.mark.parametrize("sheet", SHEETS)
def test_what_a_sheet_says_of_its_path_is_in_the_config(sheet: str) -> None:
    """Rates, and delays of one way or of a group."""
    head = (COURSE / f"{sheet}.md").read_text().split("\n## ")[0]
    configs = {shlex.split(command)[1] for command in commands(sheet)}
    text = "".join((ROOT / config).read_text() for config in configs)
    for value, unit in re.findall(r"([\d.]+) (Mbit/s|ms each way)", head):
        assert f"{value}{unit.split('/')[0].split()[0]}" in text


@pytest.mark.slow
@pytest.mark.parametrize("sheet", SHEETS)
def test_the_rows_of_the_answers_are_what_the_commands_print(sheet: str, clone: Path) -> None:
    """In their order: a row is not that of an earlier run."""
    printed = [weir(f"weir {one} --out run --force") for one in commands(sheet)]
    left = iter([line for text in printed for line in lines(text)])
    assert [row for row in rows(sheet) if row not in left] == []


def number(sheet: str, row: str, column: int) -> float:
    """A number of the nth row of the answers that begins with a name: of its nth word."""
    name, _, which = row.partition(" ")
    found = [line.split() for line in section(sheet).splitlines() if line.startswith(f"{name} ")]
    return float(found[int(which)][column].replace(",", ""))


def per(sheet: str, column: int, which: int, first: str, second: str) -> float:
    """One group's number over another's, both in the nth row of their names."""
    return number(sheet, f"{first} {which}", column) / number(sheet, f"{second} {which}", column)


RTT, GOODPUT, REDUCTIONS = 8, 3, -1  # words of a group's row, where it names the control


def mathis() -> float:
    """The ratio of goodputs that RTTs and window reductions per goodput foretell."""
    events = per("base-rtt", REDUCTIONS, 0, "far", "near") / per(
        "base-rtt", GOODPUT, 0, "far", "near"
    )
    return per("base-rtt", RTT, 0, "far", "near") * events**0.5


FROM_ROWS: list[tuple[str, str, Callable[[], list[float]]]] = [
    ("buffers", r"are (\d+) kB, or (\d+) packets", lambda: [
        20e6 * 0.04 / 8e3, 20e6 * 0.04 / 8 / 1538]),
    ("aimd", r"= (\d[\d.]*\d)\. Rates", lambda: [120**2 / (2 * (100**2 + 20**2))]),
    ("aimd", r"= ([\d.]+) segments remain", lambda: [60 / 2**5]),
    ("aimd", r"is (\d[\d.]*\d) ms in place of (\d[\d.]*\d) ms", lambda: [
        number("aimd", "first 2", RTT), number("aimd", "first 0", RTT)]),
    ("base-rtt", r"RTTs by (\d[\d.]*\d), the goodputs by (\d[\d.]*\d)", lambda: [
        per("base-rtt", RTT, 0, "far", "near"), per("base-rtt", GOODPUT, 0, "near", "far")]),
    ("base-rtt", r"2\. (\d[\d.]*\d), of which (\d[\d.]*\d)", lambda: [
        mathis(), per("base-rtt", RTT, 0, "far", "near")]),
    ("base-rtt", r"3\. (\d[\d.]*\d) and (\d[\d.]*\d)", lambda: [
        per("base-rtt", RTT, 1, "far", "near"), per("base-rtt", GOODPUT, 1, "near", "far")]),
    ("base-rtt", r"factor is (\d[\d.]*\d):", lambda: [per("base-rtt", GOODPUT, 2, "near", "far")]),
    ("base-rtt", r"5\. (\d[\d.]*\d)\. A queue", lambda: [
        per("base-rtt", GOODPUT, 3, "near", "far")]),
    ("bufferbloat", r"1\. (\d[\d.]*\d) ms and (\d[\d.]*\d) ms", lambda: [
        number("bufferbloat", f"newreno {run}", RTT - 1) for run in (0, 1)]),
    ("bufferbloat", r"A packet\s+takes (\d[\d.]*\d) ms", lambda: [1538 * 8 / 10e6 * 1e3]),
    ("l4s", r"1\. (\d[\d.]*\d) ms and (\d[\d.]*\d) ms", lambda: [
        number("l4s", "l4s 0", RTT) - 10, number("l4s", "classic 0", RTT) - 10]),
]  # fmt: skip


@pytest.mark.parametrize(("sheet", "says", "measure"), FROM_ROWS, ids=[row[1] for row in FROM_ROWS])
def test_a_number_of_an_answer_follows_from_the_rows(
    sheet: str, says: str, measure: Callable[[], list[float]]
) -> None:
    """To the last digit that stands there."""
    found = re.search(says, section(sheet))
    assert found
    for said, value in zip(found.groups(), measure(), strict=True):
        assert said == f"{value:.{len(said.partition('.')[2])}f}"


def windows_of(run: Run, after_s: float, before_s: float) -> list[float]:
    """The largest and the smallest window of the first flow at ends of intervals."""
    own = run.frame("interval")
    assert own is not None
    at = own["ts_ns"].to_numpy() / 1e9
    held = own["cwnd_segs"].to_numpy()[
        (own["flow_id"].to_numpy() == 0) & (at > after_s) & (at < before_s)
    ]
    return [float(held.max()), float(held.min())]


def losses(run: Run) -> np.ndarray:
    """When the first flow reduced its window, in s."""
    events = run.frame("events")
    assert events is not None
    chosen = (events["event"] == run.values("events", "event")["reduction"]) & (
        events["flow_id"] == 0
    )
    return events.filter(chosen)["ts_ns"].to_numpy() / 1e9


def fair_from(run: Run) -> list[float]:
    """The second in which Jain's index exceeds 0.95 after 20 s, and losses until then."""
    read = data.read(run)
    assert read.flows is not None
    index = windows.jfi_over_time(windows.windows(read.flows.rated, 1.0, read.scene.duration_s))
    at = index.filter((index["time_s"] > 20) & (index["jfi"] > 0.95))["time_s"][0]
    lost = losses(run)
    return [at - 0.5, at + 0.5, float(((lost > 20) & (lost < at)).sum())]


def alone(run: Run) -> list[float]:
    """Of the first flow alone: s from loss to loss, windows, segments gained, RTT in ms."""
    lost = losses(run)
    between_s = float(np.diff(lost[(lost > 3) & (lost < 20)]).mean())
    high, low = windows_of(run, 5, 20)
    return [between_s, low, high, high - low, between_s / (high - low) * 1e3]


FROM_FIGURES: list[tuple[str, str, Callable[[Run], list[float]]]] = [
    ("buffers", r"2\. (\d+) and (\d+) segments", lambda run: windows_of(run, 20, 60)),
    ("aimd", r"1\. ([\d.]+) s, .* from (\d+) to (\d+) segments: .* (\d+) round trips, of (\d+) ms",
     alone),
    ("aimd", r"from (\d+) to (\d+) s, after (\d) losses", fair_from),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sheet", "says", "measure"), FROM_FIGURES, ids=[row[1] for row in FROM_FIGURES]
)
def test_a_number_of_an_answer_is_in_the_figures(
    sheet: str, says: str, measure: Callable[[Run], list[float]], clone: Path
) -> None:
    """Of the sheet's first run, as near as a reader sees it: a segment, a tenth of a second."""
    found = re.search(says, " ".join(section(sheet).split()))
    assert found
    weir(f"weir run configs/course/{sheet}.yaml --out run")
    for said, value in zip(found.groups(), measure(folder.load(clone / "run")), strict=True):
        assert float(said) == pytest.approx(value, abs=0.1 if "." in said else 1)

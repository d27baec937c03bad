# SPDX-License-Identifier: BSD-3-Clause
"""The BBR draft's test cases notice each of its constants: one that is a fifth off fails a case."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from weir.analysis import folder
from weir.studies.bbr_draft import study as bbr_draft
from weir.studies.bbr_draft.paths import PLACES, TINY, Place
from weir.studies.bbr_draft.trace import Trace

AT = {at.name: at for at in (*PLACES, *TINY)}
SHORT, PLAIN, LONG = AT["250M-10ms"], AT["10M-40ms"], AT["10M-160ms"]
MIDDLE, LARGE, SMALL = AT["50M-40ms"], AT["250M-40ms"], TINY[4]
# A constant of the draft, a value that it has not, and a case and a path that show it. No case
# asks for the first window, nor for how long the largest aggregation is kept.
MUTATIONS = (
    ("startup_gain", "2.3", 1, PLAIN),
    ("pacing_margin", "0.8%", 1, PLAIN),
    ("full_growth", "1.05", 1, PLAIN),
    ("full_rounds", "4", 1, PLAIN),
    ("startup_losses", "7", 2, MIDDLE),
    ("drain_gain", "0.6", 3, PLAIN),
    ("drain_rounds", "4", 4, PLAIN),
    ("up_gain", "1.5", 5, PLAIN),
    ("up_cwnd_gain", "1.8", 5, PLAIN),
    ("loss_thresh", "1.6%", 7, LARGE),
    ("down_gain", "0.75", 8, PLAIN),
    ("cwnd_gain", "2.4", 8, PLAIN),
    ("reno_rounds", "50", 9, SHORT),
    ("probe_wait", "2.4s", 9, LONG),
    ("probe_rtt_interval", "4s", 10, PLAIN),
    ("probe_rtt", "240ms", 10, PLAIN),
    ("probe_rtt_gain", "0.6", 10, PLAIN),
    ("min_rtt_window", "8s", 10, PLAIN),
    ("min_window", "5", 14, SMALL),
    ("offload_quanta", "4", 14, SMALL),
    ("beta", "0.84", 16, PLAIN),
    ("headroom", "0.12", 21, PLAIN),
)
Ask = Callable[[int, Place, str], list[str]]


@pytest.fixture(scope="module")
def failing(weir_sim: Path, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """failing(case, path, changes): which of its claims fail in runs with these changes."""

    def ask(number: int, at: Place, change: str) -> list[str]:
        found, traces = [], {}
        for case in bbr_draft.CASES:
            if case.number != number or at not in case.places:
                continue
            (cell,) = case.setup(at).cells(True)
            if cell.name not in traces:
                out = tmp_path_factory.mktemp("case") / "run"
                override = (*cell.overrides, *([change] if change else []))
                argv = [str(weir_sim), str(cell.config), "--out", str(out)]
                subprocess.run([*argv, *(a for o in override for a in ("-o", o))], check=True)
                traces[cell.name] = Trace(folder.load(out))
            for check in case.checks:
                value = check.measured()(traces[cell.name], at)
                if value is None or not check.low <= value <= check.high:
                    found.append(f"{check.says}: {value}")
        return found

    return ask


@pytest.mark.parametrize(
    ("number", "at"), dict.fromkeys((number, at) for _, _, number, at in MUTATIONS)
)
def test_the_draft_s_constants_pass(failing: Ask, number: int, at: Place) -> None:
    """What the mutations below fail is not failed by itself."""
    assert failing(number, at, "") == []


@pytest.mark.parametrize(("key", "value", "number", "at"), MUTATIONS)
def test_another_constant_fails_a_case(
    failing: Ask, key: str, value: str, number: int, at: Place
) -> None:
    """Each in the one that its section is about."""
    assert failing(number, at, f"flows.0.cc.bbr3.{key}={value}")

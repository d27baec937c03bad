# SPDX-License-Identifier: BSD-3-Clause
"""Congestion controls in Python: the same bytes as in C; what they are given; what goes wrong."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for
from weir.control import Measurements
from weir.docs import reference

from .conftest import ROOT, Program, Simulate
from .test_determinism import MIXED

NEWRENO = ROOT / "configs/controls/newreno.py"
WAIT_S_MAX = 60
ONE = """
duration: 3s
paths:
  forward:
    - loss: {rate: 0.2%}
    - link: {rate: 10Mbit, queue: {fifo: {limit: 2BDP}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
flows:
  - {cc: CONTROL}
telemetry: {level: 3}
"""
HEAD = "from weir.control import Control, Measurements, parameter\n"


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_PYTHON", sys.executable)


@pytest.mark.parametrize("extra", ["", "hz: 250, ", "halve: flight, "])
def test_newreno_in_python_is_newreno(simulate: Simulate, extra: str) -> None:
    """Same bytes: fast recovery, timeouts, spurious losses, ECN, idle flows, ticks."""
    own = "halve: flight" if "halve" in extra else ""
    group = extra if "hz" in extra else ""
    built_in = MIXED.replace("cc: newreno", f"{group}cc: {{newreno: {{{own}}}}}")
    python = MIXED.replace(
        "cc: newreno", f'{group}cc: {{python: "{NEWRENO}:NewReno"{own and ", " + own}}}'
    )
    expected, found = simulate(built_in), simulate(python)
    assert found.summary["digest"] == expected.summary["digest"]
    assert [group["cc"] for group in found.groups] == ["copa", "NewReno", "NewReno"]
    assert found.groups[1]["modes"] == expected.groups[1]["modes"]
    header = (found.folder / "cc.ring").read_bytes()[:4096]
    assert b"NewReno" in header
    assert b"ssthresh_segs" in header


def config(tmp_path: Path, body: str, *, keys: str = "") -> str:
    """A config whose control is a class `Mine` of a file beside it."""
    (tmp_path / "mine.py").write_text(HEAD + body)
    text = f'{{python: "{tmp_path / "mine.py"}:Mine"{keys}}}'
    return ONE.replace("CONTROL", text)


INTERVALS = """
class Mine(Control):
    '''Checks what it is given.'''

    window = parameter(8.0, "window in segments", min=1)
    least = parameter(0, "shortest interval", unit="time")
    silent = parameter(False, "do not count")
    kind = parameter("a", "of something", choices=("a", "b"))
    observed = ("acked", "calls", "losses")

    def init(self, m):
        assert m.rtt_ns == m.srtt_ns > 20e6 and m.mss_bytes == 1448
        assert (self.window, self.silent, self.kind) == (16.0, True, "b")
        self.cwnd_segs = self.window
        self.acked = self.calls = self.losses = 0

    def on_ack(self, m):
        assert m.interval_ns >= (m.srtt_ns if self.least == 1 else self.least)
        assert m.acks + m.losses >= 1 and m.rtt_samples <= m.acks
        assert m.rtt_samples == 0 or m.rtt_min_ns <= m.rtt_lowest_ns <= m.rtt_mean_ns
        assert m.cwnd_segs == 16
        self.acked += m.acked_segs
        assert self.least == 0 or self.acked == m.delivered_segs
        self.calls += 1
        self.losses += m.losses
"""


@pytest.mark.parametrize(("every", "least"), [("ack", "0ns"), ("rtt", "1ns"), ("50ms", "50ms")])
def test_an_interval_has_all_that_was_measured(
    simulate: Simulate, tmp_path: Path, every: str, least: str
) -> None:
    keys = f", every: {every}, least: {least}, window: 16, silent: yes, kind: b"
    run = simulate(config(tmp_path, INTERVALS, keys=keys))
    last = run.records("cc")[-1]
    records = len(run.records("cc"))
    most = {"ack": records, "rtt": 3e9 / 20e6, "50ms": 3e9 / 50e6}[every]
    assert 0.5 * most < last["obs1"] <= most + last["obs2"], "a loss may end one, too"
    assert last["obs2"] > 0, "losses are counted without on_loss"


TOGETHER = """
class Mine(Control):
    '''Checks that its flows are called at once, at multiples of 30 ms.'''

    together = True
    last = 0

    def on_ack(self, m):
        if self.flow == 0:
            assert m.now_ns // 30_000_000 > Mine.last // 30_000_000
            Mine.last = m.now_ns
        assert m.now_ns == Mine.last
        self.cwnd_segs = 12 + self.flow


class Other(Control):
    '''Checks that an interval begins where the last one ended.'''

    def init(self, m):
        self.last = m.now_ns

    def on_ack(self, m):
        assert m.now_ns - m.interval_ns == self.last
        self.last = m.now_ns
        self.cwnd_segs = 12
"""


def test_flows_that_are_called_together_leave_those_of_another_class_alone(
    simulate: Simulate, tmp_path: Path
) -> None:
    text = config(tmp_path, TOGETHER, keys=", every: 30ms")
    other = f'  - {{cc: {{python: "{tmp_path / "mine.py"}:Other", every: 20ms}}}}\n'
    text = text.replace("30ms}}\n", "30ms}, count: 2}\n" + other)
    run = simulate(text)
    windows = {int(one["flow_id"]): float(one["cwnd_segs"]) for one in run.records("cc")}
    assert windows == {0: 12.0, 1: 13.0, 2: 12.0}


def test_its_summary_and_parameters_are_those_of_a_control(sim: Program) -> None:
    done = sim(config(sim.folder, INTERVALS, keys=", every: 10ms"), "--print-config")
    assert done.returncode == 0, done.stderr
    for key in ("every: 10ms", "window: 8", "least: 0", "silent: no", "kind: a"):
        assert key in done.stdout


METHOD = "class Mine(Control):\n    def on_ack(self, m):\n        "


@pytest.mark.parametrize(
    ("body", "keys", "status", "sentence"),
    [
        (METHOD + "1 / 0", "", 1, "mine.py:4: ZeroDivisionError: division by zero"),
        (METHOD + "m.rtt", "", 1, "mine.py:4: AttributeError: .* no attribute 'rtt'"),
        (
            METHOD + "self.cwnd_segs = float('nan')",
            "",
            1,
            r"mine.py:3: after Mine.on_ack cwnd_segs is nan and pacing_bps 0.0; both must be",
        ),
        (METHOD + "self.pacing_bps = -1", "", 1, "pacing_bps -1; both must be finite and not"),
        (METHOD + "import os; os._exit(3)", "", 1, "ended with status 3"),
        (METHOD + "import os; os.kill(os.getpid(), 9)", "", 1, "was ended by signal 9"),
        ("class Yours(Control): pass", "", 2, "mine.py has no class Mine"),
        ("class Mine: pass", "", 2, "mine.py:Mine is no weir.control.Control"),
        ("class Mine(Control): pass", "", 2, "mine.py:Mine has no on_ack"),
        ("class Mine(Control):", "", 2, "mine.py:2: .*expected an indented block"),
        ("import nothing_of_this_name", "", 2, "mine.py:2: ModuleNotFoundError: No module"),
        (METHOD + "pass\n    a = parameter('x', '')", "", 2, "Mine.a: a text needs choices"),
        (METHOD + "pass\n    a = parameter(-1, '')", "", 2, r"Mine.a: -1 is not in \[0, inf\]"),
        (METHOD + "pass\n    every = parameter(1, '')", "", 2, "the name is Weir's own"),
        (METHOD + "pass", ", tempo: 3", 2, "tempo"),
        (METHOD + "pass\n    a = parameter(1.0, '', max=2)", ", a: 3", 2, "a: 3 is not in "),
        (METHOD + "pass", ", every: never", 2, "every"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    sim: Program, body: str, keys: str, status: int, sentence: str
) -> None:
    done = sim(config(sim.folder, body, keys=keys), "--out", "run")
    assert re.search(sentence, done.stderr)
    assert done.returncode == status
    assert done.stderr.count("\n") == 1
    assert (sim.folder / "run/summary.json").exists() == (status == 1), "what was until then"


@pytest.mark.parametrize(
    ("python", "sentence"),
    [("/nonexistent/python", "cannot be run"), ("/bin/false", "ended with status 1")],
)
def test_another_python(
    sim: Program, monkeypatch: pytest.MonkeyPatch, python: str, sentence: str
) -> None:
    monkeypatch.setenv("WEIR_PYTHON", python)
    done = sim(config(sim.folder, METHOD + "pass"), "--check")
    assert sentence in done.stderr
    assert "WEIR_PYTHON names the Python that has Weir" in done.stderr
    assert done.returncode == 2


def test_ctrl_c_ends_a_control_that_does_not(weir_sim: Path, tmp_path: Path) -> None:
    place, began = tmp_path / "c.yaml", tmp_path / "began"
    body = f"open({str(began)!r}, 'w')\n        while True: import time; time.sleep(1)"
    place.write_text(config(tmp_path, METHOD + body))
    argv = [str(weir_sim), str(place), "--out", str(tmp_path / "run")]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        wait_for(began.exists)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WAIT_S_MAX)
    assert process.returncode != 0
    assert "signal 9" in said


def test_a_run_folder_replays_without_its_files(
    simulate: Simulate, weir_sim: Path, tmp_path: Path
) -> None:
    """It holds the file, and the one that this file imports, and all parameters."""
    folder = tmp_path / "controls"
    folder.mkdir()
    (folder / "law.py").write_text("def more(cwnd): return 1 / cwnd\n")
    body = HEAD + "import law\n\n\n" + METHOD + "self.cwnd_segs += law.more(self.cwnd_segs)\n"
    (folder / "mine.py").write_text(body)
    first = simulate(ONE.replace("CONTROL", "{python: controls/mine.py:Mine}"))
    shutil.rmtree(folder)
    text = (first.folder / "config.yaml").read_text()
    assert "      python: file-mine.py:Mine\n" in text
    assert (first.folder / "file-mine.py").read_text() == body

    out = tmp_path / "again"
    argv = [weir_sim, first.folder / "config.yaml", "--out", out]
    subprocess.run(argv, check=True, capture_output=True, timeout=WAIT_S_MAX)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["digest"] == first.summary["digest"]
    copies = {path.name for path in out.glob("file-*")}
    assert copies == {"file-mine.py", "file-law.py"}

    (out / "file-mine.py").write_text(body + "# changed\n")
    argv = [weir_sim, out / "config.yaml", "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S_MAX)
    assert done.returncode == 2
    assert "it is another file; leave digest out to use it" in done.stderr


def test_it_is_listed_like_one_within(weir_sim: Path, tmp_path: Path) -> None:
    """With its parameters and the names of what it records; also when it is none."""
    config(tmp_path, INTERVALS)
    argv = [str(weir_sim), "--list", f"{tmp_path}/mine.py:Mine"]
    done = subprocess.run([*argv, "--json"], capture_output=True, text=True, timeout=WAIT_S_MAX)
    entry = json.loads(done.stdout)["cc"]["Mine"]
    assert list(entry["params"]) == ["every", "window", "least", "silent", "kind"]
    assert entry["params"]["window"]["default"] == "8.0"
    assert entry["observed"] == ["acked", "calls", "losses"]
    page = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S_MAX).stdout
    assert page.startswith("Mine: Checks what it is given.")
    argv[-1] += "s"
    done = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S_MAX)
    assert done.returncode == 2
    assert done.stderr == f"weir-sim: list: {tmp_path}/mine.py has no class Mines\n"


def test_what_it_prints_is_no_part_of_the_summary(sim: Program) -> None:
    text = config(sim.folder, METHOD + "pass\n    def init(self, m): print('begins')")
    done = sim(text, "--json", "--out", "run")
    assert "begins" in done.stderr
    assert done.stdout.startswith("{")


def test_the_types_for_editors_are_those_of_the_record() -> None:
    kinds = {"uint64_t": "int", "double": "float"}
    expected = {name: kinds[kind] for kind, name, _ in reference.measurement_list()}
    assert Measurements.__annotations__ == expected
    assert list(Measurements.__annotations__) == list(expected)


def test_the_example_of_the_page_runs(simulate: Simulate, tmp_path: Path) -> None:
    page = (ROOT / "tools/docs/how-to/python-controls.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0].partition("\n\n")[2]
    run = simulate(config(tmp_path, example.replace("MyControl", "Mine"), keys=", every: rtt"))
    assert run.link["utilisation"] > 0.5

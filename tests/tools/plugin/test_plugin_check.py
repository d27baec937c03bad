# SPDX-License-Identifier: BSD-3-Clause
"""weir new cc and weir check cc: a folder that works, and checks that can fail."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_for
from weir.analysis import run_summary
from weir.base.errors import UserError
from weir.plugin import check


@pytest.fixture
def plugin(build_plugin):
    """plugin((text, other text) ...): as `weir check cc` is given it."""
    return lambda *changes: str(build_plugin(*changes))


@pytest.mark.slow
def test_a_new_folder_works(weir, tmp_path):
    """What it says to type runs, and its own test passes."""
    said = weir("new", "cc", "mine")
    assert said.status == 0
    assert "make -C mine" in said.out
    subprocess.run(["make", "-s", "-C", tmp_path / "mine"], check=True)
    ran = weir("run", "mine/mine.yaml", "--duration", "12s", "--no-report", "--out", "run")
    assert ran.status == 0, ran.err
    assert "mine" in ran.out
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"],
        cwd=tmp_path / "mine",
        capture_output=True,
        text=True,
    )
    assert "2 passed" in tested.stdout, tested.stdout


def test_nothing_is_overwritten(weir, tmp_path):
    """A second time the same name is refused, and a name that C cannot have."""
    assert weir("new", "cc", "mine").status == 0
    refused = weir("new", "cc", "mine")
    assert (refused.status, refused.err) == (2, "weir: new: mine/mine.c exists\n")
    refused = weir("new", "cc", "My-Own")
    assert refused.status == 2
    assert "1 to 31 small letters, digits and _" in refused.err


@pytest.mark.slow
def test_newreno_passes(weir, plugin, tmp_path):
    """And stands in each scenario where the control within stands; its file may have any name."""
    done = weir("check", "cc", Path(plugin()).rename(tmp_path / "cubic.so"), "--json")
    assert done.status == 0, done.out
    found = json.loads(done.out)
    assert {row["passed"] for row in found["checks"]} <= {True, None}
    assert len({row["scenario"] for row in found["scenarios"]}) == 8
    for row in found["scenarios"]:
        assert row["values"]["cubic.so"] == row["values"]["newreno"]
        assert len(row["values"]) == 1 + len(check.BESIDE)
        assert "–" not in row["values"].values()


GROW = "if (!ack->in_recovery)"
START = "	s->slow_start = true;"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("any values", (GROW, f"if (ack->rtt_ns > 99000000000) out->cwnd_segs = 0; {GROW}")),
        ("any values", (GROW, f"((struct config *)config)->beta = 1; {GROW}")),
        ("any values", (GROW, f"((volatile struct state *)s)[1].episode = 1; {GROW}")),
        ("no allocation", (GROW, f"free(*(void *volatile []){{malloc(9)}}); {GROW}")),
        ("no allocation", (START, f"{START} free(*(void *volatile []){{malloc(9)}});")),
        ("same answers", (GROW, f"static double n; out->cwnd_segs += n += 1e-6; {GROW}")),
        ("state moves", (GROW, f"out->cwnd_segs += ((uintptr_t)s & 15) / 16.; {GROW}")),
    ],
)
def test_what_it_finds_by_hand(plugin, name, change):
    """Each check, failed by a control with that fault."""
    found = check.by_hand(
        plugin(("#include <weir/cc.h>", "#include <stdlib.h>\n#include <weir/cc.h>"), change)
    )
    assert name in [row.name for row in found if row.passed is False]


GROWS = "		grow(s, ack->acked_segs, out);"
STUCK = (GROWS, f"		if (!s->timeout){GROWS}")  # at the segment that a timeout leaves
SAME = "	s->episode = s->timeout = false;"
NOT_UNDONE = (SAME, "	s->timeout = true; out->cwnd_segs = 1;")
LOSS = "	lower(s, config, out);\n	s->episode = true;"
DEAF = (LOSS, f"	if (loss->ecn) return;\n{LOSS}")
IDLE = "		out->cwnd_segs = cfg->initial_segs;\n	(void)state,"
TIMID = (IDLE, "		out->cwnd_segs = 1;\n	((struct state *)state)->timeout = true,")
PLACED = (START, f"{START} s->ssthresh_segs = 10 + (uintptr_t)malloc(1) / 4096 % 64;")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("timeouts", [STUCK]),
        ("undo", [STUCK, NOT_UNDONE]),
        ("idle", [STUCK, TIMID]),
        ("ECN", [DEAF]),
    ],
)
def test_what_it_finds_on_paths(weir, plugin, tmp_path, name, changes):
    """Likewise, as the transport calls it; the config that it says shows the same."""
    found = check.bounded(name, plugin(*changes), tmp_path)
    assert found.passed is False
    seen, _, command = found.found.partition("; to run it: weir ")
    ran = weir(*command.split(), "--no-report", "--json", "--out", "again")
    summary = run_summary.decode(json.loads(ran.out), "again")
    assert check.CONDITIONS[name].verdict(summary) == (False, seen)


def test_what_depends_on_its_place_in_memory(plugin, tmp_path):
    """It has other bytes each time."""
    include = ("#include <weir/cc.h>", "#include <stdlib.h>\n#include <weir/cc.h>")
    found = check.repeats(plugin(include, PLACED), tmp_path)
    assert found.passed is False
    assert (tmp_path / "same-bytes.yaml").exists()


INCLUDE = "#include <weir/cc.h>"
HEADERS = (INCLUDE, f"#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n{INCLUDE}")
DEEP = "static int deep(volatile int *n) { volatile int m = *n + 1; return deep(&m) + m; }"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            "*(volatile int *)(uintptr_t)ack->acked_segs = 1;",
            "on_ack: an access to memory that it does not have",
        ),
        ("exit(0);", "on_ack: a call of exit() ended the program"),
        ("_exit(0);", "it ended the program with status 0"),
        ("for (;;) pause();", "on_ack: a call that did not return within 2 s ended the program"),
        ("deep(&(volatile int){0});", "on_ack: a full stack"),
    ],
)
def test_what_ends_the_program_is_a_finding(plugin, call, sentence):
    """The program that checks is not ended by it."""
    deep = [("static void on_ack(", f"{DEEP}\nstatic void on_ack(")] if "deep" in call else []
    found = check.by_hand(plugin(HEADERS, *deep, (GROW, f"{call} {GROW}")))
    assert [row.passed for row in found] == [False]
    assert sentence in found[0].found


def test_it_is_ended_while_runs_do_not(plugin, build, tmp_path):
    """By SIGTERM, in calls of weir-sim that do not return; each may take 120 s."""
    name = "extern char *program_invocation_short_name"
    control = plugin((GROW, f"{name}; while (program_invocation_short_name[5] == 's'); {GROW}"))
    argv = [sys.executable, "-m", "weir", "check", "cc", control]
    env = {**os.environ, "TMPDIR": str(tmp_path), "WEIR_BUILD": str(build)}
    with subprocess.Popen(argv, cwd=tmp_path, env=env) as process:
        wait_for(lambda: any(tmp_path.glob("weir-check-*/run")))
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert not [*tmp_path.glob("weir-check-*")]


def test_what_it_prints_is_no_answer(plugin):
    """It goes to standard error, beside the JSON of the programs."""
    control = plugin(HEADERS, (GROW, f'puts("{{"); fflush(stdout); {GROW}'))
    found = {row.name: row.passed for row in check.by_hand(control)}
    assert found["any values"]
    assert found["same answers"]
    done = check.run(check.config(duration="1s", warmup="0s"), control)
    assert done.summary is not None
    assert done.summary.groups[0].acked_bytes > 0


def test_parameters_are_those_of_a_config(plugin, weir, tmp_path):
    """In the calls by hand and in the runs, with files as the command names them."""
    fault = "if (((const struct config *)config)->beta > 0.75) out->cwnd_segs = 0;"
    file = Path(plugin((GROW, f"{fault} {GROW}")))
    usual, other = (f"{{plugin: {file.name}, beta: {beta}}}" for beta in (0.5, 0.8))
    with contextlib.chdir(file.parent):
        assert all(row.passed is not False for row in check.by_hand(usual))
        assert "any values" in [row.name for row in check.by_hand(other) if row.passed is False]
        assert check.bounded("steady link", usual, tmp_path).passed
        assert not check.bounded("steady link", other, tmp_path).passed
    assert check.name_of(other) == f"{file.stem}-beta-0.8"
    assert check.name_of("{copa: {delta: 0.4}}") == "copa-delta-0.4"
    done = weir("check", "cc", "{copa: {delta: many}}")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "delta" in done.err


def test_what_is_no_control(weir):
    """One sentence."""
    done = weir("check", "cc", "none.so")
    assert done.status == 2
    assert "none.so: cannot be read: No such file or directory" in done.err
    with pytest.raises(UserError, match="'cubicc' is neither a plug-in"):
        check.by_hand("cubicc")

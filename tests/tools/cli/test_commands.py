# SPDX-License-Identifier: BSD-3-Clause
"""The command line as a whole: examples, JSON, exit statuses, completion in a real shell."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import weir as weir_package
from msgspec.structs import replace
from synthetic import make_run
from weir.cli import usage
from weir.cli.app import app
from weir.live import ctl, top
from weir.runner import bar, session

ROOT = Path(__file__).resolve().parents[3]
# What these print is a path, a sentence, a schema, a script or a comment.
PIPES = {"capture_output": True, "text": True, "timeout": 60}
NO_TABLE = {
    *(
        "add",
        "ci",
        "completion",
        "docs",
        "explore",
        "export",
        "import",
        "init",
        "note",
        "open",
        "pack",
        "remove",
        "rm",
        "tag",
    ),
    *("replay", "report", "schema", "shell"),
}
PROGRAMS = ("weir-sim", "weir-switch", "weir-sender", "weir-pcap")


def leaves(command=None, words=()):
    """Every command with its words: (("pcap", "flows"), command)."""
    command = command or typer.main.get_command(app)
    if not hasattr(command, "commands"):
        return [(words, command)]
    subs = [(name, command.get_command(None, name)) for name in command.list_commands(None)]
    return [leaf for name, sub in subs for leaf in leaves(sub, (*words, name))]


LEAVES = dict(leaves())


def option_names(command):
    return {name for param in command.params for name in param.opts if name.startswith("-")}


def lines_of(text):
    return re.findall(r"^ +((?:weir|weir-\w+) .*)$", text.partition("Examples:")[2], re.MULTILINE)


def parse(line):
    """An example as the command would read it; what a shell does with > and | is left out."""
    words = shlex.split(re.split(r" [<>|] ?", line)[0])[1:]
    if words[:2] == ["COMMAND", "--help"]:
        return
    if words[0] == "ctl":
        ctl.check(ctl.parser().parse_intermixed_args(words[1:]).orders)
    elif words[0] == "top":
        top.parser().parse_args(words[1:])
    else:
        name = max((name for name in LEAVES if tuple(words[: len(name)]) == name), key=len)
        LEAVES[name].make_context(" ".join(name), words[len(name) :])


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_command_has_examples_that_parse(words):
    context = LEAVES[words].make_context(" ".join(words), [], resilient_parsing=True)
    found = lines_of(context.get_help())
    assert found
    for line in found:
        assert line.split()[1 : 1 + len(words)] == list(words), line
        parse(line)


def test_the_first_help_has_examples(weir):
    for line in lines_of(weir("--help").out):
        parse(line)


@pytest.fixture(scope="module")
def captures(build, tmp_path_factory):
    """A folder with the captures that examples name."""
    place = tmp_path_factory.mktemp("captures")
    argv = [build / "tools/sim/weir-sim", ROOT / "configs/quickstart.yaml", "--out", place / "run"]
    argv += ["--duration", "20ms", "-o", "flows.0.count=2", "-o", "flows.0.jitter=0s"]
    argv += ["-o", "warmup=0s", "--pcap", place / "run.pcapng"]
    subprocess.run(argv, check=True, timeout=60)
    for name in ("ingress.pcapng", "egress.pcapng"):
        shutil.copy(place / "run.pcapng", place / name)
    return place


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_has_examples_that_run(build, captures, program):
    """With --check, those that run something."""
    [path] = [path for path in build.rglob(program) if path.is_file()]
    shown = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
    found = lines_of(shown)
    assert found
    for line in found:
        words = shlex.split(line)
        assert words[0] == program
        offline = program == "weir-pcap"
        check = [] if "--list" in words or offline else ["--check"]
        eal = words.index("--") if "--" in words else len(words)
        argv = [path, *words[1:eal], *check, *words[eal:]]
        done = subprocess.run(argv, cwd=captures if offline else ROOT, **PIPES)
        assert done.returncode == 0, (line, done.stderr)


def test_what_prints_a_table_prints_json():
    for words, command in LEAVES.items():
        prints = words[-1] not in NO_TABLE and words[0] not in ("new", "setup")
        assert ("--json" in option_names(command)) == prints, words


def test_a_wrong_value_of_any_option_is_said_in_our_words():
    """--seed x: Input should be a valid integer, unable to parse string as an integer."""
    checked = set()
    for words, command in LEAVES.items():
        for param in command.params:
            name = max(param.opts, key=len)
            option = name.startswith("-")
            for value in ("x", "-1", "nan", "1e99"):
                try:
                    command.make_context(
                        words[-1], [f"{name}={value}"] if option else ["--", value]
                    )
                except Exception as error:
                    said = usage.sentence(error)
                    if said.startswith("Missing ") or getattr(param, "is_flag", False):
                        continue  # of another parameter: this one may have any text
                    place = re.escape(name if option else name.upper())
                    assert re.fullmatch(f"{place}: .+ is not (a|at|one of) .*[^.]", said), said
                    checked.add((words, name))
    assert len(checked) > 30


def test_json_of_the_small_tables(weir):
    checks = json.loads(weir("doctor", "--json").out)
    assert {"name", "state", "found", "meaning", "fix"} == set(checks[0])
    cells = json.loads(weir("reproduce", "edgescale", "--plan", "--json").out)
    assert cells[0]["wall_s"] > 0


def test_json_of_a_run(weir, programs, tmp_path):
    """The summary alone on standard output; where it is goes to standard error."""
    script = "from synthetic import make_run\nmake_run(OUT)\n"
    out = tmp_path / "out"
    done = weir("run", "x.yaml", "--out", out, "--json", "--no-report", env=programs(sim=script))
    assert done.status == 0
    assert json.loads(done.out) == json.loads((out / "summary.json").read_text())
    assert str(out) in done.err


@pytest.mark.slow
def test_json_of_the_list_of_figures(weir, tmp_path):
    run = make_run(tmp_path / "run")
    figures = json.loads(weir("plot", run, "--json").out)
    shown = weir("plot", run).out
    assert figures
    assert all(figure["name"] in shown for figure in figures)


@pytest.mark.slow
def test_exit_statuses_are_those_of_the_table(weir, programs, tmp_path):
    shown = weir("--help").out
    page = (ROOT / "tools/docs/reference/run-folder.md").read_text()
    for status, meaning in usage.EXIT_STATUSES:
        assert re.search(rf"^ +{status} +{re.escape(meaning)}$", shown, re.MULTILINE)
        assert f"| {status} | {meaning} |" in page
    run = make_run(tmp_path / "run")
    (run / "summary.json").unlink()
    found = {
        weir("--version").status: "done",
        weir("summary", run).status: "failed",
        weir("summary", "nowhere").status: "refused",
        **{interrupted(programs, tmp_path / f"{n}", n): n.name for n in SIGNALS},
        weir("run", "x.yaml", env=programs(sim="os.kill(os.getpid(), 9)")).status: "killed",
    }
    assert sorted(found) == [status for status, _ in usage.EXIT_STATUSES]


def test_help_has_each_command_once_and_whole_in_80_columns(weir):
    """One list of 37 commands had 25 summaries cut."""
    listed = list(usage.MODULES)
    for name in listed:  # --help reads it without importing the command
        short = typer.main.get_command(app).get_command(None, name).get_short_help_str(100)
        assert usage.summary(name) == short
    lines = weir("--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    shown = [line for line in lines if line.split()[:1] and line.split()[0] in listed]
    assert [line.split()[0] for line in shown] == listed
    assert [line for line in shown if not line.endswith(".") or line.endswith("...")] == []


SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
WAITS = """
from synthetic import make_run
def stop(number, _):
    make_run(OUT)
    sys.exit(128 + number)
signal.signal(signal.SIGINT, stop)
print("waits", file=sys.stderr, flush=True)
time.sleep(60)
"""


def interrupted(programs, out, number):
    """The exit status of a run that a signal ends."""
    argv = [sys.executable, "-m", "weir", "run", "x.yaml", "--out", out, "--no-report"]
    env = {**os.environ, **programs(sim=WAITS)}
    with subprocess.Popen(argv, env=env, text=True, stderr=subprocess.PIPE) as process:
        assert "waits" in process.stderr.readline()
        process.send_signal(number)
        return process.wait(timeout=60)


@pytest.fixture(scope="module")
def bash(build, tmp_path_factory):
    """What a real bash offers for a command line whose last word is being typed."""
    place = tmp_path_factory.mktemp("shell")
    command = place / "bin/weir"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m weir "$@"\n')
    command.chmod(0o755)
    (place / "configs").mkdir()
    for name in ("one.yaml", "two.yaml", "notes.txt"):
        (place / "configs" / name).write_text("")
    make_run(place / "runs/mine")
    env = {
        **os.environ,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "tools/src"),
        "WEIR_BUILD": str(build),
    }

    with (place / "completion").open("w") as script:
        subprocess.run([command, "completion", "bash"], env=env, stdout=script, check=True)

    def offer(*words):
        quoted = " ".join(map(shlex.quote, words))
        script = f"""
            source completion
            COMP_WORDS=({quoted}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            $(complete -p weir | sed 's/.*-F \\([^ ]*\\) .*/\\1/') weir
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(
            ["bash", "-c", script], cwd=place, env=env, capture_output=True, text=True, timeout=60
        )
        assert done.stderr == ""
        return done.stdout.split()

    return offer


@pytest.mark.slow
def test_bash_completes(bash):
    assert sorted(bash("weir", "re")) == ["replay", "report", "reproduce"]
    assert bash("weir", "pcap", "") == ["analyze", "flows", "identify", "compare"]
    assert "--duration" in bash("weir", "run", "x.yaml", "--d")
    assert "--interval" in bash("weir", "top", "--")
    assert bash("weir", "run", "conf") == ["configs/one.yaml", "configs/two.yaml"]
    assert bash("weir", "run", "configs/o") == ["configs/one.yaml"]
    assert bash("weir", "report", "r") == ["runs/mine"]
    assert bash("weir", "list", "cod") == ["codel"]
    assert "stage" in bash("weir", "list", "st")
    assert bash("weir", "reproduce", "e") == ["edgescale"]
    assert bash("weir", "export", "runs/mine", "--to", "p") == ["parquet", "pcapng"]
    assert "measure" in bash("weir", "ctl", "")
    assert bash("weir", "export", "runs/mine", "--to", "csv", "--stream", "in") == ["interval"]
    assert "rtt" in bash("weir", "plot", "runs/mine", "--figure", "rt")
    experiment = ROOT / "configs/quickstart.yaml"
    assert bash("weir", "run", str(experiment), "-o", "paths.forward.link.ra") == [
        "paths.forward.link.rate="
    ]
    assert "flows.0.count=" in bash("weir", "run", str(experiment), "-o", "flows.0.c")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(weir, shell):
    done = weir("completion", shell)
    assert done.status == 0
    assert "_WEIR_COMPLETE" in done.out


def test_the_wrapper_builds_nothing_for_a_shell(tmp_path):
    """It may be at the Tab key before anything was set up."""
    env = {**os.environ, "_WEIR_COMPLETE": "complete_bash", "COMP_WORDS": "weir\nsum"}
    env |= {"COMP_CWORD": "1", "WEIR_BUILD": str(tmp_path / "nothing")}
    argv = [str(ROOT / "tools/weir")]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["summary"]
    assert not (tmp_path / "nothing").exists()


def test_the_examples_of_run_are_configs(weir, build):
    """Each with --check."""
    context = LEAVES[("run",)].make_context("run", [], resilient_parsing=True)
    for line in lines_of(context.get_help()):
        words = shlex.split(line)[1:]
        done = weir(*words, "--check", env={"WEIR_BUILD": str(build)}, cwd=ROOT)
        assert done.status == 0, (line, done.err)


def test_progress_has_an_estimate():
    now = session.Progress(virtual_s=2.0, wall_s=4.0, duration_s=10.0)
    assert bar.times(now).endswith("about 16 s left")
    assert bar.left(60.0, 1.0, 11.0) == ["about 10 min left"]
    assert bar.left(1.0, 1.0, 1.5) == ["about 1 s left"]  # not 500 ms
    assert "left" not in bar.times(replace(now, wall_s=0.1))
    assert "left" not in bar.times(replace(now, virtual_s=10.0))


def test_export_reports_progress(tmp_path):
    run = weir_package.open(make_run(tmp_path / "run"))
    for to in ("parquet", "csv"):
        heard = []
        weir_package.export.write(run, to, on_progress=lambda *now, heard=heard: heard.append(now))
        assert heard[0][1] == 0
        for name in {name for name, _, _ in heard}:
            done, whole = [now[1:] for now in heard if now[0] == name][-1]
            assert done == whole == len(run.stream(name))

# SPDX-License-Identifier: BSD-3-Clause
"""The weir command: bad input is one sentence and the right status; children are looked after."""

import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from contextlib import suppress

import pytest
from command import one_line
from rich.console import Console
from rich.text import Text
from synthetic import make_run
from waiting import wait_for
from weir.analysis import folder, summary
from weir.analysis.run_summary import decode
from weir.base import terminal, units
from weir.base.page import Table

SIM_RUNS = """
from synthetic import make_run
make_run(OUT)
say(virtual_s=10.0, wall_s=0.5, duration_s=20.0, utilisation=0.97, flows_open=4)
print("weir-sim: a message [with brackets]", file=sys.stderr)
"""
# Writes its part of a live run when told to stop, as the real ones do; told twice, it dies.
LIVE = """
stopped = []
def stop(*_):
    stopped.append(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGINT, stop)
OUT.mkdir(parents=True, exist_ok=True)
log = (OUT.parent / "log").open("a")
print("start", NAME, file=log, flush=True)
time.sleep(0.3)
print("ready", NAME, file=log, flush=True)
say(ready=True)
def finish(**extra):
    (OUT / f"manifest-{NAME}.json").write_text("{}")
    (OUT / f"summary-{NAME}.json").write_text(json.dumps({
        "program": "weir-" + NAME, "wall_s": 1, "verdict": "ok", "verdicts": [],
        "ledger": {"balanced": True, "paths": {}}, **extra}))
    print("end", NAME, file=log, flush=True)
INTERRUPTED = [{"cause": "interrupted", "sentence": "interrupted"}]
def until_stopped():
    while not stopped:
        time.sleep(0.02)
def until_both_are_ready():
    while "ready sender" not in (OUT.parent / "log").read_text():
        time.sleep(0.02)
"""


SHORT = """duration: 1s
paths:
  forward: [{link: {rate: 1Gbit, queue: {fifo: {limit: 20pkt}}}}, {delay: {delay: 1ms}}]
  reverse: [{delay: {delay: 1ms}}]
flows: [{count: 2, cc: newreno}]
"""


def started(place, env, *args):
    """A command that runs beside the test, its output piped."""
    return subprocess.Popen(
        [sys.executable, "-m", "weir", *args],
        cwd=place, env={**os.environ, **env},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "status", "sentence"),
    [
        (["report", "nowhere"], 2, "nowhere: no such run folder"),
        (["summary", "nowhere"], 2, "nowhere: no such run folder"),
        (["replay", "nowhere"], 2, "nowhere: no such run folder"),
        (["report"], 2, "Missing argument 'RUN'"),
        (["frobnicate"], 2, "'frobnicate' is not a command"),
        (["reproduce", "cop"], 2, "'cop' cannot be reproduced; did you mean 'copa'?"),
        (["rnu", "x.yaml"], 2, "'rnu' is not a command; did you mean 'run'?"),
        (["x.yaml"], 2, "x.yaml is a file, not a command: weir run x.yaml"),
        (["run", "x.yaml", "--sed", "1"], 2, "No such option: --sed"),
        (["run", "x.yaml", "--seed", "one"], 2, "--seed: 'one' is not a whole number"),
    ],
)
def test_bad_usage(weir, args, status, sentence):
    done = weir(*args)
    assert done.status == status
    assert sentence in one_line(done.err)
    assert done.out == ""


@pytest.mark.parametrize("words", [("--out", ""), ("--out=",)])
def test_an_empty_name_is_not_the_working_directory(weir, weir_sim, tmp_path, words):
    """`--out "$RUN"` without a RUN wrote the run among the user's files."""
    (tmp_path / "x.yaml").write_text(SHORT)
    done = weir("run", "x.yaml", *words)
    assert (done.status, done.err) == (2, "weir: --out: the name is empty\n")
    assert [path.name for path in tmp_path.iterdir()] == ["x.yaml"]


@pytest.mark.parametrize("command", ["list", "summary run", "init --help"])
def test_a_reader_who_has_seen_enough_is_no_failure(weir_sim, tmp_path, command):
    """`weir list | head` said that standard output cannot be written."""
    make_run(tmp_path / "run")
    line = f"{sys.executable} -m weir {command} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert int(done.stdout) in (0, 128 + signal.SIGPIPE)


def test_help_and_version(weir):
    assert "report" in weir("--help").out
    assert re.fullmatch(r"weir \d+\.\d+\.\d+\n", weir("--version").out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (None, None, "not a run folder: no manifest.json"),
        ("summary.json", "{", "summary.json: not JSON"),
        ("summary.json", "[]", "summary.json: has another shape than it should"),
        ("summary.json", b"\xff\xfe", "summary.json: not JSON"),
    ],
)
def test_folders_that_hold_no_run(weir, tmp_path, name, content, sentence):
    run = tmp_path / "run"
    run.mkdir()
    if name is not None:
        (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for command in ("report", "summary"):
        done = weir(command, run)
        assert done.status in (1, 2)
        assert sentence in one_line(done.err)


@pytest.mark.slow
def test_a_file_is_no_folder(weir, tmp_path):
    (tmp_path / "f").write_text("")
    for command in ("report", "replay"):
        assert "not a run folder but a file" in one_line(weir(command, "f").err)


def test_no_command_is_asked_for_with_the_usage(weir):
    for args in ((), ("bench",)):
        done = weir(*args)
        assert done.status == 2
        assert done.err.startswith("Usage: weir")


def test_a_program_that_was_not_built(weir, tmp_path):
    done = weir("run", "x.yaml", env={"WEIR_BUILD": str(tmp_path)})
    assert done.status == 1
    assert "was not built" in one_line(done.err)


def test_summary_says_how_the_run_stopped(weir, tmp_path):
    run = make_run(tmp_path / "run")
    summary = json.loads((run / "summary.json").read_text())
    for settled, moved, line in (
        (True, 0.0042, "jfi settled at 3,600 s: moved by 0.42 % in 1,200 s"),
        (False, None, "jfi had not settled by 3,600 s: moved by – in 1,200 s"),
    ):
        stop = {"metric": "jfi", "settled": settled, "at_s": 3600.0, "over_s": 1200, "moved": moved}
        (run / "summary.json").write_text(json.dumps(summary | {"stop": stop}))
        assert line in weir("summary", run).out


def test_summary_shows_and_hands_on(weir, tmp_path):
    run = make_run(tmp_path / "r", groups=(("ours", "copa", 3), ("theirs", "newreno", 2)))
    shown = weir("summary", run)
    assert shown.status == 0
    for text in ("ours", "NewReno".lower(), "98.50 %", "ledger: balanced", "7 queue_full"):
        assert text in shown.out
    written = json.loads((run / "summary.json").read_text())
    assert json.loads(weir("summary", run, "--json").out) == written
    (run / "summary.json").write_text(json.dumps(written | {"warmup_s": 2.0}))
    says = "The ledger counts the whole run, the tables what came after 2.00 s of warm-up.\n"
    assert says in weir("summary", run).out
    assert says not in shown.out


@pytest.mark.slow
def test_run_shows_messages_tables_ledger_and_report(weir, programs, tmp_path):
    done = weir("run", "x.yaml", env=programs(sim=SIM_RUNS))
    assert done.status == 0, done.err
    assert done.err == "weir: a message [with brackets]\n"
    path = done.out.splitlines()[-1]
    assert re.fullmatch(r"runs/x-\d{8}T\d{6}Z/report.html", path)
    assert (tmp_path / path).stat().st_size > 10_000
    assert "ledger: balanced" in done.out


def test_a_run_with_a_capture_says_how_fast_it_was(weir, tmp_path):
    """It said how many packets were captured per second, as an analysis of a capture does."""
    run = make_run(tmp_path / "run")
    plain = weir("summary", run).out
    path = run / "summary.json"
    whole = json.loads(path.read_text())
    whole["capture"] = {"file": "x.pcapng", "packets": 3, "bytes": 1, "lost": 0, "rotated_away": 0}
    path.write_text(json.dumps(whole))
    assert weir("summary", run).out == plain
    assert "times real time" in plain


@pytest.mark.slow
@pytest.mark.parametrize("term", ["xterm", "dumb"])
@pytest.mark.parametrize("columns", [60, 80])
def test_a_narrow_terminal_cuts_no_number_off(tmp_path, term, columns):
    """At 80 columns the first command's table had `1,0…` flows."""
    run = make_run(tmp_path / "run")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    argv = [sys.executable, "-m", "weir", "summary", str(run)]
    env = {**os.environ, "TERM": term}
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the terminal is gone
        while data := os.read(ours, 1 << 16):
            shown += data
    os.close(ours)
    assert process.wait(60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert "…" not in text
    for column in (one.header for one in summary.GROUPS + summary.LINKS):
        if column != "cc":  # each group is called by its own
            assert column in text
    assert max(map(len, text.splitlines())) <= columns or columns < 80


def test_run_without_report(weir, programs, tmp_path):
    done = weir("run", "x.yaml", "--no-report", "--out", "r", env=programs(sim=SIM_RUNS))
    assert done.out.splitlines()[-1] == "r"
    assert not (tmp_path / "r/report.html").exists()


def test_options_reach_the_program(weir, programs, tmp_path):
    env = programs(sim=SIM_RUNS + "(OUT / 'argv').write_text(' '.join(sys.argv[1:]))")
    weir(
        "run", "x.yaml", "-o", "a.b=1", "-o", "c=2", "--seed", 7, "--duration", "3s",
        "--pcap", "p", "--out", "r", "--force", "--no-report", env=env,
    )  # fmt: skip
    assert (tmp_path / "r/argv").read_text() == (
        "x.yaml --out r --progress -o a.b=1 -o c=2 --seed 7 --duration 3s --pcap p --force"
    )


def test_a_config_error_is_passed_on(weir, programs, tmp_path):
    sentence = "weir-sim: x.yaml:3:9: rate: '10Gbitt' is not a rate such as 10Gbit"
    env = programs(sim=f"print({sentence!r}, file=sys.stderr)\nsys.exit(2)")
    done = weir("run", "x.yaml", env=env)
    said = sentence.replace("weir-sim: ", "weir: ")  # as the command that was typed
    assert (done.status, done.out, done.err) == (2, "", said + "\n")


def test_a_run_that_is_refused_does_not_show_the_one_before(weir, programs, tmp_path):
    make_run(tmp_path / "r")
    env = programs(sim="print('weir-sim: r already holds a run', file=sys.stderr)\nsys.exit(2)")
    done = weir("run", "x.yaml", "--out", "r", env=env)
    assert (done.status, done.out, done.err) == (2, "", "weir: r already holds a run\n")


@pytest.mark.slow
def test_a_failed_run_keeps_its_status_and_is_reported(weir, programs):
    done = weir("run", "x.yaml", "--out", "r", env=programs(sim=SIM_RUNS + "sys.exit(1)"))
    assert done.status == 1
    assert done.out.endswith("r/report.html\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_reaches_the_program_once_and_the_report_is_written(programs, tmp_path, number):
    env = programs(
        sim="""
from synthetic import make_run
got = []
signal.signal(signal.SIGINT, lambda *_: got.append(1))
signal.signal(signal.SIGTERM, lambda *_: got.append(1))
print("started", file=sys.stderr, flush=True)
while not got:
    time.sleep(0.02)
time.sleep(0.3)
make_run(OUT)
(OUT / "signals").write_text(str(len(got)))
"""
    )
    process = started(tmp_path, env, "run", "x.yaml", "--out", "r")
    assert process.stderr.readline() == "started\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert out.endswith("r/report.html\n")
    assert (tmp_path / "r/signals").read_text() == "1"


@pytest.mark.slow
def test_live_starts_the_switch_first_and_stops_it_last(weir, programs, tmp_path):
    (tmp_path / "x.yaml").write_text("live: {switch: {}, sender: {}}\n")
    env = programs(
        switch=LIVE + "until_stopped()\nfinish(links={'forward': {'utilisation': 0.96}})",
        sender=LIVE + "time.sleep(0.2)\nfinish(groups=[{'name': 'g', 'cc': 'copa'}], jfi=0.9)",
    )
    done = weir("run", "x.yaml", "--live", "--out", "r", "--no-report", env=env)
    assert done.status == 0, done.err
    assert (tmp_path / "log").read_text().splitlines() == [
        "start switch", "ready switch", "start sender", "ready sender", "end sender", "end switch",
    ]  # fmt: skip
    merged = json.loads((tmp_path / "r/summary.json").read_text())
    assert merged["ledger"]["balanced"]
    assert merged["links"]["forward"]["utilisation"] == 0.96
    assert merged["groups"][0]["cc"] == "copa"
    assert merged["jfi"] == 0.9


@pytest.mark.parametrize("names", [("switch", "sender"), ("sender",)])
def test_one_program_writes_the_capture_of_a_live_run(weir, programs, tmp_path, names):
    """The switch, if there is one."""
    sections = ", ".join(f"{name}: {{}}" for name in names)
    (tmp_path / "x.yaml").write_text(f"live: {{{sections}}}\n")
    script = LIVE + "print(NAME, *sys.argv[1:], file=log, flush=True)\nfinish()"
    env = programs(**dict.fromkeys(names, script))
    argv = ("run", "x.yaml", "--live", "--out", "r", "--no-report", "--pcap", "f.pcapng")
    assert weir(*argv, env=env).status == 0
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in lines if "--pcap f.pcapng" in line] == [names[0]]


def test_live_programs_come_before_others(weir, programs, tmp_path):
    (tmp_path / "x.yaml").write_text("live: {switch: {}}\n")
    script = "import pathlib\ngroup = pathlib.Path('/proc/self/autogroup')\n"
    script += "(OUT / 'nice').write_text(f'{os.nice(0)} {group.exists() and group.read_text()}')\n"
    done = weir(
        "run", "x.yaml", "--live", "--out", "r", "--no-report",
        env=programs(switch=LIVE + script + "finish()"),
    )  # fmt: skip
    assert done.status == 0, done.err
    # It is set, not added to what the tests themselves run at; who may not keeps that.
    permitted = subprocess.run(
        ["sh", "-c", "renice -n -10 -p $$ >&2; nice"], capture_output=True, text=True
    )
    own, group = (tmp_path / "r/nice").read_text().split(maxsplit=1)
    assert own == permitted.stdout.strip()
    if own == "-10" and group != "False":
        assert group.endswith("nice -10\n")


def test_live_without_a_sender_runs_as_long_as_the_switch(weir, programs, tmp_path):
    (tmp_path / "x.yaml").write_text("live: {switch: {}}\n")
    done = weir(
        "run", "x.yaml", "--live", "--out", "r", "--no-report",
        env=programs(switch=LIVE + "finish()"),
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "sender" not in (tmp_path / "log").read_text()


def test_a_live_switch_that_cannot_start_is_reported_and_no_sender_started(
    weir, programs, tmp_path
):
    (tmp_path / "x.yaml").write_text("live: {switch: {}, sender: {}}\n")
    sentence = "weir-switch: x.yaml:1:1: port eth9 does not exist"
    env = programs(
        switch=f"print({sentence!r}, file=sys.stderr)\nsys.exit(1)", sender=LIVE + "finish()"
    )
    done = weir("run", "x.yaml", "--live", "--out", "r", env=env)
    assert (done.status, done.err) == (1, sentence + "\n")
    assert not (tmp_path / "log").exists()


@pytest.mark.slow
def test_a_live_switch_that_dies_stops_the_sender(weir, programs, tmp_path):
    (tmp_path / "x.yaml").write_text("live: {switch: {}, sender: {}}\n")
    env = programs(
        switch=LIVE + "until_both_are_ready()\nos.kill(os.getpid(), signal.SIGKILL)",
        sender=LIVE + "until_stopped()\nfinish()",
    )
    done = weir("run", "x.yaml", "--live", "--out", "r", "--no-report", env=env)
    assert done.status == 128 + signal.SIGKILL
    assert "end sender" in (tmp_path / "log").read_text()
    assert one_line(done.err) == "weir-switch was killed (SIGKILL)"


@pytest.mark.slow
def test_a_sender_that_is_killed_is_named(weir, programs, tmp_path):
    """The verdict was the switch's alone: that it was interrupted."""
    (tmp_path / "x.yaml").write_text("live: {switch: {}, sender: {}}\n")
    begin = "(OUT / f'manifest-{NAME}.json').write_text('{}')\n"
    env = programs(
        switch=LIVE + begin + "until_stopped()\nfinish(verdicts=INTERRUPTED)\nsys.exit(130)",
        sender=LIVE + begin + "os.kill(os.getpid(), signal.SIGKILL)",
    )
    done = weir("run", "x.yaml", "--live", "--out", "r", env=env)
    assert done.status == 128 + signal.SIGKILL
    assert one_line(done.err) == "weir-sender was killed (SIGKILL)"
    assert "verdict: weir-sender was killed (SIGKILL)" in done.out.splitlines()
    assert "ledger: not known: sender wrote none; that of switch balances" in done.out.splitlines()
    assert "weir-sender was killed (SIGKILL)" in (tmp_path / "r/report.html").read_text()
    # As programs leave it that were started by hand.
    (tmp_path / "r/summary.json").unlink()
    assert "weir-sender wrote no summary: it was killed" in weir("summary", "r").out


def test_a_simulation_that_is_killed_is_said_so(weir, programs):
    env = programs(sim=SIM_RUNS + "os.kill(os.getpid(), signal.SIGKILL)")
    done = weir("run", "x.yaml", "--out", "r", "--no-report", env=env)
    assert done.status == 128 + signal.SIGKILL
    assert done.err.splitlines()[-1] == "weir-sim was killed (SIGKILL)"


PATHS = (
    "paths: {forward: [{link: {rate: 10Mbit}}, {delay: {delay: 5ms}}],"
    " reverse: [{delay: {delay: 5ms}}]}\nflows: [{cc: newreno}]\n"
)


def test_a_run_that_goes_on_keeps_its_folder(weir, weir_sim, tmp_path):
    """Two runs in one folder were mixed by --force, and both ended with 0."""
    config = tmp_path / "x.yaml"
    config.write_text(f"duration: 20h\n{PATHS}live: {{sender: {{}}}}\n")
    argv = [weir_sim, config, "--out", "r"]
    with subprocess.Popen(argv, cwd=tmp_path) as first:
        wait_for((tmp_path / "r/interval.ring").exists)
        for command in (("--live",), ()):
            done = weir("run", "x.yaml", "--out", "r", "--force", *command)
            assert (done.status, done.out) == (2, "")
            assert one_line(done.err).endswith(
                "r: another run is writing there: choose another --out"
            )
        first.send_signal(signal.SIGINT)
    assert first.returncode == 130
    assert json.loads((tmp_path / "r/manifest.json").read_text())["exit"] == 130
    assert not (tmp_path / "r/.weir-lock").exists()
    assert weir("run", "x.yaml", "--out", "r", "--no-report", "--duration", "1s").status == 2
    second = ("--out", "r", "--no-report", "--duration", "1s", "--force")
    forced = weir("run", "x.yaml", *second)
    assert forced.status == 0, forced.err


def interrupted(argv, env=None, pending=False):
    """Standard error of a command that gets SIGINT as it starts; before its first instruction."""

    def before():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)

    return subprocess.run(
        argv,
        env={**os.environ, **(env or {})},
        preexec_fn=before if pending else None,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.slow
def test_a_command_that_ctrl_c_ends_says_so(weir_sim, tmp_path):
    """A sweep ended without a word, once the library behind the command line had changed."""
    (tmp_path / "x.yaml").write_text(SHORT)
    (tmp_path / "s.yaml").write_text("config: x.yaml\nduration: 24h\nseeds: 1\n")
    process = started(tmp_path, {}, "sweep", "s.yaml", "--out", "out")
    try:
        wait_for(lambda: list(tmp_path.glob("out/.*.cell/run/*.ring")))
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "weir: interrupted"
    assert "Traceback" not in said


def test_ctrl_c_at_once_is_no_traceback(tmp_path):
    """While Python starts, as tools/weir blocks it, and while modules are imported."""
    argv = [sys.executable, "-m", "weir", "--version"]
    done = interrupted(argv, pending=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    for module in ("typer", "argparse"):
        late = tmp_path / f"{module}.py"
        late.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    for command in ("summary", "ctl"):
        done = interrupted([*argv[:3], command], env={"PYTHONPATH": str(tmp_path)})
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small file system")
def test_a_disk_that_is_full_leaves_table_and_summary(weir_sim, tmp_path):
    config, small = tmp_path / "x.yaml", tmp_path / "small"
    small.mkdir()
    config.write_text(f"duration: 30s\n{PATHS}telemetry: {{level: 3}}\n")
    weir = f"{sys.executable} -m weir"
    script = (
        f"mount -t tmpfs -o size=1m none {small} || exit 99;"
        f"{weir} run {config} --out {small}/run; status=$?;"
        f"rm -f {small}/run/report.html; cat /dev/zero > {small}/filler 2>/dev/null;"
        f"{weir} report {small}/run; cp -r {small}/run {tmp_path}; exit $status"
    )
    argv = ["unshare", "-m", "sh", "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    if done.returncode == 99:
        pytest.skip("no private mount namespaces here")
    assert done.returncode == 1
    assert "newreno" in done.stdout
    assert "ledger: balanced" in done.stdout
    first, *pages = done.stderr.splitlines()
    assert first.startswith(f"weir: {small}/run/packets.ring: No space left on device; ")
    full = f"weir: {small}/run/report.html: cannot be written: No space left on device"
    full += "; weir report --out DIR writes it elsewhere"
    assert pages in ([full], [full, full])  # there may be room for the first, which is removed
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"summary.json", "manifest.json", "packets.ring"} <= left
    assert not any(name.startswith(".") or name.startswith("report") for name in left)
    assert json.loads((tmp_path / "run/manifest.json").read_text())["exit"] == 1


@pytest.mark.slow
def test_ctrl_c_lets_the_switch_finish_though_the_sender_fails(programs, tmp_path):
    """As while the sender waits for an answer to ARP."""
    (tmp_path / "x.yaml").write_text("live: {switch: {}, sender: {}}\n")
    env = programs(
        switch=LIVE + "until_stopped()\ntime.sleep(1)\nfinish()",
        sender=LIVE + "until_stopped()\nsys.exit(1)",
    )
    process = started(tmp_path, env, "run", "x.yaml", "--live", "--out", "r", "--no-report")
    log = tmp_path / "log"
    wait_for(lambda: log.exists() and "ready sender" in log.read_text())
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 1, err
    assert log.read_text().splitlines()[-1] == "end switch", err


def test_live_needs_a_live_section(weir, programs, tmp_path):
    (tmp_path / "x.yaml").write_text("flows: []\n")
    done = weir("run", "x.yaml", "--live", env=programs(switch=LIVE, sender=LIVE))
    assert done.status == 2
    assert "has neither" in one_line(done.err)


def test_no_program_is_left_behind(programs, tmp_path):
    (tmp_path / "x.yaml").write_text("live: {switch: {}, sender: {}}\n")
    deaf = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    deaf += "(OUT.parent / NAME).write_text(str(os.getpid()))\nsay(ready=True)\ntime.sleep(600)"
    env = programs(switch=deaf, sender=deaf)
    process = started(tmp_path, env, "run", "x.yaml", "--live", "--out", "r")
    pids = [tmp_path / name for name in ("switch", "sender")]
    wait_for(lambda: all(path.exists() and path.read_text() for path in pids))
    # Three are needed, and of those that come before one is seen there is one.
    wait_for(lambda: process.send_signal(signal.SIGINT) or process.poll() is not None)
    process.communicate()
    for path in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.read_text()), 0)


def fact(cause, sentence=None, **members):
    """As a program writes one."""
    return {"cause": cause, **members, "sentence": sentence or cause}


def test_merged_ledgers_balance_only_together():
    good = {"ledger": {"balanced": True, "received": 9, "paths": {"forward": {}}}, "verdicts": []}
    bad = {"ledger": {"balanced": False}, "verdicts": [fact("error", "a port vanished")]}
    merged = folder.merge_summaries(good, bad)
    assert merged["ledger"] == {
        "balanced": False,
        "received": 9,
        "paths": {"forward": {}},
        "programs": {"switch": True, "sender": False},
    }
    assert merged["verdict"] == "a port vanished"
    assert folder.merge_summaries(good, {})["ledger"]["balanced"]


def test_a_switch_that_was_stopped_after_its_sender_finished_is_fine():
    stopped = {"ledger": {}, "verdicts": [fact("interrupted")]}
    assert folder.merge_summaries(stopped, {"ledger": {}, "verdicts": []})["verdict"] == "ok"
    assert folder.merge_summaries(stopped, {})["verdict"] == "interrupted"
    both = folder.merge_summaries(stopped, stopped)
    assert both["verdicts"] == [fact("interrupted")]  # by the same signal


@pytest.mark.slow
def test_the_ledger_begins_at_the_ports(weir, tmp_path):
    """22,486 frames came and 2 left, and it said: 2 in = 2 out."""
    run = make_run(tmp_path / "r")
    written = json.loads((run / "summary.json").read_text())
    written["ledger"] |= {"received": 22486, "copied": 4, "transmitted": 6, "inside": 0}
    written["ledger"]["drops"] = {"malformed": 14198, "no_route": 8286}
    (run / "summary.json").write_text(json.dumps(written))
    first = next(line for line in weir("summary", run).out.splitlines() if "ledger" in line)
    assert first == (
        "ledger ports: 22,486 received + 4 copied = 6 transmitted + 0 inside"
        " + 14,198 malformed + 8,286 no_route"
    )
    assert weir("report", run).status == 0
    page = (run / "report.html").read_text()
    for label, count in (("received", "22,486"), ("− malformed", "14,198"), ("= 0", "0")):
        assert f'<td class="l">{label}</td><td class="r">{count}</td>' in page


def test_verdicts_of_both_programs_are_told():
    late = fact("lcore", "the sender fell behind", from_s=1, to_s=2)
    host = fact("host", "the host stole 3 %", from_s=3, to_s=4)
    sender = {"verdicts": [late, host]}
    merged = folder.merge_summaries({"verdicts": [fact("interrupted"), host]}, sender)
    assert merged["verdict"] == "the host stole 3 %"  # the switch was stopped after its sender
    assert merged["verdicts"] == [
        {"program": "switch", **host},
        {"program": "sender", **late},
        {"program": "sender", **host},
    ]
    assert summary.verdict_lines(decode(merged, "x")) == [
        "weir-switch: the host stole 3 %",
        "weir-sender: the sender fell behind",
        "weir-sender: the host stole 3 %",
    ]
    assert summary.verdict_lines(decode({"verdicts": []}, "x")) == []


def test_a_semicolon_in_a_sentence_ends_nothing():
    """It was split there, and what stood before it was said twice."""
    said = fact("error", "weir.yaml: a; b")
    merged = folder.merge_summaries({"verdicts": [said]}, {"verdicts": []})
    assert summary.verdict_lines(decode(merged, "x")) == ["weir-switch: weir.yaml: a; b"]


@pytest.mark.slow
def test_why_no_queue_stood_is_told_with_what_both_programs_know(weir, tmp_path):
    queue = fact("no_packets", "forward: no standing queue: no packet came", link="forward")
    flows = fact("not_begun", "all 2 flows had not begun", flows=2)
    merged = folder.merge_summaries({"why": [queue]}, {"limits": flows})
    assert summary.why_lines(decode(merged, "x")) == [f"{queue['sentence']}; {flows['sentence']}"]
    assert summary.why_lines(decode(folder.merge_summaries({"why": [queue]}, {}), "x")) == [
        queue["sentence"]
    ]
    run = make_run(tmp_path / "r")
    written = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps({**written, "why": [queue]}))
    assert f"why: {queue['sentence']}" in weir("summary", run).out.splitlines()
    assert weir("report", run).status == 0
    assert f"{queue['sentence']}.</p>" in (run / "report.html").read_text()


def test_emulation_errors_of_both_programs_are_told():
    late = {f"delay_error_{q}_ns": 500 for q in ("p50", "p99", "p999", "max")}
    paced = {f"pacing_error_{q}_ns": 2000 for q in ("p50", "p99", "p999", "max")}
    switch = {"emulation": {**late, "undisturbed": late, "rate_error_ppm": 0.25}}
    sender = {"emulation": {**paced, "pacing_undisturbed": paced}}
    merged = folder.merge_summaries(switch, sender)
    assert summary.emulation(decode(merged, "x")).rows == [
        ["delay, all packets", *["500 ns"] * 4, "0.250 ppm"],
        ["delay, undisturbed", *["500 ns"] * 4, ""],
        ["pacing, all packets", *["2.00 µs"] * 4, ""],
        ["pacing, undisturbed", *["2.00 µs"] * 4, ""],
    ]
    assert not summary.emulation(decode({}, "x"))
    assert "emulation" not in folder.merge_summaries({"verdict": "ok"}, {})


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.rate(9.71e9), "9.71 Gbit/s"),
        (units.rate(999.96e6), "1.00 Gbit/s"),
        (units.rate(0), "0 bit/s"),
        (units.rate(None), "–"),
        (units.time(20.34e6), "20.3 ms"),
        (units.time(0), "0 ns"),
        (units.time(1.5), "1.50 ns"),
        (units.size(1.25e9), "1.25 GB"),
        (units.number(1234567), "1,234,567"),
        (units.number(-1234567), "−1,234,567"),
        (units.time(-20.34e6), "−20.3 ms"),
        (units.count(-12), "−12"),
        (units.percent(-0.05), "−5.00 %"),
        (units.percent(0.97123), "97.12 %"),
        (units.config_time_ns("20ms"), 20e6),
        (units.config_time_ns("1.5 s"), 1.5e9),
        (units.config_time_ns("20 parsec"), None),
    ],
)
def test_numbers_for_people(shown, text):
    assert shown == text


@pytest.mark.parametrize("words", [("help", "run"), ("run", "-h"), ("help",), ("-h",)])
def test_help_by_other_words(weir, words):
    whole = ("run", "--help") if "run" in words else ("--help",)
    assert weir(*words).out == weir(*whole).out
    assert weir(*words).status == 0


def test_a_file_for_another_command(weir, weir_sim, tmp_path):
    (tmp_path / "one.yaml").write_text(SHORT)
    (tmp_path / "many.yaml").write_text("config: one.yaml\nseeds: 2\n")
    done = weir("run", "many.yaml", "--check")
    assert (done.status, done.err) == (
        2, "weir: many.yaml is a sweep, not one experiment: weir sweep many.yaml\n",
    )  # fmt: skip
    assert weir("run", "many.yaml").err == done.err
    done = weir("sweep", "one.yaml")
    assert (done.status, done.err) == (
        2, "weir: one.yaml is one experiment, not a sweep: weir run one.yaml\n",
    )  # fmt: skip


def test_a_long_note_makes_no_other_line_long():
    """Each line had blanks up to the end of the longest, which a terminal wrapped."""
    screen = Console(width=40, file=io.StringIO(), force_terminal=True)
    rows = [["a", "short"], ["b", "long " * 20]]
    terminal.print_table(screen, Table(("name", "note"), rows, left=2))
    lines = Text.from_ansi(screen.file.getvalue()).plain.splitlines()
    assert lines == ["name  note", "a     short", "b     " + ("long " * 20).strip()]


def test_a_wide_table_comes_in_parts_with_the_names_again():
    columns = ("name", *(f"number {index}" for index in range(12)))
    rows = [[f"row {n}", *(f"{n}{index:06}" for index in range(12))] for n in (1, 2)]
    screen = Console(width=80, record=True, file=io.StringIO())
    terminal.print_table(screen, Table(columns, rows, left=1))
    text = screen.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert text.count("row 1") == text.count("row 2") == 2
    assert all(cell in text for row in rows for cell in row)

# SPDX-License-Identifier: BSD-3-Clause
"""Running programs, made up here: finding them, weir ctl's and weir top's sentences and figures."""

import contextlib
import fcntl
import io
import json
import os
import pty
import socket
import struct
import subprocess
import sys
import termios

import pytest
from command import one_line
from fake_program import END, SILENT, FakeProgram
from rich.console import Console
from weir.base.errors import UserError
from weir.live import client, top
from weir.live.sample import Sample, frame, take

S = 1_000_000_000


@pytest.fixture
def folder(tmp_path_factory, monkeypatch):
    """DPDK's runtime folder, with a short name: a socket's path has 107 characters at most."""
    made = tmp_path_factory.mktemp("r")
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(made))
    return made


@pytest.fixture
def fake(folder):
    """Starts programs."""
    started = []

    def start(prefix, **answers):
        named = {f"/weir/{name}": answer for name, answer in answers.items()}
        started.append(FakeProgram(folder, prefix, named))
        return started[-1]

    yield start
    for program in started:
        program.close()


def switch(fake, prefix="sw", **answers):
    """A switch with a live parameter that can be set."""
    values = {"forward.link.rate": "1Gbit", "forward.loss.rate": "0%"}

    def set_(text):
        key, value = text.split("=")
        if key not in values:
            return {"error": f"there is no path '{key.split('.')[0]}'"}
        values[key] = value
        return {"before": "1", "after": "2"}

    usual = {
        "info": {"program": "weir-switch", "now_ns": 1 * S, "cpu": 1},
        "params": lambda _: [f"{key}={value}" for key, value in values.items()],
        "set": set_,
        "measure": {"ok": 1},
        "stop": {"ok": 1},
    }
    return fake(prefix, **usual | answers)


def sender(fake, prefix="se", **answers):
    return fake(prefix, **{"info": {"program": "weir-sender"}, "stop": {"ok": 1}} | answers)


def test_running_programs_are_found_and_others_are_not(folder, fake):
    switch(fake)
    sender(fake)
    fake("testpmd")  # knows no /weir/info
    fake("closing", info=END)
    fake("starting", info={"error": "the switch is not running"})
    killed = folder / "dpdk/killed"
    killed.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(killed / client.SOCKET))
    (folder / "dpdk/empty").mkdir()
    found = client.running()
    assert [(program.name, program.prefix) for program in found] == [
        ("weir-sender", "se"),
        ("weir-switch", "sw"),
    ]
    assert found[0].pid == 7
    for program in found:
        program.close()
    rest = client.running(but=["se"])
    assert client.listing(rest) == "weir-switch (prefix sw)"
    rest[0].close()


@pytest.mark.parametrize(
    ("variables", "path"),
    [
        ({"RUNTIME_DIRECTORY": "/a", "XDG_RUNTIME_DIR": "/b"}, "/a/dpdk"),
        ({"XDG_RUNTIME_DIR": "/b"}, "/b/dpdk"),
        ({}, "/tmp/dpdk"),
    ],
)
def test_the_runtime_folder_is_where_dpdk_has_it(monkeypatch, variables, path):
    for name in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert str(client.runtime_folder()) == path
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert str(client.runtime_folder()) == ("/a/dpdk" if path == "/a/dpdk" else "/var/run/dpdk")


def test_nothing_runs(folder, weir):
    for command in (["ctl"], ["ctl", "stop"], ["top", "--once"]):
        done = weir(*command)
        assert (done.status, done.out) == (1, "")
        assert "no program of Weir runs" in one_line(done.err)
        assert str(folder) in done.err


@pytest.mark.parametrize("argv", [("top", "--once"), ("ctl",), ("ctl", "--prefix", "sw")])
def test_one_that_answers_nonsense_is_not_none(fake, weir, argv):
    """It said that no program runs."""
    fake("sw", info=b'{"/weir/info":{"run":"\\1\\2t\\1"}}')
    done = weir(*argv)
    said = "weir: the program with the prefix 'sw' runs, but its answer is no JSON\n"
    assert (done.status, done.out, done.err) == (1, "", said)


def test_texts_of_answers_are_what_they_were(fake, folder):
    info = {
        "program": "weir-switch",
        "run": "/tmp/%C3",
        "run/2": "%A9t%C3%A9 100%2541",
        "run/4": "x",
    }
    fake("sw", info=info, params=["a.loss=2%", "%E2%9C%93=1"])
    with client.named("sw") as program:
        assert program.info["run"] == "/tmp/\u00e9t\u00e9 100%41"
        assert program.ask("/weir/params") == ["a.loss=2%", "\u2713=1"]


def test_a_prefix_that_nobody_has_names_those_there_are(fake, weir):
    switch(fake)
    fake("testpmd")
    fake("ended", info={"error": "the switch is not running"})
    for prefix, sentence in (
        ("nope", "no program with the prefix 'nope' runs; these do: weir-switch (prefix sw)"),
        ("testpmd", "'testpmd': this is no program of Weir"),
        ("ended", "'ended': the switch is not running"),
    ):
        assert sentence in weir("ctl", "--prefix", prefix).refused(1)


def test_several_programs_ask_for_a_prefix(fake, weir):
    programs = switch(fake, "one"), switch(fake, "two"), sender(fake)
    done = weir("ctl", "forward.link.rate=2Gbit")
    assert done.status == 2
    assert one_line(done.err).endswith(
        "several run: weir-switch (prefix one), weir-switch (prefix two);"
        " choose one, as with --prefix one"
    )
    assert weir("ctl", "stop").status == 2
    assert not any("/weir/stop" in program.asked for program in programs)
    assert weir("ctl", "stop", "--prefix", "se").status == 0
    assert [("/weir/stop" in program.asked) for program in programs] == [False, False, True]


def of_run(program, folder, **more):
    return {"program": program, "run": folder, "now_ns": S, "cpu": 1, **more}


def test_stop_ends_all_programs_of_the_run(fake, weir):
    """As the guide writes it: it asked for a prefix where switch and sender ran."""
    order = []
    programs = [
        switch(fake, "sw", info=of_run("weir-switch", "runs/a"), stop=lambda _: order.append("sw")),
        sender(fake, "se", info=of_run("weir-sender", "runs/a"), stop=lambda _: order.append("se")),
    ]
    for program in programs:
        stopped = program.answers["/weir/stop"]
        program.answers["/weir/stop"] = lambda text, stopped=stopped: stopped(text) or {"ok": 1}
    done = weir("ctl", "stop")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert order == ["se", "sw"]  # what is under way still finds a switch


def test_stop_of_several_runs_says_what_to_write(fake, weir):
    programs = [
        switch(fake, "sw", info=of_run("weir-switch", "/a/run")),
        sender(fake, "se", info=of_run("weir-sender", "/b/run")),
    ]
    said = weir("ctl", "stop").refused()
    assert said == (
        "weir: several runs go on: weir-sender (prefix se, run /b/run), weir-switch (prefix sw, run"
        " /a/run); say which program ends: weir ctl stop --prefix se"
    )
    assert not any("/weir/stop" in program.asked for program in programs)
    assert weir("ctl", "stop", "--prefix", "se").status == 0
    assert ["/weir/stop" in program.asked for program in programs] == [False, True]


@pytest.mark.parametrize("command", ["ctl", "top"])
def test_ctl_and_top_are_listed_and_explain_themselves(weir, command):
    assert command in weir("--help").out
    assert "--prefix NAME" in weir(command, "--help").out
    assert f"--frobnicate; see weir {command} --help" in weir(command, "--frobnicate").refused()


@pytest.mark.parametrize("interval", ["0", "-1", "inf", "nan", "soon"])
def test_an_interval_that_cannot_be(weir, interval):
    said = weir("top", "--interval", interval).refused()
    assert f"--interval: '{interval}' is not a number from 0.1" in said


@pytest.mark.parametrize(("command", "rich"), [("ctl", set()), ("top", {"rich"})])
def test_little_is_taken_of_the_cpu_that_programs_poll_on(command, rich):
    """ctl took 4 s beside two polling cores: half a second of imports at a tenth of a CPU."""
    script = (
        f"import runpy, sys\nsys.argv = ['weir', {command!r}, '--help']\n"
        "try: runpy.run_module('weir', run_name='__main__')\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"weir.live.{command}" in done.stderr.split()
    heavy = {"typer", "rich", "numpy", "polars", "yaml", "matplotlib"}
    assert heavy & set(done.stderr.split()) == rich


def test_ctl_is_the_switch_s(fake, weir):
    sender(fake)
    said = weir("ctl", "forward.link.rate=2Gbit").refused(1)
    assert "no weir-switch runs, only weir-sender (prefix se)" in said


def test_ctl_shows_what_may_be_changed(fake, weir):
    switch(fake)
    sender(fake)  # is no other choice: it has no such parameters
    lines = weir("ctl").out.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["forward.link.rate", "1Gbit"],
        ["forward.loss.rate", "0%"],
    ]


def test_ctl_changes_one_after_the_other(fake, weir):
    program = switch(fake)
    done = weir("ctl", "paths.forward.link.rate=2Gbit", "forward.loss.rate=1%").worked()
    assert done.out.splitlines() == [
        "forward.link.rate: 1Gbit -> 2Gbit",
        "forward.loss.rate: 0% -> 1%",
    ]
    asked = [question for question in program.asked if question.startswith("/weir/set")]
    assert asked == ["/weir/set,forward.link.rate=2Gbit", "/weir/set,forward.loss.rate=1%"]
    assert weir("ctl", "measure").status == 0
    assert "/weir/measure" in program.asked


@pytest.mark.parametrize(
    ("orders", "status", "sentence"),
    [
        (["sideways.link.rate=1Gbit"], 2, "there is no path 'sideways'"),
        (["faster"], 2, "'faster' is none of measure, stop and a change such as"),
        (["stop", "forward.loss.rate=1%"], 2, "'stop' stands alone"),
    ],
)
def test_bad_orders_change_nothing(fake, weir, orders, status, sentence):
    program = switch(fake)
    done = weir("ctl", *orders)
    assert (done.status, done.out) == (status, "")
    assert sentence in one_line(done.err)
    assert "/weir/stop" not in program.asked


def test_a_switch_that_ends_or_hangs_is_said_so(fake, weir, monkeypatch):
    switch(fake, set=END)
    assert weir("ctl", "forward.loss.rate=1%").refused(1) == "weir: weir-switch has ended"
    monkeypatch.setattr(client, "ANSWER_TIMEOUT_S", 0.05)
    fake("mute", info=SILENT)
    with pytest.raises(UserError, match="prefix 'mute' does not answer"):
        client.named("mute")


# One second of a switch with a link of 1 Gbit/s in one of its paths, and of a sender.
def port(now_s, pkts, path="", **more):
    counted = {"rx_pkts": pkts, "rx_bytes": 1000 * pkts, "tx_pkts": 2 * pkts, "tx_bytes": 0}
    named = {"name": "left", "dev": "net_null0", "path": path, "up": 1, "tx_dropped": 3}
    return {"now_ns": now_s * S, **named, **counted, **more}


def switch_sample(now_s, pkts):
    sample = Sample("weir-switch", "sw", {"now_ns": now_s * S, "cpu": 1, "iterations": pkts * 10})
    sample.info |= {"busy_ns": now_s * S // 4, "elapsed_ns": 5 * S, "duration_ns": 30 * S}
    late = {"left_pkts": pkts, "late_sum_ns": 700 * pkts, "late_max_ns": 9000}
    sample.ports = {"left": port(now_s, pkts, "forward", **late)}
    counted = {"in_bytes": 1000 * pkts, "out_bytes": 500 * pkts, "out_pkts": pkts}
    dropped = {"drop_queue_full": 4, "drop_loss": 0}
    sample.paths = {
        "forward": {"name": "forward", "now_ns": now_s * S, "inside_pkts": 8, **counted, **dropped}
    }
    link = {"name": "forward.link", "now_ns": now_s * S, "rate_bps": 1_000_000_000}
    link |= {"queue_pkts": 10, "queue_bytes": 15000, "out_bytes": 500 * pkts, "drops": 4}
    sample.links = {
        "forward/link": {**link, "marks": 5, "wire_bits": 8 * pkts, "capacity_bits": 10 * pkts}
    }
    return sample


def sender_sample(now_s, pkts, measured=2):
    info = {"now_ns": now_s * S, "cpu": 0, "iterations": 5, "busy_ns": 0, "groups": 1}
    sample = Sample("weir-sender", "se", info)
    flows = {"waiting": 1, "open": 2, "done": 3, "failed": 4, "measured": measured}
    means = {"srtt_mean_ns": 20_000_000, "cwnd_mean_segs": "12.5", "pacing_bps": 0}
    counted = {"acked_bytes": 1000 * pkts, "retransmits": pkts // 10, "timeouts": 1}
    sample.groups = {
        "0": {"name": "ours", "cc": "copa", "now_ns": now_s * S, **flows, **means, **counted}
    }
    return sample


def test_rates_are_differences_of_two_samples():
    made = frame(
        [switch_sample(1, 1000), sender_sample(1, 1000)],
        [switch_sample(3, 5000), sender_sample(3, 5000)],
    )
    switch_, sender_ = made["lcores"]
    assert (switch_["busy"], switch_["iterations_per_s"]) == (0.25, 20000)
    assert switch_["iteration_mean_ns"] == 50000
    assert (sender_["busy"], sender_["iterations_per_s"], sender_["iteration_mean_ns"]) == (
        0,
        0,
        None,
    )
    (port_,) = made["ports"]
    assert (port_["rx_pps"], port_["rx_bps"], port_["tx_pps"]) == (2000, 16e6, 4000)
    (path,) = made["paths"]
    assert (path["in_bps"], path["out_bps"]) == (16e6, 8e6)
    assert (path["drops"], path["drops_by_reason"]) == (4, {"queue_full": 4})
    assert (path["late_mean_ns"], path["late_max_ns"]) == (700, 9000)
    (link,) = made["links"]
    assert (link["path"], link["utilisation"], link["queue_ns"]) == ("forward", 0.8, 120_000)
    (group,) = made["groups"]
    assert (group["goodput_bps"], group["retransmits_per_s"]) == (16e6, 200)
    assert (group["srtt_mean_ns"], group["cwnd_mean_segs"]) == (20e6, 12.5)


def test_several_lcores_have_a_row_each():
    def sample(now_s, *busy_s):
        made = sender_sample(now_s, 1000)
        made.info |= {"lcores": len(busy_s), "elapsed_ns": now_s * S}
        made.lcores = {
            str(i): {
                "cpu": 2 + i,
                "now_ns": now_s * S,
                "iterations": 10 * now_s,
                "busy_ns": busy * S,
            }
            for i, busy in enumerate(busy_s)
        }
        return made

    first, second = frame([sample(1, 0, 0)], [sample(3, 1, 2)])["lcores"]
    assert (first["cpu"], first["busy"], first["elapsed_s"]) == (2, 0.5, 3)
    assert (second["cpu"], second["busy"], second["iterations_per_s"]) == (3, 1, 10)
    (row, *_) = frame([], [sample(3, 1, 2)])["lcores"]
    assert row["busy"] is None


def test_what_is_not_known_is_not_shown_as_zero():
    # A program that has just come, one whose counters began anew, and flows without a round trip.
    (row,) = frame([], [switch_sample(3, 5000)])["ports"]
    assert (row["rx_bps"], row["dropped"]) == (None, 3)
    (path,) = frame([switch_sample(1, 9000)], [switch_sample(3, 5000)])["paths"]
    assert (path["out_bps"], path["late_mean_ns"]) == (None, None)
    (group,) = frame([], [sender_sample(3, 5, measured=0)])["groups"]
    assert (group["srtt_mean_ns"], group["cwnd_mean_segs"]) == (None, None)


def test_every_kind_of_row_is_on_the_screen(capsys):
    before = [switch_sample(1, 1000), sender_sample(1, 1000)]
    now = [switch_sample(3, 5000), sender_sample(3, 5000, measured=0)]
    extra = now[0].links["forward/link"] | {"name": "forward.link2"}
    now[0].links["forward/link2"] = extra
    Console(width=200).print(top.render(frame(before, now), 200))
    out = capsys.readouterr().out
    for text in (
        "weir-switch",
        "25.0 %",
        "2,000 pkt/s",
        "80.0 %",
        "120 µs",
        "700 ns",
        "16.0 Mbit/s",
    ):
        assert text in out
    assert out.splitlines()[-4].split()[0] == "forward.link2"


def counting():
    """Answers of a switch whose time goes on by a second per question."""
    times = iter(range(1, 1000))
    return {
        "info": lambda _: switch_sample(next(times), 0).info | {"program": "weir-switch"},
        "ports": lambda _: {"left": port(2 * next(times), 1000)},
        "paths": {},
        "links": {},
    }


def test_once_is_one_frame_for_people_and_for_programs(fake, weir):
    switch(fake, **counting())
    done = weir("top", "--once", "--interval", "0.1").worked()
    assert "net_null0" in done.out
    rows = json.loads(one_line(weir("top", "--once", "--interval", "0.1", "--json").out))
    assert rows["ports"][0]["name"] == "left"
    assert [row["prefix"] for row in rows["lcores"]] == ["sw"]


def test_top_ends_with_the_program(fake, weir):
    times = iter(range(1, 7))

    def info(_):
        now_s = next(times, None)
        if now_s is None:
            return END
        return switch_sample(now_s, 0).info | {"program": "weir-switch"}

    switch(fake, info=info, ports={}, paths={}, links={})
    done = weir("top", "--interval", "0.1", "--json", "--prefix", "sw").worked()
    # One question to connect, one per sample, a frame between two samples.
    assert len(done.out.splitlines()) == 4


def fitting_frame(columns):
    """What a terminal of so many columns shows."""
    before = [switch_sample(1, 1000), sender_sample(1, 1000)]
    now = [switch_sample(3, 5_000_000), sender_sample(3, 5_000_000)]
    console = Console(width=columns, file=io.StringIO())
    console.print(top.render(frame(before, now), columns))
    return console.file.getvalue()


def test_top_is_readable_at_60_columns():
    """Its columns were cut off until each was a letter and three dots."""
    wide, narrow = fitting_frame(200), fitting_frame(60)
    assert "…" not in wide
    assert "…" not in narrow
    for text in ("weir-switch", "25.0 %", "left", "forward", "80.0 %", "120 µs", "ours", "20.0 ms"):
        assert text in narrow
    for text in ("net_null0", "inside"):
        assert text in wide
        assert text not in narrow


# q is a key of the terminal, Ctrl-C a signal: it is the session's own, and top leads it.
@pytest.mark.parametrize("key", ["q", "\x03"])
def test_q_and_ctrl_c_on_a_terminal_are_a_good_end(fake, key):
    switch(fake, **counting())
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    before = termios.tcgetattr(theirs)
    top_ = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "weir", "top", "--interval", "0.1"],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "", "LINES": ""},
    )  # fmt: skip
    seen = b""
    while seen.count(b"net_null0") < 3:  # pytest's timeout is the deadline
        seen += os.read(ours, 4096)
    assert termios.tcgetattr(theirs) != before
    os.write(ours, key.encode())
    assert top_.wait(60) == 0, seen
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    with contextlib.suppress(OSError):  # how a terminal says that nobody is left
        while more := os.read(ours, 4096):
            seen += more
    os.close(ours)
    assert b"interrupted" not in seen
    assert b"Traceback" not in seen


def in_parts(rows):
    """An answer in parts, as programs give it where 16 KB are not enough."""
    return lambda text: dict(list(rows.items())[int(text or 0) :][:24])


@pytest.mark.parametrize("what", ["groups", "links"])
def test_long_lists_are_asked_for_in_parts(fake, what):
    rows = {str(i): {"name": f"{i}"} for i in range(64)}
    info = {"program": "weir-sender", what: 64}
    asked = sender(fake, info=info, ports={}, **{what: in_parts(rows)})
    with client.named("se") as program:
        sample = take(program)
    assert getattr(sample, what) == rows
    assert [text for text in asked.asked if what in text] == [
        f"/weir/{what},0",
        f"/weir/{what},24",
        f"/weir/{what},48",
    ]


def test_all_parameters_are_asked_for(fake, weir):
    values = [f"p{i}.link.rate=1Gbit" for i in range(200)]
    info = {"program": "weir-switch", "now_ns": 1 * S, "cpu": 1, "params": 200}
    switch(fake, info=info, params=lambda text: values[int(text or 0) :][:96])
    done = weir("ctl").worked()
    assert [line.split()[0] for line in done.out.splitlines() if "Gbit" in line] == [
        f"p{i}.link.rate" for i in range(200)
    ]

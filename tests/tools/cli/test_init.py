# SPDX-License-Identifier: BSD-3-Clause
"""weir init: a few answers make a config that runs; nothing is lost, Ctrl-C leaves nothing."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
import yaml

FLAGS = ("--rate", "10Mbit", "--flows", "2 copa, cubic", "--duration", "500ms")


@pytest.fixture
def build_env(build, weir_sim):
    return {"WEIR_BUILD": str(build)}


def test_the_result_runs(weir, build_env, tmp_path):
    done = weir("init", "mine.yaml", *FLAGS, env=build_env)
    assert done.status == 0, done.err
    assert done.out == "mine.yaml is written; next: weir run mine.yaml\n"
    config = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    assert config["flows"] == [{"count": 2, "cc": "copa"}, {"count": 1, "cc": "cubic"}]
    assert config["paths"]["forward"][0]["link"]["rate"] == "10Mbit"
    done = weir("run", "mine.yaml", "--json", "--no-report", env=build_env)
    assert done.status == 0, done.err
    summary = json.loads(done.out)
    assert summary["virtual_s"] == 0.5
    assert [group["flows"] for group in summary["groups"]] == [2, 1]


def test_a_name_with_a_space_can_be_copied(weir, build_env, tmp_path):
    done = weir("init", "my first.yaml", *FLAGS, env=build_env)
    assert done.out == "'my first.yaml' is written; next: weir run 'my first.yaml'\n"
    assert "#   weir run 'my first.yaml'  " in (tmp_path / "my first.yaml").read_text()


def test_editors_find_the_schema(weir, build_env, folder_schema, tmp_path):
    assert weir("init", "sub.yaml", *FLAGS, env=build_env).status == 0
    [line] = [
        line
        for line in (tmp_path / "sub.yaml").read_text().splitlines()
        if line.startswith("# yaml-language-server: $schema=")
    ]
    schema = json.loads((tmp_path / line.partition("=")[2]).read_text())
    assert schema["title"] == "A Weir experiment"


def test_without_a_terminal_there_are_defaults(weir, build_env, tmp_path):
    assert weir("init", env=build_env).status == 0
    config = yaml.safe_load((tmp_path / "experiment.yaml").read_text())
    assert config["duration"] == "30s"
    assert config["flows"] == [{"count": 2, "cc": "copa"}]


def test_without_standard_input_there_are_defaults_too(build_env, tmp_path):
    """As some schedulers start programs: a traceback."""
    line = f"{sys.executable} -m weir init <&-"
    argv, env = ["bash", "-c", line], {**os.environ, **build_env}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "experiment.yaml").exists()


def test_a_file_is_replaced_only_if_asked(weir, build_env, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("precious")
    done = weir("init", file, *FLAGS, env=build_env)
    assert done.status == 2
    assert done.err == f"weir: {file} exists; --force replaces it\n"
    assert file.read_text() == "precious"
    assert weir("init", file, *FLAGS, "--force", env=build_env).status == 0
    assert "precious" not in file.read_text()


@pytest.mark.parametrize(
    ("flag", "value", "sentence"),
    [
        ("--rate", "10Gbitt", "rate: '10Gbitt' is not a rate such as 10Gbit"),
        ("--rate", "1bit", "rate: 1bit is not 0 or in [1kbit, 1Tbit]"),
        ("--rate", "1Mbit}", "rate: '1Mbit}' is not a number with a unit"),
        ("--duration", "5x", "duration: '5x' is not a time such as 20ms"),
        ("--rtt", "20", "rtt: '20' is not a time such as 20ms"),
        ("--buffer", "3", "limit: '3' is not a limit such as 375MB, 1000pkt, 50ms or 1BDP"),
        ("--rate", "10MB/s", "rate: '10MB/s' is not a rate such as 10Gbit"),
        ("--flows", "2 cupa", "'2 cupa' is not a number and one of copa, "),
        ("--flows", "", "'' is not a number and one of copa, "),
        ("--flows", "0 copa", "count: 0 is not in [1, 1000000]"),
    ],
)
def test_bad_answers(weir, build_env, tmp_path, flag, value, sentence):
    done = weir("init", "mine.yaml", *FLAGS, flag, value, env=build_env)
    assert done.status == 2
    assert done.err.startswith(f"weir: {sentence}"), done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "mine.yaml").exists()


class Asked:
    """`weir init` at a terminal."""

    def __init__(self, place, env):
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weir", "init"],
            cwd=place,
            env={**os.environ, **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.said = ""

    def until(self, text, seconds=60):
        deadline = time.monotonic() + seconds
        while text not in self.said:
            left = deadline - time.monotonic()
            assert left > 0, self.said
            if not select.select([self.ours], [], [], left)[0]:
                continue
            try:
                self.said += os.read(self.ours, 4096).decode()
            except OSError:  # it has ended
                raise AssertionError(self.said) from None
        before, _, self.said = self.said.partition(text)
        return before

    def answer(self, text):
        os.write(self.ours, text.encode() + b"\n")


# What people write, and what the config has for it.
WRITTEN = [
    ("--rate", "50Mbps", "rate", "50Mbit"),
    ("--rate", "100mbit", "rate", "100Mbit"),
    ("--rate", "10Mb/s", "rate", "10Mbit"),
    ("--rate", "1 Gbps", "rate", "1Gbit"),
    ("--rate", "10M", "rate", "10Mbit"),
    ("--duration", "30", "duration", "30s"),
    ("--duration", "1 minute", "duration", "60s"),
    ("--rtt", "50 milliseconds", "delay", "25ms"),
    ("--buffer", "100 packets", "limit", "100pkt"),
    ("--flows", "3 Reno", "cc", "newreno"),
    ("--flows", "1x BBR and 2 copa flows", "cc", "bbr"),
]


@pytest.mark.parametrize(("flag", "text", "key", "value"), WRITTEN)
def test_it_takes_what_people_write(weir, build_env, tmp_path, flag, text, key, value):
    done = weir("init", "mine.yaml", *FLAGS, flag, text, env=build_env)
    assert (done.status, done.err) == (0, "")
    config = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    link, delay = config["paths"]["forward"]
    found = {
        "rate": link["link"]["rate"],
        "limit": link["link"]["queue"]["fifo"]["limit"],
        "delay": delay["delay"]["delay"],
        "duration": config["duration"],
        "cc": config["flows"][0]["cc"],
    }
    assert found[key] == value


def test_it_says_what_was_typed(weir, build_env, tmp_path):
    """A clone has no `weir` on its PATH."""
    typed = {**build_env, "WEIR_COMMAND": "../clone/tools/weir init mine.yaml"}
    done = weir("init", "mine.yaml", *FLAGS, env=typed)
    assert done.out == "mine.yaml is written; next: ../clone/tools/weir run mine.yaml\n"
    text = (tmp_path / "mine.yaml").read_text()
    assert "#   ../clone/tools/weir run mine.yaml -o seed=2 " in text
    argv = [sys.executable, "-m", "weir", "init", "--help"]  # its examples are made at its start
    shown = subprocess.run(argv, env={**os.environ, **typed}, capture_output=True, text=True)
    assert "  ../clone/tools/weir init mine.yaml --force" in shown.stdout
    assert "Usage: ../clone/tools/weir init " in shown.stdout


def test_it_asks_five_questions(build_env, tmp_path):
    asked = Asked(tmp_path, build_env)
    asked.until("How fast is the bottleneck [100Mbit]: ")
    asked.answer("10Gbitt")
    asked.until("weir: rate: '10Gbitt' is not a rate such as 10Gbit")
    asked.until("[100Mbit]: ")
    asked.answer("20Mbit")
    asked.until("How long is the round trip without queues [20ms]: ")
    asked.answer("40ms")
    asked.until("[1BDP]: ")
    asked.answer("")
    asked.until("[2 copa]: ")
    asked.answer("")
    asked.until("[30s]: ")
    asked.answer("4s")
    asked.until("next: weir run experiment.yaml")
    assert asked.process.wait(timeout=60) == 0
    config = yaml.safe_load((tmp_path / "experiment.yaml").read_text())
    assert config["paths"]["forward"][0]["link"]["rate"] == "20Mbit"
    assert config["duration"] == "4s"


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(build_env, tmp_path):
    asked = Asked(tmp_path, build_env)
    asked.until("[100Mbit]: ")
    # A signal between Python's prompt and its read is seen by neither.
    for _ in range(10):
        asked.process.send_signal(signal.SIGINT)
        with contextlib.suppress(AssertionError):
            asked.until("weir: interrupted", seconds=5)
            break
    assert asked.process.wait(timeout=60) == 130
    assert list(tmp_path.iterdir()) == []

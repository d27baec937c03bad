# SPDX-License-Identifier: BSD-3-Clause
"""weir shell: the config that its options stand for, and what it says of a wrong one."""

import sys

import pytest
from weir.analysis.run_summary import decode
from weir.base.errors import UserError
from weir.cli import shell as cli
from weir.cli.shell import Link
from weir.live import shell, shell_report


@pytest.fixture(autouse=True)
def programs(build, weir_switch, monkeypatch):
    monkeypatch.setenv("WEIR_BUILD", str(build))


def test_options_are_paths():
    config = cli.resolved(None, Link("50Mbit", "20ms", queue="codel", loss="1%"), [], None)
    assert list(config["paths"]) == ["forward", "reverse"]
    for stages in config["paths"].values():
        loss, link, delay = stages
        assert loss["loss"]["rate"] == "1%"
        assert (link["link"]["rate"], *link["link"]["queue"]) == ("50Mbit", "codel")
        assert delay["delay"]["delay"] == "20ms"


def test_each_direction_has_its_own(root):
    file = root / "configs/traces/lte-like.trace"
    config = cli.resolved(None, Link(delay="20ms", up="5Mbit", down=str(file)), [], None)
    assert config["paths"]["forward"][0]["link"]["rate"] == "5Mbit"
    assert config["paths"]["reverse"][0]["mahimahi_link"]["file"] == str(file)


def test_only_the_paths_of_a_config_are_taken(root):
    """Its flows, its duration and its stop rule are of another experiment."""
    overrides = ["paths.forward.link.rate=7Mbit", "flows.0.count=3"]
    config = cli.resolved(root / "configs/quickstart.yaml", Link(), overrides, 5)
    assert not {"flows", "duration", "stop", "live"} & {*config}
    assert (config["seed"], config["warmup"]) == ("5", "0s")
    assert config["paths"]["forward"][0]["link"]["rate"] == "7Mbit"


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (Link("50Mbitt"), "rate: '50Mbitt' is not a rate such as 10Gbit"),
        (Link(delay="20"), "delay: '20' is not a time such as 20ms"),
        (Link("5Mbit", queue="cdel"), "queue"),
        (Link(delay="1ms", queue="codel"), "--queue and --limit are of a link"),
        (Link(up="5Mbit", limit="9pkt"), "--queue and --limit are for both directions"),
        (Link(down="no/such/file"), "no/such/file: cannot be read"),
    ],
)
def test_a_wrong_option_is_one_sentence(link, said):
    with pytest.raises(UserError) as refused:
        cli.resolved(None, link, [], None)
    assert said in str(refused.value)
    assert "standard input" not in str(refused.value)
    assert refused.value.status == (1 if link.down else 2)  # a file that cannot be read


def test_a_config_needs_both_directions(root):
    file = root / "configs/parking-lot.yaml"
    with pytest.raises(UserError) as refused:
        cli.resolved(file, Link(), [], None)
    assert str(refused.value).startswith(f"{file}: there is no path 'reverse'; there is hop1")


@pytest.mark.parametrize(
    ("typed", "words", "found"),
    [
        (["--delay", "1ms", "--", "sh", "-c", "x"], ["sh", "-c", "x"], (None, ["sh", "-c", "x"])),
        (["a.yaml", "--", "sh"], ["a.yaml", "sh"], ("a.yaml", ["sh"])),
        (["a.yaml"], ["a.yaml"], ("a.yaml", ["/bin/sh"])),
    ],
)
def test_the_command_stands_behind_two_dashes(monkeypatch, typed, words, found):
    monkeypatch.setattr(sys, "argv", ["weir", "shell", *typed])
    monkeypatch.setenv("SHELL", "/bin/sh")
    file, command = cli.split(words)
    assert (file and str(file), command) == found


@pytest.mark.parametrize(
    ("typed", "words", "said"),
    [
        (["a.yaml", "ls", "-l"], ["a.yaml", "ls"], "write -- before the command: -- ls"),
        (["--", "no-such"], ["no-such"], "no-such: there is no such command"),
    ],
)
def test_a_wrong_command_is_one_sentence(monkeypatch, typed, words, said):
    monkeypatch.setattr(sys, "argv", ["weir", "shell", *typed])
    with pytest.raises(UserError, match=said):
        cli.split(words)


def test_frames_that_a_user_may_lock(monkeypatch):
    """The rings of both ports take at most half of what RLIMIT_MEMLOCK allows."""
    monkeypatch.setattr(shell.contained, "is_machines_root", lambda: False)
    monkeypatch.setattr(shell.resource, "setrlimit", lambda *_: None)
    for most, frames in ((8 << 20, 512), (64 << 10, 64), (1 << 40, shell.FRAMES), (-1, 4096)):
        monkeypatch.setattr(shell.resource, "getrlimit", lambda _, most=most: (most, most))
        assert shell.frames() == frames


def test_offloads_are_left_out_where_there_are_some():
    """Ports of users that are not root have none."""

    def ports(**given):
        return [port.get("offloads") for port in shell.section(**given)["switch"]["ports"]]

    assert ports() == ports(offloads=False) == [None, None]
    assert ports(frames=None) == ["on", "on"]
    assert ports(frames=None, offloads=False) == ["off", "off"]


def test_the_report_has_a_row_for_each_direction():
    """A path without a link has no queue, which a dash says."""
    nothing = {"pkts": 0, "bytes": 0}
    out, lost = {"pkts": 1000, "bytes": 1_000_000}, {"loss": {"pkts": 3, "bytes": 1}}
    account = dict.fromkeys(("in", "duplicated", "inside"), nothing)
    paths = {"forward": {**account, "balanced": True, "out": out, "drops": lost}}
    late = {"path": "forward", "delay_error_p50_ns": 100, "delay_error_p99_ns": 2000}
    text = {"virtual_s": 8, "ledger": {"paths": paths}, "emulation": {"ports": [late]}}
    summary = decode(text, "x")
    up, down = shell_report.rows(summary, False)
    assert up == ["up", "1.00 MB", "1.00 Mbit/s", "–", "–", "–", "3", "100 ns, 2.00 µs"]
    assert down[1:3] == ["–", "–"]
    assert shell_report.rows(summary, True)[1] == ["down", *up[1:]]

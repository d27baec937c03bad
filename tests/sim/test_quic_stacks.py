# SPDX-License-Identifier: BSD-3-Clause
"""QUIC stacks by name: their flows, controls, transfers and logs; the same bytes in each run."""

import resource
import shutil
from pathlib import Path

import pytest
from weir.analysis import qlog
from weir.analysis.run_summary import decode
from weir.analysis.summary import groups as groups_table
from weir.base import tables
from weir.base.errors import UserError
from weir.guests import stacks
from weir.studies.evaluate import criteria as evaluate
from weir.studies.evaluate.scene import control_of
from weir.studies.quic import study

from .test_guests import alone, kernel, refused, run, write

__all__ = ["alone", "kernel", "run", "write"]  # fixtures
CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def built(name):
    """Skips what needs a compiler; ngtcp2 is a script around Debian's programs, aioquic Python."""
    if name == "aioquic" or (name == "ngtcp2" and shutil.which("gtlsclient")):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))  # an empty file of 16 GiB
        stacks.add(name)
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    if name not in stacks.built():
        pytest.skip(f"weir guests add {name} was not run")


def test_a_stack_has_flows_and_a_log(write, run, tmp_path):
    """ngtcp2 through a short queue, twice: its losses are the drops, its connection is a flow."""
    built("ngtcp2")
    config = write(
        "{count: 1, stack: {quic: {ngtcp2: {cc: reno}}}}",
        rate="10Mbit",
        queue="{fifo: {limit: 20pkt}}",
        duration="1s",
    )
    summary = run(config)
    typed = decode(summary, "summary")
    assert run(config, "again")["digest"] == summary["digest"]
    (group,) = summary["groups"]
    (sent,) = (flow for flow in summary["ip_flows"] if flow["direction"] == "forward")
    assert (group["name"], group["cc"], group["stack"]) == ("ngtcp2 reno", "reno", "ngtcp2")
    assert group["goodput_bps"] == sent["goodput_bps"] > 5e6
    assert (group["sent_segs"], group["drops"]) == (sent["sent_pkts"], sent["drops"])
    unknown = ("retransmits", "rtx_overhead", "lost_segs", "spurious", "rtt_mean_ns")
    assert [group[name] for name in unknown] == [None] * 5
    client, _ = qlog.of_run(tmp_path / "run", typed)
    assert client.path.drops == group["drops"] > 0
    assert 0 <= client.path.drops - client.lost_indeed - client.unacked <= 3  # of the last trips
    assert [row[0] for row in groups_table(typed).rows] == ["ngtcp2 reno", "ngtcp2 reno, udp back"]


def test_the_peers_window_holds_nothing_back(run):
    """ngtcp2's BBR leaves Startup: with its own window of 256 KiB the queue drops half of it all.

    Flow control makes it app-limited from the first losses on, and then it never ends Startup.
    """
    built("ngtcp2")
    changes = ("flows.0.stack.quic={ngtcp2: {cc: bbr}}", "duration=3s", "warmup=0s")
    summary = run(study.HERE / "path.yaml", "run", *(f"-o{change}" for change in changes))
    (group,) = summary["groups"]
    assert 0 < group["drops"] < 0.25 * group["sent_segs"]


def test_trees_that_share_a_cache_keep_each_its_own_programs(tmp_path, monkeypatch):
    """A stack is built again when our program has changed, and the earlier one stays."""
    monkeypatch.setenv("WEIR_GUESTS", str(tmp_path / "cache"))
    monkeypatch.setattr(stacks, "ENDLESS_BYTES", 1)
    (tmp_path / "cache").mkdir()
    mine, program = stacks.SOURCES, tmp_path / "cache/quic/ngtcp2/weir-quic"
    theirs = shutil.copytree(mine, tmp_path / "theirs")
    with (theirs / "ngtcp2.sh").open("a") as text:
        text.write("# theirs\n")
    version = stacks.debians("ngtcp2-client")
    for sources, fresh in ((mine, True), (theirs, True), (mine, False), (theirs, False)):
        monkeypatch.setattr(stacks, "SOURCES", sources)
        assert stacks.add("ngtcp2") == ("ngtcp2", version, fresh)
        assert program.read_bytes() == (sources / "ngtcp2.sh").read_bytes()
    assert stacks.built() == {"ngtcp2": version}
    assert stacks.remove("ngtcp2")
    assert list((tmp_path / "cache/quic").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", stacks.STACKS)
def test_transfers_have_completion_times(write, run, tmp_path, name):
    """Two of 30 kB one after another on each of two flows: at least a handshake and the data."""
    built(name)
    config = write(
        f"{{count: 2, stack: {{quic: {{{name}: {{size: 30kB, transfers: 2}}}}}}}}",
        rate="10Mbit",
        queue="{fifo: {limit: 100pkt}}",
        duration="1s",
    )
    typed = decode(run(config), "summary")
    (done,) = qlog.transfers(tmp_path / "run", typed)
    assert done.transfers == 4
    assert 2 * 20e6 + 30_000 * 8 / 10e6 * 1e9 < done.p50_ns <= done.p99_ns < 500e6
    assert {program.status for program in typed.guests.programs} == {0, None}


@pytest.mark.slow
@pytest.mark.parametrize("config", ["quic-ngtcp2", "quic-go"])
def test_quic_beside_tcp(run, tmp_path, config):
    """A full link, shared by the three, and the program's losses are the path's drops.

    What was dropped in the last round trips is not known to be lost at the end of the run.
    """
    built(config if config == "quic-go" else "ngtcp2")
    summary = run(CONFIGS / f"{config}.yaml", "run", "-o", "duration=4s")
    assert summary["links"]["forward"]["utilisation"] > 0.95
    for group in summary["groups"]:
        assert group["goodput_bps"] > 0.05 * 50e6
    client, *_ = qlog.of_run(tmp_path / "run", decode(summary, "summary"))
    known = client.lost_indeed + client.unacked
    assert 0 <= client.path.drops - known <= 0.05 * client.path.drops


@pytest.mark.parametrize(("stack", "said"), [
    ("stack: {quic: tcp}", "'tcp'"),
    ("stack: {quic: {ngtcp2: {cc: vegas}}}", "cubic, reno, bbr, bbr2"),
    ("stack: {quic: ngtcp2}, peer: weir", "a QUIC stack needs one at the other side"),
    ("stack: {quic: ngtcp2}, cc: bbr", "with stack: quic it is the stack's own"),
    ("stack: {quic: ngtcp2}, ip: ipv6", "QUIC stacks have IPv4 alone"),
    ("stack: {quic: ngtcp2}, jitter: 1s", "the program decides"),
])  # fmt: skip
def test_what_is_wrong_is_said(weir_sim, write, tmp_path, stack, said):
    refused(weir_sim, write(f"{{count: 1, {stack}}}"), tmp_path, said, started=False)


@pytest.fixture
def cache(tmp_path, kernel, monkeypatch):
    """A cache without stacks, below /tmp and named from where weir-sim begins."""
    (tmp_path / "cache/KEY").mkdir(parents=True)
    for file in (stacks.cache() / "current").iterdir():
        (tmp_path / "cache/KEY" / file.name).symlink_to(file.resolve())
    (tmp_path / "cache/current").symlink_to("KEY")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEIR_GUESTS", "cache")
    return tmp_path / "cache"


def test_guests_see_stacks_wherever_the_cache_is(write, run, cache, tmp_path):
    program = cache / "quic/quinn/weir-quic"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$0"\nexec sleep 9\n')
    program.chmod(0o755)
    run(write("{count: 1, stack: {quic: quinn}}", duration="100ms"))
    assert (tmp_path / "run/guest-0.out").read_text() == "/tmp/weir-quic/quinn/weir-quic\n"


@pytest.mark.usefixtures("cache")
def test_one_that_is_not_built_says_how(weir_sim, write, tmp_path):
    said = "quinn is not built; run: tools/weir guests add quinn"
    refused(weir_sim, write("{count: 1, stack: {quic: quinn}}"), tmp_path, said, started=False)


def test_what_is_asked_for_by_name():
    assert stacks.STACKS.keys() == tables.read()["quic"].keys()
    with pytest.raises(UserError, match="no QUIC stack 'lsquic'; there is aioquic, msquic"):
        stacks.add("lsquic@1")
    control = control_of("quic:ngtcp2:bbr")
    assert control.name == "quic-ngtcp2-bbr"
    assert control.keys == "stack: {quic: {ngtcp2: {cc: bbr, qlog: no}}}"
    cells = [claim for part in evaluate.study(control, "").experiments for claim in part.claims]
    assert {claim.says for claim in cells if "all of it" in claim.says} >= {"crowd: all of it"}

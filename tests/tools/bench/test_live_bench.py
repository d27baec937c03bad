# SPDX-License-Identifier: BSD-3-Clause
"""weir bench live: rows, ratios, what is read and written, what is skipped; and that it runs."""

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from fake_program import FakeProgram
from weir import bootstrap
from weir.base import tables
from weir.base.errors import UserError
from weir.bench import lab, live, peers
from weir.bench.lab import Bench, Case, Sample, Skipped
from weir.live.laboratory import CommandError


def sample(ns, frame=64):
    return Sample(pkts=1e6, bits=8e6 * frame, cpu_ns=ns * 1e6, wall_ns=ns * 2e6, tsc_hz=2e9)


def runs(case, **ns):
    return live.Runs(case, {name: [sample(v) for v in values] for name, values in ns.items()})


def test_every_row_has_its_own_name_and_the_quick_ones_are_among_them():
    names = [case.name for case in live.all_cases()]
    assert len(names) == len(set(names))
    assert Case("null", "64", "codel", 10, 3).name == "null-64-codel-10ms-level3"
    assert Case("sender", "5000", delay_ms=10).name == "sender-5000-10ms"
    assert Case("sender-switch", "5000", delay_ms=10).name == "sender-switch-5000-10ms"
    assert Case("memif", "1500", level=3, gbit=25).name == "memif-1500-fifo-25g-level3"
    assert Case("memif", "64", "drr", flows=5000).name == "memif-64-drr-5000flows"
    assert all(live.compared_with(case) for case in live.all_cases())
    assert "null-imix-fifo" not in names  # a null port has one size
    for port, frame in (("null", "64"), ("memif", "1500")):
        assert "fifo" in live.compared_with(Case(port, frame, "codel"))
    assert set(live.PEERS) == {p for c in live.all_cases() for p in live.compared_with(c)}


def test_rows_are_chosen_by_name_and_pattern_each_once(weir):
    chosen = [case.name for case in live.choose("sender-5000, sender-*,xdp-*-10ms", True)]
    assert chosen == [
        "sender-5000",
        "sender-5000-10ms",
        "sender-5000-20ms",
        "sender-50000",
        "sender-50000-10ms",
        "sender-50000-20ms",
        "sender-switch-5000-10ms",
        "xdp-1500-fifo-10ms",
        *(f"xdp-1500-{aqm}-10ms" for aqm in list(tables.read()["aqm"])[1:]),
    ]
    assert len(live.choose(None, False)) > len(live.choose(None, True)) == 15
    done = weir("bench", "live", "--rows", "null-65-*")
    assert (done.status, done.out) == (2, "")
    assert "no row is called 'null-65-*'" in done.err
    done = weir("bench", "live", "--list", "--rows", "null-64-fifo*")
    assert done.out.split() == [
        f"null-64-fifo{delay}{level}"
        for delay in ("", "-10ms")
        for level in ("", "-level1", "-level3")
    ]


def test_a_ratio_is_of_packets_per_second_and_the_median_of_the_turns():
    got = runs(Case("memif", "64"), weir=[50, 100, 40], mac=[25, 80, 40])
    assert got.ratios("mac") == pytest.approx([0.5, 0.8, 1.0])
    figures = got.peer_figures("mac")
    assert figures.ratio == pytest.approx(0.8)
    assert figures.ratio_spread == pytest.approx(0.25)
    weir = got.figures("weir")
    assert weir.ns_per_packet == 50
    assert weir.mpps == pytest.approx(20)
    assert weir.gbit_s == pytest.approx(10.24)
    assert weir.cycles_per_packet == pytest.approx(100)
    assert got.figures("ovs") is None


def test_the_table_has_a_line_per_peer_and_says_what_was_skipped(shown):
    rows = [
        runs(Case("null", "64"), weir=[80], floor=[16], io=[20]),
        runs(Case("null", "64", "codel", 10), weir=[90], floor=[45]),
        runs(Case("xdp", "1500")),
    ]
    for each in rows[:2]:
        each.skipped["ovs"] = "cannot install it"
    rows[2].skipped["weir"] = "network namespaces need root"
    found = live.report(rows)
    assert json.loads(found.json())["rows"][2]["weir"] is None
    text = shown(found)
    lines = [line.split() for line in text.splitlines()]
    assert lines[1][:5] == ["null-64-fifo", "12.5", "6.40", "80.0", "160"]
    assert lines[1][5:] == ["bare", "loop", "62.5", "16.0", "0.20", "0.00"]
    assert lines[2] == ["testpmd", "io", "50.0", "20.0", "0.25", "0.00"]
    assert lines[3][0] == "null-64-codel-10ms"
    assert "skipped: Open vSwitch (null-64-fifo, null-64-codel-10ms): cannot install it" in text
    assert "skipped: weir (xdp-1500-fifo): network namespaces need root" in text
    assert "got only 50 % of a core" in text
    assert found.failed
    assert not live.report(rows[:2]).failed


def test_who_is_skipped_once_is_not_asked_again(monkeypatch, tmp_path, rounds):
    asked = []

    def measured(name, skips=False):
        def measure(_, case):
            asked.append(name)
            if skips:
                raise CommandError("ip: no\nit cannot start here")
            return sample(10)

        return measure

    others = {"io": live.Peer("testpmd io", measured("io"))}
    others["bridge"] = live.Peer("bridge", measured("bridge", skips=True))
    monkeypatch.setattr(live, "PEERS", others)
    monkeypatch.setattr(peers, "weir_switch", measured("weir"))
    one = live.Runs(Case("xdp", "1500"))
    twice = rounds(2)
    live.interleave([one], twice, Bench(tmp_path, 1))
    assert asked == ["weir", "io", "bridge", "weir", "io"]
    assert one.skipped == {"bridge": "it cannot start here"}
    said = twice.screen.file.getvalue()
    assert "round 1 of 2, xdp-1500-fifo: bridge skipped: it cannot start here" in said


def test_what_cannot_be_installed_is_skipped_with_its_reason(monkeypatch, tmp_path):
    monkeypatch.setenv("WEIR_BUILD", str(tmp_path))
    monkeypatch.setattr(live.sim, "build_targets", lambda *targets: None)
    monkeypatch.setattr(bootstrap, "apt", lambda packages, build: "the network cannot be reached")
    need = bootstrap.Need("dpdk-dev", "command no-such-command")
    peer = live.Peer("testpmd mac", peers.floor, (need,))
    monkeypatch.setattr(live, "PEERS", {"mac": peer})
    rows = [live.Runs(Case("memif", "64")), live.Runs(Case("sender", "5000"))]
    live.prepare(rows)
    assert rows[0].skipped == {"mac": "cannot install dpdk-dev: the network cannot be reached"}
    assert rows[1].skipped == {}  # it has no such peer


@pytest.mark.slow
def test_the_switchs_configuration_is_the_case(weir_switch, tmp_path):
    for case in live.all_cases():
        if case.is_sender:
            continue
        devs = ["net_null0", "net_null1"]
        text = peers.switch_config("p", case, devs, 0)
        config = yaml.safe_load(text)
        stages = config["paths"]["forward"]
        assert list(stages[0]["link"]["queue"]) == [case.aqm]
        assert [s["delay"]["delay"] for s in stages[1:]] == ["10ms"] * (case.delay_ms == 10)
        assert config["telemetry"]["level"] == case.level
        assert config["paths"]["reverse"] == stages
        if case.level == 0:
            (tmp_path / "c.yaml").write_text(text)
            subprocess.run([weir_switch, tmp_path / "c.yaml", "--check"], check=True)


def test_the_senders_configuration_is_the_case(weir_sender, tmp_path):
    ports = [("sender", "net_memif0,id=0"), ("receiver", "net_memif1,id=1")]
    for kind, delays in (("sender", [None, "10ms"]), ("sender-switch", [None, None])):
        text = peers.sender_config("p", Case(kind, "5000", delay_ms=10), ports, 0)
        config = yaml.safe_load(text)
        assert config["flows"][0]["count"] == 5000
        assert [port.get("delay") for port in config["live"]["sender"]["ports"]] == delays
        (tmp_path / "c.yaml").write_text(text)
        subprocess.run([weir_sender, tmp_path / "c.yaml", "--check"], check=True)


def test_what_a_sender_sends_into_is_said(shown):
    assert "leave the row's time after" in shown(live.report([runs(Case("sender", "5000"))]))
    assert "sink" not in shown(live.report([runs(Case("null", "64"))]))


def test_the_load_is_the_case_and_at_a_rate_time_is_the_wall_clocks():
    assert peers.paced(Case("memif", "1500"), sample(10)).ns == 10
    assert peers.paced(Case("memif", "1500", gbit=25), sample(10)).ns == 20
    assert peers.load_text(Case("memif", "64")) == "64"
    assert peers.load_text(Case("memif", "1500", gbit=25)) == "1500@25"
    assert peers.load_text(Case("memif", "64", "drr", flows=65536)) == "64/65536"


def test_memory_is_for_what_the_delay_holds():
    least = peers.memory_bytes(Case("null", "64"))
    held = peers.memory_bytes(Case("null", "64", "fifo", 10)) - least
    assert held == 800_000 * peers.BUFFER_BYTES
    assert max(peers.memory_bytes(case) for case in live.all_cases()) < 8e9


def test_the_floors_figures():
    said = {"pkts": 1000, "cpu_s": 2e-5, "wall_s": 4e-5, "tsc_hz": 2.45e9}
    got = peers.floor_sample(f"EAL: a warning\n{json.dumps(said)}\n", 64)
    assert got.ns == pytest.approx(20)
    assert got.bits == 512_000
    assert got.wall_ns == pytest.approx(40_000)
    with pytest.raises(Skipped, match="no figures"):
        peers.floor_sample("EAL: an error\n", 64)


def test_lost_records_are_a_share_of_all_and_are_told(shown):
    stream = {"records": 60, "lost": 20}
    streams = {"packets": stream, "events": {"records": 20, "lost": 0}}
    assert peers.lost_share(streams) == pytest.approx(0.2)
    assert peers.lost_share({}) == 0
    got = runs(Case("memif", "1500", level=3), weir=[10], level0=[9])
    assert "lost" not in shown(live.report([got]))
    got.samples["weir"] = [replace(sample(10), lost=0.25)]
    assert "memif-1500-fifo-level3: up to 25.00 % of the telemetry records were lost" in shown(
        live.report([got])
    )


def test_the_busiest_thread_is_the_one_that_worked():
    _, before = lab.busiest_ns(os.getpid(), {})
    used = -time.thread_time_ns()
    while used + time.thread_time_ns() < 100e6:
        pass
    busiest, now = lab.busiest_ns(os.getpid(), before)
    assert 50e6 < busiest < 1e9  # the kernel adds to it at its ticks
    assert str(os.getpid()) in now


def test_a_child_that_ends_says_why():
    argv = [sys.executable, "-c", "print('{}'); print('no such port'); raise SystemExit(3)"]
    with lab.Measured(argv) as child, pytest.raises(Skipped) as caught:
        child.wait_for(lambda: None, "ready line")
    assert str(caught.value).endswith("ended: no such port")
    with lab.Measured(["sleep", "60"]) as child:
        assert child.running
    assert not child.running


def test_a_sender_is_measured_by_its_data(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    stats = {"0": {"opackets": 70, "obytes": 7000}, "1": {"opackets": 35, "obytes": 70}}
    answers = {"/ethdev/list": [0, 1], "/ethdev/stats": stats.get, "/weir/info": None}
    answers["/ethdev/info"] = lambda port: {"dev_started": 1}
    with contextlib.closing(FakeProgram(tmp_path, "both", answers)):
        for ports, sent in ((None, (105, 7070)), (1, (70, 7000))):
            found = lab.counters("both", ports)
            assert found.sent() == sent
            found.close()


def test_hugepages_are_given_back(monkeypatch, tmp_path):
    (tmp_path / "nr_hugepages").write_text("100\n")
    (tmp_path / "free_hugepages").write_text("90\n")
    monkeypatch.setattr(lab, "HUGEPAGES", tmp_path)
    said = []
    with lab.hugepages(80 * lab.PAGE_BYTES, said.append):
        assert (tmp_path / "nr_hugepages").read_text() == "100\n"
    assert said == []
    with lab.hugepages(150 * lab.PAGE_BYTES - 1, said.append):
        assert (tmp_path / "nr_hugepages").read_text() == "160"
    assert (tmp_path / "nr_hugepages").read_text() == "100"
    assert said == ["vm.nr_hugepages: 160 instead of 100 until the benchmark ends"]


def test_without_root_it_says_so(monkeypatch, rounds):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="needs root"):
        live.measure([Case("null", "64")], 1, rounds())


def test_the_programs_refuse_bad_arguments(build, monkeypatch):
    monkeypatch.setenv("WEIR_BUILD", str(build))
    if not Path(build, "switch/weir-switch").exists():
        pytest.skip("built without DPDK")
    live.sim.build_targets("tools/bench/weir-live-floor", "tools/bench/weir-live-load")
    eal = ["--no-huge", "--no-pci", "--no-telemetry", "-m", "64", "--file-prefix", "weirbenchtest"]
    for name, arguments in (
        ("floor", ["net_null0", "net_null1", "-1", "1"]),
        ("load", ["59", "x"]),
        ("load", ["64/65537", "x"]),
        ("load", ["64/5x", "x"]),
        ("load", ["64@", "x"]),
    ):
        argv = [peers.bench_program(name), *eal, "--", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"usage: weir-live-{name} EAL-ARGUMENTS" in done.stderr

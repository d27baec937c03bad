# SPDX-License-Identifier: BSD-3-Clause
"""weir run as a user meets it: what is refused before it runs, and what a run says of itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from weir.analysis import folder
from weir.base.errors import UserError

CONFIGS = sorted((Path(__file__).resolve().parents[3] / "configs").glob("*.yaml"))
CONFIG = """duration: 400ms
paths:
  forward:
    - link: {rate: 10Mbit, queue: {fifo: {limit: 50pkt}}}
    - delay: {delay: 5ms}
  reverse:
    - delay: {delay: 5ms}
flows:
  - {count: 2, cc: newreno}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "x.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_check_and_print_config_run_nothing(weir, weir_sim, here):
    assert weir("run", "x.yaml", "--check").status == 0
    done = weir("run", "x.yaml", "--check", "-o", "flows.0.cc=red")
    assert done.status == 2
    assert "there is copa, cubic, bbr, bbr3, newreno, " in done.err
    done = weir("run", "x.yaml", "--print-config", "-o", "seed=7")
    assert done.status == 0
    printed = done.out
    assert "seed: 7" in printed
    assert "ack_every: cc\n" in printed
    assert not (here / "runs").exists()


def test_what_a_live_run_never_comes_to_is_said_by_the_program_that_would_do_it(
    weir, weir_switch, weir_sender, here
):
    """Only weir-sim did; each at its place in the config."""
    (here / "x.yaml").write_text(
        CONFIG + "  - {count: 1, cc: copa, start: 1s}\n"
        "schedule: [{at: 1s, forward.link.rate: 1Mbit}]\n"
        "live:\n"
        "  switch: {lcores: [1], ports: [{name: l, dev: net_null0, path: reverse},"
        " {name: r, dev: net_null1, path: forward}]}\n"
        "  sender: {lcores: [0], ports: [{name: a, role: sender, dev: net_null0},"
        " {name: b, role: receiver, dev: net_null1}]}\n"
    )
    unreached = {
        "weir-switch: warning: x.yaml:11:": "schedule: this change",
        "weir-sender: warning: x.yaml:10:": "flows: the start of this group",
    }
    done = weir("run", "x.yaml", "--check", "--live")
    assert done.status == 0, done.err
    said = done.err.splitlines()
    assert len(said) == 2
    for line, (place, what) in zip(said, unreached.items(), strict=True):
        assert line.startswith(place)
        assert line.endswith(f"{what} is never reached: the run ends after 0.4 s")
    assert weir("run", "x.yaml", "--check", "--live", "--duration", "2s").err == ""


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_a_resolved_config_resolves_to_itself(weir_sim, build, tmp_path, config):
    """`source: bulk` became `source: {bulk: {}}` the second time: another config, by its hash."""
    resolved = tmp_path / "config.yaml"
    (tmp_path / "traces").symlink_to(config.parent / "traces")  # files are relative to the config
    live = [build / f"{name}/weir-{name}" for name in ("switch", "sender")]
    taken = 0
    for program in (weir_sim, *filter(Path.exists, live)):
        first = print_config(program, config)
        if first.returncode == 0:
            resolved.write_text(first.stdout)
            assert print_config(program, resolved).stdout == first.stdout, program
            taken += 1
    assert taken > 0 or not live[0].exists()


def print_config(program, config):
    return subprocess.run([program, config, "--print-config"], capture_output=True, text=True)


def test_a_printed_config_finds_its_files_from_any_folder(weir_sim, tmp_path):
    """`traces/lte-like.trace` was printed as it was written, relative to the config's folder."""
    trace = CONFIGS[0].parent / "traces/lte-like.trace"
    for config in ("configs/lte-trace.yaml", CONFIGS[0].parent / "lte-trace.yaml"):
        argv = [weir_sim, config, "--print-config"]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=trace.parents[2])
        assert done.returncode == 0, done.stderr
        (tmp_path / "x.yaml").write_text(done.stdout)
        assert f"file: {trace}\n" in done.stdout
        argv = [weir_sim, "x.yaml", "--check"]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_sample_without_a_flow_is_said(weir, weir_sim, here):
    """Of one flow 1 % is none: packets and capture were empty without a word."""
    level_2 = ("run", "x.yaml", "--no-report", "-o", "telemetry.level=2")
    done = weir(*level_2, "--out", "none", "--pcap", "none.pcapng")
    assert done.status == 0
    assert done.err.splitlines()[0] == (
        "weir: warning: -o telemetry.level=2: telemetry: sample: 1 % of 2 flows is none: no"
        " packet and no ACK is recorded or captured; write a larger sample, or level: 3"
    )
    assert "no packet was captured" not in done.err  # that is said already
    assert weir("run", "x.yaml", "--check", "-o", "telemetry.level=2").err.count("is none") == 1
    assert "is none" not in weir(*level_2, "--out", "all", "-o", "telemetry.sample=100%").err
    assert "is none" not in weir(*level_2, "--out", "many", "-o", "flows.0.count=500").err


def test_a_mistyped_port_key_comes_before_missing_paths(weir_switch, here):
    """weir-switch said that paths was missing, and only then which key is none."""
    (here / "x.yaml").write_text(
        "live:\n  switch: {lcores: [1], ports: [{name: l, dve: net_null0}, {name: r}]}\n"
    )
    done = subprocess.run([weir_switch, "x.yaml", "--check"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "weir-switch: x.yaml:2:43: port: unknown key 'dve'; did you mean 'dev'?\n"
    )


def test_a_run_of_a_stored_config_has_its_hash(weir, weir_sim, here):
    assert weir("run", "x.yaml", "--no-report", "--out", "a").status == 0
    assert weir("run", "a/config.yaml", "--no-report", "--out", "b").status == 0
    one, other = (json.loads((here / run / "manifest.json").read_text()) for run in "ab")
    for name in ("config_hash", "run_id"):
        assert one[name] == other[name], name


def test_a_capture_is_refused_before_the_run_or_not_at_all(weir, weir_sim, here):
    for path, why in (("no/where.pcap", "No such file"), (".", "Is a directory")):
        done = weir("run", "x.yaml", "--no-report", "--out", "r", "--pcap", path)
        assert done.status == 2
        assert why in done.err
    (here / "old.pcap").write_text("precious")
    done = weir("run", "x.yaml", "--no-report", "--out", "r", "--pcap", "old.pcap")
    assert done.status == 2
    assert "--force overwrites it" in done.err
    assert (here / "old.pcap").read_text() == "precious"
    assert not (here / "r").exists()
    argv = ("run", "x.yaml", "--no-report", "--out", "r", "--pcap", "old.pcap", "--force")
    assert weir(*argv).status == 0
    assert (here / "old.pcap").stat().st_size > 1000


@pytest.mark.slow
def test_a_seed_that_decides_nothing_is_said_to(weir, weir_sim, here):
    cases = {
        "plain": ([], False),
        "jitter": (["-o", "flows.0.jitter=10ms"], True),
        "late": (["-o", "paths.forward.delay={delay: 5ms, late: 1%, late_by: 1ms}"], True),
        "no_loss": (["-o", "paths.reverse=[{loss: {rate: 0%}}, {delay: {delay: 5ms}}]"], False),
        "loss": (["-o", "paths.reverse=[{loss: {rate: 1%}}, {delay: {delay: 5ms}}]"], True),
    }
    for name, (options, used) in cases.items():
        digests = set()
        for seed in ("1", "2"):
            out = f"{name}{seed}"
            done = weir("run", "x.yaml", "--no-report", "--out", out, "--seed", seed, *options)
            assert done.status == 0
            assert ("nothing random was drawn" in done.out) == (not used), name
            summary = folder.load(out).summary
            assert summary.seed_used is used
            digests.add(summary.digest)
        assert len(digests) == (2 if used else 1), name


def test_replicas_that_are_one_run_are_named_in_a_sweep(weir, weir_sim, here):
    (here / "s.yaml").write_text(
        "config: x.yaml\nseeds: 2\ngrid:\n  flows.0.jitter: [0s, 10ms]\n  flows.0.count: [1]\n"
    )
    done = weir("sweep", "s.yaml", "--all")
    assert done.status == 0
    assert "in 1 of 2 combinations the seed changes nothing" in done.out


@pytest.mark.slow
def test_rates_that_a_schedule_changed_are_shown_as_they_held(weir, weir_sim, here):
    with (here / "x.yaml").open("a") as config:
        config.write("schedule: [{at: 100ms, forward.link.rate: 2Mbit}]\n")
    done = weir("run", "x.yaml", "--out", "r")
    assert "2.00 Mbit/s to 10.0 Mbit/s" in done.out
    link = folder.load("r").summary.links["forward"]
    assert link.rate_mean_bps == pytest.approx((10e6 + 3 * 2e6) / 4)
    sent = link.utilisation * link.rate_mean_bps * 0.4
    assert sent == pytest.approx(link.out_bytes * 8 * 1538 / 1518, rel=0.05)
    page = (here / "r/report.html").read_text()
    assert "link, 2.00 Mbit/s to 10.0 Mbit/s" in page


@pytest.mark.slow
def test_a_manifest_has_what_was_typed_and_the_versions(weir, weir_sim, here, monkeypatch):
    monkeypatch.setenv("WEIR_COMMAND", "tools/weir run 'x y.yaml'")
    assert weir("run", "x.yaml", "--out", "r").status == 0
    manifest = json.loads((here / "r/manifest.json").read_text())
    assert manifest["command"] == "tools/weir run 'x y.yaml'"
    assert "numpy " in manifest["versions"]["tools"]
    assert manifest["versions"]["libyaml"]
    page = (here / "r/report.html").read_text()
    assert "tools/weir run" in page
    assert "this page: python" in page


@pytest.mark.slow
def test_a_run_that_may_only_be_read_is_reported_elsewhere(weir, weir_sim, here):
    assert weir("run", "x.yaml", "--no-report", "--out", "r").status == 0
    done = weir("report", "r", "--out", "pages/mine")
    assert (done.status, done.out.strip()) == (0, "pages/mine/report.html")
    assert not (here / "r/report.html").exists()


def test_an_unknown_stream_names_those_there_are(weir, weir_sim, here):
    assert weir("run", "x.yaml", "--no-report", "--out", "r").status == 0
    run = folder.load("r")
    for asked in (run.frame, run.rings, lambda stream: list(run.chunks(stream, ["ts_ns"]))):
        with pytest.raises(UserError, match="no stream 'link'; there is packets, cc, flows"):
            asked("link")


@pytest.mark.parametrize(
    ("flows", "sentence"),
    [
        ("{count: 1, cc: copa}, " * 65, "flows: at most 64 groups"),
        ("{count: 1, cc: copa, base_rtt: 100s}", "base_rtt: 100s is not in [0s, 60s]"),
        (
            "{count: 1, cc: copa, base_rtt: 100}",
            "base_rtt: '100' is not a time such as 20ms",
        ),
        ("{count: 0, cc: copa}", "count: 0 is not in [1, 1000000]"),
        ("{count: [1], cc: copa}", "count: a single value is wanted, not a list"),
        ("{count: 1000001, cc: copa}", "count: 1000001 is not in [1, 1000000]"),
        ("copa", "a flow group is a map such as {count: 10, cc: copa}"),
        ("", "flows is a list of groups such as - {count: 10, cc: copa}"),
    ],
)
def test_a_bad_flow_group_is_one_sentence_whoever_reads_it(
    weir_sim, weir_switch, weir_sender, here, flows, sentence
):
    """The switch had limits of its own: 16.8 million flows a group, 1000 s, "out of range"."""
    (here / "x.yaml").write_text(
        CONFIG.split("flows:")[0] + f"flows: [{flows}]\n"
        "live:\n"
        "  switch: {lcores: [1], ports: [{name: l, dev: net_null0, path: reverse},"
        " {name: r, dev: net_null1, path: forward}]}\n"
        "  sender: {lcores: [0], ports: [{name: a, role: sender, dev: net_null0}]}\n"
    )
    said = {}
    for program in (weir_sim, weir_switch, weir_sender):
        done = subprocess.run([program, "x.yaml", "--check"], capture_output=True, text=True)
        said[program.name] = done.returncode, done.stderr.partition(": ")[2]
    assert len(set(said.values())) == 1, said
    status, line = said["weir-sim"]
    assert status == 2
    assert line.startswith("x.yaml:")
    assert sentence in line


@pytest.mark.parametrize(
    ("port", "sentence"),
    [
        (
            "role: sender, ip: 198.18.0",
            "ip: '198.18.0' is not an IPv4 address such as 198.18.0.1",
        ),
        ("role: sends", "role: 'sends' is not one of sender, receiver"),
    ],
)
def test_a_bad_port_of_the_sender_is_one_sentence_whoever_reads_it(
    weir_switch, weir_sender, here, port, sentence
):
    (here / "x.yaml").write_text(
        CONFIG + "live:\n"
        "  switch: {lcores: [1], ports: [{name: l, dev: net_null0, path: reverse},"
        " {name: r, dev: net_null1, path: forward}]}\n"
        f"  sender: {{lcores: [0], ports: [{{name: a, {port}, dev: net_null0}}]}}\n"
    )
    said = set()
    for program in (weir_switch, weir_sender):
        done = subprocess.run([program, "x.yaml", "--check"], capture_output=True, text=True)
        said.add((done.returncode, done.stderr.partition(": ")[2]))
    assert len(said) == 1, said
    assert sentence in said.pop()[1]


def test_branches_are_a_time_and_names_with_changes(weir, weir_sim, here):
    said = "--branch-at and --branch belong together"
    for one in (["--branch-at", "200ms"], ["--branch", "a={}"]):
        done = weir("run", "x.yaml", *one)
        assert (done.status, said in done.err) == (2, True)
    for bad, said in {
        ("a",): "--branch a: write NAME=CHANGES such as slow='{forward.link.rate: 5Gbit}'",
        ("={}",): "--branch : write NAME=CHANGES",
        ("a={}", "a={forward.link.rate: 1Mbit}"): "'a' is given twice",
        ("a/b={}",): "'a/b' cannot name a folder",
    }.items():
        done = weir(
            "run", "x.yaml", "--branch-at", "200ms", *(w for b in bad for w in ("--branch", b))
        )
        assert (done.status, said in done.err) == (2, True), done.err
    branches = ["--branch", "same={}", "--branch", "slow-1.5,x={forward.link.rate: 1Mbit}"]
    argv = ["--branch-at", "200ms", *branches, "--out", "r", "--no-report"]
    done = weir("run", "x.yaml", *argv)
    assert done.status == 0
    assert done.out.splitlines()[-2:] == ["r/branches/same", "r/branches/slow-1.5,x"]
    assert weir("report", "r/branches/same").status == 0
    # A page cannot be where a folder is not, even for root.
    script = "mount --bind r r && mount -o remount,ro,bind r && $0 -m weir report r"
    argv = ["unshare", "--mount", "sh", "-c", script, sys.executable]
    refused = subprocess.run(argv, cwd=here, capture_output=True, text=True)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1] == (
        "weir: r/report.html: cannot be written: Read-only file system;"
        " weir report --out DIR writes it elsewhere"
    )
    assert weir("report", "r", "--out", "pages").status == 0
    page = (here / "pages/report.html").read_text()
    assert '<a href="../r/branches/same/report.html">same</a>' in page
    assert '<a href="../r/branches/slow-1.5%2Cx">slow-1.5,x</a>' in page
    assert folder.load(here / "r/branches/slow-1.5,x").manifest.branch.name == "slow-1.5,x"

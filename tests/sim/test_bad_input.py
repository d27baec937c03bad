# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong gets one sentence, the right exit status, and a valid run folder if one began."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from waiting import wait_for
from weir.analysis.ring import open_ring

if TYPE_CHECKING:
    from .conftest import Program

GOOD = """duration: 2s
paths:
  forward:
    - link: {rate: 10Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 2, cc: copa}
"""
BAD = {
    "unknown key": ("rate: 10Mbit", "rato: 10Mbit", "forward.link: unknown key 'rato'"),
    "duplicate key": ("rate: 10Mbit", "rate: 10Mbit, rate: 1Mbit", "rate"),
    "unit": ("10Mbit", "10Gbitt", "rate: '10Gbitt' is not a rate such as 10Gbit"),
    "too slow": ("10Mbit", "1bit", "rate: 1bit is not 0 or in [1kbit, 1Tbit]"),
    "negative": ("10Mbit", "-1Mbit", "rate: '-1Mbit' is not a rate such as 10Gbit"),
    "no cc": (", cc: copa", "", "cc is required"),
    "other cc": ("copa", "cupa", "'cupa' is not a congestion control; did you mean 'copa'?"),
    "other queue": ("fifo", "fifoo", "'fifoo' is not a queue discipline; did you mean 'fifo'?"),
    "no reverse": (
        "  reverse: [{delay: {delay: 10ms}}]\n",
        "",
        "needs 'forward' and 'reverse'",
    ),
    "no delay": ("delay: 10ms", "delay: 0ms", "a BDP needs a base RTT"),
    "bad yaml": ("{count: 2", "{count: 2]", "yaml:8:"),
    "one segment": ("cc: copa}", "cc: copa, tso: 1}", "tso: 1 is not in [2, 64]"),
    "other tso": ("cc: copa}", "cc: copa, tso: yes}", "tso: 'yes' is not one of no, linux, nor"),
    "other host": ("cc: copa}", "cc: copa, host: bsd}", "host: 'bsd' is not one of ideal, linux"),
    "small rmem": ("cc: copa}", "cc: copa, mss: 9000B, rmem: 9kB}", "rmem must hold four"),
    "small wmem": ("cc: copa}", "cc: copa, mss: 9000B, wmem: 9kB}", "wmem must hold four"),
    "long gro": ("cc: copa}", "cc: copa, gro: 1s}", "gro: 1s is not in [0s, 10ms]"),
    "no such host": ("flows:", "hosts: {recieving: {}}\nflows:", "did you mean 'receiving'?"),
    "long coalesce": ("flows:", "hosts: {receiving: {coalesce: 1s}}\nflows:", "not in [0s, 10ms]"),
    "gro twice": (
        "flows:\n  - {count: 2, cc: copa}",
        "hosts: {receiving: {}}\nflows:\n  - {count: 2, cc: copa, gro: 1ms}",
        "gro: with hosts.receiving the card joins segments",
    ),
    "cards' path taken": (
        "flows:\n  - {count: 2, cc: copa}",
        "  receiving-in: [{delay: {delay: 10ms}}]\nhosts: {receiving: {}}\n"
        "flows: [{cc: copa}, {cc: copa, path: {forward: receiving-in}}]",
        "hosts: their cards are the path 'receiving-in': give yours another name",
    ),
    "hosts of two kinds": (
        "flows:",
        "hosts: {receiving: [{name: a}, {name: b}]}\nflows:",
        "hosts: hosts.receiving has several kinds: write the name of the group's",
    ),
    "hosts of no kind": (
        "flows:\n  - {count: 2,",
        "hosts: {receiving: [{name: a}]}\nflows:\n  - {count: 2, hosts: c,",
        "hosts: no hosts have the name 'c'",
    ),
    "hosts alike": (
        "flows:",
        "hosts: {receiving: [{name: a}, {name: a}]}\nflows:",
        "hosts.receiving: two kinds are called a",
    ),
    "hosts without name": (
        "flows:",
        "hosts: {receiving: [{count: 2}]}\nflows:",
        "hosts.receiving: of several kinds each is a map with a name",
    ),
    "name of hosts": (
        "flows:",
        "hosts: {receiving: [{name: a b}]}\nflows:",
        "name: letters, digits, _ and - are a name",
    ),
    "other qdisc": (
        "flows:",
        "hosts: {sending: {card: 1Gbit, qdisc: fqq}}\nflows:",
        "qdisc: 'fqq' is not pfifo, fq or a queue discipline",
    ),
    "qdisc without card": (
        "flows:",
        "hosts: {sending: {qdisc: fq}}\nflows:",
        "hosts: cards without a rate have no queue: write card: 10Gbit",
    ),
    "stop first": (
        "cc: copa}",
        "cc: copa, start: 1s, stop: 500ms}",
        "stop must be later",
    ),
    "no flows": ("flows:\n  - {count: 2, cc: copa}\n", "", "flows is required"),
    "delay taken away": (
        "flows:",
        "schedule: [{at: 1s, forward.delay.delay: 0ms, reverse.delay.delay: 0ms}]\nflows:",
        "schedule: this leaves no delay in either direction",
    ),
    "edges too short": (
        "- link",
        "- edges: {count: 1, rate: 1Mbit, limit: 100B}\n    - link",
        "limit: no full-sized frame fits",
    ),
    "draws of another group": (
        "  - {count: 2, cc: copa}\n",
        "".join(
            f"  - {{name: {name}, cc: copa, base_rtt: {{uniform: {{min: 20ms, max: 40ms}}}}}}\n"
            for name in ("a", "a", "a.2")
        ),
        "base_rtt: the draws would be those of flows.1, which are named 'a.2' too",
    ),
    "short base_rtt": ("cc: copa}", "cc: copa, base_rtt: 5ms}", "base_rtt"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_config(sim: Program, name: str) -> None:
    old, new, said = BAD[name]
    assert old in GOOD
    sim.refuse(GOOD.replace(old, new), said)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("schedule: [{at: 2s, forward.link.rate: 1Mbit}]", "schedule: this change"),
        ("  - {count: 1, cc: copa, start: 2s}", "flows: the start of this group"),
    ],
)
def test_what_a_run_never_comes_to(sim: Program, more: str, what: str) -> None:
    """The run is made, and one line says what it leaves out, with the place."""
    done = sim(GOOD + more + "\n")

    assert done.returncode == 0
    assert done.stderr.startswith("weir-sim: warning: x.yaml:9:")
    assert done.stderr.endswith(f"{what} is never reached: the run ends after 2 s\n")


def test_groups_that_start_together(sim: Program) -> None:
    """Their place in the list decides part of the result: one line says so."""
    for more, said in (
        ("cc: copa", True),
        ("cc: copa, jitter: 20ms", False),
        ("cc: copa, start: 100ms", False),
        ("cc: cubic", False),
    ):
        done = sim(GOOD + f"  - {{count: 1, {more}}}\n")
        assert done.returncode == 0
        assert done.stderr.count("\n") == said
        if said:
            assert done.stderr.startswith("weir-sim: warning: x.yaml:9:")
            assert "starts at the same instants as group 0, which is like it" in done.stderr


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("kernel: ../x", "kernel: '../x' is no name of a kernel"),
        ("module: 3", "module is a map of modules and their parameters"),
        ("module: {tcp_cubic: 3}", "module: tcp_cubic is a map of parameters such as"),
        ("module: {tcp_cubic: {a: b c}}", "module: a: a parameter is a name and a value without"),
        ("kernel: other", "kernel: 'other' is not built; there is mine; run: tools/weir guests"),
        ("kernel: mine, cc: bbr", "cc: kernel 'mine' has no 'bbr'; it has reno fast"),
        (
            "kernel: mine, cc: fast, module: {tcp_fast: {beta: 3}}",
            "module: tcp_fast of kernel 'mine' has no parameter 'beta'",
        ),
    ],
)
def test_kernels_of_ones_own(sim: Program, keys: str, said: str) -> None:
    """What a group asks of its guests' kernel, and that is not there, is one sentence."""
    about = {"controls": "reno fast", "modules": "tcp_fast"}
    of_a_kernel(sim, keys, json.dumps(about, indent=1), said)


def of_a_kernel(sim: Program, keys: str, about: str, said: str) -> str:
    """Returns the sentence that refuses guests of these keys; there is a kernel called mine."""
    guests = sim.folder / "guests"
    (guests / "key").mkdir(parents=True)
    (guests / "mine").symlink_to("key")
    (guests / "key/linux").touch(mode=0o755)
    (guests / "key/guest.json").write_text(about)
    (guests / "key/tcp_fast.ko").write_bytes(bytes(4090) + b"\0parmtype=alpha:uint\0")
    config = GOOD.replace("cc: copa", f"stack: {{linux: {{{keys}}}}}")
    return sim.refuse(config, said, env={**os.environ, "WEIR_GUESTS": str(guests)})


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ('{"controls": "reno', "1:19: bad YAML: found unexpected end of stream"),
        ('{"controls": ["reno"]}', "1:14: controls: a text below 1024 bytes is wanted"),
        ("[]", "1:1: a config starts with 'key: value', not with a list"),
    ],
)
def test_a_guest_kernel_that_is_damaged(sim: Program, about: str, said: str) -> None:
    """What describes it is no JSON, or has another shape: one sentence with the place."""
    whole = f"kernel: 'mine' is damaged: {sim.folder}/guests/mine/guest.json:{said}"
    refusal = of_a_kernel(sim, "kernel: mine", about, whole)
    assert refusal.endswith("; run: tools/weir guests build\n")


def test_a_guest_kernel_that_is_missing(sim: Program) -> None:
    """Refused before anything starts, with what to do; --check needs no kernel."""
    config = GOOD.replace("cc: copa", "stack: linux")
    env = {**os.environ, "WEIR_GUESTS": str(sim.folder / "none")}
    said = sim.refuse(config, "stack: linux needs a guest kernel", env=env)
    assert said.endswith("run: tools/weir guests build\n")
    assert sim(config, "--check", env=env).returncode == 0


def test_more_flows_than_memory(sim: Program) -> None:
    """Refused at the start with the sum it would take."""
    done = sim(GOOD + "  - {count: 1000000, cc: copa}\n" * 63, "--out", "run")

    assert done.returncode == 2
    assert "63000002 flows" in done.stderr
    assert "need" in done.stderr
    assert "MB are available" in done.stderr
    assert not (sim.folder / "run").exists()


def test_a_folder_that_cannot_be_made(sim: Program) -> None:
    """The path and the system's reason."""
    (sim.folder / "file").write_text("")
    done = sim(GOOD, "--out", "file/run")

    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert "Not a directory" in done.stderr


def test_a_parent_that_cannot_be_made_has_its_own_reason(sim: Program) -> None:
    """In a folder without permission to write, `runs` was said not to exist."""
    done = sim(GOOD, "--out", "/sys/weir/run")

    assert done.returncode == 1
    assert done.stderr.startswith("weir-sim: /sys/weir/run: cannot be created: ")
    assert "No such file" not in done.stderr


def test_a_long_override_leaves_room_for_what_is_wrong(sim: Program) -> None:
    """The message was all override and no sentence."""
    groups = ", ".join(f"{{count: {n}, cc: copa, name: gröup{n}}}" for n in range(1, 40))
    done = sim(GOOD, "-o", f"flows=[{groups}, {{count: 0, cc: copa}}]")

    assert done.returncode == 2
    assert done.stderr.startswith("weir-sim: -o flows=[{count: 1, cc: copa, name: gröup1}, {")
    assert done.stderr.endswith("...: count: 0 is not in [1, 1000000]\n")


def test_a_capture_that_cannot_be_written(sim: Program) -> None:
    """Refused before the run; what fails later is in the manifest: it is not still running."""
    said = "cannot be written: Is a directory\n"
    assert sim.refuse(GOOD, said, "--pcap", "/tmp") == f"weir-sim: --pcap /tmp: {said}"

    done = sim(GOOD, "--out", "run", "--pcap", "/dev/full")
    assert done.returncode == 1
    manifest = json.loads((sim.folder / "run" / "manifest.json").read_text())
    assert manifest["verdict"] == "--pcap /dev/full: No space left on device"
    assert manifest["exit"] == 1
    assert manifest["ended_utc"] is not None


def test_a_folder_that_holds_a_run(sim: Program) -> None:
    """Nothing of it is lost."""
    out = sim.folder / "run"
    assert sim(GOOD, "--out", "run").returncode == 0
    before = {f.name: f.read_bytes() for f in out.iterdir()}
    done = sim(GOOD, "--out", "run")

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert {f.name: f.read_bytes() for f in out.iterdir()} == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c(weir_sim: Path, tmp_path: Path, number: int) -> None:
    """Ends the run early, with all that was measured so far."""
    config, out = tmp_path / "x.yaml", tmp_path / "run"
    config.write_text(GOOD)
    process = subprocess.Popen([weir_sim, config, "--duration", "20h", "--out", out])
    wait_for(lambda: (out / "interval.ring").stat().st_size > 4096)
    process.send_signal(number)
    assert process.wait(timeout=120) == 128 + number
    assert json.loads((out / "manifest.json").read_text())["exit"] == 128 + number
    summary = json.loads((out / "summary.json").read_text())
    assert summary["verdict"] == "interrupted"
    assert summary["ledger"]["balanced"]
    assert 0 < summary["virtual_s"] < 20 * 3600
    ring = open_ring(out / "interval.ring")
    ring.check()
    assert len(ring.records) > 0


def test_ctrl_c_once_there_is_a_folder(weir_sim: Path, tmp_path: Path) -> None:
    """It was left as of a run that goes on: signals were caught later."""
    config = tmp_path / "x.yaml"
    config.write_text(GOOD)
    for number in range(20):
        out = tmp_path / str(number)
        process = subprocess.Popen([weir_sim, config, "--duration", "20h", "--out", out])
        while not (out / "manifest.json").exists():  # at once, not at the next poll
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 128 + signal.SIGINT
        for name in ("manifest", "summary"):
            assert json.loads((out / f"{name}.json").read_text())["verdict"] == "interrupted"


def test_output_that_cannot_be_written(sim: Program) -> None:
    """A summary that nobody got is a failure, with its sentence."""
    for words in (("--json", "--out", "run"), ("--print-config",), ("--list",)):
        with Path("/dev/full").open("w") as full:
            ends = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
            done = sim(GOOD, "--duration", "10ms", *words, **ends)
        assert done.returncode == 1
        assert done.stderr == (
            "weir-sim: standard output cannot be written: No space left on device\n"
        )


def test_a_run_folder_that_vanishes(weir_sim: Path, tmp_path: Path) -> None:
    """Is a failure, not a mistake in the config."""
    config, out = tmp_path / "x.yaml", tmp_path / "run"
    config.write_text(GOOD)
    process = subprocess.Popen(
        [weir_sim, config, "--duration", "20h", "--out", out], stderr=subprocess.PIPE, text=True
    )
    # Records are written once all files are there.
    wait_for(lambda: (out / "interval.ring").stat().st_size > 4096)
    shutil.rmtree(out)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert said == f"weir-sim: {out}/summary.json: cannot be written: No such file or directory\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small file system")
def test_a_full_disk(weir_sim: Path, tmp_path: Path) -> None:
    """Exit 1 and the stream that did not fit; what did fit reads."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    small = tmp_path / "small"
    small.mkdir()
    config = tmp_path / "x.yaml"
    config.write_text(GOOD + "telemetry: {level: 3}\n")
    script = (
        f"mount -t tmpfs -o size=320k none {small} || exit 99;"
        f"{weir_sim} {config} --out {small}/run; status=$?;"
        f"cp -r {small}/run {tmp_path}/; exit $status"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == 99:
        pytest.skip("no private mount namespaces here")

    assert done.returncode == 1
    assert f"{small}/run/" in done.stderr
    assert ".ring: No space left on device; " in done.stderr
    assert done.stderr.count("\n") == 1
    for name in ("manifest", "summary"):
        verdict = json.loads((tmp_path / f"run/{name}.json").read_text())["verdict"]
        assert ".ring: No space left on device" in verdict
    for path in (tmp_path / "run").glob("*.ring"):
        open_ring(path).check()


def test_what_people_write_is_understood_and_resolved(sim: Program) -> None:
    """Other spellings of units, names in another case or by another name; the rest sees one."""
    written = {
        "rate: 10Mbit": "rate: 10Mbps",
        "fifo": "FIFO",
        "cc: copa": "cc: Reno",
        "duration: 2s": "duration: 30",
    }
    text = GOOD
    for old, new in written.items():
        assert old in text, old
        text = text.replace(old, new, 1)
    done = sim(text, "--print-config", "-o", "warmup=1 sec")
    assert (done.returncode, done.stderr) == (0, "")
    read = yaml.load(done.stdout, Loader=yaml.BaseLoader)
    link = read["paths"]["forward"][0]["link"]
    assert (link["rate"], list(link["queue"])) == ("10Mbit", ["fifo"])
    assert list(read["flows"][0]["cc"]) == ["newreno"]
    assert (read["duration"], read["warmup"]) == ("30s", "1s")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("paths.forward.lnik.rate=1Mbit", "has no item called 'lnik'; did you mean 'link'?"),
        ("flows.0.cc=Cubicc", "'Cubicc' is not a congestion control; did you mean 'cubic'?"),
        ("paths.forward.link.queue=fq_codell", "a queue discipline; did you mean 'fq_codel'?"),
        ("flows.0.cuont=3", "unknown key 'cuont'; did you mean 'count'?"),
    ],
)
def test_an_override_that_is_almost_right(sim: Program, override: str, sentence: str) -> None:
    assert sim.refuse(GOOD, sentence, "-o", override).rstrip().endswith(sentence)

# SPDX-License-Identifier: BSD-3-Clause
"""weir top and weir ctl with the real programs; what these leave behind is the user's own."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from lab import LCORE, NUMBERS, outcome, wait_for
from loopback_test import Loop
from weir.analysis import ring

PATHS = (
    "{forward: [{link: {rate: 10Mbit}}, {delay: {delay: 5ms}}], reverse: [{delay: {delay: 5ms}}]}"
)
PARAMETER_CHANGED = 6
WAITING = 20_000  # flows that a group scan passes on its way
GROUPS = f"""[{{name: bulk, count: 90, cc: copa}},
  {{name: late, count: {WAITING}, cc: newreno, start: 290s}}]"""


def weir(*args):
    """The command, from outside the laboratory: the socket is a file."""
    return subprocess.run(
        [sys.executable, "-m", "weir", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def frame(prefixes):
    """What weir top sees in half a second."""
    chosen = [arg for prefix in prefixes for arg in ("--prefix", prefix)]
    done = weir("top", "--once", "--json", "--interval", "0.5", *chosen)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_rate_is_changed_and_the_event_recorded(lab):
    switch = lab.switch(PATHS)
    here = ("--prefix", lab.prefix)
    shown = weir("ctl", *here)
    assert shown.returncode == 0, shown.stderr
    assert ["forward.link.rate", "10Mbit"] in [line.split() for line in shown.stdout.splitlines()]
    done = weir("ctl", "forward.link.rate=5Mbit", "reverse.delay.delay=55ms", *here)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "forward.link.rate: 10Mbit -> 5Mbit",
        "reverse.delay.delay: 5ms -> 55ms",
    ]
    for order, sentence in (
        ("forward.link.rate=5Gbitt", "forward.link.rate: '5Gbitt' is not a rate such as 10Gbit"),
        ("forward.link.rate=2Tbit", "forward.link.rate: 2Tbit is not 0 or in [1kbit, 1Tbit]"),
        ("forward.link.overhead=20B", "forward.link.overhead: cannot be changed while running"),
        ("forward.link2.rate=1Gbit", "forward.link2.rate: path forward has no such stage"),
        ("sideways.link.rate=1Gbit", "there is no path 'sideways'; there is forward, reverse"),
        ("forward=1Gbit", "'forward=1Gbit' is not a change such as forward.link.rate=5Gbit"),
    ):
        done = weir("ctl", order, *here)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"weir: {sentence}")
    assert min(lab.ping(count=5)) >= 60
    assert weir("ctl", "stop", *here).returncode == 0
    assert switch.wait() == 0
    events = ring.open_ring(switch.folder / "events-switch.ring").records
    changes = events[events["event"] == PARAMETER_CHANGED]
    assert changes["before"].tolist() == [1e7, 5e6]
    assert changes["value"].tolist() == [5e6, 5.5e7]
    assert outcome(switch.summary()) == "ok"
    gone = weir("ctl", *here)
    assert gone.returncode == 1
    assert f"no program with the prefix '{lab.prefix}' runs" in gone.stderr


def test_every_parameter_is_told(lab):
    stages = ", ".join(15 * ["{loss: {rate: 0%}}"] + ["{delay: {delay: 1ms}}"])
    paths = "".join(f"  p{i}: [{stages}]\n" for i in range(16))
    ports = ", ".join(f"{{name: n{i}, dev: net_ring{i}, path: p{i}}}" for i in range(16))
    live = f"{{lcores: [{LCORE}], prefix: {lab.prefix}, ports: [{ports}]}}"
    config = f"paths:\n{paths}live: {{switch: {live}}}"
    switch = lab.start("switch/weir-switch", config, duration="60s")
    assert switch.ready(), switch.err
    shown = weir("ctl", "--prefix", lab.prefix)
    assert shown.returncode == 0, shown.stderr
    parameters = [line.split()[0] for line in shown.stdout.splitlines() if "." in line]
    assert len(parameters) == len(set(parameters)) == 16 * (15 + 3)
    assert parameters[-1] == "p15.delay.late_by"
    assert switch.stop() == 0


def test_every_link_is_told(lab):
    """All that a run may have, in parts."""
    stages = ", ".join(16 * ["{link: {rate: 1Gbit, queue: {fifo: {limit: 9pkt}}}}"])
    paths = "".join(f"  p{i}: [{stages}]\n" for i in range(4))
    ports = ", ".join(f"{{name: n{i}, dev: net_ring{i}, path: p{i}}}" for i in range(4))
    live = f"{{lcores: [{LCORE}], prefix: {lab.prefix}, ports: [{ports}]}}"
    switch = lab.start(
        "switch/weir-switch", f"paths:\n{paths}live: {{switch: {live}}}", duration="60s"
    )
    assert switch.ready(), switch.err
    count = lab.telemetry("/weir/info")["links"]
    links = [
        link for i in range(0, count, 24) for link in lab.telemetry(f"/weir/links,{i}").items()
    ]
    assert count == len(links) == len(dict(links)) == 64
    assert links[-1][1]["name"] == "p3.link16"
    assert all(link["rate_bps"] == 1_000_000_000 for _, link in links)
    assert switch.stop() == 0


def test_a_path_without_links_is_shown_and_changed(lab):
    """`edges` have no figures: they are no link, and their parameters can be changed."""
    edges = "{edges: {count: 2, rate: 5Mbit, limit: 30pkt}}, {delay: {delay: 5ms}}"
    switch = lab.switch(f"{{forward: [{edges}], reverse: [{{delay: {{delay: 5ms}}}}]}}")
    assert lab.ping(count=5)
    assert lab.telemetry("/weir/links") == {}
    shown = frame([lab.prefix])
    assert shown["links"] == []
    assert {path["name"] for path in shown["paths"]} == {"forward", "reverse"}
    assert "forward" in weir("top", "--once", "--prefix", lab.prefix).stdout
    done = weir("ctl", "forward.edges.rate=1Mbit", "--prefix", lab.prefix)
    assert done.stdout.splitlines() == ["forward.edges.rate: 5Mbit -> 1Mbit"], done.stderr
    assert "forward.edges.rate" in weir("ctl", "--prefix", lab.prefix).stdout
    assert switch.stop() == 0
    summary = switch.summary()
    assert (summary["links"], summary["ledger"]["balanced"]) == ({}, True)


def test_measuring_begins_again(lab):
    switch = lab.switch(PATHS, top="warmup: 0s")
    assert len(lab.ping(count=10)) >= 5
    assert weir("ctl", "measure", "--prefix", lab.prefix).returncode == 0
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["paths"]["forward"]["in"]["pkts"] >= 5
    assert (
        summary["links"]["forward"]["out_pkts"]
        < summary["ledger"]["paths"]["forward"]["in"]["pkts"]
    )


def with_traffic(shown):
    """The frame, if all 90 flows have sent and all moved on meanwhile."""
    groups, links, paths = shown["groups"], shown["links"], shown["paths"]
    open_ = groups and groups[0]["flows"]["open"] == 90 and groups[0]["srtt_mean_ns"]
    moved = open_ and links[0]["utilisation"] and groups[0]["goodput_bps"]
    moved = moved and all(path["out_bps"] for path in paths)
    return shown if moved and all(row["busy"] for row in shown["lcores"]) else None


GROW = {
    "weir_group_acked_bytes_total",
    "weir_link_sent_bytes_total",
    "weir_port_sent_packets_total",
    "weir_path_received_bytes_total",
}


def grown(first, second):
    """The counters of which some have grown; none is smaller."""
    counters = [name for name in first if name.partition("{")[0].endswith("_total")]
    assert all(first[name] <= second[name] for name in counters)
    return {name.partition("{")[0] for name in counters if first[name] < second[name]}


def check_scrapes(prefixes):
    """What Prometheus gets of a sample, and of later ones until there was traffic."""
    parser = pytest.importorskip("prometheus_client.parser")
    chosen = [arg for prefix in prefixes for arg in ("--prefix", prefix)]
    argv = [sys.executable, "-m", "weir", "top", "--serve", "127.0.0.1:0", "--interval", "0.3"]
    with subprocess.Popen([*argv, *chosen], stderr=subprocess.PIPE, text=True) as top:
        url = top.stderr.readline().split("/ shows")[0]

        def scrape():
            with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
                families = list(parser.text_string_to_metric_families(answer.read().decode()))
            assert all(family.documentation for family in families)
            return {
                f"{one.name}{one.labels}": one.value
                for family in families
                for one in family.samples
            }

        first = scrape()
        wait_for(lambda: grown(first, scrape()) >= GROW, "samples with traffic between them")
        top.send_signal(signal.SIGINT)
        assert top.wait(60) == 0


def test_top_shows_switch_and_sender(lab, root):
    options = ("-o", "paths.forward.link.rate=100Mbit", "-o", f"flows={GROUPS}")
    loop = Loop(lab, root, *options, "-o", "live.switch.start=now", "--duration", "300s")
    switch, sender = loop.switch(), loop.sender()
    prefixes = [f"{lab.prefix}switch", f"{lab.prefix}sender"]
    assert sender.ready(), sender.err
    for prefix in prefixes:
        lab.runs(prefix)
    shown = wait_for(lambda: with_traffic(frame(prefixes)), "traffic")

    assert [row["program"] for row in shown["lcores"]] == ["weir-switch", "weir-sender"]
    assert [row["cpu"] for row in shown["lcores"]] == [1, 0]
    assert all(0 < row["busy"] <= 1 for row in shown["lcores"])
    assert [row["name"] for row in shown["ports"]] == ["left", "right", "a", "b"]
    assert all(row["up"] for row in shown["ports"])
    forward, reverse = shown["paths"]
    assert (forward["name"], reverse["name"]) == ("forward", "reverse")
    assert min(forward["out_bps"], reverse["out_bps"]) > 0
    (link,) = shown["links"]
    assert link["rate_bps"] == 100_000_000
    assert 0 < link["utilisation"] <= 1.05
    bulk, late = shown["groups"]
    assert (bulk["name"], bulk["cc"], bulk["flows"]["open"]) == ("bulk", "copa", 90)
    assert (late["name"], late["cc"], late["flows"]["waiting"]) == ("late", "newreno", WAITING)
    assert bulk["goodput_bps"] > 0
    assert bulk["srtt_mean_ns"] >= 20e6
    assert bulk["cwnd_mean_segs"] >= 1
    assert late["srtt_mean_ns"] is None

    check_scrapes(prefixes)
    shown = lab.telemetry("/weir/info", prefixes[1])
    assert shown["flows_open"] == 90
    assert shown["flows_waiting"] == WAITING
    assert weir("ctl", "stop", "--prefix", prefixes[1]).returncode == 0
    assert sender.wait() == 0
    assert outcome(sender.summary()) == "ok"
    assert sender.summary()["groups"][0]["acked_bytes"] > 0
    assert switch.stop() == 0


def ask_on(prefix, command, answers):
    """Asks again and again, until the program is gone."""
    path = f"/var/run/dpdk/{prefix}/dpdk_telemetry.v2"
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as client:
        client.settimeout(60)
        client.connect(path)
        client.recv(1024)
        with contextlib.suppress(OSError):
            while True:
                client.send(command.encode())
                if not (reply := client.recv(16384)):
                    return
                answer = json.loads(reply)[command]
                if "did not answer" not in answer.get("error", ""):  # it had no CPU for seconds
                    answers.append(answer)


def test_several_may_ask_at_once_and_at_the_end(lab, root):
    options = ("-o", "paths.forward.link.rate=100Mbit", "-o", f"flows={GROUPS}")
    loop = Loop(lab, root, *options, "-o", "live.switch.start=now", "--duration", "300s")
    switch, sender = loop.switch(), loop.sender()
    assert sender.ready(), sender.err
    commands = {f"{lab.prefix}switch": "/weir/links", f"{lab.prefix}sender": "/weir/groups"}
    for prefix in commands:
        lab.runs(prefix)
    questions = [(*question, []) for question in commands.items() for _ in range(2)]
    threads = [threading.Thread(target=ask_on, args=one, daemon=True) for one in questions]
    for thread in threads:
        thread.start()
    wait_for(lambda: all(len(answers) > 20 for *_, answers in questions), "answers")
    assert (sender.stop(), switch.stop()) == (0, 0)
    for thread in threads:
        thread.join(60)
    for *_, answers in questions:
        refused = [answer for answer in answers if "error" in answer]
        # Only the program's end is a reason, and is told at once.
        assert all("is not running" in answer["error"] for answer in refused)
        assert answers[len(answers) - len(refused) :] == refused


def test_a_sender_that_waits_for_its_peer_says_so(lab, root):
    """Its socket is open before its lcores run; it was "no program of Weir" then."""
    sender = Loop(lab, root).start("sender/weir-sender", "server")
    assert sender.ready(), sender.err
    for command in ("top", "ctl"):
        refused = weir(command, "--prefix", f"{lab.prefix}sender")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == f"weir: '{lab.prefix}sender': the sender is not running\n"
    assert sender.stop() == 0


def modes(folder):
    """Of everything below a folder, and of itself."""
    return {path: stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}


def test_sockets_are_the_users_own_and_the_folder_has_usual_modes(lab, root):
    """The folder of a live run, mostly root's, was closed to the one who ran `sudo`."""
    previous = os.umask(0o022)
    try:
        loop = Loop(lab, root, "-o", "paths.forward.link.rate=10Mbit", "--duration", "60s")
        loop.folder = lab.tmp / f"deep{next(NUMBERS)}" / "run"
        switch, sender = loop.switch(), loop.sender()
        assert sender.ready(), sender.err
        lab.runs(f"{lab.prefix}sender")
        runtime = [Path("/var/run/dpdk") / f"{lab.prefix}{name}" for name in ("switch", "sender")]
        runtime.append(Path("/var/run/dpdk") / f"{lab.prefix}.memif")
        running = {path: mode for made in runtime for path, mode in modes(made).items()}
        unix = lab.sh("sw", "cat", "/proc/net/unix").splitlines()
        abstract = [line for line in unix if "@" in line]
        assert sender.stop() == 0
        assert switch.stop() == 0
    finally:
        os.umask(previous)
    assert not any(lab.prefix in line for line in abstract)
    assert not any(path.exists() for path in runtime)
    left = modes(loop.folder.parent)
    assert {"dpdk_telemetry.v2", "weir.lock"} <= {path.name for path in running}
    assert {"links.ring", "flows.ring", "summary-switch.json", "weir-sender-dpdk.log"} <= {
        path.name for path in left
    }
    for path, mode in running.items():
        assert mode & 0o077 == 0, f"{path}: {mode:o}"
    for path, mode in left.items():
        assert mode == (0o755 if path.is_dir() else 0o644), f"{path}: {mode:o}"


def test_a_killed_switch_leaves_no_socket_in_the_way(lab, root):
    loop = Loop(lab, root, "-o", "live.switch.start=now", "--duration", "300s")
    killed = loop.start("switch/weir-switch", "server", lab.tmp / "killed")
    assert killed.ready(), killed.err
    killed.kill()
    second = loop.switch()
    assert second.ready(), second.err
    assert second.stop() == 0

# SPDX-License-Identifier: BSD-3-Clause
"""weir-sender into weir-sender over memif: configs/sender-25g.yaml, by hand and as one command."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from lab import CPUS, LCORE, QUIET, quiet, wait_for
from weir.analysis import model
from weir.analysis.ring import open_ring

CONFIG = "configs/sender-25g.yaml"
PACED = "flows=[{count: %d, cc: {fixed: {cwnd: 50, rate: 1Mbit}}, jitter: 500ms, tlp: no}]"


def start(lab, root, role, name, *options, port=""):
    """One side; the driver copies, so that it needs no hugepages. port: more keys of its port."""
    memif = "server" if role == "receiver" else "client"
    dev = f"net_memif0,role={memif},socket={lab.prefix},rsize=10"
    settings = [
        f"live.sender.prefix={lab.prefix}{name}",
        "live.sender.answer=60s",  # both share a CPU
        f'live.sender.ports=[{{name: {name}, role: {role}, dev: "{dev}"{port}}}]',
        *options,
    ]
    overrides = [arg for setting in settings for arg in ("-o", setting)]
    return lab.start("sender/weir-sender", root / CONFIG, *overrides, out=lab.tmp / name)


def both(lab, root, *options, sink_port=""):
    """Runs the sender to its end, then stops the sink; both summaries."""
    alone = ("duration=300s", f"live.sender.lcores=[{LCORE}]")
    sink = start(lab, root, "receiver", "sink", *alone, *options, port=sink_port)
    assert sink.ready(), sink.err
    sender = start(lab, root, "sender", "sent", "duration=3s", "warmup=1s", *options)
    assert sender.wait() == 0, sender.err
    assert sink.stop() == 0, sink.err
    return sender.summary(), sink.summary()


def test_paced_flows_keep_their_rate(lab, root):
    flows = 200
    sent, sink = both(lab, root, PACED % flows)
    assert sent["ledger"]["balanced"]
    assert sink["ledger"]["balanced"]
    assert (sent["flows"]["waiting"] + sent["flows"]["open"], sent["flows"]["failed"]) == (flows, 0)
    emulation = sent["emulation"]
    assert emulation["pacing_early"] == 0
    # 2 s at 1 Mbit/s; of a stall in the warm-up up to 200 ms are made up for in them.
    assert 0 < emulation["paced_segs"] <= 1.01 * quiet(2, 2.2) * 86.4 * flows
    assert emulation["pacing_undisturbed"]["paced_segs"] <= emulation["paced_segs"]
    if QUIET:
        assert emulation["paced_segs"] > 33000
        assert emulation["pacing_rate"]["flows"] == flows
        assert emulation["pacing_rate"]["undisturbed_worst"] <= 0.005
    port = sent["sender_ports"][0]
    assert sink["receivers"]["bytes"] > 0
    assert port["rx_malformed"] == sink["sender_ports"][0]["rx_malformed"] == 0


def test_a_stall_over_all_that_is_measured(lab, root):
    """Nothing was measured in no time: goodput was null, and no command read the folder."""
    sink = start(lab, root, "receiver", "sink", "duration=300s", f"live.sender.lcores=[{LCORE}]")
    assert sink.ready(), sink.err
    sender = start(lab, root, "sender", "sent", "duration=2s", "warmup=1900ms", PACED % 20)
    assert sender.ready(), sender.err
    lab.runs(f"{lab.prefix}sent")
    sender.send(signal.SIGSTOP)
    since = time.monotonic()
    wait_for(lambda: time.monotonic() > since + 2.2, "the run's end")
    sender.send(signal.SIGCONT)
    assert (sender.wait(), sink.stop()) == (0, 0), sender.err
    model.decode((lab.tmp / "sent/summary-sender.json").read_text())


def test_thousands_of_copa_flows_open_and_balance(lab, root):
    sent, sink = both(lab, root, "flows.0.count=20000")
    assert sent["ledger"]["balanced"]
    assert sink["ledger"]["balanced"]
    assert sent["flows"]["failed"] == 0
    assert sent["flows"]["waiting"] + sent["flows"]["open"] == 20000
    assert sent["flows"]["open"] >= quiet(20000, 1)
    assert sent["emulation"]["pacing_early"] == 0
    assert sent["emulation"]["pacing_rate"] == {
        "flows": 0,
        "p99": None,
        "worst": None,
        "undisturbed_p99": None,
        "undisturbed_worst": None,
    }


def test_a_round_trip_lasts_as_long_as_the_sink_delays_its_acks(lab, root):
    sent, sink = both(lab, root, PACED % 200, sink_port=", delay: 20ms")
    assert sent["ledger"]["balanced"]
    assert sink["ledger"]["balanced"]
    group, delayed = sent["groups"][0], sink["emulation"]
    assert group["acked_bytes"] > 0
    # No ACK leaves early; how late those leave that the host let wait is in the sink's summary.
    assert group["rtt_mean_ns"] >= 20e6
    assert group["rtt_mean_ns"] <= quiet(21e6, 1e9)
    assert delayed["early"] == 0
    assert delayed["packets"] > 0
    assert delayed["delay_error_p50_ns"] <= quiet(5e3, 1e9)
    assert sink["sender_ports"][0]["no_mbuf"] == 0


@pytest.mark.parametrize("lcores", [([CPUS[0]], [LCORE]), ([CPUS[0], LCORE], [LCORE])])
def test_one_command_runs_sender_and_receiver_and_ends_both(lab, root, tmp_path, lcores):
    """Small, and without hugepages; two CPUs have to do for three lcores."""
    settings = ["duration=2s", "warmup=500ms", "flows.0.count=100", "flows.0.jitter=100ms"]
    settings += ["live.sender.answer=60s", PACED % 100]
    for section, role, cpus in zip(
        ("sender", "receiver"), ("client", "server"), lcores, strict=True
    ):
        dev = f"net_memif0,role={role},socket={lab.prefix},rsize=10"
        settings += [
            f"live.{section}.prefix={lab.prefix}{section}",
            f"live.{section}.hugepages=no",
            f"live.{section}.lcores={cpus}",
            f"live.{section}.ports.0.dev={dev}",
        ]
    out = tmp_path / "run"
    argv = [sys.executable, "-m", "weir", "run", root / CONFIG, "--live", "--no-report"]
    argv += ["--out", out, *(arg for setting in settings for arg in ("-o", setting))]
    environment = os.environ | {"WEIR_BUILD": str(lab.build)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for written in ("summary.json", "receiver/summary-sender.json"):
        model.decode((out / written).read_text())
    summary = json.loads((out / "summary.json").read_text())
    assert summary["ledger"]["programs"] == {"sender": True, "receiver": True}
    assert summary["receivers"]["bytes"] > 0
    assert summary["groups"][0]["rtt_mean_ns"] >= 10e6
    assert summary["emulation"]["early"] == summary["emulation"]["pacing_early"] == 0
    assert "interrupted" not in {found["cause"] for found in summary["verdicts"]}
    assert "port_down" not in {found["cause"] for found in summary["faults"]}
    own = json.loads((out / "receiver/summary-sender.json").read_text())
    assert own["sender_ports"][0]["role"] == "receiver"


def test_a_plugin_runs_live(lab, root, build_plugin):
    """A control from outside paces and reports as one within; NaN ends the run with a sentence."""
    flows = "flows=[{count: 20, cc: {plugin: %s}}]"
    sent, sink = both(lab, root, flows % build_plugin(), "telemetry.level=3")
    assert sent["ledger"]["balanced"]
    assert sink["receivers"]["bytes"] > 0
    assert sent["groups"][0]["cc"] == "mine"
    observers = open_ring(lab.tmp / "sent/cc.ring").schema.observers
    assert [(o.name, o.observed) for o in observers] == [("mine", ("ssthresh_segs",))]

    nan = build_plugin(("out->cwnd_segs += step;", "out->cwnd_segs += step * 0. / 0.;"))
    alone = ("duration=300s", f"live.sender.lcores=[{LCORE}]")
    sink = start(lab, root, "receiver", "sink2", *alone)
    assert sink.ready(), sink.err
    sender = start(lab, root, "sender", "sent2", "duration=300s", flows % nan)
    assert sender.wait() == 1
    assert "on_ack (now_ns " in sender.err[-1]
    assert "cwnd_segs is " in sender.err[-1]
    sink.stop()

# SPDX-License-Identifier: BSD-3-Clause
"""weir-sender into weir-sender over memif: configs/sender-25g.yaml, the pacer's own report."""

import pytest
from lab import LCORE, Lab, quiet

CONFIG = "configs/sender-25g.yaml"
PACED = "flows=[{count: %d, cc: {fixed: {cwnd: 50, rate: 1Mbit}}, jitter: 500ms, tlp: no}]"


@pytest.fixture
def lab(tmp_path, build, weir_sender):
    with Lab(tmp_path, build) as lab:
        yield lab


def start(lab, root, role, name, *options):
    """One side; the driver copies, so that it needs no hugepages."""
    memif = "server" if role == "receiver" else "client"
    dev = f"net_memif0,role={memif},socket={lab.prefix},rsize=10"
    settings = [
        f"live.sender.prefix={lab.prefix}{name}",
        f'live.sender.ports=[{{name: {name}, role: {role}, dev: "{dev}"}}]',
        *options,
    ]
    overrides = [arg for setting in settings for arg in ("-o", setting)]
    return lab.start("sender/weir-sender", root / CONFIG, *overrides, out=lab.tmp / name)


def both(lab, root, *options):
    """Runs the sender to its end, then stops the sink; both summaries."""
    sink = start(
        lab, root, "receiver", "sink", "duration=60s", f"live.sender.lcores=[{LCORE}]", *options
    )
    sender = start(lab, root, "sender", "sent", "duration=3s", "warmup=1s", *options)
    assert sender.wait(60) == 0, sender.err
    assert sink.stop() == 0, sink.err
    return sender.summary(), sink.summary()


def test_paced_flows_keep_their_rate(lab, root):
    flows = 200
    sent, sink = both(lab, root, PACED % flows)
    assert sent["ledger"]["balanced"]
    assert sink["ledger"]["balanced"]
    assert sent["flows"]["open"] == flows
    emulation = sent["emulation"]
    assert emulation["pacing_early"] == 0
    # 2 s at 86 segments each; less where the host took the CPU away for long.
    assert emulation["paced_segs"] > quiet(33000, 3000)
    assert emulation["pacing_undisturbed"]["paced_segs"] <= emulation["paced_segs"]
    rate = emulation["pacing_rate"]
    assert rate["flows"] > quiet(flows - 1, 0)
    assert rate["undisturbed_worst"] <= quiet(0.005, 0.2)
    port = sent["sender_ports"][0]
    assert sink["receivers"]["bytes"] > 0
    assert port["rx_malformed"] == sink["sender_ports"][0]["rx_malformed"] == 0


def test_thousands_of_copa_flows_open_and_balance(lab, root):
    sent, sink = both(lab, root, "flows.0.count=20000")
    assert sent["ledger"]["balanced"]
    assert sink["ledger"]["balanced"]
    assert sent["flows"]["failed"] == 0
    assert sent["flows"]["open"] > quiet(19999, 1000)
    assert sent["emulation"]["pacing_early"] == 0
    assert sent["emulation"]["pacing_rate"] == {
        "flows": 0,
        "p99": None,
        "worst": None,
        "undisturbed_p99": None,
        "undisturbed_worst": None,
    }

# SPDX-License-Identifier: BSD-3-Clause
"""AccECN (RFC 9768): the marks a sender counts beside the switch's; packets in tshark."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from weir.analysis.ring import open_ring

from .conftest import ROOT, Simulate

CONFIG = "dctcp-step"
PAYLOAD = 1448
WHOLE = ("telemetry.level=1", "warmup=0s", "flows.0.source={size: {bytes: 10MB}}", "duration=60s")
ACK_LOSS = "paths.reverse=[{loss: {rate: 20%}}, {delay: {delay: 5ms}}]"
ACCECN = "flows.0.ecn_feedback=accecn"


@pytest.mark.parametrize("control", ["dctcp", "prague"])
@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("flows.0.ack_every=1",),
        ("flows.0.gro=2ms",),
        (ACK_LOSS,),
        (ACK_LOSS, "flows.0.gro=2ms"),
        (ACK_LOSS, "flows.0.host=linux"),
    ],
    ids=["plain", "an ACK each", "GRO", "ACK loss", "ACK loss, GRO", "ACK loss, Linux host"],
)
def test_every_mark_is_counted_once(
    simulate: Simulate, control: str, overrides: tuple[str, ...]
) -> None:
    """The counter says how many packets were marked, whatever becomes of single ACKs."""
    run = simulate(CONFIG, *WHOLE, ACCECN, f"flows.0.cc={control}", *overrides)

    assert run.summary["flows"]["done"] == 1
    assert run.link["marks"] > 50
    assert run.groups[0]["ce_segs"] == run.link["marks"]


def test_the_echo_of_dctcp_is_exact_only_without_ack_loss(simulate: Simulate) -> None:
    """RFC 8257's ECE says of an ACK's packets all or none; of a lost ACK's, nothing."""
    exact = simulate(CONFIG, *WHOLE)
    lossy = simulate(CONFIG, *WHOLE, ACK_LOSS)

    assert exact.groups[0]["ce_segs"] == exact.link["marks"]
    assert abs(lossy.groups[0]["ce_segs"] / lossy.link["marks"] - 1) > 0.01


def test_tshark_reads_it(weir_sim: Path, tmp_path: Path) -> None:
    """The SYN has 111, its answer 010, as the answer to that; then ACE and the option count alike.

    All segments have 1448 bytes, so bytes with CE / 1448 is the number of marks, and ACE is that
    plus 5, modulo 8.
    """
    capture, out = tmp_path / "accecn.pcap", tmp_path / "run"
    options = [arg for override in (*WHOLE, ACCECN) for arg in ("-o", override)]
    argv = [str(weir_sim), str(ROOT / f"configs/{CONFIG}.yaml"), *options, "--pcap", str(capture)]
    subprocess.run([*argv, "--out", str(out)], check=True, capture_output=True, timeout=120)
    names = ("tcp.srcport", "tcp.flags.ace", "tcp.flags.ae", "tcp.flags.cwr", "tcp.flags.ece")
    counters = ("tcp.options.acc_ecn.ee0b", "tcp.options.acc_ecn.eceb", "tcp.options.acc_ecn.ee1b")
    argv = ["tshark", "-r", str(capture), "-T", "fields", "-E", "separator=;", "-o"]
    argv += ["tcp.relative_sequence_numbers:false"]
    argv += [part for name in (*names, *counters, "_ws.malformed") for part in ("-e", name)]
    shown = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120).stdout
    syn, syn_ack, first, *rest = (line.split(";") for line in shown.splitlines())
    marks = json.loads((out / "summary.json").read_text())["links"]["forward"]["marks"]

    assert syn[2:5] == ["1", "1", "1"]
    assert syn_ack[2:] == ["0", "1", "0", "1", "0", "1", ""]
    assert first[1] == "2"
    assert {row[1] for row in rest if row[0] == syn[0]} == {"5"}
    acks = [row for row in rest if row[0] == syn_ack[0]]
    assert {row[-1] for row in rest} == {""}
    assert {row[7] for row in acks} == {"1"}  # nothing was ECT(1)
    for row in acks:
        assert int(row[6]) % PAYLOAD == 0
        assert int(row[1]) == (5 + int(row[6]) // PAYLOAD) % 8
    assert int(acks[-1][6]) == marks * PAYLOAD
    assert {row[1] for row in acks} == set("01234567")


def test_captures_are_not_misread(weir_sim: Path, weir_pcap: Path, tmp_path: Path) -> None:
    """The flags of ACE are no ECN echo and no CWR: `weir pcap` counts none."""
    for feedback, echoes in (("accecn", False), ("classic", True)):
        capture, folder = tmp_path / f"{feedback}.pcap", tmp_path / f"{feedback}-capture"
        own = (*WHOLE, f"flows.0.ecn_feedback={feedback}")
        argv = [str(weir_sim), str(ROOT / f"configs/{CONFIG}.yaml"), "--pcap", str(capture)]
        argv += [arg for override in own for arg in ("-o", override)]
        argv += ["--out", str(tmp_path / feedback)]
        subprocess.run(argv, check=True, capture_output=True, timeout=120)
        argv = [str(weir_pcap), "analyze", str(capture), "--out", str(folder)]
        subprocess.run(argv, check=True, capture_output=True, timeout=120)
        losses = open_ring(folder / "losses.ring").records
        flows = open_ring(folder / "captured.ring").records

        assert (losses["ece"].sum() > 0) == echoes
        assert (losses["ecn_reductions"].sum() > 0) == echoes
        assert flows["options"][0] & 8

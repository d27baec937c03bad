# SPDX-License-Identifier: BSD-3-Clause
"""AccECN (RFC 9768): the marks a sender counts beside the switch's; packets in tshark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from weir.analysis.ring import open_ring

from .conftest import Run, Simulate, tshark

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


def captured(simulate: Simulate, place: Path, *overrides: str) -> tuple[Run, Path]:
    """A run of WHOLE and its capture, in a folder."""
    capture = place / "x.pcap"
    return simulate(CONFIG, *WHOLE, *overrides, more=("--force", "--pcap", str(capture))), capture


def test_tshark_reads_it(simulate: Simulate, tmp_path: Path) -> None:
    """The SYN has 111, its answer 010, as the answer to that; then ACE and the option count alike.

    All segments have 1448 bytes, so bytes with CE / 1448 is the number of marks, and ACE is that
    plus 5, modulo 8.
    """
    run, capture = captured(simulate, tmp_path, ACCECN)
    names = ("tcp.srcport", "tcp.flags.ace", "tcp.flags.ae", "tcp.flags.cwr", "tcp.flags.ece")
    counters = ("tcp.options.acc_ecn.ee0b", "tcp.options.acc_ecn.eceb", "tcp.options.acc_ecn.ee1b")
    syn, syn_ack, first, *rest = tshark(capture, "tcp", *names, *counters, "_ws.malformed")
    marks = run.link["marks"]

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


def test_captures_are_not_misread(simulate: Simulate, weir_pcap: Path, tmp_path: Path) -> None:
    """The flags of ACE are no ECN echo and no CWR: `weir pcap` counts none."""
    for feedback, echoes in (("accecn", False), ("classic", True)):
        _, capture = captured(simulate, tmp_path, f"flows.0.ecn_feedback={feedback}")
        folder = tmp_path / f"{feedback}-capture"
        argv = [str(weir_pcap), "analyze", str(capture), "--out", str(folder)]
        subprocess.run(argv, check=True, capture_output=True, timeout=120)
        losses = open_ring(folder / "losses.ring").records
        flows = open_ring(folder / "captured.ring").records

        assert (losses["ece"].sum() > 0) == echoes
        assert (losses["ecn_reductions"].sum() > 0) == echoes
        assert flows["options"][0] & 8


def cleared(segments: str, path: str = "reverse") -> str:
    """An override: a middlebox of a path that clears the option on these segments."""
    return f"paths.{path}=[{{clear_options: {{accecn: {segments}}}}}, {{delay: {{delay: 5ms}}}}]"


@pytest.mark.parametrize("control", ["dctcp", "prague"])
@pytest.mark.parametrize("segments", ["syn", "later", "all"])
def test_ace_alone_counts_every_mark(simulate: Simulate, control: str, segments: str) -> None:
    """ACKs of less than eight packets need no option (RFC 9768, sections 3.2.2.5 and 3.2.3.2.3)."""
    plain = simulate(CONFIG, *WHOLE, ACCECN, f"flows.0.cc={control}")
    run = simulate(CONFIG, *WHOLE, ACCECN, f"flows.0.cc={control}", cleared(segments))

    assert run.summary["flows"]["done"] == 1
    assert run.groups[0]["ce_segs"] == run.link["marks"] == plain.link["marks"]
    assert run.groups[0]["goodput_bps"] == plain.groups[0]["goodput_bps"]


@pytest.mark.parametrize("segments", ["later", "all"])
def test_without_the_option_the_most_is_assumed(simulate: Simulate, segments: str) -> None:
    """ACKs of many packets (GRO) may hide that ACE went round: section 3.2.2.5.2, dSafer."""
    run = simulate(CONFIG, *WHOLE, ACCECN, "flows.0.gro=2ms", cleared(segments))

    assert run.summary["flows"]["done"] == 1
    assert run.groups[0]["ce_segs"] > run.link["marks"] > 0


def test_the_option_is_used_when_it_comes_after_all(simulate: Simulate) -> None:
    """Not on the SYN/ACK but later, which section 3.2.3.2.3 allows.

    The first ACK alone, of the initial window of ten, has nothing to compare its bytes with.
    """
    run = simulate(CONFIG, *WHOLE, ACCECN, "flows.0.gro=2ms", cleared("syn"))

    assert run.link["marks"] > 50
    assert 0 <= run.groups[0]["ce_segs"] - run.link["marks"] <= 10


def test_a_captured_ack_has_nops_and_a_good_checksum(simulate: Simulate, tmp_path: Path) -> None:
    """Tshark finds no option from the receiver, only NOPs, and each checksum right."""
    _, capture = captured(simulate, tmp_path, ACCECN, cleared("all"))
    names = ("tcp.srcport", "tcp.checksum.status", "tcp.options.acc_ecn.eceb", "tcp.hdr_len")
    syn, *rest = tshark(capture, "tcp", *names)
    acks = [row for row in rest if row[0] != syn[0]]

    assert len(acks) > 1000
    assert {row[1] for row in acks} == {"1"}  # good
    assert {row[2] for row in acks} == {""}
    assert {row[3] for row in acks[1:]} >= {"44"}  # 32 with timestamps, and 12 NOPs

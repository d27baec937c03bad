# SPDX-License-Identifier: BSD-3-Clause
"""What the comment at the head of a config says to expect, against its run.

Numbers are read from the comment: a statement that changes there, or that the run no longer
has, fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pytest
import yaml
from weir.study import claim, find
from weir.study.written import measure_of

from .conftest import ROOT, Run, Simulate, tshark

CONFIGS = ROOT / "configs"
PAYLOAD_BITS = 1448 * 8


def comment(name: str) -> str:
    """The comment at the head of a config, as one line."""
    lines = (CONFIGS / f"{name}.yaml").read_text().splitlines()
    head = [line.lstrip("# ") for line in lines if line.startswith("#")]
    return " ".join(line for line in head if "yaml-language-server" not in line)


def goodput(*groups: int) -> Callable[[Run], list[float]]:
    """Of groups, in Mbit/s."""
    return lambda run: [run.groups[i]["goodput_bps"] / 1e6 for i in groups]


def rtt(run: Run) -> list[float]:
    """Mean RTT of the first group, in ms."""
    return [run.groups[0]["rtt_mean_ns"] / 1e6]


def link(key: str, unit: float = 1) -> Callable[[Run], list[float]]:
    """A figure of the forward link."""
    return lambda run: [run.link[key] / unit]


def receiving(run: Run) -> list[float]:
    """Packets per interrupt of the receiving hosts, and segments that GRO joins."""
    cards = run.summary["cards"]["receiving"]
    return [cards["packets_per_interrupt"], cards["segs_per_handover"]]


def segments_per_ack(run: Run) -> list[float]:
    return [run.summary["receivers"]["segs"] / run.summary["receivers"]["acks"]]


def both(*measures: Callable[[Run], list[float]]) -> Callable[[Run], list[float]]:
    """One after the other."""
    return lambda run: [value for measure in measures for value in measure(run)]


def per_flow(run: Run) -> list[float]:
    """Goodput of a flow of the first group, in Mbit/s."""
    return [run.groups[0]["goodput_bps"] / run.groups[0]["flows"] / 1e6]


def share(run: Run) -> list[float]:
    """The second group's part of the goodput."""
    rates = [g["goodput_bps"] for g in run.groups]
    return [rates[1] / sum(rates)]


def ratio(run: Run) -> float:
    """The second group's goodput per the first's."""
    first, second = (group["goodput_bps"] for group in run.groups)
    return float(second / first)


def queue_per(pkts: float) -> Callable[[Run], list[float]]:
    """Mean queue in so many packets."""
    return lambda run: [run.link["queue_mean_pkts"] / pkts]


def window(run: Run) -> list[float]:
    """Mean window of one flow, in segments."""
    group = run.groups[0]
    return [group["goodput_bps"] * group["rtt_mean_ns"] * 1e-9 / PAYLOAD_BITS]


def retransmitted(run: Run) -> list[float]:
    """Part of a flow's segments that were sent again, in %."""
    group = run.groups[0]
    return [100 * group["retransmits"] / group["sent_segs"]]


def marks_counted(run: Run) -> list[float]:
    """Marks that the first group's senders have counted."""
    return [run.groups[0]["ce_segs"]]


def probed(run: Run) -> list[float]:
    """The rate that the second group's probes estimate, in Mbit/s."""
    return [run.groups[1]["probe"]["rate_bps"] / 1e6]


def of_four_flows(run: Run) -> list[float]:
    """Goodput of a flow of each group of four, and the second's per the first's."""
    return [*(g["goodput_bps"] / 4e6 for g in run.groups), ratio(run)]


def jfi(run: Run) -> list[float]:
    """Jain's index of all flows."""
    return [run.summary["jfi"]]


def least_jfi(run: Run) -> list[float]:
    return [min(group["jfi"] for group in run.groups)]


def first_hop(run: Run) -> list[float]:
    return [run.summary["links"]["hop1"]["utilisation"]]


def of_nine_tenths(run: Run) -> list[float]:
    """The second group's goodput over nine tenths, in Mbit/s."""
    return [run.groups[1]["goodput_bps"] / 0.9e6]


def of_link(run: Run) -> list[float]:
    """The first group's goodput over what 100 Mbit/s carry of payload."""
    return [run.groups[0]["goodput_bps"] / (100e6 * 1448 / 1538)]


def used(run: Run) -> list[float]:
    """Of the link, in %."""
    return [100 * run.link["utilisation"]]


def frame_time(run: Run) -> list[float]:
    """Of a call's frames, from when one is written until it is acknowledged: the median, in s."""
    done = run.records("transfers")
    done = done[done["event"] == 2]
    return [float(np.median(done["ts_ns"] - done["start_ns"])) / 1e9]


def ping(name: str = "Ping (ms) ICMP") -> Callable[[Run], list[float]]:
    """A group's pings: their median, in ms."""

    def measured(run: Run) -> list[float]:
        [own] = [group for group in run.groups if group["name"] == name]
        return [own["transfers"]["completion_p50_ns"] / 1e6]

    return measured


class Statement(msgspec.Struct, forbid_unknown_fields=True):
    """A row of statements.yaml."""

    config: str
    says: str
    measure: str
    near: float | None = None
    at: Literal["least", "most"] = "least"
    set: tuple[str, ...] = ()

    def holds(self, measured: float, said: float) -> bool:
        if self.near is not None:
            return abs(measured - said) <= self.near * said
        return measured >= said if self.at == "least" else measured <= said


ROWS = yaml.load((Path(__file__).parent / "statements.yaml").read_text(), yaml.BaseLoader)
STATEMENTS = msgspec.convert(ROWS, list[Statement], strict=False)
OWN = {"web-search"}  # a test below
LIVE = {"kernel-hosts", "loopback-5000"}  # of hosts that a test cannot have


RUNS = sorted({(statement.config, statement.set) for statement in STATEMENTS})


@pytest.mark.slow
@pytest.mark.parametrize(("config", "overrides"), RUNS)
def test_a_config_does_what_its_comment_says(
    simulate: Simulate, config: str, overrides: tuple[str, ...]
) -> None:
    run = simulate(config, "telemetry.level=1", *overrides)
    for statement in STATEMENTS:
        if (statement.config, statement.set) != (config, overrides):
            continue
        found = re.search(statement.says, comment(config))
        assert found, f"the comment of {config}.yaml does not say so any more: {statement.says}"
        said = [float(number) for number in found.groups()]
        measured = measure_of(statement.measure, globals())(run)

        assert len(measured) == len(said), statement.says
        for value, number in zip(measured, said, strict=True):
            assert statement.holds(value, number), f"{statement.says}: {value} for {number}"


@pytest.mark.slow
def test_web_search_is_fast_with_copa(simulate: Simulate) -> None:
    """2.4 times lower than with DCTCP up to 64 kB at p99, and highest with NewReno."""
    found = re.search(r"about ([\d.]+) times lower", comment("web-search"))
    assert found
    p99 = {}
    for control, ecn in (("copa", "off"), ("dctcp", "ect0"), ("newreno", "off")):
        run = simulate("web-search", f"flows.0.cc={control}", f"flows.0.ecn={ecn}")
        done = run.records("transfers")
        done = done[(done["size_bytes"] <= 64000) & (done["event"] == 2)]
        p99[control] = np.percentile(done["ts_ns"] - done["start_ns"], 99)

    assert p99["dctcp"] / p99["copa"] == pytest.approx(float(found[1]), rel=0.15)
    assert p99["newreno"] > p99["dctcp"]


def test_every_claim_is_checked() -> None:
    """A config without a row is of the study of papers, or named by a test elsewhere."""
    own = {statement.config for statement in STATEMENTS} | OWN | LIVE
    own |= {setup.config.stem for setup in claim.setups(find.chosen("papers")[0])}
    tests = [path for room in ("sim", "smoke") for path in (ROOT / "tests" / room).glob("*.py")]
    texts = [path.read_text() for path in tests if path != Path(__file__)]

    names = {path.stem for path in CONFIGS.glob("*.yaml")}
    for folder in ("course", "flent"):
        names |= {f"{folder}/{path.stem}" for path in (CONFIGS / folder).glob("*.yaml")}
    for name in names - own:
        named = re.compile(rf"\b{re.escape(name)}(\.yaml|\")")
        assert any(named.search(text) for text in texts), f"no test names {name}"


@pytest.mark.slow
def test_cleared_options_has_options_to_clear(simulate: Simulate, tmp_path: Path) -> None:
    """Its SYN asks for AccECN, the option comes where no middlebox clears it, and nothing changes.

    With ACKs of many packets it does: more marks are counted than there were.
    """
    shown = {}
    for name, override in {
        "kept": "paths.reverse.clear_options.accecn=keep",
        "cleared": "paths.reverse.clear_options.accecn=all",
    }.items():
        capture = tmp_path / f"{name}.pcap"
        more = ("--pcap", str(capture))
        simulate("cleared-options", override, "duration=4s", "warmup=1s", more=more)
        fields = ("frame.time_relative", "tcp.flags", "tcp.ack", "tcp.options.acc_ecn.eceb")
        shown[name] = tshark(capture, "tcp", *fields)

    assert shown["kept"][0][1] == "0x01c2"  # AE, CWR, ECE, SYN
    assert any(row[3] for row in shown["kept"])
    assert not any(row[3] for row in shown["cleared"])
    assert [row[:3] for row in shown["kept"]] == [row[:3] for row in shown["cleared"]]


def test_cleared_options_and_acks_of_many_packets(simulate: Simulate) -> None:
    run = simulate("cleared-options", "flows.l4s.gro=2ms", "duration=20s")
    kept = simulate(
        "cleared-options",
        "flows.l4s.gro=2ms",
        "duration=20s",
        "paths.reverse.clear_options.accecn=keep",
    )

    assert run.groups[0]["ce_segs"] > run.link["marks"]
    assert abs(kept.groups[0]["ce_segs"] - kept.link["marks"]) <= 2  # on their way at an end

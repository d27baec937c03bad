# SPDX-License-Identifier: BSD-3-Clause
"""What the comment at the head of a config says to expect, against its run.

Numbers are read from the comment: a statement that changes there, or that the run no longer
has, fails.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from weir.study import claim, find

from .conftest import ROOT, Run, Simulate

CONFIGS = ROOT / "configs"
FRAME_BITS = 1538 * 8
PAYLOAD_BITS = 1448 * 8
Relation = Callable[[float, float], bool]


def comment(name: str) -> str:
    """The comment at the head of a config, as one line."""
    lines = (CONFIGS / f"{name}.yaml").read_text().splitlines()
    head = [line.lstrip("# ") for line in lines if line.startswith("#")]
    return " ".join(line for line in head if "yaml-language-server" not in line)


def near(part: float) -> Relation:
    """Measured is what is said, but for this part."""
    return lambda measured, said: abs(measured - said) <= part * said


def above(measured: float, said: float) -> bool:
    """At least."""
    return measured >= said


def below(measured: float, said: float) -> bool:
    """At most."""
    return measured <= said


class Statement(NamedTuple):
    """`pattern`: words of the comment; each group of it is a number."""

    config: str
    pattern: str
    measure: Callable[[Run], list[float]]
    relation: Relation
    overrides: tuple[str, ...] = ()


def goodput(*groups: int) -> Callable[[Run], list[float]]:
    """Of groups, in Mbit/s."""
    return lambda run: [run.groups[i]["goodput_bps"] / 1e6 for i in groups]


def rtt(run: Run) -> list[float]:
    """Mean RTT of the first group, in ms."""
    return [run.groups[0]["rtt_mean_ns"] / 1e6]


def link(key: str, unit: float = 1) -> Callable[[Run], list[float]]:
    """A figure of the forward link."""
    return lambda run: [run.link[key] / unit]


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


CODEL = "paths.forward.link.queue={codel: {limit: 4BDP}}"
FIFO = "paths.forward.link.queue={fifo: {limit: 4BDP}}"
POLICED = (
    "paths.forward=[{policer: {rate: 1500kbit, burst: 40kB}}, {link: {rate: 100Mbit}}, "
    "{delay: {delay: 50ms}}]",
    "schedule=[]",
)
SHORT = ("duration=2s", "warmup=1s")
CAKES = ("paths.forward.link.queue=cake", "paths.reverse.link.queue=cake")
STATEMENTS = [
    Statement(
        "asymmetric-uplink",
        r"([\d.]+) Mbit/s at a mean RTT of (\d+) ms; without",
        both(goodput(0), rtt),
        near(0.03),
    ),
    Statement(
        "asymmetric-uplink",
        r"without the filter (\d+) Mbit/s at (\d+) ms",
        both(goodput(0), rtt),
        near(0.05),
        ("paths.reverse.link.queue.cake.ack_filter=no",),
    ),
    Statement("bbr-lone", r"utilisation >= ([\d.]+)", link("utilisation"), above),
    Statement("bbr-lone", r"mean queue below ([\d.]+) BDP", queue_per(4e6 / FRAME_BITS), below),
    Statement("bbr3-cubic", r"leaves CUBIC ([\d.]+) of it", share, near(0.1), ("flows.0.cc=bbr",)),
    Statement(
        "bbr3-cubic",
        r"with 1 BDP of buffer ([\d.]+) \(",
        share,
        near(0.15),
        ("flows.0.cc=bbr", "paths.forward.link.queue.fifo.limit=1BDP"),
    ),
    Statement(
        "bbr3-cubic",
        r"\(version 3: ([\d.]+)\)",
        share,
        near(0.1),
        ("paths.forward.link.queue.fifo.limit=1BDP",),
    ),
    Statement(
        "bursty-loss",
        r"each packet is an event: (\d+) Mbit/s per flow",
        per_flow,
        near(0.1),
        ("paths.forward.0={loss: {rate: 0.5%}}",),
    ),
    Statement("bursty-loss", r"(\d+) to 22 Mbit/s", per_flow, above),
    Statement("bursty-loss", r"21 to (\d+) Mbit/s", per_flow, below),
    Statement("cake-hosts", r"([\d.]+) Mbit/s for each host", goodput(0), near(0.01)),
    Statement(
        "cake-hosts",
        r"an eleventh, ([\d.]+) Mbit/s",
        goodput(0),
        near(0.05),
        ("paths.forward.link.queue.cake.isolation=flows",),
    ),
    Statement(
        "cleared-options",
        r"Prague at ([\d.]+) Mbit/s and CUBIC at ([\d.]+), and all (\d+) marks",
        both(goodput(0, 1), lambda run: [run.groups[0]["ce_segs"]]),
        near(0.003),
    ),
    Statement(
        "cobalt-unresponsive",
        r"mean time in the queue below ([\d.]+) ms",
        link("queue_mean_ns", 1e6),
        below,
    ),
    Statement(
        "cobalt-unresponsive",
        r"limit: 4BDP}}' above (\d+) ms",
        link("queue_mean_ns", 1e6),
        above,
        (CODEL,),
    ),
    Statement("codel-vs-fifo", r"utilisation above ([\d.]+)", link("utilisation"), above),
    Statement(
        "codel-vs-fifo",
        r"median time in the queue below (\d+) ms",
        link("sojourn_p50_ns", 1e6),
        below,
    ),
    Statement(
        "codel-vs-fifo", r"above (\d+) ms with -o", link("sojourn_p50_ns", 1e6), above, (FIFO,)
    ),
    Statement("compound-loss", r"(\d+) segments in the mean", window, near(0.05)),
    Statement("copa-datacenter", r"queued per flow, (\d+) here", queue_per(1), near(0.1)),
    Statement("copa-steady", r"delta 0.5: ([\d.]+) n packets", queue_per(2), near(0.1)),
    Statement(
        "copa-steady",
        r"delta 0.5: ([\d.]+) n packets",
        queue_per(5),
        near(0.1),
        ("flows.0.count=5",),
    ),
    Statement("copa-probe", r"and ([\d.]+) Mbit/s, an eleventh", goodput(2), near(0.03)),
    Statement(
        "copa-probe",
        r"a tenth of the link, ([\d.]+) Mbit/s",
        lambda run: [run.groups[1]["probe"]["rate_bps"] / 1e6],
        near(0.2),
    ),
    Statement("corescale-100g", r"utilisation above ([\d.]+)", link("utilisation"), above, SHORT),
    Statement(
        "corescale-100g",
        r"mean time in the queue above (\d+) ms",
        link("queue_mean_ns", 1e6),
        above,
        SHORT,
    ),
    Statement("cubic-curve", r"mean queue ([\d.]+) BDP", queue_per(1e7 / FRAME_BITS), near(0.03)),
    Statement("dctcp-step", r"(\d+) to 49 Mbit/s of payload", goodput(0), above),
    Statement("dctcp-step", r"48 to (\d+) Mbit/s of payload", goodput(0), below),
    Statement("dualpi2-l4s", r"both flows near (\d+) Mbit/s", goodput(0), near(0.05)),
    Statement("dualpi2-l4s", r"both flows near (\d+) Mbit/s", goodput(1), near(0.05)),
    Statement("fast-queue", r"so a queue of (\d+)", queue_per(1), near(0.03)),
    Statement("fq-codel", r"within 6 % of a fair share, ([\d.]+) Mbit/s", goodput(0), near(0.06)),
    Statement("flent/rrul", r"(\d+) ms in the median", ping(), near(0.03)),
    Statement("flent/rrul", r"(\d+) ms and 2550", ping(), near(0.03), CAKES),
    Statement("flent/rrul_be", r"(\d+) ms in the median", ping(), near(0.03)),
    Statement("flent/tcp_nup", r"(\d+) ms in the median", ping(), near(0.03)),
    Statement("flent/tcp_ndown", r"(\d+) ms in the median", ping(), near(0.03)),
    Statement("flent/rtt_fair", r"(\d+) ms in the median", ping("Ping (ms) ICMP1"), near(0.03)),
    Statement(
        "flent/rtt_fair",
        r"nearest has ([\d.]+) Mbit/s and the farthest ([\d.]+)",
        goodput(0, 3),
        near(0.05),
    ),
    Statement("flent/voip", r"(\d+) ms in the median", ping(), near(0.03)),
    Statement(
        "ipv6",
        r"([\d.]+) and ([\d.]+) Mbit/s per flow, the second ([\d.]+) of the first",
        lambda run: [*(g["goodput_bps"] / 4e6 for g in run.groups), ratio(run)],
        near(0.003),
    ),
    Statement(
        "ipv6",
        r"within each group is above (0.\d+)",
        lambda run: [min(group["jfi"] for group in run.groups)],
        above,
    ),
    Statement(
        "jitter",
        r"stays above (\d+) Mbit/s",
        goodput(0),
        above,
        ("paths.forward.jitter.half_life=0ns",),
    ),
    Statement("leo-handover", r"BBR reaches ([\d.]+) Mbit/s", goodput(0), near(0.03)),
    Statement(
        "leo-handover",
        r"([\d.]+) Mbit/s is what CUBIC has",
        goodput(0),
        near(0.03),
        ("flows.0.cc=cubic",),
    ),
    Statement("lte-trace", r"the file's, ([\d.]+) Mbit/s", link("rate_mean_bps", 1e6), near(0.01)),
    Statement("lte-trace", r"above (\d+) ms with the FIFO", link("sojourn_p99_ns", 1e6), above),
    Statement(
        "lte-trace",
        r"below (\d+) ms with -o",
        link("sojourn_p99_ns", 1e6),
        below,
        ("paths.forward.mahimahi_link.queue=codel",),
    ),
    Statement("markov-link", r"= ([\d.]+) Mbit/s, the mean", link("rate_mean_bps", 1e6), near(0.1)),
    Statement(
        "parking-lot",
        r"([\d.]+) Mbit/s, and a cross flow 3/4, ([\d.]+) Mbit/s; all hops are used to (\d\.\d+)",
        both(goodput(0, 1), lambda run: [run.summary["links"]["hop1"]["utilisation"]]),
        near(0.03),
    ),
    Statement("policer", r"a goodput above (\d+) Mbit/s", goodput(0), above),
    Statement("policer", r"of the (\d+) ms that the path", lambda run: [rtt(run)[0]], near(0.05)),
    Statement("swift-fabric", r"target, (\d+) packets", queue_per(1), near(0.05)),
    Statement("swift-fabric", r"(\d+) with one", queue_per(1), near(0.05), ("flows.0.count=1",)),
    Statement("udp-cross", r"([\d.]+) Mbit/s of UDP", goodput(0), near(0.002)),
    Statement(
        "udp-cross",
        r"the remaining (\d+) Mbit/s",
        lambda run: [goodput(1)(run)[0] / 0.9],
        above,
    ),
    Statement("vegas-queue", r"so a queue of (\d+) to 16", queue_per(1), above),
    Statement("vegas-queue", r"so a queue of 8 to (\d+)", queue_per(1), below),
    Statement("video-uplink", r"mean RTT of (\d+) ms with Copa", rtt, near(0.05)),
    Statement(
        "video-uplink", r"with Copa, (\d+) with CUBIC", rtt, near(0.05), ("flows.0.cc=cubic",)
    ),
    Statement("video-uplink", r"CUBIC and (\d+) with BBR", rtt, near(0.05), ("flows.0.cc=bbr",)),
    Statement(
        "vivace-loss",
        r"more than ([\d.]+) of the link",
        lambda run: [run.groups[0]["goodput_bps"] / (100e6 * 1448 / 1538)],
        above,
    ),
    Statement(
        "westwood-loss",
        r"(\d+) % of the link",
        used,
        near(0.2),
        ("flows.0.cc=newreno",),
    ),
    Statement("media-call", r"([\d.]+) s in the median with Copa", frame_time, near(0.05)),
    Statement("media-call", r"([\d.]+) s with BBR", frame_time, near(0.05), ("flows.0.cc=bbr3",)),
    Statement(
        "media-call", r"([\d.]+) s with CUBIC", frame_time, near(0.05), ("flows.0.cc=cubic",)
    ),
    Statement("periodic-delay", r"uses (\d+) % of the link", used, near(0.1)),
    Statement("periodic-delay", r"vegas (\d+) %", used, near(0.1), ("flows.0.cc=vegas",)),
    Statement("periodic-delay", r"or bbr (\d+) % or", used, above, ("flows.0.cc=bbr",)),
    Statement(
        "wifi-jitter",
        r"mean RTT is (\d+) ms.*CUBIC reaches ([\d.]+) Mbit/s",
        both(rtt, goodput(0)),
        near(0.03),
    ),
    Statement(
        "wifi-jitter",
        r"([\d.]+) Mbit/s is what BBR has",
        goodput(0),
        near(0.03),
        ("flows.0.cc=bbr",),
    ),
]
OWN = {"web-search"}  # a test below
LIVE = {"kernel-hosts", "loopback-5000"}  # of hosts that a test cannot have


RUNS = sorted({(statement.config, statement.overrides) for statement in STATEMENTS})


@pytest.mark.slow
@pytest.mark.parametrize(("config", "overrides"), RUNS)
def test_a_config_does_what_its_comment_says(
    simulate: Simulate, config: str, overrides: tuple[str, ...]
) -> None:
    run = simulate(config, "telemetry.level=1", *overrides)
    for statement in STATEMENTS:
        if (statement.config, statement.overrides) != (config, overrides):
            continue
        found = re.search(statement.pattern, comment(config))
        assert found, f"the comment of {config}.yaml does not say so any more: {statement.pattern}"
        said = [float(number) for number in found.groups()]
        measured = statement.measure(run)

        assert len(measured) == len(said), statement.pattern
        for value, number in zip(measured, said, strict=True):
            assert statement.relation(value, number), f"{statement.pattern}: {value} for {number}"


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
    own |= {trial.config.stem for trial in claim.trials(find.chosen("papers")[0])}
    tests = [path for room in ("sim", "smoke") for path in (ROOT / "tests" / room).glob("*.py")]
    texts = [path.read_text() for path in tests if path != Path(__file__)]

    names = {path.stem for path in CONFIGS.glob("*.yaml")}
    names |= {f"flent/{path.stem}" for path in (CONFIGS / "flent").glob("*.yaml")}
    for name in names - own:
        named = re.compile(rf"\b{re.escape(name)}(\.yaml|\")")
        assert any(named.search(text) for text in texts), f"no test names {name}"


@pytest.mark.slow
def test_cleared_options_has_options_to_clear(weir_sim: Path, tmp_path: Path) -> None:
    """Its SYN asks for AccECN, the option comes where no middlebox clears it, and nothing changes.

    With ACKs of many packets it does: more marks are counted than there were.
    """
    shown = {}
    for name, override in {
        "kept": "paths.reverse.clear_options.accecn=keep",
        "cleared": "paths.reverse.clear_options.accecn=all",
    }.items():
        capture = tmp_path / f"{name}.pcap"
        argv = [str(weir_sim), str(CONFIGS / "cleared-options.yaml"), "-o", override]
        argv += ["-o", "duration=4s", "-o", "warmup=1s", "--out", str(tmp_path / name)]
        subprocess.run([*argv, "--pcap", str(capture)], check=True, capture_output=True, timeout=99)
        argv = ["tshark", "-r", str(capture), "-T", "fields", "-e", "frame.time_relative"]
        argv += ["-e", "tcp.flags", "-e", "tcp.ack", "-e", "tcp.options.acc_ecn.eceb"]
        lines = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=99).stdout
        shown[name] = [line.split("\t") for line in lines.splitlines()]

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

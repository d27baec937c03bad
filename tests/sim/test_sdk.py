# SPDX-License-Identifier: BSD-3-Clause
"""Examples of plug-ins (tools/sdk), each against what its paper or RFC says of it."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from weir.analysis import folder as folders

from .conftest import Simulate
from .test_plugin import HARD

SDK = Path(__file__).resolve().parents[2] / "tools/sdk"
CRATE = SDK / "rust"
NEWRENO = CRATE / "examples/newreno.rs"


def in_rust(into: Path, source: Path) -> Path:
    """Compiles the crate, and a control that uses it, by rustc alone."""
    into.mkdir()
    rustc = "rustc --edition=2021 -O -C panic=abort --crate-type="
    for argv in (
        f"{rustc}rlib --crate-name=weir_cc --out-dir {into} {CRATE / 'src/lib.rs'}",
        f"{rustc}cdylib --extern=weir_cc={into}/libweir_cc.rlib -o {into}/control.so {source}",
    ):
        subprocess.run(argv.split(), check=True)
    return into / "control.so"


def by_cargo(into: Path) -> Path:
    """Builds the crate's example as its page says; by rustc where there is no cargo."""
    if not shutil.which("cargo"):
        return in_rust(into, NEWRENO)
    argv = f"cargo build --quiet --offline --release --manifest-path {CRATE}/Cargo.toml"
    subprocess.run(f"{argv} --target-dir {into} --example newreno".split(), check=True)
    return into / "release/examples/libnewreno.so"


SERVED_IN_RUST = (
    ("    const SSTHRESH: bool = true;", """    const SSTHRESH: bool = true;
    const SERVICE: bool = true;
    const NOTES: &'static [&'static str] = &["sent\\0", "acked\\0"];

    fn on_packet(&mut self, context: &Context<Settings>, packet: &weir_cc::Packet) {
        if packet.event == weir_cc::PacketEvent::Sent {
            self.sent += 1;
        } else if packet.event == weir_cc::PacketEvent::Acked {
            context.service().note(1, packet.sent_ns as f64, f64::from(packet.bytes));
        }
    }

    fn on_timer(&mut self, context: &Context<Settings>, _: u64, _: &mut Out) {
        let random = context.service().random() >> 40;
        context.service().note(0, random as f64, self.sent as f64);
        context.service().timer(100_000_000);
    }"""),
    ("        NewReno {", """        context.service().timer(100_000_000);
        context.service().burst(1);
        NewReno {"""),
    ("            slow_start: true,", "            slow_start: true,\n            sent: 0,"),
    ("    slow_start: bool,", "    slow_start: bool,\n    sent: u64,"),
)  # fmt: skip


def test_what_rust_has_beside_a_state(simulate: Simulate, tmp_path: Path) -> None:
    """A timer, segments, notes and random numbers reach a control in Rust as they are."""
    text = NEWRENO.read_text()
    for old, new in SERVED_IN_RUST:
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "served.rs").write_text(text)
    plugin = in_rust(tmp_path / "rust", tmp_path / "served.rs")
    run = simulate(HARD.format(seed=1, cc=f"{{plugin: {plugin}}}"))
    events = folders.load(run.folder).stream("events")
    mine = events.records[events.records["event"] == events.number("event", "note")]
    assert run.groups[0]["notes"] == ["sent", "acked"]
    timed = mine[(mine["detail"] == 0) & (mine["flow_id"] == 0)]
    assert set((timed["ts_ns"][1:] - timed["ts_ns"][:-1]).tolist()) == {100_000_000}
    assert len(set(timed["before"].tolist())) > 0.9 * len(timed)
    interval = folders.load(run.folder).stream("interval").records
    sent = interval["sent_segs"][interval["flow_id"] == 0].sum()
    assert timed["value"][-1] == pytest.approx(sent, rel=0.02)
    acked = mine[mine["detail"] == 1]
    assert set(acked["value"][acked["flow_id"] < 3].tolist()) == {1448.0}


RECEIVER_IN_RUST = """    const SSTHRESH: bool = true;
    const ARRIVAL: bool = true;

    fn on_arrival(own: &mut [u64; weir_cc::RECEIVER], _: &Settings, at: &weir_cc::Arrival) -> u64 {
        own[0] += u64::from(at.bytes);
        own[1] |= u64::from(at.late);
        own[7] += u64::from(at.now_ts.wrapping_sub(at.tsval) < 19 || at.ce || at.tsecr == 0);
        81920 * (1 + u64::from(own[0] > 1_000_000) + own[1] + 100 * own[7])
    }"""
ARRIVALS = """
seed: 1
duration: 20s
warmup: 10s
paths:
  forward: [{{link: {{rate: 1Gbit, queue: {{fifo: {{limit: 1000pkt}}}}}}}},
    {{loss_mask: {{mask: {lost}, repeat: no}}}}, {{delay: {{delay: 20ms}}}}]
  reverse: [{{delay: {{delay: 20ms}}}}]
flows: [{{cc: {{plugin: {plugin}}}}}]
"""


@pytest.mark.parametrize(("lost", "parts"), [("0x0", 2), ("0x8000000000", 3)])
def test_the_receivers_half_in_rust(
    simulate: Simulate, tmp_path: Path, lost: str, parts: int
) -> None:
    """It keeps numbers of its own: 80 KiB more after 1 MB, and after a late segment."""
    text = NEWRENO.read_text()
    (old,) = re.findall("    const SSTHRESH.*", text)
    (tmp_path / "half.rs").write_text(text.replace(old, RECEIVER_IN_RUST))
    plugin = in_rust(tmp_path / "rust", tmp_path / "half.rs")
    run = simulate(ARRIVALS.format(plugin=plugin, lost=lost))
    assert run.groups[0]["goodput_bps"] == pytest.approx(parts * 81920 * 8 / 0.04, rel=0.015)


@pytest.mark.parametrize("language", ["c++", "rust"])
def test_newreno_in_another_language(
    language: str, compiled: Path, simulate: Simulate, tmp_path: Path
) -> None:
    """Each record is what the control within gives: losses, timeouts, marks, pauses."""
    plugin = by_cargo(tmp_path / "rust") if language == "rust" else compiled / "newreno.so"
    for seed in (1, 2):
        within = simulate(HARD.format(seed=seed, cc="newreno"))
        outside = simulate(HARD.format(seed=seed, cc=f"{{plugin: {plugin}}}"))
        assert outside.summary["digest"] == within.summary["digest"]
        assert outside.groups[0]["modes"] == within.groups[0]["modes"]


COUPLED = """
seed: {seed}
duration: {seconds}s
warmup: 20s
paths:
  forward:
    - loss: {{rate: {loss}}}
    - link: {{rate: {rate}, queue: {{fifo: {{limit: {limit}}}}}}}
    - delay: {{delay: 20ms}}
  reverse: [{{delay: {{delay: 20ms}}}}]
flows:
  - {{count: 5, cc: {left}, name: left, jitter: 1s}}
  - {{count: 5, cc: {right}, name: right, jitter: 1s}}
  - {{count: 5, cc: newreno, name: tcp, jitter: 1s}}
telemetry: {{level: 0}}
"""


def over_tcp(simulate: Simulate, lia: Path, names: str, **network: object) -> float:
    """Goodput of five pairs of flows, of connections with these names, over that of five TCP flows
    beside them.
    """
    plugins = (f"{{plugin: {lia}, connection: {name}}}" for name in names)
    run = simulate(COUPLED.format(left=next(plugins), right=next(plugins), **network))
    left, right, tcp = (group["goodput_bps"] for group in run.groups)
    return (left + right) / tcp


def test_lia_subflows_are_one_tcp_flow(compiled: Path, simulate: Simulate) -> None:
    """RFC 6356, goal 2: the subflows of a connection take no more than one flow would.

    With losses at random each of n subflows of equal RTT grows by 1/n^2 segments per round trip,
    so that its window is sqrt(2/p)/n and their sum that of one flow (section 4). The windows are
    not equal at any time, and the increase follows the largest: somewhat more than that.
    """
    lia = compiled / "lia.so"
    lossy = {"loss": "0.03%", "rate": "10Gbit", "limit": "10000pkt", "seconds": 100}
    assert 0.95 < over_tcp(simulate, lia, "aa", seed=1, **lossy) < 1.12
    shared = {"loss": "0%", "rate": "100Mbit", "limit": "1BDP", "seconds": 120}
    ratios = [over_tcp(simulate, lia, "aa", seed=seed, **shared) for seed in (1, 2, 3)]
    assert 0.9 < sum(ratios) / len(ratios) < 1.25
    # Two connections of one flow each are two TCP flows.
    assert over_tcp(simulate, lia, "ab", seed=1, **lossy) == pytest.approx(2, rel=0.1)


MEDIA = """
seed: 1
duration: {seconds}s
warmup: 60s
paths:
  forward:
    - loss: {{rate: {loss}}}
    - link: {{rate: {rate}Mbit, queue: {{fifo: {{limit: 300ms}}}}}}
    - delay: {{delay: 20ms}}
  reverse: [{{delay: {{delay: 20ms}}}}]
flows:
{flows}telemetry: {{level: 3}}
"""


def test_nada_is_where_its_equations_say(compiled: Path, simulate: Simulate) -> None:
    """RFC 8698, section 6.1: the signal x is PRIO XREF RMAX / rate in equilibrium.

    Alone at a link x is the queueing delay. Two flows see one queue: their rates are as their
    PRIO, and the queue is as long as for one flow of their sum. Without a queue x is that of
    losses, DLOSS (p / PLRREF)^2.
    """

    def flow(rmax: int, prio: int, start: str = "0s") -> str:
        control = f"{{plugin: {compiled / 'nada.so'}, rmax: {rmax}Mbit, prio: {prio}}}"
        return f"  - {{cc: {control}, start: {start}}}\n"

    alone = flow(15, 1)
    run = simulate(MEDIA.format(seconds=120, loss="0%", rate=10, flows=alone))
    assert run.link["utilisation"] > 0.999
    rate = run.groups[0]["goodput_bps"]
    assert run.link["queue_mean_ns"] == pytest.approx(10e6 * 15e6 / rate, rel=0.02)

    notes = folders.load(run.folder).stream("events")
    mine = notes.records[notes.records["event"] == notes.number("event", "note")]
    assert run.groups[0]["notes"] == ["received_bps", "offset_ms", "ramp_up"]
    received = mine[mine["detail"] == 0]
    # A note for each timer of 100 ms, from the first one on.
    assert set((received["ts_ns"][1:] - received["ts_ns"][:-1]).tolist()) == {100_000_000}
    assert len(received) >= 1198
    assert received["value"][-100:].mean() == pytest.approx(rate, rel=0.02)

    both = alone + flow(15, 2, "10ms")
    run = simulate(MEDIA.format(seconds=120, loss="0%", rate=10, flows=both))
    one, two = (group["goodput_bps"] for group in run.groups)
    assert two / one == pytest.approx(2, rel=0.02)
    assert run.link["queue_mean_ns"] == pytest.approx(10e6 * 15e6 * 3 / (one + two), rel=0.02)

    lossy = MEDIA.format(seconds=200, loss="2%", rate=100, flows=flow(150, 1))
    run = simulate(lossy)
    sent = run.groups[0]["goodput_bps"] / 0.98
    assert run.link["drops"] == 0
    assert sent == pytest.approx(10 * 150e6 / (10 * math.pow(2, 2)), rel=0.06)


LEDBAT = """
seed: 1
duration: 300s
warmup: 240s
paths:
  forward:
    - link: {{rate: 20Mbit, queue: {{fifo: {{limit: 400ms}}}}}}
    - delay: {{delay: 10ms}}
  reverse: [{{delay: {{delay: 10ms}}}}]
flows:
  - {{cc: {{ledbat: {{delay: {delay}}}}}}}
schedule:
  - {{at: 40s, reverse.delay.delay: 70ms}}
telemetry: {{level: 0}}
"""


@pytest.mark.parametrize(("delay", "queue_ns"), [("one_way", 100e6), ("rtt", 40e6)])
def test_ledbat_measures_one_way(simulate: Simulate, delay: str, queue_ns: float) -> None:
    """RFC 6817, section 2: 60 ms more on the way back are no queue, but to a round trip they are.

    The target is 100 ms of queueing.
    """
    run = simulate(LEDBAT.format(delay=delay))
    assert run.link["queue_mean_ns"] == pytest.approx(queue_ns, rel=0.02)


RECEIVER = """
seed: 1
duration: 120s
warmup: 60s
paths:
  forward:
    - link: {{rate: 20Mbit, queue: {{fifo: {{limit: 400ms}}}}}}
    - delay: {{delay: 20ms}}
  reverse: [{{delay: {{delay: 20ms}}}}]
flows:
  - {{cc: {{plugin: {plugin}, target: {target}ms}}, rwnd: 4MB}}
{more}telemetry: {{level: 0}}
"""


@pytest.mark.parametrize(("target", "back"), [(60, 20), (100, 20), (60, 80)])
def test_a_receiver_keeps_its_target(
    compiled: Path, simulate: Simulate, target: int, back: int
) -> None:
    """RFC 9840: the receiver's window, and not NewReno at the sender, sets the queue.

    Its delay is one way: 60 ms more on the way back change nothing.
    """
    more = f"schedule: [{{at: 10s, reverse.delay.delay: {back}ms}}]\n"
    text = RECEIVER.format(plugin=compiled / "rledbat.so", target=target, more=more)
    run = simulate(text)
    assert run.link["utilisation"] > 0.999
    assert run.link["queue_mean_ns"] == pytest.approx(target * 1e6, rel=0.06)
    assert run.groups[0]["retransmits"] == 0
    assert simulate(text).summary["digest"] == run.summary["digest"]


def test_a_receiver_yields(compiled: Path, simulate: Simulate) -> None:
    """Beside a flow that fills the queue it takes next to nothing; afterwards it is back."""
    other = "  - {{cc: newreno, start: 5s, stop: {stop}s}}\n"
    text = RECEIVER.replace("{more}", other).replace("duration: 120s", "duration: 90s")
    for stop, least, most in ((89, 0, 0.05), (62, 0.5, 1)):
        run = simulate(text.format(plugin=compiled / "rledbat.so", target=60, stop=stop))
        assert least < run.groups[0]["goodput_bps"] / (20e6 * 1448 / 1538) < most


RULES = """
seed: 1
duration: 60s
warmup: 30s
paths:
  forward:
    - link: {{rate: 20Mbit, queue: {{fifo: {{limit: 1000pkt}}}}}}
    - delay: {{delay: 25ms}}
  reverse: [{{delay: {{delay: 25ms}}}}]
flows:
  - {{cc: {{plugin: {plugin}, table: {table}}}}}
telemetry: {{level: 1}}
"""
ALL = "0 16384  0 16384  "


def test_a_remy_table(compiled: Path, simulate: Simulate, weir_sim: Path, tmp_path: Path) -> None:
    """Rules of which one can say what they lead to.

    A window of m w + b after each ACK is b / (1 - m) in the end; an intersend of r is a packet
    each r; a window that grows below a ratio of RTTs and shrinks above it stays at that ratio.
    """
    table = tmp_path / "rules"

    def run(*rules: str) -> tuple[float, float]:
        """Returns packets per second, and the mean queueing delay in ms."""
        table.write_text("# from, to of each\n\n" + "\n".join(rules) + "\n")
        done = simulate(RULES.format(plugin=compiled / "remy.so", table=table))
        return done.groups[0]["goodput_bps"] / 1448 / 8, done.link["queue_mean_ns"] / 1e6

    # The window is 20.5, of which whole packets leave; the RTT 50 ms and a packet's 0.6 ms.
    assert run(f"{ALL} 0 16384  0.9 2.05 0.01")[0] == pytest.approx(20 / 0.0506, rel=0.02)
    assert run(f"{ALL} 0 16384  1 1 1.25")[0] == pytest.approx(800, rel=0.001)
    # By turns: a round trip passes before the ratio follows the window.
    above, below = f"{ALL} 1.5 16384  0.9995 0 0.1  # falls", f"{ALL} 0 1.5  1 0.02 0.1"
    packets, queue_ms = run(above, below)
    assert packets == pytest.approx(20e6 / 8 / 1538, rel=0.01)
    assert queue_ms == pytest.approx(25, rel=0.15)


def test_a_parameter_that_is_a_file(
    compiled: Path, simulate: Simulate, weir_sim: Path, tmp_path: Path
) -> None:
    """The run's folder has a copy; without it, or with a rule that is none, there is a sentence."""
    table = tmp_path / "rules"
    table.write_text(f"{ALL} 0 16384  0.9 2 0.01\n")
    text = RULES.format(plugin=compiled / "remy.so", table=table)
    first = simulate(text)
    table.unlink()
    assert "table: file-rules" in (first.folder / "config.yaml").read_text()
    argv = [weir_sim, first.folder / "config.yaml", "--out", tmp_path / "again", "--json"]
    repeated = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert json.loads(repeated.stdout)["digest"] == first.summary["digest"]
    for content, sentence in (
        (None, "table: .*rules: cannot be read: No such file"),
        ("1 2 3\n", "table: line 1 is no rule of nine numbers"),
        (f"{ALL} 0 16384  0.9 2 0.01 apple", "table: line 1 is no rule"),
        ("# none\n", "table: it has no rule"),
    ):
        if content is not None:
            table.write_text(content)
        done = subprocess.run([weir_sim, "-"], input=text, capture_output=True, text=True)
        assert done.returncode in (1, 2)
        assert re.search(sentence, done.stderr), done.stderr
        assert done.stderr.count("\n") == 1

# SPDX-License-Identifier: BSD-3-Clause
"""Changes while a run goes on, and what they and extreme configs ask of virtual time."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Program, Simulate

PATHS = """
duration: {duration}
warmup: {warmup}
paths:
  forward:
    - link: {{rate: {rate}, queue: {{fifo: {{limit: 1000pkt}}}}}}
    - delay: {{delay: {delay}}}
  reverse: [{{delay: {{delay: {delay}, on_decrease: {how}}}}}]
flows:
  - {{count: {flows}, cc: {cc}}}
schedule: [{change}]
telemetry: {{level: 3}}
"""


def config(**values: object) -> str:
    """The text above, with these values in place of the usual ones."""
    usual = {
        "duration": "2s",
        "warmup": "0s",
        "rate": "10Mbit",
        "delay": "10ms",
        "how": "reorder",
    }
    return PATHS.format(**{**usual, "flows": 1, "cc": "cubic", "change": "", **values})


def test_a_slow_frame_does_not_hold_the_link(simulate: Simulate) -> None:
    """1 kbit/s for 200 ms, then 100 Mbit/s: nothing was delivered for 12 s."""
    change = "{at: 1s, forward.link.rate: 1kbit}, {at: 1200ms, forward.link.rate: 100Mbit}"
    run = simulate(config(change=change, warmup="1500ms", duration="3s"))

    assert run.groups[0]["goodput_bps"] > 50e6


@pytest.mark.parametrize(("how", "together"), [("reorder", 1), ("fifo", 30), ("step", 30)])
def test_a_lowered_delay_of_acks(simulate: Simulate, how: str, together: int) -> None:
    """50 -> 5 ms on the way back: only in order do the ACKs of 45 ms come in one nanosecond."""
    change = "{at: 1s, reverse.delay.delay: 5ms}"
    cc = "{fixed: {cwnd: 100}}, ack_every: 1"
    run = simulate(config(change=change, delay="50ms", how=how, cc=cc))
    acks = run.records("cc")["ts_ns"]
    most = int(np.unique(acks, return_counts=True)[1].max())

    assert most == together if together == 1 else most >= together


def test_memory_for_what_the_schedule_leads_to(simulate: Simulate) -> None:
    """A hundredfold rate: flows were held back by a scoreboard for the first one."""
    run = simulate(
        config(
            change="{at: 500ms, forward.link.rate: 1Gbit}",
            duration="3s",
            warmup="2s",
            flows=4,
            cc="bbr",
        ),
        "telemetry.level=1",
    )

    assert run.groups[0]["goodput_bps"] > 0.9e9


def test_a_microsecond_of_delay_costs_nothing_while_nothing_happens(
    simulate: Simulate,
) -> None:
    """1000 virtual seconds of 2 us took minutes: windows were as short as the delay."""
    run = simulate(
        config(rate="100kbit", delay="1us", duration="1000s"),
        "telemetry.level=0",
        "warmup=1s",
    )

    assert run.link["utilisation"] > 0.99


def test_edges_that_are_slower_than_what_comes(simulate: Simulate) -> None:
    """They dropped nothing, held what came for ever, and the run aborted."""
    run = simulate(
        config(duration="60s", flows=4, cc="{fixed: {cwnd: 5000}}").replace(
            "    - link", "    - edges: {count: 1, rate: 1Mbit}\n    - link"
        ),
        "telemetry.level=1",
    )
    drops = run.summary["ledger"]["paths"]["forward"]["drops"]

    assert drops["queue_full"]["pkts"] > 10000


# Of each discipline, parameters that may change while running, and other values than the usual.
QUEUES = {
    "codel": {"target": "30ms", "interval": "20ms", "ecn": "yes", "ce_threshold": "1ms"},
    "fq_codel": {"target": "30ms", "interval": "20ms", "ecn": "no", "ce_threshold": "1ms"},
    "pie": {"target": "60ms", "alpha": "2", "beta": "0.1", "ecn": "yes", "derandomise": "no"},
    "fq_pie": {"target": "60ms", "alpha": "2", "beta": "0.1", "ecn": "yes", "derandomise": "no"},
    "red": {"max_p": "50%", "ecn": "yes", "adaptive": "yes"},
    "dualpi2": {"target": "60ms", "coupling": "4", "range": "0ms", "min_pkts": "9"},
}


@pytest.mark.parametrize(("queue", "key"), [(q, k) for q, keys in QUEUES.items() for k in keys])
def test_a_change_of_a_disciplines_parameter(simulate: Simulate, queue: str, key: str) -> None:
    """A change at the first instant is as if it had been written into the queue; and changes."""
    limit = "{fifo: {limit: 1000pkt}}"
    gains = ", update: 16ms, alpha: 0.16, beta: 3.2" if queue == "dualpi2" else ""
    params = f"{{limit: 1000pkt{gains}}}"  # gains that are not chosen once from the target
    plain = config(cc="cubic, ecn: ect0", flows=3).replace(limit, f"{{{queue}: {params}}}")
    plain = plain.replace("schedule:", "  - {cc: prague}\nschedule:").replace(
        "level: 3", "level: 0"
    )
    value = QUEUES[queue][key]
    change = f"schedule=[{{at: 0s, forward.link.queue.{key}: {value}}}]"
    before = simulate(plain)
    written = simulate(plain, f"paths.forward.link.queue.{queue}.{key}={value}")
    changed = simulate(plain, change)

    assert changed.groups == written.groups != before.groups


def test_parameters_that_a_discipline_reads_once(sim: Program) -> None:
    """They are refused, and one that it has not."""
    for key, says in (("limit: 3pkt", "cannot be changed"), ("rate: 3", "has no parameter 'rate'")):
        change = f"{{at: 1s, forward.link.queue.{key}}}"
        said = sim.refuse(config(cc="cubic", change=change), says)
        assert f"schedule: forward.link.queue.{key.split(':')[0]}: " in said


RANDOM = """
duration: 2s
paths:
  forward:
    - {stage}
    - link: {{rate: 10Mbit, queue: {queue}}}
    - delay: {{delay: 10ms}}
  reverse: [{{delay: {{delay: 10ms}}}}]
flows: [{{count: 3, cc: cubic}}{flows}]
schedule: [{{at: 1s, forward.delay.delay: 12ms}}]
"""
STREAMS = {
    "loss": {"stage": "loss: {rate: 1%}"},
    "gilbert": {"stage": "loss_gilbert: {p: 1%, r: 80%}"},
    "jitter": {"stage": "jitter: {mean: 1ms, spread: 1ms}"},
    "duplicate": {"stage": "duplicate: {rate: 2%}"},
    "corrupt": {"stage": "corrupt: {rate: 2%}"},
    "wifi": {"stage": "wifi_jitter: {jitter: 1ms}"},
    "red": {"queue": "{red: {}}"},
    "pie": {"queue": "{pie: {derandomise: no, target: 2ms}}"},
    "dualpi2": {"queue": "{dualpi2: {derandomise: no, target: 2ms}}"},
    "poisson": {
        "flows": ", {count: 60, cc: cubic, source: {poisson: {load: 1Mbit, sizes: {mean: 3kB}}}}"
    },
    "udp": {"flows": ", {count: 1, source: {udp: {rate: 1Mbit, gaps: exponential}}}"},
}


@pytest.mark.parametrize("name", STREAMS)
def test_another_seed_from_a_time_on(simulate: Simulate, name: str) -> None:
    """The run is the same up to then, another one afterwards, and the same with the same seed."""
    usual = {"stage": "delay: {delay: 1ms}", "queue": "{fifo: {limit: 50pkt}}", "flows": ""}
    text = RANDOM.format(**{**usual, **STREAMS[name]})
    runs = [
        simulate(text.replace("forward.delay.delay: 12ms", f"seed: {seed}")) for seed in (7, 7, 8)
    ]
    digests = [run.summary["digest"] for run in runs]
    assert digests[0] == digests[1] != digests[2]
    first, _, other = (run.records("interval") for run in runs)
    before = first["ts_ns"] <= 1e9
    assert len(first[before]) > 20
    assert (first[before] == other[other["ts_ns"] <= 1e9]).all()
    assert first[~before].tolist() != other[other["ts_ns"] > 1e9].tolist()


def test_another_start_of_a_group(simulate: Simulate) -> None:
    """It is as if it had been written there, for the group and for the others."""
    two = config(cc="cubic", flows=2, change="{at: 500ms, flows.1.start: 900ms}")
    two = two.replace("schedule:", "  - {count: 2, cc: cubic, jitter: 50ms, start: 5s}\nschedule:")
    moved = simulate(two)
    written = simulate(two, "flows.1.start=900ms", "schedule=[]")

    assert moved.groups == written.groups
    assert moved.groups[1]["goodput_bps"] > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("seed: -1", "seed: "),
        ("flows.1.start: 200ms", "must not be earlier than the change"),
        ("flows.0.start: 600ms", "must not be earlier than the change"),
        ("flows.2.start: 600ms", "only flows of TCP that send once (bulk, size) have it"),
        ("flows.3.start: 600ms", "only the start of a group without a stop"),
        ("flows.4.start: 600ms", "does not start with the name of a path"),
        ("flows.1.count: 3", "does not start with the name of a path"),
    ],
)
def test_what_of_the_flows_cannot_change(sim: Program, change: str, says: str) -> None:
    """One sentence says what may."""
    groups = (
        "  - {cc: cubic, start: 1s}\n  - {start: 1s, source: {udp: {rate: 1Mbit}}}\n"
        "  - {cc: cubic, start: 1s, stop: 1500ms}\nschedule:"
    )
    text = config(cc="cubic", change=f"{{at: 500ms, {change}}}").replace("schedule:", groups)
    assert "schedule: " in sim.refuse(text, says)

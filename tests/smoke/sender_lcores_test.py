# SPDX-License-Identifier: BSD-3-Clause
"""weir-sender on two lcores: flows split, frames handed over, one set of figures."""

import numpy as np
import pytest
from lab import CPUS, LCORE, QUIET, outcome, quiet, sh, wait_for
from pcapng import is_transport, packets
from weir.analysis.ring import open_ring

FLOWS = 200
BYTES = 300_000
CONFIG = """
seed: 1
duration: %s
warmup: 1s
flows:
  - {count: %d, cc: {copa: {delta: 0.5}}, ack_every: 1, jitter: 500ms, source: %s}
telemetry: {level: 1, interval: 100ms}
live:
  sender:
    lcores: %s
    answer: 60s # of a receiver that shares both CPUs with it
    rate: 1Gbit
    pipe: 100ms
    prefix: %s
    ports: [%s]
"""
BOTH = sorted({CPUS[0], LCORE})

pytestmark = pytest.mark.skipif(len(BOTH) < 2, reason="needs two CPUs")


def start(lab, role, *options, lcores=BOTH, source="bulk", duration="60s", flows=FLOWS, pcap=None):
    """One side over memif, which has one queue each way."""
    name = f"{lab.prefix}{role}"
    side = "server" if role == "receiver" else "client"
    dev = f"net_memif0,role={side},socket={lab.prefix},rsize=10"
    port = f'{{name: {role}, role: {role}, dev: "{dev}"}}'
    config = CONFIG % (duration, flows, source, lcores, name, port)
    overrides = [arg for option in options for arg in ("-o", option)]
    if pcap is not None:
        overrides += ["--pcap", pcap]
    return lab.start("sender/weir-sender", config, *overrides, out=lab.tmp / role)


def both(lab, *options, until=None, pcap=None, **kwargs):
    """Sender and receiver, each on both lcores; their summaries.

    Until the sender's /weir/info is as wanted, or its duration is over.
    """
    sink = start(lab, "receiver", *options, **{**kwargs, "duration": "300s"})
    assert sink.ready(), sink.err  # before the sender asks for it
    sender = start(lab, "sender", *options, pcap=pcap, **kwargs)
    assert sender.ready(), sender.err
    if until is not None:
        prefix = f"{lab.prefix}sender"
        wait_for(lambda: until(lab.telemetry("/weir/info", prefix) or {}), "the flows", 120)
    status = sender.wait() if until is None else sender.stop()
    assert status == 0, sender.err
    assert sink.stop() == 0, sink.err
    # The link came up once, whichever lcore was the first to see it.
    downs = [fault for fault in sink.summary()["faults"] if fault["cause"] == "port_down"]
    assert all(fault["count"] == 1 for fault in downs), downs
    return sender.summary(), sink.summary()


def records(lab, stream):
    return open_ring(lab.tmp / "sender" / f"{stream}.ring").records


def test_every_byte_arrives_once_whichever_lcore_has_the_flow(lab):
    source = f"{{size: {{bytes: {BYTES}B}}}}"
    room = "live.sender.handover=65536"  # for all that a lcore may miss while it is interrupted
    timeout = "live.sender.tx_timeout=60s"  # with a peer that has no CPU
    sent, sink = both(
        lab,
        room,
        timeout,
        source=source,
        duration="300s",
        until=lambda info: info.get("flows_done") == FLOWS,
        pcap=lab.tmp / "sender.pcapng",
    )
    assert outcome(sent) == "interrupted"
    assert sent["ledger"]["balanced"]
    assert sink["ledger"]["balanced"]
    assert sent["flows"] == {"waiting": 0, "open": 0, "done": FLOWS, "failed": 0}
    assert sink["receivers"]["done"] == FLOWS
    assert sink["receivers"]["bytes"] == FLOWS * BYTES
    # One of two lcores receives and sends for both.
    for side in (sent, sink):
        (port,) = side["sender_ports"]
        assert port["handed_over"] > 0
        assert port["sent_through_another"] > 0
        assert port["handover_dropped"] == 0
        assert port["rx_malformed"] + port["rx_reset"] + port["tx_dropped"] == 0
        assert [lcore["flows"] for lcore in sent["sender_lcores"]] == [FLOWS // 2] * 2
    # Both lcores' frames are in the capture, each once, in order of time.
    captured = packets((lab.tmp / "sender.pcapng").read_bytes(), 0)
    frames = [frame for _, frame, *_ in captured if is_transport(frame)]
    received = sum(frame[34:36] == (5001).to_bytes(2) for frame in frames)
    (port,) = sent["sender_ports"]
    assert sent["capture"]["lost"] == 0
    assert received == port["rx_tcp"]
    assert FLOWS * BYTES / 1460 <= len(frames) - received <= port["tx_wanted"]
    assert [ns for ns, *_ in captured] == sorted(ns for ns, *_ in captured)
    flows = records(lab, "flows")
    closed = flows[flows["event"] == 2]
    assert sorted(closed["flow_id"]) == list(range(FLOWS))
    assert set(closed["acked_bytes"]) == {BYTES}
    interval = records(lab, "interval")
    assert set(interval["flow_id"]) == set(range(FLOWS))
    assert interval["acked_bytes"].sum() == FLOWS * BYTES
    # An interval ends at one moment for all flows, whichever lcore they are on: no more moments
    # than intervals, of which the warm-up's end and the run's cut one each.
    ends = np.unique(interval["ts_ns"])
    assert len(ends) <= np.ptp(ends) / 100e6 + 3
    sums = sent["groups"][0]
    assert (sums["flows"], len(sent["groups"])) == (FLOWS, 1)


def test_a_capture_is_sampled_and_bounded(lab):
    """The flows whose ACKs are recorded, on both lcores; the newest two files."""
    pcap, sample = lab.tmp / "sender.pcapng", ("telemetry.level=2", "telemetry.sample=0.2")
    sent, _ = both(
        lab,
        *sample,
        "telemetry.rotate=60kB",
        source="{size: {bytes: 20kB}}",
        duration="300s",
        until=lambda info: info.get("flows_done") == FLOWS,
        pcap=pcap,
    )
    files = [pcap.read_bytes(), pcap.with_suffix(".1.pcapng").read_bytes()]
    kept = [packet for data in files for packet in packets(data, 0)]
    capture = sent["capture"]
    assert max(map(len, files)) <= 60_000
    assert len(kept) == capture["packets"] - capture["rotated_away"] > 0
    assert capture["lost"] == 0
    recorded = {f"flow {number}" for number in set(records(lab, "cc")["flow_id"].tolist())}
    assert {text for _, _, text, _ in kept} <= recorded
    assert len(recorded) < FLOWS


def planned_starts(lab, weir_sim):
    """When the flows of CONFIG start where nothing is ever late."""
    flows = CONFIG.partition("flows:\n")[2].partition("telemetry:")[0] % (FLOWS, "bulk")
    config = lab.config(f"""
seed: 1
duration: 1s
paths: {{forward: [{{link: {{rate: 1Gbit}}}}], reverse: [{{delay: {{delay: 1ms}}}}]}}
flows:
{flows}
telemetry: {{level: 1, interval: 100ms}}
""")
    sh(weir_sim, config, "--out", lab.tmp / "planned", timeout=120)
    flows = open_ring(lab.tmp / "planned" / "flows.ring").records
    still = np.sort(flows[flows["event"] == 5], order="flow_id")
    return still["start_ns"].astype(float)


def test_flows_share_alike_and_start_as_on_one_lcore(lab, weir_sim):
    fixed = "flows.0.cc={fixed: {cwnd: 50, rate: 1Mbit}}"
    starts, jfi = [], []
    for lcores in ([LCORE], BOTH):
        sent, sink = both(
            lab,
            fixed,
            lcores=lcores,
            duration=quiet("4s", "300s"),
            until=None if QUIET else lambda info: info.get("flows_open") == FLOWS,
        )
        assert outcome(sent) == quiet("ok", "interrupted")
        assert sent["ledger"]["balanced"]
        assert sink["ledger"]["balanced"]
        assert sent["flows"]["open"] == FLOWS
        assert sent["emulation"]["pacing_early"] == 0
        jfi.append(sent["groups"][0]["jfi"])
        flows = records(lab, "flows")
        still = np.sort(flows[flows["event"] == 5], order="flow_id")
        starts.append(still["start_ns"] - 1e9 * sent["start_s"])
        lab.tmp.joinpath("sender").rename(lab.tmp / f"sender{len(lcores)}")
        lab.tmp.joinpath("receiver").rename(lab.tmp / f"receiver{len(lcores)}")
    # A SYN leaves at its time, or as soon as its lcore has the CPU: not before the start that
    # virtual time has of the same random numbers.
    planned = planned_starts(lab, weir_sim)
    for started in starts:
        assert (started - planned).min() >= -1000  # ns, of start_s
    if QUIET:
        assert min(jfi) >= 0.98
        for started in starts:  # on two CPUs the receiver has one for milliseconds at a time
            assert np.median(started - planned) <= 2e6


def test_a_full_ring_between_lcores_is_counted(lab):
    small = ("live.sender.handover=1", "live.sender.burst=64")
    sent, sink = both(lab, *small, "warmup=0s", duration="4s")
    assert sent["ledger"]["balanced"]
    assert sink["ledger"]["balanced"]
    (port,) = sink["sender_ports"]
    assert port["handover_dropped"] > 0
    assert any("frames were not received" in found["sentence"] for found in sink["verdicts"])
    sentence = f"{port['handover_dropped']} received frames found no room on their way"
    assert any(fault["sentence"].startswith(sentence) for fault in sink["faults"])
    assert sent["groups"][0]["retransmits"] > 0
    assert sink["receivers"]["bytes"] > 0


def test_both_lcores_answer_while_they_run(lab):
    sink, sender = start(lab, "receiver"), start(lab, "sender")
    assert sender.ready()
    prefix = f"{lab.prefix}sender"

    def ask(command):
        return lab.telemetry(command, prefix)

    def open_flows():
        return (ask("/weir/info") or {}).get("flows_open") == FLOWS

    wait_for(open_flows, "all flows open")
    assert ask("/weir/info")["lcores"] == 2
    lcores = ask("/weir/lcores")
    assert [lcores[key]["cpu"] for key in ("0", "1")] == BOTH
    assert sum(row["flows_open"] for row in lcores.values()) == FLOWS
    group = ask("/weir/groups,0")["0"]
    assert group["open"] == FLOWS
    assert "ok" in ask("/weir/stop")
    assert sender.wait() == 0, sender.err
    assert sink.stop() == 0, sink.err
    assert sender.summary()["ledger"]["balanced"]


def test_more_lcores_than_flows_are_refused(lab):
    child = start(lab, "sender", flows=1)
    assert child.wait() == 2
    assert child.sentences()[-1].endswith("lcores: 2 CPUs for 1 flows; each needs one at least")


def test_queues_are_one_or_one_per_lcore(lab):
    child = start(lab, "sender", "live.sender.ports.0.queues=3")
    assert child.wait() == 2
    assert child.sentences()[-1].endswith("queues: 1, or one for each of lcores: 2")

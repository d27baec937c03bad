# SPDX-License-Identifier: BSD-3-Clause
"""sender - memif - switch - memif - receiver: configs/loopback-10g.yaml, and a peer that dies."""

import signal
import subprocess
import sys
import time

import pytest
from lab import NUMBERS, QUIET, outcome, quiet, wait_for
from weir.analysis.ring import open_ring

CONFIG = "configs/loopback-10g.yaml"
ENQUEUE = 1


class Loop:
    """Both programs of the config, with names of their own."""

    def __init__(self, lab, root, *options, config=CONFIG):
        self.lab, self.config, self.options = lab, root / config, options
        self.folder = lab.tmp / f"loop{next(NUMBERS)}"

    def names(self, program, role):
        """Overrides that keep two runs on one machine apart."""
        section = str(program).split("-")[-1]
        yield f"live.{section}.prefix={self.lab.prefix}{section}"
        for i in range(2):
            dev = f"net_memif{i},role={role},id={i},socket={self.lab.prefix},rsize=10"
            yield f'live.{section}.ports.{i}.dev="{dev}"'
        if section == "sender":
            yield "live.sender.answer=60s"  # the switch shares a CPU with it

    def start(self, program, role, out=None):
        overrides = [arg for name in self.names(program, role) for arg in ("-o", name)]
        return self.lab.start(
            program, self.config, *overrides, *self.options, out=out or self.folder
        )

    def switch(self, program="switch/weir-switch"):
        """Ready: beside other programs it may take longer to start than the 10 s a sender waits."""
        child = self.start(program, "server")
        assert child.ready(), child.err
        return child

    def sender(self, out=None, program="sender/weir-sender"):
        return self.start(program, "client", out)

    def run(self, switch="switch/weir-switch", sender="sender/weir-sender"):
        """To the end; both summaries."""
        switch, sender = self.switch(switch), self.sender(program=sender)
        assert sender.wait() == 0, sender.err
        # It stays for seconds after its end, which a signal cuts short and changes nothing else.
        wait_for((self.folder / "summary-switch.json").exists, "the switch's end")
        switch.send(signal.SIGINT)
        assert switch.wait() == 0, switch.err
        return switch.summary(), sender.summary()


def check(folder, switch, sender):
    """What holds however busy the machine is."""
    assert outcome(switch) == "ok"
    assert outcome(sender) == "ok"
    assert switch["ledger"]["balanced"]
    assert sender["ledger"]["balanced"]
    received = switch["ledger"]["paths"]["forward"]["in"]["pkts"]
    # The switch may end first: what it has not read is still in the ring between them.
    assert 0 <= sender["sender_ports"][0]["tx_frames"] - received <= 8192
    retransmits = open_ring(folder / "interval.ring").column("retransmits").sum()
    assert sender["receivers"]["duplicate_segs"] <= retransmits


def test_marks_and_probes(lab, root, tmp_path):
    """AccECN counts the switch's marks; small probes see the queue in which they were set."""
    config, text = tmp_path / "marks.yaml", (root / CONFIG).read_text()
    link = "link: {rate: 100Mbit, queue: {step: {limit: 4BDP, threshold: 2ms}}}"
    dctcp = "- {count: 2, cc: dctcp, ecn_feedback: accecn, source: {size: {bytes: 3MB}}}"
    probe = "- {name: probe, cc: fixed, start: 300ms, source: {probe: {rtt_min: 20ms}}}"
    text = text.replace("link: {rate: 10Gbit, queue: {fifo: {limit: 1BDP}}}", link)
    flows = "- {count: 1000, cc: {copa: {delta: 0.5}}, jitter: 1s}"
    assert link in text
    assert flows in text
    config.write_text(
        text.replace(flows, f"{dctcp}\n  {probe}").replace("warmup: 4s", "warmup: 0s")
    )
    loop = Loop(lab, root, "--duration", "300s", config=config)
    both, prefix = (loop.switch(), loop.sender()), f"{lab.prefix}sender"
    assert both[1].ready(), both[1].err
    lab.runs(prefix)
    wait_for(lambda: lab.telemetry("/weir/info", prefix)["flows_done"] == 3, "all flows' ends")
    assert [program.stop() for program in reversed(both)] == [0, 0]
    switch, sender = (program.summary() for program in both)
    marks, (marked, probes) = switch["links"]["forward"]["marks"], sender["groups"]
    assert switch["ledger"]["balanced"]
    assert sender["ledger"]["balanced"]
    assert sender["flows"]["done"] == 3
    assert marks > 0
    # A packet that was lost behind the switch was marked in vain.
    assert marks - marked["retransmits"] <= marked["ce_segs"] <= marks
    assert quiet(20, 10) <= probes["probe"]["answered"] <= 20
    assert probes["probe"]["dq_ns"] > 0
    assert probes["probe"]["rate_bps"] == pytest.approx(
        1448 * 8e9 / (0.5 * probes["probe"]["dq_ns"])
    )


def test_flows_pass_several_paths_of_one_switch(lab, root):
    """configs/parking-lot.yaml: each hop is crossed by the long flow and by one of its own."""
    options = ("--duration", "5s", "-o", "warmup=1s", "-o", "telemetry.level=3")
    record = ("-o", "telemetry.arrivals=yes")
    loop = Loop(lab, root, *options, *record, config="configs/parking-lot.yaml")
    switch, sender = loop.run()
    paths, hops = switch["ledger"]["paths"], ("hop1", "hop2", "hop3")
    long, *cross = sender["groups"]
    into = {hop: paths[hop]["in"]["pkts"] for hop in hops}

    assert outcome(switch) == "ok"
    assert outcome(sender) == "ok"
    assert switch["ledger"]["balanced"]
    assert sender["ledger"]["balanced"]
    assert all(0 < switch["links"][hop]["utilisation"] <= 1 for hop in hops)
    assert all(group["goodput_bps"] > 0 for group in (long, *cross))
    # A hop takes in its cross flow and what the hop before let go of the long one.
    sent = sender["sender_ports"][0]["tx_frames"]
    assert sent < sum(into.values()) < 2 * sent
    packets = open_ring(loop.folder / "packets.ring").records
    for hop in (1, 2):
        before, after = (arrivals_of_flow(packets, path) for path in (hop - 1, hop))
        assert 100 < len(after) <= len(before)
        waited = after["ts_ns"] - before["ts_ns"][: len(after)]
        assert waited.min() >= 5_000_000 + 1538 * 8 * 1e9 / 30e6 - 2e6 / 30
    if QUIET:
        shares = [group["goodput_bps"] / (30e6 * 1448 / 1538) for group in (long, *cross)]
        assert shares == pytest.approx([1 / 4, 3 / 4, 3 / 4, 3 / 4], rel=0.1)
    replayed = subprocess.run(
        [sys.executable, "-m", "weir", "replay", loop.folder], capture_output=True, text=True
    )
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def arrivals_of_flow(packets, path):
    """The long flow's data packets as they enter a hop's queue, in order: none is dropped."""
    mine = (packets["flow_id"] == 0) & (packets["path"] == path) & (packets["event"] == ENQUEUE)
    return packets[mine & (packets["size_bytes"] > 1000)]


def test_1_gbit(lab, root):
    options = ("-o", "paths.forward.link.rate=1Gbit", "-o", "flows.0.count=100")
    times = ("--duration", quiet("5s", "3s"), "-o", "warmup=2s")
    loop = Loop(lab, root, *options, *times)
    both = loop.switch(), loop.sender()
    assert [each.wait() for each in both] == [0, 0]  # by itself
    switch, sender = (each.summary() for each in both)
    check(loop.folder, switch, sender)
    assert 0 < switch["links"]["forward"]["utilisation"] <= 1
    if QUIET:  # 0.998 where both lcores have their CPU to themselves
        assert switch["links"]["forward"]["utilisation"] >= 0.95
        assert sender["jfi"] >= 0.95
        # Both count the same time: what the link carried, the flows were paid for.
        wire = switch["links"]["forward"]["utilisation"] * 1e9
        assert sender["groups"][0]["goodput_bps"] == pytest.approx(wire * 1448 / 1538, rel=0.02)


def test_both_programs_are_on_one_time_base(lab, root):
    """A SYN is sent, seen by the switch as its flow's, and data acknowledged a round trip later.

    The sender begins at a time of UTC that it is given, as those of several hosts do.
    """
    import polars as pl
    from weir.analysis import folder

    options = ("-o", "paths.forward.link.rate=100Mbit", "-o", "flows.0.count=20")
    options += ("-o", "flows.0.source={size: {bytes: 20kB}}", "-o", "flows.0.jitter=0s")
    level = ("-o", "telemetry.level=3")
    loop = Loop(lab, root, *options, *level, "--duration", "300s", "-o", "warmup=0s")
    switch, given = loop.switch(), loop.options
    loop.options = (*given, "-o", f"live.sender.begin={time.time_ns() + 3600 * 10**9}")
    refused = loop.sender(out=lab.tmp / "refused")
    assert refused.wait() == 2
    assert "s ahead by this host's clock: at most a minute" in refused.err[-1]
    begin_ns = (int(time.time()) + 4) * 10**9
    loop.options = (*given, "-o", f"live.sender.begin={begin_ns}")
    sender = loop.sender()
    assert sender.ready(), sender.err

    def done():
        return (lab.telemetry("/weir/info", f"{lab.prefix}sender") or {}).get("flows_done")

    wait_for(lambda: done() == 20, "all flows' ends")
    assert (sender.stop(), switch.stop()) == (0, 0), (sender.err, switch.err)
    run = folder.load(loop.folder)
    packets, cc, flows = (run.frame(stream) for stream in ("packets", "cc", "flows"))
    forward = packets.filter((pl.col("path") == 0) & (pl.col("event") == 1))
    seen = forward.group_by("flow_id").agg(seen_ns=pl.min("ts_ns"))
    acked = cc.group_by("flow_id").agg(acked_ns=pl.min("ts_ns"))
    times = flows.group_by("flow_id").agg(pl.min("start_ns")).join(seen, "flow_id")
    times = times.join(acked, "flow_id")
    assert times.height == 20
    assert (times["start_ns"] <= times["seen_ns"]).all()
    assert (times["seen_ns"] + 20_000_000 <= times["acked_ns"]).all()
    # The programs began one after the other: without folder's help they are apart.
    starts = {ring.header.utc_start_ns for ring in (*run.rings("packets"), *run.rings("cc"))}
    assert len(starts) == 2
    # Its time of UTC is kept to the nanosecond, unless it was over when all was ready.
    (own,) = run.rings("flows")
    started_ns = own.header.utc_start_ns + round(sender.summary()["start_s"] * 1e9)
    late = any("live.sender.begin has passed" in line for line in sender.err)
    assert started_ns > begin_ns if late else started_ns == begin_ns
    assert run.start_utc_ns + times["start_ns"].min() >= started_ns


def test_10_gbit(lab, root):
    times = ("--duration", quiet("4s", "3s"), "-o", "warmup=2s")
    loop = Loop(lab, root, *times)
    switch, sender = loop.run()
    check(loop.folder, switch, sender)
    assert 0 < switch["links"]["forward"]["utilisation"] <= 1
    flows = sender["flows"]
    assert (flows["waiting"] + flows["open"], flows["failed"]) == (1000, 0)
    if QUIET:
        assert switch["links"]["forward"]["utilisation"] >= 0.9
        assert flows["open"] == 1000


def test_a_scoreboard_that_was_full_is_no_run(lab, root):
    """Sized for next to nothing. The run ended well, with figures that were not the network's."""
    options = (
        "-o",
        "paths.forward.link.rate=1Gbit",
        "-o",
        "paths.forward.delay.delay=200ms",
    )
    flows = ("-o", "flows.0={count: 20, cc: {cubic: {slow_start: classic}}}")
    sizes = ("-o", "live.sender.rate=1Mbit", "-o", "live.sender.pipe=1ms")
    loop = Loop(lab, root, *options, *flows, *sizes, "--duration", "6s", "-o", "warmup=0s")
    switch, sender = loop.switch(), loop.sender()
    assert sender.wait() == 1, sender.summary()
    sentence = (
        "the figures are not the network's: flows were held back because the scoreboard's memory "
        "was full; live.sender.rate and live.sender.pipe say how much is needed"
    )
    assert sender.err[-1] == f"weir-sender: {sentence}"
    assert sender.summary()["verdict"] == sentence
    switch.stop()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_survives_a_peer_that_leaves(lab, root, number):
    options = ("-o", "paths.forward.link.rate=1Gbit", "-o", "flows.0.count=100")
    loop = Loop(lab, root, *options, "-o", "live.switch.start=now", "--duration", "300s")
    switch = loop.switch()
    prefix = f"{lab.prefix}switch"

    def ports():
        return lab.telemetry("/weir/ports", prefix)

    for visit in range(2):
        sender = loop.sender(out=lab.tmp / f"visit{visit}{number}")
        assert sender.ready(), sender.err
        before = ports()["right"]["tx_pkts"]
        wait_for(
            lambda before=before: ports()["right"]["tx_pkts"] > before + 20000,
            "traffic",
        )
        sender.send(number)
        sender.wait()
        wait_for(lambda: ports()["left"]["up"] == 0, "port down")
    assert switch.stop() == 0, switch.err
    assert switch.summary()["ledger"]["balanced"]


def test_groups_have_their_own_base_rtt(lab, root):
    groups = "[{name: near, count: 10, cc: copa}, {name: far, count: 10, cc: copa, base_rtt: 60ms}]"
    options = ("-o", f"flows={groups}", "-o", "paths.forward.link.rate=100Mbit")
    times = ("--duration", quiet("5s", "3s"), "-o", "warmup=1s")
    loop = Loop(lab, root, *options, *times)
    switch, sender = loop.run()
    check(loop.folder, switch, sender)
    near, far = (group["rtt_mean_ns"] for group in sender["groups"])
    assert near >= 20e6
    assert far >= 60e6
    if QUIET:  # the queue is the same for both
        assert far - near == pytest.approx(40e6, rel=0.2)

# SPDX-License-Identifier: BSD-3-Clause
"""What the live switch decided, virtual time decides again: `weir replay`, for every discipline."""

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lab import ADDRESS, Lab, replay, wait_for

ROOT = Path(__file__).resolve().parents[2]
SIM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/sim/weir-sim"
LISTED = json.loads(
    subprocess.run([SIM, "--list", "--json"], capture_output=True, text=True, check=True).stdout
)["aqm"]
# Parameters that are worth a run of their own; another discipline has one with its defaults.
VARIANTS = {
    "fifo": ["{limit: 20pkt}", "{limit: 20pkt, drop: head}"],
    "codel": [
        "{limit: 200pkt, law: exact}",
        "{limit: 200pkt, law: linux}",
        "{limit: 200pkt, ecn: yes}",
    ],
    "cobalt": [
        "{limit: 20pkt, ecn: no, target: 1ms, interval: 20ms}",
        "{limit: 200pkt, ecn: yes, target: 1ms, interval: 20ms}",
    ],
    "pie": ["{limit: 200pkt, target: 2ms, ecn: yes, max_burst: 0}"],
    "docsis_pie": ["{limit: 20pkt, target: 2ms, max_burst: 32ms}"],
    "red": ["{limit: 200pkt, ecn: yes, adaptive: yes}"],
    "step": ["{limit: 200pkt, threshold: 10pkt}"],
    "dualpi2": [
        "{limit: 200pkt, target: 2ms}",
        "{limit: 200pkt, target: 2ms, derandomise: no, classify: any_ect}",
    ],
    "drr": ["{limit: 20pkt}"],
    "fq_codel": ["{limit: 200pkt, ecn: no, buckets: 2}", "{limit: 200pkt, ecn: yes}"],
    "fq_pie": ["{limit: 200pkt, target: 2ms, ecn: yes, max_burst: 0}"],
    "cake": [
        "{limit: 20pkt, ecn: no, isolation: flows}",
        "{limit: 200pkt, ecn: yes, target: 1ms, interval: 20ms}",
    ],
}
QUEUES = [f"{name}: {parameters}" for name in LISTED for parameters in VARIANTS.get(name, ["{}"])]
PATHS = """
  forward:
    - loss: {{rate: 0.5%}}
    - link: {{rate: 20Mbit, queue: {{{queue}}}}}
    - delay: {{delay: 5ms, late: 1%, late_by: 2ms}}
  reverse:
    - loss: {{rate: 0.2%}}
    - link: {{rate: 10Mbit, queue: {{fifo: {{limit: 50pkt}}}}}}
    - delay: {{delay: 5ms}}
"""
SCHEDULE = "schedule: [{at: 600ms, forward.link.rate: 12Mbit, forward.delay.delay: 3ms}]"
RECORD = ("-o", "telemetry.level=3", "-o", "telemetry.arrivals=yes")
ENQUEUE, DROP = 1, 3
FLOOD = f"""
import socket
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(20000):
    flood.sendto(bytes(18), ("{ADDRESS["b"]}", 9))
"""


@pytest.fixture(scope="module")
def lab(weir_switch, tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("replay"), build) as lab:
        lab.enable_ecn()
        yield lab


def marks(queue):
    """Whether a discipline marks ECN capable packets."""
    return "ecn: yes" in queue or queue.startswith(("step", "dualpi2"))


def record(lab, queue, more=""):
    """Kernel TCP with changes on the way, until every decision was made; the run folder."""
    switch = lab.switch(PATHS.format(queue=queue), *RECORD, top=SCHEDULE + more)
    lab.iperf("cubic", 100, omit=0)
    lab.changed("forward.delay.delay=3ms")  # the last of both
    # With so few losses the queue fills.
    assert "error" not in lab.telemetry("/weir/set,forward.loss.rate=0.1%")
    assert "error" not in lab.telemetry("/weir/set,forward.link.rate=15Mbit")
    decided = "marks" if marks(queue) else "drops"
    wait_for(lambda: lab.telemetry("/weir/links")["forward/link"][decided] > 0, decided)
    lab.end_traffic()
    assert switch.stop() == 0
    assert switch.summary()["ledger"]["balanced"]
    return switch.folder


@contextlib.contextmanager
def changed(folder, name, choose, field, value):
    """One field of one record of a ring is another for a while; the record as it was."""
    from weir.analysis.ring import open_ring

    path = folder / f"{name}.ring"
    records = np.memmap(path, open_ring(path).dtype, "r+", offset=4096)
    chosen = np.flatnonzero(choose(records))
    index = chosen[len(chosen) // 2]
    before = records[index].copy()
    records[field][index] = value(before[field])
    records.flush()
    yield before
    records[index] = before
    records.flush()


def test_the_variants_are_of_listed_disciplines():
    assert VARIANTS.keys() <= {queue.partition(":")[0] for queue in QUEUES}


@pytest.mark.parametrize("queue", QUEUES)
def test_every_discipline_decides_the_same(lab, queue, build):
    folder = record(lab, queue)
    done = replay(folder, build)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"identical: [\d,]+ arrivals and 4 parameter changes replayed", done.stdout)
    for decision in ("enqueue", "dequeue", "depart"):
        assert re.search(rf"\d {decision}\b", done.stdout), done.stdout
    # A discipline that marks may have lost nothing by then.
    paths = json.loads((folder / "summary-switch.json").read_text())["ledger"]["paths"].values()
    assert (" drop" in done.stdout) == any(path["drops"] for path in paths), done.stdout
    assert ("mark" in done.stdout) == marks(queue), done.stdout


def test_flows_with_drawn_base_rtts_leave_at_the_same_times(lab, build):
    """Each connection of the kernels has the delay of one of sixteen flows."""
    drawn = "{uniform: {min: 12ms, max: 40ms}}"
    folder = record(lab, "fifo: {limit: 30pkt}", f"\nflows: [{{count: 16, base_rtt: {drawn}}}]")
    done = replay(folder, build)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d depart\b", done.stdout), done.stdout


def test_acks_are_filtered_alike(lab, build):
    """Kernel TCP's ACKs wait before a link that is too slow for all of them."""
    fast = "{rate: 10Mbit, queue: {fifo: {limit: 50pkt}}}"
    paths = PATHS.format(queue="fifo: {limit: 500pkt}")
    assert fast in paths
    slow = "{rate: 150kbit, queue: {cake: {ack_filter: filter}}}"
    switch = lab.switch(paths.replace(fast, slow), *RECORD)
    lab.iperf("cubic", 100, omit=0)
    wait_for(lambda: lab.telemetry("/weir/links")["reverse/link"]["drops"] > 20, "filtered ACKs")
    lab.end_traffic()
    assert switch.stop() == 0
    assert switch.summary()["ledger"]["paths"]["reverse"]["drops"]["ack_filter"]["pkts"] > 0
    done = replay(switch.folder, build)
    assert done.stdout.startswith("identical:")


def test_a_changed_record_is_found(lab, build):
    folder = record(lab, "fifo: {limit: 5pkt}")
    with changed(
        folder, "packets", lambda r: (r["event"] == DROP) & (r["link"] == 0), "event",
        lambda _: ENQUEUE,
    ) as before:  # fmt: skip
        done = replay(folder, build)
    what = f"of packet {before['pkt_id']} at {before['ts_ns'] / 1e9:.9f} s"
    assert done.returncode == 1
    assert done.stdout == (
        f"first difference in forward.link: recorded enqueue {what}; "
        f"replayed drop (queue_full) {what}\n"
    )

    with changed(folder, "arrivals", lambda r: r["path"] == 0, "ts_ns", lambda t: t + 1) as before:
        done = replay(folder, build)
    assert done.returncode == 1
    assert re.match(r"first difference in forward\.\w+: recorded", done.stdout), done.stdout
    when = float(re.search(r" at ([\d.]+) s", done.stdout)[1])
    assert when * 1e9 >= before["ts_ns"] - 1

    assert replay(folder, build).returncode == 0


def test_lost_records_are_counted(lab, build):
    paths = PATHS.format(queue="fifo: {limit: 20pkt}")
    switch = lab.switch(paths, *RECORD, live="    ring_size: 256")
    assert lab.ping(count=2)
    assert lab.host("a", sys.executable, "-c", FLOOD).wait() == 0
    assert switch.stop() == 0
    assert switch.summary()["telemetry"]["streams"]["arrivals"]["lost"] > 0
    done = replay(switch.folder, build)
    assert done.returncode == 1
    assert re.search(r"the recording has holes: [\d,]+ of [\d,]+ records", done.stderr)


def test_lost_arrivals_are_in_the_verdicts(lab):
    options = ("-o", "telemetry.arrivals=yes")
    switch = lab.switch(PATHS.format(queue="fifo"), *options, live="    ring_size: 256")
    assert lab.host("a", sys.executable, "-c", FLOOD).wait() == 0
    assert switch.stop() == 0
    summary = switch.summary()
    lost = summary["telemetry"]["streams"]["arrivals"]["lost"]
    assert lost > 0
    verdicts = [found for found in summary["verdicts"] if found["cause"] == "telemetry"]
    assert sum(one["count"] for one in verdicts) == lost

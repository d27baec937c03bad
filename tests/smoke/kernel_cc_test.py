# SPDX-License-Identifier: BSD-3-Clause
"""Our CUBIC in virtual time beside this kernel's own, live through weir-switch.

One flow, the same paths, the same seed. All controls are compared with the kernel's in virtual time
(tests/sim/test_guests.py, `weir reproduce linux`); this shows that the live switch adds nothing.
The instrument is the same on both sides, the bottleneck's telemetry: the mean RTT is the base plus
the mean sojourn. Goodput is what TCP says was acknowledged.

Live CPUs stand still, for 100 ms at a time where a hypervisor takes them away. The switch records
how late each packet left, and the sending process when it could look at its socket, so these stalls
are known; the run in virtual time has the same ones, as a schedule of its delays. `clean` is ours
without them.

WEIR_QUIET=1: a longer run, and how near it is. Where the kernel's own timers and softirqs wait for
a CPU it cannot be compared: else a short run, and what holds for any.
"""

import json
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from lab import ADDRESS, PEER, QUIET, WAIT_S, Lab, best_of, quiet
from weir.analysis.ring import open_ring

pytestmark = pytest.mark.slow

PORT = 5001
NAME, OURS = "cubic", "{cubic: {reno_alpha: constant}}"
WARMUP_S = quiet(5, 1)
MEASURED_S = quiet(25, 3)
GOODPUT_OFF, RTT_OFF = 0.10, 0.15
ENQUEUE, DEPART = 1, 5  # enum tel_packet_event
ARP_BYTES = 64
WIRE_BYTES = 20  # a frame with FCS takes these more on the wire
STALL_NS = 3_000_000  # what the loop is late otherwise is microseconds
HOST_STALL_NS = 25_000_000  # of samples every 5 ms
SAMPLE_NS = 5_000_000
STEP_NS = 4_000_000
# Buffers for 300 ms: the hosts' processes may stand still too, TCP itself runs on in the kernel.
SETTINGS = (
    "tcp_no_metrics_save=1",
    "tcp_wmem=4096 4194304 4194304",
    "tcp_rmem=4096 8388608 8388608",
)


@dataclass
class Link:
    """A bottleneck with half of its round trip on each side."""

    rate_mbit: int
    rtt_ms: int
    limit: str
    loss: str = "0%"

    @property
    def paths(self):
        queue = f"{{fifo: {{limit: {self.limit}}}}}"
        delay = f"{{delay: {{delay: {self.rtt_ms // 2}ms}}}}"
        return f"""
  forward:
    - loss: {{rate: {self.loss}}}
    - link: {{rate: {self.rate_mbit}Mbit, queue: {queue}}}
    - {delay}
  reverse:
    - {delay}"""


LINK = Link(50, 40, "1BDP")


@dataclass
class Side:
    """What a flow did after the warm-up."""

    goodput_mbps: float
    rtt_ms: float
    retransmits: int
    drops: int
    utilisation: float
    queue_pkts: float

    def __str__(self):
        return (
            f"{self.goodput_mbps:7.2f} {self.rtt_ms:8.2f} {self.retransmits:6d} {self.drops:6d} "
            f"{self.utilisation:6.3f} {self.queue_pkts:7.1f}"
        )


def measure(link, folder, start_ns, seconds, goodput_mbps, retransmits):
    """The rest of a Side from the link's telemetry; the flow started at start_ns."""
    records = open_ring(folder / "links.ring").records
    first_ns = start_ns + WARMUP_S * 1e9
    at = records["ts_ns"]
    rows = np.flatnonzero((at > first_ns) & (at <= first_ns + seconds * 1e9))
    part, took_ns = records[rows], float(at[rows[-1]] - at[rows[0] - 1])  # a live one may be late
    pkts = part["out_pkts"].astype(float)
    bits = 8 * (part["out_bytes"].astype(float) + WIRE_BYTES * pkts)
    sojourn_ns = np.average(part["sojourn_mean_ns"], weights=pkts)
    return Side(
        goodput_mbps,
        link.rtt_ms + sojourn_ns / 1e6,
        retransmits,
        int(part["drops"].sum()),
        float(np.sum(bits)) / took_ns * 1e9 / (link.rate_mbit * 1e6),
        float(np.mean(part["queue_mean_pkts"])),
    )


def late_departures(packets):
    """When the switch's CPU stood still: [(since, until)] in ns, from when they were due on."""
    late = packets[(packets["event"] == DEPART) & (packets["sojourn_ns"] > STALL_NS)]
    since = late["ts_ns"].astype(np.int64)
    return zip(since.tolist(), (since + late["sojourn_ns"].astype(np.int64)).tolist(), strict=True)


def late_samples(samples, connected_ns):
    """When the hosts' CPU stood still, by the sender's samples."""
    at = connected_ns + np.array([sample["at"] * 1e9 for sample in samples]).astype(np.int64)
    late = np.flatnonzero(np.diff(at) > HOST_STALL_NS)
    return zip((at[late] + SAMPLE_NS).tolist(), at[late + 1].tolist(), strict=True)


def union(spans):
    """Spans that overlap as one, in order."""
    found = []
    for since, until in sorted(spans):
        if found and since <= found[-1][1]:
            found[-1][1] = max(found[-1][1], until)
        else:
            found.append([since, until])
    return found


def schedule(link, found, start_ns):
    """The same in virtual time: what is due in a stall leaves at its end, both ways."""
    lines = ["schedule:"]
    for since, until in found:
        for at in (*range(since, until, STEP_NS), until):
            delay = f"{link.rtt_ms * 500_000 + until - at}ns"
            keys = f"forward.delay.delay: {delay}, reverse.delay.delay: {delay}"
            if at > start_ns:
                lines.append(f"  - {{at: {at - start_ns}ns, {keys}}}")
    return "\n".join(lines) if len(lines) > 1 else ""


def kernel(lab, link, name, seconds, seed):
    """The kernel's TCP of that name: its Side, and the switch's stalls as a schedule."""
    for host in ("a", "b"):
        lab.sh(host, "sysctl", "-qw", *(f"net.ipv4.{setting}" for setting in SETTINGS))
    switch = lab.switch(link.paths, "-o", f"seed={seed}", "-o", "telemetry.level=3")
    sink = lab.sink(1, port=PORT)
    total = WARMUP_S + seconds
    bulk = lab.host("a", sys.executable, PEER, "bulk", ADDRESS["b"], PORT, name, total)
    assert bulk.wait(total + WAIT_S) == 0, bulk.err
    assert sink.wait() == 0, sink.err
    assert switch.stop() == 0, switch.err
    assert switch.summary()["ledger"]["balanced"]
    samples = json.loads(bulk.out[0])
    first = next(sample for sample in samples if sample["at"] >= WARMUP_S)
    acked, retransmits, took = (
        samples[-1][key] - first[key] for key in ("acked", "retransmits", "at")
    )
    packets = open_ring(switch.folder / "packets.ring").records
    enqueued = (packets["event"] == ENQUEUE) & (packets["size_bytes"] > ARP_BYTES)
    start_ns = int(packets["ts_ns"][enqueued][0])  # its SYN
    goodput_mbps = 8 * acked / took / 1e6
    side = measure(link, switch.folder, start_ns, seconds, goodput_mbps, retransmits)
    connected_ns = start_ns + link.rtt_ms * 1_000_000
    found = union([*late_departures(packets), *late_samples(samples, connected_ns)])
    return side, schedule(link, found, start_ns)


def ours(weir_sim, folder, link, name, seconds, seed, extra=""):
    """Ours of that name in virtual time, from the first segment on."""
    config = folder.with_suffix(".yaml")
    config.write_text(f"""
seed: {seed}
duration: {WARMUP_S + seconds}s
warmup: {WARMUP_S}s
paths: {link.paths}
flows: [{{count: 1, cc: {name}}}]
telemetry: {{level: 1, interval: 100ms}}
{extra}""")
    argv = [weir_sim, config, "--force", "--out", folder]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    group = json.loads((folder / "summary.json").read_text())["groups"][0]
    return measure(link, folder, 0, seconds, group["goodput_bps"] / 1e6, group["retransmits"])


def near(kernels, our):
    """Goodput and mean RTT within their bounds?"""
    return (
        abs(our.goodput_mbps / kernels.goodput_mbps - 1) <= GOODPUT_OFF
        and abs(our.rtt_ms / kernels.rtt_ms - 1) <= RTT_OFF
    )


def test_beside_the_kernels(tmp_path, build, weir_sim, weir_switch, capsys):
    link, name, seed = LINK, NAME, 1

    def once():
        with Lab(tmp_path, build) as lab:
            kernels, stalled = kernel(lab, link, name, MEASURED_S, seed)
        sides = [
            ours(weir_sim, tmp_path / kind, link, OURS, MEASURED_S, seed, extra)
            for kind, extra in (("stalled", stalled), ("clean", ""))
        ]
        return kernels, *sides

    kernels, our, clean = best_of(quiet(2, 1), lambda sides: near(*sides[:2]), once)
    with capsys.disabled():
        print(f"\n{name:>28}  Mbit/s   RTT ms    rtx  drops   util   queue")
        for kind, side in (("kernel", kernels), ("ours", our), ("clean", clean)):
            print(f"{kind:>28} {side}")
    for side in (kernels, our, clean):
        assert side.goodput_mbps > 0
        assert side.utilisation <= 1.001, side  # an interval's end falls into a frame
        assert side.rtt_ms >= link.rtt_ms
    if QUIET:
        assert near(kernels, our), (kernels, our)

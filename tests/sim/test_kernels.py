# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of one's own: a patched 6.1 and a 6.12 with a module, beside Debian's, in one run.

They are built once and kept, which takes 10 minutes on two CPUs: only with WEIR_KERNELS=1.
"""

import fcntl
import json
import os
from pathlib import Path

import pytest
from weir.guests import build, kernels
from weir.guests.recipe import Recipe

from .conftest import tshark

KEPT = Path(__file__).with_name("kernels")
MORE = build.OPTIONS.with_name("more.config")
RECIPES = (
    Recipe(
        name="test-patched",
        source="linux-source-6.1",
        patches=(KEPT / "initial-window.patch",),
    ),
    Recipe(name="test-module", modules=(KEPT / "fixed",), fragment=MORE),
)
WINDOW = 20  # segments, of tcp_fixed
CONFIG = """
seed: 1
duration: 3s
paths:
  forward:
    - link: {rate: 50Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 20ms}
  reverse:
    - delay: {delay: 20ms}
flows:
"""
PATCHED = "{kernel: test-patched, cc: cubic}"
MODULE = f"{{kernel: test-module, cc: fixed, module: {{tcp_fixed: {{window: {WINDOW}}}}}}}"

# Four programs that send more than the link carries, with the marks BE, CS1, CS5 and EF.
MARKS = (0, 8, 40, 46)
LINK = """
seed: 1
duration: 8s
warmup: 3s
paths:
  forward:
    - link: {rate: %s, queue: %s}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
"""
SEND = (
    "D=$(ls /sys/class/net | grep -v lo | head -n 1); "
    "/usr/sbin/tc qdisc replace dev $D root cake bandwidth 20mbit {mode} overhead 24 mpu 84; "
    "for i in 0 8 40 46; do iperf3 -c {{peer}} -p $((5001+i)) -u -b 20M -l 1400 -S $((i*4)) -t 9 & "
    "done > /tmp/said 2>&1; sleep 9"
)
RECEIVE = "for i in 0 8 40 46; do iperf3 -s -p $((5001+i)) & done > /tmp/said 2>&1; sleep 9"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("WEIR_KERNELS") != "1", reason="needs WEIR_KERNELS=1"),
]


@pytest.fixture(scope="module", autouse=True)
def built():
    """The three kernels."""
    if kernels.current() is None:
        build.build(build.Steps())
    for recipe in RECIPES:
        build.build(build.Steps(), recipe)


@pytest.fixture(autouse=True)
def alone():
    """tests/sim/test_guests.py looks at all guests that there are."""
    with Path("/tmp/weir-test-guests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(sim, stacks, *options):
    """The summary of a run with a flow of each stack, half a second after the one before."""
    flows = (f"  - {{start: {n / 2}s, stack: {{linux: {of}}}}}" for n, of in enumerate(stacks))
    return sim.summary(CONFIG + "\n".join(flows), *options)


def test_what_each_kernel_offers():
    for recipe in RECIPES:
        kernel = kernels.find(recipe.name)
        controls = kernel.controls.split()
        assert {"reno", "cubic", "bbr", "dctcp"} < set(controls)
        assert ("fixed" in controls) == (kernel.modules == "tcp_fixed")
    assert kernels.find("test-patched").release.startswith("6.1.")
    assert kernels.find("test-patched").patches == "initial-window.patch"


def test_three_kernels_in_one_run_ten_times(sim):
    """The same bytes."""
    stacks = (PATCHED, MODULE, "{cc: cubic}")
    summaries = [run(sim, stacks) for _ in range(10)]
    assert len({summary["digest"] for summary in summaries}) == 1
    found = {
        kernel["name"]: (kernel["release"][:4].rstrip("."), kernel["guests"])
        for kernel in summaries[0]["guests"]["kernels"]
    }
    assert found == {
        "test-patched": ("6.1", [0, 3]),
        "test-module": ("6.12", [1, 4]),
        "current": (kernels.current().release[:4], [2, 5]),
    }
    assert summaries[0]["guests"]["release"] is None


def test_ipv6_beside_ipv4_between_kernels_and_to_ours(sim):
    """Kernels at both ends, or at one: what a link carries, and 1428 bytes of each frame."""
    linux = "stack: {linux: {kernel: test-module, cc: cubic}}"
    goodputs = {}
    for ip, peer in (("ipv4", ""), ("ipv6", ""), ("ipv6", ", peer: weir")):
        config = f"{CONFIG}  - {{ip: {ip}, {linux}{peer}}}\n".replace("3s", "10s")
        summary = sim.summary(config)
        assert summary["ledger"]["balanced"]
        goodputs[ip, peer] = summary["groups"][0]["goodput_bps"]
    four = goodputs["ipv4", ""]
    assert goodputs["ipv6", ""] == pytest.approx(four * 1428 / 1448, rel=0.01)
    assert goodputs["ipv6", ", peer: weir"] == pytest.approx(four * 1428 / 1448, rel=0.03)


@pytest.mark.parametrize("ip", ["ipv4", "ipv6"])
def test_what_a_socket_of_both_versions_carries_is_counted(sim, ip):
    """iperf3's server listens for IPv6, and takes IPv4 at the same socket, where there is IPv6.

    Both of its connections end within the run, which the kernel says by itself.
    """
    send = json.dumps("iperf3 -c {peer} -n 400K -J")
    programs = (
        f"stack: {{linux: {{kernel: test-module, run: {send}}}}}",
        "peer: {linux: {kernel: test-module, run: iperf3 -s}}",
    )
    summary = sim.summary(f"{CONFIG}  - {{count: 2, ip: {ip}, {', '.join(programs)}}}\n")
    said = json.loads((sim.folder / "run/guest-0.out").read_text())["end"]
    (group,) = summary["groups"]
    assert 100 < group["acked_bytes"] - said["sum_received"]["bytes"] < 1000
    assert summary["receivers"]["bytes"] == group["acked_bytes"]
    assert (summary["flows"]["open"], summary["flows"]["waiting"]) == (0, 0)


def test_a_modules_window_is_what_flies_in_a_round_trip(sim):
    """1448 bytes of each segment; the handshake and the initial window take three round trips."""
    (group,) = run(sim, (MODULE,))["groups"]
    rounds = 3 / (group["rtt_mean_ns"] / 1e9)
    assert group["acked_bytes"] == pytest.approx((rounds - 3) * WINDOW * 1448, rel=0.02)


def test_the_patch_is_seen_on_the_wire(sim):
    """Twenty segments in the first round trip where Debian's kernel sends ten."""
    run(sim, (PATCHED, "{cc: cubic}"), "--pcap", "x.pcapng")
    data, times = "tcp.dstport == 5001 && tcp.len > 0", {}
    for port, at in tshark(sim.folder / "x.pcapng", data, "tcp.srcport", "frame.time_epoch"):
        times.setdefault(int(port), []).append(float(at))
    first = {port: sum(t < all_[0] + 0.03 for t in all_) for port, all_ in times.items()}
    assert [first[port] for port in sorted(first)] == [20, 10]


def shares(sim, text):
    """The parts of the datagrams' goodput, by size."""
    summary = sim.summary(text)
    found = [group["goodput_bps"] for group in summary["groups"]]
    if "ip_flows" in summary:
        udp = (flow for flow in summary["ip_flows"] if flow["protocol"] == "udp")
        found = [flow["goodput_bps"] for flow in udp if flow["direction"] == "forward"]
    found = sorted(found, reverse=True)[: len(MARKS)]
    return [rate / sum(found) for rate in found] + [0] * (len(MARKS) - len(found))


@pytest.mark.parametrize("mode", ["diffserv3", "diffserv4", "diffserv8", "precedence"])
def test_cakes_tins_share_a_link_as_the_kernels(sim, mode):
    """sch_cake in a guest, whose card is faster than its bandwidth, and our CAKE on a link."""
    run = {"kernel": "test-module", "cc": "cubic"}
    stack = json.dumps({"linux": run | {"run": SEND.format(mode=mode)}})
    peer = json.dumps({"linux": run | {"run": RECEIVE}})
    theirs = LINK % ("1Gbit", "{fifo: {limit: 1000p}}")
    theirs += f"  - {{count: 4, stack: {stack}, peer: {peer}}}\n"
    ours = LINK % ("20Mbit", f"{{cake: {{diffserv: {mode}}}}}")
    for mark in MARKS:
        ours += f"  - {{source: {{udp: {{rate: 20Mbit}}}}, dscp: {mark}, jitter: 1ms}}\n"
    kernel = shares(sim, theirs)
    assert shares(sim, ours) == pytest.approx(kernel, abs=0.01)

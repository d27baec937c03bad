# SPDX-License-Identifier: BSD-3-Clause
"""Impairments in the live switch: virtual time decides the same, and the kernel sees them."""

import re

import pytest
from lab import ADDRESS, Lab, replay, wait_for

# All that draws or counts, one after the other; what one lets pass reaches the next.
STAGES = """
  forward:
    - loss: {rate: 0.2%, unit: burst}
    - loss_gilbert: {p: 0.1%, r: 40%}
    - loss_markov: {p13: 0.1%, p31: 50%, p32: 20%, p14: 0.1%}
    - loss_periodic: {every: 500}
    - loss_target: {flow: 0, byte: 5}  # no flow of kernel TCP is 0: only the headers are read
    - loss_mask: {mask: 0x8000000000000000, repeat: no}
    - ecn: {ect0: not_ect, fraction: 10%}
    - corrupt: {rate: 0.2%}
    - duplicate: {rate: 1%, correlation: 30%}
    - link: {rate: 20Mbit, queue: {codel: {limit: 200pkt, ecn: yes}}}
    - duplicate: {rate: 1%}
    - delay: {delay: 5ms}
    - jitter: {mean: 1ms, spread: 300us, ahead: 1%}
  reverse:
    - jitter: {mean: 2ms, spread: 1ms, distribution: pareto, half_life: 10ms,
        reordering: forbidden}
    - link: {rate: 10Mbit, queue: {fifo: {limit: 50pkt}}}
    - duplicate: {rate: 2%}
    - delay: {delay: 5ms}
"""
CORRUPT = """
  forward:
    - corrupt: {rate: 1%}
    - link: {rate: 50Mbit, queue: {fifo: {limit: 10MB}}}
    - delay: {delay: 1ms}
  reverse: [{delay: {delay: 1ms}}]"""
RECORD = ("-o", "telemetry.level=3", "-o", "telemetry.arrivals=yes")
CORRUPT_EVENT = 6


@pytest.fixture(scope="module")
def lab(weir_switch, tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("impairments"), build) as lab:
        lab.enable_ecn()
        yield lab


def kernel_count(lab, host, protocol, name):
    """A counter of /proc/net/snmp."""
    names, values = (
        line.split()[1:]
        for line in lab.sh(host, "cat", "/proc/net/snmp").splitlines()
        if line.startswith(f"{protocol}:")
    )
    return int(dict(zip(names, values, strict=True))[name])


def test_every_impairment_decides_the_same(lab, build):
    """Kernel TCP through all of them, replayed from the recorded arrivals."""
    switch = lab.switch(STAGES, *RECORD)
    lab.iperf("cubic", 100, omit=0, connections=4)
    wait_for(lambda: lab.telemetry("/weir/links")["forward/link"]["out_pkts"] > 4000, "packets")
    assert "error" not in lab.telemetry("/weir/set,forward.jitter.mean=2ms")
    assert "error" not in lab.telemetry("/weir/set,forward.corrupt.rate=1%")
    assert "error" not in lab.telemetry("/weir/set,forward.loss_gilbert.p=0.5%")
    wait_for(lambda: lab.telemetry("/weir/links")["forward/link"]["out_pkts"] > 8000, "packets")
    lab.end_traffic()
    assert switch.stop() == 0
    ledger = switch.summary()["ledger"]
    assert ledger["balanced"]
    assert ledger["duplicated"] > 0
    done = replay(switch.folder, build)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"identical: [\d,]+ arrivals and 3 parameter changes replayed", done.stdout)
    for decision in ("enqueue", "dequeue", "drop", "corrupt", "duplicate", "depart"):
        assert re.search(rf"\d {decision}\b", done.stdout), done.stdout


def test_the_kernel_counts_each_flipped_bit(lab):
    """As many checksum errors as packets were corrupted, and the data arrives whole."""
    from weir.analysis.ring import open_ring

    before = {p: kernel_count(lab, "b", p, "InCsumErrors") for p in ("Tcp", "Udp", "Icmp")}
    switch = lab.switch(CORRUPT, "-o", "telemetry.level=3")
    lab.iperf_server()
    load = ("-n", "20000000", "-J")
    assert lab.host("a", "iperf3", "-c", ADDRESS["b"], *load).wait() == 0
    assert switch.stop() == 0
    summary = switch.summary()
    found = {p: kernel_count(lab, "b", p, "InCsumErrors") - before[p] for p in before}
    records = open_ring(switch.folder / "packets.ring").records
    corrupted = int((records["event"] == CORRUPT_EVENT).sum())
    assert summary["ledger"]["balanced"]
    assert corrupted > 80  # of 14000
    # The kernel loses too, and counts it, where something did not get the CPU in time. An ARP frame
    # has no checksum.
    lost = lab.lost("sw", "right") + sum(port["tx_dropped"] for port in summary["ports"])
    assert corrupted - lost - 2 <= sum(found.values()) <= corrupted
    assert found["Tcp"] > 0

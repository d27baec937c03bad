# SPDX-License-Identifier: BSD-3-Clause
"""A loss stage as a real program at the far end sees it."""

import pytest
from lab import ADDRESS, Lab, iperf_result

PATHS = """
  forward:
    - loss: {rate: 1%}
    - link: {rate: 1Gbit, queue: {fifo: {limit: 1MB}}}
    - delay: {delay: 1ms}
  reverse: [{delay: {delay: 1ms}}]"""
CHI_SQUARE = 10.83  # 1 degree of freedom, p = 0.001


def chi_square(sent, lost, rate):
    """Pearson's statistic of lost and delivered against what the rate predicts."""
    expected = sent * rate
    return (lost - expected) ** 2 / expected + (lost - expected) ** 2 / (sent - expected)


@pytest.fixture
def lab(tmp_path, build, weir_switch):
    with Lab(tmp_path, build) as lab:
        yield lab


def overruns(lab):
    """Packets that arrived at the far end and found its socket's buffer full."""
    names, values = (
        line.split()[1:]
        for line in lab.sh("b", "cat", "/proc/net/snmp").splitlines()
        if line.startswith("Udp:")
    )
    return int(dict(zip(names, values, strict=True))["RcvbufErrors"])


def test_iperf_sees_the_configured_loss(lab):
    switch = lab.switch(PATHS)
    lab.iperf_server()
    # 4 s of 24 Mbit/s in packets of 500 B: 24000.
    load = ("-u", "-b", "24M", "-l", "500", "-t", "4")
    seen = iperf_result(lab.host("a", "iperf3", "-c", ADDRESS["b"], *load, "-J"))["end"]["sum"]

    assert switch.stop() == 0
    ledger = switch.summary()["ledger"]
    assert ledger["balanced"]
    assert set(ledger["drops"]) == {"loss"}
    # iperf3 also counts what it lost itself when it did not get the CPU in time.
    sent, lost = seen["packets"], seen["lost_packets"] - overruns(lab)
    assert sent > 20000
    assert chi_square(sent, lost, 0.01) < CHI_SQUARE
    came, dropped = ledger["paths"]["forward"]["in"]["pkts"], ledger["drops"]["loss"]
    assert chi_square(came, dropped, 0.01) < CHI_SQUARE
    # Its control connection is part of what came.
    assert 0 <= dropped - lost <= came - sent

# SPDX-License-Identifier: BSD-3-Clause
"""A loss stage as a real program at the far end sees it."""

import pytest
from lab import ADDRESS, Lab, best_of, iperf_result

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


def udp(lab):
    """4 s of 24 Mbit/s in packets of 500 B: how many were sent, and lost, says the far end."""
    lab.iperf_server()
    load = ("-u", "-b", "24M", "-l", "500", "-t", "4")
    seen = iperf_result(lab.host("a", "iperf3", "-c", ADDRESS["b"], *load, "-J"))["end"]["sum"]
    return seen["packets"], seen["lost_packets"]


def test_iperf_sees_the_configured_loss(lab):
    switch = lab.switch(PATHS)
    # A receiver that does not get the CPU in time loses packets of its own: then once more.
    sent, lost = best_of(3, lambda seen: chi_square(*seen, 0.01) < CHI_SQUARE, lambda: udp(lab))

    assert switch.stop() == 0
    ledger = switch.summary()["ledger"]
    assert ledger["balanced"]
    assert set(ledger["drops"]) == {"loss"}
    assert sent > 20000
    assert chi_square(sent, lost, 0.01) < CHI_SQUARE
    came = ledger["paths"]["forward"]["in"]["pkts"]
    assert chi_square(came, ledger["drops"]["loss"], 0.01) < CHI_SQUARE

# SPDX-License-Identifier: BSD-3-Clause
"""A loss stage as a real program at the far end sees it."""

from lab import ADDRESS, iperf_result

PATHS = """
  forward:
    - loss: {rate: 1%}
    - link: {rate: 1Gbit, queue: {fifo: {limit: 20MB}}}
    - delay: {delay: 1ms}
  reverse: [{delay: {delay: 1ms}}]"""
CHI_SQUARE = 10.83  # 1 degree of freedom, p = 0.001


def chi_square(sent, lost, rate):
    """Pearson's statistic of lost and delivered against what the rate predicts."""
    expected = sent * rate
    return (lost - expected) ** 2 / expected + (lost - expected) ** 2 / (sent - expected)


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
    # 24000 packets of 500 B, at 48 Mbit/s or as fast as iperf3 gets the CPU.
    load = ("-u", "-b", "48M", "-l", "500", "-n", "12000000")
    seen = iperf_result(lab.host("a", "iperf3", "-c", ADDRESS["b"], *load, "-J"))["end"]["sum"]
    kernel = overruns(lab) + lab.lost("sw", "right")

    assert switch.stop() == 0
    summary = switch.summary()
    ledger = summary["ledger"]
    assert ledger["balanced"]
    assert set(ledger["drops"]) == {"loss"}
    received, dropped = ledger["paths"]["forward"]["in"]["pkts"], ledger["drops"]["loss"]
    assert chi_square(received, dropped, 0.01) < CHI_SQUARE
    sent, lost = seen["packets"], seen["lost_packets"]
    assert sent == 24000
    # The kernel loses too, and counts it, where something did not get the CPU in time.
    kernel += sum(port["driver_missed"] for port in summary["ports"])
    # Of what the stage dropped some was iperf3's control connection.
    assert dropped - (received - sent + kernel) <= lost <= dropped + kernel

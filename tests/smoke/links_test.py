# SPDX-License-Identifier: BSD-3-Clause
"""Links whose rate varies and policers in the live switch: virtual time decides the same."""

import re
from pathlib import Path

import pytest
from lab import Lab, replay, wait_for

TRACES = Path(__file__).resolve().parents[2] / "configs/traces"
# One bottleneck after the other, each of which drops by itself at times.
STAGES = f"""
  forward:
    - policer: {{rate: 40Mbit, burst: 30kB, excess: 10kB, yellow: mark}}
    - mahimahi_link:
        file: {TRACES}/lte-like.trace
        queue: {{codel: {{limit: 300pkt, ecn: yes}}}}
    - link: {{rate: 20Mbit, framing: atm, queue: {{fifo: {{limit: 30pkt}}}}}}
    - delay: {{delay: 5ms}}
  reverse:
    - replay: {{file: {TRACES}/handover.csv, queue: {{fifo: {{limit: 300pkt}}}}}}
    - markov_link: {{good: 20Mbit, bad: 0, good_mean: 100ms, bad_mean: 20ms,
        queue: {{fifo: {{limit: 50pkt}}}}}}
    - wifi_jitter: {{jitter: 2ms}}
    - leo_handover: {{period: 400ms, offset: 100ms, delay: 1ms, spread: 4ms, outage: 10ms,
        settling: 50ms}}
"""
# An outage of the constant link.
SCHEDULE = (
    "schedule: [{at: 1s, forward.link.rate: 0}, {at: 1200ms, forward.link.rate: 10Mbit}, "
    "{at: 1500ms, forward.policer.rate: 8Mbit}]"
)
RECORD = ("-o", "telemetry.level=3", "-o", "telemetry.arrivals=yes")


@pytest.fixture(scope="module")
def lab(weir_switch, tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("links"), build) as lab:
        lab.enable_ecn()
        yield lab


def test_every_link_decides_the_same(lab, build):
    """Kernel TCP through all of them, replayed from the recorded arrivals and the run's traces."""
    switch = lab.switch(STAGES, *RECORD, top=SCHEDULE)
    lab.iperf("cubic", 100, omit=0, connections=4)
    lab.changed("forward.policer.rate=8Mbit")  # the last of the scheduled ones
    wait_for(lambda: lab.telemetry("/weir/links")["forward/link"]["out_pkts"] > 2000, "packets")
    lab.end_traffic()
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert summary["links"]["forward.link"]["down_ns"] == 200_000_000
    # The config of the run names the copies, and nothing else is needed.
    assert str(TRACES) not in (switch.folder / "config.yaml").read_text()
    done = replay(switch.folder, build)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"identical: [\d,]+ arrivals and 3 parameter changes replayed", done.stdout)
    for decision in ("enqueue", "dequeue", "drop", "mark", "depart"):
        assert re.search(rf"\d {decision}\b", done.stdout), done.stdout

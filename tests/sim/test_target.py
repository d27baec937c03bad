# SPDX-License-Identifier: BSD-3-Clause
"""A given byte is lost, so many times: when the sender repairs it follows from the RFCs.

The path is a delay of 10 ms each way. The SYN leaves at 0, 20 segments and a FIN at 20 ms; ACKs of
those that arrive are back at 40 ms.
"""

import numpy as np
import pytest

from .conftest import Run, Simulate

MSS = 1448  # of payload, with timestamps
SEGMENTS = 20
LAST, FIN = SEGMENTS - 1, SEGMENTS
HEADERS, PACKET, TIMEOUT = 4, 1, 2
CONFIG = """
seed: 1
duration: 60s
paths:
  forward:
{targets}
    - delay: {{delay: 10ms}}
  reverse:
    - delay: {{delay: 10ms}}
flows:
  - {{count: 2, cc: {{fixed: {{cwnd: 50}}}}, ack_every: 1, source: {{size: {{bytes: {size}B}}}},
    {more}}}
telemetry: {{level: 3, arrivals: yes}}
"""


def lose(simulate: Simulate, targets: dict[int, int], more: str = "start: 0s") -> Run:
    """Of the first of two flows, the segments that are named and their first retransmissions."""
    stages = "\n".join(
        f"    - loss_target: {{flow: 0, byte: {segment * MSS}, retransmissions: {times}}}"
        for segment, times in targets.items()
    )
    run = simulate(CONFIG.format(targets=stages, size=SEGMENTS * MSS, more=more))
    lost = run.summary["ledger"]["paths"]["forward"]["drops"]["loss"]["pkts"]
    assert lost == len(targets) + sum(targets.values())
    assert run.groups[0]["acked_bytes"] == 2 * SEGMENTS * MSS
    assert run.groups[0]["spurious_timeouts"] == run.groups[0]["spurious_recoveries"] == 0
    return run


def repairs(run: Run) -> list[tuple[float, int]]:
    """Milliseconds and number of each segment that the first flow sent again."""
    arrivals = run.records("arrivals")
    arrivals = arrivals[arrivals["path"] == 0]
    heads = arrivals[arrivals["event"] == HEADERS]
    packets = arrivals[arrivals["event"] == PACKET]
    assert (heads["pkt_id"] == packets["pkt_id"]).all()
    heads = heads[packets["flow_id"] == 0]
    assert heads["delay_class"][0] == 1  # the SYN
    heads, first = heads[heads["size_bytes"] > 0], heads["flow_id"][0] + 1
    numbers = (heads["flow_id"] - first) // MSS
    assert list(numbers[: FIN + 1]) == [*range(FIN + 1)]
    found = zip(heads["ts_ns"][FIN + 1 :] / 1e6, numbers[FIN + 1 :], strict=True)
    return [(float(ms), int(number)) for ms, number in found]


def timeouts(run: Run) -> int:
    """Those of the first flow; the other has none."""
    events = run.records("events")
    flows = events["flow_id"][events["event"] == TIMEOUT]
    assert not np.any(flows)
    return len(flows)


def test_a_segment_in_the_middle_at_once(simulate: Simulate) -> None:
    """RFC 8985, section 6.2: with three later ones SACKed there is no reordering window."""
    run = lose(simulate, {9: 0})
    assert repairs(run) == [(40, 9)]
    assert timeouts(run) == 0


def test_a_repair_that_is_lost_again(simulate: Simulate) -> None:
    """Nothing was sent after it: the timer of SRTT + 200 ms, from when it left (RFC 6298, 5.3)."""
    run = lose(simulate, {9: 1}, "tlp: no")
    assert repairs(run) == [(40, 9), (260, 9)]
    assert timeouts(run) == 1


def test_the_last_segment_after_the_reordering_window(simulate: Simulate) -> None:
    """Only the FIN says that it is missing: a quarter of the least RTT later (RFC 8985, 6.2)."""
    run = lose(simulate, {LAST: 0})
    assert repairs(run) == [(45, LAST)]
    assert timeouts(run) == 0


def test_a_lost_tail_is_probed(simulate: Simulate) -> None:
    """RFC 8985, section 7.2: the FIN again, 2 SRTT after the last ACK; its SACK shows the rest."""
    run = lose(simulate, {LAST: 0, FIN: 0})
    assert repairs(run) == [(80, FIN), (100, LAST)]
    assert timeouts(run) == 0


@pytest.mark.parametrize("times", [0, 1, 3])
def test_without_a_probe_timeouts_double(simulate: Simulate, times: int) -> None:
    """RFC 6298, 5.5, from SRTT + 200 ms on, as the least timeout is in Linux.

    F-RTO and Eifel take none of them for spurious (lose() looks at it): each repair was needed.
    """
    run = lose(simulate, {LAST: times, FIN: times}, "tlp: no")
    expected = [40 + 220 * (2**n - 1) for n in range(1, times + 2)]
    assert [ms for ms, number in repairs(run) if number == LAST] == expected
    assert timeouts(run) == times + 1


def test_a_lost_probe_is_followed_by_a_timeout(simulate: Simulate) -> None:
    """RFC 8985, section 7.3: the timer is set anew when the probe leaves."""
    run = lose(simulate, {LAST: 0, FIN: 1})
    assert repairs(run)[:2] == [(80, FIN), (300, LAST)]
    assert timeouts(run) == 1


def test_a_lost_syn_and_a_second_flow(simulate: Simulate) -> None:
    """What is lost of one flow leaves the other alone: it is done a round trip after its data."""
    run = lose(simulate, {0: 2}, "tlp: no")
    flows = run.records("flows")
    done = {row["flow_id"]: row["ts_ns"] / 1e6 for row in flows if row["event"] == 2}
    assert done[1] == 40
    assert [number for _, number in repairs(run)] == [0, 0, 0]

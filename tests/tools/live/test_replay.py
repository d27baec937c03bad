# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.analysis.run_summary import decode
from weir.live import replay

PACKETS = np.dtype(
    [
        ("ts_ns", "<u8"), ("flow_id", "<u4"), ("pkt_id", "<u4"), ("queue_bytes", "<u4"),
        ("sojourn_ns", "<u4"), ("size_bytes", "<u2"), ("event", "u1"), ("reason", "u1"),
        ("link", "u1"), ("ecn", "u1"), ("path", "u1"), ("stage", "u1"),
    ]
)  # fmt: skip
EVENTS = {"enqueue": 1, "dequeue": 2, "drop": 3, "mark": 4, "depart": 5}
ENQUEUE, DEQUEUE, DROP, DEPART = (EVENTS[name] for name in ("enqueue", "dequeue", "drop", "depart"))
SUMMARY = {
    "arrivals": 4,
    "changes": 0,
    "stages": [{"path": "forward", "stages": ["forward.link", "forward.link2"]}],
    "drop_reasons": ["none", "queue_full"],
}


def packets(*rows):
    """Records from (ts_ns, pkt_id, event, stage)."""
    records = np.zeros(len(rows), PACKETS)
    for record, row in zip(records, rows, strict=True):
        for name, value in zip(("ts_ns", "pkt_id", "event", "stage"), row, strict=True):
            record[name] = value
    return records


HISTORY = packets(
    (10, 0, ENQUEUE, 0),
    (10, 0, DEQUEUE, 0),
    (20, 1, ENQUEUE, 0),
    (15, 0, ENQUEUE, 1),
    (15, 0, DEQUEUE, 1),
    (25, 1, DEQUEUE, 0),
    (40, 0, DEPART, 255),
    (50, 1, DEPART, 255),
)


def compare(recorded, replayed):
    return replay.compare(recorded, replayed, EVENTS)


def said(recorded, replayed):
    return replay.sentence(compare(recorded, replayed), decode(SUMMARY, "x"))


def test_equal_histories_are_identical():
    found = compare(HISTORY, HISTORY.copy())
    assert found.difference is None
    assert found.events["enqueue"] == 3
    assert said(HISTORY, HISTORY) == (
        "identical: 4 arrivals and 0 parameter changes replayed, "
        "the same decisions: 3 enqueue, 3 dequeue, 2 depart"
    )
    empty = packets()
    assert said(empty, empty).endswith("the same decisions: none")


def test_how_stages_lie_between_each_other_does_not_matter():
    order = [3, 0, 1, 4, 2, 6, 5, 7]
    assert compare(HISTORY, HISTORY[order]).difference is None


def test_the_order_within_a_stage_does():
    found = compare(HISTORY, HISTORY[[0, 2, 1, 3, 4, 5, 6, 7]])
    assert found.difference is not None
    assert found.difference.ts_ns == 10


@given(st.integers(0, 5), st.sampled_from([n for n in PACKETS.names if n not in ("path", "stage")]))
def test_any_changed_field_of_any_decision_is_found(i, field):
    other = HISTORY.copy()
    other[field][i] += 1
    d = compare(HISTORY, other).difference
    assert d is not None
    assert d.stage == HISTORY["stage"][i]
    assert d.recorded["pkt_id"] == HISTORY["pkt_id"][i]
    assert d.replayed[field] == other[field][i]


def test_the_first_in_time_is_named_with_its_stage():
    other = HISTORY.copy()
    other["event"][4] = other["event"][5] = DROP
    other["reason"][4] = other["reason"][5] = 1
    assert said(HISTORY, other) == (
        "first difference in forward.link2: recorded dequeue of packet 0 at 0.000000015 s; "
        "replayed drop (queue_full) of packet 0 at 0.000000015 s"
    )


def test_a_figure_that_differs_is_shown():
    other = HISTORY.copy()
    other["queue_bytes"][2] = 99
    assert "at 0.000000020 s, queue_bytes 0; replayed" in said(HISTORY, other)
    assert said(HISTORY, other).endswith("at 0.000000020 s, queue_bytes 99")


@pytest.mark.parametrize("missing", [2, 5])
def test_a_missing_record_is_found(missing):
    less = np.delete(HISTORY, missing)
    assert compare(HISTORY, less).difference is not None
    assert compare(less, HISTORY).difference is not None


def test_a_history_that_ends_early_has_nothing_more():
    less = np.delete(HISTORY, 5)
    assert "replayed nothing more" in said(HISTORY, less)
    assert "recorded nothing more" in said(less, HISTORY)


def test_lateness_is_no_difference_and_a_port_may_refuse():
    late = HISTORY.copy()
    late["sojourn_ns"][6:] = 77
    assert compare(late, HISTORY).difference is None
    refused = np.delete(late, 6)
    assert compare(refused, HISTORY).difference is None
    assert "(1 more were not taken by a port)" in said(refused, HISTORY)


def test_a_recording_of_an_older_build_has_less_room_for_times():
    wider = np.dtype([(n, "<u8" if n == "sojourn_ns" else PACKETS[n]) for n in PACKETS.names])
    old, new = HISTORY.copy(), HISTORY.astype(wider)
    old["sojourn_ns"][5], new["sojourn_ns"][5] = 2**32 - 1, 2**33
    assert compare(old, new).difference is None
    new["sojourn_ns"][5] = 2**31
    assert compare(old, new).difference is not None


@pytest.mark.parametrize("field", ["ts_ns", "flow_id", "size_bytes", "ecn", "pkt_id"])
def test_departures_are_compared(field):
    other = HISTORY.copy()
    other[field][7] += 1
    d = compare(other, HISTORY).difference
    assert d is not None
    assert (d.stage, d.recorded["ts_ns"]) == (255, other["ts_ns"][7])
    assert "the exit of forward" in said(other, HISTORY)


def test_departures_keep_their_order():
    swapped = HISTORY[[0, 1, 2, 3, 4, 5, 7, 6]]
    assert compare(swapped, HISTORY).difference is not None
    none = HISTORY[:6]
    assert compare(HISTORY, none).difference is not None


@given(st.lists(st.integers(0, 1000), max_size=50), st.integers(0, 2**32 - 1))
def test_packet_numbers_count_on(steps, start):
    true = start + np.cumsum(np.array([0, *steps], np.int64))
    assert (replay.unwrapped((true % 2**32).astype(np.uint32)) == true).all()

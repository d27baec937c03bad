# SPDX-License-Identifier: BSD-3-Clause
"""The measurements that a control is given: a view of weir-sim's record of a flow.

The list, with units and meanings, is tools/sim/agent/measurements.h, and weir-sim names the
members; the annotations here are for type checkers and editors, and a test holds them to it.
"""

from __future__ import annotations

import ctypes

TYPES = {"uint64_t": ctypes.c_uint64, "double": ctypes.c_double}


class Measurements(ctypes.Structure):
    """The measurements of a flow, as of the call that they are given to, and no longer.

    `numpy.frombuffer(m, m.dtype())` is a structured array of one over the same memory.
    """

    interval_ns: int
    acks: int
    acked_segs: int
    passed_segs: int
    lost_segs: int
    ce_segs: int
    losses: int
    ecn_echoes: int
    timeouts: int
    throughput_bps: float
    rtt_samples: int
    rtt_mean_ns: float
    rtt_lowest_ns: int
    rtt_ns: int
    app_limited: int
    cwnd_limited: int
    in_sequence: int
    now_ns: int
    srtt_ns: int
    rtt_min_ns: int
    sent_ns: int
    tick_ns: int
    cwnd_at_send: float
    inflight_segs: int
    prior_inflight_segs: int
    delivered_segs: int
    prior_delivered_segs: int
    delivery_bps: float
    sample_ns: int
    next_send_ns: int
    host_paced: int
    in_recovery: int
    in_loss: int
    classic_ecn: int
    cwnd_segs: float
    pacing_bps: float
    mss_bytes: int
    episode_lost_segs: int
    ecn: int
    repeated: int
    idle_ns: int

    @classmethod
    def dtype(cls) -> list[tuple[str, str]]:
        """Returns the record's fields as numpy names them."""
        kinds = {ctypes.c_uint64: "<u8", ctypes.c_double: "<f8"}
        return [(str(field[0]), kinds[field[1]]) for field in cls._fields_]


def record(lines: str) -> type[Measurements]:
    """Returns the class of a record that weir-sim lists: a type, a name and a meaning per line."""
    members = [line.split("\t")[:2] for line in lines.splitlines()]
    fields = [(name, TYPES[kind]) for kind, name in members]
    return type("Record", (Measurements,), {"_fields_": fields})

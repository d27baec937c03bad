# SPDX-License-Identifier: BSD-3-Clause
"""What files of telemetry format 1 do not say themselves: names of their numbers.

Nothing is ever added here: files of later formats have the names in their schema.
"""

# Who observes what, by stream, in the order of their numbers.
OBSERVERS: dict[str, dict[str, tuple[str, ...]]] = {
    "events": {"codel": ("count",)},
    "cc": {
        "copa": ("velocity", "delta", "dq_ns", "rtt_min_ns"),
        "cubic": ("ssthresh_segs", "w_max_segs", "k_s", "w_est_segs"),
        "bbr": ("bw_bps", "min_rtt_ns", "pacing_gain", "extra_acked_segs"),
        "newreno": ("ssthresh_segs",),
    },
}
# Enumerated values, by unit.
VALUES: dict[str, dict[str, int]] = {
    "tel_packet_event": {"enqueue": 1, "dequeue": 2, "drop": 3, "mark": 4, "depart": 5},
    "drop_reason": {
        "none": 0,
        "queue_full": 1,
        "aqm": 2,
        "loss": 3,
        "delay_full": 4,
        "no_mbuf": 5,
        "no_route": 6,
        "tx": 7,
        "malformed": 8,
    },
    "tel_arrival": {"packet": 1, "change": 2, "end": 3},
    "tel_flow_event": {"open": 1, "close": 2, "reset": 3, "gave_up": 4, "still_open": 5},
    "tel_ca_state": {"open": 0, "recovery": 1, "loss": 2},
    "tel_event": {
        "reduction": 1,
        "timeout": 2,
        "recovered": 3,
        "slow_start_end": 4,
        "cc_mode": 5,
        "parameter": 6,
        "spurious": 7,
        "port": 8,
        "observed": 9,
        "undo": 10,
    },
}

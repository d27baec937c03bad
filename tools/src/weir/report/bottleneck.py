# SPDX-License-Identifier: BSD-3-Clause
"""The busiest link and the path through it, from config and summary."""

from __future__ import annotations

from weir.analysis import one_way, routes, summary
from weir.analysis.run_summary import RunSummary
from weir.base import units
from weir.base.configs import Config

HEADERS, TIMESTAMPS = 14 + 20 + 20, 12  # Ethernet, IPv4, TCP; the option, part of the segment size


def propagation_ns(config: Config) -> float | None:
    """Returns the constant delay of a round trip, if it is the same for all flows."""
    groups = routes.groups(config)
    if one_way.own_base_rtt(groups):
        return None
    paths = config.get("paths", {})
    totals = {
        sum(
            one_way.delay_ns(paths.get(name, []))
            for way in routes.DIRECTIONS
            for name in routes.route(group, way)
        )
        for group in groups
    }
    return (totals.pop() or None) if len(totals) == 1 else None


def payload_most(config: Config, report: RunSummary) -> str:
    """Returns a sentence on how much of the link's rate can be goodput; empty where it differs.

    A packet that fills the segment size takes headers of Ethernet, IPv4 and TCP, and what the link
    adds to each frame: preamble, FCS and gap.
    """
    found = summary.busiest(report)
    stages = config.get("paths", {}).get(found[0], []) if found else []
    links = [stage["link"] for stage in stages if isinstance(stage, dict) and "link" in stage]
    segments = {
        (units.config_bytes(group.get("mss")), group.get("timestamps"))
        for group in routes.groups(config)
    }
    if found is None or len(links) != 1 or len(segments) != 1:
        return ""
    ((mss, timestamps),) = segments
    added = units.config_bytes(links[0].get("overhead"))
    if links[0].get("framing") != "ethernet" or mss is None or added is None:
        return ""
    payload, frame = mss - (TIMESTAMPS if timestamps == "yes" else 0), mss + HEADERS + added
    rate = found[1].rate_max_bps or found[1].rate_bps
    most = f" ({units.rate(rate * payload / frame)})" if rate else ""
    return (
        f" Of the link's rate at most {units.percent(payload / frame, 1)}{most} can be goodput:"
        f" {payload:,} of the {frame:,} bytes of a packet are payload."
    )

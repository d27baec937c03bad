# SPDX-License-Identifier: BSD-3-Clause
"""Disciplines with a queue per flow: isolation and equal shares."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT, Simulate

RTTS = """
duration: 60s
warmup: 10s
paths:
  forward:
    - link: {rate: 50Mbit, queue: fifo}
    - delay: {delay: 5ms}
  reverse:
    - delay: {delay: 5ms}
flows:
  - {count: 5, cc: cubic, stagger: 100ms, base_rtt: 10ms}
  - {count: 5, cc: cubic, stagger: 100ms, base_rtt: 100ms}
telemetry: {level: 1, interval: 100ms}
"""


def test_the_seed_decides_which_flows_share_a_queue(simulate: Simulate) -> None:
    """In four queues, ten flows share; in 65536 none does, and seeds make no difference."""
    few = "paths.forward.link.queue={drr: {limit: 100ms, buckets: 4}}"
    many = "paths.forward.link.queue={fq_codel: {}}"
    first, repeated, other = (simulate(RTTS, few, f"seed={n}") for n in (1, 1, 2))
    alone = simulate(RTTS, many)

    assert first.summary["digest"] == repeated.summary["digest"]
    goodputs = [[g["goodput_bps"] for g in run.groups] for run in (first, other)]
    assert goodputs[0] != goodputs[1]
    assert first.summary["seed_used"]
    assert not alone.summary["seed_used"]


PAGE = (ROOT / "tools/docs/how-to/flent.md").read_text()
TINS = re.findall(r"^\| (drop-tail|`\w+`) \| ([\d.| ]+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("queue", "said"), TINS, ids=[queue for queue, _ in TINS])
def test_tins_part_rrul_as_the_page_says(simulate: Simulate, queue: str, said: str) -> None:
    mode = queue.strip("`")
    cake = f".link.queue={{cake: {{diffserv: {mode}}}}}"
    ways = () if mode == "drop-tail" else (f"paths.forward{cake}", f"paths.reverse{cake}")
    run = simulate("flent/rrul", *ways)

    of = {group["name"]: group for group in run.groups}
    found = [of[f"TCP upload {mark}"]["goodput_bps"] / 1e6 for mark in ("BE", "BK", "CS5", "EF")]
    pings = (of[f"Ping (ms) UDP {mark}"]["transfers"] for mark in ("BE", "BK", "EF"))
    found += [ping["completion_p50_ns"] / 1e6 for ping in pings]
    assert found == pytest.approx([float(number) for number in said.split("|")], rel=0.03)


def test_tins_are_told_to_those_who_ask_for_others(weir_sim: Path) -> None:
    argv = [weir_sim, ROOT / "configs/cake-hosts.yaml", "--check", "-o"]
    argv += ["paths.forward.link.queue.cake.diffserv=diffserv5"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "diffserv: 'diffserv5' is not one of besteffort, precedence, diffserv3" in done.stderr

# SPDX-License-Identifier: BSD-3-Clause
"""What a plan says that cells cost: by their rate or as fast as before, to when a rule may end."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from weir.many import costs

CORE = """
duration: 3h
warmup: 5min
paths: {forward: [{link: {rate: 10Gbit}}], reverse: [{delay: {delay: 20ms}}]}
"""


@pytest.mark.parametrize(
    ("rule", "seconds"),
    [
        ("", (10800, 10800)),
        ("stop: {metric: none, over: 20min}", (10800, 10800)),
        ("stop: {metric: [jfi, drops], over: 20min}", (1560, 10800)),
        ("stop: {metric: jfi, over: 4h}", (10800, 10800)),
    ],
)
def test_a_rule_may_end_a_run_from_its_first_comparison_on(
    rule: str, seconds: tuple[float, float]
) -> None:
    found = costs.cost(yaml.safe_load(CORE + rule))
    pkts_per_s = 10e9 / (1538 * 8)
    asked = [costs.START_S + pkts_per_s * each * costs.NS_PER_PACKET / 1e9 for each in seconds]
    assert [found.least_s, found.most_s] == pytest.approx(asked)
    fast = costs.cost(yaml.safe_load(CORE + rule), speed=0.01)
    assert [fast.least_s, fast.most_s] == pytest.approx([costs.START_S + s / 100 for s in seconds])


def test_a_cell_is_as_fast_as_before(tmp_path: Path) -> None:
    """Processor seconds of the measured part over its virtual seconds; without a run nothing."""
    assert costs.speed(tmp_path) is None
    summary = tmp_path / "summary.json"
    summary.write_text('{"measured": null}')
    assert costs.speed(tmp_path) is None
    summary.write_text('{"measured": {"cpu_s": 19.0, "wall_s": 80, "virtual_s": 100}}')
    assert costs.speed(tmp_path) == pytest.approx(0.19)


def test_a_cost_is_shown() -> None:
    assert str(costs.Cost(190.5, 1316.8)) == "190.5 to 1,316.8 s"
    assert str(costs.Cost(2.0, 2.0)) == "2.0 s"

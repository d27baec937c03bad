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


def folder_of(place: Path, summary: str, config: str = CORE) -> Path:
    place.mkdir(exist_ok=True)
    (place / "summary.json").write_text(summary)
    (place / "config.yaml").write_text(config)
    return place


MEASURED = '{"measured": {"cpu_s": 19.0, "wall_s": 80, "virtual_s": 100}}'


def test_a_cell_is_as_fast_as_before(tmp_path: Path) -> None:
    """Processor seconds of the measured part over its virtual seconds; without a run nothing."""
    assert costs.speed(tmp_path) is None
    assert costs.speed(folder_of(tmp_path, '{"measured": null}')) is None
    found = costs.speed(folder_of(tmp_path, MEASURED))
    assert found is not None
    assert found.of(yaml.safe_load(CORE)) == pytest.approx(0.19)


def test_a_cell_of_ten_times_the_rate_takes_ten_times_as_long(tmp_path: Path) -> None:
    """--quick has a part of the rate of --full; one without a link takes what the other took."""
    found = costs.speed(folder_of(tmp_path, MEASURED, CORE.replace("10Gbit", "1Gbit")))
    assert found is not None
    assert found.of(yaml.safe_load(CORE)) == pytest.approx(1.9)
    assert found.of({"paths": {"forward": [], "reverse": []}}) == pytest.approx(0.19)


def test_others_cost_what_a_packet_cost(tmp_path: Path) -> None:
    """All packets that the links can carry count alike, however long a run was."""
    names = {"core": CORE, "edge": CORE.replace("10Gbit", "2Gbit")}
    found = [costs.speed(folder_of(tmp_path / n, MEASURED, c)) for n, c in names.items()]
    each = costs.ns_per_packet([one for one in found if one is not None])
    assert each == pytest.approx(2 * 19e9 / (100 * (10e9 + 2e9) / (1538 * 8)))
    assert costs.ns_per_packet([]) is None
    dear = costs.cost(yaml.safe_load(CORE), ns_per_packet=each)
    assumed = costs.cost(yaml.safe_load(CORE))
    part = (dear.most_s - costs.START_S) / (assumed.most_s - costs.START_S)
    assert part == pytest.approx(each / costs.NS_PER_PACKET)


def test_a_cost_is_shown() -> None:
    assert str(costs.Cost(190.5, 1316.8)) == "190.5 to 1,316.8 s"
    assert str(costs.Cost(2.0, 2.0)) == "2.0 s"

# SPDX-License-Identifier: BSD-3-Clause
"""PCC Allegro and Vivace against what their papers say of random loss and of queues."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Run, Simulate

CONFIG = "vivace-loss"
LOSS_UTILITY = "{vivace: {utility: loss}}"


def lossy(simulate: Simulate, cc: str, rate: str) -> Run:
    """One flow over 100 Mbit/s and 30 ms with random loss."""
    return simulate(
        CONFIG, f"flows.0.cc={cc}", f"paths.forward.loss.rate={rate}", "telemetry.level=1"
    )


@pytest.mark.parametrize("cc", ["pcc", "vivace", LOSS_UTILITY])
def test_one_percent_of_loss_is_ignored(simulate: Simulate, cc: str) -> None:
    """Both papers: the link stays full, where NewReno collapses."""
    ours = lossy(simulate, cc, "1%").link["utilisation"]

    assert ours >= 0.9
    assert lossy(simulate, "newreno", "1%").link["utilisation"] < 0.1


def test_pcc_gives_way_past_five_percent(simulate: Simulate) -> None:
    """The sigmoid's edge: nearly all of the link at 3 %, nearly nothing at 8 %."""
    assert lossy(simulate, "pcc", "3%").link["utilisation"] >= 0.95
    assert lossy(simulate, "pcc", "8%").link["utilisation"] <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "said"), [("1%", 0.96), ("3%", 0.65), ("5%", 0.35)])
def test_what_vivace_bears_without_the_delay(simulate: Simulate, loss: str, said: float) -> None:
    """As the head of vivace.c says: near 5 %, where its gradient is zero, chance decides.

    The mean of five seeds, whose spread at 3 and at 5 % is 0.2 to 0.3.
    """
    shares = [
        simulate(
            CONFIG,
            f"seed={seed}",
            "telemetry.level=0",
            f"flows.0.cc={LOSS_UTILITY}",
            f"paths.forward.0.loss.rate={loss}",
        ).groups[0]["goodput_bps"]
        / (100e6 * 1448 / 1538)
        for seed in range(1, 6)
    ]

    assert np.mean(shares) == pytest.approx(said, abs=0.03 if loss == "1%" else 0.15)


def test_vivace_keeps_the_queue_short(simulate: Simulate) -> None:
    """With dRTT/dt in it, no queue stays; with loss alone, and in PCC, the buffer fills."""
    queue = {
        cc: lossy(simulate, cc, "0%").link["queue_mean_pkts"]
        for cc in ("pcc", "vivace", LOSS_UTILITY)
    }

    assert queue["vivace"] < 10
    assert queue[LOSS_UTILITY] > 10 * queue["vivace"]
    assert queue["pcc"] > 10 * queue["vivace"]


def test_two_vivace_flows_share(simulate: Simulate) -> None:
    """NSDI 2018, section 4.2: its utility has one fair equilibrium, and the ascent finds it."""
    run = simulate(
        CONFIG,
        "paths.forward.loss.rate=0%",
        "flows.0={count: 2, cc: vivace, stagger: 5s}",
        "telemetry.level=1",
        "duration=120s",
        "warmup=60s",
    )

    assert run.summary["jfi"] >= 0.9
    assert run.link["utilisation"] >= 0.85

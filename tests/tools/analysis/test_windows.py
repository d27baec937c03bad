# SPDX-License-Identifier: BSD-3-Clause
"""Windows of flows: exact sums of intervals, Jain's index, the ellipse of a covariance."""

import numpy as np
import polars as pl
import pytest
from weir.analysis import windows


def rated(flow, goodputs, rtts, samples=1):
    """Intervals of one second."""
    n = len(goodputs)
    return pl.DataFrame(
        {
            "time_s": np.arange(n) + 0.5,
            "flow_id": np.full(n, flow, np.uint32),
            "group": np.zeros(n, np.uint16),
            "length_ns": np.full(n, 10**9),
            "goodput_bps": np.asarray(goodputs, float),
            "rtt_mean_ns": np.asarray(rtts, np.uint32),
            "rtt_samples": np.full(n, samples, np.uint32),
        }
    )


def test_a_window_is_the_mean_of_its_intervals():
    found = windows.windows(rated(3, [1, 3, 5, 7], [10, 20, 30, 40]), 2.0, 4.0)
    assert found["time_s"].to_list() == [1.0, 3.0]
    assert found["goodput_bps"].to_list() == [2.0, 6.0]
    assert found["rtt_mean_ns"].to_list() == [15.0, 35.0]
    silent = windows.windows(rated(3, [0, 0], [0, 0], samples=0), 2.0, 2.0)
    assert silent["rtt_mean_ns"].to_list() == [None]


def test_fairness_is_jains_index_of_each_window():
    both = pl.concat([rated(0, [3, 1, 0], [1] * 3), rated(1, [1, 1, 0], [1] * 3)])
    found = windows.jfi_over_time(windows.windows(both, 1.0, 3.0))
    assert found["jfi"].to_list() == [pytest.approx(16 / 20), 1.0, None]


@pytest.mark.parametrize("duration_s", [0.5, 5.0, 60.0, 10800.0])
def test_windows_are_whole_intervals_and_not_too_many(duration_s):
    length = windows.length_s(duration_s, 100_000_000)
    assert length / 0.1 == pytest.approx(round(length / 0.1))
    assert duration_s / length <= windows.WINDOWS * 1.05 or length == 0.1


def test_an_ellipse_has_the_variance_of_its_points():
    """Of points on x = +-2e6, y = +-1e9: one standard deviation is these very lengths."""
    x, y = np.array([-2e6, 2e6, -2e6, 2e6]) + 1e7, np.array([-1e9, -1e9, 1e9, 1e9]) + 5e9
    found = windows.ellipse(x, y)
    assert (found.x, found.y) == (1e7, 5e9)
    assert np.ptp(found.contour_x) == pytest.approx(4e6, rel=1e-3)
    assert np.ptp(found.contour_y) == pytest.approx(2e9, rel=1e-3)


def test_an_ellipse_of_one_point_is_the_point_and_of_none_is_none():
    one = windows.ellipse(np.array([3.0, np.nan]), np.array([4.0, 1.0]))
    assert set(one.contour_x) == {3.0}
    assert set(one.contour_y) == {4.0}
    assert windows.ellipse(np.array([np.nan]), np.array([1.0])) is None

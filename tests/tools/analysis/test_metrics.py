# SPDX-License-Identifier: BSD-3-Clause
"""Metrics: exact numbers on small frames, invariants on arbitrary ones."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from weir.analysis import metrics

shares = st.lists(st.floats(0, 1e12), min_size=1, max_size=50)
U64 = pl.UInt64


def interval(rows):
    """Rows of (ts_ms, flow, group, acked_bytes, rtt_ms, samples)."""
    return pl.DataFrame(
        {
            "ts_ns": pl.Series([r[0] * 1_000_000 for r in rows], dtype=U64),
            "flow_id": pl.Series([r[1] for r in rows], dtype=pl.UInt32),
            "group": pl.Series([r[2] for r in rows], dtype=pl.UInt16),
            "acked_bytes": pl.Series([r[3] for r in rows], dtype=U64),
            "delivered_bytes": pl.Series([r[3] for r in rows], dtype=U64),
            "rtt_mean_ns": pl.Series([r[4] * 1_000_000 for r in rows], dtype=pl.UInt32),
            "rtt_samples": pl.Series([r[5] for r in rows], dtype=pl.UInt32),
            "sent_segs": pl.Series([r[5] for r in rows], dtype=pl.UInt32),
            "retransmits": pl.Series([1 for _ in rows], dtype=pl.UInt32),
            "cwnd_reductions": pl.Series([2 for _ in rows], dtype=pl.UInt16),
            "drops": pl.Series([3 for _ in rows], dtype=pl.UInt16),
        }
    )


def flow_rows(rows):
    """Rows of (goodput_bps, rtt_s, sent_segs, halvings, drops) as per_flow gives them."""
    goodput, rtt, sent, halvings, drops = zip(*rows, strict=True)
    return pl.DataFrame(
        {
            "flow_id": pl.Series(range(len(rows)), dtype=pl.UInt32),
            "group": pl.Series([0] * len(rows), dtype=pl.UInt16),
            "goodput_bps": pl.Series(goodput, dtype=pl.Float64),
            "acked_bytes": pl.Series(goodput, dtype=pl.Float64),
            "rtt_mean_ns": pl.Series(
                [None if r is None else r * 1e9 for r in rtt], dtype=pl.Float64
            ),
            "sent_segs": pl.Series(sent, dtype=U64),
            "cwnd_reductions": pl.Series(halvings, dtype=U64),
            "drops": pl.Series(drops, dtype=U64),
        }
    )


def test_jfi_of_known_shares():
    # Jain, Chiu, Hawe 1984: k of n users served equally, the others not at all: k/n.
    assert metrics.jfi([1, 1, 1, 0]) == pytest.approx(0.75)
    assert metrics.jfi([1, 2, 3]) == pytest.approx(36 / (3 * 14))
    assert metrics.jfi([5]) == 1
    assert metrics.jfi([]) is None
    assert metrics.jfi([0, 0]) is None


@pytest.mark.parametrize("bad", [[-1, 2], [float("nan")], [float("inf"), 1]])
def test_jfi_refuses_what_is_no_share(bad):
    with pytest.raises(ValueError, match="finite"):
        metrics.jfi(bad)


@given(shares)
def test_jfi_is_between_one_nth_and_one(x):
    index = metrics.jfi(x)
    assert (index is None) == (max(x) == 0)
    assert index is None or 1 / len(x) <= index <= 1


@given(shares, st.floats(1e-6, 1e6))
def test_jfi_does_not_depend_on_the_unit(x, scale):
    assume(min((v for v in x if v > 0), default=1) > 1e-200)
    index, scaled = metrics.jfi(x), metrics.jfi([v * scale for v in x])
    assert scaled == pytest.approx(index, rel=1e-9) if index is not None else scaled is None


@given(shares, st.randoms())
def test_jfi_does_not_depend_on_the_order(x, random):
    shuffled = list(x)
    random.shuffle(shuffled)
    assert metrics.jfi(shuffled) == pytest.approx(metrics.jfi(x)) or max(x) == 0


@given(st.integers(1, 40), st.floats(1e-3, 1e9))
def test_equal_shares_are_fair(n, share):
    assert metrics.jfi([share] * n) == pytest.approx(1)


def test_utilisation():
    assert metrics.utilisation(125_000_000, 1e9, 1e9) == pytest.approx(1)
    assert metrics.utilisation(1, 0, 1e9) is None
    assert metrics.utilisation(1, 1e9, 0) is None


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(0, 100))
def test_percentile_is_one_of_the_values_and_covers_its_share(x, p):
    value = metrics.percentile(x, p)
    assert value in x
    assert sum(v <= value for v in x) >= p / 100 * len(x) - 1e-9


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 5)), max_size=60))
def test_ecdf_rises_to_one(pairs):
    x, share = metrics.ecdf([v for v, _ in pairs], [w for _, w in pairs])
    assert (np.diff(x) > 0).all()
    assert (np.diff(share) > 0).all()
    assert share.size == 0 or share[-1] == pytest.approx(1)
    assert (share.size == 0) == (sum(w for _, w in pairs) == 0)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=200))
def test_binned_cdf_is_the_ecdf_up_to_a_bin(values):
    exact, exact_share = metrics.ecdf(values)
    binned = metrics.Binned()
    for chunk in (values[:70], values[70:]):
        binned.add(np.array(chunk, np.uint64))
    x, share = binned.cdf()
    width = max(values) / 65535 + 1
    for q in (0.1, 0.5, 0.99, 1.0):
        coarse = metrics.quantile_of_cdf(x, share, q)
        assert 0 <= metrics.quantile_of_cdf(exact, exact_share, q) - coarse <= width


def test_nothing_has_no_distribution():
    assert metrics.ecdf([])[0].size == 0
    assert metrics.Binned().cdf()[0].size == 0
    assert metrics.quantile_of_cdf(*metrics.ecdf([]), 0.5) is None
    assert metrics.percentile([], 50) is None


def test_a_sum_of_what_is_not_known_is_not_known():
    """A kernel does not say how often it reduced its window; a flow before the warm-up has 0."""
    frame = interval([(100, 0, 0, 1000, 20, 1), (200, 0, 0, 3000, 40, 3), (200, 1, 1, 4000, 10, 2)])
    early = interval([(100, 2, 1, 5, 9, 1)])
    kernels = frame.with_columns(
        cwnd_reductions=pl.when(pl.col("flow_id") != 0).then("cwnd_reductions")
    )
    for frames in ([pl.concat([kernels, early])], [kernels[:1], kernels[1:], early]):
        flows = metrics.flow_table(metrics.tally(frames, 0.1e9 * 1.5), 0.1e9)
        assert flows["cwnd_reductions"].to_list() == [None, 2, 0]
        assert flows["drops"].to_list() == [3, 3, 0]
        assert metrics.per_group(flows)["cwnd_reductions"].to_list() == [None, 2]
        assert metrics.losses_per_halving(flows).total == 1.5


def test_goodput_and_rtt_per_flow_and_group():
    frame = interval(
        [
            (100, 0, 0, 1000, 20, 1),
            (200, 0, 0, 3000, 40, 3),
            (100, 1, 1, 4000, 10, 2),
            (200, 1, 1, 0, 0, 0),
        ]
    )
    flows = metrics.per_flow(frame, 0.2e9)
    assert flows["goodput_bps"].to_list() == [160_000, 160_000]
    # The mean over ACKs, not over intervals.
    assert flows["rtt_mean_ns"].to_list() == [35e6, 10e6]
    assert flows["cwnd_reductions"].to_list() == [4, 4]
    groups = metrics.per_group(flows)
    assert groups["flows"].to_list() == [1, 1]
    assert groups["jfi"].to_list() == [1, 1]


def test_flows_that_ended_before_are_counted_with_nothing():
    flows = metrics.per_flow(interval([(100, 0, 0, 5, 9, 1), (200, 1, 0, 1000, 9, 1)]), 1e8, 1e8)
    assert flows["goodput_bps"].to_list() == [0, 80_000]
    assert flows["rtt_mean_ns"].to_list() == [None, 9e6]


def test_a_flow_without_samples_has_no_rtt():
    flows = metrics.per_flow(interval([(100, 0, 0, 0, 0, 0)]), 1e9)
    assert flows["rtt_mean_ns"].to_list() == [None]


def test_a_cdf_of_bins_rises_within_them_only():
    """Values of 10 and 64 to 65; half of them in each bin; the largest is 64."""
    x, share = metrics.within_bins(np.array([10.0, 65.0]), np.array([0.5, 1.0]), 64.0, 2)
    assert x.tolist() == [10, 10, 64, 64]
    assert share.tolist() == [0, 0.5, 0.5, 1]
    x, _ = metrics.within_bins(np.array([1055.0]), np.array([1.0]), 2000.0, 2)
    assert x.tolist() == [1024, 1055]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9)), min_size=1, max_size=40))
def test_bytes_of_flows_add_up_to_the_groups(acked):
    frame = interval([(100, i, group, n, 1, 1) for i, (group, n) in enumerate(acked)])
    flows = metrics.per_flow(frame, 1e9)
    total = sum(n for _, n in acked) * 8
    assert flows["goodput_bps"].sum() == pytest.approx(total)
    assert metrics.per_group(flows)["goodput_bps"].sum() == pytest.approx(total)


def test_the_warm_up_is_cut_at_the_end_of_intervals():
    frame = interval([(t, 0, 0, t, 1, 1) for t in (100, 200, 300)])
    assert metrics.between(frame, 100e6)["acked_bytes"].to_list() == [200, 300]
    assert metrics.between(frame, 0, 200e6)["acked_bytes"].to_list() == [100, 200]


def test_step_is_the_usual_distance():
    times = [100, 200, 300, 350]  # a run that was interrupted
    assert metrics.step_ns(interval([(t, 0, 0, 0, 0, 0) for t in times])) == 100_000_000
    assert metrics.step_ns(interval([(100, 0, 0, 0, 0, 0)])) == 100_000_000
    assert metrics.step_ns(interval([])) == 0


def test_rates_are_over_each_interval_s_own_length():
    rows = [(t, flow, 0, 1000, 1, 1) for t in (100, 200, 250) for flow in (0, 1)]
    rated = metrics.with_rates(interval(rows))
    assert rated["goodput_bps"].to_list() == [80_000] * 4 + [160_000] * 2
    assert rated["time_s"].to_list() == [0.05, 0.05, 0.15, 0.15, 0.225, 0.225]
    assert metrics.with_rates(interval([])).height == 0


def test_goodput_over_time_is_of_what_was_delivered():
    """An ACK that fills a hole acknowledges at once what arrived in intervals before."""
    late = interval([(t, 0, 0, acked, 1, 1) for t, acked in ((100, 0), (200, 0), (300, 3000))])
    delivered = pl.Series("delivered_bytes", [1000] * 3, dtype=U64)
    rated = metrics.with_rates(late.with_columns(delivered))
    assert rated["goodput_bps"].to_list() == [80_000] * 3
    assert metrics.per_flow(rated, 3e8)["goodput_bps"].to_list() == [80_000]


def test_a_late_start_does_not_lengthen_the_first_interval():
    rated = metrics.with_rates(interval([(t, 0, 0, 1000, 1, 1) for t in (1000, 1100, 1200)]))
    assert rated["goodput_bps"].to_list() == [80_000] * 3


def test_figures_of_a_link_from_its_intervals():
    links = pl.DataFrame(
        {
            "ts_ns": pl.Series([10**8, 2 * 10**8, 2 * 10**8], dtype=U64),
            "link": [0, 0, 1],
            "rate_bps": [10**8] * 3,
            "out_bytes": [1_250_000, 0, 625_000],
            "out_pkts": [100, 0, 50],
            "queue_mean_pkts": [4.0, 0.0, 1.0],
            "sojourn_mean_ns": [7, 0, 9],
            "drops": [1, 2, 3],
            "marks": [0, 0, 1],
        }
    )
    first, second = metrics.per_link(metrics.with_times(links)).to_dicts()
    assert first["utilisation"] == pytest.approx(0.5)
    assert first["queue_mean_pkts"] == 2
    assert first["queue_mean_ns"] == 7  # of packets: none saw the empty interval
    assert (first["drops"], second["marks"]) == (3, 1)


def test_spread_over_time():
    rated = metrics.with_rates(interval([(100, flow, 0, flow * 100, 1, 1) for flow in range(101)]))
    (row,) = metrics.spread_over_time(rated, "acked_bytes", 0.05, 0.95).rows(named=True)
    names = ("low_acked_bytes", "median_acked_bytes", "high_acked_bytes")
    assert tuple(row[name] for name in names) == (500, 5000, 9500)


def test_typical_flows_are_median_least_and_best():
    flows = metrics.per_flow(
        interval([(100, flow, flow // 50, flow, 1, 1) for flow in range(100)]), 1e9
    )
    roles = {24: "median", 74: "median", 0: "least", 50: "least", 49: "best", 99: "best"}
    assert metrics.typical_flows(flows, 6) == roles
    assert list(roles) != list(metrics.typical_flows(flows, 6)) == sorted(roles)
    assert metrics.typical_flows(flows.head(3), 6) == {0: "", 1: "", 2: ""}


records = st.lists(
    st.tuples(
        st.integers(1, 9).map(lambda k: 100 * k),
        st.integers(0, 3),
        st.integers(0, 10**9),
        st.integers(1, 4000),
        st.integers(0, 50),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.slow
@given(records, st.integers(0, 40), st.sampled_from([0, 300e6]))
def test_records_add_up_the_same_in_any_pieces(rows, cut, t0_ns):
    rows = [(ts, flow, flow % 2, acked, rtt, n) for ts, flow, acked, rtt, n in rows]
    whole = metrics.flow_table(metrics.tally([interval(rows)], t0_ns), 1e9)
    pieces = [interval(part) for part in (rows[:cut], rows[cut:]) if part]
    split = metrics.flow_table(metrics.tally(pieces, t0_ns), 1e9)
    exact = pl.exclude("rtt_mean_ns")
    assert split.select(whole.columns).select(exact).equals(whole.select(exact))
    for row in whole.rows(named=True):
        late = [r for r in rows if r[1] == row["flow_id"] and r[0] * 1e6 > t0_ns]
        rtts = sorted(rtt for *_, rtt, n in late for _ in range(n))
        assert row["acked_bytes"] == sum(r[3] for r in late)
        assert row["drops"] == 3 * len(late)
        if not rtts:
            assert row["rtt_mean_ns"] is row["rtt_p50_ns"] is None
            continue
        assert row["rtt_mean_ns"] == pytest.approx(1e6 * sum(rtts) / len(rtts))
        for p in (50, 99):
            exact_ns = 1e6 * metrics.percentile(rtts, p)
            assert row[f"rtt_p{p}_ns"] == pytest.approx(exact_ns, rel=1e-3)


def test_percentiles_of_a_group_are_of_its_samples_not_of_its_flows():
    counted = metrics.tally([interval([(100, 0, 0, 1, 10, 98), (100, 1, 0, 1, 50, 2)])])
    (row,) = metrics.rtt_percentiles(counted.rtts, "group").rows(named=True)
    assert row["rtt_p50_ns"] == pytest.approx(10e6, rel=1e-3)
    assert row["rtt_p99_ns"] == pytest.approx(50e6, rel=1e-3)


def test_the_objective_trades_throughput_for_delay():
    """log(throughput) - delta log(delay): what half the delay is worth at delta 0.5 and at 1."""
    base = metrics.objective(10e6, 40e6)
    assert base == pytest.approx(math.log(10) - 0.5 * math.log(40))
    assert metrics.objective(10e6 / math.sqrt(2), 20e6) == pytest.approx(base)
    assert metrics.objective(5e6, 20e6, 1) == pytest.approx(metrics.objective(10e6, 40e6, 1))
    assert metrics.objective(0, 40e6) is None
    assert metrics.objective(10e6, 0) is None


def test_rtx_overhead_is_per_first_transmission():
    """As mvfst has it: 25 of 100 sent again for 75 that arrive are a third, not a quarter."""
    assert metrics.rtx_overhead(25, 100) == pytest.approx(1 / 3)
    assert metrics.rtx_overhead(0, 0) is None


def test_groups_share_what_there_is():
    flows = metrics.per_flow(
        interval([(100, 0, 0, 600, 1, 1), (100, 1, 0, 200, 1, 1), (100, 2, 1, 200, 1, 1)]), 1e9
    )
    groups = metrics.per_group(flows)
    assert groups["share"].to_list() == [0.8, 0.2]
    assert groups["drops"].to_list() == [6, 3]


def mathis_rows(c, mss, flows):
    """Flows (rtt_s, sent, halvings, losses per halving) that obey the law with halvings exactly."""
    return flow_rows(
        [
            (8 * c * mss / (rtt * (halvings / sent) ** 0.5), rtt, sent, halvings, halvings * losses)
            for rtt, sent, halvings, losses in flows
        ]
    )


law = st.tuples(st.floats(1e-3, 2), st.integers(10**3, 10**7), st.integers(1, 900))


@given(st.floats(0.1, 10), st.lists(law, min_size=1, max_size=30), st.integers(1, 12))
def test_mathis_finds_the_constant_and_the_identity(c, flows, losses):
    made = mathis_rows(c, 1448, [(*flow, losses) for flow in flows])
    fit = metrics.mathis(made, "cwnd_reductions", 1448)
    by_loss = metrics.mathis(made, "drops", 1448)
    assert fit.c == pytest.approx(c)
    assert fit.error_median == pytest.approx(0, abs=1e-9)
    assert by_loss.c == pytest.approx(c * losses**0.5)
    assert metrics.losses_per_halving(made).total == pytest.approx(losses)


def test_mathis_by_hand():
    # p = 1e-4, x = 1448 / (0.1 s * 0.01) = 1.448e6 B/s for both; y = 1 x and 2 x.
    flows = flow_rows([(8 * 1.448e6, 0.1, 10**5, 10, 0), (16 * 1.448e6, 0.1, 10**5, 10, 40)])
    fit = metrics.mathis(flows, "cwnd_reductions", 1448)
    assert fit.c == pytest.approx(1.5)
    assert fit.error.tolist() == pytest.approx([0.5, 0.25])
    assert fit.error_median == pytest.approx(0.375)
    by_loss = metrics.mathis(flows, "drops", 1448)
    assert by_loss.flow_id.tolist() == [1]  # the first lost nothing
    assert by_loss.c == pytest.approx(4)


@given(st.lists(law, min_size=2, max_size=30), st.randoms())
def test_mathis_is_the_least_squares(flows, random):
    made = mathis_rows(1.3, 1448, [(*flow, 1) for flow in flows])
    noisy = made.with_columns(
        goodput_bps=made["goodput_bps"] * pl.Series([random.uniform(0.5, 2) for _ in flows])
    )
    fit = metrics.mathis(noisy, "cwnd_reductions", 1448)
    x = made["goodput_bps"].to_numpy() / 8 / 1.3
    y = noisy["goodput_bps"].to_numpy() / 8
    squares = [float(((y - c * x) ** 2).sum()) for c in (fit.c, 0.99 * fit.c, 1.01 * fit.c)]
    assert squares[0] == min(squares)


def test_mathis_says_which_flows_it_left_out():
    rows = [(1e6, 0.1, 1000, 4, 9), (0, None, 0, 0, 0), (1e6, None, 900, 1, 1), (1e6, 0.1, 9, 0, 2)]
    fit = metrics.mathis(flow_rows(rows), "cwnd_reductions", 1448)
    assert fit.left_out == {"nothing delivered": 1, "no RTT sample": 1, "no loss event": 1}
    assert fit.flow_id.tolist() == [0]
    nothing = metrics.mathis(flow_rows(rows[1:]), "cwnd_reductions", 1448)
    assert (nothing.c, nothing.error_median) == (None, None)


def test_losses_per_halving():
    counted = metrics.losses_per_halving(
        flow_rows([(1, 1, 1, 2, 12), (1, 1, 1, 1, 3), (1, 1, 1, 0, 3)])
    )
    assert counted.total == 6  # also of the drops of flows that never halved
    assert counted.per_flow.tolist() == [6, 3]
    assert metrics.losses_per_halving(flow_rows([(1, 1, 1, 0, 0)])).total is None


def test_completion_times_by_size():
    """Two bins of one group by hand; the unfinished and what began in the warm-up do not count."""
    ms = 1_000_000
    frame = pl.DataFrame(
        {
            "ts_ns": [110 * ms, 130 * ms, 250 * ms, 300 * ms, 90 * ms],
            "start_ns": [100 * ms, 100 * ms, 150 * ms, 100 * ms, 50 * ms],
            "size_bytes": [1000, 10_000, 2_000_000, 1000, 1000],
            "ideal_ns": [10 * ms, 10 * ms, 25 * ms, 10 * ms, 10 * ms],
            "group": [0, 0, 0, 0, 0],
            "event": [2, 2, 2, 5, 2],
        }
    )
    small, large = metrics.completion_times(frame, 2, 100 * ms).to_dicts()
    assert (small["count"], large["count"]) == (2, 1)
    assert small["mean_ns"] == 20 * ms
    assert small["p50_ns"] == 10 * ms  # half of them do not exceed it: of two, the lower
    assert (small["unfinished"], large["unfinished"]) == (1, 0)
    assert small["slowdown_mean"] == 2.0
    assert large["p99_ns"] == 100 * ms
    assert large["slowdown_p99"] == 4.0
    assert large["mean_bytes"] == 2_000_000

# SPDX-License-Identifier: BSD-3-Clause
"""The CoreScale study: what is measured in a cell is what its records say, and the published
numbers follow from the published constants."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from weir.analysis import folder, metrics
from weir.studies.corescale import measures as corescale
from weir.studies.edgescale import measures as edgescale
from weir.study import claim, find, measures
from weir.study.claim import Checked, Found

(CORESCALE,) = find.chosen("corescale")
SETUPS = {setup.name: setup for setup in claim.setups(CORESCALE)}
CLAIMS = {one.says: one for experiment in CORESCALE.experiments for one in experiment.claims}
SHORT = ("duration=60s", "warmup=10s", "flows.0.jitter=1s")


@pytest.fixture(scope="module")
def tiny(weir_sim: Path, tmp_path_factory: pytest.TempPathFactory) -> folder.Run:
    """Ten NewReno flows at the edge, for a minute."""
    (cell,) = SETUPS["edge-newreno-10"].cells(False)
    out = tmp_path_factory.mktemp("edge") / "run"
    argv = [
        weir_sim,
        cell.config,
        *cell.settings(),
        *(a for o in SHORT for a in ("-o", o)),
        "--out",
        str(out),
    ]
    subprocess.run(argv, check=True)
    return folder.load(out)


def test_a_cell_is_what_the_telemetry_says(tiny: folder.Run) -> None:
    """Counted again with numpy alone."""
    records = tiny.stream("interval").records
    late = records[records["ts_ns"] > 10e9]
    goodput, sent, halvings, drops, rtt = [], [], [], [], []
    for flow in range(10):
        own = late[late["flow_id"] == flow]
        goodput.append(own["delivered_bytes"].sum() / 50)
        sent.append(own["sent_segs"].sum())
        halvings.append(own["cwnd_reductions"].sum())
        drops.append(own["drops"].sum())
        samples = own["rtt_samples"].astype(float)
        rtt.append((own["rtt_mean_ns"] * samples).sum() / samples.sum() / 1e9)
    y, sent, halvings, drops, rtt = map(np.array, (goodput, sent, halvings, drops, rtt))

    assert measures.jfi(tiny) == pytest.approx(y.sum() ** 2 / (10 * (y**2).sum()))
    assert corescale.losses(tiny) == pytest.approx(drops.sum() / halvings.sum())
    for lost, c, error in (
        (halvings, corescale.c_halving, corescale.error_halving),
        (drops, corescale.c_loss, lambda run: 100 * corescale.measured(run).by_loss.error_median),
    ):
        hit = lost > 0
        x = measures.PAYLOAD_BYTES / (rtt[hit] * np.sqrt(lost[hit] / sent[hit]))
        fitted = x @ y[hit] / (x @ x)
        assert c(tiny) == pytest.approx(fitted)
        median = np.median(np.abs(y[hit] - fitted * x) / y[hit])
        assert error(tiny) == pytest.approx(100 * median)
    assert corescale.measured(tiny) is corescale.measured(tiny)


def test_the_median_flow_is_predicted_with_another_cells_constant(tiny: folder.Run) -> None:
    """With its own constant the error is that of its own fit; with a half of it, about a half."""
    own = corescale.error_of_edge(corescale.cwnd_reductions)(tiny, tiny)
    assert own == pytest.approx(corescale.error_halving(tiny))
    flows, c = corescale.measured(tiny).flows, corescale.c_halving(tiny)
    half = metrics.mathis(flows, "cwnd_reductions", measures.PAYLOAD_BYTES, c / 2)
    assert half.error_median == pytest.approx(0.5, abs=own / 100)


def test_a_fit_with_the_rtt_of_a_full_queue(tiny: folder.Run) -> None:
    """Each flow's RTT is longer by what the longest time in the queue is above the mean one."""
    links = tiny.stream("links").records
    links = links[(links["link"] == 0) & (links["ts_ns"] > 10e9)]
    packets = links["out_pkts"] / links["out_pkts"].sum()
    more_s = (links["sojourn_max_ns"].max() - (links["sojourn_mean_ns"] * packets).sum()) / 1e9
    assert 0.01 < more_s < 0.24
    flows = corescale.measured(tiny).flows.filter(pl.col("cwnd_reductions") > 0)
    p = (flows["cwnd_reductions"] / flows["sent_segs"]).to_numpy()
    x = measures.PAYLOAD_BYTES / ((flows["rtt_mean_ns"].to_numpy() / 1e9 + more_s) * np.sqrt(p))
    y = flows["goodput_bps"].to_numpy() / 8
    assert edgescale.c_halving_when_full(tiny) == pytest.approx(x @ y / (x @ x))


def test_phases_are_shares_of_flows(weir_sim: Path, tmp_path: Path) -> None:
    """Each flow is in one phase, and both of two BBR flows drain the queue at the same time."""
    (study,) = find.chosen("edgescale")
    (cell,) = next(setup for setup in claim.setups(study) if setup.name == "phases").cells(True)
    argv = [weir_sim, cell.config, *cell.settings(), "-o", "flows.0.count=2"]
    subprocess.run([*argv, "--out", tmp_path / "run"], check=True)
    run = folder.load(tmp_path / "run")
    shares = edgescale.phases(run, np.arange(0, 60, 0.1))
    assert shares.sum(axis=0) == pytest.approx(1)
    assert shares[run.summary.groups[0].modes.index("startup"), 0] == 1
    assert edgescale.most_at_once("probe_rtt", 30)(run) == 100
    (figure,) = study.figures(Found({"phases": tmp_path / "run"}, True))
    assert len(figure.panels) == 2


def test_figure_2_follows_from_table_1() -> None:
    """The study's constants give the errors that it prints: 55, 51 and 45 %, and 8 %."""
    edge = [
        CLAIMS[f"C by {of}"].published
        for of in ("losses, edge, mean of 10 to 50 flows", "halvings, edge, likewise")
    ]
    for flows in corescale.FLOWS:
        core = CLAIMS[f"C by losses, core, {flows} flows"].published
        off = CLAIMS[f"the median flow is off by losses by, {flows} flows"].published
        assert 100 * (1 - edge[0] / core) == pytest.approx(off, abs=0.5)
    halving = CLAIMS["C by halvings, core, 1000 flows"].published
    assert 100 * abs(1 - edge[1] / halving) == pytest.approx(8, abs=0.5)


def test_quick_is_long_enough_for_a_fit() -> None:
    """12 halvings of each flow or more after the warm-up: 43, 14 and 9 s each."""
    for flows, halving_s in zip(corescale.FLOWS, (43, 14, 9), strict=True):
        quick = SETUPS[f"core-newreno-{flows}"].quick
        warmup, end = (int(override.partition("=")[2][:-1]) for override in quick[1:])
        assert (end - warmup) / halving_s > 12
        assert warmup % 10 == end % 10 == 0  # of the configs' interval


def test_what_is_published_has_a_row_run_or_not() -> None:
    """A cell that was not run is missing, and its claims stand there."""
    found = Found({}, True)
    checked = [found.check(e, c) for e in CORESCALE.experiments for c in e.claims]
    assert {one.verdict for one in checked} == {"missing", "not comparable"}
    said = {one.claim.published for one in checked}
    numbers = (3.95, 3.64, 3.24, 1.36, 1.34, 1.78, 1.47, 55.0, 51.0, 45.0, 8, 1.7, 0.4, 0.7, 75)
    assert set(numbers) <= said


def test_a_study_as_published_holds() -> None:
    """The published numbers, were they measured here."""
    for experiment in CORESCALE.experiments:
        for one in experiment.claims:
            if one.published is not None:
                assert Checked(experiment, one, (one.published,)).verdict == "holds"

# SPDX-License-Identifier: BSD-3-Clause
"""The CoreScale study: its cells run, its measures and page are right, no claim is missing."""

import dataclasses
import io
import re
import subprocess

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from weir.analysis import metrics
from weir.analysis.ring import open_ring
from weir.study import corescale, page, reproduce, validation
from weir.study.corescale import CASES, Case, Length, Measured, Plan

TINY = Length(1, 10, 60)
TINY_CASES = (
    Case("edge", ("newreno",), 10, 20, False, TINY),
    Case("edge", ("bbr",), 10, 20, False, TINY),
)


def quiet():
    return Console(quiet=True)


@pytest.fixture(scope="module")
def tiny(weir_sim, tmp_path_factory):
    """A reproduction of two short cells."""
    plan = Plan("edgescale", True, tmp_path_factory.mktemp("edge"), TINY_CASES)
    assert reproduce.run(plan, quiet(), workers=1) == 0
    return plan


def test_the_table_is_what_the_telemetry_says(tiny):
    """Counted again with numpy alone."""
    table = pl.read_parquet(tiny.out / "edgescale.parquet")
    assert table["cell"].to_list() == ["edgescale-newreno-10", "edgescale-bbr-10"]
    for row in table.rows(named=True):
        records = open_ring(tiny.out / "cells" / row["cell"] / "interval.ring").records
        late = records[records["ts_ns"] > 10e9]
        goodput, sent, halvings, drops, rtt = [], [], [], [], []
        for flow in range(10):
            own = late[late["flow_id"] == flow]
            goodput.append(own["acked_bytes"].sum() / 50)
            sent.append(own["sent_segs"].sum())
            halvings.append(own["cwnd_reductions"].sum())
            drops.append(own[metrics.drops_field(own.dtype.names)].sum())
            samples = own["rtt_samples"].astype(float)
            rtt.append((own["rtt_mean_ns"] * samples).sum() / samples.sum() / 1e9)
        y, sent, halvings, drops, rtt = map(np.array, (goodput, sent, halvings, drops, rtt))
        assert row["goodput_bps"] == pytest.approx(8 * y.sum())
        assert row["jfi"] == row["jfi_all"] == pytest.approx(y.sum() ** 2 / (10 * (y**2).sum()))
        assert (row["cwnd_reductions"], row["drops"]) == (halvings.sum(), drops.sum())
        for name, losses in (("halving", halvings), ("loss", drops)):
            hit = losses > 0
            assert row[f"left_out_{name}"] == (~hit).sum()
            if not hit.any():
                assert row[f"c_{name}"] is None
                continue
            x = 1448 / (rtt[hit] * np.sqrt(losses[hit] / sent[hit]))
            c = (x * y[hit]).sum() / (x * x).sum()
            assert row[f"c_{name}"] == pytest.approx(c)
            error = np.median(np.abs(y[hit] - c * x) / y[hit])
            assert row[f"error_{name}"] == pytest.approx(error)
        assert row["balanced"]
        assert (row["seed"], row["warmup_s"], row["virtual_s"]) == (1, 10, 60)
    newreno = table.row(0, named=True)
    assert newreno["cwnd_reductions"] > 0  # or this test has shown nothing
    assert newreno["losses_per_halving"] == newreno["drops"] / newreno["cwnd_reductions"]


def test_the_page_shows_numbers_claims_and_cells(tiny):
    text = (tiny.out / "edgescale.html").read_text()
    row = pl.read_parquet(tiny.out / "edgescale.parquet").row(0, named=True)
    for name in ("c_halving", "c_loss", "losses_per_halving"):
        assert f">{row[name]:.2f}<" in text
    assert row["digest"] in text
    assert text.count("<svg") == 3  # errors, losses, fairness; shares need two algorithms
    assert "edgescale-newreno-20" not in text  # not asked for
    assert validation.NOT_RUN in text  # but claimed
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_nothing_is_said_of_seeds_that_decide(tiny):
    assert pl.read_parquet(tiny.out / "edgescale.parquet")["seed_used"].all()
    assert "the seed changes nothing" not in (tiny.out / "edgescale.html").read_text()


def test_what_was_run_is_not_run_again(tiny):
    manifests = sorted(tiny.out.glob("cells/*/manifest.json"))
    before = [path.stat().st_mtime_ns for path in manifests]
    assert reproduce.run(tiny, quiet(), workers=1) == 0
    assert [path.stat().st_mtime_ns for path in manifests] == before
    assert len(before) == 2


def test_a_cell_that_fails_is_named_and_loses_no_other(tiny, tmp_path):
    never = dataclasses.replace(TINY_CASES[0], flows=20, quick=Length(1, 70, 60))
    plan = Plan("edgescale", True, tmp_path, (never, TINY_CASES[1]))
    assert reproduce.run(plan, quiet(), workers=1) == 1
    text = (tmp_path / "edgescale.html").read_text()
    assert "edgescale-newreno-20 failed: " in text
    assert pl.read_parquet(tmp_path / "edgescale.parquet")["cell"].to_list() == ["edgescale-bbr-10"]


def test_a_seed_that_changes_nothing_is_said_on_the_page_and_the_terminal(tmp_path):
    """Ten flows that start at once, and no loss: each seed gives the same run."""
    cases = [dataclasses.replace(case, quick=Length(0, 10, 20)) for case in TINY_CASES]
    shown = io.StringIO()
    for seeded, drawn in ((cases, "2 of 2"), ([cases[0], TINY_CASES[1]], "1 of 2")):
        plan = Plan("edgescale", True, tmp_path, seeded)
        assert reproduce.run(plan, Console(file=shown, width=120), workers=1) == 0
        sentence = f"n {drawn} cells the seed changes nothing (no loss, no jitter"
        assert "i" + sentence in shown.getvalue()
        assert "I" + sentence in (tmp_path / "edgescale.html").read_text()
    table = pl.read_parquet(tmp_path / "edgescale.parquet")
    assert table["seed_used"].to_list() == [False, True]


@pytest.mark.parametrize("quick", [True, False], ids=["quick", "full"])
def test_every_cell_is_a_config_that_weir_sim_takes(weir_sim, quick):
    for case in CASES:
        argv = [*case.cell(quick).argv(weir_sim), "--print-config"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        counts = [int(n) for n in re.findall(r"count: (\d+)\n    cc", done.stdout)]
        assert sum(counts) == case.flows
        assert len(counts) == len(case.ccs)
        assert (counts[0] == 1) == case.lone
        assert f"delay: {case.rtt_ms}ms" in done.stdout
        assert f"ack_every: {case.ack_every}" in done.stdout


def test_every_config_of_the_study_is_a_cell():
    used = {case.cell(True).config.name for case in CASES}
    there = {path.name for path in corescale.CONFIGS.glob("*scale-*.yaml")}
    assert used == there


def test_quick_fits_ten_minutes_on_two_cores():
    """12 simulated seconds of 10 Gbit/s per second and core (100 ns per packet), a quarter kept."""
    packets = sum(case.packets(True) for case in corescale.cases("corescale"))
    assert packets * 100e-9 / 2 <= 0.75 * 600


def test_quick_is_long_enough_for_a_fit():
    """12 halvings: each takes W/2 round trips, W 4/3 of a flow's mean share of BDP and queue."""
    for case in CASES:
        if case.name not in validation.CORE:
            continue
        rtt_s = 0.020 + 7 / 8 * 375e6 * 8 / 10e9
        window_segs = 4 / 3 * 10e9 / corescale.WIRE_BITS * rtt_s / case.flows
        measured_s = case.quick.duration - case.quick.warmup
        assert measured_s >= 12 * window_segs / 2 * rtt_s, case.name
        assert case.quick.warmup >= 2 * window_segs / 2 * rtt_s, case.name


# Claims.


def made(case, *, c=1.3, losses=1.7, jfi_of=(1.0,), share=None):
    """A cell whose flows obey goodput = c MSS / (RTT sqrt p) exactly, `losses` per halving."""
    weights = np.resize(jfi_of, 20)
    rtt_s, halvings = 0.3, np.full(20, 100)
    sent = (weights * 1e6).astype(int)
    goodput = 8 * c * 1448 / (rtt_s * np.sqrt(halvings / sent))
    flows = pl.DataFrame(
        {
            "flow_id": range(20),
            "group": [0] * 20 if share is None else [0] * 10 + [1] * 10,
            "goodput_bps": goodput,
            "acked_bytes": sent * 1448,
            "rtt_mean_ns": np.full(20, rtt_s * 1e9),
            "rtt_samples": sent,
            "sent_segs": sent,
            "retransmits": halvings,
            "cwnd_reductions": halvings,
            "drops": (losses * halvings).round().astype(int),
        }
    )
    groups = metrics.per_group(flows)
    if share is not None:
        groups = groups.with_columns(share=pl.Series([share, 1 - share]))
    return Measured(
        case,
        {"utilisation": 0.995, "queue_mean_pkts": 50.0},
        flows,
        groups,
        metrics.mathis(flows, "cwnd_reductions", 1448),
        metrics.mathis(flows, "drops", 1448),
        metrics.losses_per_halving(flows),
        {},
    )


def study(**changed):
    """All cells as the study has them, some changed: name=dict of made's arguments."""
    losses = {1000: 8.44, 3000: 7.16, 5000: 5.85}
    cells = {}
    for case in CASES:
        values = {"losses": losses[case.flows] if case.scale == "core" else 1.7}
        if len(case.ccs) == 2:
            values["share"] = 0.75
        values |= changed.get(case.name.replace("-", "_"), {})
        cells[case.name] = made(case, **values)
    return cells


def row(cells, what):
    (found,) = (checked for checked in validation.of(cells) if checked.what == what)
    return found


def test_a_study_as_published_meets_every_gate_but_that_errors_are_worse_by_losses():
    """With exact flows both fits are exact, and neither is worse."""
    missed = [checked.what for checked in validation.of(study()) if checked.met is False]
    assert missed == ["median error by losses, core"]
    assert all(checked.met is not None for checked in validation.of(study()) if checked.gate)


@pytest.mark.parametrize(
    ("cell", "changed", "missed"),
    [
        ("corescale_newreno_1000", {"c": 1.19}, "C by halvings, core, 1000 flows"),
        ("corescale_newreno_5000", {"c": 1.56}, "C by halvings, core, 5000 flows"),
        ("edgescale_newreno_20", {"c": 1.1}, "C by halvings, edge, 20 flows"),
        (
            "corescale_newreno_3000",
            {"c": 1.38},
            "C by halvings does not depend on the number of flows",
        ),
        ("corescale_newreno_3000", {"losses": 9}, "C by losses falls with the number of flows"),
        (
            "edgescale_newreno_10",
            {"losses": 6},
            "C by losses is larger at the core than at the edge",
        ),
        ("corescale_cubic_3000", {"jfi_of": (1, 4)}, "Jain's index, CUBIC, core"),
        ("corescale_newreno_1000", {"jfi_of": (1, 4)}, "Jain's index, NewReno, core"),
    ],
)
def test_a_gate_that_is_not_met_says_so(cell, changed, missed):
    assert row(study(), missed).met is True
    assert row(study(**{cell: changed}), missed).met is False


def with_errors(cell, factors):
    """The same cell, its flows' prediction errors replaced."""
    fit = dataclasses.replace(cell.by_halving, error=np.array(factors))
    return dataclasses.replace(cell, by_halving=fit)


def test_errors_and_identity_have_gates():
    cells = study()
    name = "corescale-newreno-1000"
    assert row(cells, "median error by halvings, core").met is True
    cells[name] = with_errors(cells[name], [0.05, 0.11, 0.2])
    assert row(cells, "median error by halvings, core").met is False
    for n, error in ((1000, 0.3), (3000, 0.2), (5000, 0.1)):
        name = f"corescale-newreno-{n}"
        worse = dataclasses.replace(cells[name].by_loss, error=np.array([error]))
        cells[name] = dataclasses.replace(with_errors(cells[name], [0.05]), by_loss=worse)
    assert row(cells, "median error by losses, core").met is True
    what = "losses per halving as the two C imply, core"
    assert row(cells, what).met is True
    odd = metrics.LossesPerHalving(cells[name].losses.total * 1.2, np.array([1.0]))
    cells[name] = dataclasses.replace(cells[name], losses=odd)
    assert row(cells, what).met is False


def test_every_claim_of_the_study_has_a_row_run_or_not():
    for cells in ({}, study()):
        said = validation.of(cells)
        text = "\n".join(f"{checked.what}: {checked.published}" for checked in said)
        for published in ("3.95", "3.64", "3.24", "1.36", "1.34", "1.78", "1.47"):
            assert re.search(rf": {published}$", text, re.M), published
        for what in (
            "C by halvings does not depend on the number of flows",
            "C by losses falls with the number of flows",
            "C by losses is larger at the core than at the edge",
            "median error by halvings, core: at most 10 %",
            "median error by losses, core: 45 to 55 %",
            "median error by halvings, edge: below 10 %",
            "losses per halving, core: 6 to 9",
            "losses per halving, edge: 1.7",
            "losses per halving as the two C imply, core: 8.44 / 7.16 / 5.85",
            "Jain's index, NewReno, core: above 0.99",
            "Jain's index, CUBIC, core: above 0.99",
            "Jain's index, BBR, core, 20 ms: as low as 0.4",
            "Jain's index, BBR, edge, 20 ms: as low as 0.7 beyond 10 flows",
        ):
            assert what in text
        for first, second in (("CUBIC", "NewReno"), ("BBR", "NewReno"), ("BBR", "CUBIC")):
            for how in ("half of the flows", "one flow"):
                assert f"share of {first} against {second}, {how} of " in text
        assert all((validation.NOT_RUN in checked.ours) == (not cells) for checked in said)
        assert all(checked.met is None for checked in said if not checked.gate or not cells)


def test_what_the_study_did_not_try_has_no_published_number_and_no_gate():
    said = {checked.what: checked for checked in validation.of(study()) if "Copa" in checked.what}
    assert {checked.published for checked in said.values()} == {validation.NOT_TRIED}
    assert not any(checked.gate or checked.deviation for checked in said.values())
    assert said["Copa, core, 5000 flows: packets in the queue per flow"].ours == "2.50"
    assert said["Copa, core, 5000 flows: link in use"].ours == "99.5 %"
    assert not [case for case in corescale.cases("edgescale") if "copa" in case.ccs]


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_every_word_of_every_claim(width):
    shown = io.StringIO()
    said = validation.of(study(corescale_newreno_1000={"c": 1.0}))
    reproduce.show_validations(said, Console(file=shown, width=width))
    words = [
        word for checked in page.validation_rows(said) for cell in checked for word in cell.split()
    ]
    assert set(words) <= set(shown.getvalue().split())
    missed = [checked for checked in said if checked.met is False]
    assert shown.getvalue().count("NOT MET") == len(missed) > 1


def test_a_variant_is_told_apart_in_table_1():
    names = [row[0] for row in page.table_1(study()).rows]
    assert names.count("core, 5,000") == 1
    assert names.count("core, 5,000, 16 per ACK") == 1


def test_differences_are_explained():
    """Every claim that can be far off and has a published number names its reason."""
    cells = study(**{f"corescale_newreno_{n}": {"losses": 1.7} for n in (1000, 3000, 5000)})
    off = [checked for checked in validation.of(cells) if abs(checked.deviation or 0) > 0.15]
    assert off
    for checked in off:
        assert checked.why in validation.WHY, checked.what
    shown = "".join(page.differences(validation.of(cells)))
    assert "Losses at the core." in shown
    assert "C by halvings at the edge." not in shown  # 1.3 is 12 % off


def test_a_plan_is_shown_without_running(weir, tmp_path):
    done = weir("reproduce", "corescale", "--plan", "--workers", "2")
    assert done.status == 0
    named = re.findall(
        r"^(?:core|edge)scale-\S+", done.out, re.M
    )  # again in each part of the table
    assert len(set(named)) == len(corescale.cases("corescale"))
    assert "on 2 cores" in done.out
    assert not list(tmp_path.iterdir())


def test_an_unknown_study_is_one_sentence(weir):
    done = weir("reproduce", "bufferbloat")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "weir: 'bufferbloat' cannot be reproduced;"
        " there are corescale, edgescale, papers and linux\n"
    )

# SPDX-License-Identifier: BSD-3-Clause
"""weir list: one page for each plug-in, each section of the config, each stream of telemetry."""

import json
import os
import subprocess
import sys

import pytest
from weir.base import tables

KINDS = {
    "aqm": "queue discipline",
    "stage": "stage of a path",
    "cc": "congestion control",
    "source": "source of a flow's data",
    "live": "section of the config",
    "stream": "telemetry stream",
}


@pytest.fixture
def list_(weir, weir_sim):
    return lambda *args: weir("list", *args, env={"WEIR_BUILD": str(weir_sim.parents[2])})


def test_each_name_has_a_page(weir_sim):
    """`weir list` is weir-sim --list, whose start takes less."""
    listed = tables.read()
    for kind, entries in listed.items():
        for name, entry in entries.items():
            if name in listed or kind == "unit":  # a kind's name shows the kind
                continue
            argv = [weir_sim, "--list", name]
            whole = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            assert max(map(len, whole.splitlines())) < 80, name
            page = f" {' '.join(whole.split())} "
            assert page.startswith(f" {name}: {entry['summary']} "), name
            assert KINDS.get(kind, "") in page
            assert entry.get("reference", "") in page
            assert ", ".join(entry.get("modes", ())) in page
            for key, row in tables.keys(entry).items():
                assert f"\n  {key} " in whole
                assert row["help"] in page
            for field, row in entry.get("fields", {}).items():
                assert f"\n  {field} " in whole
                assert row["meaning"] in page


@pytest.mark.slow
def test_a_kind_lists_its_names(list_):
    for kind, entries in tables.read().items():
        if kind == "unit":
            continue
        shown = list_(kind)
        assert shown.status == 0
        assert all(f"{name} " in shown.out for name in entries), kind


def test_one_page_as_json(list_):
    shown = json.loads(list_("codel", "--json").out)
    assert shown == {"aqm": {"codel": tables.read()["aqm"]["codel"]}}


def test_what_there_is_not(list_):
    done = list_("nonsense")
    assert done.status == 2
    assert "'nonsense' is neither one of aqm, stage, " in done.err


def test_what_is_called_almost_so(list_):
    done = list_("codl")
    assert done.status == 2
    assert "nothing is called 'codl'; did you mean 'codel'?" in done.err


def test_all_of_it_is_a_line_each_below_headings(list_):
    """651 lines without a heading, up to 160 columns wide."""
    shown = list_().out
    lines = shown.splitlines()
    assert max(map(len, lines)) < 80
    kinds = tables.read()
    for kind in ("aqm", "stage", "cc", "source", "flows", "run", "live"):
        [heading] = [index for index, line in enumerate(lines) if line.endswith(f" ({kind})")]
        assert lines[heading + 1].startswith(f"  {next(iter(kinds[kind]))} "), kind


def test_another_case_and_another_name(list_):
    assert list_("CoDel").out.startswith("codel: Controlled Delay")
    assert list_("reno").out.startswith("newreno: NewReno with SACK")


@pytest.mark.slow
def test_a_long_list_is_paged_at_a_terminal(build, weir_sim, tmp_path):
    """And a short one is not, nor what goes into a pipe."""
    pages = tmp_path / "pages"
    for arguments, paged in (("list", True), ("list pie", False), ("list | cat", False)):
        pages.unlink(missing_ok=True)
        line = f"{sys.executable} -m weir {arguments}"
        env = {"WEIR_BUILD": str(build), "PAGER": f"tee {pages}", "LINES": "40", "COLUMNS": "80"}
        argv = ["script", "-qec", line, "/dev/null"]
        done = subprocess.run(
            argv, env={**os.environ, **env}, capture_output=True, text=True, timeout=60,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0
        assert "Proportional Integral" in done.stdout
        assert pages.exists() == paged, arguments

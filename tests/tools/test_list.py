# SPDX-License-Identifier: BSD-3-Clause
"""weir list: one page for each plug-in, each section of the config, each stream of telemetry."""

import json
import subprocess

import pytest
from weir import reference, tables

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
            page = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            assert page.startswith(f"{name}: {entry['summary']}\n"), name
            assert KINDS.get(kind, "") in page
            assert entry.get("reference", "") in page
            for key, row in tables.keys(entry).items():
                assert f"  {key} " in page
                assert row["help"] in page
            for field, row in entry.get("fields", {}).items():
                assert f"  {field} " in page
                assert row["meaning"] in page


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


def test_the_tables_of_a_readme_are_renewed(list_, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"Before.\n{reference.BEGIN}old\n{reference.END}After.\n")
    assert list_("--update", readme).status == 0
    text = readme.read_text()
    assert text.startswith(f"Before.\n{reference.BEGIN}\n| queue discipline |")
    assert text.endswith(f"|\n\n{reference.END}After.\n")
    assert "| `target` | `5ms` | time | 1ns to 1000s | acceptable standing delay |" in text
    assert "old" not in text.splitlines()

    readme.write_text("Without them.\n")
    refused = list_("--update", readme)
    assert refused.status == 2
    assert f"{readme}: it has no lines {reference.BEGIN.strip()} and" in refused.err
    missing = list_("--update", tmp_path / "none.md")
    assert missing.status == 1
    assert "none.md: cannot be read: No such file or directory" in missing.err


def test_what_there_is_not(list_):
    done = list_("nonsense")
    assert done.status == 2
    assert "'nonsense' is neither one of aqm, stage, " in done.err


def test_what_is_called_almost_so(list_):
    done = list_("codl")
    assert done.status == 2
    assert "nothing is called 'codl'; did you mean 'codel'?" in done.err

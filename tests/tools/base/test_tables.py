# SPDX-License-Identifier: BSD-3-Clause
"""What Python has to repeat of C's tables, for machines without the programs, is what they say."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from weir.analysis import folder, header, metrics, routes
from weir.base import tables, units
from weir.live import replay
from weir.report import sections

ROOT = Path(__file__).resolve().parents[3]
MAX = {"UINT8_MAX": 2**8 - 1, "UINT32_MAX": 2**32 - 1}


@pytest.fixture(scope="module")
def listed(weir_sim):
    return tables.read()


def constant(path, name):
    """A #define of a header."""
    text = re.search(rf"#define {name} (\S+)", (ROOT / path).read_text())[1]
    return MAX.get(text) or float(text)


def test_no_stage_has_the_name_of_a_discipline(listed):
    """Records and the list of observers tell them by their names."""
    assert listed["stage"].keys().isdisjoint(listed["aqm"])


@pytest.mark.parametrize("unit", units.SUFFIXES)
def test_units_of_configs(listed, unit):
    row = listed["unit"][unit]
    assert units.SUFFIXES[unit] == dict(zip(row["suffixes"], row["factors"], strict=True))


READERS = {
    "UNIT_TIME_NS": units.config_time_ns,
    "UNIT_RATE_BPS": units.config_rate_bps,
    "UNIT_BYTES": units.config_bytes,
    "UNIT_RATIO": units.config_ratio,
}


def test_numbers_of_configs_are_those_of_the_programs():
    text = (ROOT / "tests/unit/units_test.c").read_text()
    good, bad = (
        re.findall(
            r'\{"(.*)", (UNIT_\w+), ([\w.+-]+)\}',
            text.partition(f"{table}[] = {{")[2].partition("};")[0],
        )
        for table in ("good", "bad")
    )
    assert len(good) > 60
    assert len(bad) > 40
    for written, unit, value in good:
        if unit in READERS:
            read = READERS[unit](written.encode().decode("unicode_escape"))
            assert read == pytest.approx(float(value), rel=1e-15), written
    for written, unit, _ in bad:
        # A time without a unit is in seconds where a duration is read, a rate in bit/s.
        if unit in READERS and not re.fullmatch(r"[\d.]+", written):
            assert READERS[unit](written.encode().decode("unicode_escape")) is None, written
    assert units.config_time_ns("2") == 2e9
    assert units.config_bytes("1e999B") is None
    assert units.config_time_ns("1" + "e1" * 1000 + "!") is None  # at once


def test_names_of_paths_and_streams(listed):
    assert set(routes.DIRECTIONS) == set(tables.keys(listed["flows"]["flows.path"]))
    assert set(folder.STREAMS) == set(listed["stream"])


def test_defaults_of_configs(listed):
    group = tables.keys(listed["flows"]["flows"])
    defaults = {"mss": "1460B", "timestamps": "yes", "count": "1", "base_rtt": "0s"}
    assert {key: group[key]["default"] for key in defaults} == defaults
    assert tables.keys(listed["run"]["run"])["warmup"]["default"] == "0s"
    level = tables.keys(listed["run"]["telemetry"])["level"]
    assert level["max"] == sections.EVERY_PACKET


def test_numbers_that_stand_for_nothing():
    assert constant("common/telemetry/telemetry.h", "TEL_NO_FLOW") == header.NO_FLOW
    assert constant("switch/stage.h", "STAGE_NO_LINK") == header.NO_LINK
    assert constant("sender/cc/slow_start.h", "SSTHRESH_UNSET_SEGS") == sections.UNSET_SEGS
    departures = (ROOT / "switch/live/departures.c").read_text()
    assert MAX[re.search(r"\.stage = (\w+),", departures)[1]] == replay.EXIT


def test_bins_of_distributions():
    assert 2 ** constant("common/base/hist.h", "HIST_SUB_BITS") == metrics.BINS


def test_modes_of_controls(listed, weir_sim, tmp_path):
    """A summary and --list name the modes of each control as the constants of its source do."""
    config, out = tmp_path / "all.yaml", tmp_path / "run"
    path = "[delay: {delay: 1ms}]"
    flows = "".join(f"  - {{cc: {name}}}\n" for name in listed["cc"])
    paths = f"paths: {{forward: {path}, reverse: {path}}}"
    config.write_text(f"duration: 1ms\n{paths}\nflows:\n{flows}")
    subprocess.run([weir_sim, config, "--out", out], check=True, capture_output=True)
    groups = json.loads((out / "summary.json").read_text())["groups"]
    assert len(groups) == len(listed["cc"])
    for group in groups:
        text = (ROOT / f"sender/cc/{group['cc']}.c").read_text()
        headers = re.findall(r'#include "(sender/cc/\w+\.h)"', text)
        sources = "".join((ROOT / name).read_text() for name in headers) + text
        names = re.findall(r"V\([A-Z]+?_([A-Z_]+), \"", sources) if ".mode = " in text else []
        assert group["modes"] == [name.lower() for name in names], group["cc"]
        assert listed["cc"][group["cc"]]["modes"] == group["modes"], group["cc"]
        assert (".mode = " in text) == bool(names)

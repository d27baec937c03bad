# SPDX-License-Identifier: BSD-3-Clause
"""The playground's tables, lines and figures have the values of the command and of the report."""

import importlib.util
import io
import json
import math
import os
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.console import Console
from weir.analysis import folder, summary
from weir.report import browser, data, sections
from weir.report import figure as values

ROOT = Path(__file__).resolve().parents[3]
SIM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/sim/weir-sim"
CONFIGS = [
    "asymmetric-uplink",
    "bbr-lone",
    "bbr3-cubic",
    "bursty-loss",
    "cake-hosts",
    "churn",
    "codel-vs-fifo",
    "compound-loss",
    "copa-steady",
    "cubic-curve",
    "dctcp-step",
    "dualpi2-l4s",
    "eight-controls",
    "fq-codel",
    "illinois-alone",
    "ipv6",
    "jitter",
    "leo-handover",
    "lte-trace",
    "markov-link",
    "media-call",
    "parking-lot",
    "path-mtu",
    "periodic-delay",
    "policer",
    "quickstart",
    "rtt-unfairness",
    "swift-fabric",
    "udp-cross",
    "vivace-loss",
]
SHORT = ("-o", "duration=3s", "-o", "warmup=1s")
DRAWN = ("goodput", "rtt", "queue", "delay", "shares", "cwnd", "fairness")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def assemble():
    spec = importlib.util.spec_from_file_location("assemble", ROOT / "tools/web/assemble.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shown(tmp_path_factory, assemble):
    """What the page shows of each run, beside the run's folder."""
    place = tmp_path_factory.mktemp("playground")
    folders = [place / name for name in CONFIGS]
    for name, one in zip(CONFIGS, folders, strict=True):
        command = [SIM, f"configs/{name}.yaml", *SHORT, "--out", one]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    theme = place / "theme.json"
    theme.write_bytes(msgspec.json.encode(assemble.styles()))
    script = ROOT / "tests/tools/web/shown.mjs"
    done = subprocess.run(
        ["node", script, theme, *folders], check=True, capture_output=True, text=True
    )
    return dict(zip(CONFIGS, zip(folders, json.loads(done.stdout), strict=True), strict=True))


@pytest.mark.parametrize("name", CONFIGS)
def test_tables_and_lines_are_the_commands(shown, name):
    path, page = shown[name]
    found = folder.load(path).summary
    groups = summary.groups(found)
    if all(row[0] == row[1] for row in groups.rows):
        groups = groups.without("cc")
    made = [one for one in (groups, summary.links(found)) if one]
    assert [one["columns"] for one in page["tables"]] == [one.columns for one in made]
    assert [one["rows"] for one in page["tables"]] == [one.rows for one in made]
    out = io.StringIO()
    summary.show(found, Console(file=out, width=2000, markup=False, highlight=False))
    printed = [line.rstrip() for line in out.getvalue().split("\n") if line.strip()]
    tables = sum(len(one.rows) + 1 for one in made)
    assert page["lines"] == printed[tables:]


def plain(value):
    """A value as JSON has it, with None for NaN."""
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) else pytest.approx(value, rel=1e-12, abs=1e-12)
    return {k: plain(v) for k, v in vars(value).items()} if hasattr(value, "__dict__") else value


@pytest.mark.parametrize("name", CONFIGS)
def test_figures_have_the_reports_values(shown, name):
    path, page = shown[name]
    run = folder.load(path)
    every = sections.draw(data.read(run))
    drawn = [values.thinned(one) for one in every if one.name in DRAWN]
    assert [one["name"] for one in page["figures"]] == [one.name for one in drawn]
    for ours, theirs in zip(page["figures"], drawn, strict=True):
        if theirs.name == "delay" and run.summary.telemetry.level == 3:
            continue  # the report's is of each packet
        assert ours["title"] == theirs.title
        assert theirs.text.startswith(ours["text"])  # the report says more of some
        assert ours["across"] == theirs.columns
        heights = browser.heights_px(theirs)
        for panel, wanted, height in zip(ours["panels"], theirs.panels, heights, strict=True):
            assert panel["height"] == height
            for axis, end in zip("xy", values.ends(wanted), strict=True):
                own = getattr(wanted, axis)
                assert panel[axis]["label"] == own.label
                assert [panel[axis]["low"], panel[axis]["high"]] == pytest.approx(list(end))
            assert [one["kind"] for one in panel["marks"]] == [
                type(one).__name__ for one in wanted.marks
            ]
            for mark, of in zip(panel["marks"], wanted.marks, strict=True):
                for key, value in vars(of).items():
                    if key != "hrefs":
                        assert mark[key] == plain(value), (ours["name"], type(of).__name__, key)

# SPDX-License-Identifier: BSD-3-Clause
"""The README stays true: its commands run, its example is a config, its files exist."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def block(language: str) -> str:
    """The first fenced block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found
    return found.group(1)


@pytest.mark.slow
def test_the_first_command(tmp_path: Path) -> None:
    """Quickstart: what the README says of it, and the Python example on its folder."""
    assert "\n    tools/weir run configs/quickstart.yaml\n" in README
    out = tmp_path / "mine"
    argv = [
        str(ROOT / "tools/weir"),
        "run",
        str(ROOT / "configs/quickstart.yaml"),
        "--out",
        str(out),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "balanced" in done.stdout
    assert (out / "report.html").stat().st_size > 10_000
    summary = json.loads((out / "summary.json").read_text())
    link = summary["links"]["forward"]
    assert link["utilisation"] >= 0.97
    assert summary["jfi"] >= 0.95
    assert link["drops"] == 0
    assert link["queue_mean_pkts"] / 1000 == pytest.approx(2.4, abs=0.1)
    names: dict[str, object] = {}
    exec(block("python").replace("runs/mine", str(out)), names)
    assert len(names["flow"]) == 120  # type: ignore[arg-type]


def test_the_example_is_a_config(weir_sim: Path) -> None:
    """The YAML block passes --check."""
    done = subprocess.run(
        [weir_sim, "-", "--check"], input=block("yaml"), capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr


def test_the_example_of_an_error(weir_sim: Path, tmp_path: Path) -> None:
    """The sentence is what weir-sim says."""
    config = tmp_path / "x.yaml"
    config.write_text(block("yaml").replace("100Mbit", "10Gbitt"))
    done = subprocess.run([weir_sim, config, "--check"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    said = done.stderr.removeprefix("weir-sim: ").replace(str(config), "x.yaml").strip()
    assert f"`{said}`" in README


def test_every_config_is_listed_and_opens_with_a_comment() -> None:
    """The table of configs is complete."""
    for config in (ROOT / "configs").glob("*.yaml"):
        assert f"`{config.name}`" in README
        assert config.read_text().startswith("# "), config


def test_the_map_is_true() -> None:
    """Files and folders that the README names exist."""
    for name in re.findall(r"`((?:sender|switch|tests|configs|tools)/[\w./-]+)`", README):
        assert (ROOT / name).exists(), name
    for folder in re.findall(r"^    (\w+)/  ", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder

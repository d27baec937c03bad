# SPDX-License-Identifier: BSD-3-Clause
"""Trials with guests: the runs of their configs; and an attack on a kernel's control."""

import json

import pytest
from typer.testing import CliRunner
from weir.base import configs
from weir.cli.app import app
from weir.many.trials import opened

from .test_guests import alone, folders, kernel, run, write
from .test_quic_stacks import built

__all__ = ["alone", "kernel", "run", "write"]  # fixtures
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("stack", ["linux: {cc: bbr}", "quic: {ngtcp2: {cc: reno}}"])
def test_a_trial_is_the_run_of_its_config(write, run, tmp_path, stack):
    """The same bytes, twice in one process, and nothing of its guests is left."""
    if stack.startswith("quic"):
        built("ngtcp2")
    path = write(f"{{count: 1, stack: {{{stack}}}}}", "{count: 1, cc: cubic}", duration="1s")
    expected = run(path)
    before = folders()
    with opened(tmp_path, 1) as trials:
        found = trials([configs.mapping(path)] * 2)
    assert [one.digest for one in found] == [expected["digest"]] * 2
    assert [group.goodput_bps for group in found[0].groups] == [
        group["goodput_bps"] for group in expected["groups"]
    ]
    assert folders() == before
    assert not list(tmp_path.glob("guest-*"))


def test_an_attack_on_a_kernels_control(write, tmp_path):
    """It finds losses, which harm CUBIC, and its replay has the trial's digest."""
    path = tmp_path / "box.yaml"
    config = configs.mapping(write("{cc: cubic}", rate="20Mbit", duration="2s"))
    box = {"loss": {"most": "5%"}}
    path.write_text(json.dumps({"config": config, "goal": "utilisation", "box": box}))
    argv = ["attack", path, "--cc", "linux:cubic", "--runs", "4", "--out", tmp_path / "out"]
    done = CliRunner().invoke(app, [*map(str, argv), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["left"] > 2 * result["benign"]
    found = configs.mapping(tmp_path / "out/attack.yaml")
    assert found["flows"][0]["stack"] == {"linux": {"cc": "cubic"}}
    summary = json.loads((tmp_path / "out/attack/summary.json").read_text())
    assert summary["digest"] == result["digest"]

# SPDX-License-Identifier: BSD-3-Clause
"""What tells a policer from a full buffer, in captures of a simulated path."""

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner
from weir.analysis import folder, losses
from weir.cli.app import app

SIM = Path(os.environ["WEIR_BUILD"]) / "tools/sim/weir-sim"
CONFIG = Path(__file__).resolve().parents[3] / "tools/src/weir/studies/mvfst/f2.yaml"
pytestmark = pytest.mark.skipif(not SIM.exists(), reason=f"{SIM} is not built")

POLICER = "{policer: {rate: 3Mbit, burst: 40kB}}, {link: {rate: 100Mbit}}"
DELAY = "{delay: {delay: 50ms}}"
PATHS = {
    "policer": (POLICER, True),
    "random": ("{loss: {rate: 1%}}, {link: {rate: 100Mbit}}", True),
    "200 ms of buffer": ("{link: {rate: 3Mbit, queue: {fifo: {limit: 200ms}}}}", False),
    "50 ms of buffer": ("{link: {rate: 3Mbit, queue: {fifo: {limit: 50ms}}}}", False),
}


def captured(place, path, *options, cc="cubic"):
    """The analysis of a capture of two flows through a path, and what it says."""
    overrides = [
        f"paths.forward=[{path}, {DELAY}]",
        f"flows.0.cc={cc}",
        "flows.0.count=2",
        "flows.0.jitter=1s",
        "duration=40s",
        "telemetry.capture=paths",
    ]
    sim = [SIM, CONFIG, "--out", place / "run", "--pcap", place / "run.pcap"]
    subprocess.run([*sim, *(w for o in overrides for w in ("-o", o))], check=True)
    argv = ["pcap", "analyze", str(place / "run.pcap"), "--out", str(place / "analysis"), *options]
    done = CliRunner().invoke(app, argv)
    assert done.exit_code == 0
    return folder.load(place / "analysis"), done.stderr + done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("cc", ["cubic", "newreno"])
def test_losses_without_a_queue_are_told_from_a_full_buffers(tmp_path, name, cc):
    """The post's figure: a policer's losses at the least round trip, a buffer's when it is full."""
    path, without_queue = PATHS[name]
    run, said = captured(tmp_path, path, cc=cc)
    found = losses.lossy(run)
    assert len(found) == 2, found
    assert [flow.without_queue for flow in found] == [without_queue] * 2, found
    page = (tmp_path / "analysis" / "report.html").read_text()
    for text in (said, page):
        assert ("2 flows of 2 that lose lose without a queue" in text) == without_queue


@pytest.mark.slow
def test_a_capture_behind_the_queue_says_nothing_of_it(tmp_path):
    """There the round trips lack the queue, and each full buffer would be a policer."""
    behind = ("--interface", "forward out,reverse in")
    run, said = captured(tmp_path, PATHS["200 ms of buffer"][0], *behind)
    assert run.frame("losses")["lost_segs"].sum() > losses.FEWEST
    assert losses.lossy(run) == []
    assert "without a queue" not in said

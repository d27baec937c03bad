# SPDX-License-Identifier: BSD-3-Clause
"""Cells run once: what is done is reused, what failed says why, what was killed leaves nothing."""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from processes import command_line, pids
from small import CONFIG
from waiting import wait_for
from weir.analysis import labels
from weir.base import configs
from weir.base.errors import UserError
from weir.many import travel
from weir.many.cells import LOCK, run_cells, spare_cpus, without_names
from weir.many.progress import FILE
from weir.runner.options import Options

pytestmark = pytest.mark.usefixtures("weir_sim")

OFFLINE = """\
duration: 1s
paths:
  forward:
    - source: {{pcap: {home}/in.pcap}}
    - mahimahi_link: {{file: {home}/up.trace, queue: {{fifo: {{limit: 9pkt}}}}}}
    - mahimahi_link: {{file: {home}/twin/up.trace, queue: {{fifo: {{limit: 9pkt}}}}}}
"""
EMPTY_PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
HOURS = """
from pathlib import Path
from weir.many.cells import run_cells
from weir.runner.options import Options
override = ("paths.forward.link.rate=10Gbit", "telemetry.interval=10us")
cell = Options(config=Path("x.yaml"), out=Path("hours"), overrides=override, duration="24h")
(outcome,) = run_cells([cell], Path("out"))
print(outcome.status, outcome.message)
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(CONFIG)
    return path


def cell(config, count, name=None, **kw):
    out, overrides = Path(name or f"count={count}"), (f"flows.0.count={count}",)
    return Options(config=config, out=out, overrides=overrides, **kw)


def run(cells, out):
    return [(o.cell.name, o.status, o.message) for o in run_cells(cells, out, workers=1)]


def test_each_cell_is_there_once_and_in_order_and_a_failed_one_loses_no_other(config, tmp_path):
    out = tmp_path / "out"
    cells = [cell(config, 1, seed=7), cell(config, 0), cell(config, 3, duration="250ms")]
    seen = []
    outcomes = run_cells(cells, out, workers=2, on_outcome=lambda *outcome: seen.append(outcome))
    assert [o.cell for o in outcomes] == cells
    assert [o.folder for o in outcomes] == [out / c.name for c in cells]
    assert [o.status for o in outcomes] == ["done", "failed", "done"]
    assert [o.message for o in outcomes] == [
        "", "-o flows.0.count=0: count: 0 is not in [1, 1000000]", ""
    ]  # fmt: skip
    assert sorted(o.cell.name for o, _, _ in seen) == sorted(c.name for c in cells)
    assert [(done, total) for _, done, total in seen] == [(1, 3), (2, 3), (3, 3)]
    first, last = (json.loads((out / c.name / "summary.json").read_text()) for c in cells[::2])
    assert (first["seed"], first["groups"][0]["flows"], first["virtual_s"]) == (7, 1, 0.5)
    assert (last["seed"], last["groups"][0]["flows"], last["virtual_s"]) == (4, 3, 0.25)
    assert sorted(path.name for path in out.iterdir()) == [FILE, LOCK, "count=1", "count=3"]


def test_what_is_done_is_not_run_again_unless_something_changed(config, tmp_path):
    out = tmp_path / "out"
    cells = [cell(config, 1), cell(config, 2), cell(config, 3), cell(config, 4)]
    assert {status for _, status, _ in run(cells, out)} == {"done"}
    changed = [cells[0], cell(config, 2, seed=5), cells[2], cells[3]]
    for name in ("count=1", "count=2"):
        labels.tag(out / name, ["fig3"])
    summary = out / "count=3/summary.json"
    summary.write_text(summary.read_text().replace('"balanced": true', '"balanced": false'))
    manifest = out / "count=4/manifest.json"
    manifest.write_text(manifest.read_text().replace('"commit": "', '"commit": "other-'))
    assert [status for _, status, _ in run(changed, out)] == ["reused", "done", "done", "done"]
    assert json.loads((out / "count=2/summary.json").read_text())["seed"] == 5
    assert labels.read(out / "count=1").tags == ("fig3",)
    assert labels.read(out / "count=2").tags == ()  # they were of the run that was there
    assert [status for _, status, _ in run(changed, out)] == ["reused"] * 4


def test_a_config_that_names_a_file_is_done_until_the_file_changes(config, tmp_path):
    """Its folder has a copy under another name, so that each cell failed: "its config changed"."""
    trace, out = tmp_path / "up.trace", tmp_path / "out"
    trace.write_text("5\n10\n")
    link = "mahimahi_link: {file: up.trace, queue: {fifo: {limit: 20pkt}}}"
    text = config.read_text().partition("    - link")[0] + f"    - {link}\n"
    config.write_text(text + CONFIG[CONFIG.index("    - delay") :])
    assert run([cell(config, 1)], out) == [("count=1", "done", "")]
    assert run([cell(config, 1)], out) == [("count=1", "reused", "")]
    trace.write_text("5\n20\n")
    assert run([cell(config, 1)], out) == [("count=1", "done", "")]


def test_a_plugin_is_the_same_wherever_its_copy_is():
    """A run folder has a copy: each cell of a plug-in failed, as its config had changed."""
    one, other = (f"cc:\n  plugin: {n}\n  digest: a1\n" for n in ("/x/a.so", "file-a.so"))
    assert without_names(one) == without_names(other)
    assert without_names(one) != without_names(one.replace("a1", "a2"))


def test_a_config_travels_with_its_files(weir_sim, tmp_path):
    """A capture too, which stayed at home. A worker finds them in its folder alone."""
    capture = tmp_path / "home/in.pcap"
    capture.parent.mkdir()
    capture.write_bytes(EMPTY_PCAP)
    (tmp_path / "home/twin").mkdir()
    for place in ("up.trace", "twin/up.trace"):
        (tmp_path / "home" / place).write_text("5\n10\n")
    config = OFFLINE.format(home=capture.parent)
    line, files = travel.pack(configs.plain(yaml.safe_load(config)))
    assert [name for name, _ in files] == ["file-in.pcap", "file-up.trace", "file-2-up.trace"]
    shutil.rmtree(capture.parent)
    (tmp_path / "worker").mkdir()
    for name, content in (("x.yaml", line), *files):
        (tmp_path / "worker" / name).write_bytes(content)
    argv = [weir_sim, tmp_path / "worker/x.yaml", "--out", tmp_path / "run"]
    done = subprocess.run(argv, cwd=tmp_path / "worker", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_runs_of_another_commit_are_reused_when_told(config, tmp_path):
    cells, out = [cell(config, 1)], tmp_path / "out"
    run(cells, out)
    manifest = out / "count=1/manifest.json"
    manifest.write_text(manifest.read_text().replace('"commit": "', '"commit": "other-'))
    (second,) = run_cells(cells, out, workers=1, any_version=True)
    assert second.status == "reused"


def test_what_is_no_run_is_not_replaced(config, tmp_path):
    (tmp_path / "out/count=1").mkdir(parents=True)
    (tmp_path / "out/count=1/thesis.tex").write_text("")
    ((_, status, message),) = run([cell(config, 1)], tmp_path / "out")
    assert (status, message) == ("failed", f"{tmp_path}/out/count=1 is there and is not a run")
    assert (tmp_path / "out/count=1/thesis.tex").exists()


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["a", "b", "a"], "2 cells are named 'a'"),
        ([".."], "'..' cannot be the name of a cell"),
        (["a/b"], "'a/b' cannot be the name of a cell"),
        (["a" * 201], "too long"),
    ],
)
def test_names_that_cannot_be(config, tmp_path, names, sentence):
    with pytest.raises(UserError, match=sentence):
        run_cells([Options(config=config, out=Path(name)) for name in names], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_cells_are_no_outcomes(tmp_path):
    assert run_cells([], tmp_path / "out") == []


def test_a_scheduler_that_is_not_there_is_one_sentence(config, tmp_path, monkeypatch):
    monkeypatch.setattr("weir.many.cluster.CONNECT_S_MAX", 0.5)
    with pytest.raises(UserError, match=r"tcp://127.0.0.1:1: no Dask scheduler"):
        run_cells([cell(config, 1)], tmp_path / "out", cluster="tcp://127.0.0.1:1")


@pytest.mark.slow
def test_two_batches_do_not_share_a_folder_and_ctrl_c_ends_the_cells(config, tmp_path):
    """A cell of hours is interrupted as a terminal does it: the whole process group at once."""
    out = tmp_path / "out"
    batch = hours(tmp_path)
    try:
        wait_for(lambda: list(out.glob(".hours.*.cell/run/*.ring")))
        with pytest.raises(UserError, match="another command is writing there"):
            run_cells([cell(config, 1)], out)
        os.killpg(batch.pid, signal.SIGINT)
        _, said = batch.communicate(timeout=60)
    finally:
        batch.kill()
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    wait_for(lambda: not running(out))
    assert not (out / "hours").exists()
    assert run([cell(config, 1)], out) == [("count=1", "done", "")]
    assert sorted(path.name for path in out.iterdir()) == [FILE, LOCK, "count=1"]


@pytest.mark.slow
def test_a_run_that_was_interrupted_is_not_done(config, tmp_path):
    """Somebody's SIGINT to weir-sim: it leaves a valid folder and exits with 130."""
    out = tmp_path / "out"
    batch = hours(tmp_path)
    try:
        wait_for(lambda: any(ring.stat().st_size > 4096 for ring in out.glob(".*.cell/run/*.ring")))
        os.kill(running(out)[0], signal.SIGINT)
        said, _ = batch.communicate(timeout=60)
    finally:
        batch.kill()
    assert said == "failed the run was interrupted\n"
    assert json.loads((out / "hours/manifest.json").read_text())["verdict"] == "interrupted"
    assert run([cell(config, 1, name="hours")], out) == [("hours", "done", "")]


def hours(folder):
    """A batch of one cell of which nobody sees the end."""
    return subprocess.Popen(
        [sys.executable, "-c", HOURS], cwd=folder, process_group=0,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def running(out):
    """The programs that write below a folder, by id."""
    below = os.fsencode(out) + b"/"
    return [pid for pid in pids() if any(word.startswith(below) for word in command_line(pid))]


@pytest.mark.parametrize(("cpus", "workers", "cells", "spare"), [
    (2, None, 1, True), (2, None, 2, False), (2, 1, 9, True), (16, None, 4, True),
    (16, None, 9, False), (1, None, 1, False),
])  # fmt: skip
def test_cells_that_leave_processors_idle_use_them(monkeypatch, cpus, workers, cells, spare):
    monkeypatch.setattr("dask.system.CPU_COUNT", cpus)
    assert spare_cpus(workers, cells) is spare

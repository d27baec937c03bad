# SPDX-License-Identifier: BSD-3-Clause
"""Runs that older builds recorded, as they wrote them, are read as those of today.

data/format-N.tar.gz is a run folder of telemetry format N: a second of configs/codel-vs-fifo.yaml
at level 3 with arrivals, two NewReno flows and one of Copa through 8 Mbit/s.
"""

import os
import tarfile
from pathlib import Path

import polars as pl
import pytest
from weir import summary
from weir.analysis import folder
from weir.analysis.ring import open_ring
from weir.report import page

ROOT = Path(__file__).resolve().parents[2]
SIM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/sim/weir-sim"
DATA = Path(__file__).parent / "data"
RECORDS = {
    "packets": 1406, "cc": 451, "flows": 6, "interval": 60, "links": 20, "events": 66,
}  # fmt: skip


@pytest.fixture(params=["format-1", "format-2"])
def old(request, tmp_path):
    with tarfile.open(DATA / f"{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / request.param


def test_every_stream_of_an_older_run_opens_and_is_exported(old, tmp_path):
    run = folder.load(old)
    for stream, count in RECORDS.items():
        for ring in run.rings(stream):
            ring.check()
        frame = run.frame(stream)
        assert frame.height == count
        folder.write_table(tmp_path / f"{stream}.parquet", frame)
        assert pl.read_parquet(tmp_path / f"{stream}.parquet").equals(frame)
    assert run.notes == []


def test_window_reductions_are_found_under_their_older_name(old):
    run = folder.load(old)
    older = '"halvings"' in (old / "summary.json").read_text()
    assert older == (old.name == "format-1")
    total = int(run.frame("interval")["cwnd_reductions"].sum())
    assert total == int(run.frame("flows")["cwnd_reductions"].sum()) > 0
    column = summary.GROUP_COLUMNS.index("window reductions")
    assert sum(int(row[column]) for row in summary.group_rows(run.summary)) > 0


def test_a_time_that_had_no_room_is_not_known(old):
    """Formats 1 and 2 had 32 bits for times: 2^32-1 ns, 4.29 s, stood for that and all beyond."""
    path = old / "packets.ring"
    ring = open_ring(path)
    field = next(f for f in ring.schema.fields if f.name == "sojourn_ns")
    assert field.dtype == "<u4"
    with path.open("r+b") as file:
        file.seek(4096 + field.offset)
        file.write(b"\xff" * 4)
    run = folder.load(old)
    assert run.frame("packets")["sojourn_ns"].null_count() == 1
    assert run.frame("packets")["sojourn_ns"][0] is None
    assert run.packets.to_arrow()["sojourn_ns"].null_count == 1
    assert run.frame("interval")["rtt_max_ns"].null_count() == 0


@pytest.mark.slow
def test_an_older_run_is_reported(old):
    text = page.write(folder.load(old)).read_text()
    for words in (
        "window reduction",
        "mode change",
        "Every recorded packet.",
        "What CoDel observed at forward",
        "What Copa observed",
        "recovery",
    ):
        assert words in text


@pytest.mark.skipif(not SIM.exists(), reason=f"{SIM} is not built")
def test_an_older_recording_is_replayed(weir, old):
    done = weir("replay", old)
    assert done.status == 0
    assert "identical" in done.out

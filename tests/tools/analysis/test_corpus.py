# SPDX-License-Identifier: BSD-3-Clause
"""Run folders of released versions: what was written once is read by every later version.

A release adds its own, once:

    tools/weir sim tests/corpus/corpus.yaml --out tests/corpus/VERSION/run
    .venv/bin/python tests/tools/analysis/test_corpus.py tests/corpus/VERSION
"""

import json
import sys
from pathlib import Path

import pytest
import weir

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
SIZE_MAX = 200_000


@pytest.fixture(params=sorted(filter(Path.is_dir, CORPUS.iterdir())), ids=lambda path: path.name)
def folder(request):
    return request.param


def sums(run, fields):
    """Of each integer of each stream; `fields` says which a stream has."""
    return {
        name: {field: int(stream[field].astype("u8").sum()) for field in fields(stream)}
        for name, stream in ((name, run.stream(name)) for name in run.streams)
    }


def integers(stream):
    """The fields of whole numbers."""
    kinds = stream.records.dtype
    return [name for name in kinds.names if kinds[name].kind in "iu" and name[0] != "_"]


def test_every_record_is_read(folder):
    run = weir.open(folder / "run")
    expected = json.loads((folder / "expected.json").read_text())
    assert sums(run, integers) == expected
    assert run.summary.ledger.balanced


def test_its_figures_are_drawn(folder):
    assert weir.open(folder / "run").plot("goodput").axes


def test_it_is_small_and_in_the_folder_of_its_version(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < SIZE_MAX
    assert json.loads((folder / "run/manifest.json").read_text())["version"] == folder.name


if __name__ == "__main__":
    made = Path(sys.argv[1])
    text = json.dumps(sums(weir.open(made / "run"), integers), indent=1)
    (made / "expected.json").write_text(f"{text}\n")

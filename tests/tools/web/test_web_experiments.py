# SPDX-License-Identifier: BSD-3-Clause
"""The swarm's experiments in WebAssembly: the native program's digests and sentences."""

import json
import re
import shutil

import pytest
from swarm.examine import dump
from swarm.generate import Generator, registry
from swarm.main import new_seed
from test_playground import SIM
from test_web import _built, native, pytestmark, web

__all__ = ["_built", "pytestmark"]
EXPERIMENTS = 200
LACKS = re.compile("a browser gives|in a browser|no memory for")
# The bytes of its scoreboard are 0, and those of its receivers' ranges few, in 32 bits.
LARGE = "paths.forward.link.rate=85Gbit flows.0.mss=100B duration=10ms warmup=1ms"


@pytest.mark.timeout(1800)
def test_random_experiments(tmp_path):
    seed, kinds, config = new_seed(), registry(SIM), tmp_path / "swarm.yaml"
    folders = tmp_path / "native", tmp_path / "web"
    others, ran, lacks = [], 0, 0
    for one in range(seed, seed + EXPERIMENTS):
        config.write_text(dump(Generator(one, kinds).experiment()))
        here, there = native(folders[0], str(config)), web(folders[1], str(config))
        if LACKS.search(there.stderr):
            lacks += 1
        elif (here.returncode, here.stderr) != (there.returncode, there.stderr):
            others.append((one, here.stderr, there.stderr))
        elif here.returncode == 0:
            digests = {
                json.loads((folder / "summary.json").read_text())["digest"] for folder in folders
            }
            ran += 1
            if len(digests) > 1:
                others.append((one, *digests))
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    assert others == []
    assert ran > EXPERIMENTS / 2 > lacks


def test_a_table_of_more_than_32_bits_is_refused(tmp_path):
    changes = [word for change in LARGE.split() for word in ("-o", change)]
    done = web(tmp_path, "configs/quickstart.yaml", *changes)
    assert done.returncode == 2
    assert re.fullmatch("weir-sim: no memory for [0-9]+ [^\n]+\n", done.stderr)

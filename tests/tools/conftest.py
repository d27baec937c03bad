# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess
import sys
from pathlib import Path

import command
import hypothesis
import pytest

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("weir", deadline=None)
hypothesis.settings.load_profile("weir")


@pytest.fixture
def weir(tmp_path):
    """Runs the weir command in an empty folder."""

    def call(*args, env=None, cwd=tmp_path):
        kept = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), **(env or {})}
        done = command.run([*map(str, args)], kept, cwd)
        assert "Traceback" not in done.err
        return done

    return call


@pytest.fixture
def weir_here(tmp_path, monkeypatch, capsys):
    """The same within this process, which is quicker: for commands that start no other."""
    from weir.cli import app

    def call(*args):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["weir", *map(str, args)])
        capsys.readouterr()
        status = app.main()
        said = capsys.readouterr()
        return command.Done(status, said.out, said.err)

    return call


@pytest.fixture(scope="session")
def folder_schema(weir_sim):
    """What editors find beside the configs, as `tools/weir` makes it."""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([root / "tools/weir", "--build", "sim"], check=True)
    return root / "configs/schema.json"


@pytest.fixture
def analyse(tmp_path):
    """analyse(frames or the bytes of a file, options...): what weir-pcap finds."""
    from frames import analyser

    return analyser(tmp_path)


@pytest.fixture
def programs(tmp_path):
    """A build directory whose programs are Python scripts: for what `weir run` does with them."""
    build = tmp_path / "fake-build"

    def make(**scripts):
        places = {"sim": "tools/sim", "pcap": "tools/pcap", "switch": "switch", "sender": "sender"}
        for name, body in scripts.items():
            path = build / places[name] / f"weir-{name}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#!{sys.executable}\n{PRELUDE}\nNAME = {name!r}\n{body}\n")
            path.chmod(0o755)
        return {"WEIR_BUILD": str(build), "HELPERS": str(Path(__file__).parent)}

    return make


PRELUDE = """
import json, os, pathlib, signal, sys, time
sys.path.insert(0, os.environ["HELPERS"])
OUT = pathlib.Path(sys.argv[sys.argv.index("--out") + 1]) if "--out" in sys.argv else None
def say(**fields):
    print(json.dumps(fields), file=sys.stderr, flush=True)
"""

"""Tests of NAME, which `make && python3 -m pytest test_NAME.py` runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WEIR = "PROGRAM"


def run(*overrides: str) -> Any:
    """Returns the summary of a run of NAME.yaml."""
    options = [word for text in overrides for word in ("-o", text)]
    command = [WEIR, "sim", "NAME.yaml", *options, "--json", "--force", "--out", "run"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_fills_the_link() -> None:
    alone = ["flows.1.count=1", "flows.1.start=29s", "flows.0.count=1"]
    assert run(*alone)["links"]["forward"]["utilisation"] > 0.9


def test_two_flows_are_alike() -> None:
    assert run("flows.1.start=29s", "duration=60s", "warmup=20s")["groups"][0]["jfi"] > 0.8

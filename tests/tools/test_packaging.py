# SPDX-License-Identifier: BSD-3-Clause
"""What is installed from a wheel or a Debian package: its files, and that it needs no clone."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from weir import bootstrap, runner

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROGRAMS = ("sim/weir-sim", "sim/weir-python.so", "pcap/weir-pcap", "check/weir-check-cc")
GUEST = ("sim/guest/guest-init", "sim/guest/libguest-shim.so")


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """What meson would install where, as a wheel asks for it."""
    build = tmp_path_factory.mktemp("packaging") / "build"
    options = PROJECT["tool"]["meson-python"]["args"]["setup"]
    argv = [bootstrap.tool("meson"), "setup", str(build), str(ROOT), *options]
    subprocess.run(argv, check=True, capture_output=True)
    said = json.loads((build / "meson-info/intro-install_plan.json").read_text())
    return {
        entry["destination"]: Path(source)
        for kind in said.values()
        for source, entry in kind.items()
    }


def test_a_wheel_has_all_that_is_read_of_a_clone(plan):
    tree = "{py_platlib}/weir/tree/"
    assert {f"{tree}build/tools/{name}" for name in (*PROGRAMS, *GUEST)} <= set(plan)
    assert plan["{py_platlib}/weir"] == ROOT / "tools/src/weir"
    for name in ("meson.build", "meson_options.txt", "configs", "common", "switch", "sender"):
        assert plan[tree + name] == ROOT / name
    for path in ("tools/sim", "tools/pcap", "tools/bench", "tools/check"):
        assert plan[tree + path] == ROOT / path
    outside = [place for place in plan if not place.startswith("{py_platlib}/weir")]
    assert outside == []


def test_the_distribution_is_not_the_index_s_weir():
    assert PROJECT["project"]["name"] == "weir-testbed"
    assert PROJECT["project"]["scripts"] == {"weir": "weir.__main__:main"}


class Installed:
    """The package as a wheel leaves it: not in a clone, its programs in tree/build."""

    def __init__(self, place):
        self.place = place
        package = place / "site/weir"
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "tools/src/weir", package, ignore=unwanted)
        (package / "tree").mkdir()
        for name in ("meson.build", "configs", "common"):
            (package / "tree" / name).symlink_to(ROOT / name)
        for name in ("sim", "pcap", "check"):
            folder = package / "tree/build/tools" / name
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.symlink_to(runner.build_dir() / "tools" / name)

    def weir(self, *args, path=None):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WEIR")}
        kept |= {"PYTHONPATH": str(self.place / "site"), "XDG_CACHE_HOME": str(self.place)}
        if path is not None:
            kept["PATH"] = str(path)
        return subprocess.run(
            [sys.executable, "-m", "weir", *args], cwd=self.place, env=kept,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


def test_configs_are_copied_and_run_without_a_clone(installed):
    copied = installed.weir("setup", "configs")
    assert copied.returncode == 0, copied.stderr
    assert "README.md says" in copied.stdout
    quick = ["-o", "duration=100ms", "-o", "warmup=0s", "--no-report", "--out", "run"]
    done = installed.weir("run", "configs/quickstart.yaml", *quick)
    assert done.returncode == 0, done.stderr
    assert "ledger: balanced" in done.stdout
    second = installed.weir("setup", "configs")
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == "weir: setup configs: configs exists: name a new folder\n"


def test_a_live_run_says_what_is_missing(installed):
    done = installed.weir("switch", "configs/quickstart.yaml")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "`weir setup live` (as root) installs both" in done.stderr
    assert f"{installed.place}/weir/live-" in done.stderr
    assert installed.weir("sim", "--version").stdout.startswith("weir-sim ")


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        (None, "install them with: apt-get install gcc"),
        ("dnf", "install them with: dnf install gcc glibc-devel meson ninja-build pkgconf"),
        ("pacman", "install them with: pacman -S gcc glibc meson ninja pkgconf libyaml"),
        ("brew", "install them with: brew install meson ninja pkgconf libyaml libpcap xxhash"),
    ],
)
def test_without_apt_the_names_are_those_of_the_system(monkeypatch, tmp_path, manager, command):
    if manager is not None:
        (tmp_path / manager).write_text("#!/bin/sh\n")
        (tmp_path / manager).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    names = [need.package for need in bootstrap.BUILD_NEEDS]
    with pytest.raises(bootstrap.SetupError, match="this system has no apt-get") as refused:
        bootstrap.apt_or_sentence(names, tmp_path)
    assert command in str(refused.value)

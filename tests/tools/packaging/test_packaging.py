# SPDX-License-Identifier: BSD-3-Clause
"""What is installed from a wheel or a Debian package: its files, and that it needs no clone."""

import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from weir import bootstrap
from weir.base import programs

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROGRAMS = (
    *("sim/weir-sim", "sim/weir-python.so", "pcap/weir-pcap", "check/weir-check-cc"),
    "bench/weir-cc",
)
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


@pytest.mark.slow
def test_a_wheel_has_all_that_is_read_of_a_clone(plan):
    tree = "{py_platlib}/weir/tree/"
    assert {f"{tree}build/tools/{name}" for name in (*PROGRAMS, *GUEST)} <= set(plan)
    assert plan["{py_platlib}/weir"] == ROOT / "tools/src/weir"
    assert "{py_platlib}/weir/analysis/model_parts.py" in plan
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
            folder.symlink_to(programs.build_dir() / "tools" / name)

    def weir(self, *args, path=None):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WEIR")}
        kept |= {"PYTHONPATH": str(self.place / "site"), "XDG_CACHE_HOME": str(self.place)}
        kept["HOME"] = "/dev/null/home"  # as of a user who has none
        if path is not None:
            kept["PATH"] = str(path)
        return subprocess.run(
            [sys.executable, "-m", "weir", *args], cwd=self.place, env=kept,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.mark.slow
def test_configs_are_copied_and_run_without_a_clone(installed):
    copied = installed.weir("setup", "configs")
    assert copied.returncode == 0, copied.stderr
    assert "README.md says" in copied.stdout
    quick = ["-o", "duration=100ms", "-o", "warmup=0s", "--no-report", "--out", "run"]
    done = installed.weir("run", "configs/quickstart.yaml", *quick)
    assert done.returncode == 0, done.stderr
    assert "ledger: balanced" in done.stdout
    drawn = installed.weir("report", "run")
    assert (drawn.returncode, drawn.stderr) == (0, "")
    second = installed.weir("setup", "configs")
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == "weir: setup configs: configs exists: name a new folder\n"


@pytest.mark.slow
def test_a_study_of_ones_own_runs_and_its_status_says_whether_its_claims_hold(installed):
    """A folder anywhere, which nothing elsewhere knows: a control's author runs it as his CI."""
    assert installed.weir("new", "study", "mine").returncode == 0
    config, claims = (installed.place / "mine" / name for name in ("link.yaml", "study.yaml"))
    config.write_text(config.read_text().replace("30s", "4s").replace("10s", "1s"))
    argv = ("reproduce", "./mine", "--workers", "1", "--write-docs")
    done = installed.weir(*argv)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "5 of 5 hold" in done.stdout
    kept = json.loads((installed.place / "mine/results.json").read_text())
    assert [row[-1] for row in kept["rows"]["mine"]] == ["holds"] * 5
    claims.write_text(claims.read_text().replace("low: 90\n", "low: 101\n"))
    assert installed.weir(*argv).returncode == 1
    claims.write_text(claims.read_text().replace("low: 101\n", "low: 101\n        why: A test.\n"))
    assert installed.weir(*argv).returncode == 0


def test_a_live_run_says_what_is_missing(installed):
    done = installed.weir("switch", "configs/quickstart.yaml")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "`weir setup live` (as root) installs both" in done.stderr
    assert re.search(rf"({installed.place}|/var/cache)/weir/live-", done.stderr)
    assert installed.weir("sim", "--version").stdout.startswith("weir-sim ")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_what_root_builds_is_found_by_every_user(installed):
    """`weir setup live` as root built below /root, where no other user's weir looked."""
    script = f"""set -e
mount -t tmpfs -o mode=755 none /var/cache
chmod 755 {installed.place}
mount --bind {installed.place} /mnt
weir="{sys.executable} -B -m weir switch configs/quickstart.yaml"
export PYTHONPATH=/mnt/site
cd /
built=$(HOME=/var/cache/root $weir 2>&1 | sed -n "s/^weir: \\(.*\\) was not built;.*/\\1/p")
mkdir -p "${{built%/*}}"
printf '#!/bin/sh\necho ran as $(id -u)\n' > "$built"
chmod 755 "$built"
HOME=/nonexistent setpriv --reuid 65534 --regid 65534 --clear-groups $weir
"""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=60,
        env={k: v for k, v in os.environ.items() if not k.startswith(("WEIR", "XDG"))},
    )  # fmt: skip
    assert done.stdout == "ran as 65534\n", done.stderr


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


# Data, and what a comment would change; what becomes a user's own; the kernel's.
NO_LICENCE_LINE = (
    *("LICENSE", "CITATION.cff", ".git", ".editorconfig", "common/commit.txt", "configs/"),
    *("tests/fuzz/", "tests/corpus/", "tests/golden/", "tests/swarm/corpus/", "tests/sim/kernels/"),
    *("tools/requirements", "tools/packaging/requirements", "tools/packaging/debian/"),
    *("tests/tools/editors/", "tools/src/weir/py.typed", "tools/src/weir/plugin/template/"),
)
NO_COMMENTS = (".md", ".svg", ".png", ".j2", ".csv", ".cdf", "slots.txt", ".yaml", ".json")


def test_every_source_names_its_licence():
    """The SPDX line is among the first four: before it there may be `#!` and a template's parts."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    missing = []
    for name in filter(None, listed):
        if name.startswith(NO_LICENCE_LINE) or name.endswith(NO_COMMENTS):
            continue
        head = (ROOT / name).read_text(errors="replace").splitlines()[:4]
        if head and not any("SPDX-License-Identifier: BSD-3-Clause" in line for line in head):
            missing.append(name)
    assert missing == []


def test_the_citation_has_the_papers():
    """What the format asks of each reference; the papers that Weir began with are among them."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    for reference in cited["references"]:
        assert {"type", "title", "authors", "year"} <= set(reference)
    titles = " ".join(reference["title"] for reference in cited["references"])
    assert all(name in titles for name in ("Copa", "LoLa", "At Scale", "CUBIC", "CoDel", "BBR"))


def test_a_commit_s_archive_names_the_commit():
    """`git archive` writes it into common/commit.txt, which meson.build reads without git."""
    assert "common/commit.txt export-subst" in (ROOT / ".gitattributes").read_text()
    assert (ROOT / "common/commit.txt").read_text() == "$Format:%H$\n"


@pytest.fixture(scope="module")
def matrix():
    """tools/packaging/matrix, as a module."""
    path = str(ROOT / "tools/packaging/matrix")
    loader = importlib.machinery.SourceFileLoader("matrix", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("matrix", loader))
    loader.exec_module(module)
    return module


def test_the_matrix_keeps_the_rows_that_it_did_not_try(tmp_path, monkeypatch, matrix):
    page, readme = tmp_path / "page.md", tmp_path / "readme.md"
    for path in (page, readme):
        path.write_text(f"head\n{matrix.BEGIN}| a |\n|---|\n{matrix.END}tail\n")
    monkeypatch.setattr(matrix, "PAGE", page)
    monkeypatch.setattr(matrix, "README", readme)
    rows = [
        "| deb | trixie | 1 MB | 9 MB | the same | 1 s | 2026-01-01 |",
        "| wheel | trixie | 1 MB | 9 MB | the same | 1 s | 2026-01-03 |",
        "| deb | trixie | 1 MB | 9 MB | the same | 1 s | 2026-01-02 |",
        "| wheel | noble | 1 MB | 9 MB | OTHER | 1 s | 2026-01-02 |",
    ]
    for row in rows:
        matrix.write(row)
    assert page.read_text().splitlines()[4:] == [
        rows[1], rows[3], rows[2], matrix.END.strip(), "tail",
    ]  # fmt: skip
    assert readme.read_text().splitlines()[2:] == [
        "|Same telemetry on|by|tried|", "|---|---|---|", "|Debian 13|wheel, deb|2026-01-02|",
        matrix.END.strip(), "tail",
    ]  # fmt: skip


def test_the_readme_has_what_the_matrix_came_to(matrix):
    table = (ROOT / "README.md").read_text().partition(matrix.BEGIN)[2].partition(matrix.END)[0]
    assert table == matrix.short(matrix.tried())
    assert table.count("\n") == 2 + len(matrix.SYSTEMS)


def test_what_the_matrix_does_not_know_is_one_sentence():
    argv = [sys.executable, ROOT / "tools/packaging/matrix", "snap:sid"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "'snap:sid' is none of wheel:bookworm, " in done.stderr

# SPDX-License-Identifier: BSD-3-Clause
"""The folders of C code depend on each other one way, and only the live shell knows DPDK."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("common", "switch", "sender", "tools/sim")
MAY_INCLUDE = {
    "common": ("common",),
    "switch": ("common", "switch"),
    "sender": ("common", "sender"),
    "tools/sim": ("common", "switch", "sender", "tools/sim"),
}
# Parts of live/ without DPDK, which the libraries have for unit tests.
PURE = re.compile(r"common/live/(live|watch)\.h|(switch|sender)/live/plan\.h")
GENERATED = "common/weir_commit.h"


def sources(folder):
    return sorted(p for p in (ROOT / folder).rglob("*.[ch]") if "build" not in p.parts)


def includes(path):
    return re.findall(r"^#include [\"<]([^\">]+)[\">]", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("folder", FOLDERS)
def test_includes_point_one_way(folder):
    wrong = []
    for path in sources(folder):
        place = path.relative_to(ROOT).as_posix()
        for name in includes(path):
            if not (ROOT / name).is_file() or name == GENERATED:
                continue
            if not name.startswith(tuple(f"{may}/" for may in MAY_INCLUDE[folder])):
                wrong.append(f"{place}: {name}")
    assert sources(folder)
    assert wrong == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_only_the_live_shell_includes_dpdk_and_the_live_shell(folder):
    wrong = []
    for path in sources(folder):
        place = path.relative_to(ROOT).as_posix()
        if "/live/" in place or place in ("switch/main.c", "sender/main.c"):
            continue
        wrong += [
            f"{place}: {name}"
            for name in includes(path)
            if name.startswith("rte_") or ("/live/" in name and not PURE.fullmatch(name))
        ]
    assert wrong == []


def test_an_include_of_ours_names_its_place():
    """From the root; only tests name a neighbour by its name alone."""
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in FOLDERS
        for path in sources(folder)
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)
        if not (ROOT / name).is_file() and name != GENERATED
    ]
    assert wrong == []

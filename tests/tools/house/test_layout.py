# SPDX-License-Identifier: BSD-3-Clause
"""Sizes of C files and functions; which folder may include which; DPDK in the live shell only;
which functions of libm virtual time calls.
"""

import re
import subprocess
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("common", "switch", "sender", "tools/sim", "tools/pcap")
MAY_INCLUDE = {
    "common": ("common",),
    "switch": ("common", "switch"),
    "sender": ("common", "sender"),
    "tools/sim": ("common", "switch", "sender", "tools/sim", "tools/pcap"),
    "tools/pcap": ("common", "sender", "tools/pcap"),
}
GENERATED = "common/weir_commit.h"

FILE_LINES = 450  # above it a warning: the limit is not to shape the files that stand near it
FILE_LINES_MAX = 600
COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70  # from the first line of its head to its closing brace
# Of libm only what IEEE 754 makes exact or correctly rounded, so the same on every machine.
EXACT_IN_LIBM = {
    *("ceil", "copysign", "floor", "fmax", "fmaxf", "fmin", "frexp", "ldexp", "llround", "rint"),
    *("round", "sqrt", "trunc", "truncf"),
}
# A congestion control is one file, which begins with the algorithm and what differs from the paper.
MAY_BE_LONGER = ("sender/cc/",)


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
        if "/live/" in place:
            continue
        wrong += [
            f"{place}: {name}"
            for name in includes(path)
            if name.startswith("rte_") or "/live/" in name
        ]
    assert wrong == []


def module(place):
    """A file's module: a header, its source, and files whose names begin with theirs (`host_`)."""
    path = ROOT / place
    parts = path.stem.split("_")
    stems = ("_".join(parts[:n]) for n in range(1, len(parts)))
    own = next((stem for stem in stems if path.with_name(f"{stem}.h").is_file()), path.stem)
    return (Path(place).parent / own).as_posix()


def circles(uses):
    """The sets of modules that include each other in a circle (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in uses.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = [stack.pop()]
            while circle[-1] != node:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(tuple(sorted(circle)))

    for node in list(uses):
        if node not in index:
            visit(node)
    return found


def test_circles_are_found():
    uses = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(uses) == [("b", "c")]
    assert circles({"a": {"b"}, "b": {"c"}}) == []


def folder(depth):
    """What gives a file's folder, at most so deep."""
    return lambda place: "/".join(Path(place).parent.parts[:depth])


@pytest.mark.parametrize(
    "unit",
    [module, *map(folder, range(1, 5))],
    ids=["modules", *(f"folders to depth {depth}" for depth in range(1, 5))],
)
def test_neither_modules_nor_folders_include_each_other_in_a_circle(unit):
    uses = {}
    for path in all_sources():
        own = unit(path.relative_to(ROOT).as_posix())
        ours = {unit(name) for name in includes(path) if (ROOT / name).is_file()}
        uses.setdefault(own, set()).update(ours - {own})
    assert len(uses) > 3
    assert circles(uses) == []


@pytest.mark.parametrize("folder", ["sender/tcp", "sender/udp"])
def test_a_transport_sees_of_its_host_the_endpoint(folder):
    above = {
        name
        for path in sources(folder)
        for name in includes(path)
        if name.startswith("sender/") and not name.startswith(f"{folder}/")
    }
    allowed = {f"sender/endpoint/{name}.h" for name in ("endpoint", "ranges", "segs")}
    allowed.add("sender/cc/cc.h")
    # Its own table, and its part of the config.
    allowed |= (
        {"sender/transport.h", "sender/source/source.h", "sender/tcp/receiver.h"}
        if (folder != "sender/tcp")
        else set()
    )
    assert above <= allowed


def test_an_include_of_ours_names_its_place():
    """From the root; only tests and the public headers, which are installed as one folder, name a
    neighbour by its name alone.
    """
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in FOLDERS
        for path in sources(folder)
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)
        if not (ROOT / name).is_file() and name != GENERATED
        if not (path.parent == ROOT / "common/weir" and (path.parent / name).is_file())
    ]
    assert wrong == []


def all_sources():
    return [path for f in ("common", "switch", "sender", "tools") for path in sources(f)]


def functions(text):
    """Names and lines of the functions that a formatted C file defines."""
    found, head, start, macro = [], "", 0, False
    for number, line in enumerate(text.splitlines(), 1):
        preprocessor, macro = macro or line.startswith("#"), False
        if preprocessor:
            macro = line.endswith("\\")
        elif line.startswith("}"):
            if name := re.search(r"(\w+)\([^{;]*\) \{", head):
                found.append((name[1], number - start + 1))
            head = ""
        elif "{" not in head and (head or re.match(r"\w", line)):
            start = start if head else number
            head += re.sub(r"__attribute__\(\(.*?\)\) ", "", line.split("//")[0].rstrip()) + " "
            if head.endswith("; "):
                head = ""
    return found


def test_functions_are_measured():
    body = "\n".join(["", "#define A(x) \\", "\tdo { \\", "} while (0)", "\tif (a) {", "\t}"])
    text = (
        "struct a {\n\tint b;\n};\nint c(void);\nstatic int table[] = {\n\t1,\n};\n"
        f"static int one(\n\tint a, int b) {{ // why\n\treturn a;{body}\nfail:\n\treturn 0;\n}}\n"
        "__attribute__((format(printf, 1, 2))) static void two(void) {\n}\n"
    )
    assert functions(text) == [("one", 11), ("two", 2)]


@pytest.mark.filterwarnings("default")
def test_no_file_is_long():
    lengths = {
        place: len(path.read_text().splitlines())
        for path in all_sources()
        if not (place := path.relative_to(ROOT).as_posix()).startswith(MAY_BE_LONGER)
    }
    long = {place: lines for place, lines in lengths.items() if lines > FILE_LINES}
    if long:
        warnings.warn(f"files of more than {FILE_LINES} lines: {long}", stacklevel=1)
    assert [place for place, lines in long.items() if lines > FILE_LINES_MAX] == []


def test_no_line_is_wide():
    """Columns, with tabs of 8. clang-format wraps code, but no comment and no word of a string."""
    lines = [
        (path.relative_to(ROOT).as_posix(), number, line.expandtabs(8))
        for path in [*all_sources(), *sources("tests")]
        for number, line in enumerate(path.read_text().splitlines(), 1)
    ]
    assert len(lines) > 10_000
    assert [f"{place}:{number}" for place, number, line in lines if len(line) > COLUMNS_MAX] == []


def test_no_function_is_long():
    wrong, count = [], 0
    for path in all_sources():
        measured = functions(path.read_text())
        count += len(measured)
        wrong += [
            f"{path.relative_to(ROOT)}: {name}: {lines} lines"
            for name, lines in measured
            if lines > FUNCTION_LINES_MAX
        ]
    assert count > 1000
    assert wrong == []


def symbols(*argv):
    listed = subprocess.run(["nm", "-D", *argv], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in listed.splitlines()}


def test_virtual_time_calls_of_libm_only_what_is_exact(build):
    """The others differ in the last bit between machines: common/base/portable_math.h."""
    program = build / "tools/sim/weir-sim"
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    libm = re.search(r"libm\.so\S* => (\S+)", loaded)
    assert libm is not None
    of_libm = symbols("--undefined-only", program) & symbols("--defined-only", libm[1])
    assert "sqrt" in of_libm  # as otherwise nothing is compared
    assert of_libm - EXACT_IN_LIBM == set()


def test_processes_are_not_found_by_patterns():
    """glob() raises what nobody expects of a process that ends meanwhile (tests/processes.py)."""
    places = (p for folder in ("tests", "tools/src") for p in (ROOT / folder).rglob("*.py"))
    found = [p for p in places if re.search(r"/proc\b[^\n]*[.]r?glob\(", p.read_text())]
    assert found == []


def test_programs_are_waited_for_a_minute_at_least():
    """A machine may give a program no CPU for seconds; the limit only ends what hangs."""
    short = r"(?:[.]wait|communicate)\((?:timeout=)?[1-5]?[0-9]\)"
    found = [p for p in (ROOT / "tests").rglob("*.py") if re.search(short, p.read_text())]
    assert found == []

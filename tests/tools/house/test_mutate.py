# SPDX-License-Identifier: BSD-3-Clause
"""tests/mutate: which mistakes it makes in a file, and that it sees those that tests notice."""

import subprocess
import sys
from pathlib import Path

import pytest
from mutation.copy import Copy, UnitTest
from mutation.main import changed_since, drawn, sources
from mutation.mutants import Schemata, location

ROOT = Path(__file__).resolve().parents[3]
SOURCE = """\
#include <assert.h>
#define TWICE(x) ((x) * 2)
static const int table[2 + 1] = {1 + 1};

// The larger one, at most 10.
int limited(int a, int b) {
	static int calls = 0;
	_Alignas(8) int larger = a > b ? // not the other one
		a : b;

	assert(a + b > 0);
	calls += TWICE(1);
	if (larger > 10)
		return 10;
	switch (larger) {
	case 1 + 1:
		larger = larger - 0;
	}
	return larger;
}
"""


def changes(source):
    return [(m.line, m.was, m.now) for m in Schemata("a.c", source).mutants]


def test_a_string_has_no_comment():
    slashes = 'return strstr(path, "//") == 0'
    assert changes(f"int f(char *path) {{\n\t{slashes}; // so\n}}\n")[-1][1] == slashes + ";"


def test_a_block_that_is_not_understood_is_left_alone():
    assert changes("void f(void) {\n\tHEAD(JSON)\n\tcall(&a, 1);\n\tend(a);\n}\n") == []


def test_code_in_functions_is_changed():
    assert changes(SOURCE) == [
        (8, "a > b", "a >= b"),
        (12, "calls += TWICE(1)", "calls -= TWICE(1)"),
        (12, "calls += TWICE(1);", ""),
        (13, "10", "10 + 1"),
        (13, "larger > 10", "larger >= 10"),
        (13, "larger > 10", "!(larger > 10)"),
        (14, "10", "10 + 1"),
        (17, "0", "0 + 1"),
        (17, "larger - 0", "larger + 0"),
        (17, "larger = larger - 0;", ""),
        (19, "return larger;", "return 0;"),
    ]


@pytest.mark.parametrize(
    ("code", "now"),
    [
        ("x = a && b;", ["a || b", ""]),
        ("x = a == b;", ["a != b", ""]),
        ("if (a == b) return;", ["!(a == b)"]),
        ("if (!a) return;", ["!(!a)"]),
        ("x = !a;", ["a", ""]),
        ("x = 1.5;", ["1.5 * 1.1", ""]),
        ("x = 0x1e;", ["0x1e + 1", ""]),
        ("x <<= 1;", ["1 + 1", ""]),
        ("x++;", ["x--", ""]),
        ("do f(); while (0);", [""]),
        ("int x[2] = {0};", []),
        ("f(true);", ["false", ""]),
        ("free(p); prefetch(p); assert(a < b);", []),
        ("for (int i = a; i < 3; i++) ;", ["3 + 1", "i <= 3", "i--"]),
    ],
)
def test_each_statement_has_its_mistakes(code, now):
    assert [n for _, _, n in changes(f"void f(void) {{\n{code}\n}}\n")] == now


def test_a_return_of_a_structure_stays():
    assert changes("struct s f(struct s a) {\n\treturn a;\n}\n") == []
    assert changes("struct s *f(struct s *a) {\n\treturn a;\n}\n") == [
        (2, "return a;", "return 0;")
    ]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The example with its mistakes, as a compiler takes it; lines stay what they were."""
    folder = tmp_path_factory.mktemp("mutants")
    schemata = Schemata("a.c", SOURCE)
    (folder / "a.c").write_text(schemata.text)
    assert schemata.text.count("\n") == SOURCE.count("\n") + 2
    library = folder / "a.so"
    argv = ["cc", f"-I{ROOT}", "-shared", "-fPIC", "-o", library, folder / "a.c"]
    subprocess.run(argv, check=True)
    return schemata, library


def called(library, mutant, a, b, code="print"):
    program = f"import ctypes; print(ctypes.CDLL({str(library)!r}).limited({a}, {b}))"
    env = {"MUTANT": str(mutant), "PATH": "/usr/bin:/bin"}
    argv = [sys.executable, "-c", program]
    return int(subprocess.run(argv, env=env, capture_output=True, check=True).stdout)


def test_a_number_makes_its_mistake_alone(compiled):
    schemata, library = compiled
    number = {m.now: n for n, m in enumerate(schemata.mutants, 1)}
    assert called(library, 0, 3, 7) == 7
    assert called(library, 0, 3, 17) == 10
    assert called(library, number["!(larger > 10)"], 3, 7) == 10
    assert called(library, number["return 0;"], 3, 7) == 0
    assert called(library, number["a >= b"], 3, 7) == 7


def test_a_compilers_error_names_the_mistake_before_it():
    schemata = Schemata("a.c", "int f(int a) {\n\treturn a + 1;\n}\n")
    line = schemata.text.split("\n")[3]
    at = line.index("a - 1") + 3
    assert schemata.mutants[location(schemata.text, 2, at) - 1].now == "a - 1"
    assert location(schemata.text, 1, 5) is None
    without = Schemata("a.c", "int f(int a) {\n\treturn a + 1;\n}\n", without=schemata.mutants[:2])
    assert [m.now for m in without.mutants] == ["return 0;"]


def test_what_tests_come_past_and_fail_on_is_killed(tmp_path):
    """Three tests are scripts: one fails on mistake 1, one never, one does not come past it."""

    def script(name, body):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    come_past = frozenset({1, 2})
    copy = Copy.__new__(Copy)
    copy.mutants = dict(enumerate(Schemata("a.c", SOURCE).mutants, 1))
    copy.tests = [
        UnitTest(script("other", "exit 1"), 0, frozenset()),
        UnitTest(script("passes", "exit 0"), 0, come_past),
        UnitTest(script("fails", '[ "$MUTANT" != 1 ]'), 0, come_past),
    ]
    assert copy.killer(1) == "fails"
    assert copy.killer(2) is None
    assert copy.reached() == {1, 2}


def test_a_sample_is_the_same_each_time():
    mutants = dict(enumerate(Schemata("a.c", SOURCE).mutants, 1))
    assert len(drawn(mutants, 3)) == 3
    assert drawn(mutants, 3) == drawn(mutants, 3)
    assert drawn(mutants, 0) == list(mutants)


def test_mistakes_are_made_in_the_data_path():
    assert sources(["switch/aqm"]) >= {"switch/aqm/codel.c", "switch/aqm/codel_law.h"}
    assert len(sources([])) > 200
    assert not {name for name in sources([]) if "/live/" in name or name.startswith("tests/")}
    assert changed_since("0" * 40) == set()


def test_a_unit_test_that_hangs_is_ended_alone(tmp_path):
    """Check passes SIGTERM on to its process group: tests/mutate was in it, and ended too."""
    hangs = tmp_path / "hangs"
    hangs.write_text("#!/bin/sh\ntrap 'trap - TERM; kill -TERM 0' TERM\nsleep 60 &\nwait\n")
    hangs.chmod(0o755)
    program = (
        f"import pathlib, sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\n"
        "from mutation.copy import passes\n"
        f"print(passes(pathlib.Path({str(hangs)!r}), 0.1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], start_new_session=True, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "False\n")

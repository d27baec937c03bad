# SPDX-License-Identifier: BSD-3-Clause
"""A docstring is a sentence that a newcomer reads once, or it is not there.

Asked for one are modules, public classes, and public functions with a body of more than LINES
lines. A function's opens with a verb in the third person ("Returns the mean."); that of a module, a
class or a property may be a noun phrase ("Counters of the last round trip.") of at least WORDS
words. None opens with one of FRAGMENTS, none is a question.

Limits: a first word that ends in s is taken for a verb unless PLURALS has it or "of" follows it,
and no test knows whether a sentence is true, or good.
"""

import ast
import re

from weir.bootstrap import ROOT

SOURCES = ROOT / "tools/src/weir"
LINES = 5
WORDS = 4
GENERATED = "model_parts.py"  # its texts are those of C
FRAGMENTS = """
about after also and are as at because before behind beside both but by can could did do during
each either even for from had have he how if in into it its least less like may more most
neither never no nobody none nor not nothing of on one only or other others over own same she
should since so some such than that their them then there these they this those through to two
under until up upon was were what whatever when where whether which who whom whose why with
within without would you
"""
PLURALS = """
access acks addresses areas arguments arrivals bytes cables captures cdfs cells characters
columns commands completions controls cores dependencies devices entries errors
events experiments facts fields figures files flows folders functions generations headers hosts
hugepages interfaces jobs keys less likewise lines loads losses namespaces nanoseconds offsets
options packets parameters parts paths percentiles plugins ports privileges programs progress
quantiles quartiles rates receivers recoveries rounds rows seconds segments shares slots steps
streams texts transfers trials values windows
"""
# The packages and files that obey, below SOURCES or ROOT; in the end it is all of them.
OBEY = (
    "__init__.py",
    "__main__.py",
    "analysis",
    "api.py",
    "attack",
    "base",
    "bench",
    "bootstrap.py",
    "cli",
    "control",
    "docs",
    "export",
    "guests",
    "gym",
    "hosts",
    "identify",
    "live",
    "many",
    "plugin",
    "report",
    "runner",
    "studies",
    "study",
    "trace",
)
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_property(node):
    return any(
        "property" in d or d.endswith(".setter") for d in map(ast.unparse, node.decorator_list)
    )


def wrong_with(node):
    """Returns what is wrong with the docstring of a module, class or function, or None."""
    text = ast.get_docstring(node)
    if text is None:
        return None
    words = re.split(r"(?<=[.?!])\s", text)[0].split()
    first = re.sub(r"('s)?\W*$", "", words[0])
    if first.lower() in FRAGMENTS.split():
        return f"opens with a fragment: {words[0]}"
    if words[-1].endswith("?"):
        return "asks a question"
    if isinstance(node, FUNCTION) and not is_property(node):
        noun = first.lower() in PLURALS.split() or words[1:2] in (["of"], ["per"])
        if noun or not re.fullmatch(r"[A-Z][a-z]*s[,;]?", words[0]):
            return f"opens with no verb: {words[0]}"
    elif len(words) < WORDS:
        return f"has fewer than {WORDS} words"
    return None


def asked_for(node):
    """Returns whether a public thing is large enough to need a docstring."""
    if not isinstance(node, FUNCTION):
        return bool(node.body)
    return not is_property(node) and node.end_lineno - node.body[0].lineno + 1 > LINES


def complaints(place, text, *, tests=False):
    """Yields a sentence for each docstring that is none, or that is missing."""

    def visit(node, name, public):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTION)):
            wrong = wrong_with(node)
            if wrong is None and public and not ast.get_docstring(node) and asked_for(node):
                wrong = "needs a docstring"
            if wrong is not None:
                yield f"{place}:{getattr(node, 'lineno', 1)}: {name}: {wrong}"
            public = public and not isinstance(node, FUNCTION)
        for child in ast.iter_child_nodes(node):
            inner = getattr(child, "name", None) or ""
            yield from visit(child, inner, public and not inner.startswith("_"))

    yield from visit(ast.parse(text), "module", not tests)


def test_fragments_are_found():
    text = '''"""Of a run."""
class One:
    """Counters of the last round trip."""
    @property
    def ns(self):
        """Mean cost of a packet."""
    def sent(self):
        """Packets, all ports together."""
    def names(self):
        """Names the flows."""
    def rounds(self):
        """Names of the flows."""
class Two:
    """A thing."""
def long(self):
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    return a
'''
    assert [line.partition(": ")[2] for line in complaints("a.py", text)] == [
        "module: opens with a fragment: Of",
        "sent: opens with no verb: Packets,",
        "rounds: opens with no verb: Names",
        "Two: has fewer than 4 words",
        "long: needs a docstring",
    ]


def test_docstrings_are_sentences():
    wrong = []
    for name in OBEY:
        top = SOURCES / name if (SOURCES / name).exists() else ROOT / name
        files = sorted(top.rglob("*.py")) if top.is_dir() else [top]
        assert files, name
        for file in (one for one in files if one.name != GENERATED):
            tests = not file.is_relative_to(SOURCES)
            place = file.relative_to(ROOT)
            wrong += complaints(place, file.read_text(), tests=tests)
    assert not wrong, "\n".join(wrong)

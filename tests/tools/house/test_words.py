# SPDX-License-Identifier: BSD-3-Clause
"""No identifier is a word that a reader who knows DPDK, Linux and the RFCs would have to learn.

Pages are few words in short sentences.
"""

import io
import re
import subprocess
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WORDS_MAX = 45_000  # of all Markdown in git but the course's, as wc -w counts
# Lab sheets are read by students, one at a time, and not to learn or change Weir: their words are
# no page that a user has to find something in, and count apart.
COURSE, COURSE_WORDS_MAX = "tools/docs/course/", 3_000
SENTENCE_WORDS_MAX, SENTENCE_WORDS_MEAN_MAX = 40, 20
# Words of our own, and what the field says instead.
WORDS = {
    "iteration (of a loop), pacing slot": "turn turns",
    "trace, traced": "tell tells telling told",
    "rx_rings, nb_handed, nb_rx, mbuf_cache": "takes handeds came freshes",
    "packets_to_mbufs": "emerge",
    "dynamic connection": "stranger strangers",
    "owns_queue, is_primary": "serves leads",
    "relost range, repeated, second": "again",
    "random stream, draw": "dice",
    "quiesced, tx_timeout": "stood patience",
    "sections, theme, group scan": "story look looks survey",
    "cwnd_reductions": "halvings",
    "the name of the structure": "who whose nobody",
}
BANNED = {word: instead for instead, words in WORDS.items() for word in words.split()}
# In C also these, as whole identifiers.
BANNED_WHOLE = {"share": "shard_id, quota", "shares": "shards", "full": "tx_backpressure"}
BANNED_WHOLE["switch_mark"] = "packet metadata"
# The field's own meaning: BBR's full pipe; the study's window halvings; CMA-ES's ask and tell.
ALLOWED = {
    "sender/cc/bbr.c": {"full"},
    "tests/tools/study/test_corescale.py": {"halvings"},
    "tests/tools/analysis/test_metrics.py": {"halvings"},
    "tools/src/weir/attack/search.py": {"tell"},
    "tools/src/weir/gym/train.py": {"tell"},
}
COMMENT_OR_TEXT = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''


def c_names(text):
    """Identifiers; the names of tests are sentences."""
    code = re.sub(COMMENT_OR_TEXT, " ", text, flags=re.DOTALL)
    return set(re.findall(r"[A-Za-z_]\w*", code)) - set(re.findall(r"TEST\((\w+)\)", text))


def python_names(text):
    """Identifiers; the names of tests are sentences."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    names = {t.string for t in tokens if t.type == tokenize.NAME}
    return {name for name in names if not name.startswith("test_")}


def words_of(name):
    """Of snake_case, CAPITALS and CamelCase."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")


def complaints(place, text):
    """One sentence for each identifier that is a word of our own."""
    in_c = place.endswith((".c", ".h"))
    for name in sorted((c_names if in_c else python_names)(text)):
        if name in ALLOWED.get(place, ()):
            continue
        if in_c and name in BANNED_WHOLE:
            yield f"{place}: {name}: write {BANNED_WHOLE[name]}"
        yield from (
            f"{place}: {name}: write {BANNED[word]}" for word in words_of(name) if word in BANNED
        )


def sources():
    listed = subprocess.run(
        ["git", "ls-files", "*.c", "*.h", "*.py", "tests/check", "tests/mutate"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    return [name for name in listed if (ROOT / name).is_file()]


def test_words_are_found():
    c = 'int tell_cc(int at_turn); // in turn\nTEST(is_told) {}\nx("again", retold, share);\n'
    assert [line.split(":")[1] for line in complaints("a.c", c)] == [
        " at_turn",
        " share",
        " tell_cc",
    ]
    python = (
        "class Story:\n    '''Who?'''\n    share = 'halvings'  # told\ndef test_is_told(): pass\n"
    )
    assert [line.split(":")[1] for line in complaints("a.py", python)] == [" Story"]


def test_no_identifier_is_a_word_of_our_own():
    listed = sources()
    assert len(listed) > 200
    wrong = [line for name in listed for line in complaints(name, (ROOT / name).read_text())]
    assert wrong == []


def sentences(text):
    """Yields the sentences of a page's paragraphs and items.

    Tables, headings, comments and blocks of code are no sentences. Code in a line is one word, and
    a link is its text. A sentence ends with its paragraph or item, or with . ! or ? before a
    capital letter or a digit, not with a colon or semicolon.
    """
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(\||#|!\[).*", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=\n\n)(?: {4}.*\n)+", "", text)
    for paragraph in re.split(r"(?:^|\n)\s*(?:[-*]|\d+\.) |\n\s*\n", text):
        plain = re.sub(r"`[^`]*`", "CODE", " ".join(paragraph.split()))
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", plain.replace("**", ""))
        yield from filter(None, re.split(r"(?<=[.!?])[\")]*\s+(?=[\"(*]*[A-Z0-9])", plain))


def test_sentences_are_found():
    page = (
        "# Head. One\n\nA [b c](d.md) `e f`: g;\nh. I (j.)\n\n    code. Code\n\n"
        "| a. B |\n\n- k\n- L 1.5 M! N\n\n```sh\nO. P\n```\n"
    )
    assert list(sentences(page)) == ["A b c CODE: g; h.", "I (j.)", "k", "L 1.5 M!", "N"]


def test_pages_are_few_words_in_short_sentences():
    git = ["git", "ls-files", "*.md"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pages = {name: (ROOT / name).read_text() for name in listed.split() if (ROOT / name).is_file()}
    words = {True: 0, False: 0}
    for name, text in pages.items():
        words[name.startswith(COURSE)] += len(text.split())
    assert words[False] <= WORDS_MAX
    assert words[True] <= COURSE_WORDS_MAX
    lengths = {
        f"{name}: {sentence}": len(sentence.split())
        for name, text in pages.items()
        for sentence in sentences(text)
    }
    assert [one for one, words in lengths.items() if words > SENTENCE_WORDS_MAX] == []
    assert sum(lengths.values()) <= SENTENCE_WORDS_MEAN_MAX * len(lengths)

# SPDX-License-Identifier: BSD-3-Clause
"""ls, open, rm, tag and note; what a run folder is called."""

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from rich.live import Live
from weir.analysis import folder, labels, listing, removal
from weir.base import configs, errors, terminal
from weir.runner.options import default_out


def a_run(path, began="2026-11-01T10:00:00Z", goodput=5e6, cc="copa", utilisation=0.9):
    """A run folder without telemetry."""
    path.mkdir(parents=True)
    manifest = {"program": "weir-sim", "title": f"about {path.name}", "started_utc": began}
    (path / "manifest.json").write_text(json.dumps(manifest))
    summary = {
        "title": f"about {path.name}",
        "verdict": "ok",
        "groups": [{"name": "", "cc": cc, "flows": 2, "goodput_bps": goodput}],
        "links": {"forward": {"utilisation": utilisation, "queue_mean_ns": goodput / 2}},
    }
    (path / "summary.json").write_text(json.dumps(summary))
    (path / "config.yaml").write_text(f"flows:\n  - {{count: 2, cc: {{{cc}: {{}}}}}}\n")
    return path


@pytest.fixture
def runs(tmp_path):
    """Three runs, and a folder that is none."""
    top = tmp_path / "runs"
    a_run(top / "a", "2026-11-01T10:00:00Z", 5e6)
    a_run(top / "b", "2026-10-01T10:00:00Z", 9e6, "cubic")
    a_run(top / "deep/c", "2020-01-01T10:00:00Z", 1e6)
    (top / "papers").mkdir()
    (top / "papers/paper.tex").write_text("x")
    return top


def names(weir_here, *words):
    done = weir_here("ls", "--json", *words)
    assert done.status == 0, done.err
    return [row["path"].rpartition("/")[2] for row in json.loads(done.out)]


def test_ls_sorts_and_filters(weir_here, runs):
    assert names(weir_here) == ["c", "b", "a"]
    assert names(weir_here, "runs", "--sort", "goodput", "--reverse") == ["b", "a", "c"]
    assert names(weir_here, "--filter", "goodput>=5Mbit", "--filter", "delay<4ms") == ["a"]
    assert names(weir_here, "--filter", "flows.0.cc=cubic") == ["b"]
    assert names(weir_here, "--filter", "title~ABOUT c") == ["c"]
    labels.tag(runs / "a", ["fig3"])
    assert names(weir_here, "--filter", "tag=fig3") == ["a"]
    assert names(weir_here, "--filter", "tag!=fig3") == ["c", "b"]


def test_ls_shows_a_line_for_each_run(weir_here, runs):
    labels.note(runs / "a", "for the paper")
    done = weir_here("ls")
    assert re.search(r"runs/a +2026-11-01 10:00 +5\.00 Mbit/s +2\.50 ms +ok +2 copa", done.out)
    assert "for the paper" in done.out
    assert "3 in runs" in done.out
    assert "tags" not in done.out  # nobody has given one


def test_branches_stand_below_their_run(weir_here, runs):
    a_run(runs / "a/branches/slow", "2026-11-01T10:00:10Z", 2e6)
    a_run(runs / "a/branches/fast", "2026-11-01T10:00:10Z", 8e6)
    a_run(runs / "elsewhere")
    (runs / "b/branches").symlink_to(runs / "a/branches")

    assert names(weir_here) == ["c", "b", "a", "fast", "slow", "elsewhere"]
    assert names(weir_here, "--filter", "goodput>7Mbit", "--filter", "goodput<9Mbit") == ["fast"]


def test_branches_go_with_their_run_unless_one_is_kept(runs):
    kept = a_run(runs / "a/branches/slow")
    assert removal.why_not(runs / "a") is None
    labels.tag(kept, ["keep"])
    assert removal.why_not(runs / "a") == f"{kept} has the tag 'keep'"


def test_a_sweep_is_one_line_until_it_is_named(weir_here, runs):
    import polars as pl

    a_run(runs / "sweep/x=1"), a_run(runs / "sweep/x=2")
    pl.DataFrame({"status": ["done", "failed"]}).write_parquet(runs / "sweep/table.parquet")
    assert names(weir_here) == ["c", "b", "a", "sweep"]
    entry = listing.read(runs / "sweep")
    assert (entry.title, entry.verdict, entry.runs) == ("sweep, 2 rows", "1 failed", 2)
    assert names(weir_here, "runs/sweep", "--sort", "folder") == ["x=1", "x=2"]


def test_a_run_that_cannot_be_read_says_why_in_its_line(runs):
    (runs / "a/summary.json").write_text("{")
    assert "not JSON" in listing.read(runs / "a").verdict
    (runs / "b/labels.json").write_text('{"tags": "keep"}')
    assert "Expected `array`, got `str` - at `$.tags`" in listing.read(runs / "b").verdict


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("ls", "nowhere"), "weir: nowhere: no such run folder\n"),
        (("ls", "--sort", "size"), "--sort: 'size' is none of folder, title, date"),
        (("ls", "--filter", "goodput"), "--filter: 'goodput' is no condition such as"),
        (("ls", "--filter", "speed>3"), "--filter: 'speed' is none of tag, folder"),
        (("ls", "--filter", "goodput>fast"), "goodput is compared with a number and its unit"),
        (("tag", "runs/a", "a b"), "'a b' is no tag: a tag is a word"),
        (("tag", "runs/papers", "x"), "runs/papers: not a run folder"),
        (("tag", "runs/a", "x", "--remove"), "runs/a has no tag 'x'"),
        (("note", "runs/a", "x" * 2001), "a note has at most 2000 characters, not 2001"),
        (("open", "runs/papers"), "runs/papers: not a run folder"),
        (("rm",), "name run folders, or say --older 30d"),
        (("rm", "--older", "long"), "--older: 'long' is not a time such as 30d"),
        (("rm", "runs/a"), "rm asks before it removes, and this is no terminal: say --yes"),
        (("rm", "runs/papers", "--yes"), "runs/papers is not a run folder: no manifest.json in it"),
    ],
)
def test_what_is_wrong_is_one_sentence(weir_here, runs, words, sentence):
    done = weir_here(*words)
    assert done.status in (1, 2)
    assert sentence in done.err
    assert done.err.count("\n") == 1
    assert len(list(listing.find(runs))) == 3


def test_rm_removes_what_is_old_and_keeps_what_is_tagged(weir_here, runs):
    labels.tag(runs / "b", ["keep"])
    done = weir_here("rm", "--older", "30d", "--yes", "runs")
    assert done.status == 0
    assert "runs/b has the tag 'keep': it stays" in done.err
    assert not (runs / "deep/c").exists()
    assert (runs / "b").exists()
    assert (runs / "papers/paper.tex").exists()
    assert weir_here("rm", "--older", "300w", "--yes").out == "nothing to remove\n"


def test_rm_of_named_runs_is_all_or_nothing(weir_here, runs):
    assert weir_here("rm", "runs/a", "runs/nowhere", "--yes").status == 2
    assert (runs / "a").exists()
    assert weir_here("rm", "runs/a", "runs/b", "--yes").out.startswith("removed 2 runs, ")
    assert sorted(path.name for path in runs.iterdir()) == ["deep", "papers"]


def test_rm_leaves_what_is_more_than_a_run(runs, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(runs / "a")
    assert "is a link" in removal.why_not(tmp_path / "link")
    a_run(runs / "a/inner")
    assert f"has another run in it: {runs / 'a/inner'}" in removal.why_not(runs / "a")
    (runs / "b/.git").mkdir()
    assert "git repository" in removal.why_not(runs / "b")
    monkeypatch.chdir(runs / "deep/c")
    assert "working directory" in removal.why_not(runs / "deep/c")


@pytest.mark.parametrize("part", ["", "/branches/slow"])
def test_rm_leaves_a_run_that_goes_on(weir, runs, part):
    if part:
        a_run(runs / f"a{part}")
    with (runs / f"a{part}/.weir-lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 2)
        done = weir("rm", "runs/a", "--yes")
    assert done.status == 2
    assert f"runs/a{part}: another run is writing there" in done.err
    assert (runs / "a/summary.json").exists()


def test_a_folder_that_cannot_be_written_is_named(runs, monkeypatch):
    """Not the lock file, of which its user never heard."""

    def read_only(path, *_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(errors.UserError) as refused, folder.locked(runs / "a"):
        pass
    assert str(refused.value) == f"{runs / 'a'}: cannot be written: Read-only file system"


CONFIG = """
duration: 300ms
warmup: 0s
flows: [{cc: newreno}]
paths:
  forward: [{link: {rate: 5Mbit, queue: {fifo: {limit: 9pkt}}}}]
  reverse: [{delay: {delay: 9ms}}]
"""


@pytest.mark.slow
def test_nothing_is_written_through_a_link(weir, weir_here, tmp_path):
    """In a folder of another any name may be a link: those that are there, and those beside."""
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    options = ("--no-report", "--force", "--out")  # the report has a command of its own
    run = ("run", config, "-o", "telemetry.level=2", *options)
    others = (
        ("tag", "{}", "mine"),
        ("report", "{}"),
        *(("export", "{}", "--to", form) for form in ("parquet", "pcapng")),
        ("rm", "{}", "--yes"),
    )
    first, victim = tmp_path / "first", tmp_path / "precious"
    victim.write_text("precious")
    assert weir(*run, first).status == 0
    for words in others[:-1]:
        assert weir_here(*(word.format(first) for word in words)).status == 0
    made = [path.relative_to(first) for path in first.rglob("*") if path.is_file()]
    assert len(made) > 10
    lock = [Path(folder.LOCK)]  # which keeps a command from the other names
    names = [(lock, (*run, "{}")), (lock, others[-1])]
    names += [(made, command) for command in ((*run, "{}"), *others[:-1])]
    for linked, command in names:
        place = tmp_path / "links"
        shutil.copytree(first, place)
        for name in linked:
            beside = (f".{name.name}.tmp", f".{name.stem}-{os.getpid()}{name.suffix}")
            for one in (name.name, *beside) if name.name != "manifest.json" else beside:
                (place / name).with_name(one).unlink(missing_ok=True)
                if one.startswith(".") or command[0] == "run":
                    (place / name).with_name(one).symlink_to(victim)
        call = weir if command[0] == "run" else weir_here
        done = call(*(str(word).format(place) for word in command))
        assert done.err.count("\n") <= 1, done.err
        assert victim.read_text() == "precious", command
        shutil.rmtree(place, ignore_errors=True)


EVIL = "a\x1b]0;title\x07\x9b2J\u202e[/]\nledger: balanced"


@pytest.mark.slow
def test_names_of_files_do_not_act_on_the_terminal(weir_here, tmp_path):
    run = a_run(tmp_path / f"runs/{EVIL.replace('/', '')}", cc=EVIL)
    (run / "config.yaml").write_text("flows: []\n")
    file = run / "summary.json"
    fact = {"cause": EVIL, "sentence": EVIL, "program": EVIL, "host": EVIL, "link": EVIL}
    found = json.loads(file.read_text()) | {
        "title": EVIL,
        "verdict": EVIL,
        **{key: [fact] for key in ("why", "faults", "verdicts")},
        "ledger": {"paths": {EVIL: {"drops": {EVIL: {"pkts": 1, "bytes": 1}}}}},
        "telemetry": {"streams": {EVIL: {"records": 1, "lost": 1}}},
        "hosts": {EVIL: dict.fromkeys(("offset_ns", "offset_error_ns"), 1)},
    }
    found["hosts"][EVIL] |= {"drift_ppm": 0, "drift_error_ppm": 0}
    found["groups"][0]["name"], found["links"][EVIL] = EVIL, found["links"]["forward"]
    file.write_text(json.dumps(found))
    labels.note(run, EVIL)
    damaged = a_run(tmp_path / "damaged\x1b]0;x\x07")
    (damaged / "summary.json").write_text("{")
    for words in (
        ("summary", run), ("compare", run, run), ("ls", "runs"), ("note", run, EVIL),
        ("summary", damaged), ("summary", EVIL), ("plot", run, "--figure", EVIL),
    ):  # fmt: skip
        done = weir_here(*words)
        assert done.out + done.err
        assert done.out + done.err == errors.printable(done.out + done.err), words
        assert not re.search("^ledger: balanced", done.out, re.MULTILINE) or words[0] == "note"


def test_a_screen_keeps_its_own_colours_and_bars():
    out = io.StringIO()
    with contextlib.redirect_stdout(errors.Plain(out)):
        screen = terminal.Screen(force_terminal=True, highlight=False, markup=False)
        screen.print(EVIL, style="red")
        with Live(EVIL, console=screen, auto_refresh=False):
            print(EVIL)
    assert out.getvalue().startswith("\x1b[31ma?]0;title?")
    assert "\x1b[1A" in out.getvalue()  # the bar goes back to its first line
    assert set(out.getvalue()) & set("\x07\x9b\u202e") == set()
    assert "\x1b]" not in out.getvalue()


def test_ages():
    assert removal.age_s("2w") == 14 * 86_400
    assert removal.age_s("1.5d") == 129_600
    assert removal.age_s("12h") == 43_200
    for text in ("30", "1.5", "x", ""):
        with pytest.raises(errors.UserError, match=f"--older: '{text}' is not a time such as"):
            removal.age_s(text)


def test_tags_and_the_note_are_in_the_report(weir_here, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    run = a_run(tmp_path / "run")
    assert weir_here("tag", "run", "fig3", "keep").out == "fig3 keep\n"
    assert weir_here("tag", "run", "fig3", "--remove").out == "keep\n"
    assert weir_here("note", "run", " the <first> one ").out == "the <first> one\n"
    done = weir_here("open", "run")
    assert done.out == "run/report.html\n"
    page = (run / "report.html").read_text()
    assert "<p>the &lt;first&gt; one</p>" in page
    assert "Tags: keep." in page
    written = (run / "report.html").stat().st_mtime_ns
    weir_here("open", "run")
    assert (run / "report.html").stat().st_mtime_ns == written
    labels.note(run, "")
    assert labels.read(run).note == ""


def test_a_run_folder_says_what_was_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = ["flows.0.count=10", "flows.0.cc={copa: {delta: 0.1}}"]
    made = default_out(tmp_path / "quickstart.yaml", given, 3, live=True)
    assert re.fullmatch(
        r"runs/quickstart-count=10-cc=_copa_delta_0\.1_-seed=3-live-\d{8}T\d{6}Z", str(made)
    )
    long = default_out(tmp_path / "x.yaml", ["a/../b=" + "é" * 500])
    assert len(long.name) < 130
    assert os.sep not in long.name


def test_a_configs_values_have_the_keys_of_overrides():
    config = {
        "paths": {"forward": [{"link": {"rate": "1"}}, {"delay": {"delay": "2"}}, {"link": {}}]},
        "flows": [{"count": "3", "cc": {"copa": {"delta": "0.5"}}}],
    }
    found = dict(configs.leaves(config))
    assert found["paths.forward"] == "link, delay, link"
    assert found["paths.forward.link.rate"] == "1"
    assert found["flows.0.cc"] == "copa"
    assert found["flows.0.cc.copa.delta"] == "0.5"

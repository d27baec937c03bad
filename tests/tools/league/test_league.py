# SPDX-License-Identifier: BSD-3-Clause
"""weir league and weir ci: means, ranks and their intervals; kept rows; a control of one's own."""

import json
import math
import re
import shlex
import subprocess
import sys

import msgspec
import numpy as np
import pytest
import yaml
from weir.analysis import folder
from weir.base import markdown
from weir.base.errors import UserError
from weir.base.page import Page
from weir.league import ci, entry, measure, page, standing
from weir.league.entry import Entry
from weir.many.cells import parted, run_cells
from weir.plugin.check import Result
from weir.study.claim import Checked, Claim, Experiment
from weir.study.measures import utilisation


def row(name, value, **changes):
    """A row whose numbers are all `value`, but for those of single scenes."""
    scores = {
        scene.name: [[None if one is None else changes.get(scene.name, value) for one in asked]]
        for scene in entry.questions()
        for asked in [entry.measures(scene)]
    }
    digests = {name: f"{value}" for name in scores}
    return Entry(name, name, f"{name}, for a test", scores, digest=f"{value}", digests=digests)


def by_name(found, name):
    return dict(zip((one.name for one in standing.COLUMNS), found.of(name)[1], strict=True))


def test_every_scene_of_evaluate_is_measured():
    for column in standing.COLUMNS:
        assert len(column.scenes()) >= 3, column.name
    assert any(judged for judged in entry.questions().values())
    for scene, judged in entry.questions().items():
        assert len(entry.measures(scene)) == 6 + len(judged)


def test_a_ratio_has_no_interval_where_it_is_the_same_in_every_scene():
    found = standing.standing([row("cubic", 10.0), row("twice", 20.0)])
    cells = by_name(found, "twice")
    for name in ("use", "queue", "short", "others"):
        assert math.isclose(cells[name].value, 200)
        assert cells[name].text(page.short) == "200"
    assert (cells["use"].rank, cells["queue"].rank) == (1, 2)
    assert cells["use"].places == "1 (1–1)"
    assert {cell.text(page.short) for cell in by_name(found, "cubic").values()} >= {"100", "10"}


def test_the_interval_of_a_mean_is_that_of_the_bootstrap():
    """One scene of 44 has ten times CUBIC's: in 36 % of the draws it is not there at all."""
    scenes = len(standing.COLUMNS[1].scenes())
    found = standing.standing([row("cubic", 1.0), row("odd", 1.0, steps=10.0)])
    cell = by_name(found, "odd")["use"]
    assert math.isclose(cell.value, 100 * 10 ** (1 / scenes))
    draws = np.random.default_rng(2).binomial(scenes, 1 / scenes, 100_000)
    expected = 100 * 10 ** (np.percentile(draws, [2.5, 97.5]) / scenes)
    assert np.allclose((cell.low, cell.high), expected)
    assert (cell.rank, cell.rank_low, cell.rank_high) == (1, 1, 1)  # ties share the better rank


def test_what_is_not_known_is_a_dash_and_has_no_rank():
    lacking = row("lacking", 5.0)
    lacking.scores = {
        name: [[None] * len(seed) for seed in seeds] for name, seeds in lacking.scores.items()
    }
    found = standing.standing([row("cubic", 1.0), lacking, row("other", 2.0)])
    cells = by_name(found, "lacking")
    assert {cell.text(page.short) for cell in cells.values()} == {"–"}
    assert {cell.places for cell in cells.values()} == {"–"}
    assert by_name(found, "other")["use"].places == "1 (1–1)"
    assert found.entries[-1].name == "lacking"
    whole = markdown.table(page.table(found))
    assert "| lacking | – | – | – | – | – | – | – | – | – |" in whole
    assert page.control(found, "lacking").title == "lacking in the league"


def test_seeds_are_drawn_too():
    base, wide = row("cubic", 1.0), row("wide", 1.0)
    for one, factors in ((base, (1, 1, 1)), (wide, (1, 2, 4))):
        one.scores = {
            name: [[v and v * f for v in seeds[0]] for f in factors]
            for name, seeds in one.scores.items()
        }
    cell = by_name(standing.standing([base, wide]), "wide")["use"]
    assert math.isclose(cell.value, 200)
    assert 150 < cell.low < 200 < cell.high < 270


def test_a_change_is_judged_scene_by_scene():
    before, after = row("mine", 2.0), row("mine", 3.0)
    base = row("cubic", 1.0)
    changes = {one.column.name: one for one in standing.changes(before, after, [base])}
    assert math.isclose(changes["use"].change, 1.5)
    assert (changes["use"].before, changes["use"].after) == (pytest.approx(200), pytest.approx(300))
    assert [(one.judged, one.column.name) for one in changes.values()] == [
        ("", "demands"), ("better", "use"), ("worse", "queue"), ("worse", "losses"),
        ("better", "fairness"), ("", "short"), ("better", "others")
    ]  # fmt: skip
    assert 0.4 < changes["short"].p < 0.6  # of three scenes one time in four, in two tests left
    assert changes["losses"].change == pytest.approx(1.0)
    text = markdown.render(ci.differences(before, after, list(changes.values()), base))
    assert "58 of 58 runs have other telemetry" in text
    assert (
        "| use of the link, of CUBIC's (%) | 200 | 300 | ×1.50 (×1.50 to ×1.50) | **better** |"
        in text
    )
    same = markdown.render(ci.differences(before, before, [], base))
    assert same == "All 58 runs have the same telemetry (digest `2.0`).\n"
    odd = standing.changes(base, row("cubic", 1.0, steps=10.0), [base])
    assert not next(one for one in odd if one.column.name == "use").judged


def test_a_comment_fits_on_github_and_says_what_fails():
    """GitHub takes 65,536 characters; the title did not say that means were worse."""
    before, after, base = row("mine", 2.0), row("mine", 3.0), row("cubic", 1.0)
    after.failed = {f"scene-{n}": "no memory" for n in range(50)}
    after.attacks = [["known", "utilisation", "48.4 %", "0.0 %"]]
    claims = [
        Claim(says, "our own", "direction", measure=utilisation, low=1, high=high)
        for says, high in [*((f"claim {n}", 4) for n in range(999)), ("the one that fails", 2)]
    ]
    study = Experiment("Alone", "a flow", tuple(claims))
    checks = [Result(f"check {n}", True, "fine") for n in range(30)]
    checks += [Result("ECN", None, "no answer"), Result("idle", False, "3 % of the link")]
    head = ci.Tried(after, checks, [Checked(study, claim, (3.0,)) for claim in claims])
    changed = standing.changes(before, after, [base])
    parts = ci.comment(head, ci.Tried(before, [], []), changed, [base], "abc")
    text = markdown.page(Page(f"mine: {ci.verdict(head, changed)}", list(parts)))
    assert len(text) < 20_000
    assert text.splitlines()[0] == (
        "# mine: fails (idle, claim 'the one that fails', scene-0, scene-1, scene-2, scene-3, ...)"
        "; of 7 means 3 better, 2 worse"
    )
    for line in (
        "| scene-0 | no memory |",
        "| unused capacity under known | – | 48.4 %; 0.0 % without it |",
        "| – | ECN | no answer |",
        "| **FAILED** | idle | 3 % of the link |",
        "| the one that fails | – | 3.00 | 1.00 to 2.00 | DIFFERS |",
        "960 more: `weir reproduce` of the study shows them.",
    ):
        assert line in text, line
    worse = markdown.render(ci.differences(row("mine", 1.0), row("mine", 9.0), [], base))
    for says in ("no longer hold", "hold now"):
        (names,) = re.findall(rf"^Demands that {says}: (.*)\.$", worse, re.MULTILINE)
        assert 1 <= names.count(": ") <= ci.NAMES_SHOWN
    assert "instructions per ACK" not in text  # of neither it is known
    assert "30 of 32 pass: check 0, check 1, " in text


def test_the_law_of_every_control_is_three_sentences():
    laws = yaml.safe_load(page.LAWS.read_text())
    assert set(laws) == set(measure.names())
    for name, law in laws.items():
        assert law.count(". ") + law.endswith(".") == 3, name


def test_kept_rows_are_those_of_this_tree(tmp_path):
    """Of each control some runs are done again and have the same values: else --write-docs."""
    file = entry.kept()
    assert file is not None, "scenes have changed: tools/weir league --write-docs"
    rows = {one.name: one for one in file.rows}
    assert set(rows) >= set(measure.names())
    cells = {}
    for scene in entry.questions():
        if scene.name in ("100kbit-500ms", "2Mbit-80ms-1BDP", "newreno-0.5BDP"):
            for name in measure.names():
                (cell,) = scene.setup(f"cc: {name}", f"-{name}").cells(quick=True)
                cells[cell] = name, scene
    assert len(cells) == 3 * len(measure.names())
    ran, failed = parted(run_cells(list(cells), tmp_path))
    assert not failed
    for cell, (name, scene) in cells.items():
        found = entry.measured(folder.load(ran[cell.name]), scene)
        assert rows[name].scores[scene.name] == [found], cell.name


def test_the_commands_of_a_page_run(weir, build_plugin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = entry.kept()
    vegas = next(one for one in file.rows if one.name == "vegas")
    plugin = build_plugin().relative_to(tmp_path)
    for written in ("vegas", str(plugin), f"{{plugin: {plugin}, beta: 0.8}}"):
        commands = list(page.attacked(msgspec.structs.replace(vegas, written=written)))
        assert len(commands) >= 8
        words = commands[0]
        config = str(page.registry.FOLDER / words[2].rpartition("/")[2])
        more = ("--duration", "6s", "--no-report", "--force", "--out", "run")
        ran = weir("run", config, *words[3:], *more)
        assert ran.status == 0, ran.err
        name = "vegas" if written == "vegas" else plugin.name
        assert name in (tmp_path / "run/config.yaml").read_text()


def test_a_name_of_weirs_own_is_refused(weir, build_plugin, tmp_path):
    """In weir ci it took the row beside which all others stand; a second mine.so the first's."""
    plugin = build_plugin().rename(tmp_path / "cubic.so")
    (tmp_path / "other").mkdir()
    for file in ("mine.so", "other/mine.so", "index.so"):
        (tmp_path / file).write_bytes(plugin.read_bytes())
    (tmp_path / "Makefile").write_text(
        "all:\n\tmkdir made && mv cubic.so made && rm *.so && mv made/* .\n"
    )
    for words, file, name in (
        (("league", "cubic.so"), "cubic.so", "cubic"),
        (("league", "mine.so", "other/mine.so"), "other/mine.so", "mine"),
        (("league", "index.so"), "index.so", "index"),
        (("ci", "."), "cubic.so", "cubic"),
    ):
        done = weir(*words)
        sentence = f"weir: league: {file}: there is a {name} already: name it otherwise\n"
        assert (done.status, done.err) == (2, sentence)


def test_two_settings_of_a_control_are_two_rows(build_plugin, tmp_path, monkeypatch):
    """weir league said of both that no file, kind or name was so called."""
    monkeypatch.chdir(tmp_path)
    plugin = build_plugin().relative_to(tmp_path)
    written = [f"{{plugin: {plugin}}}", f"{{plugin: {plugin}, beta: 0.8}}",
               f"{{plugin: {plugin}, beta: 0.7}}", "{copa: {delta: 0.4}}", "copa"]  # fmt: skip
    several = [measure.Asked(one, True, tmp_path) for one in written]
    names = [one.control.name for one in several]
    assert names == ["mine", "mine-beta-0.8", "mine-beta-0.7", "copa-delta-0.4", "copa"]
    assert len({measure.key_of(one) for one in several}) == len(several)
    assert measure.key_of(several[0]) == measure.key_of(measure.Asked(str(plugin), True, tmp_path))
    says = [measure.described(one)["summary"] for one in several]
    assert says[0] == says[1] == says[2] != says[3] == says[4]
    stack = measure.described(measure.Asked("quic:ngtcp2:bbr", True, tmp_path))
    assert stack["summary"] == "QUIC's own ngtcp2:bbr, in a guest"


def test_a_control_with_parameters_is_refused_in_one_sentence(weir, build_plugin, tmp_path):
    plugin = build_plugin()
    for written, sentence in (
        ("{nosuch: {}}", "cc: 'nosuch' is not a congestion control; there is copa, "),
        ("{plugin: none.so, beta: 1}", "plugin: {here}/none.so: cannot be read: "),
        ("{python: none.py:Mine, a: 1}", "python: {here}/none.py: cannot be read: "),
        (f"{{plugin: {plugin}, bet: 1}}", "mine: unknown key 'bet'; did you mean 'beta'?"),
        ("{}", "cc: a name is wanted"),
    ):
        done = weir("league", written)
        assert done.status == 2, written
        assert sentence.format(here=tmp_path) in done.err, done.err
        assert done.err.count("\n") == 1


def test_a_row_is_used_again_wherever_its_plugin_is_but_not_a_guest_s(build_plugin, tmp_path):
    """weir ci unpacks the base elsewhere each time; a kernel may be built again under its name."""
    first, other = build_plugin(), build_plugin(('"50%"', '"60%"'))
    keys = [measure.key_of(measure.Asked(str(one), True, tmp_path)) for one in (first, other)]
    other.write_bytes(first.read_bytes())
    assert measure.key_of(measure.Asked(str(other), True, tmp_path)) == keys[0] != keys[1]
    assert measure.key_of(measure.Asked("linux:cubic", True, tmp_path)) == ""


def git(place, *words):
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(place), *own, *words], check=True, capture_output=True)


def typed(place, *words):
    """Runs a command in a process of its own: polars writes tables in it."""
    argv = [sys.executable, "-m", "weir", *words]
    return subprocess.run(argv, cwd=place, capture_output=True, text=True)


@pytest.mark.slow
def test_a_control_of_ones_own_is_a_row_and_a_comment(weir, tmp_path):
    """The new control is NewReno, to the last digit; its second row runs nothing."""
    assert weir("new", "cc", "mine").status == 0
    assert weir("new", "study", "mine", "--folder", "mine/study").status == 0
    link = yaml.safe_load((tmp_path / "mine/study/link.yaml").read_text())
    assert link["flows"][0]["cc"] == {"plugin": "../mine.so"}  # it was newreno
    written = weir("new", "ci", "mine")
    assert written.out.splitlines()[0] == ".github/workflows/mine.yaml"
    workflow = yaml.safe_load((tmp_path / ".github/workflows/mine.yaml").read_text())
    (job,) = workflow["jobs"].values()
    step = next(one["run"] for one in job["steps"] if one.get("name") == "Try mine")
    command = shlex.split(step.splitlines()[-1].replace("$BASE", "HEAD"))
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Nothing")
    tried = typed(tmp_path, *command[1:])
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout == (tmp_path / "weir-ci/comment.md").read_text()
    body = json.loads((tmp_path / "weir-ci/comment.json").read_text())
    assert body == {"body": tried.stdout}
    assert tried.stdout.startswith("# mine: all checks pass\n")
    assert "has no such control: nothing to compare it with." in tried.stdout
    assert "| the link is used |" in tried.stdout
    second = typed(tmp_path, "league", "mine/mine.so", "--out", "weir-ci/head", "--json")
    assert second.returncode == 0, second.stderr
    assert "mine:" not in second.stderr
    rows = {one["name"]: one for one in json.loads(second.stdout)}
    for column in standing.COLUMNS:
        assert rows["mine"][column.name] == rows["newreno"][column.name], column.name
    assert rows["mine"]["worst"]["harm"] == rows["newreno"]["worst"]["harm"]
    assert (tmp_path / "weir-ci/head/mine.html").is_file()


def test_a_control_that_cannot_be_tried_is_one_sentence(weir, tmp_path):
    (tmp_path / "mine").mkdir()
    done = weir("ci", "mine")
    assert (done.status, done.err) == (
        2,
        "weir: ci: mine: it has no Makefile; weir new cc NAME makes one\n",
    )
    (tmp_path / "mine/Makefile").write_text("all:\n")
    done = weir("ci", "mine")
    assert done.err == "weir: ci: mine: make leaves 0 files *.so there; one is wanted\n"
    git(tmp_path, "init", "-q")
    done = weir("ci", "mine", "--base", "nosuch")
    assert done.err == "weir: ci: --base nosuch: the repository of mine has no such commit\n"


def test_rows_are_written_a_line_each_without_what_is_of_one_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(entry, "KEPT", tmp_path / "results.json")
    one = row("mine", 1.0)
    one.written, one.worst = "/home/a/mine.so", entry.Worst(0.5, 0.0, {}, "/home/a/attack.yaml")
    entry.write(entry.File("league", "abc", "2026-01-01", entry.scenes_digest(), [one]))
    text = entry.KEPT.read_text()
    assert "/home" not in text
    one.written = "{plugin: /home/a/mine.so, beta: 0.8}"
    entry.write(entry.File("league", "abc", "2026-01-01", "", [one]), tmp_path / "other.json")
    assert '"{plugin: mine.so, beta: 0.8}"' in (tmp_path / "other.json").read_text()
    assert len(text.splitlines()) == 3
    (back,) = entry.kept().rows
    assert back.scores == one.scores
    with pytest.raises(UserError, match="the row of cubic"):
        entry.base_of([back])
    outdated = msgspec.json.decode(text)
    outdated["scenes"] = "other"
    entry.KEPT.write_text(json.dumps(outdated))
    assert entry.kept() is None


def test_a_program_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "Makefile").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="ci: make is not installed"):
        ci.built(tmp_path)

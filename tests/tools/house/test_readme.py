# SPDX-License-Identifier: BSD-3-Clause
"""The pages stay true: their commands run, their examples are configs, their files exist."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest
from test_commands import LEAVES, parse
from test_layout import functions
from weir.base.programs import PROGRAMS
from weir.docs import reference

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text()
GUIDE = "".join(
    (ROOT / f"tools/docs/{name}.md").read_text()
    for name in ("how-to/experiments", "how-to/sweeps", "reference/run-folder")
)
DESIGN = (ROOT / "common/design.md").read_text()
README_WORDS_MAX = 800
# Options of the C programs, and of DPDK, pip and mm-link.
OTHER_OPTIONS = {
    *("--help", "--replay", "--connections", "--idle"),
    *("--no-huge", "--in-memory", "--lcores", "--vdev"),
    *("--require-hashes", "--no-deps", "--uplink-queue", "--uplink-log"),
}
PAGES = sorted(
    ROOT / name
    for name in subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
)


def test_the_first_picture_is_the_same_with_any_fonts_and_says_what_it_shows() -> None:
    """Its keys overlapped where no STIX fonts are."""
    picture = (ROOT / re.findall(r"!\[.*\]\((.*\.svg)\)", README)[0]).read_text()
    assert "<text" not in picture
    assert re.search("<title[^>]*>.+</title>\\s*<desc[^>]*>.+</desc>", picture)


def test_rules_of_rfcs_name_tests_that_there_are() -> None:
    """A rule is kept, or done as Linux does it, because a test says so."""
    page = (ROOT / "sender/README.md").read_text().partition("## Rules of the RFCs")[2]
    tested, _, others = page.partition("### Not kept")
    rows = [re.findall(r"^\| \d.* \| .* \| (.*) \|$", part, re.M) for part in (tested, others)]
    assert sum(map(len, rows)) == page.count("\n| ") - 3  # all but the heads
    there = {
        name
        for path in (ROOT / "tests/unit").glob("*_test.c")
        for name in re.findall(r"^TEST\((\w+)\)", path.read_text(), re.MULTILINE)
    }
    assert all(re.search(r"`\w+`", row) for row in rows[0])
    assert set(re.findall(r"`(\w+)`", "".join(rows[0] + rows[1]))) <= there


def test_the_readme_is_short() -> None:
    """What Weir is, two commands, and where to read on."""
    assert len(README.split()) <= README_WORDS_MAX


def test_every_version_is_the_same() -> None:
    """Of the build, which the package reads, the citation, and the newest in CHANGELOG.md."""
    places = {
        "meson.build": r"^  version: '([\d.]+)'",
        "CITATION.cff": r"^version: ([\d.]+)",
        "CHANGELOG.md": r"^## \[([\d.]+)\] - \d{4}-\d\d-\d\d$",
    }
    found = {
        place: re.findall(pattern, (ROOT / place).read_text(), re.MULTILINE)[:1]
        for place, pattern in places.items()
    }
    assert len({tuple(versions) for versions in found.values()}) == 1, found
    assert found["meson.build"]


def blocks(language: str) -> list[str]:
    """The pages' fenced blocks of a language."""
    found = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found
    return found


def block(language: str) -> str:
    """The first fenced block of a language."""
    return blocks(language)[0]


@pytest.mark.slow
def test_the_first_command(tmp_path: Path) -> None:
    """Quickstart: what the README says of it, and the Python examples on its folder."""
    assert "\n    tools/weir run configs/quickstart.yaml\n" in README
    out = tmp_path / "mine"
    argv = [
        str(ROOT / "tools/weir"),
        "run",
        str(ROOT / "configs/quickstart.yaml"),
        "--out",
        str(out),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "balanced" in done.stdout
    assert (out / "report.html").stat().st_size > 10_000
    summary = json.loads((out / "summary.json").read_text())
    link = summary["links"]["forward"]
    assert link["utilisation"] >= 0.97
    assert summary["jfi"] >= 0.95
    assert link["drops"] == 0
    assert link["queue_mean_pkts"] / 1000 == pytest.approx(2.4, abs=0.1)
    names: dict[str, object] = {}
    for example in blocks("python"):
        exec(example.replace("runs/mine", str(out)), names)
    assert len(names["flow"]) == 120  # type: ignore[arg-type]
    assert names["queue"].height > 0  # type: ignore[attr-defined]


def test_the_python_examples_import_what_there_is() -> None:
    """When the modules moved into packages, the examples named their old places."""
    for example in blocks("python"):
        exec("\n".join(re.findall(r"^(?:from|import) .*", example, re.MULTILINE)), {})


def test_the_example_is_a_config(weir_sim: Path) -> None:
    """The YAML block passes --check."""
    done = subprocess.run(
        [weir_sim, "-", "--check"], input=block("yaml"), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_sweep(tmp_path: Path) -> None:
    """The sweep shown is the file's, and comes out as the file's head says."""
    path = ROOT / "configs/sweeps/buffer.yaml"
    assert "\n    tools/weir sweep configs/sweeps/buffer.yaml\n" in GUIDE
    assert path.read_text().partition("config: ")[2] in GUIDE
    argv = [str(ROOT / "tools/weir"), "sweep", str(path), "--out", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "36 cells: 36 done" in done.stdout
    table = pl.read_parquet(tmp_path / "table.parquet")
    assert table.height == 36
    assert table["balanced"].all()
    keys = ["flows.0.cc", "paths.forward.link.queue.fifo.limit", "flows.0.count"]
    figures = ["links.forward.utilisation", "links.forward.queue_mean_pkts"]
    means = table.group_by(keys).agg(pl.mean(figures)).rows_by_key(keys, unique=True)
    for cc in ("newreno", "cubic"):
        few, many = means[cc, "0.1BDP", 10][0], means[cc, "0.1BDP", 100][0]
        assert few < many < 0.995 < means[cc, "1BDP", 10][0]
        assert means[cc, "4BDP", 100][1] > 3 * means[cc, "1BDP", 100][1]
    assert means["copa", "4BDP", 100] == pytest.approx(means["copa", "1BDP", 100], rel=0.01)


def test_the_example_of_an_error(weir_sim: Path, tmp_path: Path) -> None:
    """The sentence is what weir-sim says."""
    config = tmp_path / "x.yaml"
    config.write_text(block("yaml").replace("100Mbit", "10Gbitt"))
    done = subprocess.run([weir_sim, config, "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    said = done.stderr.removeprefix("weir-sim: ").replace(str(config), "x.yaml").strip()
    assert f"`{said}`" in GUIDE


def test_every_config_says_what_it_shows() -> None:
    """The list of configs has a sentence of each."""
    rows = reference.configs({}).splitlines()[2:]
    assert len(rows) > 50
    assert all(re.fullmatch(r"\| `[\w/-]+\.yaml` \| .{20,}\. \|", row) for row in rows)


def anchors(text: str) -> set[str]:
    """What a link may name after its #: the headings, as GitHub writes them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """The page of configs named a heading that the README had no more."""
    text = page.read_text()
    for target in re.findall(r"\]\(\s*([^)\s]+)\s*\)", re.sub(r"`[^`]*`", "", text)):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        place = page.parent / file if file else page
        assert place.exists(), target
        assert not heading or heading in anchors(place.read_text()), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page: Path) -> None:
    """From the root, as the commands beside them, or from the page's folder."""
    folders = "common|sender|switch|tests|configs|tools"
    for name in re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text()):
        places = (ROOT / name, page.parent / name)
        assert "NAME" in name or any(place.exists() for place in places), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_shows_are_there(page: Path) -> None:
    """Each `tools/weir ...`, wherever a page writes one, is taken by the command's own parser."""
    for words in re.findall(r"tools/weir ((?:[a-z]+ )?[a-z]+[^`\n]*)", page.read_text()):
        shown = re.split(r"  | # | -->| \\$", words)[0].rstrip(")")
        shown = re.sub(r"[][]|\.\.\.|\|\S+", "", shown).replace(" N", " 1")  # [--flow N]..., a|b
        named = tuple(shown.split())
        if named not in {*LEAVES, ("pcap",)} and named[0] not in {*PROGRAMS} - {"pcap"}:
            parse(f"weir {shown}")


def test_options_that_a_page_names_alone_are_there() -> None:
    """Two pages had `--scheduler`, which was `--cluster` by then."""
    params = [param for command in LEAVES.values() for param in command.params]
    ours = {name for param in params for name in (*param.opts, *param.secondary_opts)}
    named = {
        (option, str(page.relative_to(ROOT)))
        for page in PAGES
        if page.name != "CHANGELOG.md"  # which says what was
        for option in re.findall(r"`(--[a-z][\w-]+)[^`\n]*`", page.read_text())
    }
    assert len(named) > 100
    assert [pair for pair in sorted(named) if pair[0] not in ours | OTHER_OPTIONS] == []


def test_the_map_is_true() -> None:
    """Folders that the design page names exist."""
    folders = re.findall(r"^    ([\w/]+)/  ", DESIGN, re.MULTILINE)
    assert len(folders) > 20
    for folder in folders:
        assert (ROOT / folder).is_dir(), folder


@pytest.mark.parametrize("folder", ["switch", "sender"])
def test_every_step_of_a_packet_is_a_function(folder: str) -> None:
    """A walk through the code names each function with the file that defines it."""
    text = (ROOT / folder / "README.md").read_text()
    section = re.search(r"## One packet, step by step\n(.*?)(?:\n## |\Z)", text, re.DOTALL)
    assert section
    walks = re.findall(r":\n\n((?:\d+\. .*\n)+)", section[1])
    assert len(walks) == 2
    wrong = []
    for walk in walks:
        steps = re.findall(r"^\d+\. `(\w+)` \(`([\w./]+)`\): ", walk, re.MULTILINE)
        assert 5 < len(steps) == walk.count("\n") <= 15
        for name, file in steps:
            path = next((p for p in (ROOT / folder / file, ROOT / file) if p.is_file()), None)
            if path is None or name not in dict(functions(path.read_text())):
                wrong.append(f"{name} is not defined in {file}")
    assert wrong == []

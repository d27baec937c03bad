# SPDX-License-Identifier: BSD-3-Clause
"""Puts the playground together in build-web/playground: files that any server serves.

To be run after build.py, by the Python that has Weir's package.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from weir.base import programs, schema
from weir.base.page import Page
from weir.docs import gallery, playground
from weir.report import browser, document, theme

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build-web"
OUT = BUILD / "playground"
FILE = re.compile(r"\bfile: *([\w./-]+)")
# Examples that take a browser more than half a minute: CPU seconds of weir-sim -O2 on one core.
NATIVE_S = {"eight-controls": 20, "loopback-5000": 16}
SLOWER = "It takes about {} s natively, and three to five times as long in a browser."
REFUSED = {"corescale-100g": "It needs more memory than a browser gives; natively it takes 60 s."}
GUESTS = re.compile(r"\b(stack|peer): *\{? *linux")


class Example(msgspec.Struct):
    """A config that the page offers."""

    name: str
    text: str
    native: str  # what the page says of it at once
    files: dict[str, str]  # that it reads, by their names


def example(path: Path) -> Example:
    """Returns a config with the files that it names, beside it."""
    text = path.read_text(encoding="utf-8")
    files = {
        name: (path.parent / name).read_text(encoding="utf-8")
        for name in FILE.findall(text)
        if (path.parent / name).is_file()
    }
    said = REFUSED.get(path.stem, "")
    if path.stem in NATIVE_S:
        said = SLOWER.format(NATIVE_S[path.stem])
    if GUESTS.search(text):
        said = f"Linux kernels do not run in a browser: weir run configs/{path.name}"
    below = path.is_relative_to(ROOT)
    return Example(playground.name(path.relative_to(ROOT) if below else path), text, said, files)


def written() -> list[Example]:
    """Returns the configs that commands of the gallery write, by `weir init`."""
    found = {}
    commands = [command for one in gallery.pictures() for command in one.commands]
    with tempfile.TemporaryDirectory() as work:
        for command in dict.fromkeys(commands):
            words = shlex.split(command)
            if words[0] == "init":
                argv = [sys.executable, "-P", "-m", "weir", *words]
                subprocess.run(argv, cwd=work, check=True, capture_output=True)
                found[words[1]] = example(Path(work) / words[1])
    return list(found.values())


def examples() -> list[Example]:
    """Returns the configs that are an experiment of weir-sim, and those of the gallery."""
    found = []
    configs = ROOT / "configs"
    for path in [*sorted((configs / "course").glob("*.yaml")), *sorted(configs.glob("*.yaml"))]:
        check = [programs.find_program("sim"), path, "--check"]
        if subprocess.run(check, capture_output=True).returncode == 0:
            found.append(example(path))
    return [*found, *written()]


def styles() -> dict[str, object]:
    """Returns the tables of colours, markers and dashes that theme.js reads."""
    names = ("STYLES", "LABELS", "CYCLE", "FREE", "DASHES", "INK", "FAINT")
    return {name.lower(): getattr(theme, name) for name in names}


def frame() -> str:
    """Returns the page of figures, without any, as wide as its frame."""
    template = document.templates().get_template("page.html.j2")
    text = template.render(page=Page("Figures", []), parts=[], uplot=browser.library)
    text = text.replace("</style>", "body { max-width: none; margin: 0; padding: 0; }\n</style>")
    return re.sub("<header>.*?</header>", "", text, flags=re.DOTALL)


def main() -> None:
    """Writes all files of the playground."""
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(HERE / "playground", OUT)
    for name in ("weir-sim.js", "weir-sim.wasm"):
        shutil.copy2(BUILD / name, OUT)
    shutil.copy2(ROOT / "tools/src/weir/report/templates/page.css", OUT)
    made = {"theme": styles(), "schema": schema.of_config(), "examples": examples()}
    for name, value in made.items():
        (OUT / f"{name}.json").write_bytes(msgspec.json.encode(value))
    (OUT / "frame.html").write_text(frame(), encoding="utf-8")
    names = sorted(path.name for path in OUT.iterdir())
    (OUT / "files.json").write_bytes(msgspec.json.encode(["./", *names, "files.json"]))
    print(OUT)


if __name__ == "__main__":
    main()

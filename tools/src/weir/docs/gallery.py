# SPDX-License-Identifier: BSD-3-Clause
"""The gallery: pictures, and the commands that make them, which tools/docs/gallery.yaml lists."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from weir.base.errors import UserError
from weir.bootstrap import ROOT
from weir.docs import playground

LIST = ROOT / "tools/docs/gallery.yaml"
PICTURES = ROOT / "tools/docs/gallery"
WIDTH = 800  # pixels
COLOURS = 32  # a picture of lines needs no more, and is a quarter of the size


@dataclass(frozen=True)
class Picture:
    """A picture of the gallery with the commands that make it."""

    name: str
    title: str
    commands: list[str]
    note: str = ""  # why no browser opens it, and what it takes

    @property
    def all_commands(self) -> list[str]:
        return [*self.commands[:-1], f"{self.commands[-1]} --out {self.name}.png"]


def pictures() -> list[Picture]:
    if not LIST.exists():
        raise UserError("this installation has no gallery; a clone of Weir has it", 1)
    return [Picture(**entry) for entry in yaml.safe_load(LIST.read_text(encoding="utf-8"))]


def section(picture: Picture) -> str:
    typed = "\n".join(f"tools/weir {command}" for command in picture.all_commands)
    image = f"![{picture.title}](../tools/docs/gallery/{picture.name}.png)"
    parts = [f"## {picture.title}", image, f"```sh\n{typed}\n```"]
    parts += [one for one in (playground.links(picture.commands, "../"), picture.note) if one]
    return "\n\n".join(parts) + "\n"


def page() -> str:
    """Returns the gallery as a page of the site."""
    head = (
        "# Gallery\n\nEach picture, and all commands that made it, from the folder of a clone.\n\n"
    )
    if playground.FOLDER.exists():
        head += (
            '<a href="../playground/index.html">Playground</a>: experiments in this browser.\n\n'
        )
    return head + "\n".join(map(section, pictures()))


def shrink(drawn: Path, into: Path) -> None:
    """Makes a picture narrower, with few colours."""
    from PIL import Image

    with Image.open(drawn) as image:
        size = (WIDTH, round(image.height * WIDTH / image.width))
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    # By coverage: the usual way gives the colour of a thin line to a line that is longer.
    few = small.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(into, optimize=True)


def draw() -> None:
    """Runs all commands, each once, in a folder of their own, and keeps the pictures."""
    done: set[str] = set()
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="weir-gallery-") as work:
        (Path(work) / "configs").symlink_to(ROOT / "configs")
        for picture in pictures():
            for command in picture.all_commands:
                if command not in done:
                    run(command, Path(work))
                    done.add(command)
            shrink(Path(work) / f"{picture.name}.png", PICTURES / f"{picture.name}.png")


def run(command: str, folder: Path) -> None:
    """Runs a command. UserError: it failed, with what it printed."""
    words = shlex.split(command)
    quick = ["--no-report"] if words[0] == "run" else []
    argv = [sys.executable, "-P", "-m", "weir", *words, *quick]
    result = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        raise UserError(f"weir {command}: {result.stderr.strip()}", 1)

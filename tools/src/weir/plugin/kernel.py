# SPDX-License-Identifier: BSD-3-Clause
"""The congestion controls of Linux in their own source, for weir new cc NAME --linux.

~/.cache/weir/controls/VERSION/tcp_*.[ch]   of a Debian package linux-source-*
~/.cache/weir/controls/plugins/NAME/NAME.so   those of which studies have `sources`

Nothing of them is part of Weir: they are downloaded, or the user's.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from weir.base import foreign, places
from weir.base.errors import UserError
from weir.guests import build
from weir.guests.commands import output, piped
from weir.guests.recipe import Recipe
from weir.plugin import new

CONTROL = re.compile(r"(?:.*/)?(?:tcp_)?([a-z0-9]+)(?:\.c)?")
NEEDED = re.compile(rb'^#include "(tcp_\w+)\.h"', re.MULTILINE)
OPS = b"tcp_congestion_ops"
EXPORTS = b"EXPORT_SYMBOL"  # others' headers have all that they give


def files(control: str, package: str | None) -> list[Path]:
    """Returns a control's C file, then what it needs beside it. UserError: there is none."""
    main = Path(control)
    if not main.is_file():
        main = downloaded(control, package)
    elif package is not None:
        raise UserError(f"new: --source: {main} is a file, which needs no package")
    text = main.read_bytes()  # names in kernels' comments may be in Latin-1
    if OPS not in text:
        raise UserError(f"new: --linux: {main} has no struct tcp_congestion_ops")
    headers = [main.with_name(f"{name.decode()}.h") for name in NEEDED.findall(text)]
    sources = [path.with_suffix(".c") for path in headers if path.stem != main.stem]
    exporting = [path for path in sources if path.is_file() and EXPORTS in path.read_bytes()]
    return [main, *exporting, *(path for path in headers if path.is_file())]


def compiled(control: str, folder: Path, package: str | None = None) -> Path:
    """Returns the plug-in of a control, which is made in folder/CONTROL if it is not there."""
    place = folder / control
    plugin = place / f"{control}.so"
    if not plugin.is_file():
        shutil.rmtree(place, ignore_errors=True)
        new.create("linux", control, place, files(f"net/ipv4/tcp_{control}.c", package))
        output(["make", "-s", "-C", str(place)])
    return plugin


def for_studies(controls: Iterable[str]) -> None:
    """Makes the plug-ins of these controls that studies run, anew: they may be another Weir's.

    Each takes the place of the one before at once, as a run may be about to load it.
    """
    for control in sorted(controls):
        place = places.plugins() / control
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place) as made:
            compiled(control, Path(made)).replace(place / f"{control}.so")


def downloaded(control: str, package: str | None) -> Path:
    """Returns a control's file of the package, which is downloaded if it is not in the cache."""
    package, version = build.source(Recipe(source=package))
    folder = places.cache() / "controls" / version
    if not folder.is_dir():
        download(package, version, folder)
    name = CONTROL.fullmatch(control)
    main = folder / f"tcp_{name[1] if name else ''}.c"
    if not main.is_file():
        texts = {path: path.read_bytes() for path in folder.glob("*.c")}
        found = (path for path, text in texts.items() if OPS in text and b"module_init" in text)
        have = ", ".join(sorted(path.stem.removeprefix("tcp_") for path in found))
        raise UserError(f"new: --linux: no file {control}; {package} {version} has {have}")
    return main


def download(package: str, version: str, folder: Path) -> None:
    """Fills a folder with the TCP files of a package, as a whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        deb = build.download(package, version, Path(place))
        tar, made = f"./usr/src/{package}.tar.xz", Path(place) / "controls"
        made.mkdir()
        with (
            piped(
                ["dpkg-deb", "--fsys-tarfile", str(deb)], ["tar", "-xO", tar], ["xz", "-dc", "-T2"]
            ) as xz,
            tarfile.open(fileobj=xz.stdout, mode="r|") as archive,
        ):
            for member in archive:
                if re.fullmatch(r"[^/]+/net/ipv4/tcp_\w+\.[ch]", member.name):
                    member.name = Path(member.name).name
                    foreign.extract(archive, member, made)
        if not any(made.iterdir()):
            raise UserError(f"new: {deb.name} holds no file net/ipv4/tcp_*.c", 1)
        if not folder.is_dir():
            made.rename(folder)

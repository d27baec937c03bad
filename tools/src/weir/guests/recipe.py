# SPDX-License-Identifier: BSD-3-Clause
"""Recipes of kernels that are not Debian's as they are: source, patches, modules, options.

Everything is copied before it is used: no folder or file of the user's is written to.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weir.base.errors import UserError
from weir.guests import kernels
from weir.guests.commands import make, output, piped

HZ = 250  # as Debian's kernels
TICKS = (250, 1000)
MODULES_MAX = 32  # message.h: GUEST_LOADED
MODULE_NAME_MAX = 55  # as the kernel's


@dataclass(frozen=True)
class Recipe:
    """A kernel's recipe; an empty one is Debian's newest kernel, `current`."""

    source: str | None = None  # a folder, a tarball or a Debian package
    patches: tuple[Path, ...] = ()
    modules: tuple[Path, ...] = ()  # folders with a Makefile or Kbuild
    fragment: Path | None = None  # options, on top of kernel.config
    name: str = kernels.CURRENT
    hz: int = HZ

    def whole(self) -> bool:
        """Returns whether the build needs the whole tree of the source."""
        return bool(self.source or self.patches or self.modules or self.fragment)

    def options(self) -> str:
        """Returns the options on top of those in kernel.config."""
        lines = "" if self.hz == HZ else f"CONFIG_HZ_{HZ}=n\nCONFIG_HZ_{self.hz}=y\n"
        lines += "CONFIG_MODULES=y\n" if self.modules else ""
        return lines + ("" if self.fragment is None else self.fragment.read_text("utf-8"))

    def hashes(self) -> list[str]:
        """Returns hashes of the patches, then of the modules, in order."""
        added = [hash_of([path]) for path in self.patches]
        return added + [hash_of(files(folder)) for folder in self.modules]

    def file(self) -> Path | None:
        """Returns the folder or file that the source is; None: it is a package."""
        return None if self.source is None or is_package(self.source) else Path(self.source)


def is_package(source: str) -> bool:
    return re.fullmatch(r"linux-source-[\d.]+", source) is not None and not Path(source).exists()


def files(folder: Path) -> Iterator[Path]:
    """Yields all files below a folder, without git's, in an order that is always the same."""
    found = (path for path in folder.rglob("*") if ".git" not in path.parts and path.is_file())
    return iter(sorted(found))


def hash_of(paths: Iterable[Path]) -> str:
    """Returns the hash of files' names and bytes."""
    sums = (f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in paths)
    return hashlib.sha256("\n".join(sums).encode()).hexdigest()


def version_of(source: Path) -> str:
    """Returns a hash of a tarball's bytes, or of the names, sizes and times in a tree."""
    if source.is_file():
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    listed = hashlib.sha256()
    for path in files(source):
        about = path.stat()
        listed.update(f"{path.relative_to(source)} {about.st_size} {about.st_mtime_ns}\n".encode())
    return listed.hexdigest()[:16]


def check(recipe: Recipe) -> None:
    """Raises UserError if a part of the recipe is missing or wrong, before anything is done."""
    if recipe.name != kernels.CURRENT:
        kernels.check_name(recipe.name)
    elif recipe != Recipe():
        raise UserError("guests: a kernel other than Debian's needs a name: --name NAME")
    if recipe.hz not in TICKS:
        raise UserError(f"guests: --hz: {recipe.hz} is not one of 250, 1000")
    source = recipe.file()
    if source is not None and not source.exists():
        raise UserError(
            f"guests: --source: {source} is no folder, no tarball and no package linux-source-..."
        )
    for path in (*recipe.patches, *filter(None, [recipe.fragment])):
        if not path.is_file():
            raise UserError(f"guests: {path}: no such file")
    for folder in recipe.modules:
        if not any((folder / name).is_file() for name in ("Kbuild", "Makefile")):
            raise UserError(f"guests: --module: {folder} has no Kbuild and no Makefile")
    if len({folder.resolve().name for folder in recipe.modules}) < len(recipe.modules):
        raise UserError("guests: --module: two folders have the same name")


def unpack_package(deb: Path, package: str, tree: Path) -> None:
    """Unpacks the whole tree of a Debian package."""
    name = f"./usr/src/{package}.tar.xz"
    extract(
        tree,
        ["dpkg-deb", "--fsys-tarfile", str(deb)],
        ["tar", "-xO", name],
        ["tar", "-xJ", "-C", str(tree), "--strip-components=1"],
    )


def unpack_source(source: Path, tree: Path) -> None:
    """Unpacks a tarball, or copies a folder; a folder may have been built in."""
    if source.is_file():
        extract(tree, ["tar", "-xf", str(source), "-C", str(tree), "--strip-components=1"])
        return
    extract(
        tree,
        ["tar", "-c", "--exclude-vcs", "-C", str(source), "."],
        ["tar", "-x", "-C", str(tree)],
    )
    output(["make", "-C", str(tree), "ARCH=um", "mrproper"])


def extract(tree: Path, *commands: list[str]) -> None:
    """Runs commands in a pipe, of which the last one fills the tree."""
    tree.mkdir()
    with piped(*commands) as last:
        status = last.wait()
    if status != 0 or not (tree / "arch/um/Kconfig").is_file():
        raise UserError("guests: the source is not the tree of a Linux kernel", 1)


def apply_patches(patches: Iterable[Path], tree: Path) -> None:
    """Applies patches in their order, as `patch -p1` does."""
    for file in patches:
        argv = ["patch", "-p1", "-N", "--batch", "-r", "-", "-d", str(tree), "-i"]
        done = subprocess.run([*argv, str(file.resolve())], capture_output=True, text=True)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).splitlines()
            why = next((line for line in said if "FAILED" in line or "can't" in line), said[-1])
            raise UserError(f"guests: {file} does not apply to this source: {why}", 1)


def build_modules(folders: Iterable[Path], tree: Path, objects: Path, log: Path) -> None:
    """Builds each module in a copy of its folder, below the objects."""
    for folder in folders:
        copy = objects / "added" / folder.resolve().name
        shutil.copytree(folder, copy)
        make(tree, objects, log, f"M={copy}", "modules")
        if not any(copy.rglob("*.ko")):
            raise UserError(f"guests: --module: {folder} makes no module (obj-m)", 1)


def module_name(file: Path) -> str:
    return file.stem.replace("-", "_")


def depends(file: Path) -> list[str]:
    """Returns the modules that a module needs, as it says."""
    found = re.search(rb"\0depends=([^\0]*)\0", file.read_bytes())
    return [] if found is None else [name for name in found[1].decode().split(",") if name]


def load_order(built: Iterable[Path]) -> list[Path]:
    """Returns modules, each after those that it needs, else by name."""
    left = {module_name(file): file for file in sorted(built, key=module_name)}
    if len(left) > MODULES_MAX or any(len(name) > MODULE_NAME_MAX for name in left):
        raise UserError(
            f"guests: {len(left)} modules; a guest loads at most {MODULES_MAX}, whose names have "
            f"at most {MODULE_NAME_MAX} characters",
            1,
        )
    order: list[Path] = []
    while left:
        ready = [name for name in left if not any(need in left for need in depends(left[name]))]
        if not ready:
            raise UserError(f"guests: modules need each other: {', '.join(left)}", 1)
        order.append(left.pop(ready[0]))
    return order

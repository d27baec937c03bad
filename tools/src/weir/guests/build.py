# SPDX-License-Identifier: BSD-3-Clause
"""Builds the guests' kernel: Debian's, as User Mode Linux, once into a cache.

    source package -> the part of its tree that User Mode Linux needs -> linux, guest.json

kernels.py has the cache, recipe.py what may differ from Debian's kernel.

The package is downloaded, not installed: that needs no root. Package, tree and objects are deleted
at the end, however it ends.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from weir import bootstrap
from weir.base import foreign
from weir.base.errors import UserError
from weir.guests import boot
from weir.guests.commands import install, make, output, piped
from weir.guests.kernels import Kernel, cache, choose, find
from weir.guests.recipe import (
    Recipe,
    apply_patches,
    build_modules,
    check,
    load_order,
    module_name,
    unpack_package,
    unpack_source,
    version_of,
)

# Newest first. 6.1 has no shared-memory time travel, and costs more per frame.
PACKAGES = ("linux-source-6.12", "linux-source-6.1")
NEEDS = (
    bootstrap.Need("gcc", "command gcc"),
    bootstrap.Need("make", "command make"),
    bootstrap.Need("flex", "command flex"),
    bootstrap.Need("bison", "command bison"),
    bootstrap.Need("bc", "command bc"),
    bootstrap.Need("xz-utils", "command xz"),
    bootstrap.Need("libc6-dev", "file usr/include/stdio.h"),
)
WHOLE_NEEDS = (
    bootstrap.Need("patch", "command patch"),
    bootstrap.Need("tar", "command tar"),
    bootstrap.Need("bzip2", "command bzip2"),
)
PLAIN = Recipe()
OPTIONS = Path(__file__).with_name("kernel.config")
ARCHITECTURE = "x86_64"
DISK_BYTES = 700_000_000  # at the peak: tree and objects
WHOLE_BYTES = 2_500_000_000  # with the whole tree
COMPILES = b"  CC "  # what make says of a file
SAID_S = 30  # between two lines of a step
# What is unpacked whole, below the tree; of everything else the files that make and Kconfig read.
WHOLE = (
    *(
        "arch/um",
        "arch/x86",
        "block",
        "certs",
        "crypto",
        "fs",
        "include",
        "init",
        "io_uring",
        "ipc",
    ),
    *("kernel", "lib", "mm", "net", "rust", "scripts", "security", "usr", "virt", "tools/include"),
    *(f"drivers/{name}" for name in ("base", "char", "input", "pps", "ptp", "tty", "virtio")),
)
# User Mode Linux has 100 ticks per second whatever is asked for. It gets every machine's choice.
TICKS_FILE = "arch/um/Kconfig"
TICKS_FIXED = "config HZ\n\tint\n\tdefault 100\n"
TICKS_CHOSEN = 'source "kernel/Kconfig.hz"\n'
ALSO = re.compile(r"(.*/)?(Kconfig|Makefile|Kbuild)[^/]*|drivers/net/[^/]+|[^/]+")

Progress = Callable[[str, str], None]  # a step, and how much of it is done


def wanted(path: str) -> bool:
    """Returns whether User Mode Linux needs a file, whose path begins below the tree."""
    if any(path == name or path.startswith(f"{name}/") for name in WHOLE):
        return True
    return ALSO.fullmatch(path) is not None


def candidate(policy: str) -> str | None:
    """Returns the version that `apt-cache policy PACKAGE` says it would install."""
    found = re.search(r"^\s*Candidate: (\S+)$", policy, re.MULTILINE)
    return None if found is None or found[1] == "(none)" else found[1]


def source(recipe: Recipe = PLAIN) -> tuple[str, str]:
    """Returns the name of the source to build, and its version. UserError: apt has none."""
    if (given := recipe.file()) is not None:
        return given.resolve().name, version_of(given)
    if shutil.which("apt-get") is None:
        raise UserError("guests: builds Debian's kernel source, and this system has no apt-get", 1)
    packages = PACKAGES if recipe.source is None else (recipe.source,)
    for package in packages:
        version = candidate(output(["apt-cache", "policy", package]))
        if version is not None:
            return package, version
    raise UserError(
        f"guests: apt knows no {' and no '.join(packages)}: add Debian 12's security suite to "
        "its sources and run: apt-get update",
        1,
    )


def compiler() -> str:
    return output(["gcc", "--version"]).splitlines()[0]


def identify(package: str, version: str, recipe: Recipe = PLAIN) -> Kernel:
    """Returns the kernel that would be built here, before it is."""
    asked = OPTIONS.read_bytes() + recipe.options().encode()
    options = hashlib.sha256(asked).hexdigest()[:16]
    gcc = compiler()
    parts = (package, version, options, gcc, *recipe.hashes())
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    patches = " ".join(path.name for path in recipe.patches)
    return Kernel(package, version, "", options, gcc, key, patches)


def check_machine(recipe: Recipe = PLAIN) -> None:
    """Raises UserError on another architecture, or if the disk has too little room."""
    if platform.machine() != ARCHITECTURE:
        raise UserError(
            f"guests: User Mode Linux runs on {ARCHITECTURE} only, and this is {platform.machine()}"
        )
    place = cache()
    place.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place).free
    needed = WHOLE_BYTES if recipe.whole() else DISK_BYTES
    if free < needed:
        raise UserError(
            f"guests: the build needs {needed // 1_000_000} MB in {place} and "
            f"{free // 1_000_000} MB are free: name another folder in WEIR_GUESTS",
            1,
        )


def install_needs(recipe: Recipe = PLAIN) -> None:
    """Installs the programs that building needs."""
    install((*NEEDS, *WHOLE_NEEDS) if recipe.whole() else NEEDS)


def download(package: str, version: str, folder: Path) -> Path:
    """Downloads a source package, and returns its file."""
    fetched = subprocess.run(
        ["apt-get", "download", f"{package}={version}"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    found = list(folder.glob("*.deb"))
    if fetched.returncode != 0 or not found:
        said = [line for line in fetched.stderr.splitlines() if line.startswith("E:")]
        raise UserError(
            f"guests: cannot download {package} {version}: {(said or ['no reason given'])[-1]}; "
            "old package lists are renewed by: apt-get update",
            1,
        )
    return found[0]


def unpack(deb: Path, package: str, tree: Path, progress: Progress) -> None:
    """Unpacks the part of the tree that is needed."""
    name = f"./usr/src/{package}.tar.xz"
    with (
        piped(
            ["dpkg-deb", "--fsys-tarfile", str(deb)], ["tar", "-xO", name], ["xz", "-dc", "-T2"]
        ) as xz,
        tarfile.open(fileobj=xz.stdout, mode="r|") as archive,
    ):
        for number, member in enumerate(archive):
            if number % 1000 == 0:
                progress("unpacking", f"{number} files")
            path = member.name.partition("/")[2]
            if not path or not wanted(path) or member.isdir():
                continue
            member.name = path
            foreign.extract(archive, member, tree)
    if not (tree / "Makefile").exists():
        raise UserError(f"guests: {deb.name} holds no kernel source", 1)


def free_ticks(tree: Path) -> None:
    """Makes CONFIG_HZ an option of User Mode Linux, as it is one of every other machine."""
    kconfig = tree / TICKS_FILE
    text = kconfig.read_text(encoding="utf-8")
    if TICKS_CHOSEN in text:
        return
    if TICKS_FIXED not in text:
        raise UserError(f"guests: {TICKS_FILE} of this kernel source does not fix its ticks", 1)
    kconfig.write_text(text.replace(TICKS_FIXED, TICKS_CHOSEN), encoding="utf-8")


def merge_options(objects: Path, more: str = "") -> None:
    """Appends our options to .config: of two lines the last counts."""
    config = objects / ".config"
    config.write_text(f"{config.read_text()}\n{plain_options()}{more}")


def plain_options() -> str:
    return re.sub(r"\s+# optional$", "", OPTIONS.read_text(encoding="utf-8"), flags=re.MULTILINE)


def options_of(text: str) -> dict[str, str]:
    """Returns the options of a .config, "n" if not set. Lines marked optional are not read."""
    line = re.compile(r"^(?:# )?(CONFIG_\w+)(?:=(.*\S)| is not set)\s*$", re.MULTILINE)
    found = ((name, value or "n") for name, value in line.findall(text))
    return {name: value for name, value in found if not value.endswith("# optional")}


def missing_options(config: str, more: str = "") -> list[str]:
    """Returns options that Kconfig has dropped, without which there is no kernel."""
    asked = options_of(OPTIONS.read_text(encoding="utf-8")) | options_of(more)
    have = options_of(config)
    return [f"{name}={value}" for name, value in asked.items() if have.get(name, "n") != value]


def planned(tree: Path, objects: Path, targets: list[str]) -> int:
    """Returns how many files make would compile."""
    argv = ["make", "-n", "-C", str(tree), "ARCH=um", f"O={objects}", *targets]
    return subprocess.run(argv, capture_output=True).stdout.count(b"echo '" + COMPILES)


def compile_(tree: Path, objects: Path, recipe: Recipe, progress: Progress) -> str:
    """Configures and builds; returns the release."""
    objects.mkdir()
    log = objects / "build.log"
    make(tree, objects, log, "allnoconfig")
    merge_options(objects, recipe.options())
    make(tree, objects, log, "olddefconfig")
    config = (objects / ".config").read_text()
    if lost := missing_options(config, recipe.options()):
        raise UserError(
            f"guests: Kconfig has dropped {', '.join(lost)}: this source has no such option, or "
            "not what it depends on",
            1,
        )
    targets = ["linux", *(["modules"] if "CONFIG_MODULES=y\n" in config else [])]
    progress("compiling", "")
    make(tree, objects, log, "prepare")
    count, done = planned(tree, objects, targets), 0  # 0: it does not say

    def line(said: bytes) -> None:
        nonlocal done
        done += COMPILES in said
        of = f" of {max(count, done)}" if count > 0 else ""  # make -n stops before the last link
        progress("compiling", f"{done}{of} files")

    make(tree, objects, log, *targets, line=line)
    build_modules(recipe.modules, tree, objects, log)
    return (objects / "include/config/kernel.release").read_text().strip()


def collect(objects: Path, kernel: Kernel, place: Path) -> Kernel:
    """Copies what was built, without debugging information, into the cache."""
    place.mkdir(mode=0o755)
    modules = load_order(objects.rglob("*.ko"))
    built = {module_name(file) + ".ko": file for file in modules}
    for name, file in {"linux": objects / "linux", **built}.items():
        shutil.copy2(file, place / name)
        subprocess.run(["strip", "--strip-debug", str(place / name)], check=False)
    shutil.copy2(objects / ".config", place / "config")
    return replace(kernel, modules=" ".join(map(module_name, modules)))


def keep(objects: Path, kernel: Kernel, recipe: Recipe, progress: Progress) -> Kernel:
    """Moves a built kernel into the cache as a whole; one of a changed recipe must boot."""
    with tempfile.TemporaryDirectory(dir=cache(), prefix="building-") as folder:
        new = Path(folder) / kernel.key
        kernel = collect(objects, kernel, new)
        if recipe.whole():
            progress("booting", "")
            kernel = replace(kernel, controls=boot.controls(new, kernel))
        (new / "guest.json").write_text(json.dumps(asdict(kernel), indent=1) + "\n")
        place = cache() / kernel.key
        shutil.rmtree(place, ignore_errors=True)
        new.rename(place)
    return kernel


def fill(tree: Path, kernel: Kernel, recipe: Recipe, progress: Progress) -> None:
    """Makes the source's tree, changed as the recipe says."""
    given = recipe.file()
    if given is not None:
        progress("unpacking", "")
        unpack_source(given, tree)
    else:
        progress("downloading", "")
        deb = download(kernel.package, kernel.version, tree.parent)
        if recipe.whole():
            progress("unpacking", "")
            unpack_package(deb, kernel.package, tree)
        else:
            unpack(deb, kernel.package, tree, progress)
        deb.unlink()
    free_ticks(tree)
    apply_patches(recipe.patches, tree)


def build(progress: Progress, recipe: Recipe = PLAIN) -> tuple[Kernel, bool]:
    """Builds the recipe's kernel if there is none; returns it, and whether it was built."""
    check(recipe)
    check_machine(recipe)
    install_needs(recipe)
    kernel = identify(*source(recipe), recipe)
    with bootstrap.locked(cache()):
        for killed in cache().glob("building-*"):
            shutil.rmtree(killed, ignore_errors=True)
        if (there := find(kernel.key)) is not None:
            choose(kernel.key, recipe.name)
            return there, False
        with tempfile.TemporaryDirectory(dir=cache(), prefix="building-") as folder:
            tree, objects = Path(folder) / "tree", Path(folder) / "objects"
            fill(tree, kernel, recipe, progress)
            release = compile_(tree, objects, recipe, progress)
            kernel = keep(objects, replace(kernel, release=release), recipe, progress)
        choose(kernel.key, recipe.name)
    return kernel, True


class Steps:
    """Says which step goes on, and what it has done so far."""

    def __init__(self, recipe: Recipe = PLAIN, say: Callable[[str], None] = bootstrap.say) -> None:
        self.say = say
        # downloading, unpacking, compiling, booting
        self.count = 2 + (recipe.file() is None) + recipe.whole()
        self.what, self.number, self.began, self.said = "", 0, 0.0, 0.0

    def __call__(self, what: str, done: str) -> None:
        """Says how much is done."""
        now = time.monotonic()
        if what != self.what:
            self.what, self.number, self.began, self.said = what, self.number + 1, now, now
            self.say(f"step {self.number} of {self.count}: {what} the guests' kernel")
        elif now >= self.said + SAID_S:
            self.said = now
            self.say(f"{what}: {done}, {now - self.began:.0f} s so far")

# SPDX-License-Identifier: BSD-3-Clause
"""QUIC stacks for guests (`stack: {quic: NAME}`), built once, by name and version.

~/.cache/weir/guests/quic/NAME-VERSION/weir-quic  the program that sender/group/quic.c describes
~/.cache/weir/guests/quic/NAME -> NAME-VERSION    what weir-sim runs

A stack comes from its language's registry, or from Debian's packages; its program's sources are in
the folder quic, and copied beside it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weir import bootstrap
from weir.base.errors import UserError
from weir.guests.commands import failed, install
from weir.guests.kernels import cache

SOURCES = Path(__file__).with_name("quic")
ENDLESS_BYTES = 1 << 34  # of a file without contents, which takes no disk
CARGO = """[package]
name = "weir-quic"
version = "0.0.0"
edition = "2021"
[[bin]]
name = "weir-quic"
path = "main.rs"
[dependencies]
"""
# Crates of the programs in Rust; the version is the stack's.
RCGEN = 'rcgen = { version = "0.13", default-features = false, features = ["pem", "ring"] }'
TOKIO = 'tokio = { version = "1", features = ["rt", "net", "time", "macros"] }'
CRATES = {
    "quiche": (
        'libc = "0.2"',
        'quiche = { version = "=VERSION", features = ["qlog"] }',
        RCGEN,
    ),
    "quinn": (
        'quinn = { version = "=VERSION", default-features = false, '
        'features = ["runtime-tokio", "rustls-ring", "qlog"] }',
        'rustls = { version = "0.23", default-features = false, features = ["ring", "std"] }',
        RCGEN,
        TOKIO,
    ),
    "s2n-quic": (
        'bytes = "1"',
        's2n-quic = { version = "=VERSION", default-features = false, '
        'features = ["provider-address-token-default", "provider-tls-rustls"] }',
        RCGEN,
        TOKIO,
    ),
}


def command(folder: Path, *argv: str, **environment: str) -> None:
    """Runs a command of a build in its folder, with a log beside that; UserError: it failed."""
    log = folder.with_name("build.log")
    with log.open("ab") as out:
        done = subprocess.run(
            ["nice", *argv],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    if done.returncode != 0:
        raise failed(Path(argv[0]).name, log)


def aioquic(folder: Path, version: str) -> None:
    """Installs it by pip, beside the program that uses it."""
    pip = (sys.executable, "-m", "pip", "install", "--target", "lib")
    command(folder, *pip, f"aioquic=={version}")
    python = shlex.quote(str(Path(sys.executable).resolve()))
    here = 'PYTHONHASHSEED=0 PYTHONPATH="${0%/*}/lib"'
    program = folder / "weir-quic"
    program.write_text(f'#!/bin/sh\n{here} exec {python} "${{0%/*}}/main.py" "$@"\n')
    program.chmod(0o755)


def ngtcp2(folder: Path, version: str) -> None:
    command(folder, "cc", "-O2", "-shared", "-fPIC", "-o", "random.so", "random.c")
    (folder / "weir-quic").chmod(0o755)
    with (folder / "endless").open("wb") as file:
        file.truncate(ENDLESS_BYTES)


def quic_go(folder: Path, version: str) -> None:
    own = {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    command(folder, "go", "mod", "init", "weir-quic", **own)
    command(folder, "go", "get", f"github.com/quic-go/quic-go@v{version}", **own)
    command(folder, "go", "build", "-mod=mod", "-o", "weir-quic", ".", **own)


def rust(name: str, *after: str) -> Callable[[Path, str], None]:
    """Makes the function that builds a program in Rust; after: what it is then called with."""

    def make(folder: Path, version: str) -> None:
        crates = "\n".join(CRATES[name]).replace("VERSION", version)
        (folder / "Cargo.toml").write_text(f"{CARGO}{crates}\n")
        command(folder, "cargo", "build", "--release")
        shutil.copy2(folder / "target/release/weir-quic", folder / "weir-quic")
        shutil.rmtree(folder / "target")
        if after:
            command(folder, "./weir-quic", *after)

    return make


RUST = bootstrap.Need("cargo-web", "command cargo")


@dataclass(frozen=True)
class Stack:
    """A stack that can be built: the version that was tried, its compiler, and how."""

    version: str  # "": Debian's package
    sources: tuple[str, ...]  # files of SOURCES: first the program that uses it, then its parts
    needs: tuple[bootstrap.Need, ...]
    make: Callable[[Path, str], None]

    def files(self) -> dict[str, bytes]:
        """Returns our sources by their names in the stack's folder."""
        suffix = Path(self.sources[0]).suffix
        names = ("weir-quic" if suffix == ".sh" else f"main{suffix}", *self.sources[1:])
        texts = [(SOURCES / source).read_bytes() for source in self.sources]
        return dict(zip(names, texts, strict=True))

    def is_in(self, place: Path) -> bool:
        """Returns whether it was built there, of our sources as they are now."""
        return (place / "weir-quic").exists() and all(
            (place / name).is_file() and (place / name).read_bytes() == text
            for name, text in self.files().items()
        )


STACKS = {
    "aioquic": Stack("1.7.2", ("aioquic.py",), (), aioquic),
    "ngtcp2": Stack(
        "",
        ("ngtcp2.sh", "random.c"),
        (
            bootstrap.Need("ngtcp2-client", "command gtlsclient"),
            bootstrap.Need("ngtcp2-server", "file usr/sbin/gtlsserver"),
            bootstrap.Need("openssl", "command openssl"),
            bootstrap.Need("gcc", "command cc"),
            bootstrap.Need("libc6-dev", "file usr/include/stdio.h"),
        ),
        ngtcp2,
    ),
    "quic-go": Stack("0.65.0", ("quic-go.go",), (bootstrap.Need("golang", "command go"),), quic_go),
    "quiche": Stack(
        "0.30.0",
        ("quiche.rs", "shared.rs"),
        (
            RUST,
            bootstrap.Need("cmake", "command cmake"),  # it builds BoringSSL
            bootstrap.Need("g++", "command c++"),
            bootstrap.Need("git", "command git"),
            bootstrap.Need("libclang-dev", "file usr/lib/llvm-*/lib/libclang.so*"),
        ),
        rust("quiche"),
    ),
    "quinn": Stack("0.11.12", ("quinn.rs", "shared.rs"), (RUST,), rust("quinn")),
    "s2n-quic": Stack(
        "1.91.0", ("s2n-quic.rs", "shared.rs"), (RUST,), rust("s2n-quic", "certificate")
    ),
}


def folder_of() -> Path:
    return cache() / "quic"


def built() -> dict[str, str]:
    """Returns the versions of the stacks that are built, by name."""
    links = sorted(path for path in folder_of().glob("*") if path.is_symlink())
    return {path.name: path.readlink().name.removeprefix(f"{path.name}-") for path in links}


def debians(package: str) -> str:
    """Returns the version of an installed package; "": this system has no such package."""
    argv = ["dpkg-query", "-W", "-f", "${Version}", package]
    try:
        return subprocess.run(argv, capture_output=True, text=True).stdout
    except OSError:
        return ""


def add(written: str) -> tuple[str, str, bool]:
    """Builds NAME or NAME@VERSION; returns name, version, and whether it was built now."""
    name, _, asked = written.partition("@")
    if name not in STACKS:
        raise UserError(f"guests: there is no QUIC stack '{name}'; there is {', '.join(STACKS)}")
    stack = STACKS[name]
    install(stack.needs)
    own = stack.version or debians(stack.needs[0].package)
    version = asked or own
    if not stack.version and version != own:
        raise UserError(
            f"guests: {name} is Debian's package {stack.needs[0].package} {own}: another version "
            f"is installed by apt-get, and not named here"
        )
    with bootstrap.locked(cache()):
        folder_of().mkdir(parents=True, exist_ok=True)
        place = folder_of() / f"{name}-{version}"
        fresh = not stack.is_in(place)
        if fresh:
            bootstrap.say(f"building {name} {version}")
            with tempfile.TemporaryDirectory(dir=cache(), prefix="building-") as folder:
                new = Path(folder) / place.name
                new.mkdir()
                for file, text in stack.files().items():
                    (new / file).write_bytes(text)
                stack.make(new, version)
                shutil.rmtree(place, ignore_errors=True)
                new.rename(place)
        link = folder_of() / name
        link.unlink(missing_ok=True)
        link.symlink_to(place.name)
    return name, version, fresh


def remove(name: str) -> bool:
    """Removes a stack; returns whether there was one of this name."""
    link = folder_of() / name
    if name not in built():
        return False
    shutil.rmtree(folder_of() / link.readlink())
    link.unlink()
    return True

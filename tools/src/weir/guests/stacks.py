# SPDX-License-Identifier: BSD-3-Clause
"""QUIC stacks for guests (`stack: {quic: NAME}`), built once, by name and version.

~/.cache/weir/guests/quic/NAME-VERSION-KEY/weir-quic  the program that sender/group/quic.c describes
~/.cache/weir/guests/quic/NAME -> NAME-VERSION-KEY    what weir-sim runs

A stack comes from its language's registry, or from Debian's packages; its program's sources are in
the folder quic, and copied beside it. KEY is a hash of them: clones of the tree that share a cache
keep each its own program.
"""

from __future__ import annotations

import hashlib
import os
import re
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
RCGEN = 'rcgen = { version = "0.13", default-features = false, features = ["pem", "ring"] }'
TOKIO = 'tokio = { version = "1", features = ["rt", "net", "time", "macros"] }'


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


def rust(*after: str) -> Callable[[Path, str], None]:
    """Makes the function that builds a program in Rust; after: what it is then called with."""

    def make(folder: Path, version: str) -> None:
        command(folder, "cargo", "build", "--release", CARGO_TARGET_DIR="target")
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
    crates: tuple[str, ...] = ()  # of a program in Rust; VERSION is the stack's

    def files(self, version: str) -> dict[str, bytes]:
        """Returns our sources by their names in the stack's folder."""
        suffix = Path(self.sources[0]).suffix
        names = ("weir-quic" if suffix == ".sh" else f"main{suffix}", *self.sources[1:])
        texts = [(SOURCES / source).read_bytes() for source in self.sources]
        crates = "\n".join(self.crates).replace("VERSION", version)
        cargo = {"Cargo.toml": f"{CARGO}{crates}\n".encode()} if crates else {}
        return dict(zip(names, texts, strict=True)) | cargo

    def key(self, version: str) -> str:
        """Returns a hash of all that we build it from."""
        made = hashlib.sha256(version.encode())
        for name, text in self.files(version).items():
            made.update(f"\n{name} {len(text)}\n".encode() + text)
        return made.hexdigest()[:16]


STACKS = {
    "aioquic": Stack("1.7.2", ("aioquic.py",), (), aioquic),
    "msquic": Stack(
        "2.5.1-beta",
        ("msquic.rs", "ipv4.rs", "shared.rs"),
        (
            RUST,
            bootstrap.Need("cmake", "command cmake"),  # it builds quictls
            bootstrap.Need("g++", "command c++"),
            bootstrap.Need("libnuma-dev", "file usr/lib/*/libnuma.a"),
            bootstrap.Need("perl", "command perl"),
        ),
        rust(),
        ('libc = "0.2"', 'msquic = { version = "=VERSION", features = ["static"] }', RCGEN),
    ),
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
        rust(),
        (
            'libc = "0.2"',
            'quiche = { version = "=VERSION", features = ["qlog"] }',
            RCGEN,
        ),
    ),
    "quinn": Stack(
        "0.11.12",
        ("quinn.rs", "shared.rs"),
        (RUST,),
        rust(),
        (
            'quinn = { version = "=VERSION", default-features = false, '
            'features = ["runtime-tokio", "rustls-ring", "qlog"] }',
            'rustls = { version = "0.23", default-features = false, features = ["ring", "std"] }',
            RCGEN,
            TOKIO,
        ),
    ),
    "s2n-quic": Stack(
        "1.91.0",
        ("s2n-quic.rs", "shared.rs"),
        (RUST,),
        rust("certificate"),
        (
            'bytes = "1"',
            's2n-quic = { version = "=VERSION", default-features = false, '
            'features = ["provider-address-token-default", "provider-tls-rustls"] }',
            RCGEN,
            TOKIO,
        ),
    ),
}


def folder_of() -> Path:
    return cache() / "quic"


def builds() -> dict[str, str]:
    """Returns VERSION-KEY of the stacks that are built, by name."""
    links = sorted(path for path in folder_of().glob("*") if path.is_symlink())
    return {path.name: path.readlink().name.removeprefix(f"{path.name}-") for path in links}


def built() -> dict[str, str]:
    """Returns the versions of the stacks that are built, by name."""
    return {name: re.sub(r"-[0-9a-f]{16}$", "", build) for name, build in builds().items()}


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
        place = folder_of() / f"{name}-{version}-{stack.key(version)}"
        fresh = not (place / "weir-quic").exists()
        if fresh:
            bootstrap.say(f"building {name} {version}")
            with tempfile.TemporaryDirectory(dir=cache(), prefix="building-") as folder:
                new = Path(folder) / place.name
                new.mkdir()
                for file, text in stack.files(version).items():
                    (new / file).write_bytes(text)
                stack.make(new, version)
                shutil.rmtree(place, ignore_errors=True)
                new.rename(place)
        link = folder_of() / f"{name}.new"
        link.unlink(missing_ok=True)
        link.symlink_to(place.name)
        link.rename(folder_of() / name)
    return name, version, fresh


def remove(name: str) -> bool:
    """Removes all builds of a stack; returns whether there was one of this name."""
    if name not in built():
        return False
    (folder_of() / name).unlink()
    for place in folder_of().glob(f"{name}-*"):
        shutil.rmtree(place)
    return True

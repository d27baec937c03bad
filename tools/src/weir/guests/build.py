# SPDX-License-Identifier: BSD-3-Clause
"""Builds the guests' kernel: Debian's, as User Mode Linux, once into a cache.

    source package -> the part of its tree that User Mode Linux needs -> linux, guest.json

    ~/.cache/weir/guests/KEY/linux       KEY: a hash of source version, options and compiler
    ~/.cache/weir/guests/current -> KEY  what weir-sim runs; WEIR_GUESTS names another folder

The package is downloaded, not installed: that needs no root. Package, tree and objects are deleted
at the end, however it ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from weir import bootstrap
from weir.errors import UserError

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
OPTIONS = Path(__file__).with_name("kernel.config")
ARCHITECTURE = "x86_64"
DISK_BYTES = 700_000_000  # at the peak: tree and objects
STEPS = 1230  # lines that make prints; only for the estimate
# With these, and the same compiler, the binary has the same bytes on every machine.
REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "weir",
    "KBUILD_BUILD_HOST": "weir",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}
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

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Kernel:
    """A built kernel, as guest.json describes it."""

    package: str
    version: str  # of the package
    release: str  # what uname -r says in a guest
    options: str  # hash of the options
    compiler: str
    key: str


def cache() -> Path:
    """The folder of built kernels."""
    if named := os.environ.get("WEIR_GUESTS"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "weir/guests"


def current() -> Kernel | None:
    """The kernel that weir-sim runs; None: none is built."""
    folder = cache() / "current"
    try:
        described = json.loads((folder / "guest.json").read_text(encoding="utf-8"))
        kernel = Kernel(**described)
    except (OSError, ValueError, TypeError):
        return None
    return kernel if os.access(folder / "linux", os.X_OK) else None


def wanted(path: str) -> bool:
    """Does User Mode Linux need this file of the tree? The path begins below the tree."""
    if any(path == name or path.startswith(f"{name}/") for name in WHOLE):
        return True
    return ALSO.fullmatch(path) is not None


def output(argv: list[str]) -> str:
    """What a command prints, or one sentence."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise UserError(f"guests: {argv[0]} failed: {said}", 1)
    return done.stdout


def candidate(policy: str) -> str | None:
    """The version that `apt-cache policy PACKAGE` says it would install."""
    found = re.search(r"^\s*Candidate: (\S+)$", policy, re.MULTILINE)
    return None if found is None or found[1] == "(none)" else found[1]


def source() -> tuple[str, str]:
    """The source package to build, and its version."""
    if shutil.which("apt-get") is None:
        raise UserError("guests: builds Debian's kernel source, and this system has no apt-get", 1)
    for package in PACKAGES:
        version = candidate(output(["apt-cache", "policy", package]))
        if version is not None:
            return package, version
    raise UserError(
        f"guests: apt knows neither {' nor '.join(PACKAGES)}: add Debian 12's security suite to "
        "its sources and run: apt-get update",
        1,
    )


def compiler() -> str:
    """The first line of gcc --version."""
    return output(["gcc", "--version"]).splitlines()[0]


def identify(package: str, version: str) -> Kernel:
    """What would be built here, before it is."""
    options = hashlib.sha256(OPTIONS.read_bytes()).hexdigest()[:16]
    gcc = compiler()
    key = hashlib.sha256("\n".join((package, version, options, gcc)).encode()).hexdigest()[:16]
    return Kernel(package, version, "", options, gcc, key)


def check_machine() -> None:
    """Refuses another architecture and a full disk."""
    if platform.machine() != ARCHITECTURE:
        raise UserError(
            f"guests: User Mode Linux runs on {ARCHITECTURE} only, and this is {platform.machine()}"
        )
    place = cache()
    place.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(place).free
    if free < DISK_BYTES:
        raise UserError(
            f"guests: the build needs {DISK_BYTES // 1_000_000} MB in {place} and "
            f"{free // 1_000_000} MB are free: name another folder in WEIR_GUESTS",
            1,
        )


def install_needs() -> None:
    """The programs that building needs."""
    missing = [need.package for need in NEEDS if not need.met()]
    if not missing:
        return
    bootstrap.say(f"installing Debian packages: {' '.join(missing)}")
    with tempfile.TemporaryDirectory() as log:
        why = bootstrap.apt(missing, Path(log))
    if why is not None:
        raise UserError(
            f"guests: cannot install {', '.join(missing)}: {why}; install them with: "
            f"apt-get install {' '.join(missing)}",
            1,
        )


def download(package: str, version: str, folder: Path) -> Path:
    """The source package's file."""
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


@contextmanager
def piped(*commands: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Commands in a pipe; the last one's output is read. All end with the block."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for argv in commands:
            before = running[-1].stdout if running else subprocess.DEVNULL
            running.append(subprocess.Popen(argv, stdin=before, stdout=subprocess.PIPE))
            if running[1:] and running[-2].stdout is not None:
                running[-2].stdout.close()
        yield running[-1]
    finally:
        for process in running:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def unpack(deb: Path, package: str, tree: Path, progress: Progress) -> None:
    """The part of the tree that is needed. Its files are counted by hundreds of the whole."""
    name = f"./usr/src/{package}.tar.xz"
    with (
        piped(
            ["dpkg-deb", "--fsys-tarfile", str(deb)], ["tar", "-xO", name], ["xz", "-dc", "-T2"]
        ) as xz,
        tarfile.open(fileobj=xz.stdout, mode="r|") as archive,
    ):
        for number, member in enumerate(archive):
            if number % 1000 == 0:
                progress("unpacking", number, 87_000)
            path = member.name.partition("/")[2]
            if not path or not wanted(path) or member.isdir():
                continue
            member.name = path
            archive.extract(member, tree, filter="data")
    if not (tree / "Makefile").exists():
        raise UserError(f"guests: {deb.name} holds no kernel source", 1)


def free_ticks(tree: Path) -> None:
    """Makes CONFIG_HZ an option of User Mode Linux, as it is one of every other machine."""
    kconfig = tree / TICKS_FILE
    text = kconfig.read_text(encoding="utf-8")
    if TICKS_FIXED not in text:
        raise UserError(f"guests: {TICKS_FILE} of this kernel source does not fix its ticks", 1)
    kconfig.write_text(text.replace(TICKS_FIXED, TICKS_CHOSEN), encoding="utf-8")


def merge_options(objects: Path) -> None:
    """Appends our options to .config: of two lines the last counts."""
    config = objects / ".config"
    config.write_text(config.read_text() + "\n" + plain_options())


def plain_options() -> str:
    """kernel.config as Kconfig reads it."""
    return re.sub(r"\s+# optional$", "", OPTIONS.read_text(encoding="utf-8"), flags=re.MULTILINE)


def missing_options(config: str) -> list[str]:
    """Options that we ask for and Kconfig has dropped; there is no kernel without them."""
    have = set(config.splitlines())
    return [
        line
        for line in OPTIONS.read_text(encoding="utf-8").splitlines()
        if re.match(r"CONFIG_\w+=[^n]", line) and "# optional" not in line and line not in have
    ]


def make(tree: Path, objects: Path, target: str, log: Path, line: Callable[[], None]) -> None:
    """One make, its output in a log. Interrupted, it ends with all that it started."""
    argv = ["nice", "make", "-C", str(tree), "ARCH=um", f"O={objects}", f"-j{jobs()}", target]
    with log.open("ab") as out:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **REPRODUCIBLE},
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            for said in process.stdout:
                out.write(said)
                line()
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if status != 0:
        raise UserError(f"guests: make {target} failed: {bootstrap.last_error(log)}", 1)


def jobs() -> int:
    """As many compilers as CPUs that we may use."""
    return len(os.sched_getaffinity(0))


def compile_(tree: Path, objects: Path, progress: Progress) -> str:
    """Configures and builds; returns the release."""
    objects.mkdir()
    log = objects / "build.log"
    make(tree, objects, "allnoconfig", log, lambda: None)
    merge_options(objects)
    make(tree, objects, "olddefconfig", log, lambda: None)
    lost = missing_options((objects / ".config").read_text())
    if lost:
        raise UserError(f"guests: this kernel source has no {', '.join(lost)}", 1)
    done = 0

    def line() -> None:
        nonlocal done
        done += 1
        progress("compiling", min(done, STEPS), STEPS)

    make(tree, objects, "linux", log, line)
    return (objects / "include/config/kernel.release").read_text().strip()


def keep(objects: Path, kernel: Kernel) -> None:
    """Moves what was built into the cache: whole or not at all."""
    with tempfile.TemporaryDirectory(dir=cache(), prefix="building-") as folder:
        new = Path(folder) / kernel.key
        new.mkdir(mode=0o755)
        shutil.copy2(objects / "linux", new / "linux")
        subprocess.run(["strip", "--strip-debug", str(new / "linux")], check=False)
        shutil.copy2(objects / ".config", new / "config")
        (new / "guest.json").write_text(json.dumps(asdict(kernel), indent=1) + "\n")
        place = cache() / kernel.key
        shutil.rmtree(place, ignore_errors=True)
        new.rename(place)


def choose(key: str) -> None:
    """Makes it the one that weir-sim runs."""
    link = cache() / f"current.{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(key)
    link.rename(cache() / "current")


def build(progress: Progress) -> tuple[Kernel, bool]:
    """The kernel of this machine's source, and whether it had to be built."""
    check_machine()
    install_needs()
    package, version = source()
    kernel = identify(package, version)
    with bootstrap.locked(cache()):
        if (cache() / kernel.key / "guest.json").exists():
            choose(kernel.key)
            return current() or kernel, False
        with tempfile.TemporaryDirectory(dir=cache(), prefix="building-") as folder:
            work = Path(folder)
            progress("downloading", 0, 0)
            deb = download(package, version, work)
            unpack(deb, package, work / "tree", progress)
            free_ticks(work / "tree")
            deb.unlink()
            release = compile_(work / "tree", work / "objects", progress)
            kernel = Kernel(**{**asdict(kernel), "release": release})
            keep(work / "objects", kernel)
        choose(kernel.key)
    return kernel, True


class Steps:
    """Says what goes on and about how long it still takes: a line per tenth, without a terminal."""

    def __init__(self, say: Callable[[str], None] = bootstrap.say) -> None:
        self.say = say
        self.what, self.tenth, self.began = "", 0, 0.0

    def __call__(self, what: str, done: int, whole: int) -> None:
        """So much of it is done."""
        now = time.monotonic()
        if what != self.what:
            self.what, self.tenth, self.began = what, 0, now
            self.say(f"{what} the guests' kernel source")
        tenth = 10 * done // whole if whole else 0
        if tenth > self.tenth:
            self.tenth = tenth
            left = (now - self.began) * (whole - done) / done
            rest = f", about {left:.0f} s left" if tenth < 10 else ""
            self.say(f"{what}: {10 * tenth} %{rest}")

# SPDX-License-Identifier: BSD-3-Clause
"""Installs what Weir needs and is not there: Debian packages, a .venv, a meson build.

Runs before anything else exists, so it uses the standard library only. tools/weir calls it when
its stamp is missing or old; tests/check calls it with tests=True, which adds what only the tests
need. Once everything is there it touches neither apt nor the network.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
CLONE = PACKAGE.parents[2]
INSTALLED = not (CLONE / "tools/weir").exists()
# The one place that says where sources, configs and programs are: in a clone; or under tree/ of
# what meson.build installs, each where it is in a clone.
ROOT = PACKAGE / "tree" if INSTALLED else CLONE
PYTHON_MIN = (3, 11)
TICK_S = 1.0  # between two lines of what a long command does
# What apt, pip, uv and npm write of an index that does not answer.
UNREACHABLE = (
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ProxyError",
    "error sending request for url",
    "Temporary failure resolving",
    "Could not resolve",
    "Could not connect to",
    "Unable to connect to",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
)


class SetupError(Exception):
    """Something cannot be installed; the text is one sentence for the user."""


@dataclass(frozen=True)
class Need:
    """A Debian package and how to see that what it brings is there.

    probe is `command NAME`, `pkgconfig NAME` or `file GLOB-UNDER-/`.
    """

    package: str
    probe: str

    def met(self) -> bool:
        """Returns whether it is there, whoever installed it."""
        kind, what = self.probe.split(" ", 1)
        if kind == "command":
            return shutil.which(what, path=search_path()) is not None
        if kind == "pkgconfig":
            pkg_config = shutil.which("pkg-config")
            return pkg_config is not None and quiet([pkg_config, "--exists", what]) == 0
        return any(Path("/").glob(what))


BUILD_NEEDS = (
    Need("gcc", "command cc"),
    Need("libc6-dev", "file usr/include/stdio.h"),
    Need("meson", "command meson"),
    Need("ninja-build", "command ninja"),
    Need("pkg-config", "command pkg-config"),
    Need("libyaml-dev", "pkgconfig yaml-0.1"),
    Need("libpcap-dev", "pkgconfig libpcap"),
    Need("libxxhash-dev", "pkgconfig libxxhash"),
    Need("libzstd-dev", "pkgconfig libzstd"),
    Need("zlib1g-dev", "pkgconfig zlib"),
    Need("check", "pkgconfig check"),
)
DPDK_NEED = Need("libdpdk-dev", "pkgconfig libdpdk")
TEST_NEEDS = (
    Need("clang-14", "command clang-14"),
    Need("clang-format-14", "command clang-format-14"),
    Need("libclang-rt-14-dev", "file usr/lib/llvm-14/lib/clang/14*/lib/linux/libclang_rt.fuzzer-*"),
    Need("gcc-aarch64-linux-gnu", "command aarch64-linux-gnu-gcc"),
    Need("mmdebstrap", "command mmdebstrap"),
    Need("chromium-headless-shell", "command chromium-headless-shell"),
    Need("tshark", "command tshark"),
    Need("tcpdump", "command tcpdump"),
    Need("tcptrace", "command tcptrace"),
    Need("iperf3", "command iperf3"),
    Need("flent", "command flent"),
    Need("ngtcp2-client", "command gtlsclient"),
    Need("ngtcp2-server", "file usr/sbin/gtlsserver"),
    Need("iproute2", "command ip"),
    Need("ethtool", "command ethtool"),
    Need("nftables", "command nft"),
    Need("slirp4netns", "command slirp4netns"),
    Need("openssh-server", "file usr/sbin/sshd"),
    Need("curl", "command curl"),
    Need("iputils-ping", "command ping"),
    Need("procps", "command sysctl"),
    Need("nodejs", "command node"),
    Need("npm", "command npm"),
    Need("rustc", "command rustc"),
    Need("qemu-user", "command qemu-x86_64"),
    Need("qemu-system-x86", "command qemu-system-x86_64"),
    Need("busybox-static", "command busybox"),
)
# What these are called on systems without apt-get, on which nobody has tested Weir.
PLAIN_NAMES = {
    **{"ninja-build": "ninja", "pkg-config": "pkgconf", "libyaml-dev": "libyaml"},
    **{"libpcap-dev": "libpcap", "libxxhash-dev": "xxhash", "libzstd-dev": "zstd"},
    **{"zlib1g-dev": "zlib", "libdpdk-dev": "dpdk", "python3-venv": "python"},
}
OTHER_NAMES = {
    "dnf install": {
        **{"libc6-dev": "glibc-devel", "pkg-config": "pkgconf-pkg-config", "check": "check-devel"},
        **{"libyaml-dev": "libyaml-devel", "libpcap-dev": "libpcap-devel"},
        **{"libxxhash-dev": "xxhash-devel", "libzstd-dev": "libzstd-devel"},
        **{"zlib1g-dev": "zlib-devel", "libdpdk-dev": "dpdk-devel", "python3-venv": "python3"},
    },
    "pacman -S": PLAIN_NAMES | {"libc6-dev": "glibc"},
    "brew install": PLAIN_NAMES | {"gcc": "", "libc6-dev": ""},
}
VENV_NEED = Need("python3-venv", "")
APT_WAIT_S = 300
# Every Python package with its hashes, under tools/; tools/lock makes them.
LOCKS = {"plain": "requirements.txt", "tests": "requirements-dev.txt"}
UV = "requirements-uv.txt"  # what installs them
# The machine's certificates, as pip has them by its config; and this Python, no other.
UV_ENVIRONMENT = {"UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never"}


def say(text: str) -> None:
    """Prints a line about what happens now."""
    print(f"weir: {text}", file=sys.stderr, flush=True)


def search_path() -> str:
    """Returns PATH with the system directories that a user's may lack."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def quiet(argv: Sequence[str]) -> int:
    """Runs a command without its output; returns its exit status."""
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


def logged(argv: Sequence[str], log: Path, env: dict[str, str] | None = None) -> int:
    """Runs a command with its output in a log file; returns its exit status."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        out.write(f"$ {' '.join(argv)}\n".encode())
        out.flush()
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
        return watched(process, log)


def watched(process: subprocess.Popen[bytes], log: Path) -> int:
    """Waits for a command and returns its status; a terminal shows time and present work."""
    began = time.monotonic()
    terminal = sys.stderr.isatty()
    try:
        while True:
            try:
                return process.wait(TICK_S)
            except subprocess.TimeoutExpired:
                if terminal:
                    lines = log.read_text(errors="replace").splitlines()
                    doing = lines[-1].strip() if lines else ""
                    text = f"  {time.monotonic() - began:3.0f} s  {doing}"
                    print(f"\r\033[K{text[:79]}", end="", file=sys.__stderr__, flush=True)
    finally:
        if terminal:
            print("\r\033[K", end="", file=sys.__stderr__, flush=True)
        if process.poll() is None:
            process.kill()
            process.wait()


def last_error(log: Path) -> str:
    """Returns the line of a log that most likely says what went wrong."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    if why := unreachable(lines):
        return why
    marks = ("E: ", "ERROR", "error:", "fatal:")
    errors = [line for line in lines if any(mark in line for mark in marks)]
    errors = [line for line in errors if "subprocess-exited-with-error" not in line] or errors
    return (errors or lines or ["no output"])[-1][:300]


def unreachable(lines: Sequence[str]) -> str | None:
    """Returns a sentence about a package index that did not answer, or None if all did."""
    for line in lines:
        if any(mark in line for mark in UNREACHABLE):
            asked = re.search(r"https?://([^/:\s'\"]+)|(?:host=|resolving )'([^']+)'", line)
            host = f" ({asked[1] or asked[2]})" if asked else ""
            return f"the package index{host} cannot be reached: is there a network, or a proxy?"
    return None


@contextmanager
def locked(build: Path) -> Iterator[None]:
    """Lets one set-up run at a time, by the same lock as tools/weir's."""
    build.mkdir(parents=True, exist_ok=True)
    lock = os.open(
        build / "weir-lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def apt(packages: Sequence[str], build: Path) -> str | None:
    """Installs Debian packages; returns None, or why they could not be installed."""
    apt_get = shutil.which("apt-get")
    if apt_get is None:
        return "this system has no apt-get"
    # apt asks nothing: tshark would like to know who may capture.
    prefix = ["env", "DEBIAN_FRONTEND=noninteractive"]
    if os.geteuid() != 0:
        sudo = shutil.which("sudo")
        if sudo is None:
            return "that needs root or sudo"
        if quiet([sudo, "-n", "true"]) != 0:
            if not sys.stdin.isatty():
                return "sudo wants a password and there is no terminal to ask on"
            if subprocess.run([sudo, "-v"]).returncode != 0:
                return "sudo does not allow it"
        prefix = [sudo, *prefix]
    log = build / "weir-setup.log"
    # Another installation, as of the system's own updates, ends at some time.
    options = ["-y", "--no-install-recommends", "-o", f"DPkg::Lock::Timeout={APT_WAIT_S}"]
    install = [*prefix, apt_get, "install", *options, *packages]
    if logged(install, log) == 0:
        return None
    # The package lists may be missing or old; an index that does not answer is but a warning.
    renewed = logged([*prefix, apt_get, "update"], log) == 0
    why = unreachable(log.read_text(errors="replace").splitlines())
    if renewed and logged(install, log) == 0:
        return None
    return f"{why or last_error(log)} (all of it: {log})"


def apt_or_sentence(packages: Sequence[str], build: Path) -> None:
    """Installs Debian packages; SetupError says with which command the user can."""
    why = apt(packages, build)
    if why is not None:
        said = f"cannot install {', '.join(packages)}: {why}; install them with: "
        raise SetupError(said + by_hand(packages))


def by_hand(packages: Sequence[str]) -> str:
    """Returns the command that installs packages here, by the names that they have here."""
    there = [manager for manager in OTHER_NAMES if shutil.which(manager.split()[0]) is not None]
    if shutil.which("apt-get") or not there:
        return f"apt-get install {' '.join(packages)}"
    names = OTHER_NAMES[there[0]]
    return f"{there[0]} {' '.join(filter(None, (names.get(name, name) for name in packages)))}"


def system_packages(tests: bool, dpdk: bool, build: Path) -> None:
    """Installs the Debian packages that are missing."""
    needs = BUILD_NEEDS + (TEST_NEEDS if tests else ())
    missing = [need.package for need in needs if not need.met()]
    if missing:
        say(f"installing Debian packages: {' '.join(missing)}")
        apt_or_sentence(missing, build)
    if dpdk and not DPDK_NEED.met():
        say(f"installing Debian packages: {DPDK_NEED.package} (for the live programs)")
        why = apt([DPDK_NEED.package], build)
        if why is not None:
            say(f"continuing without the live programs: cannot install {DPDK_NEED.package}: {why}")


def inputs_hash() -> str:
    """Returns the hash of what the set-up is made from, as tools/weir computes it."""
    inputs = (*LOCKS.values(), UV, "src/weir/bootstrap.py")
    return hashlib.sha256(
        b"".join((ROOT / "tools" / name).read_bytes() for name in inputs)
    ).hexdigest()


def make_venv(path: Path, build: Path) -> None:
    """Makes an empty environment with pip, by whichever way this Python offers."""
    try:
        import ensurepip  # noqa: F401  Debian splits it off into python3-venv
    except ImportError:
        say(f"installing Debian packages: {VENV_NEED.package}")
        why = apt([VENV_NEED.package], build)
        if why is not None:
            if quiet([sys.executable, "-m", "virtualenv", str(path)]) == 0:
                return
            raise SetupError(
                f"cannot make a Python environment: {why}; install it with: "
                f"apt-get install {VENV_NEED.package}"
            ) from None
    log = build / "weir-setup.log"
    if logged([sys.executable, "-m", "venv", "--clear", str(path)], log) != 0:
        raise SetupError(f"cannot make a Python environment in {path}: {last_error(log)}")


def python_packages(tests: bool, build: Path) -> None:
    """Makes the .venv with the weir command in it; its stamp says what it was made from."""
    path = ROOT / ".venv"
    stamp = path / "weir-stamp"
    python = path / "bin/python"
    extra = "tests" if tests else "plain"
    have = stamp.read_text().split("\n")[0] if stamp.exists() else ""
    key = f"{inputs_hash()} {ROOT} "
    if have == key + extra or have == key + "tests":
        return
    if have.endswith(" tests"):
        extra = "tests"  # a newer set-up keeps what the tests need
    say(f"installing Python packages into {path}")
    stamp.unlink(missing_ok=True)
    if not python.exists() or quiet([str(python), "-m", "pip", "--version"]) != 0:
        make_venv(path, build)
    log = build / "weir-setup.log"
    hashed = ("--require-hashes", "--requirement")
    pip = [str(python), "-m", "pip", "install", *hashed, str(ROOT / "tools" / UV)]
    uv = [str(path / "bin/uv"), "pip", "install", "--python", str(python)]
    # Byte code takes longer than all else; what tests import of it is compiled as they do.
    byte_code = [] if tests else ["--compile-bytecode"]
    packages = [*uv, *byte_code, *hashed, str(ROOT / "tools" / LOCKS[extra])]
    for argv in (pip, packages):
        if logged(argv, log, UV_ENVIRONMENT) != 0:
            why = last_error(log)
            raise SetupError(f"cannot install Python packages: {why} (all of it: {log})")
    link_sources(path)
    stamp.write_text(f"{key}{extra}\n")


def link_sources(environment: Path) -> None:
    """Makes the weir command and module of an environment those of this clone."""
    for packages in environment.glob("lib/python3*/site-packages"):
        (packages / "weir.pth").write_text(f"{ROOT / 'tools/src'}\n")
    command = environment / "bin/weir"
    python = shlex.quote(str(environment / "bin/python"))
    command.write_text(f'#!/bin/sh\nexec {python} -P -m weir "$@"\n')
    command.chmod(0o755)


def editor_packages(build: Path) -> Path:
    """Installs the npm packages that read the schema in tests; returns their folder."""
    folder = ROOT / "tests/tools/editors"
    modules = folder / "node_modules"
    stamp = modules / "weir-stamp"
    lock = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == lock:
        return modules
    say(f"installing npm packages into {modules}")
    log = build / "weir-setup.log"
    argv = [tool("npm"), "ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit"]
    if logged([*argv, "--no-fund"], log) != 0:
        raise SetupError(f"cannot install npm packages: {last_error(log)} (all of it: {log})")
    stamp.write_text(lock)
    return modules


def configure(build: Path, options: Sequence[str], env: dict[str, str] | None = None) -> None:
    """Sets a meson build directory up, once."""
    if (build / "build.ninja").exists():
        return
    say(f"configuring {build}")
    log = build / "weir-setup.log"
    argv = [tool("meson"), "setup", str(build), str(ROOT), *options]
    if logged(argv, log, env) != 0:
        raise SetupError(f"cannot configure {build}: {last_error(log)} (all of it: {log})")


def compile_(build: Path, *targets: str) -> None:
    """Brings a build directory, or parts of it, up to date; ninja knows what changed."""
    log = build / "weir-build.log"
    if logged([tool("ninja"), "-C", str(build), *targets], log) != 0:
        raise SetupError(f"the build failed: {last_error(log)} (all of it: {log})")


def sanitized() -> Path:
    """Brings the second build up to date: clang, AddressSanitizer and UndefinedBehaviorSanitizer.

    Without the live programs: those are DPDK's. It has the fuzzers too.
    """
    build = ROOT / "build-asan"
    # Stack traces need no more than lines; more is half of each link, and there are 150.
    options = ["-Ddpdk=disabled", "-Dfuzz=true", "--buildtype=plain", "-Doptimization=1"]
    options += ["-Db_sanitize=address,undefined", "-Db_lundef=false"]
    options += ["-Dc_args=-gline-tables-only"]
    with locked(build):
        configure(build, options, {"CC": "clang-14"})
        compile_(build)
    return build


def race_checked() -> Path:
    """Brings weir-sim with ThreadSanitizer, not optimised, up to date.

    It takes two threads however short delays are. One that waits sleeps soon, as all it does is
    slow.
    """
    build, program = ROOT / "build-tsan", "tools/sim/weir-sim"
    options = ["-Ddpdk=disabled", "--buildtype=plain", "-Db_sanitize=thread", "-Db_lundef=false"]
    options += [
        "-Dc_args=-g1 -DPIPELINE_DELAY_MIN_NS=1 -DPIPELINE_TRIAL_NS=50000 -DPIPE_SPINS_MAX=60"
    ]
    with locked(build):
        configure(build, options)
        compile_(build, program)
    return build / program


def tool(name: str) -> str:
    """Returns the path of a command; SetupError: it is missing."""
    path = shutil.which(name, path=search_path())
    if path is None:
        raise SetupError(f"{name} is missing")
    return path


def setup(build: Path, tests: bool = False) -> None:
    """Installs and builds what is missing, in order."""
    if sys.version_info < PYTHON_MIN:
        raise SetupError("Weir needs Python 3.11 or newer; Debian 12 has it as python3")
    with locked(build):
        first = not (build / "build.ninja").exists()
        if first:
            say("setting up, once: Debian packages, Python packages, a build; about two minutes")
        system_packages(tests, dpdk=first, build=build)
        python_packages(tests, build)
        if tests:
            editor_packages(build)
        configure(build, ["--buildtype=release"])
        if first:
            say(f"building in {build}")
        compile_(build)


def main() -> int:
    """Sets Weir up for tools/weir; returns the exit status."""
    try:
        setup(Path(os.environ.get("WEIR_BUILD", ROOT / "build")))
    except SetupError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"set-up stopped: {error}")
        return 1
    except KeyboardInterrupt:
        say("set-up interrupted; run the same command again to go on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

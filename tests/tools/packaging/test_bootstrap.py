# SPDX-License-Identifier: BSD-3-Clause
"""Setting up: what is missing is installed, what is there is left alone, failures are sentences.

Nothing is installed here: apt-get, pip and meson are scripts that write down how they were called.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from weir import bootstrap
from weir.base import programs
from weir.base.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
NINJA = "rule say\n  command = {command}\nbuild sim switch sender: say\n"


LOCKS = tuple(f"tools/requirements{part}.txt" for part in ("", "-dev", "-uv"))
INPUTS = (*LOCKS, "tools/src/weir/bootstrap.py")


@dataclass
class Done:
    status: int
    out: str
    err: str


class Copy:
    """A repository with the set-up's own files only, and a PATH that we control."""

    def __init__(self, path):
        self.path = path
        for name in ("tools/weir", *INPUTS):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, path / name)
        for name in ("common", "switch", "sender", "tools/sim", "tools/pcap"):
            (path / name).mkdir()
        self.parts = path / "tools/src/weir/analysis/model_parts.py"
        self.parts.parent.mkdir()
        self.parts.touch()
        self.bin = path / "bin"
        self.bin.mkdir()
        self.log = path / "log"

    def command(self, name, body="", log=True):
        """A command on the PATH that notes its call and does `body`."""
        note = f'echo "{name} $*" >>{self.log}\n' if log else ""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{note}{body}\n")
        path.chmod(0o755)

    def calls(self, name):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(name + " ")]

    def installed(self, *, dpdk=True):
        """Everything is there: only meson, ninja and pip remain to be called."""
        self.command("cc")
        self.command("gcc")
        self.command("pkg-config", "true" if dpdk else 'test "$2" != libdpdk', log=False)
        self.command("meson", f'mkdir -p "$2"; touch "$2/build.ninja"; chmod +x {self.bin}/ninja')
        self.command("ninja")

    def venv(self):
        """A .venv that is up to date; its python is ours."""
        (self.path / ".venv/bin").mkdir(parents=True)
        python = self.path / ".venv/bin/python"
        python.write_text(f'#!/bin/sh\necho "weir $*" >>{self.log}\n')
        python.chmod(0o755)
        made = subprocess.run(
            f"cat {' '.join(INPUTS)} | sha256sum | cut -d' ' -f1",
            shell=True, cwd=self.path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        stamp = f"{made.stdout.strip()} {self.path} plain\n"
        (self.path / ".venv/weir-stamp").write_text(stamp)

    def build(self, command="true"):
        """A build directory that is up to date or, by `command`, is not."""
        (self.path / "build").mkdir(exist_ok=True)
        (self.path / "build/build.ninja").write_text(NINJA.format(command=command))

    def run(self, argv, path):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR", "PIP"))}
        done = subprocess.run(
            list(map(str, argv)), cwd=self.path, env={**env, "PATH": path},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def weir(self, *args):
        return self.run([self.path / "tools/weir", *args], f"{self.bin}:{os.environ['PATH']}")

    def bootstrap(self):
        """bootstrap.py where no command but ours can be found."""
        for name in ("env", "sh", "mkdir", "touch", "chmod"):
            if not (self.bin / name).exists():
                (self.bin / name).symlink_to(shutil.which(name))
        return self.run([sys.executable, self.path / "tools/src/weir/bootstrap.py"], str(self.bin))


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def test_the_second_time_nothing_is_set_up_or_built(copy):
    copy.venv()
    copy.build("false")
    done = copy.weir("report", "a b")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert copy.log.read_text() == "weir -P -m weir report a b\n"


def test_the_types_of_summaries_are_made_when_a_list_has_changed(copy):
    """As after `git pull`: a page of a run reads it by them, and builds nothing else."""
    copy.venv()
    copy.build("true")
    sim = copy.path / "build/tools/sim/weir-sim"
    sim.parent.mkdir(parents=True)
    sim.write_text('#!/bin/sh\necho "$*"\n')
    sim.chmod(0o755)
    copy.parts.unlink()
    assert copy.weir("report").status == 0
    assert copy.parts.read_text() == "--list types\n"
    (copy.path / "common/fields.h").touch()
    os.utime(copy.parts, (1, 1))
    assert copy.weir("report").status == 0
    assert copy.parts.stat().st_mtime > 1


@pytest.mark.parametrize("name", INPUTS)
def test_a_changed_requirement_sets_up_again(copy, name):
    copy.venv()
    copy.build()
    changed = copy.path / name
    changed.write_text(changed.read_text() + "\n")
    copy.command("python3", "exit 3")
    assert copy.weir("report").status == 3
    assert copy.calls("python3")[0].endswith("tools/src/weir/bootstrap.py")


def test_python_agrees_with_the_wrapper_on_the_stamp(copy):
    copy.installed()
    copy.venv()
    copy.build()
    done = copy.bootstrap()
    assert (done.status, done.err) == (0, "")
    assert [line.split()[0] for line in copy.log.read_text().splitlines()] == ["ninja"]


def test_another_user_runs_a_build_that_is_up_to_date(copy):
    def other_user(*argv):
        unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        prefix = unprivileged if os.geteuid() == 0 else []
        return copy.run([*prefix, *argv], f"{copy.bin}:{os.environ['PATH']}")

    copy.venv()
    (copy.path / "tools/bench").mkdir()
    for name in ("meson.build", "meson_options.txt", "common/a.c"):
        (copy.path / name).touch()
    copy.build()
    (copy.path / "build/.ninja_log").touch()
    copy.log.touch()
    copy.log.chmod(0o666)
    for path in (*copy.path.parents, copy.path):  # pytest's own folders are its user's
        if path.is_relative_to("/tmp/") and path != Path("/tmp"):
            path.chmod(0o755)
    (copy.path / "build").chmod(0o555)
    done = other_user(copy.path / "tools/weir", "--build", "sim")
    assert (done.status, done.err) == (0, "")
    os.utime(copy.path / "common/a.c", (2e9, 2e9))
    done = other_user(copy.path / "tools/weir", "--build", "sim")
    assert done.status == 1
    assert "belongs to another user and is older than common/a.c: ask them" in done.err


def test_a_python_that_only_another_user_may_run_is_one_sentence(copy):
    """`env: Permission denied`: root's Python was in root's home."""
    copy.venv()
    copy.build()
    (copy.path / ".venv/bin/python").chmod(0o644)
    done = copy.weir("report")
    assert done.status == 1
    assert done.err.startswith(f"weir: you may not run {copy.path}/.venv/bin/python: ")
    assert done.err.count("\n") == 1


def test_what_is_installed_is_pinned_with_hashes():
    pins = []
    for name in LOCKS:
        text = (ROOT / name).read_text().removeprefix("-r requirements.txt\n")
        rows = [line for line in text.splitlines() if line and line[0] not in " #"]
        assert rows
        pinned = re.findall(r"^(\S+)==\S+ \\\n    --hash=", text, re.M)
        assert len(pinned) == len(rows)
        assert "://" not in text
        pins += pinned
    assert len(set(pins)) == len(pins) > 100
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [
        *wanted["project"]["dependencies"],
        *wanted["project"]["optional-dependencies"]["dev"],
        "uv",
    ]
    names = {re.split(r"[\[><=]", name)[0].lower() for name in named}
    assert names <= {pin.lower() for pin in pins}


def test_a_failed_build_is_a_sentence_and_its_log(copy):
    copy.venv()
    copy.build("echo 'x.c:1: error: no such thing'; false")
    for argv in (["sim", "x.yaml"], ["--build", "sim"]):
        done = copy.weir(*argv)
        assert done.status == 1
        assert done.err.splitlines()[-1] == (
            f"weir: weir-sim cannot be built; all of it is in {copy.path}/build/weir-build.log"
        )
        assert "no such thing" in done.err


def test_a_command_builds_the_program_that_it_runs(monkeypatch, tmp_path):
    wrapper = tmp_path / "weir"
    fail = '[ "$2" = sim ] || { echo "weir: x" >&2; exit 1; }'
    wrapper.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/log\n{fail}\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("WEIR_WRAPPER", str(wrapper))
    programs.rebuild.cache_clear()
    for _ in range(2):
        programs.find_program("sim")
    with pytest.raises(UserError, match=r"^x$"):
        programs.find_program("pcap")
    programs.rebuild.cache_clear()
    assert (tmp_path / "log").read_text() == "--build sim\n--build pcap\n"


CONTROL = """
from weir.control import Control
class Mine(Control):
    def on_ack(self, m):
        self.cwnd_segs = 10
"""


@pytest.mark.slow
def test_no_file_of_the_current_folder_is_loaded(tmp_path):
    """A folder's glob.py was executed by every command."""
    names = {name.partition(".")[0] for name in sys.modules} | sys.stdlib_module_names
    for name in names - {"__main__", "__future__"}:
        (tmp_path / f"{name}.py").write_text('raise SystemExit("loaded: " + __file__)\n')
    (tmp_path / "mine.py").write_text(CONTROL)
    config = Path(shutil.copy(ROOT / "configs/quickstart.yaml", tmp_path))
    few = ["flows.0.count=2", "duration=50ms", "warmup=0s", "flows.0.cc={python: mine.py:Mine}"]
    options = [word for change in few for word in ("-o", change)]
    run = ["run", str(config), *options, "--out", "r", "--no-report"]
    for weir in (ROOT / "tools/weir", ROOT / ".venv/bin/weir"):
        for argv in (["--help"], ["ls", "."], [*run, "--force"]):
            done = subprocess.run([weir, *argv], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert "loaded" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "program"),
    [("sim", "tools/sim/weir-sim"), ("switch", "switch/weir-switch"),
     ("sender", "sender/weir-sender")],
)  # fmt: skip
def test_the_c_programs_are_run_from_the_build(copy, name, program):
    copy.venv()
    copy.build()
    if name != "sim":  # without DPDK there is no such target
        missing = copy.weir(name)
        assert missing.status == 1
        assert "was not built" in missing.err
    path = copy.path / "build" / program
    path.parent.mkdir(parents=True)
    path.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    path.chmod(0o755)
    done = copy.weir(name, "a b", "--c")
    assert (done.status, done.out) == (7, "a b --c\n")


def test_weir_build_names_the_build(copy):
    copy.venv()
    copy.build()
    (copy.path / "build").rename(copy.path / "other")
    done = copy.run(
        ["env", f"WEIR_BUILD={copy.path}/other", copy.path / "tools/weir", "list"],
        os.environ["PATH"],
    )
    assert (done.status, done.err) == (0, "")


def test_missing_packages_are_installed_after_an_update_if_need_be(copy):
    copy.installed()
    (copy.bin / "meson").rename(copy.bin / "hidden")
    (copy.bin / "ninja").unlink()
    copy.venv()
    update = f"touch {copy.path}/updated"
    install = f"test -e {copy.path}/updated && mv {copy.bin}/hidden {copy.bin}/meson && "
    install += f"ln -s {shutil.which('true')} {copy.bin}/ninja"
    # A bare machine has no package lists: the first try fails.
    (copy.bin / "mv").symlink_to(shutil.which("mv"))
    (copy.bin / "ln").symlink_to(shutil.which("ln"))
    copy.command("apt-get", f'if [ "$1" = update ]; then {update}; else {install}; fi')
    if os.geteuid() != 0:
        copy.command("sudo", '[ "$1" = -n ] || exec "$@"', log=False)
    done = copy.bootstrap()
    assert done.status == 0, done.err
    assert "installing Debian packages: meson ninja-build" in done.err
    assert [call.split()[1] for call in copy.calls("apt-get")] == ["install", "update", "install"]
    assert all("meson ninja-build" in call for call in copy.calls("apt-get")[::2])
    # A new machine updates itself at first: apt-get gives up at once, unless told to wait.
    assert all("DPkg::Lock::Timeout=300" in call for call in copy.calls("apt-get")[::2])


def test_what_cannot_be_installed_is_one_sentence(copy):
    copy.installed()
    (copy.bin / "meson").unlink()
    copy.venv()
    copy.command("apt-get", "echo 'E: Unable to locate package meson'; exit 100")
    if os.geteuid() != 0:
        copy.command("sudo", '[ "$1" = -n ] || exec "$@"', log=False)
    done = copy.bootstrap()
    assert done.status == 1
    last = done.err.splitlines()[-1]
    assert "cannot install meson: E: Unable to locate package meson" in last
    assert "apt-get install meson" in last


def test_without_apt_the_sentence_names_the_packages(copy):
    copy.installed()
    (copy.bin / "meson").unlink()
    copy.venv()
    done = copy.bootstrap()
    assert done.status == 1
    assert "this system has no apt-get" in done.err.splitlines()[-1]


def test_without_dpdk_it_goes_on(copy):
    copy.installed(dpdk=False)
    copy.venv()
    done = copy.bootstrap()
    assert done.status == 0, done.err
    assert "continuing without the live programs" in done.err
    assert copy.calls("meson")
    second = copy.bootstrap()
    assert second.err == ""  # not asked for at every start


@pytest.mark.parametrize(
    ("sudo", "why"),
    [(None, "needs root or sudo"), ("exit 1", "wants a password"), ("exit 0", None)],
)
def test_without_root(monkeypatch, tmp_path, sudo, why):
    copy = Copy(tmp_path)
    copy.command("apt-get")
    copy.command("env", 'shift; exec "$@"', log=False)
    if sudo is not None:
        copy.command("sudo", f'[ "$1" = -n ] || exec "$@"\n{sudo}', log=False)
    monkeypatch.setenv("PATH", f"{copy.bin}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "stdin", (tmp_path / "log").open("w+"))
    found = bootstrap.apt(["meson"], tmp_path)
    sys.stdin.close()
    assert found is None if why is None else why in found


def test_old_python_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(bootstrap.SetupError, match=r"Python 3\.11"):
        bootstrap.setup(tmp_path)


def test_pip_that_fails_offline_is_one_sentence(copy):
    copy.installed()
    copy.venv()
    (copy.path / ".venv/weir-stamp").unlink()
    python = copy.path / ".venv/bin/python"
    fails = 'case "$*" in *--version*) ;; *) echo "ERROR: no route"; exit 1 ;; esac'
    python.write_text(f"#!/bin/sh\n{fails}\n")
    done = copy.bootstrap()
    assert done.status == 1
    assert "cannot install Python packages: ERROR: no route" in done.err.splitlines()[-1]
    assert not (copy.path / ".venv/weir-stamp").exists()  # the next time tries again


def test_probes():
    assert bootstrap.Need("x", "command sh").met()
    assert not bootstrap.Need("x", "command no-such-command").met()
    assert bootstrap.Need("x", "file etc/pass*").met()
    assert not bootstrap.Need("x", "file etc/no-such-file").met()


# What the installers write when an index does not answer, and the host that is named.
UNREACHABLE = [
    (
        "WARNING: Retrying after connection broken by 'NewConnectionError(\"HTTPSConnection("
        "host='index.example', port=443): Failed to establish a new connection\")': /simple/numpy/",
        " (index.example)",
    ),
    ("W: Failed to fetch http://mirror.example/debian/dists/x  Temporary failure resolving "
     "'mirror.example'", " (mirror.example)"),
    ("npm error code ENOTFOUND", ""),
    ("  cause: error sending request for url (https://index.example/simple/six/)",
     " (index.example)"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "host"), UNREACHABLE)
def test_an_index_that_cannot_be_reached_is_the_cause(tmp_path, line, host):
    """pip ends with "No matching distribution", apt-get with "Unable to locate package"."""
    log = tmp_path / "log"
    log.write_text(f"{line}\nERROR: No matching distribution found for numpy==1.0\n")
    assert bootstrap.last_error(log) == (
        f"the package index{host} cannot be reached: is there a network, or a proxy?"
    )


def test_apt_names_an_index_that_it_only_warned_of(tmp_path, monkeypatch):
    apt = tmp_path / "apt-get"
    apt.write_text(
        '#!/bin/sh\n[ $1 = update ] && echo "W: Failed to fetch http://mirror.example/x  Could not'
        ' connect to mirror.example:80" && exit 0\n'
        "echo 'E: Unable to locate package check'\nexit 100\n"
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    why = bootstrap.apt(["check"], tmp_path / "build")
    assert why.startswith("the package index (mirror.example) cannot be reached")


def test_a_long_step_says_what_it_does_at_a_terminal(tmp_path):
    """A minute of silence at the first start looks like a hang."""
    code = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]); import bootstrap\n"
        "bootstrap.TICK_S = 0.05\n"
        "go = 'echo Compiling widgets; while [ ! -e ' + sys.argv[2] + ' ]; do sleep 0.05; done'\n"
        "print(bootstrap.logged(['sh', '-c', go], pathlib.Path(sys.argv[2] + '.log')))\n"
    )
    done, modules = tmp_path / "done", str(ROOT / "tools/src/weir")
    ours, theirs = os.openpty()
    argv = [sys.executable, "-c", code, modules, str(done)]
    process = subprocess.Popen(argv, stderr=theirs, stdout=subprocess.PIPE, text=True)
    os.close(theirs)
    shown = b""
    while b"Compiling widgets" not in shown:
        shown += os.read(ours, 4096)
    done.touch()
    assert process.communicate(timeout=60)[0] == "0\n"
    os.close(ours)
    assert re.search(rb"\r.*\d s  Compiling widgets", shown)

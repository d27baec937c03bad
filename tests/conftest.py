# SPDX-License-Identifier: BSD-3-Clause
"""What all Python tests share: where the programs are, and who may run the smoke tests.

As root, all tests run in a process and a mount namespace of their own. However a run ends, the
kernel then ends every process that it started, and with the last of them go the network namespaces
and the sockets in /run.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A test that runs away must not fill the disk: the largest file any of them may write.
FILE_MAX = 4 << 30
resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

# A shell starts background programs with SIGINT ignored, and theirs inherit it. Tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

BUILD = Path(os.environ.get("WEIR_BUILD") or ROOT / "build")

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWPID, PR_SET_PDEATHSIG = 0x00020000, 0x20000000, 1
# Where `ip netns` and DPDK put what outlives a process that is killed.
RUNTIME = ("/run/netns", "/var/run/dpdk")


def wait_as_parent(child):
    """Ends this process as its child ended. Ctrl-C is for the tests, which get it too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:  # the first process of a namespace also has to reap those without a parent
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Goes on as a grandchild: the child is the first process of the namespace, and reaps."""
    if hasattr(config, "workerinput"):  # its parent did it for all workers
        return
    if os.geteuid() != 0 or LIBC.unshare(CLONE_NEWNS | CLONE_NEWPID) != 0:
        return
    sys.stdout.flush()
    if child := os.fork():
        wait_as_parent(child)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if child := os.fork():
        wait_as_parent(child)
    for folder in RUNTIME:
        Path(folder).mkdir(parents=True, exist_ok=True)
    for mount in (
        ["--make-rprivate", "/"],
        ["-t", "proc", "proc", "/proc"],
        *(["-t", "tmpfs", "-o", "mode=755", "tmpfs", folder] for folder in RUNTIME),
    ):
        subprocess.run(["mount", *mount], check=True)


def pytest_collection_modifyitems(items):
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(reason="needs root: network namespaces and raw sockets")
    for item in items:
        if (ROOT / "tests/smoke") in item.path.parents:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def summaries(request):
    """Every summary that a program wrote in a test is as weir.analysis.model describes it.

    Summaries that a test makes up are without `schema`.
    """
    yield
    from weir.analysis import model  # not in the process that only starts others

    folder = request.node.funcargs.get("tmp_path")
    for path in folder.rglob("summary*.json") if folder else ():
        text = path.read_bytes()
        if b'"schema"' in text[:40]:
            model.decode(text, str(path))


@pytest.fixture(scope="session")
def root():
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def build():
    """The build directory."""
    return BUILD


@pytest.fixture
def build_plugin(tmp_path):
    """build_plugin((text, other text) ...): weir new cc's control with these changes, compiled."""
    from weir.plugin import new

    def compiled(*changes, flags="-O2 -w"):
        folder = tmp_path / f"control{len(list(tmp_path.glob('control*')))}"
        source = new.create("cc", "mine", folder)[0]
        text = source.read_text()
        for old, other in changes:
            assert old in text
            text = text.replace(old, other)
        source.write_text(text)
        subprocess.run(["make", "-s", "-C", folder, f"CFLAGS={flags}"], check=True)
        return source.with_suffix(".so")

    return compiled


def program(name):
    path = BUILD / name
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return path


@pytest.fixture(scope="session")
def weir_sim():
    """Path of weir-sim."""
    return program("tools/sim/weir-sim")


@pytest.fixture(scope="session")
def weir_pcap():
    """Path of weir-pcap."""
    return program("tools/pcap/weir-pcap")


@pytest.fixture(scope="session")
def weir_switch():
    """Path of weir-switch; without DPDK there is none."""
    return program("switch/weir-switch")


@pytest.fixture(scope="session")
def weir_sender():
    """Path of weir-sender; without DPDK there is none."""
    return program("sender/weir-sender")

# SPDX-License-Identifier: BSD-3-Clause
"""A part of this program in namespaces of its own; all that it started ends with them.

    weir                  waits, and passes on the signals that it is sent
      process 1           of a process namespace: when it ends, the kernel kills all others in it
        a program ...

Process 1 is killed when we end, however we end. It has its own mounts, and makes network namespaces
that have no names: the kernel removes them, their interfaces and what is in /dev/shm with the last
process that uses them.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from weir.base.errors import UserError, guarded
from weir.live.laboratory import CommandError, command

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 1 << 28, 1 << 29, 1 << 30
PR_SET_PDEATHSIG = 1
PASSED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
PRIVATE = Path("/dev/shm")  # of process 1 and what it starts

# What runs as process 1: it gets the end of a pipe with the numbers of signals, as bytes.
Inside = Callable[[int], int]


def unshare(flags: int) -> None:
    """Enters new namespaces; UserError: the kernel does not allow it."""
    if LIBC.unshare(flags) != 0:
        raise refused(ctypes.get_errno())


def refused(error: int) -> UserError:
    """Returns the error for what the kernel did not allow."""
    return UserError(
        f"no namespaces of our own: {os.strerror(error)}; run as root, or let users make them:"
        " sysctl -w user.max_user_namespaces=10000, kernel.unprivileged_userns_clone=1 (Debian),"
        " kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)",
        1,
    )


def unshare_processes() -> bool:
    """Makes our next child process 1 of a namespace; True: we are root in that alone."""
    if os.geteuid() == 0 and LIBC.unshare(CLONE_NEWPID) == 0:
        return False
    maps = {"uid_map": f"0 {os.geteuid()} 1", "gid_map": f"0 {os.getegid()} 1"}
    unshare(CLONE_NEWUSER | CLONE_NEWPID)
    try:
        for file, text in {"setgroups": "deny", **maps}.items():
            Path("/proc/self", file).write_text(text)
    except OSError as error:
        raise refused(error.errno or 0) from None
    return True


def is_machines_root() -> bool:
    """Returns whether user numbers are the machine's, not those of a user namespace."""
    return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]


def run(inside: Inside) -> int:
    """Runs `inside` as process 1 of a namespace, and returns its exit status."""
    numbers = {number for number in PASSED if signal.getsignal(number) != signal.SIG_IGN}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers | {signal.SIGCHLD})
    theirs, ours = os.pipe()
    child = os.fork()
    if child == 0:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.close(ours)
        for number in numbers:  # a terminal's reach all; what is started has the default
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        status = 1
        try:
            status = guarded(lambda: first(inside, theirs))
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(theirs)
    return wait(child, ours, numbers)


def wait(child: int, pipe: int, numbers: set[signal.Signals]) -> int:
    """Passes signals on to the child until it ends, and returns its exit status.

    Those of a terminal are not passed on: it has sent them to all processes.
    """
    while True:
        seen = signal.sigwaitinfo(numbers | {signal.SIGCHLD})
        if seen.si_signo != signal.SIGCHLD:
            if seen.si_code <= 0:  # of a process, not of the kernel
                with suppress(BrokenPipeError):  # it is about to end
                    os.write(pipe, bytes([seen.si_signo]))
            continue
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def first(inside: Inside, pipe: int) -> int:
    """Runs as process 1: mounts file systems of its own, then calls `inside`."""
    unshare(CLONE_NEWNS)
    try:
        command("mount", "--make-rprivate", "/")
        command("mount", "-t", "proc", "proc", "/proc")
        command("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", PRIVATE)
        return inside(pipe)
    except CommandError as error:
        raise UserError(str(error), 1) from None

# SPDX-License-Identifier: BSD-3-Clause
"""The entry point of `python -m weir` and of the weir command."""

from __future__ import annotations

import os
import signal
import sys

from weir.base.signals import end_in_order

INTERRUPTED = 128 + signal.SIGINT


def leave(*_: object) -> None:
    """Ends at once on Ctrl-C while modules are imported, or after all is done."""
    os._exit(INTERRUPTED)


def main() -> int:
    """Runs a command; returns its exit status."""
    # What tools/weir blocked, so that Python's own start is not interrupted, comes now.
    signal.signal(signal.SIGINT, leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    # Commands without the imports of the others: typer's take longer than all they do.
    if sys.argv[1:2] == ["ctl"]:
        from weir.live.ctl import main as run
    elif sys.argv[1:2] == ["top"]:
        from weir.live.top import main as run
    elif sys.argv[1:2] in (["sim"], ["switch"], ["sender"]):
        from weir.cli.programs import main as run
    else:
        from weir.cli.app import main as run
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        end_in_order()
        return run()
    finally:
        signal.signal(signal.SIGINT, leave)


if __name__ == "__main__":
    sys.exit(main())

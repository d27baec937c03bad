# SPDX-License-Identifier: BSD-3-Clause
"""How tests wait: they poll, and a deadline ends what hangs."""

import time

WAIT_S = 120


def wait_for(condition, what="", seconds=WAIT_S):
    """Polls until condition() is true and returns its value; `what` may be a function, too.

    A file or a process that went while the condition looked at it is one that is not there yet.
    """
    deadline = time.monotonic() + seconds
    while True:
        gone = None
        try:
            if value := condition():
                return value
        except (FileNotFoundError, ProcessLookupError) as error:
            gone = error
        if time.monotonic() > deadline:
            text = what() if callable(what) else what
            raise TimeoutError(f"{text}: not within {seconds} s") from gone
        time.sleep(0.02)

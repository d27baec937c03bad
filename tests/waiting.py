# SPDX-License-Identifier: BSD-3-Clause
"""How tests wait: they poll, and a deadline ends what hangs."""

import time

WAIT_S = 120


def wait_for(condition, what="", seconds=WAIT_S):
    """Polls until condition() is true and returns its value; `what` may be a function, too."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what() if callable(what) else what}: not within {seconds} s")
        time.sleep(0.02)
    return value

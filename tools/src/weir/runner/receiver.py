# SPDX-License-Identifier: BSD-3-Clause
"""`live.receiver` of a config: the receiving side as a second weir-sender, beside `live.sender`'s.

It has a run folder of its own in the run's, no end of its own, and the keys of `live.sender`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from weir.analysis import folder

if TYPE_CHECKING:
    from weir.runner.options import Options

NAME = folder.RECEIVER  # of the section too, and of the program in messages
SECTION, SENDER = f"live.{NAME}", "live.sender"
NO_END = "duration=24h"  # the longest; it is stopped when the sender has ended


def options(given: Options, section: Mapping[str, object]) -> Options:
    """Returns the options of its weir-sender, which reads the section as `live.sender`."""
    import yaml

    keys = {"prefix": f"weir-{NAME}", **section}
    text = yaml.safe_dump(keys, default_flow_style=True, width=math.inf, sort_keys=False)
    mine = [f"{SENDER}={text.strip()}"]
    for override in given.overrides:
        if override.startswith((f"{SECTION}.", f"{SECTION}=")):
            mine.append(SENDER + override.removeprefix(SECTION))
        elif not override.startswith((f"{SENDER}.", f"{SENDER}=")):
            mine.append(override)
    return replace(given, out=given.out / NAME, overrides=(*mine, NO_END), duration=None, pcap=None)


def said(line: str) -> str:
    """Returns a line of its weir-sender with the names that the user's config has."""
    return line.replace("weir-sender: ", f"weir-{NAME}: ", 1).replace(SENDER, SECTION)

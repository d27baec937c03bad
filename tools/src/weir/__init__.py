# SPDX-License-Identifier: BSD-3-Clause
"""Runs Weir's experiments, opens what they recorded, and turns it into numbers and figures.

    import weir

    run = weir.run("configs/quickstart.yaml", overrides={"flows.0.count": 10})
    run = weir.open("runs/mine")
    run.packets["sojourn_ns"]      # a numpy array; run.cc, run.flows, run.events, ... likewise

`weir.open` gives a `Run` (api.py), whose streams are `Stream`s (analysis/stream.py),
`weir.open_many` the numbers of many runs as one frame, and `weir.table` means over their seeds.
`weir.metrics` has the functions from records to numbers, `weir.figures` those from them to figures,
`weir.export.write` writes a run for other programs.
Whatever is wrong is a `weir.UserError`, which says so in one sentence.

Each name is imported when it is first used: the command line needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir import export
    from weir.analysis import metrics
    from weir.analysis.many import open_many, table
    from weir.analysis.stream import Batch, Stream
    from weir.api import Run, open, run
    from weir.base.errors import UserError
    from weir.report import figures

__all__ = [
    "Batch",
    "Run",
    "Stream",
    "UserError",
    "export",
    "figures",
    "metrics",
    "open",
    "open_many",
    "run",
    "table",
]

_PLACES = {
    "Batch": ("weir.analysis.stream", "Batch"),
    "Run": ("weir.api", "Run"),
    "Stream": ("weir.analysis.stream", "Stream"),
    "UserError": ("weir.base.errors", "UserError"),
    "__version__": ("weir.base.version", "VERSION"),
    "export": ("weir.export", None),
    "figures": ("weir.report.figures", None),
    "metrics": ("weir.analysis.metrics", None),
    "open": ("weir.api", "open"),
    "open_many": ("weir.analysis.many", "open_many"),
    "run": ("weir.api", "run"),
    "table": ("weir.analysis.many", "table"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'weir' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    found = import_module(module)
    globals()[name] = found if attribute is None else getattr(found, attribute)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

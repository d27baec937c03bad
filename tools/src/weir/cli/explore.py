# SPDX-License-Identifier: BSD-3-Clause
"""The command weir explore."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from weir.cli.usage import commands
from weir.live import explore

app = commands()


@app.add("explore", "explore runs", "explore runs/buffer --serve 127.0.0.1:0")
def explore_(
    top: Annotated[Path, Argument(metavar="FOLDER", help="Where the run folders are.")] = Path(
        "runs"
    ),
    serve: Annotated[
        str, Option(metavar="ADDR:PORT", help="Where the page is.")
    ] = explore.DEFAULT_ADDRESS,
    token: Annotated[
        str | None,
        Option(
            envvar="WEIR_TOKEN",
            help="What each request must bring; needed beyond this machine. [WEIR_TOKEN]",
        ),
    ] = None,
) -> None:
    """Shows all runs of a folder in a browser.

    Those that are chosen are drawn side by side, or by the keys in which they differ.
    """
    with contextlib.suppress(KeyboardInterrupt):
        explore.serve(top, serve, token)

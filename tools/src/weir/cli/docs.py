# SPDX-License-Identifier: BSD-3-Clause
"""weir docs: the pages as a site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option
from typer.core import TyperGroup

from weir.cli.usage import commands
from weir.docs import gallery as pictures
from weir.docs import site

app = commands()


@app.add("docs", "docs", "docs --where", "docs --build site")
def docs_(
    context: typer.Context,
    build: Annotated[
        Path | None,
        Option("--build", metavar="DIR", help="Builds the site into a new folder and ends."),
    ] = None,
    gallery: Annotated[
        bool, Option("--gallery", help="Draws the pictures of the gallery again, and ends.")
    ] = False,
    where: Annotated[
        bool, Option("--where", help="Prints the first page's path and opens nothing.")
    ] = False,
) -> None:
    """Opens the documentation in a browser, without a network."""
    if gallery:
        pictures.draw()
        return
    group = context.find_root().command
    assert isinstance(group, TyperGroup)
    if build is not None:
        site.build(build, group)
    if build is not None or where:
        print((build or site.find(group)) / "index.html")
    else:
        site.serve(site.find(group))

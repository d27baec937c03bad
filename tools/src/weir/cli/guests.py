# SPDX-License-Identifier: BSD-3-Clause
"""weir guests: the kernel of `stack: linux`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from weir.cli.usage import examples

app = typer.Typer(help="Linux kernels in virtual time (stack: linux).", no_args_is_help=True)


@app.command("build", epilog=examples("guests build", "guests build --json"))
def build_(
    as_json: Annotated[bool, typer.Option("--json", help="What was built, as JSON.")] = False,
) -> None:
    """Builds Debian's kernel for guests, once: a few minutes; 700 MB of disk must be free."""
    from weir.guests import build

    kernel, fresh = build.build(build.Steps())
    if as_json:
        print(json.dumps({**asdict(kernel), "built": fresh}, indent=1))
        return
    what = "is built" if fresh else "was there already"
    print(f"Linux {kernel.release} ({kernel.package} {kernel.version}) {what}: {build.cache()}")

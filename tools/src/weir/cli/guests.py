# SPDX-License-Identifier: BSD-3-Clause
"""Linux kernels and QUIC stacks in virtual time (stack:)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from weir.cli.arguments import Json
from weir.cli.usage import commands
from weir.guests import build, kernels, recipe, stacks

app = commands(__doc__)
Source = Annotated[
    str | None, Option(help="A kernel's folder, tarball or Debian package (linux-source-6.1).")
]
Patches = Annotated[list[Path] | None, Option("--patch", help="Applied in order, as -p1.")]
Modules = Annotated[
    list[Path] | None, Option("--module", help="A folder with a module's source; guests load it.")
]
Fragment = Annotated[Path | None, Option("--config", help="Options of Kconfig, on top of ours.")]
Name = Annotated[str | None, Option(help="What a config calls it: stack: {linux: {kernel: NAME}}.")]
Ticks = Annotated[int, Option(help="Ticks per second: 250, as Debian's, or 1000.")]


@app.add(
    "build",
    "guests build",
    "guests build --name mine --patch mine.patch",
    "guests build --name fast --source linux-6.12.tar.xz --module tcp_fast --hz 1000",
)
def build_(
    source: Source = None,
    patch: Patches = None,
    module: Modules = None,
    config: Fragment = None,
    name: Name = None,
    hz: Ticks = 250,
    as_json: Json = False,
) -> None:
    """Builds Debian's kernel for guests, or your own under a name; 2.5 GB of disk at most."""
    of = recipe.Recipe(
        source, tuple(patch or ()), tuple(module or ()), config, name or kernels.CURRENT, hz
    )
    kernel, fresh = build.build(build.Steps(of), of)
    if as_json:
        print(json.dumps({**asdict(kernel), "built": fresh}, indent=1))
        return
    what = "is built" if fresh else "was there already"
    called = "" if name is None else f" {name}:"
    print(
        f"Linux{called} {kernel.release} ({kernel.package} {kernel.version}) {what}: "
        f"{kernels.cache()}"
    )


@app.add("add", "guests add ngtcp2", "guests add quinn@0.11.12")
def add(
    stack: Annotated[str, Argument(metavar="NAME[@VERSION]", help="As weir list quic has it.")],
) -> None:
    """Builds a QUIC stack for guests."""
    name, version, fresh = stacks.add(stack)
    print(f"{name} {version} {'is built' if fresh else 'was there already'}")


@app.add("list", "guests list", "guests list --json")
def list_(as_json: Json = False) -> None:
    """Lists kernels with their modules and congestion controls; and QUIC stacks."""
    found = kernels.named()
    if as_json:
        print(json.dumps({name: asdict(kernel) for name, kernel in found.items()}, indent=1))
        return
    for name, kernel in found.items():
        print(f"{name}: Linux {kernel.release} ({kernel.package} {kernel.version})")
        for what in ("patches", "modules", "controls"):
            if of := getattr(kernel, what):
                print(f"  {what}: {of}")
    for name, version in stacks.built().items():
        print(f"{name}: QUIC, {version}")
    if not found:
        print("no kernel is built; run: tools/weir guests build")


@app.add("remove", "guests remove mine")
def remove_(name: Annotated[str, Argument(help="As guests list has it.")]) -> None:
    """Removes a kernel, or a QUIC stack."""
    if not stacks.remove(name):
        kernels.remove(name)

# SPDX-License-Identifier: BSD-3-Clause
"""Changes a running program: a live parameter of the switch, the start of measuring, the end.

The programs poll on their CPUs, and what else runs there gets a tenth: so this imports little.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import NoReturn

from weir.base.errors import UserError, guarded
from weir.live import client

SWITCH = "weir-switch"
WORDS = ("measure", "stop")
EXAMPLES = ("ctl", "ctl --json", "ctl forward.link.rate=5Gbit", "ctl stop")


class Parser(argparse.ArgumentParser):
    """A parser for which bad usage is a UserError."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.removeprefix('argument ')}; see {self.prog} --help")


def parser() -> Parser:
    """Returns the parser of `weir ctl`."""
    made = Parser(prog="weir ctl", description="Changes a program that runs.")
    made.add_argument(
        "orders",
        nargs="*",
        metavar="KEY=VALUE",
        help="a change such as forward.link.rate=5Gbit; none: show what may be changed",
    )
    made.add_argument("--prefix", metavar="NAME", help="the program with this prefix")
    made.add_argument("--json", action="store_true", help="what may be changed, as JSON")
    made.epilog = (
        "`measure` in place of changes: the switch's figures start now. `stop`: ends the run, all"
        " of its programs, as its duration would; with --prefix, one program. Examples: "
        + "; ".join(f"weir {each}" for each in EXAMPLES)
    )
    return made


def main() -> int:
    return guarded(lambda: execute(sys.argv[2:]))


def check(orders: Sequence[str]) -> None:
    """Raises UserError for a word that is no order, before any order is carried out."""
    for order in orders:
        if order not in WORDS and "=" not in order:
            raise UserError(
                f"'{order}' is none of measure, stop and a change such as forward.link.rate=5Gbit"
            )
        if order in WORDS and len(orders) > 1:
            raise UserError(f"'{order}' stands alone")


def execute(argv: Sequence[str]) -> int:
    """Carries orders out, one after the other; without any, shows what may be changed."""
    asked = parser().parse_intermixed_args(list(argv))
    check(asked.orders)
    if asked.orders == ["stop"]:
        stop(asked.prefix)
        return 0
    with client.the_one(asked.prefix, SWITCH) as program:
        try:
            if not asked.orders:
                show(program, asked.json)
            for order in asked.orders:
                if order in WORDS:
                    program.want(f"/weir/{order}")
                else:
                    change(program, order)
        except client.Ended:
            raise UserError(f"{program.name} has ended", 1) from None
        except TimeoutError:
            raise UserError(f"{program.name} does not answer", 1) from None
    return 0


def stop(prefix: str | None) -> None:
    """Ends the programs of the run that goes on, senders first; or the one with a prefix."""
    programs = client.select([prefix] if prefix is not None else [])
    try:
        if len({program.run for program in programs}) > 1:
            listed = client.listing(programs, runs=True)
            example = f"weir ctl stop --prefix {programs[0].prefix}"
            raise UserError(f"several runs go on: {listed}; say which program ends: {example}")
        for program in sorted(programs, key=lambda program: program.name == SWITCH):
            try:
                program.want("/weir/stop")
            except client.Ended:
                continue  # by itself
            except TimeoutError:
                raise UserError(f"{program.name} does not answer", 1) from None
    finally:
        for program in programs:
            program.close()


def parameters(program: client.Program) -> dict[str, str]:
    """Returns the present value of each live parameter."""
    texts = list(program.want("/weir/params"))
    while len(texts) < program.info.get("params", 0) and (
        more := program.want(f"/weir/params,{len(texts)}")
    ):
        texts += more
    return dict(text.split("=", 1) for text in texts)


def show(program: client.Program, as_json: bool = False) -> None:
    """Prints the live parameters and their values, which may be changed."""
    if as_json:
        print(json.dumps(parameters(program), indent=1))
        return
    rows = {"parameter": "value", **parameters(program)}
    width = max(map(len, rows))
    for key, value in rows.items():
        print(f"{key:{width}}  {value}")


def change(program: client.Program, order: str) -> None:
    """Sets one parameter, and prints both values; `paths.` may stand before it, as with -o."""
    key, value = order.removeprefix("paths.").split("=", 1)
    before = parameters(program)
    program.want(f"/weir/set,{key}={value}", status=2)
    after = parameters(program)
    print(f"{key}: {before.get(key)} -> {after.get(key)}")

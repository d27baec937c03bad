# SPDX-License-Identifier: BSD-3-Clause
"""Changes a running program: a live parameter of the switch, the start of measuring, the end."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from weir import live, summary
from weir.errors import UserError

SWITCH = "weir-switch"
WORDS = ("measure", "stop")


def check(orders: Sequence[str]) -> None:
    """Refuses what is no order, before any is carried out."""
    for order in orders:
        if order not in WORDS and "=" not in order:
            raise UserError(
                f"'{order}' is none of measure, stop and a change such as forward.link.rate=5Gbit"
            )
        if order in WORDS and len(orders) > 1:
            raise UserError(f"'{order}' stands alone")


def execute(orders: Sequence[str], prefix: str | None, out: Console) -> None:
    """Carries orders out, one after the other; without any, shows what may be changed."""
    check(orders)
    with live.the_one(prefix, None if "stop" in orders else SWITCH) as program:
        try:
            if not orders:
                show(program, out)
            for order in orders:
                if order in WORDS:
                    program.want(f"/weir/{order}")
                else:
                    change(program, order, out)
        except live.Ended:
            raise UserError(f"{program.name} has ended", 1) from None
        except TimeoutError:
            raise UserError(f"{program.name} does not answer", 1) from None


def parameters(program: live.Program) -> dict[str, str]:
    """Each live parameter and its present value."""
    texts = list(program.want("/weir/params"))
    while len(texts) < program.info.get("params", 0) and (
        more := program.want(f"/weir/params,{len(texts)}")
    ):
        texts += more
    return dict(text.split("=", 1) for text in texts)


def show(program: live.Program, out: Console) -> None:
    """What may be changed, as it is written."""
    rows = [[key, value] for key, value in parameters(program).items()]
    out.print(summary.table(("parameter", "value"), rows, left=1))


def change(program: live.Program, order: str, out: Console) -> None:
    """Sets one parameter, and says what it was; `paths.` may stand before it, as with -o."""
    key, value = order.removeprefix("paths.").split("=", 1)
    before = parameters(program)
    program.want(f"/weir/set,{key}={value}", status=2)
    after = parameters(program)
    out.print(f"{key}: {before.get(key)} -> {after.get(key)}", soft_wrap=True)

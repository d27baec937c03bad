# SPDX-License-Identifier: BSD-3-Clause
"""The weir command, with each command in a module that is loaded when it is called."""

from __future__ import annotations

import importlib
import itertools
import logging
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
import typer.core
from typer import Option

from weir.base import typed
from weir.base.errors import UserError, drop_output, guarded
from weir.base.version import VERSION
from weir.cli import usage

if TYPE_CHECKING:
    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter
    from typer._click.shell_completion import CompletionItem


class Commands(typer.core.TyperGroup):
    """The commands of usage.GROUPS: all their imports together would take two seconds."""

    def list_commands(self, ctx: object) -> list[str]:
        """Returns the names in the order of --help."""
        return list(usage.MODULES)

    def get_command(self, ctx: object, cmd_name: str) -> Command | None:
        """Imports the command's module; None if there is no such command."""
        if cmd_name not in usage.MODULES:
            return None
        module = importlib.import_module(f"weir.cli.{usage.MODULES[cmd_name]}")
        group = typer.main.get_group(module.app)
        return group.commands.get(cmd_name, group)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        """Returns the command that was typed; for another word, says which was probably meant."""
        if args[0] not in usage.MODULES and not args[0].startswith("-"):
            raise UserError(usage.unknown(args[0]))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Offers names and options without the imports of any command."""
        listed = [typer.core.TyperCommand(name, short_help=text) for name, text in summaries()]
        group = typer.core.TyperGroup(name=self.name, commands=listed, params=self.params)
        return group.shell_complete(ctx, incomplete)

    def format_commands(self, ctx: object, formatter: HelpFormatter) -> None:
        """Writes the list of --help, in groups."""
        texts = dict(summaries())
        wide = max(map(len, texts))
        for title, names in usage.GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{wide}}", texts[name]) for name in names])

    def invoke(self, ctx: Context) -> object:
        """Runs the command. Ctrl-C ends it with a sentence, a closed pipe without one."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            print("\nweir: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


def summaries() -> list[tuple[str, str]]:
    return [(name, usage.summary(name)) for name in usage.MODULES]


app = typer.Typer(
    cls=Commands,
    help="Runs Weir's experiments and turns them into numbers and figures.",
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=usage.exit_statuses()
    + "\n\n"
    + usage.examples("run configs/quickstart.yaml", "COMMAND --help", "list codel"),
)


def version(value: bool) -> None:
    if value:
        print(f"weir {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, Option("--version", callback=version, is_eager=True, help="Shows the version.")
    ] = False,
) -> None:
    """Takes what stands before the command."""


def main() -> int:
    """Runs the command; bad input is one sentence on standard error and the right exit status."""
    # Where the user's home cannot be written, matplotlib says so in three lines, and draws.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    return guarded(command)


def command() -> int:
    """Runs the command that sys.argv names."""
    asked = usage.COMPLETE in os.environ  # by a shell, which knows one name
    if asked:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    if "--out=" in sys.argv or ("--out", "") in itertools.pairwise(sys.argv):
        raise UserError("--out: the name is empty")  # a Path would be the working directory
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    try:
        status = app(prog_name="weir" if asked else typed.program(), standalone_mode=False)
    except typer.Abort:
        print("\nweir: interrupted", file=sys.stderr)
        return 130
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        # Usage errors of typer's parser, which has no public name for them.
        if not hasattr(error, "format_message"):
            raise
        said = usage.sentence(error)
        print(said if said.startswith("Usage:") else f"weir: {said}", file=sys.stderr)
        return int(getattr(error, "exit_code", 2))
    return status if isinstance(status, int) else 0

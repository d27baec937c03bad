# SPDX-License-Identifier: BSD-3-Clause
"""The weir command: wiring only. What it does is in the modules it calls."""

from __future__ import annotations

import enum
import itertools
import json
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from weir.base import typed
from weir.base.errors import UserError, drop_output, guarded
from weir.base.version import VERSION
from weir.cli import bench as bench_commands
from weir.cli import complete, usage
from weir.cli import docs as docs_command
from weir.cli import figures as figure_commands
from weir.cli import folders as folder_commands
from weir.cli import guests as guest_commands
from weir.cli import many as many_commands
from weir.cli import pcap as pcap_commands
from weir.cli import plugin as plugin_commands
from weir.cli import results as result_commands
from weir.cli import runs as run_commands
from weir.cli import setup as setup_commands
from weir.cli import shell as shell_command
from weir.cli import sweeps as sweep_commands
from weir.cli import trace as trace_commands
from weir.cli.usage import examples


class Commands(typer.core.TyperGroup):
    """All commands: what Ctrl-C ends says so, and who reads no more has seen enough."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was typed; of another word, what was probably meant."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise UserError(usage.unknown(args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the list of --help, in groups."""
        wide = max(map(len, self.commands))
        for title, names in usage.GROUPS.items():
            rows = [
                (f"{name:{wide}}", self.commands[name].get_short_help_str(usage.SUMMARY))
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
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
    + examples(
        "run configs/quickstart.yaml",
        "COMMAND --help",
        "list codel",
    ),
)

app.add_typer(run_commands.app)
app.add_typer(many_commands.app)
app.add_typer(result_commands.app)
app.add_typer(bench_commands.app, name="bench")
app.add_typer(pcap_commands.app, name="pcap")
app.add_typer(guest_commands.app, name="guests")
app.add_typer(setup_commands.app, name="setup")
app.add_typer(plugin_commands.new_app, name="new")
app.add_typer(plugin_commands.check_app, name="check")
app.add_typer(trace_commands.app, name="trace")


app.command(
    "shell",
    epilog=examples(
        "shell --rate 50Mbit --delay 20ms -- curl -O https://www.debian.org/",
        "shell --delay 20ms --up up.trace --down down.trace",
        "shell configs/quickstart.yaml --server 'iperf3 -s' -- sh -c 'iperf3 -c $WEIR_SERVER'",
    ),
)(shell_command.shell_)


# These two parse their own command line: weir.__main__ starts them without this module, whose
# imports take longer than all that they do. This is for the shell's completion; a test compares.
@app.command("top")
def top_(
    prefix: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None,
    interval: Annotated[float, typer.Option(metavar="S")] = 1.0,
    once: Annotated[bool, typer.Option("--once")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    sweep: Annotated[Path | None, typer.Option("--sweep", metavar="DIR")] = None,
    serve: Annotated[str | None, typer.Option("--serve", metavar="ADDR:PORT")] = None,
    token: Annotated[str | None, typer.Option("--token")] = None,
) -> None:
    """Watches live programs: ports, paths, groups of flows, lcores."""
    from weir.live import top

    raise typer.Exit(top.main())


@app.command("ctl")
def ctl_(
    orders: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE...|measure|stop]", autocompletion=complete.orders),
    ] = None,
    prefix: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Changes a running switch: ctl forward.link.rate=5Gbit.

    Alone, it shows what may be changed.
    """
    from weir.live import ctl

    raise typer.Exit(ctl.main())


folder_commands.register(app)
sweep_commands.register(app)
app.command(
    "plot",
    epilog=examples(
        "plot runs/mine",
        "plot runs/mine --figure rtt --out rtt.pdf",
        "plot runs/a runs/b --figure rtt --width page --out both.svg",
        "plot runs/buffer --x buffer --y goodput --by cc --facet flows --logx --width page",
        "plot runs/buffer --x buffer --heat flows --y delay --where cc=copa --out heat.png",
    ),
)(figure_commands.plot_)
app.command(
    "compare",
    epilog=examples("compare runs/a runs/b", "compare runs/a runs/b runs/c --json"),
)(figure_commands.compare_)


@app.command(
    "list",
    epilog=examples(
        "list", "list cc", "list codel", "list mine.so", "list mine.py:MyControl", "list flows"
    ),
)
def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=complete.names,
            metavar="[KIND|NAME]",
            help="aqm, stage, path, cc, source, stack, base_rtt, flows, run, live, stream, number,"
            " or one of what they list; or a control of yours: mine.so, mine.py:MyControl.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The tables as JSON.")] = False,
) -> None:
    """Lists controls, disciplines, stages, keys and telemetry.

    NAME alone has a page.
    """
    from weir.base import tables
    from weir.cli import pager
    from weir.runner import session

    done = tables.ask(*([name] if name else []), *(["--json"] if as_json else []))
    if done.returncode != 0:
        print(session.from_weir(done.stderr), end="", file=sys.stderr)
        raise typer.Exit(done.returncode)
    pager.show(done.stdout)


app.command("docs", epilog=examples("docs", "docs --where", "docs --build site"))(
    docs_command.docs_
)


class SchemaOf(enum.StrEnum):
    """What `schema` describes."""

    CONFIG = "config"
    SUMMARY = "summary"


@app.command(
    "schema",
    epilog=examples(
        "schema > schema.json", "schema --plugin mine.so", "schema --plugin mine.py:MyControl"
    ),
)
def schema_(
    what: Annotated[SchemaOf, typer.Argument(help="A config, or a run's summary.json.")] = (
        SchemaOf.CONFIG
    ),
    plugin: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FILE:CLASS", help="A congestion control of yours: its parameters too."
        ),
    ] = None,
) -> None:
    """Prints the JSON Schema of a config, or of summary.json.

    It is for editors and other programs.
    """
    from weir.analysis import model
    from weir.base import schema

    of = model.schema() if what is SchemaOf.SUMMARY else schema.of_config(plugin)
    print(schema.text(of), end="")


@app.command("completion", epilog=examples("completion bash", "completion zsh > _weir"))
def completion_(
    shell: Annotated[complete.Shell, typer.Argument(metavar="bash|zsh|fish")],
) -> None:
    """Prints what a shell needs to complete commands.

    In bash: source <(weir completion bash).
    """
    print(complete.script(shell))


@app.command("doctor", epilog=examples("doctor", "doctor --json"))
def doctor_(
    as_json: Annotated[bool, typer.Option("--json", help="The checks as JSON.")] = False,
) -> None:
    """Checks this machine, and says what to fix and how."""
    from weir.base import terminal
    from weir.cli import doctor

    found = doctor.checks()
    if as_json:
        print(json.dumps([asdict(check) for check in found], indent=1))
    else:
        doctor.show(found, terminal.console())
    raise typer.Exit(1 if doctor.bad(found) else 0)


def version(value: bool) -> None:
    """--version."""
    if value:
        print(f"weir {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Shows the version.")
    ] = False,
) -> None:
    """Takes what stands before the command."""


def main() -> int:
    """Every bad input is one sentence on standard error and the right exit status."""
    # Where the user's home cannot be written, matplotlib says so in three lines, and draws.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    return guarded(command)


def command() -> int:
    """Runs the command that sys.argv names."""
    if complete.VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    if "--out=" in sys.argv or ("--out", "") in itertools.pairwise(sys.argv):
        raise UserError("--out: the name is empty")  # a Path would be the working directory
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    asked = complete.VARIABLE in os.environ  # by a shell, which knows one name
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

# SPDX-License-Identifier: BSD-3-Clause
"""Runs of an experiment on this machine, in virtual time or live."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from weir.analysis import folder
from weir.base import configs
from weir.base.errors import UserError
from weir.runner import receiver
from weir.runner.options import Options, refuse_sweep
from weir.runner.session import Listener, Session, catching, from_weir, run_one

TOGETHER_S = 5.0  # live programs that count the same duration end within this


def read_only(options: Options, live: bool) -> int:
    """Runs --check or --print-config; returns the first bad exit status.

    Live, each program checks its part; the first prints the config.
    """
    refuse_sweep(options.config)
    argvs = live_argvs(options) if live else {"sim": options.argv("sim")}
    if options.only != "--check":
        argvs = dict([next(pair for pair in argvs.items() if pair[0] != receiver.NAME)])
    for name, argv in argvs.items():
        done = subprocess.run(argv, stderr=subprocess.PIPE, text=True)
        for line in done.stderr.splitlines():
            print(
                receiver.said(line) if name == receiver.NAME else from_weir(line), file=sys.stderr
            )
        if done.returncode != 0:
            return done.returncode
    return 0


def run_sim(options: Options, listener: Listener) -> int:
    """Runs an experiment in virtual time; returns weir-sim's exit status."""
    return run_one(listener, "sim", options.argv("sim"))


def live_sections(options: Options) -> dict[str, object]:
    """Returns the sections below `live` in the order in which their programs start."""
    if str(options.config) == "-":
        raise UserError("--live reads the config twice: give a file, not standard input")
    try:
        live = configs.mapping(options.config).get("live")
    except UserError:
        return {"switch": {}, "sender": {}}  # the programs say what is wrong, with its place
    live = live if isinstance(live, dict) else {}
    found = {name: live[name] for name in ("switch", receiver.NAME, "sender") if name in live}
    if not {*found} - {receiver.NAME}:
        raise UserError(
            f"{options.config}: --live needs live.switch or live.sender; this config has neither"
        )
    return found


def live_argvs(options: Options) -> dict[str, list[str]]:
    """Returns the command lines of the programs that a config asks for, one for each section."""
    sections = live_sections(options)
    found = {}
    for name, section in sections.items():
        if name == receiver.NAME and isinstance(section, dict):
            found[name] = receiver.options(options, section).argv("sender")
        elif name != receiver.NAME:
            found[name] = options.argv(name, name == "switch" or "switch" not in sections)
    return found


def run_live(options: Options, listener: Listener) -> int:
    """Runs an experiment on real ports; returns the exit status of the first to fail, or 0.

    The switch starts first, then the receiver, then the sender; their summaries are merged. They
    have priority over all else on their CPUs. Switch and sender both end after the run's duration;
    one that is still there TOGETHER_S later is stopped, and then the receiver.
    """
    session = Session(listener)
    argvs = live_argvs(options)
    with catching(session):
        for name, argv in argvs.items():
            child = session.start(name, argv)
            session.wait_ready(child)
            if child.eof or session.interrupts:
                break
        first = session.wait_any()
        if session.status(first) == 0 and not session.interrupts:
            session.wait_all(TOGETHER_S)
        for child in session.children:
            session.stop(child)
        statuses = [session.status(child) for child in session.children]
    killed = session.killed()
    for sentence in killed.values():
        session.pass_on(sentence, None)
    merge_live(options.out, killed, session)
    # The first to fail is the one to report; what it brought down came after.
    ordered = [session.status(first), *statuses]
    return next((status for status in ordered if status != 0), 0)


def merge_live(out: Path, killed: Mapping[str, str], session: Session) -> None:
    """Writes summary.json from what the live programs wrote."""
    merged = folder.merge_live(out, killed)
    if not merged:
        return
    try:
        folder.write_json(out / folder.SUMMARIES[0], merged)
    except UserError as error:  # the programs' own are there
        session.pass_on(f"weir: {error}", None)

# SPDX-License-Identifier: BSD-3-Clause
"""Asks hosts through Ansible: playbooks are run by ansible-runner, answers are agent.py's."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TextIO, cast

from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.hosts import agent, inventory
from weir.hosts.check import Answer

PLAYBOOKS = Path(__file__).parent
CONNECT_S = 10
# A connection is used for several questions; one that is silent for 10 s is taken for dead.
SSH = (
    f"-o ControlMaster=auto -o ControlPersist=30s -o ConnectTimeout={CONNECT_S}"
    " -o ServerAliveInterval=5 -o ServerAliveCountMax=2 -o BatchMode=yes"
)


@dataclass
class Reply:
    """A host's answer, or why there is none."""

    answer: Answer | None = None
    error: str = ""
    unreachable: bool = False


class Ansible:
    """A private folder for Ansible's files; a context manager, which closes all connections."""

    def __init__(self, source: Path, hosts: int) -> None:
        try:
            import ansible_runner
        except ImportError:
            inventory.program("ansible-runner")
            raise
        self.runner = ansible_runner
        self.source = source.absolute()
        self.hosts = hosts
        self.cancelled: Callable[[], bool] = lambda: False
        self.folder = Path(tempfile.mkdtemp(prefix="weir-"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path in self.folder.glob("cp/*"):
            argv = ["ssh", "-o", f"ControlPath={path}", "-O", "exit", "weir"]
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(argv, capture_output=True, timeout=5)
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self) -> dict[str, str]:
        """Returns the environment of ansible-playbook."""
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        return {
            "PATH": path,
            "ANSIBLE_FORKS": str(max(self.hosts, 1)),
            "ANSIBLE_TIMEOUT": str(CONNECT_S),
            "ANSIBLE_SSH_ARGS": SSH,
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.folder / "cp"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "tmp"),
            "ANSIBLE_PYTHON_INTERPRETER": "auto_silent",
            "ANSIBLE_RETRY_FILES_ENABLED": "0",
        }

    def ask(
        self, playbook: str, hosts: Iterable[str], values: Mapping[str, object]
    ) -> dict[str, Reply]:
        """Runs a playbook on these hosts at once, and returns the reply of each."""
        replies = {name: Reply(error=UNASKED) for name in hosts}

        def event(seen: Json) -> bool:
            data = seen.get("event_data", {})
            name = data.get("host")
            if name in replies and seen["event"] in HEARD:
                hear(replies[name], seen["event"], data.get("res") or {})
            return False

        done = self.runner.run(
            private_data_dir=str(self.folder),
            playbook=str(PLAYBOOKS / playbook),
            inventory=str(self.source),
            limit=",".join(replies),
            extravars=dict(values),
            envvars=self.environment(),
            event_handler=event,
            cancel_callback=lambda: self.cancelled(),
            quiet=True,
            rotate_artifacts=1,
        )
        if done.status == "failed" and all(each.error == UNASKED for each in replies.values()):
            raise UserError(f"ansible-playbook: {first_error(done.stdout)}", 1)
        return replies


UNASKED = "it was not asked"
HEARD = ("runner_on_ok", "runner_on_failed", "runner_on_unreachable")


def hear(reply: Reply, event: str, result: Json) -> None:
    """Takes a task's result: answers are put together, an error is the last word."""
    if event == "runner_on_unreachable":
        reply.unreachable, reply.error = True, one_line(result.get("msg"))
        return
    if (answer := decode(str(result.get("stdout", "")))) is not None:
        reply.answer, reply.error = (reply.answer or Answer()) | answer, ""
    elif event == "runner_on_failed":
        said = (result.get(key) for key in ("stderr", "stdout", "msg", "module_stderr"))
        reply.error = one_line(next((text for text in said if text), "it failed"))
    elif reply.error == UNASKED and "stdout" in result:
        reply.error = "it did not answer"


def decode(text: str) -> Answer | None:
    """Finds the agent's answer in what a host printed."""
    found = re.search(rf"^{agent.MARK}([A-Za-z0-9+/=]+)", text, re.MULTILINE)
    try:
        answer = json.loads(base64.b64decode(found[1], validate=True)) if found else None
    except (binascii.Error, ValueError):
        return None
    return cast(Answer, answer) if isinstance(answer, dict) else None


def one_line(text: object) -> str:
    """Returns the last line that says something, without what Ansible adds."""
    lines = [line.strip() for line in str(text).replace("\r", "\n").splitlines()]
    lines = [x for x in lines if x and not x.startswith(("Shared connection", "Warning:", "debug"))]
    said = lines[-1] if lines else ""
    for before in ("Task failed: ", "Failed to connect to the host via ssh:"):
        said = said.removeprefix(before).strip()
    return said or "the connection was lost"


def first_error(output: TextIO) -> str:
    """Returns what ansible-playbook said when it did not even begin."""
    with output as stream:
        lines = [line.strip() for line in stream if line.strip()]
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    return next((line for line in plain if line.startswith(("ERROR", "[ERROR"))), "it failed")

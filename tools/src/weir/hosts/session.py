# SPDX-License-Identifier: BSD-3-Clause
"""A run over several hosts from start to end; however it ends, nothing runs on."""

from __future__ import annotations

import math
import os
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from weir.base import foreign
from weir.base.errors import UserError
from weir.hosts import deployment, inventory, merge
from weir.hosts.ansible import UNASKED, Ansible, Reply
from weir.hosts.check import Answer, Discipline
from weir.hosts.inventory import Host
from weir.runner.options import Options
from weir.runner.session import Listener, Session, catching, progress_object

WATCH_S = 1.0  # between two rounds of questions
GRACE_S = 15.0  # for senders when the switch has ended
AHEAD_S = 10  # when several senders begin, so that all are ready
FREE_BYTES = 256 << 10  # a host with less is full

Replies = Mapping[str, Reply]


class Failure(UserError):
    """The run cannot go on: the host, and why."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(f"{host}: {why}", 1)


class Hosts(Session):
    """The session of runner/session.py, with hosts in place of children."""

    def __init__(self, listener: Listener, made: deployment.Deployment, by: Ansible) -> None:
        super().__init__(listener)
        self.deployment, self.by = made, by
        self.since: dict[str, int] = {}  # bytes of what each host's program said
        self.ended: dict[str, int] = {}
        self.lost: dict[str, str] = {}  # hosts that do not answer any more, and why
        self.last: dict[str, str] = {}  # what each program said last
        self.failed = False  # one sentence was said: what follows from it is not
        by.cancelled = lambda: self.interrupts > 2

    def role(self, *roles: str) -> list[str]:
        """Returns the hosts of these roles that are not lost."""
        hosts = self.deployment.hosts.values()
        return [host.name for host in hosts if host.role in roles and host.name not in self.lost]

    def ask(self, playbook: str, hosts: Iterable[str], **values: object) -> Replies:
        """Runs a playbook on these hosts, and returns their agents' answers."""
        names = list(hosts)
        if not names:
            return {}
        places = {name: one["place"] for name, one in self.deployment.requests.items()}
        pythons = {name: host.python for name, host in self.deployment.hosts.items()}
        known = {
            "weir_places": places,
            "weir_python": pythons,
            "weir_agent": {n: f"{pythons[n]} {place}/agent.pyz" for n, place in places.items()},
            "weir_since": self.since,
            "weir_order": [self.role(role) for role in inventory.ROLES],
            "weir_ahead_s": AHEAD_S if len(self.role("sender")) > 1 else 0,
        }
        return self.by.ask(playbook, names, known | values)

    def prepare(self, archive: Path) -> dict[str, Answer]:
        """Copies the archive, and returns each host's answer.

        Failure: the first that cannot take part.
        """
        cables = any(host.cables for host in self.deployment.hosts.values())
        values = {"weir_archive": str(archive), "weir_cables": cables}
        replies = self.ask("begin.yml", self.deployment.hosts, **values)
        refuse(replies)
        found = {name: reply.answer or Answer() for name, reply in replies.items()}
        same_version({name: one["version"] for name, one in found.items() if one["version"]})
        for name, why in wrong_cables(self.deployment.hosts, found) if cables else ():
            raise Failure(name, why)
        return found

    def start_all(self) -> None:
        """Starts receivers, the switch, then senders: each role when the one before is ready.

        Several senders begin together, as far as their clocks agree: the switch's run would be over
        before that of one that began later, and what that one still sends would be lost.
        """
        replies = self.ask("start.yml", self.role(*inventory.ROLES))
        for name, reply in replies.items():
            if reply.error != UNASKED:
                self.note(name, reply)
        for name, reply in replies.items():
            if reply.answer is not None and not reply.answer["ready"]:
                raise Failure(name, self.last.get(name, "it did not become ready"))
        refuse(replies)

    def watch(self) -> None:
        """Waits until all senders have ended [the switch]. Failure: another host has."""
        ending = self.role("sender") or self.role("switch")
        last_s = math.inf
        while not self.interrupts and time.monotonic() < last_s:
            for name, reply in self.ask("attend.yml", self.role(*inventory.ROLES)).items():
                self.note(name, reply)
                if name in self.lost:
                    raise Failure(name, self.lost[name])
                if self.early(name, ending):
                    why = f"its {self.deployment.hosts[name].role} ended early ({self.ended[name]})"
                    raise Failure(name, self.last.get(name, why))
            if all(name in self.ended for name in ending):
                return
            if last_s == math.inf and any(name in self.ended for name in self.role("switch")):
                last_s = time.monotonic() + GRACE_S
            time.sleep(WATCH_S)

    def early(self, name: str, ending: Iterable[str]) -> bool:
        """Returns whether a host has ended before its time, or failed."""
        if name not in self.ended:
            return False
        is_receiver = self.deployment.hosts[name].role == "receiver"
        ours = not self.deployment.hosts[name].kernel
        return self.ended[name] != 0 or (is_receiver and ours and name not in ending)

    def note(self, name: str, reply: Reply) -> None:
        """Notes what a host said, and the state of its program."""
        if reply.answer is None:
            self.lost[name] = f"it does not answer any more: {reply.error}"
            return
        self.since[name] = reply.answer.get("since", 0)
        for line in reply.answer.get("lines", ()):
            now = progress_object(line)
            if now is None and line.strip():
                self.hear_line(name, line)
            elif now is not None and now.ready is None and name in self.role("sender")[:1]:
                self.pass_on(line, now)
        if (ended := reply.answer.get("ended")) is not None:
            self.ended[name] = ended
        if reply.answer.get("gone"):
            self.lost[name] = "what was to run there is gone"
        elif reply.answer.get("free_bytes", FREE_BYTES) < FREE_BYTES:
            raise Failure(name, f"the disk is full: {self.deployment.requests[name]['place']}")

    def hear_line(self, name: str, line: str) -> None:
        """Passes a warning on, and keeps what may be the reason for the program's end."""
        if ": warning: " in line or ": note: " in line:
            if not self.failed:
                self.pass_on(f"{name}: {line}", None)
        else:
            self.last[name] = line

    def fail(self, sentence: str) -> None:
        """Says the first failure, and no other."""
        if not self.failed:
            self.pass_on(f"weir: {sentence}", None)
        self.failed = True

    def finish_all(self, into: Path) -> None:
        """Ends what runs, senders first, fetches what they wrote, and removes it there."""
        names = self.role(*inventory.ROLES)
        for name, reply in self.ask("end.yml", names, weir_destination=str(self.by.folder)).items():
            packed = self.by.folder / f"{name}.tar.gz"
            if packed.exists():
                unpack(packed, into / name)
                packed.unlink()
            else:
                stays = f"what it recorded stays in {self.deployment.requests[name]['place']}"
                why = (reply.answer or {}).get("problems", [reply.error])[0]
                self.fail(f"{name}: {why}; {stays}")


def refuse(replies: Replies) -> None:
    """Raises Failure for the first host that has a problem, or did not answer."""
    for name, reply in replies.items():
        for problem in (reply.answer or {}).get("problems", ()):
            raise Failure(name, problem)
    ordered = sorted(replies.items(), key=lambda each: each[1].error == UNASKED)
    for name, reply in ordered:
        if reply.error:
            raise Failure(name, reply.error)


def unpack(packed: Path, into: Path) -> None:
    """Unpacks the files of a host: its run folder, what it said, its capture."""
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(packed) as tar:
        for member in tar:
            if member.isfile():
                member.name = member.name.removeprefix("run/")
                foreign.extract(tar, member, into)


def wrong_cables(
    hosts: Mapping[str, Host], answers: Mapping[str, Answer]
) -> Iterator[tuple[str, str]]:
    """Yields cables that are not as they should be: the host, and what its port hears."""
    silent = {(name, port) for name in hosts for port in answers[name]["silent"]}
    for name, host in hosts.items():
        heard = [tuple(each) for each in answers[name]["heard"]]
        for port, their, end in host.joined():
            if (port, their, end) in heard or {(name, port), (their, end)} & silent:
                continue
            others = [f"{h}/{p}" for mine, h, p in heard if mine == port]
            what = f"it hears {' and '.join(others)}" if others else "it hears nothing"
            yield name, f"port {port} should be connected to {their}/{end}: {what}"


def same_version(versions: Mapping[str, str]) -> None:
    """Raises Failure if two hosts have programs of two versions."""
    said = {name: text.partition(" ")[2] for name, text in versions.items()}
    first = next(iter(said), None)
    for name, text in said.items():
        if first is not None and text != said[first]:
            raise Failure(name, f"its Weir is {text}, that of {first} is {said[first]}")


def run(options: Options, listener: Listener, source: Path) -> int:
    """Runs `weir run --live --hosts`, and returns the exit status."""
    hosts = inventory.read(source)
    if str(options.config) == "-":
        raise UserError("--hosts needs a file, not standard input")
    name = f"{int(time.time()):x}-{os.getpid():x}"
    made = deployment.make(options, hosts, name)
    merge.make_folder(options)
    with Ansible(source, len(hosts)) as by:
        session = Hosts(listener, made, by)
        with catching(session):
            return guide(options, session, by)


def guide(options: Options, session: Hosts, by: Ansible) -> int:
    """Guides the run; what failed is the first of its verdicts."""
    failure, clocks = "", dict[str, Discipline]()
    began = False
    try:
        found = session.prepare(
            deployment.archive(by.folder / "agent.pyz", session.deployment, options.config)
        )
        clocks = {name: one["clock"] for name, one in found.items()}
        began = not session.interrupts
        if began:
            session.start_all()
            session.watch()
    except UserError as error:
        failure = str(error)
        session.fail(failure)
    finally:
        if began:
            session.finish_all(options.out / "hosts")
        else:
            session.ask("clean.yml", session.role(*inventory.ROLES))
    if not began:
        merge.drop_folder(options)
    else:
        merge.write(options, session.deployment, clocks, failure)
    if session.signal:
        return 128 + session.signal
    return 1 if session.failed else 0

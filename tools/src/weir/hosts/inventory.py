# SPDX-License-Identifier: BSD-3-Clause
"""The hosts of a run, from an Ansible inventory: whatever ansible-inventory reads.

A host's role is the group it is in: sender, switch, receiver, or kernel (a program that is not
ours). Its variables are those of `Variables`; all else in an inventory is Ansible's.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from weir.base.configs import Config
from weir.base.errors import UserError

ROLES = ("receiver", "switch", "sender")  # in the order in which they start
KERNEL = "kernel"
DEVICE = "{left: eth1}, or {a: {dev: eth1, cable: HOST/PORT}}"


class Port(Struct, forbid_unknown_fields=True):
    """A port: its device, and the port of another host at the other end."""

    dev: str
    cable: Annotated[str, Meta(pattern="^[^/]+/.+$")] | None = None


class Variables(Struct, forbid_unknown_fields=True, rename=lambda name: f"weir_{name}"):
    """The variables of a host in the inventory."""

    dir: Annotated[
        str, Meta(description="the clone of Weir on the host, built [this one's path]")
    ] = str(Path(__file__).resolve().parents[4])
    tmp: Annotated[str, Meta(description="where the run's files are until they were fetched")] = (
        "/tmp"
    )
    ports: Annotated[
        dict[str, str | Port], Meta(description=f"the device of each port: {DEVICE}")
    ] = {}
    lcores: Annotated[
        list[Annotated[int, Meta(ge=0)]] | None,
        Meta(description="the CPUs that do the work, in place of the config's: [2, 3]"),
    ] = None
    hugepages: Annotated[
        bool | Literal["yes", "no", "True", "False"],
        Meta(description="yes: refuse the host if none is free"),
    ] = False
    set: Annotated[
        Config, Meta(description="values of the config for this host: {flows.0.count: 100}")
    ] = {}
    lease: Annotated[
        float,
        Meta(gt=0, description="seconds after which a program ends of which nobody has asked"),
    ] = 30.0
    command: Annotated[str, Meta(description="of group kernel: the command")] = ""
    side: Annotated[
        Literal["sender", "receiver"], Meta(description="of group kernel: sender or receiver")
    ] = "receiver"
    ready: Annotated[
        str | None, Meta(description="of group kernel: what its output says when it is ready")
    ] = None


@dataclass
class Host:
    """A host, and what it does in the run."""

    name: str
    role: str
    python: str = "python3"
    kernel: bool = False
    directory: str = ""
    tmp: str = "/tmp"
    lease_s: float = 30.0
    ports: dict[str, str] = field(default_factory=dict)  # names of the config to devices
    cables: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # port: (host, port) ...
    lcores: list[int] | None = None
    hugepages: bool = False
    override: Config = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    ready: str | None = None

    def joined(self) -> list[tuple[str, str, str]]:
        """Returns each port with the host and port at the other end; a port may have several."""
        return [(port, *end) for port, ends in sorted(self.cables.items()) for end in ends]


def program(name: str) -> str:
    """Returns a program of Ansible beside this Python. UserError: it is not installed."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise UserError(
            f"--hosts needs Ansible: {sys.executable} -m pip install ansible-core ansible-runner"
        )
    return str(path)


def read(path: Path) -> dict[str, Host]:
    """Reads the hosts by name. UserError: the inventory is wrong."""
    if not path.exists():
        raise UserError(f"{path}: no such inventory")
    argv = [program("ansible-inventory"), "-i", str(path), "--list"]
    done = subprocess.run(argv, capture_output=True, text=True)
    warned = [line for line in done.stderr.splitlines() if "Unable to parse" in line]
    if done.returncode != 0 or warned:
        said = " ".join((warned or done.stderr.strip().splitlines() or ["unreadable"])[0].split())
        raise UserError(f"{path}: {said}")
    return from_list(path, json.loads(done.stdout))


def from_list(path: Path, listed: Config) -> dict[str, Host]:
    """Reads the hosts from what ansible-inventory --list prints."""
    variables = listed.get("_meta", {}).get("hostvars", {})
    found: dict[str, Host] = {}
    for group in (*ROLES, KERNEL):
        for name in members(listed, group):
            if name in found:
                raise UserError(f"{path}: {name} is in the groups {found[name].role} and {group}")
            found[name] = host(f"{path}: {name}", name, group, variables.get(name, {}))
    if not {host.role for host in found.values()} & {"sender", "switch"}:
        raise UserError(f"{path}: no host is in the group sender or switch")
    if [one.role for one in found.values()].count("switch") > 1:
        raise UserError(f"{path}: more than one host is in the group switch")
    check_cables(path, found)
    return found


def members(listed: Config, group: str) -> list[str]:
    """Returns the hosts of a group and of the groups in it."""
    section = listed.get(group, {})
    below = [name for child in section.get("children", ()) for name in members(listed, child)]
    return list(dict.fromkeys([*section.get("hosts", ()), *below]))


def host(place: str, name: str, group: str, variables: Config) -> Host:
    """Makes a host from its variables."""
    mine = read_variables(
        place, {key: value for key, value in variables.items() if key.startswith("weir_")}
    )
    python = str(variables.get("ansible_python_interpreter", "auto"))
    made = Host(
        name,
        mine.side if group == KERNEL else group,
        "python3" if python.startswith("auto") else python,
        group == KERNEL,
        mine.dir,
        mine.tmp,
        mine.lease,
        lcores=mine.lcores,
        hugepages=mine.hugepages in (True, "yes", "True"),
        override=mine.set,
        ready=mine.ready,
    )
    if group == KERNEL:
        made.command = shlex.split(mine.command)
        if not made.command:
            raise UserError(f"{place}: a host in the group kernel needs weir_command")
    for port, value in mine.ports.items():
        made.ports[port] = device(value if isinstance(value, str) else value.dev, len(made.ports))
        if isinstance(value, Port) and value.cable:
            their, _, end = value.cable.partition("/")
            made.cables[port] = [(their, end)]
    return made


def read_variables(place: str, given: Config) -> Variables:
    """Checks the variables of a host. UserError: which one is wrong, and what it is."""
    meanings = {one.encode_name: one.type for one in msgspec.structs.fields(Variables)}
    for name in given:
        if name not in meanings:
            raise UserError(f"{place}: {name} is no variable of weir: {', '.join(meanings)}")
    try:
        return msgspec.convert(given, Variables, strict=False)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at `$.")
        name = next(name for name in meanings if where.startswith(name))
        (meaning,) = meanings[name].__metadata__
        sentence = f"{said[0].lower()}{said[1:]}: {name} is {meaning.description}"
        raise UserError(f"{place}: {where.rstrip('`')}: {sentence}") from None


def device(dev: str, number: int) -> str:
    """Returns a device as the programs want it; an interface's name means af_packet on it."""
    if dev.startswith(("net_", "eth_", "mac:")) or ":" in dev:
        return dev
    return f"net_af_packet{number},iface={dev},framecnt=4096"


def check_cables(path: Path, hosts: Mapping[str, Host]) -> None:
    """Checks that both ends of a cable are ports; what one end says holds for the other.

    Several hosts of one role may be joined to a port of the switch: by an Ethernet switch.
    """
    said = [(one, port, *ends[0]) for one in hosts.values() for port, ends in one.cables.items()]
    for mine, port, their, end in said:
        if their not in hosts or end not in hosts[their].ports:
            raise UserError(
                f"{path}: {mine.name}: weir_ports: {port}: there is no port {their}/{end}"
            )
        ends = hosts[their].cables.setdefault(end, [])
        if (mine.name, port) not in ends:
            ends.append((mine.name, port))
        others = [other for other in ends if hosts[other[0]].role != mine.role]
        if len(ends) > 1 and (others or hosts[their].role != "switch"):
            other = (others or ends)[0]
            raise UserError(
                f"{path}: {their}/{end} is connected to {'/'.join(other)}, "
                f"and {mine.name}/{port} to it too"
            )

# SPDX-License-Identifier: BSD-3-Clause
"""The hosts of a run, from an Ansible inventory: whatever ansible-inventory reads.

A host's role is the group it is in: sender, switch, receiver, or kernel (a program that is not
ours). Its variables are those below; all else in an inventory is Ansible's.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir.base.configs import Config
from weir.base.errors import UserError

ROLES = ("receiver", "switch", "sender")  # in the order in which they start
KERNEL = "kernel"
VARIABLES = {
    "weir_dir": "the clone of Weir on the host, built [this one's path]",
    "weir_tmp": "where the run's files are until they were fetched [/tmp]",
    "weir_ports": "device of each port: {left: eth1}, or {a: {dev: eth1, cable: HOST/PORT}}",
    "weir_lcores": "the CPUs that do the work, in place of the config's: [2, 3]",
    "weir_hugepages": "yes: refuse the host if none is free",
    "weir_set": "values of the config for this host: {flows.0.count: 100}",
    "weir_lease": "seconds after which a program ends of which nobody has asked [30]",
    "weir_command": "of group kernel: the command",
    "weir_side": "of group kernel: sender or receiver [receiver]",
    "weir_ready": "of group kernel: what its output says when it is ready [at once]",
}


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
    mine = {key: value for key, value in variables.items() if key.startswith("weir_")}
    for key in mine:
        if key not in VARIABLES:
            raise UserError(f"{place}: {key} is no variable of weir: {', '.join(VARIABLES)}")
    made = Host(name, group)
    python = str(variables.get("ansible_python_interpreter", made.python))
    made.python = made.python if python.startswith("auto") else python
    made.directory = str(mine.get("weir_dir", Path(__file__).resolve().parents[4]))
    made.tmp = str(mine.get("weir_tmp", made.tmp))
    try:
        made.lease_s = float(mine.get("weir_lease", made.lease_s))
    except (TypeError, ValueError):
        raise UserError(f"{place}: weir_lease is a number of seconds") from None
    made.hugepages = mine.get("weir_hugepages") in (True, "yes", "True")
    made.lcores = mine.get("weir_lcores")
    made.override = expect(place, mine, "weir_set")
    made.ready = mine.get("weir_ready")
    if group == KERNEL:
        made.kernel = True
        made.role = str(mine.get("weir_side", "receiver"))
        if made.role not in ("sender", "receiver"):
            raise UserError(f"{place}: weir_side is sender or receiver, not {made.role}")
        made.command = shlex.split(str(mine.get("weir_command", "")))
        if not made.command:
            raise UserError(f"{place}: a host in the group kernel needs weir_command")
    for port, value in expect(place, mine, "weir_ports").items():
        add_port(place, made, port, value)
    return made


def expect(place: str, variables: Config, name: str) -> Config:
    """Returns a variable that is a map."""
    value = variables.get(name, {})
    if not isinstance(value, dict):
        raise UserError(f"{place}: {name} is not a map: {VARIABLES[name]}")
    return value


def add_port(place: str, made: Host, port: str, value: Any) -> None:
    """Adds a port: its device, and what it is connected to."""
    section = value if isinstance(value, dict) else {"dev": value}
    if not isinstance(section.get("dev"), str) or not {*section} <= {"dev", "cable"}:
        raise UserError(f"{place}: weir_ports: {port}: {VARIABLES['weir_ports']}")
    made.ports[port] = device(section["dev"], len(made.ports))
    if "cable" in section:
        their, slash, end = str(section["cable"]).partition("/")
        if not slash:
            raise UserError(f"{place}: weir_ports: {port}: cable is HOST/PORT")
        made.cables[port] = [(their, end)]


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

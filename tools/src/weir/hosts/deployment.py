# SPDX-License-Identifier: BSD-3-Clause
"""Requests to each host of a run, and the archive that carries them there."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weir.base import configs
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.base.programs import PROGRAMS, find_program
from weir.hosts.check import Wanted
from weir.hosts.inventory import Host
from weir.runner import config_files, priority, receiver
from weir.runner.options import Options

NO_END = "24h"  # of the side that receives; it is stopped when the senders have ended
PROBE_S = 8.0
SPACE_BYTES = 1 << 20  # of a host's folder, at least
CAPTURE_LEVEL = 2  # of telemetry, from which on frames are captured, for the hosts' clocks
HERE = Path(__file__).parent
FILES = {
    "__main__.py": HERE / "agent.py",
    "weir/hosts/check.py": HERE / "check.py",
    "weir/runner/priority.py": Path(priority.__file__),
}
PACKAGES = ("weir/__init__.py", "weir/hosts/__init__.py", "weir/runner/__init__.py")


@dataclass
class Deployment:
    """A run on hosts: these, the requests by their names, and whether frames are captured."""

    hosts: Mapping[str, Host]
    requests: dict[str, Wanted]
    captures: bool


def make(options: Options, hosts: Mapping[str, Host], run: str) -> Deployment:
    """Makes the requests. UserError: a host needs what the config has not."""
    config = configs.mapping(options.config)
    live = config.get("live")
    live = live if isinstance(live, dict) else {}
    captures = options.pcap is not None or level(options, config) >= CAPTURE_LEVEL
    deployment = Deployment(hosts, {}, captures)
    for host in hosts.values():
        place = f"{host.tmp}/weir-{run}-{host.name}"
        deployment.requests[host.name] = {
            "host": host.name,
            "id": run,
            "place": place,
            "space_bytes": SPACE_BYTES,
            "lease_s": host.lease_s,
            "ports": host.ports,
            "awaited": host.joined(),
            "probe_s": PROBE_S,
            "hugepages": host.hugepages,
            "environment": {},
            "output": host.kernel,
            "ready": host.ready if host.kernel else '"ready"',
            "program": None if host.kernel else f"{host.directory}/build/{binary(host)}",
            "argv": host.command if host.kernel else argv(options, host, live, place, captures),
        }
    return deployment


def level(options: Options, config: Config) -> int:
    """Returns the telemetry level of the config, or of the option that replaces it."""
    given = config.get("telemetry", {}).get("level", "1")
    for override in options.overrides:
        key, _, value = override.partition("=")
        given = value if key == "telemetry.level" else given
    return int(given) if str(given).isdigit() else 1


def binary(host: Host) -> str:
    """Returns the program of a host's role, below the build folder."""
    return PROGRAMS["switch" if host.role == "switch" else "sender"]


def argv(options: Options, host: Host, live: Config, place: str, captures: bool) -> list[str]:
    """Returns the command line of a host's program."""
    words = [f"{host.directory}/build/{binary(host)}", f"{place}/config/{options.config.name}"]
    words += ["--out", f"{place}/run", "--progress"]
    words += settings(options, host, live, Path(place).name[:48])
    if captures:
        words += ["--pcap", f"{place}/capture.pcapng"]
    return words


def settings(options: Options, host: Host, live: Config, prefix: str) -> list[str]:
    """Returns the options that make the config that of a host."""
    import yaml

    part = section(options.config, host, live) | {"prefix": prefix}
    text = yaml.safe_dump(part, default_flow_style=True, width=math.inf, sort_keys=False)
    key = "switch" if host.role == "switch" else "sender"
    given = [*options.overrides]
    given += [f"{name}={configs.text(value)}" for name, value in host.override.items()]
    words = ["-o", f"live.{key}={text.strip()}"]
    for override in given:
        words += ["-o", for_receiver(override) if host.role == "receiver" else override]
    if options.seed is not None:
        words += ["--seed", str(options.seed)]
    duration = NO_END if host.role == "receiver" else options.duration
    return words if duration is None else [*words, "--duration", duration]


def for_receiver(override: str) -> str:
    """Turns live.receiver's values into those of live.sender, which its weir-sender reads."""
    if override.startswith((f"{receiver.SECTION}.", f"{receiver.SECTION}=")):
        return receiver.SENDER + override.removeprefix(receiver.SECTION)
    return override


def check(options: Options, hosts: Mapping[str, Host]) -> int:
    """Checks the config as each host would get it, by programs here; returns the exit status."""
    config = configs.mapping(options.config)
    live = config.get("live")
    for host in hosts.values():
        if host.kernel:
            continue
        program = find_program("switch" if host.role == "switch" else "sender")
        words = settings(options, host, live if isinstance(live, dict) else {}, "weir-check")
        command = [str(program), str(options.config), *words, "--check"]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        for line in done.stderr.splitlines():
            print(f"{host.name}: {line}", file=sys.stderr)
        if done.returncode != 0:
            return done.returncode
    return 0


def section(config: Path, host: Host, live: Config) -> Config:
    """Makes `live.ROLE` for a host: its ports and CPUs in place of the config's.

    A receiver's is live.receiver, or the ports of live.sender that receive.
    """
    found = live.get(host.role)
    if found is None and host.role == "receiver":
        found = live.get("sender")
    if not isinstance(found, dict):
        raise UserError(f"{config}: {host.name} is a {host.role}, and there is no live.{host.role}")
    listed = found.get("ports")
    ports = (
        [dict(port) for port in listed if isinstance(port, dict)]
        if isinstance(listed, list)
        else []
    )
    if host.role != "switch":
        ports = [port for port in ports if port.get("role") == host.role]
    for port in ports:
        if port.get("name") in host.ports:
            port["dev"] = host.ports[port["name"]]
    names = [port.get("name") for port in ports]
    for name in host.ports:
        if name not in names:
            has = ", ".join(map(str, names)) or "none"
            raise UserError(f"{config}: {host.name}: there is no port {name}, only {has}")
    made = {**found, "ports": ports}
    if host.lcores is not None:
        made["lcores"] = host.lcores
    if host.hugepages:
        made["hugepages"] = "yes"
    return made


def archive(path: Path, deployment: Deployment, config: Path) -> Path:
    """Writes the archive: the agent, the requests, the config and the files that it names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, ours in FILES.items():
            packed.write(ours, name)
        for name in PACKAGES:
            packed.writestr(name, "")
        packed.writestr("request.json", json.dumps(deployment.requests))
        packed.write(config, f"config/{config.name}")
        for file in sorted({*config_files.named(configs.mapping(config))}):
            whole = (config.parent / file).resolve()
            if not whole.is_relative_to(config.parent.resolve()):
                raise UserError(
                    f"{config}: {file} is not below its folder: it is not sent to hosts"
                )
            if whole.is_file():  # else the program says what is missing
                packed.write(whole, f"config/{file}")
    return path

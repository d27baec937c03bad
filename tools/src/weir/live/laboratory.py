# SPDX-License-Identifier: BSD-3-Clause
"""A laboratory of hosts and a switch: network namespaces, with veth pairs as cables.

a ---- left [ sw ] right ---- b
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Self

from pyroute2 import NetNS, config, netns
from pyroute2.netlink.exceptions import NetlinkError

# pyroute2 enters a namespace in a process of its own, which SIGTERM must end: without our handler.
config.child_process_mode = "mp"
config.disable_mp_signal = True
ADDRESS = {"a": "198.18.0.1", "b": "198.19.0.1", "c": "198.19.0.2"}
PREFIX_BITS = 15
OFFLOADS = ("tso", "gso", "gro", "tx")


class CommandError(RuntimeError):
    """A failed command; the text is what it said."""


def command(*argv: object, timeout: float = 60, check: bool = True) -> str:
    """Runs a command and returns its standard output. CommandError: it failed."""
    words = [str(arg) for arg in argv]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{words[0]}: {error}") from None
    if check and done.returncode != 0:
        said = (done.stderr + done.stdout).strip() or f"exit {done.returncode}"
        raise CommandError(f"{' '.join(words)}: {said}")
    return done.stdout


def enter(space: str | None, *argv: object) -> list[object]:
    """Returns argv for a namespace. `ip netns exec` would hide /sys/fs/bpf and the like."""
    return [*(["nsenter", f"--net={Path('/run/netns', space)}"] if space else []), *argv]


class Laboratory:
    """The namespaces; their names begin with `prefix`. A context manager that removes them."""

    offloads = False  # whether links keep them: only ports that cut super-frames can do with them

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.spaces: list[str] = []

    def __enter__(self) -> Self:
        try:
            self.make()
        except NetlinkError as error:
            self.__exit__()
            raise CommandError(f"network namespaces: {error}") from None
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        while self.spaces:
            netns.remove(self.spaces.pop())

    def make(self) -> None:
        """Makes namespaces and cables."""
        for name in ("sw", "a", "b"):
            self.namespace(name)
        self.cable("a", "left")
        self.cable("b", "right")

    def space(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def enter(self, name: str, *argv: object) -> list[object]:
        return enter(self.space(name), *argv)

    def sh(self, name: str, *argv: object, timeout: float = 60, check: bool = True) -> str:
        return command(*self.enter(name, *argv), timeout=timeout, check=check)

    def create(self, name: str) -> None:
        netns.create(self.space(name))
        self.spaces.append(self.space(name))

    def namespace(self, name: str) -> None:
        """Makes a namespace without IPv6: the kernel's own packets are no part of an experiment."""
        self.create(name)
        here = "net.ipv6.conf"
        self.sh(name, "sysctl", "-qw", *(f"{here}.{w}.disable_ipv6=1" for w in ("all", "default")))
        with NetNS(self.space(name)) as links:
            links.link("set", index=1, state="up")

    def cable(self, host: str, port: str, link: str = "eth0") -> None:
        """Connects a link of a host to a port of the switch's namespace."""
        peer = {"ifname": link, "net_ns_fd": self.space(host)}
        with NetNS(self.space("sw")) as links:
            links.link("add", ifname=port, kind="veth", peer=peer)
        self.address(host, link)
        self.up("sw", port)
        self.up(host, link)

    def address(self, host: str, link: str) -> None:
        with NetNS(self.space(host)) as links:
            index = links.link_lookup(ifname=link)[0]
            links.addr("add", index=index, address=ADDRESS[host], prefixlen=PREFIX_BITS)

    def up(self, name: str, link: str) -> None:
        """Sets a link up, by default with its offloads off."""
        off = [word for what in OFFLOADS for word in (what, "off")]
        if not self.offloads:
            self.sh(name, "ethtool", "-K", link, *off)
        with NetNS(self.space(name)) as links:
            links.link("set", index=links.link_lookup(ifname=link)[0], state="up")

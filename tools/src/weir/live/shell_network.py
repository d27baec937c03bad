# SPDX-License-Identifier: BSD-3-Clause
"""The namespaces of `weir shell`, and its way out.

A shell has the network 198.18.N.0/24: the other side is .2, the command .100. N is one more than
the largest in use around it, so that the networks of a shell in a shell differ.
"""

from __future__ import annotations

import enum
import errno
import ipaddress
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from socket import AF_INET

from pyroute2 import IPRoute, NetNS
from pyroute2.netlink.exceptions import NetlinkError

from weir.base.errors import UserError
from weir.live.contained import CLONE_NEWNET, unshare
from weir.live.laboratory import CommandError, Laboratory, command
from weir.runner.child import Child

TEST_NETWORK = ipaddress.ip_network("198.18.0.0/15")
NETWORKS = list(TEST_NETWORK.subnets(new_prefix=24))
OTHER_SIDE, NAME_SERVER, COMMAND = 2, 3, 100  # the places that slirp4netns has fixed
HOST, SERVER = "host", "out"
WAIT_S_MAX = 10.0
RESOLV_CONF = Path("/etc/resolv.conf")
UPSTREAM = Path("/run/systemd/resolve/resolv.conf")  # where the first names a local resolver
# The kernel removes the table when the process that made it has ended.
NAT = """\
add table ip {name} {{ flags owner; }}
add chain ip {name} nat {{ type nat hook postrouting priority srcnat; }}
add rule ip {name} nat ip saddr {network} oifname != "{name}" masquerade
"""


class Side(enum.Enum):
    """Kinds of the other side."""

    HOST = "the host"
    USER = "sockets of the user"
    SERVER = "a server"


class Network(Laboratory):
    """Namespaces without names: a descriptor of this process keeps each."""

    def __init__(self, side: Side, offloads: bool) -> None:
        super().__init__("")
        self.side, self.offloads = side, offloads
        self.number = 0
        self.children: list[Child] = []
        self.paths: dict[str, str] = {}

    def __exit__(self, *_: object) -> None:
        """Does nothing: the kernel removes them with this process."""

    @property
    def network(self) -> ipaddress.IPv4Network:
        return NETWORKS[self.number]  # type: ignore[return-value]

    @property
    def server(self) -> str:
        """Address of the other side."""
        return str(self.network[OTHER_SIDE])

    @property
    def link(self) -> str:
        """Name of the host's end."""
        return f"weir{self.number}"

    def space(self, name: str) -> str:
        return self.paths[name]

    def keep(self, name: str) -> None:
        """Keeps the namespace that we are in, under a name."""
        descriptor = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.paths[name] = f"/proc/{os.getpid()}/fd/{descriptor}"

    def create(self, name: str) -> None:
        unshare(CLONE_NEWNET)
        self.keep(name)

    def make(self) -> None:
        """Makes namespaces and cables."""
        self.keep(HOST)
        if self.side is Side.USER:
            self.prepare_slirp()
        self.number = 1 + max(self.used(), default=0)
        for name in ("in", *([SERVER] if self.side is Side.SERVER else []), "sw"):
            self.namespace(name)
        # What runs inside may be a shell's host in its turn, and ping needs no rights.
        self.sh("in", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.ping_group_range=0 0")
        self.join()
        self.cable("in", "left")
        self.route("in")

    def used(self) -> Iterator[int]:
        """Yields the numbers of networks that the host, where we still are, is in."""
        with IPRoute() as links:
            texts = [each.get("address") for each in links.get_addr(family=AF_INET)]
        for address in map(ipaddress.ip_address, texts):
            if address in TEST_NETWORK:
                yield (int(address) - int(TEST_NETWORK[0])) >> 8

    def join(self) -> None:
        """Makes the port towards the other side."""
        if self.side is Side.SERVER:
            self.cable(SERVER, "right")
            self.route(SERVER)
        elif self.side is Side.HOST:
            self.join_host()
        else:
            self.join_slirp()

    def join_host(self) -> None:
        """Makes a link of the host; others may take its number just now."""
        while True:
            try:
                self.cable(HOST, "right", self.link)
            except NetlinkError as error:
                if error.code != errno.EEXIST or self.number + 1 >= len(NETWORKS):
                    raise
                self.number += 1
            else:
                return

    def start(self, argv: Sequence[object]) -> None:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "text": True}
        self.children.append(Child(argv, first=False, **options))

    def write(self, text: str) -> None:
        """Writes a line to the program that was started last."""
        print(text, file=self.children[-1].process.stdin, flush=True)

    def prepare_slirp(self) -> None:
        """Starts slirp4netns in the host's namespace, which we cannot enter again."""
        program = shutil.which("slirp4netns")
        if program is None:
            raise UserError(
                "without root the way out needs slirp4netns (apt-get install slirp4netns);"
                " or give --server",
                1,
            )
        script = 'read -r place network; exec "$0" --mtu=1500 --cidr="$network" --netns-type=path'
        self.start(["sh", "-c", f'{script} "$place" right', program])

    def join_slirp(self) -> None:
        """Lets slirp4netns make a tap, the switch's port: it is the other side of that."""
        self.write(f"{self.space('sw')} {self.network}")
        until(self.has_right, "slirp4netns made no interface; is /dev/net/tun open to users?")
        self.up("sw", "right")

    def has_right(self) -> bool:
        with NetNS(self.space("sw")) as links:
            return bool(links.link_lookup(ifname="right"))

    def address(self, host: str, link: str) -> None:
        """Gives an end of the command's, or of the other side's link its address."""
        place = self.network[COMMAND if host == "in" else OTHER_SIDE]
        with NetNS(self.space(host)) as links:
            index = links.link_lookup(ifname=link)[0]
            links.addr("add", index=index, address=str(place), prefixlen=24)

    def route(self, host: str) -> None:
        gateway = self.network[OTHER_SIDE if host == "in" else COMMAND]
        with NetNS(self.space(host)) as links:
            links.route("add", dst="default", gateway=str(gateway))

    def listens(self, name: str) -> bool:
        """Returns whether anything in a namespace has a socket."""
        tables = [f"/proc/net/{kind}{version}" for kind in ("tcp", "udp") for version in ("", "6")]
        lines = self.sh(name, "cat", *tables, check=False).splitlines()
        return any(line.lstrip()[:1].isdigit() for line in lines)

    def open(self, place: Path) -> Iterator[str]:
        """Opens the way beyond the other side; yields a sentence for each thing that is missing."""
        if self.side is Side.SERVER:
            return
        if self.side is Side.HOST:
            yield from self.translate()
        yield from self.name_servers(place)

    def translate(self) -> Iterator[str]:
        """Lets the host forward with its own address; yields why it cannot."""
        only = f"only this machine ({self.server}) can be reached:"
        if self.sh(HOST, "cat", "/proc/sys/net/ipv4/ip_forward").strip() != "1":
            yield f"{only} it forwards nothing; sysctl -w net.ipv4.ip_forward=1"
        program = shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None:
            yield f"{only} address translation needs nft; apt-get install nftables"
            return
        self.start(self.enter(HOST, program, "-i"))
        self.write(NAT.format(name=self.link, network=self.network))
        said = self.children[-1].err
        shown = self.enter(HOST, program, "list", "table", "ip", self.link)
        done = lambda: said or "masquerade" in command(*shown, check=False)  # noqa: E731
        try:
            until(done, "nft made no table")
        except CommandError as error:
            yield f"{only} {error}"
        if said:
            yield f"{only} nft: {said[0]}"

    def name_servers(self, place: Path) -> Iterator[str]:
        """Sets the host's name servers, without those on itself; yields why it cannot."""
        found: list[str] = []
        if self.side is Side.USER:
            found = [str(self.network[NAME_SERVER])]
        for file in (RESOLV_CONF, UPSTREAM):
            with suppress(OSError):
                lines = [line.split() for line in file.read_text().splitlines()]
                named = [words[1] for words in lines if words[:1] == ["nameserver"] and words[1:]]
                found = found or [each for each in named if not each.startswith(("127.", "::1"))]
        if not found:
            yield f"names are not resolved: no server in {RESOLV_CONF} is another machine's"
        elif RESOLV_CONF.exists():
            mine = place / RESOLV_CONF.name
            mine.write_text("".join(f"nameserver {each}\n" for each in found))
            command("mount", "--bind", mine, RESOLV_CONF)


def until(condition: Callable[[], object], why: str) -> None:
    """Polls until a condition holds; CommandError if it takes too long."""
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise CommandError(why)
        time.sleep(0.02)

# SPDX-License-Identifier: BSD-3-Clause
"""A lab with a host behind each of its two, which forward; and what the kernel says of sockets.

    c ==links== a ---- left [ weir-switch ] right ---- b ---- d

Each link between c and a is of another kind. The kernels that the tests run on have no bonding: a
MACVLAN device above its parent and a bridge above its port stand for devices above a card.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from lab import ADDRESS, Lab, sh, wait_for

TUNNELS = Path(__file__).with_name("tunnels.bpf.c")
WRAPPED = ("vlan", "qinq", "gre", "ipip")  # by tunnels.bpf.c
LINKS = ("wire", "plain", *WRAPPED, "under", "srv6", "parent", "port", "six")
# IPv4: link N has 10.8.N.2 in c and 10.8.N.1 in a, and leads to 10.9.N.1 in d.
NUMBER = {name: number for number, name in enumerate(LINKS, 1)}
DEVICE = {"under": "vxlan0", "parent": "macvlan0", "port": "bridge0"}  # above the link's own
MTU = {"gre": "mtu 1476", "ipip": "mtu 1480"}
SIX = "fd09::1"  # of d, by IPv6
HTTP_PORT = 8000
WITH_IPV6 = ("c:six", "a:six", "c:srv6", "a:srv6", "a:eth0", "b:eth0", "b:behind", "d:eth0")

N = NUMBER["srv6"]
IN_C = f"""
link add name bridge0 type bridge
link set port master bridge0
link add link parent name macvlan0 type macvlan mode bridge
link add vxlan0 type vxlan id 7 local 10.10.0.2 remote 10.10.0.1 dstport 4789 dev under
addr add 10.10.0.2/24 dev under
addr add fd08::2/64 dev six nodad
addr add fd0a::2/64 dev srv6 nodad
route add fd09::/64 via fd08::1
addr add 10.8.{N}.2/32 dev srv6
route add 10.9.{N}.1/32 src 10.8.{N}.2 encap seg6 mode encap segs fd0a::1 dev srv6 mtu 1400
"""
IN_A = f"""
link add vxlan0 type vxlan id 7 local 10.10.0.1 remote 10.10.0.2 dstport 4789 dev under
link set vxlan0 up
addr add 10.10.0.1/24 dev under
addr add fd08::1/64 dev six nodad
addr add fd0a::1/64 dev srv6 nodad
addr add fd18::1/64 dev eth0 nodad
route add 10.9.0.0/16 via {ADDRESS["b"]}
route add fd09::/64 via fd18::2
addr add 10.8.{N}.1/32 dev srv6
route add 10.8.{N}.2/32 encap seg6 mode encap segs fd0a::2 dev srv6
"""
IN_B = f"""
link set behind up
addr add 10.7.0.1/24 dev behind
addr add fd07::1/64 dev behind nodad
addr add fd18::2/64 dev eth0 nodad
route add 10.9.0.0/16 via 10.7.0.2
route add fd09::/64 via fd07::2
route add 10.8.0.0/16 via {ADDRESS["a"]}
route add fd08::/64 via fd18::1
"""
IN_D = f"""
link set eth0 up
addr add 10.7.0.2/24 dev eth0
addr add fd07::2/64 dev eth0 nodad
addr add {SIX}/128 dev eth0 nodad
route add default via 10.7.0.1
route add default via fd07::1
"""


class Network(Lab):
    def __enter__(self):
        super().__enter__()
        try:
            for space in "cd":
                self.namespace(space)
            self.make_links()
            self.set_addresses()
            self.offload()
            self.meet()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def ip(self, space, lines):
        path = self.tmp / "ip"
        path.write_text(lines)
        sh("ip", "-n", self.space(space), "-batch", path)

    def make_links(self):
        peer = f"netns {self.space('a')}"
        self.ip("c", "".join(f"link add name {n} type veth peer name {n} {peer}\n" for n in LINKS))
        self.ip("b", f"link add behind type veth peer name eth0 netns {self.space('d')}")
        for where in WITH_IPV6:
            space, device = where.split(":")
            here = f"net.ipv6.conf.{device}"
            quiet = (f"{here}.addr_gen_mode=1", f"{here}.router_solicitations=0")
            self.sysctl(space, *quiet, f"{here}.disable_ipv6=0", f"{here}.seg6_enabled=1")
        for space in "abcd":
            self.sysctl(space, "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
            self.sysctl(space, "net.ipv4.tcp_no_metrics_save=1", "net.ipv6.conf.all.seg6_enabled=1")

    def sysctl(self, space, *settings):
        self.sh(space, "sysctl", "-qw", *settings)

    def set_addresses(self):
        for space in "ca":
            self.ip(space, "".join(f"link set {name} up\n" for name in LINKS))
        for space, lines in (("c", IN_C), ("a", IN_A), ("b", IN_B), ("d", IN_D)):
            self.ip(space, lines)
        self.ip("c", "".join(f"link set {device} up\n" for device in DEVICE.values()))
        for name, number in NUMBER.items():
            self.ip("d", f"addr add 10.9.{number}.1/32 dev eth0")
            if name in ("srv6", "six"):
                continue
            far, near = DEVICE.get(name, name), "vxlan0" if name == "under" else name
            to = f"10.9.{number}.1/32 via 10.8.{number}.1 dev {far} {MTU.get(name, '')}"
            self.ip("a", f"addr add 10.8.{number}.1/24 dev {near}")
            self.ip("c", f"addr add 10.8.{number}.2/24 dev {far}\nroute add {to}")

    def offload(self):
        """All links have it but one; d puts together what comes within a millisecond."""
        for where in ("c:wire", "a:wire", "b:behind"):  # a veth gives whole ones to no GRO
            self.up(*where.split(":"))
        self.sh("d", "ethtool", "-K", "eth0", "gro", "on")
        wait = "echo 1000000 > /sys/class/net/eth0/gro_flush_timeout"
        sh("ip", "netns", "exec", self.space("d"), "sh", "-c", wait)  # with a sysfs of its own
        self.wrap()

    def wrap(self):
        out = self.tmp / "tunnels.o"
        include = "-I/usr/include/x86_64-linux-gnu"
        sh("clang-14", "-O2", "-g", "-target", "bpf", include, "-c", TUNNELS, "-o", out)
        for kind in WRAPPED:
            for space in "ca":
                self.sh(space, "tc", "qdisc", "add", "dev", kind, "clsact")
                for hook, way in (("egress", "out"), ("ingress", "in")):
                    program = ("bpf", "da", "obj", out, "sec", f"{kind}/{way}")
                    self.sh(space, "tc", "filter", "add", "dev", kind, hook, *program)

    def meet(self):
        """Neighbours that the switch may lose are known for good, the others by now."""
        for space, other, six in (("a", "b", "fd18::2"), ("b", "a", "fd18::1")):
            shown = json.loads(self.sh(other, "ip", "-j", "link", "show", "eth0"))
            to = f"lladdr {shown[0]['address']} dev eth0 nud permanent"
            self.ip(space, f"neigh replace {ADDRESS[other]} {to}\nneigh replace {six} {to}")
        for space, six in (("d", "fd07::1"), ("c", "fd08::1"), ("c", "fd0a::1")):

            def answers(space=space, six=six):
                return "time=" in self.sh(space, "ping", "-c1", "-W1", six, check=False)

            wait_for(answers, f"{six} to answer")


LINE = re.compile(r"UNCONN\s+\d+\s+\d+\s+(\S+):(\d+)\s+(\S+):(\d+)\s(.*)")


class Sockets:
    """TCP_INFO of each of a namespace's sockets at its end, as `ss --events` prints it."""

    def __init__(self, lab, space):
        self.child = lab.host(space, "stdbuf", "-oL", "ss", "--events", "-tinO")
        wait_for(self.listens, "ss")

    def listens(self):
        """It prints nothing before the first: is there a netlink socket of a group?"""
        lines = Path(f"/proc/{self.child.process.pid}/net/netlink").read_text().splitlines()
        return any(line.split()[1] == "4" and int(line.split()[3], 16) for line in lines[1:])

    def found(self):
        """By address and port of its own end, then the peer's."""
        found = {}
        for line in list(self.child.out):
            if (match := LINE.match(line)) and match[4] != "*":
                src, src_port, dst, dst_port, text = match.groups()
                key = (src.strip("[]"), int(src_port), dst.strip("[]"), int(dst_port))
                found[key] = Info(re.findall(r"(\w+):(\S+)", text))
        return found


class Info(dict):
    """Its counters by the names of ss, which leaves out those that are 0."""

    def __missing__(self, name):
        return "0"

    def count(self, name):
        return int(self[name].split("/")[-1])  # retrans: outstanding/total

    @property
    def min_rtt_us(self):
        return round(float(self["minrtt"]) * 1000)


def nstat(lab, space):
    """The counters of a namespace since it was made."""
    lines = lab.sh(space, "nstat", "-asz").splitlines()
    return {line.split()[0]: int(line.split()[1]) for line in lines if not line.startswith("#")}

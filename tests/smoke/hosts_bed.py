# SPDX-License-Identifier: BSD-3-Clause
"""Hosts for `weir run --live --hosts`: network namespaces with an sshd each.

client ---- management network ---- tx, mid, rx
tx:eth1 ---- mid:left   mid:right ---- rx:eth1
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

from lab import CPUS, LCORE, Lab, wait_for
from weir.runner.child import Child

HOSTS = {"tx": "198.18.255.2", "mid": "198.18.255.3", "rx": "198.18.255.4"}
MORE = {"tx2": "198.18.255.5", "rx2": "198.18.255.6"}  # beside tx and rx: see join()
CLIENT = "198.18.255.1/24"
SSHD = """
ListenAddress {address}
Port 22
HostKey {folder}/key
PidFile {folder}/{name}.pid
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PrintMotd no
Subsystem sftp internal-sftp
"""
CONFIG = f"""
seed: 1
duration: 3s
warmup: 500ms
paths:
  forward:
    - link: {{rate: 20Mbit, queue: {{fifo: {{limit: 100pkt}}}}}}
    - delay: {{delay: 5ms}}
  reverse: [{{delay: {{delay: 5ms}}}}]
flows: [{{count: 4, cc: copa, jitter: 100ms, stop: 2500ms}}]
telemetry: {{level: 3, interval: 100ms}}
live:
  switch:
    lcores: [{LCORE}]
    hugepages: no
    start: traffic
    ports:
      - {{name: left, dev: net_null0, path: reverse}}
      - {{name: right, dev: net_null1, path: forward}}
  sender:
    lcores: [{CPUS[0]}]
    hugepages: no
    answer: 30s
    ports: [{{name: a, role: sender, dev: net_null0}}]
  receiver:
    lcores: [{CPUS[0]}]
    hugepages: no
    ports: [{{name: b, role: receiver, dev: net_null0}}]
"""
PORTS = {
    "tx": {"a": {"dev": "eth1", "cable": "mid/left"}},
    "mid": {"left": "left", "right": "right"},
    "rx": {"b": {"dev": "eth1", "cable": "mid/right"}},
}
PORTS |= {"tx2": PORTS["tx"], "rx2": PORTS["rx"]}
GROUPS = {"tx": "sender", "mid": "switch", "rx": "receiver", "tx2": "sender", "rx2": "receiver"}


def netns_pids(space):
    """The processes in a namespace."""
    done = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


class Bed(Lab):
    """The namespaces, an sshd in each host's, and weir in the client's."""

    def make(self):
        self.home = self.tmp / "ssh"
        self.home.mkdir()
        self.hosts = {}
        Path("/run/sshd").mkdir(exist_ok=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.home / "key"], check=True
        )
        self.namespace("client")
        self.ip(
            "client", "link add br0 type bridge", f"addr add {CLIENT} dev br0", "link set br0 up"
        )
        for name in HOSTS:
            self.add(name)
        for host, port in (("tx", "left"), ("rx", "right")):
            self.ip("mid", f"link add {port} type veth peer name eth1 netns {self.space(host)}")
            self.up(host, "eth1")
            self.up("mid", port)

    def add(self, name):
        """A host on the management network."""
        self.hosts[name] = (HOSTS | MORE)[name]
        self.namespace(name)
        self.attach("client", "br0", name, name, "eth0")
        self.ip(name, f"addr add {self.hosts[name]}/24 dev eth0", "link set eth0 up")
        self.sshd(name)

    def attach(self, space, bridge, port, host, interface):
        """A cable from a bridge's port to a host's interface."""
        peer = f"peer name {interface} netns {self.space(host)}"
        self.ip(space, f"link add name {port} type veth {peer}")
        self.ip(space, f"link set dev {port} master {bridge} up")

    def join(self):
        """tx2 beside tx, and rx2 beside rx: an Ethernet switch, a bridge, before either port."""
        self.namespace("fabric")
        for bridge, port, hosts in ("br1", "left", ("tx", "tx2")), ("br2", "right", ("rx", "rx2")):
            self.ip("mid", f"link del {port}")
            self.ip("fabric", f"link add {bridge} type bridge", f"link set {bridge} up")
            self.add(hosts[1])
            for host, link in (("mid", port), (hosts[0], "eth1"), (hosts[1], "eth1")):
                self.attach("fabric", bridge, host + port, host, link)
                self.up(host, link)

    def __exit__(self, *details):
        for name in self.hosts:  # sessions of sshd are in no group of ours
            self.end_host(name)
        super().__exit__(*details)

    def end_host(self, name):
        """Kills all that runs in a host's namespace, its sshd too."""
        for pid in netns_pids(self.space(name)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ip(self, space, *lines):
        for line in lines:
            subprocess.run(["ip", "-n", self.space(space), *line.split()], check=True)

    def sshd(self, name, *inside):
        """The daemon of a host; inside: what it runs in, such as a mount namespace."""
        path = self.home / f"{name}.conf"
        path.write_text(SSHD.format(address=self.hosts[name], folder=self.home, name=name))
        child = Child(self.enter(name, *inside, "/usr/sbin/sshd", "-D", "-e", "-f", path))
        self.children.append(child)
        wait_for((self.home / f"{name}.pid").exists, lambda: f"sshd: {child.err}")
        return child

    def inventory(self, **change):
        """An inventory; change: variables of a host, or None for a host that is left out."""
        ssh = (
            f"-i {self.home}/key -o StrictHostKeyChecking=no "
            f"-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        )
        groups = {}
        for name in self.hosts:
            mine = change.get(name, {})
            if mine is None:
                continue
            group = mine.get("group", GROUPS[name])
            hosts = groups.setdefault(group, {"hosts": {}})["hosts"]
            hosts[name] = {"ansible_host": self.hosts[name], "weir_ports": PORTS[name]}
            hosts[name] |= {"weir_tmp": str(self.tmp)}
            hosts[name] |= {key: value for key, value in mine.items() if key != "group"}
        variables = {"ansible_ssh_common_args": ssh, "ansible_python_interpreter": sys.executable}
        path = self.tmp / "inventory.json"
        path.write_text(json.dumps({"all": {"vars": variables, "children": groups}}))
        return path

    def weir(self, *options, inventory=None, config=CONFIG, out=None):
        """Starts `weir run --live --hosts` in the client's namespace."""
        path = self.config(textwrap.dedent(config))
        out = out or self.tmp / "run"
        shutil.rmtree(out, ignore_errors=True)
        argv = [sys.executable, "-m", "weir", "run", path, "--live", "--no-report", "--out", out]
        argv += ["--hosts", inventory or self.inventory(), *options]
        child = self.host("client", "env", f"WEIR_BUILD={self.build}", *argv)
        child.folder = Path(out)
        return child

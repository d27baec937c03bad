# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the virtual machine: does the checks of /out/request.json, each with its own answer.

The answers go to /out/answers.json, and run folders to /out, which is a folder of the test. A line
on the console that begins with "ask" is a request to the hypervisor (machine.py).

    card 1 ---- eth0 of namespace a        card 3 ---- card 4
    card 2 ---- eth0 of namespace b

Emulated, each file that Python imports takes a while: what tests/smoke imports is too much here.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path

HERE = Path(os.environ["WEIR_TESTS"])
sys.path.insert(0, str(HERE))

import waiting  # noqa: E402
from weir.live import pci  # noqa: E402
from weir.runner.child import Child  # noqa: E402

OUT = Path("/out")
BUILD = Path(os.environ["WEIR_BUILD"])
PEER = HERE / "smoke/peer.py"
ADDRESS = {"a": "198.18.0.1", "b": "198.19.0.1"}
BYTES = 400_000
LCORE = 1  # of two CPUs
START_S = 900  # emulated, and read through 9p for the first time
HEAD = """
seed: 1
telemetry: {level: 3, interval: 100ms, arrivals: yes}
paths:
  forward: [{link: {rate: 4Mbit, queue: {fifo: {limit: 20pkt}}}}, {delay: {delay: 5ms}}]
  reverse: [{delay: {delay: 5ms}}]
live:
  allow_nic: yes
  test_any_tsc: yes
"""
SWITCH = """  switch:
    lcores: [%s]
    hugepages: yes
    ports:
      - {name: left, dev: "%s", path: reverse%s}
      - {name: right, dev: "%s", path: forward%s}
"""
LOOP = """
seed: 1
duration: 15s
flows: [{count: 2, cc: {fixed: {rate: 1Mbit}}, source: {size: {bytes: 200000}}}]
live:
  allow_nic: yes
  test_any_tsc: yes
  sender:
    lcores: [%d]
    hugepages: yes
    answer: 60s
    ports:
      - {name: a, role: sender, dev: "%s"}
      - {name: b, role: receiver, dev: "%s"}
"""


def wait_for(condition, what=""):
    """As other tests wait, but for what is a hundred times slower here."""
    return waiting.wait_for(condition, what, START_S)


def ask(command, **arguments):
    """Has the hypervisor do something. It answers by doing it, which the guest sees."""
    print("ask", json.dumps({"execute": command, "arguments": arguments}), flush=True)


def say(*words):
    print("say", Path("/proc/uptime").read_text().split()[0], *words, flush=True)


def sh(*argv, check=True):
    done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{argv}: {done.stderr}{done.stdout}")
    return done.stdout


def enter(space, *argv):
    return ["nsenter", f"--net=/run/netns/{space}", *argv]


def card(number, slot=0):
    """The card in a root port, or in a slot of the bridge, number 5."""
    found = sorted(Path(f"/sys/bus/pci/devices/0000:00:1{number}.0").glob(f"0000:??:0{slot}.0"))
    return pci.Card(Path("/sys/bus/pci/devices", found[0].name)) if found else None


def wait_link(name, *space):
    """Waits until an interface has a link: cards take a while, also after a change of their MTU."""
    wait_for(lambda: "LOWER_UP" in sh("ip", *space, "link", "show", name), f"{name}'s link")


def hosts():
    """Two namespaces, each with a card of the kernel."""
    for host, number in (("a", 1), ("b", 2)):
        mac = f"02:00:00:00:00:1{number}"
        found = Path("/sys/class/net").glob("*/address")
        link = next(path.parent.name for path in found if path.read_text().strip() == mac)
        sh("ip", "netns", "add", host)
        sh("ip", "link", "set", link, "netns", host, "name", "eth0")
        sh("ip", "-n", host, "addr", "add", f"{ADDRESS[host]}/15", "dev", "eth0")
        sh("ip", "-n", host, "link", "set", "eth0", "up")


class Switch(Child):
    """weir-switch between cards 1 and 2, ready."""

    last = None  # the one of the present check

    def __init__(self, name, lcores=str(LCORE), port="", *options):
        self.folder = Path("/tmp", name)
        config = Path(f"/tmp/{name}.yaml")
        devices = [word for number in (1, 2) for word in (card(number).address, port)]
        config.write_text(HEAD + SWITCH % (lcores, *devices))
        program = BUILD / "switch/weir-switch"
        changes = [word for option in options for word in ("-o", option)]
        argv = [program, config, "--out", self.folder, "--progress", "--duration", "600s", *changes]
        super().__init__(argv, first=False)
        Switch.last = self
        wait_for(lambda: not self.running or '{"ready": true}' in self.err, lambda: self.err)
        if not self.running:
            raise RuntimeError(f"weir-switch: {self.sentences()}")
        wait_for(lambda: all(self.up()), "links")  # cards take a while to agree on their rate

    def sentences(self):
        return [line for line in self.err if line and not line.startswith("{")]

    def asked(self, command):
        """What it answers through rte_telemetry's socket."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(60)
            client.connect("/var/run/dpdk/weir-switch/dpdk_telemetry.v2")
            client.recv(1024)  # who is there
            client.send(command.encode())
            return json.loads(client.recv(16384))[command.split(",")[0]]

    def up(self):
        """Whether each port's link is up."""
        found = self.asked("/weir/ports")
        return [False] if "error" in found else [port["up"] for port in found.values()]

    def end(self):
        """Stops it and keeps its folder in /out."""
        self.send(signal.SIGINT)
        status = self.wait(120)
        if self.folder.exists():
            shutil.copytree(self.folder, OUT / self.folder.name)
        ended = 0 if status == 128 + signal.SIGINT else status
        return {"status": ended, "said": self.sentences()}


def ping(count=5, size=56, *more, to=ADDRESS["b"]):
    """The number of answers, until there are so many or for a minute: without that limit ping does
    not wait for one that is later than all before it.
    """
    argv = f"ping -n -i 0.2 -c {count} -s {size} -w 60".split()
    said = sh(*enter("a", *argv, *more, to), check=False)
    return said.count(" time=")


def bulk(size=BYTES, flows=1):
    """TCP of the kernels from a to b; what the receiver counted."""
    sink = Child(enter("b", sys.executable, PEER, "sink", 5001, flows), first=False)
    wait_for(lambda: "listening" in sink.out, "the sink")
    argv = [sys.executable, PEER, "source", ADDRESS["b"], 5001, flows, size]
    source = Child(enter("a", *argv), first=False)
    try:
        if source.wait(200) != 0 or sink.wait(60) != 0:
            raise RuntimeError(f"{source.err} {sink.err}")
    finally:
        source.kill()
        sink.kill()
    return json.loads(sink.out[-1])


def forward():
    """Pings, a transfer, a link off and on: one run, with all records."""
    switch = Switch("forward")
    say("ready")
    found = {"pings": ping(10), "bytes": bulk()}
    say("sent")
    for state in (False, True):
        ask("set_link", name="card1", up=state)
        wait_for(lambda state=state: bool(switch.up()[0]) == state, f"link {state}")
    say("link")
    return found | {"again": ping(5), **switch.end()}


def sender(name="sender", first=None, second=None):
    """weir-sender over a cable between two cards, or what stands for them."""
    config = Path(f"/tmp/{name}.yaml")
    addresses = (first or card(3)).address, (second or card(4)).address
    config.write_text(LOOP % (LCORE, *addresses))
    program = BUILD / "sender/weir-sender"
    done = Child([program, config, "--out", OUT / name], first=False)
    return {"status": done.wait(300), "said": done.err}


def bench():
    """`weir bench cards`, allowed to run with this clock."""
    from rich.console import Console
    from weir.bench import cards
    from weir.bench.rounds import Rounds

    config, screen = cards.config, Console(file=io.StringIO())
    cards.config = lambda *of: config(*of).replace("live:", "live:\n  test_any_tsc: yes", 1)
    pair = [card(number).address for number in (3, 4)]
    result = cards.measure(pair, [LCORE], 2.0, Rounds(1, screen, alone=True))
    return json.loads(result.json())


def sriov():
    """weir-sender over virtual functions; the kernel has the cards."""
    whole = [card(3), card(4)]
    pci.unbind(whole)
    for one in whole:
        sh("ip", "link", "set", one.interfaces[0], "up")
        (one.folder / "sriov_numvfs").write_text("1")
        wait_link(one.interfaces[0])
    functions = [pci.Card((one.folder / "virtfn0").resolve()) for one in whole]
    pci.bind(functions)
    found = sender("sriov", *functions)
    for one in whole:
        (one.folder / "sriov_numvfs").write_text("0")
    pci.bind(whole)
    return found


def frames():
    """Packets of 8000 bytes, which are not to be fragmented; frames with a VLAN tag; checksums and
    segmentation of the hosts by the card and by the kernel.
    """
    switch = Switch("frames", str(LCORE), "", "live.mtu=9000B")
    found = {}
    for host in "ab":
        net = ADDRESS[host].replace("198.1", "10.1")
        sh("ip", "-n", host, "link", "add", "link", "eth0", "name", "tag", "type", "vlan", "id", 7)
        sh("ip", "-n", host, "addr", "add", f"{net}/8", "dev", "tag")
        sh("ip", "-n", host, "link", "set", "tag", "up")
    found["vlan"] = ping(5, 1472, to="10.19.0.1")
    for state in ("on", "off"):
        for host in "ab":
            words = ("tx", state, "rx", state, "sg", state, "tso", state)
            sh(*enter(host, "ethtool", "-K", "eth0", *words), check=False)
        shown = sh(*enter("a", "ethtool", "-k", "eth0"))
        found[state] = [f"tx-checksumming: {state}" in shown, bulk(BYTES // 4)["bytes"]]
    for host in "ab":
        sh("ip", "-n", host, "link", "set", "eth0", "mtu", 9000)
        wait_link("eth0", "-n", host)
    found["jumbo"] = ping(5, 8000, "-M", "do")
    for host in "ab":
        sh("ip", "-n", host, "link", "set", "eth0", "mtu", 1500)
        sh("ip", "-n", host, "link", "del", "tag")
    return found | switch.end()


def lcores():
    """Two lcores, which both receive from both cards if the cards have two queues."""
    refused = None
    try:
        switch = Switch("lcores", "0, 1", ", rx_queues: 2")
    except RuntimeError as error:
        refused = str(error)
        switch = Switch("lcores", "0, 1")
    found = {"refused": refused, "pings": ping(5), "bytes": bulk(BYTES // 40, 10)["bytes"]}
    return found | switch.end()


def unplug():
    """A card is taken away while the switch runs, and given back."""
    switch = Switch("unplug")
    found = {"pings": ping(3)}
    ask("device_del", id="card1")
    wait_for(lambda: not switch.running, "the end of the switch")
    found |= switch.end()
    wait_for(lambda: card(1) is None, "the card to go")
    ask("device_add", **json.loads((OUT / "request.json").read_text())["card1"])
    wait_for(lambda: card(1) and card(1).driver, "the kernel's driver to have the card")
    pci.bind([card(1)])
    switch = Switch("replug")
    return found | {"again": ping(3), "after": switch.end()}


def drivers():
    """Cards go to the kernel's own drivers and come back, as `weir setup cards` has them."""
    cards = [card(number) for number in (1, 2)]
    before = [one.driver for one in cards]
    pci.unbind(cards)
    back = [one.driver for one in cards]
    links = wait_for(lambda: [one.interfaces for one in cards if one.interfaces], "interfaces")
    pci.bind(cards)
    return {
        "before": before,
        "back": back,
        "interfaces": [len(names) for names in links],
        "after": [one.driver for one in cards],
    }


def doctor():
    """Wrong states: doctor's row of each, and its state after the command that the row names.

    Also what weir-switch and weir setup say in them.
    """
    from weir.cli import app
    from weir.cli.cards import cards
    from weir.cli.doctor import memory
    from weir.cli.host import Host

    rows, said = {}, {}

    def row(name):
        found = [*memory(Host()), *cards(Host())]
        return next((each for each in found if each.name.endswith(name)), None)

    def mended(name, state=None):
        """Notes a row, and its state after its command."""
        wrong = row(name)
        rows[state or name] = [wrong.state, wrong.found, wrong.meaning, wrong.fix]
        if wrong.fix.startswith("weir "):
            weir(state or name, *wrong.fix.split()[1:])
        else:
            sh("sh", "-c", wrong.fix.partition(" (")[0])
        after = row(name)  # an interface that is well has none
        rows[state or name].append(after.state if after else "ok")

    def switch(state):
        try:
            said[state] = Switch("wrong").end()["said"]
        except RuntimeError as error:
            said[state] = str(error)

    def weir(state, *words):
        """Runs a command, in this process: imports take half a minute."""
        sys.argv = ["weir", *words, "--yes"]
        with contextlib.redirect_stderr(io.StringIO()) as err:
            said[state] = [app.main(), err.getvalue()]

    one = card(1)
    if not one.group:
        rows["IOMMU"] = [getattr(row("IOMMU"), key) for key in ("state", "found", "fix")]
        switch("IOMMU")
        weir("setup", "setup", "cards", one.address)
        return {"rows": rows, "said": said}
    unsafe, pages = Path("/", pci.UNSAFE), Path("/proc/sys/vm/nr_hugepages")
    had = pages.read_text()
    pages.write_text("0")
    switch("hugepages")
    mended("hugepages")
    pages.write_text(had)
    unsafe.write_text("0")
    switch("interrupt remapping")
    mended("interrupt remapping")
    pci.unbind([one])
    (name,) = wait_for(lambda: one.interfaces, "its interface")
    switch("card")
    for what in ("pause frames", "RX ring"):
        mended(f"{name} {what}", what)
    sh("ip", "addr", "add", "10.9.9.9/24", "dev", name)
    sh("ip", "link", "set", name, "up")
    weir("route", "setup", "cards", name)
    rows["route"] = [getattr(row(one.address), key) for key in ("state", "found", "meaning")]
    sh("ip", "link", "set", name, "down")
    mended(one.address, "kernel")
    first, second = (card(5, slot) for slot in (1, 2))
    weir("half a group", "setup", "cards", first.address)
    pci.bind([first])
    mended(first.address, "group")
    pci.unbind([first, second])
    return {"rows": rows, "said": said}


def main():
    request = json.loads((OUT / "request.json").read_text())
    answers = {}
    say("begins")
    for module in ("e1000e", "e1000", "vmxnet3", "virtio_net", "igb", "8021q"):
        sh("modprobe", module)
    if card(1).group:
        pci.bind([card(number) for number in (1, 2, 3, 4)])
    hosts()
    for name in request["checks"]:
        say(name)
        try:
            answers[name] = globals()[name]()
        except Exception as error:
            trace = traceback.format_exc()
            answers[name] = {"failed": f"{type(error).__name__}: {error}", "trace": trace}
            if Switch.last is not None:
                Switch.last.kill()
        (OUT / "answers.json").write_text(json.dumps(answers, indent=1))
    say("ends")


if __name__ == "__main__":
    main()

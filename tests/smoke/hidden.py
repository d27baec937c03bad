# SPDX-License-Identifier: BSD-3-Clause
"""Paths with a hidden bottleneck, between two namespaces, for `weir measure` and `weir fit`.

    a ---- left [ weir-switch ] right ---- b

The bottleneck is the switch's link, or the kernel's tbf behind a switch that only delays and loses.
As a program it measures twenty of them, and prints true and fitted values:

    .venv/bin/python tests/smoke/hidden.py [--count 20] [--seed 1] [--out DIR]
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab import ADDRESS, Lab, wait_for
from weir.runner.child import Child

SSHD = """
ListenAddress {address}
Port {port}
HostKey {folder}/key
PidFile {folder}/pid
AuthorizedKeysFile {folder}/key.pub
StrictModes no
UsePAM no
PrintMotd no
"""
SSH_PORT = 2222
PACKETS_MIN = 15  # of a buffer: of fewer, half a packet would be more than 3 %
FRAME = {"switch": 1518, "tbf": 1514}  # bytes that a queue counts of an IP packet of 1500


@dataclass(frozen=True)
class Network:
    """A path; buffer in BDP, of which the limit in bytes follows."""

    kind: str
    rate_bps: float
    rtt_ms: float
    buffer: float
    loss: float
    download: bool = False

    @property
    def limit(self):
        """In bytes; half a packet more changes nothing, but is between limits that act alike."""
        bdp = self.rate_bps * self.rtt_ms / 8e3
        frame = FRAME[self.kind]
        return max(int(bdp * self.buffer / frame), PACKETS_MIN) * frame + frame // 2

    @property
    def buffer_bytes(self):
        """The limit of a link of Weir's that is equal, which the frame on the wire is not in.

        tbf counts the packet that waits for its tokens, and Ethernet's header without the checksum.
        """
        return self.limit if self.kind == "switch" else (self.limit / FRAME["tbf"] - 1) * 1518

    @property
    def ip_bps(self):
        """Of IP packets: tbf counts Ethernet's header too."""
        return self.rate_bps * (1500 / 1514 if self.kind == "tbf" else 1)

    @property
    def paths(self):
        half = f"delay: {{delay: {self.rtt_ms / 2}ms}}"
        queue = f"queue: {{fifo: {{limit: {self.limit}B}}}}"
        link = f"link: {{rate: {self.rate_bps:.0f}bit, framing: ip, {queue}}}"
        links = [f"{{{link}}}"] if self.kind == "switch" else []
        stages = [f"{{loss: {{rate: {self.loss}}}}}", *links, f"{{{half}}}"]
        return f"{{forward: [{', '.join(stages)}], reverse: [{{{half}}}]}}"

    def errors(self, model):
        """Relative errors of a fitted model; None: not known."""
        true = {
            "rate_bps": self.ip_bps,
            "base_rtt_ns": self.rtt_ms * 1e6,
            "buffer_bytes": self.buffer_bytes,
        }
        return {
            name: None if model[name] is None else model[name] / value - 1
            for name, value in true.items()
        }


def drawn(count, seed):
    """Networks whose values are spread evenly in their logarithms."""
    draw = random.Random(seed)

    def between(low, high):
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    return [
        Network(
            ("switch", "tbf")[n % 2],
            round(between(5e6, 200e6)),
            round(between(5, 150), 1),
            round(between(0.3, 4), 2),
            round(draw.uniform(0, 0.005), 5) if draw.random() < 0.7 else 0.0,
        )
        for n in range(count)
    ]


class Hidden(Lab):
    """The network, with an sshd at the far end; weir runs at the near one. Data go from a to b."""

    def __init__(self, tmp_path, build, network):
        super().__init__(tmp_path, build)
        self.network = network
        self.near, self.far = "ba" if network.download else "ab"
        self.to = ADDRESS[self.far]

    def make(self):
        super().make()
        if self.network.kind == "tbf":
            self.tap("right")
            # Of 2 ms at least: the kernel's timer may be late, and what is above is lost.
            burst = max(4 * FRAME["tbf"], round(self.network.rate_bps / 8 * 0.002))
            limit = ("burst", burst, "limit", self.network.limit)
            rate = f"{self.network.rate_bps:.0f}bit"
            self.sh("sw", "tc", "qdisc", "add", "dev", "tap", "root", "tbf", "rate", rate, *limit)
        self.switch(self.network.paths, duration="1h")
        self.home = self.tmp / "ssh"
        self.home.mkdir()
        Path("/run/sshd").mkdir(exist_ok=True)
        key = self.home / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        self.ssh = (
            f"ssh -p {SSH_PORT} -i {key} -o StrictHostKeyChecking=no"
            " -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        )

    def sshd(self, more=""):
        """The daemon; more: a line of its configuration."""
        text = more + SSHD.format(address=self.to, port=SSH_PORT, folder=self.home)
        (self.home / "conf").write_text(text)
        # Not through host(): its sessions leave its process group, and end with their clients.
        child = Child(self.enter(self.far, "/usr/sbin/sshd", "-D", "-e", "-f", self.home / "conf"))
        self.children.append(child)
        wait_for((self.home / "pid").exists, lambda: f"sshd: {child.err}")
        return child

    def weir(self, *words, **more):
        """Starts weir at the near end of the path, with more variables."""
        named = {"WEIR_BUILD": self.build, **more}
        variables = [f"{name}={value}" for name, value in named.items()]
        return self.host(self.near, "env", *variables, sys.executable, "-m", "weir", *words)

    def measure(self, out, *options):
        """Measures and fits; returns the model."""
        self.sshd()
        words = ("measure", self.to, "--ssh", self.ssh, "--out", out, "--no-report", *options)
        words += ("--download",) if self.network.download else ()
        for argv in (words, ("fit", out, "--no-run", "--json")):
            child = self.weir(*argv)
            assert child.wait(120) == 0, child.err
        return json.loads("\n".join(child.out))


COLUMNS = ("kind", "Mbit/s", "fitted", "RTT ms", "fitted", "kB", "fitted", "loss %", "interval")


def row(network, model):
    """The true values and the model's, with its errors."""

    def fitted(name, scale, error):
        value = model[name]
        return "-" if value is None else f"{value / scale:.4g} ({100 * error:+.1f}%)"

    errors = network.errors(model)
    names = ("rate_bps", 1e6), ("base_rtt_ns", 1e6), ("buffer_bytes", 1e3)
    rate, rtt, buffer = (fitted(name, scale, errors[name]) for name, scale in names)
    low, high = model["loss_low"], model["loss_high"]
    loss = "-" if low is None else f"{100 * low:.3f} to {100 * high:.3f}"
    true = network.ip_bps / 1e6, network.rtt_ms, network.buffer_bytes / 1e3, 100 * network.loss
    return [
        network.kind, f"{true[0]:.4g}", rate, f"{true[1]:.4g}", rtt,
        f"{true[2]:.4g}", buffer, f"{true[3]:.3f}", loss,
    ]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", default="6")
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the programs, as Ctrl-C does
    build = Path(os.environ.get("WEIR_BUILD", "build")).resolve()
    print(*COLUMNS, sep=" | ", flush=True)
    within = known = 0
    for number, network in list(enumerate(drawn(args.count, args.seed)))[args.first :]:
        with tempfile.TemporaryDirectory() as place, Hidden(place, build, network) as lab:
            out = (args.out or Path(place)).absolute() / f"run{number}"
            try:
                model = lab.measure(out, "--seconds", args.seconds)
            except AssertionError as error:
                print(network, error, flush=True)
                continue
        print(*row(network, model), sep=" | ", flush=True)
        errors = network.errors(model).values()
        known += sum(error is not None for error in errors)
        within += sum(error is not None and abs(error) <= 0.05 for error in errors)
    print(f"{within} of {known} fitted values are within 5 %")


if __name__ == "__main__":
    main()

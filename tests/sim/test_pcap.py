# SPDX-License-Identifier: BSD-3-Clause
"""What the flows would put on the wire, as tshark reads it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

LOSSY = """
seed: 3
duration: 10s
paths:
  forward:
    - loss: {rate: 1%}
    - link: {rate: 20Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 4, cc: newreno, source: {size: {bytes: 2MB}}}
  - {count: 2, cc: copa, stop: 8s}
telemetry: {level: 1}
"""


def fields(pcap: Path, display_filter: str, *names: str) -> list[list[str]]:
    """The fields of the frames that pass a display filter."""
    argv = ["tshark", "-r", str(pcap), "-Y", display_filter, "-T", "fields"]
    for name in names:
        argv += ["-e", name]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_tshark_agrees(weir_sim: Path, tmp_path: Path) -> None:
    """No malformed packet, as many retransmissions as we count, all the payload, both ends."""
    config, pcap = tmp_path / "lossy.yaml", tmp_path / "lossy.pcap"
    config.write_text(LOSSY)
    subprocess.run(
        [weir_sim, config, "--out", tmp_path / "run", "--pcap", pcap], check=True, timeout=60
    )
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    again = "tcp.analysis.retransmission || tcp.analysis.out_of_order"

    assert fields(pcap, "_ws.malformed || ip.checksum.status == 0", "frame.number") == []
    found = len(fields(pcap, f"tcp.dstport == 5001 && ({again})", "frame.number"))
    assert found == sum(g["retransmits"] for g in summary["groups"])
    assert found > 100
    assert len(fields(pcap, "tcp.flags.syn == 1 && tcp.flags.ack == 0", "frame.number")) == 6
    streams = {row[0] for row in fields(pcap, "tcp.flags.fin == 1", "tcp.stream")}
    assert len(streams) == 6
    # All of it was acknowledged: the receiver's last ACK covers the data, SYN and FIN.
    acks = [
        int(row[0])
        for row in fields(
            pcap, "tcp.srcport == 5001 && tcp.dstport == 10000 && tcp.flags.fin == 1", "tcp.ack"
        )
    ]
    assert max(acks) == 2_000_000 + 2

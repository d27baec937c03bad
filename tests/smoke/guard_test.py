# SPDX-License-Identifier: BSD-3-Clause
"""A generator stays in its testbed: which ports and addresses are refused, and how."""

import os

import pytest
from lab import ADDRESS, LCORE, Lab
from sender_test import sender

ALLOW = "set live.allow_nic: yes if its network is yours"
# A bridge may have a card behind it; nothing is behind this one.
BRIDGE = f"dev: packets leave this machine through 'br0' (driver bridge); {ALLOW}"


@pytest.fixture(scope="module")
def lab(weir_switch, weir_sender, tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("lab"), build) as lab:
        lab.sh("sw", "ip", "link", "add", "br0", "type", "bridge")
        yield lab


def switch(lab, dev, *options):
    config = f"""
duration: 200ms
paths: {{forward: [{{delay: {{delay: 1ms}}}}]}}
live:
  switch:
    lcores: [{LCORE}]
    prefix: weirguard{os.getpid()}
    ports: [{{name: in, dev: "{dev}"}}, {{name: out, dev: net_null1, path: forward}}]
"""
    return lab.start("switch/weir-switch", config, *options)


@pytest.mark.parametrize(
    ("dev", "options", "status", "sentence"),
    [
        ("net_af_packet0,iface=br0", (), 2, BRIDGE),
        ("net_af_xdp0,iface=br0", (), 2, BRIDGE),
        ("net_pcap0,iface=br0", (), 2, BRIDGE),
        ("net_pcap0,rx_iface=left,tx_iface=br0", (), 2, BRIDGE),
        ("net_tap0,iface=tap0,remote=br0", (), 2, BRIDGE),
        ("0000:1f:1f.7", (), 2, f"dev: 0000:1f:1f.7 is a physical port; {ALLOW}"),
        (
            "net_pcap0",
            ("--", "--vdev", "net_pcap0,iface=left"),
            2,
            "DPDK brought up 'net_pcap0', named after '--' (-a or --vdev); name it as a port's "
            f"`dev` instead, or {ALLOW}",
        ),
        (
            "net_null0",
            ("--", "--vde=net_null7"),
            2,
            "DPDK brought up 'net_null7', named after '--' (-a or --vdev); name it as a "
            f"port's `dev` instead, or {ALLOW}",
        ),
        (
            "net_failsafe0,dev(0000:1f:1f.7)",
            (),
            2,
            "dev: 'net_failsafe0' stands on other ports, which may be physical; "
            "set live.allow_nic: yes if their network is yours",
        ),
    ],
)
def test_ports_that_lead_out_are_refused(lab, dev, options, status, sentence):
    child = switch(lab, dev, *options)
    assert child.wait() == status
    assert len(child.sentences()) == 1, child.err
    assert child.sentences()[0].endswith(sentence)
    assert not child.folder.exists()


def test_a_port_that_leads_out_can_be_allowed(lab):
    lab.sh("sw", "ip", "link", "set", "br0", "up")
    child = switch(lab, "net_af_packet0,iface=br0", "-o", "live.allow_nic=yes")
    assert child.wait() == 0, child.err


def test_others_than_test_addresses_get_no_answer(lab):
    paths = "{forward: [{delay: {delay: 1ms}}], reverse: [{delay: {delay: 1ms}}]}"
    bottleneck = lab.switch(paths)
    lab.sh("a", "ip", "addr", "add", "10.9.0.1/24", "dev", "eth0")
    child = sender(lab, "receiver", "b")
    assert child.ready(), child.err
    assert len(lab.ping(count=5)) >= 3

    def asks(source, timeout):
        """One ping, and one attempt to connect, from that address."""
        at = (ADDRESS["b"], 5001)
        also = f"timeout={timeout}, source_address=('{source}', 0)"
        connect = f"socket.create_connection({at}, {also})"
        lab.sh("a", "ping", "-c", 3, "-i", 0.1, "-W", 1, "-I", source, ADDRESS["b"], check=False)
        return lab.host("a", "python3", "-c", f"import socket; {connect}").wait() == 0

    assert asks(ADDRESS["a"], 30)
    assert not asks("10.9.0.1", 2)
    assert child.stop() == 0
    assert bottleneck.stop() == 0
    summary = child.summary()
    port = summary["sender_ports"][0]
    assert port["rx_outside"] >= 4  # three pings and a SYN at least
    assert summary["receivers"]["open"] + summary["receivers"]["done"] == 1
    assert summary["ledger"]["balanced"]


def test_what_a_driver_does_not_count_is_not_known(lab):
    """A tap of DPDK's loses frames and counts none: 0 of them was said to be lost."""
    child = switch(lab, "net_tap0", "-o", "live.switch.start=now")
    assert child.wait() == 0, child.err
    missed = {port["name"]: port["driver_missed"] for port in child.summary()["ports"]}
    assert missed == {"in": None, "out": 0}


def test_a_card_that_is_not_there_is_said_not_to_be_there(lab):
    child = switch(lab, "0000:1f:1f.7", "-o", "live.allow_nic=yes")
    assert child.wait() == 1
    assert child.sentences()[0].endswith(
        "dev: DPDK has no port '0000:1f:1f.7': there is no such PCI device (lspci -D lists them)"
    )

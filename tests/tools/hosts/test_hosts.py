# SPDX-License-Identifier: BSD-3-Clause
"""Runs over several hosts, as far as that needs none: inventories, cables, ledger, clocks."""

import ast
import json
import random
import struct
import subprocess
import sys
import time
from xml.etree import ElementTree

import numpy as np
import pytest
import synthetic
from waiting import wait_for
from weir.analysis import folder, summary
from weir.analysis.model_parts import Fact
from weir.analysis.run_summary import decode
from weir.base.errors import UserError
from weir.hosts import agent, ansible, clocks, deployment, inventory, merge, session
from weir.runner.options import Options

TX = {"weir_ports": {"a": {"dev": "eth1", "cable": "mid/left"}}}
MID = {"weir_ports": {"left": "eth1", "right": "0000:03:00.1"}}
RX = {"weir_ports": {"b": {"dev": "net_null3", "cable": "mid/right"}}}
GROUPS = {
    "sender": {"hosts": ["tx"]},
    "switch": {"hosts": ["mid"]},
    "receiver": {"hosts": ["rx"]},
}
CONFIG = """
live:
  switch: {lcores: [1], ports: [{name: left, dev: x}, {name: right, dev: x}]}
  sender: {lcores: [0], ports: [{name: a, role: sender, dev: x}, {name: b, role: receiver, dev: x}]}
paths: {forward: [{mahimahi_link: {file: up.trace}}]}
"""


def hosts(groups=GROUPS, **variables):
    """Hosts of what ansible-inventory would print."""
    known = {"tx": TX, "mid": MID, "rx": RX} | variables
    return inventory.from_list("hosts.yaml", {"_meta": {"hostvars": known}, **groups})


def test_roles_are_groups_and_cables_have_two_ends():
    found = hosts()
    assert [(host.name, host.role) for host in found.values()] == [
        ("rx", "receiver"),
        ("mid", "switch"),
        ("tx", "sender"),
    ]
    assert found["tx"].ports == {"a": "net_af_packet0,iface=eth1,framecnt=4096"}
    assert found["mid"].ports["right"] == "0000:03:00.1"
    assert found["mid"].joined() == [("left", "tx", "a"), ("right", "rx", "b")]


def test_several_senders_may_be_joined_to_one_port():
    """By an Ethernet switch: cables and clocks are checked, of frames the least loss is known."""
    groups = GROUPS | {"sender": {"hosts": ["tx", "tx2"]}}
    found = hosts(groups, tx2=TX)
    assert found["mid"].joined()[:2] == [("left", "tx", "a"), ("left", "tx2", "a")]
    ears = [["left", "tx", "a"], ["left", "tx2", "a"], ["right", "rx", "b"]]
    tx = {"heard": [["a", "mid", "left"]], "silent": []}
    rx = {"heard": [["b", "mid", "right"]], "silent": []}
    heard = {"tx": tx, "tx2": tx, "rx": rx, "mid": {"heard": ears, "silent": []}}
    assert list(session.wrong_cables(found, heard)) == []
    heard["mid"]["heard"] = ears[1:]
    assert list(session.wrong_cables(found, heard)) == [
        ("mid", "port left should be connected to tx/a: it hears tx2/a")
    ]
    frames = {"tx": ("a", 100, 40), "tx2": ("a", 50, 21), "mid": ("left", 60, 143)}
    parts = {
        name: {
            "ports": [
                {"name": port, "tx_pkts": sent, "rx_pkts": received, "driver_missed": 0}
                for port, sent, received in [frames.get(name, ("b", 7, 7))]
            ],
            "ledger": {"balanced": True},
        }
        for name in found
    }
    between = [one for one in merge.cables(found, parts) if "tx/a" in one["from"] + one["to"]]
    assert between == [
        {
            "from": "mid/left",
            "to": "tx/a, tx2/a",
            "sent": 60,
            "received": 61,  # a flooded frame reached both
            "lost": None,
            "lost_at_least": 0,
        },
        {
            "from": "tx/a, tx2/a",
            "to": "mid/left",
            "sent": 150,
            "received": 143,
            "lost": None,
            "lost_at_least": 7,
        },
    ]
    assert merge.arrived(between)
    assert [fault["sentence"] for fault in merge.lost(between)] == [
        "at least 7 of 150 frames that left tx/a, tx2/a did not reach mid/left"
    ]
    whole = decode({"ledger": {"between_hosts": between}}, "x").ledger
    assert summary.ledger_lines(whole)[-1] == (
        "tx/a, tx2/a to mid/left: 150 sent, 143 received, at least 7 lost"
    )
    del parts["tx2"]
    assert not [one for one in merge.cables(found, parts) if "tx/a" in one["from"] + one["to"]]


@pytest.mark.parametrize(
    ("groups", "variables", "said"),
    [
        ({}, {}, "hosts.yaml: no host is in the group sender or switch"),
        (
            GROUPS | {"kernel": {"hosts": ["tx"]}},
            {},
            "tx is in the groups sender and kernel",
        ),
        (
            GROUPS,
            {"tx": {"weir_port": {}}},
            "tx: weir_port is no variable of weir: weir_dir,",
        ),
        *(
            (GROUPS, {"tx": {f"weir_{name}": value}}, f"hosts.yaml: tx: weir_{said}")
            for name, value, said in (
                ("ports", ["eth1"], "ports: expected `object`, got `array`: weir_ports is the dev"),
                ("ports", {"a": 3}, "ports[...]: expected `str | object`, got `int`"),
                (
                    "ports",
                    {"a": {"dev": "e", "cable": "mid"}},
                    "ports[...].cable: expected `str` m",
                ),
                ("lcores", "2", "lcores: expected `array | null`, got `str`: weir_lcores is the C"),
                ("lcores", [1, "x"], "lcores[1]: expected `int`, got `str`"),
                ("ready", ["x"], "ready: expected `str | null`, got `array`"),
                ("hugepages", "many", "hugepages: invalid enum value 'many'"),
                ("lease", "long", "lease: expected `float`, got `str`: weir_lease is seconds"),
                (
                    "side",
                    "left",
                    "side: invalid enum value 'left': weir_side is of group kernel: s",
                ),
            )
        ),
        (
            GROUPS,
            {"tx": {"weir_ports": {"a": {"dev": "e", "cable": "mid/up"}}}},
            "there is no port mid/up",
        ),
        (
            GROUPS,
            {"rx": {"weir_ports": {"b": {"dev": "e", "cable": "mid/left"}}}},
            "mid/left is connected to rx/b, and tx/a to it too",
        ),
        (
            {"switch": {"hosts": ["mid", "tx"]}},
            {},
            "more than one host is in the group switch",
        ),
        (
            GROUPS | {"kernel": {"hosts": ["k"]}},
            {"k": {}},
            "k: a host in the group kernel needs",
        ),
    ],
)
def test_an_inventory_that_is_wrong_is_one_sentence(groups, variables, said):
    with pytest.raises(UserError) as refused:
        hosts(groups, **variables)
    assert said in str(refused.value)
    assert refused.value.status == 2


@pytest.mark.slow
def test_a_file_that_is_no_inventory_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="no such inventory"):
        inventory.read(tmp_path / "none")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("all: [\n")
    with pytest.raises(UserError, match=r"wrong.yaml"):
        inventory.read(wrong)


def test_each_host_gets_its_own_part(tmp_path):
    config = tmp_path / "x.yaml"
    config.write_text(CONFIG)
    (tmp_path / "up.trace").write_text("1\n")
    options = Options(
        config=config, out=tmp_path / "run", overrides=("live.receiver.ports.0.delay=1ms",), seed=3
    )
    made = deployment.make(options, hosts(), "id")
    receiver = made.requests["rx"]["argv"]
    assert "live.sender.ports.0.delay=1ms" in receiver
    assert receiver[-2:] == ["--duration", "24h"]
    assert not made.captures
    assert "role: receiver, dev: net_null3" in " ".join(receiver)
    assert "role: sender" not in " ".join(receiver)
    assert made.requests["tx"]["awaited"] == [("a", "mid", "left")]
    with pytest.raises(UserError, match="rx: there is no port c, only b"):
        deployment.make(options, hosts(rx={"weir_ports": {"c": "eth1"}}), "id")


def test_the_archive_answers_by_itself(weir_sim, tmp_path):
    """With nothing of weir's beside it, by any Python 3; what it says is found in a terminal's.

    It has the config and the file that this one names, not others whose names are values too.
    """
    config = tmp_path / "x.yaml"
    config.write_text(CONFIG)
    for name in ("up.trace", "left"):
        (tmp_path / name).write_text("1\n")
    made = deployment.make(Options(config=config, out=tmp_path / "run"), hosts(), "id")
    for one in made.requests.values():
        one["place"] = str(tmp_path / "place")
    path = deployment.archive(tmp_path / "agent.pyz", made, config)
    run = [sys.executable, "-I", "-S", path, "prepare", "tx"]
    done = subprocess.run(run, capture_output=True, text=True, cwd="/")
    answer = ansible.decode(f"\x1b[0m\r\n{done.stdout}\r\nShared connection closed.")
    assert done.returncode == 1  # it has no interface eth1
    assert answer["problems"] == ["port a: there is no interface eth1"]
    assert {path.name for path in (tmp_path / "place/config").iterdir()} == {"x.yaml", "up.trace"}
    done = subprocess.run([*run[:-2], "clean", "tx"], capture_output=True, text=True, cwd="/")
    assert ansible.decode(done.stdout) == {}
    assert not (tmp_path / "place").exists()


def agent_of(tmp_path, argv, lease_s):
    """Asks the agent of a host whose program is a command: ask(what, argument...)."""
    request = {
        "host": "h",
        "place": str(tmp_path / "place"),
        "space_bytes": 0,
        "lease_s": lease_s,
        "ports": {},
        "hugepages": False,
        "program": None,
        "argv": argv,
        "environment": {},
        "output": True,
        "ready": None,
    }
    path = tmp_path / "agent.pyz"
    config = tmp_path / "x.yaml"
    config.write_text("{}")
    deployment.archive(path, deployment.Deployment({}, {"h": request}, False), config)

    def ask(what, *arguments):
        argv = [sys.executable, path, what, "h", *arguments]
        return ansible.decode(subprocess.run(argv, capture_output=True, text=True).stdout)

    assert ask("prepare")["problems"] == []
    return ask


def test_a_command_begins_with_the_senders(tmp_path):
    ask, begin_s = agent_of(tmp_path, ["date", "+%s"], 30), int(time.time()) + 2
    assert ask("start", str(begin_s))["ready"]
    answer = wait_for(lambda: (found := ask("attend"))["ended"] is not None and found)
    assert answer["ended"] == 0
    assert int(answer["lines"][0]) >= begin_s
    ask("clean")


def test_a_program_ends_when_nobody_attends(tmp_path):
    ask = agent_of(tmp_path, ["sleep", "600"], 1)
    assert ask("start")["ready"]
    keeper = int((tmp_path / "place/keeper").read_text())
    assert ask("attend")["ended"] is None  # somebody did, once
    wait_for(lambda: not agent.alive(keeper))
    assert not (tmp_path / "place").exists()
    assert ask("attend")["gone"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Failed to connect to the host via ssh: ssh: port 22: No route to host",
            "No route",
        ),
        (
            "Task failed: Failed to connect to the host via ssh: ",
            "the connection was lost",
        ),
        (
            "/bin/sh: python9: not found\r\nShared connection to h closed.\r\n",
            "python9",
        ),
        (None, "None"),
    ],
)
def test_what_ansible_says_is_one_line(text, said):
    line = ansible.one_line(text)
    assert said in line
    assert "\n" not in line
    assert "Failed" not in line


def test_a_cable_that_is_elsewhere_is_named():
    right = {"heard": [["b", "mid", "right"]], "silent": []}
    left = {"heard": [["left", "tx", "a"], ["right", "rx", "b"]], "silent": []}
    good = {
        "tx": {"heard": [["a", "mid", "left"]], "silent": []},
        "mid": left,
        "rx": right,
    }
    assert list(session.wrong_cables(hosts(), good)) == []
    crossed = good | {"tx": {"heard": [["a", "mid", "right"]], "silent": []}}
    assert list(session.wrong_cables(hosts(), crossed)) == [
        ("tx", "port a should be connected to mid/left: it hears mid/right")
    ]
    unplugged = good | {"rx": {"heard": [], "silent": []}}
    assert list(session.wrong_cables(hosts(), unplugged)) == [
        ("rx", "port b should be connected to mid/right: it hears nothing")
    ]
    silent = unplugged | {"rx": {"heard": [], "silent": ["b"]}}
    assert list(session.wrong_cables(hosts(), silent)) == []


def test_what_left_and_did_not_arrive_is_between_hosts():
    sender = {"name": "a", "tx_frames": 100, "rx_frames": 50, "driver_missed": 0}
    left = {"name": "left", "tx_pkts": 50, "rx_pkts": 90, "driver_missed": 3}
    balanced = {"balanced": True}
    parts = {
        "tx": {"sender_ports": [sender], "ledger": balanced},
        "mid": {"ports": [left], "ledger": balanced},
    }
    between = [one for one in merge.cables(hosts(), parts)]
    assert {one["from"]: one["lost"] for one in between} == {"tx/a": 7, "mid/left": 0}
    assert merge.arrived(between)
    assert [fault["sentence"] for fault in merge.lost(between)] == [
        "7 of 100 frames that left tx/a did not reach mid/left"
    ]
    whole = decode({"ledger": {"between_hosts": between}}, "x").ledger
    assert summary.ledger_lines(whole)[-1] == "tx/a to mid/left: 100 sent = 93 received + 7 lost"
    sender["tx_frames"] = 80  # more arrived than were sent
    assert not merge.arrived(list(merge.cables(hosts(), parts)))


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_of_a_clock_hold(seed):
    """A planted offset and drift, and delays of which only some are small."""
    draw = random.Random(seed)
    offset_ns, drift = draw.uniform(-5e6, 5e6), draw.uniform(-20e-6, 20e-6)
    middle = 1_500_000_000
    start = 1_700_000_000 * 10**9

    def ahead(t):
        return offset_ns + drift * (t - middle)

    times = np.linspace(0, 2 * middle, 3001)
    delays = 2e4 + np.array([draw.expovariate(1 / 2e5) for _ in range(2 * len(times))])
    above = [(start + t, ahead(t) + d) for t, d in zip(times, delays, strict=False)]
    below = [(start + t, ahead(t) - d) for t, d in zip(times, delays[::-1], strict=False)]
    above, below = (np.array(points).astype(np.int64) for points in (above, below))
    found = clocks.between(above, below)
    assert found.frames == 6002
    assert found.offset_utc_ns == start + middle
    assert abs(found.offset_ns - offset_ns) <= found.offset_error_ns <= 50e3
    assert abs(found.drift_ppm - drift * 1e6) <= found.drift_error_ppm <= 100


def test_stamps_that_are_off_widen_the_bound():
    """A busy program's clock was 3 us from its kernel's, and the bound was less than that."""
    times = np.arange(0, 10**9, 10**6)
    above, below = (np.column_stack([times, 3000 + side + 0 * times]) for side in (50, -50))
    assert clocks.between(above, below).offset_error_ns < 100
    found = clocks.between(above, below, 3000)
    assert abs(found.offset_ns - 0) <= found.offset_error_ns <= 3100
    assert 0 < found.drift_error_ppm <= 7  # 2 x 3050 ns in a second


def test_clocks_that_no_line_explains_are_not_known():
    above = np.array([(0, 100), (10, 100)])
    assert clocks.between(above, np.add(above, [0, 50])).offset_ns is None  # arrived before it left
    assert clocks.between(above[:1], above).offset_ns is None
    assert clocks.between(above, above - [0, 40]).offset_ns == pytest.approx(80)


def test_clocks_and_faults_are_shown_with_their_hosts():
    clock = {
        "offset_ns": 5.05e6,
        "offset_error_ns": 8930,
        "drift_ppm": 24.9,
        "drift_error_ppm": 10,
    }
    assert summary.clock_lines(
        decode({"hosts": {"tx": clock, "mid": {"offset_ns": None}}}, "x")
    ) == ["tx: 5.05 ms ahead of the switch's, ± 8.93 µs; drift 24.9 ppm, ± 10.0 ppm"]
    assert (
        summary.sentence(Fact(cause="x", host="tx", program="sender", sentence="late"))
        == "tx: late"
    )


def test_a_frame_is_known_by_what_stays_of_it():
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 40, 7, 0, 64, 6, 0xABCD, 1, 2)
    marked = struct.pack("!BBHHHBBHII", 0x45, 3, 40, 7, 0, 63, 6, 0x1234, 1, 2)
    mac = bytes(12) + b"\x08\x00"
    assert clocks.identity(mac + ip + b"tcp") == clocks.identity(b"\1" + mac[1:] + marked + b"tcp")
    assert clocks.identity(mac + ip + b"tcp") != clocks.identity(mac + ip + b"tcP")
    assert clocks.identity(bytes(12) + b"\x08\x06" + ip) == b""
    six, marked = (struct.pack("!IHBB32x", 6 << 28 | n << 20, 3, 6, 64 - n) for n in (0, 3))
    mac = bytes(12) + b"\x86\xdd"
    assert clocks.identity(mac + six + b"tcp") == clocks.identity(b"\1" + mac[1:] + marked + b"tcp")
    assert clocks.identity(mac + six + b"tcp") != clocks.identity(mac + six + b"tcP")


def test_a_hosts_records_are_on_the_switchs_line(tmp_path):
    """A clock that is ahead and fast: what happened at one time has one time."""
    utc, middle, ahead, drift = 1_700_000_000 * 10**9, 10**9, 5_000_000, 100e-6
    true = np.arange(0, 2 * middle, 10**8)
    late = 200_000_000  # the other program starts later, and its clock shows:
    shown = utc + late + ahead + round(drift * (late - middle))
    for host, zero, times in (
        ("mid", utc, true),
        ("tx", shown, np.rint((true[2:] - late) * (1 + drift))),
    ):
        records = synthetic.empty("events", len(times))
        records["ts_ns"] = times
        synthetic.write_ring(tmp_path / f"events-{host}.ring", "events", records, utc=zero)
    clock = {
        "offset_utc_ns": utc + middle,
        "offset_ns": ahead,
        "drift_ppm": drift * 1e6,
    }
    (tmp_path / "summary.json").write_text(json.dumps({"hosts": {"mid": {}, "tx": clock}}))
    stream = folder.load(tmp_path).stream("events")
    seen = {ring.path.name: batch["ts_ns"].astype(float) for ring, batch in stream.parts()}
    np.testing.assert_allclose(seen["events-mid.ring"], true, atol=0)
    np.testing.assert_allclose(seen["events-tx.ring"], true[2:], atol=2)
    np.testing.assert_allclose(stream["ts_ns"].astype(float), [*true, *true[2:]], atol=2)
    assert (stream.records["ts_ns"] == stream["ts_ns"]).all()


@pytest.mark.slow
def test_hosts_needs_live_and_checks_without_hosts(root, tmp_path, weir_switch, weir_sender):
    """CoreScale's layout is 21 hosts; every one's config is checked here."""
    deploy = root / "tools/deploy"
    argv = [
        sys.executable,
        "-m",
        "weir",
        "run",
        "--hosts",
        deploy / "corescale-hosts.yaml",
    ]
    argv += [deploy / "corescale.yaml", "--check"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "weir: --hosts needs --live\n")
    done = subprocess.run([*argv, "--live"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    found = inventory.read(deploy / "corescale-hosts.yaml")
    assert [host.role for host in found.values()].count("sender") == 10
    done = subprocess.run(
        [*argv, "--live", "-o", "flows.0.count=x"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("receiver1: weir-sender: -o flows.0.count=x: ")


SPACE = "{http://www.geni.net/resources/rspec/3}"


@pytest.mark.slow
def test_the_profile_of_cloudlab_makes_an_inventory(root, tmp_path):
    """A manifest is the request with logins and MAC addresses."""
    folder = root / "tools/deploy/cloudlab"
    ast.parse((folder / "dumbbell.py").read_text())
    tree = ElementTree.parse(folder / "dumbbell.xml")
    assert [node.get("client_id") for node in tree.iter(f"{SPACE}node")] == [
        "sender",
        "switch",
        "receiver",
    ]
    assert len(list(tree.iter(f"{SPACE}link"))) == 2
    for node in tree.iter(f"{SPACE}node"):
        login = {"hostname": f"{node.get('client_id')}.example.net", "username": "me"}
        ElementTree.SubElement(node.find(f"{SPACE}services"), f"{SPACE}login", login)
        for number, interface in enumerate(node.iter(f"{SPACE}interface")):
            interface.set("mac_address", f"0c42a100000{number}")
    manifest = tmp_path / "manifest.xml"
    tree.write(manifest)
    script = [sys.executable, folder / "inventory"]
    done = subprocess.run([*script, manifest], capture_output=True, text=True, check=True)
    written = tmp_path / "inventory.yaml"
    written.write_text(done.stdout)
    found = inventory.read(written)
    assert found["switch"].ports == {
        "left": "mac:0c:42:a1:00:00:00",
        "right": "mac:0c:42:a1:00:00:01",
    }
    assert found["sender"].cables == {"a": [("switch", "left")]}
    manifest.write_text("<rspec/>")
    done = subprocess.run([*script, manifest], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "not a manifest of dumbbell.py" in done.stderr
    assert json.dumps(found["sender"].directory) == '"/local/repository"'

# SPDX-License-Identifier: BSD-3-Clause
"""The config's JSON Schema agrees with the programs: what they accept, and what it can refuse."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from language_server import Server
from weir import bootstrap
from weir.base import schema, tables

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
CORPUS = sorted((ROOT / "tests/fuzz/corpus/sim").iterdir())
sys.path.insert(0, str(ROOT / "tests/sim"))
from test_bad_input import BAD, GOOD  # noqa: E402

# Bad configs that no schema can refuse, and why.
BEYOND = {
    "duplicate key": "a parser has kept one of them",
    "no reverse": "weir-sim needs two paths, the live switch one",
    "too slow": "a number with a unit is text, of which a schema sees the form",
    "small rmem": "between two keys",
    "small wmem": "between two keys",
    "draws of another group": "between groups",
    "long gro": "likewise",
    "long coalesce": "likewise",
    "gro twice": "between the hosts and a group",
    "cards' path taken": "between the hosts and the paths",
    "hosts of two kinds": "between the hosts and a group",
    "hosts of no kind": "between the hosts and a group",
    "hosts alike": "between two kinds of hosts",
    "other qdisc": "a name of Linux, or of a discipline",
    "qdisc without card": "between two keys",
    "no delay": "between a queue's limit and the delays",
    "stop first": "between two keys",
    "no flows": "the live switch needs none",
    "delay taken away": "between the schedule and the delays",
    "edges too short": "between a limit and the flows' segments",
    "short base_rtt": "between a group and the delays",
}


@pytest.fixture(scope="module")
def listed(weir_sim):
    return tables.read()


@pytest.fixture(scope="module")
def check(listed):
    made = schema.make(listed)
    jsonschema.Draft7Validator.check_schema(made)
    return jsonschema.Draft7Validator(made)


@pytest.fixture(scope="module")
def editors(weir_sim, folder_schema):
    """The folder of npm packages, as tests/check installed them."""
    build = weir_sim.parents[2]
    with bootstrap.locked(build):
        return bootstrap.editor_packages(build)


@pytest.fixture(scope="module")
def server(editors):
    program = editors / "yaml-language-server/bin/yaml-language-server"
    started = Server(["node", program, "--stdio"])
    yield started
    started.close()


def loaded(text):
    return yaml.safe_load(text)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_is_accepted(check, path):
    check.validate(loaded(path.read_text()))


def test_a_control_in_python_is_accepted(check):
    agent = "{python: agent, every: 20ms}"
    text = (ROOT / "configs/gym/one-flow-link.yaml").read_text()
    for cc in (agent, "{python: mine.py:Mine}", "{python: mine.py:Mine, every: rtt, gain: 2}"):
        check.validate(loaded(text.replace(agent, cc)))
    for cc in ("{python: mine.py}", "{every: rtt}"):
        assert not check.is_valid(loaded(text.replace(agent, cc)))


@pytest.mark.slow
def test_ajv_takes_the_schema_and_every_config(editors, listed):
    """It was refused whole, for an empty enum: no draft of JSON Schema has one."""
    documents = {path.name: loaded(path.read_text()) for path in CONFIGS}
    documents["bad rate"] = loaded(GOOD.replace("10Mbit", "10Gbitt"))
    documents["unknown key"] = {**loaded(GOOD), "colour": "red"}
    asked = {"schema": schema.make(listed), "documents": documents}
    done = subprocess.run(
        ["node", editors.parent / "validate.js"],
        input=json.dumps(asked), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert "must match pattern" in said.pop("bad rate")
    assert "must NOT have additional properties" in said.pop("unknown key")
    assert said == dict.fromkeys(path.name for path in CONFIGS)


@pytest.mark.slow
def test_an_editor_finds_nothing_wrong_with_any_config(server):
    for path in CONFIGS:
        assert server.complaints(path.as_uri(), path.read_text()) == [], path.name


# What is typed in place of something of a good config, and what the editor says of it.
TYPED = [
    ("rate: 10Gbit", "rate: 10Gbitt", 13, "this is not a rate such as 10Gbit"),
    ("rate: 10Gbit", "rate: 10", 13, "this is not a rate such as 10Gbit"),
    ("duration: 12s", "duration: 12x", 9, "this is not a time such as 20ms"),
    ("limit: 1BDP", "limit: 1BPD", 13, "this is not a limit such as 375MB, 1000pkt, 50ms or 1BDP"),
    ("seed: 1", "sed: 1", 8, "Property sed is not allowed."),
    ("delta: 0.5", "dleta: 0.5", 18, "Property dleta is not allowed."),
]


@pytest.mark.parametrize(("good", "typed", "line", "said"), TYPED, ids=[each[1] for each in TYPED])
def test_an_editor_says_what_is_wrong(server, good, typed, line, said):
    text = (ROOT / "configs/quickstart.yaml").read_text()
    assert text.count(good) == 1
    uri = (ROOT / f"configs/{typed.replace(' ', '')}.yaml").as_uri()
    assert server.complaints(uri, text.replace(good, typed)) == [(line, said)]


BEGUN = """\
# yaml-language-server: $schema=schema.json
paths:
  forward:
    - link:
        rate: 10Mbit
        queue:\x20
    -\x20
  reverse:
    - delay: {delay: 1ms}
flows:
  - count: 1
    cc:\x20
telemetry:
  level: 1
 \x20

"""


def test_an_editor_completes_a_config(server, listed):
    """Names with what they are, and the keys that are not there yet."""
    uri = (ROOT / "configs/begun.yaml").as_uri()
    server.complaints(uri, BEGUN)
    for kind, line, column in (("aqm", 5, 15), ("stage", 6, 6), ("cc", 11, 8)):
        offered = server.completions(uri, line, column)
        assert offered == {name: entry["summary"] for name, entry in listed[kind].items()}, kind
    keys = {key: row["help"] for key, row in tables.keys(listed["run"]["telemetry"]).items()}
    assert server.completions(uri, 14, 2) == {k: v for k, v in keys.items() if k != "level"}
    assert {"seed", "duration", "stop"} <= set(server.completions(uri, 15, 0))


@pytest.mark.slow
def test_configs_are_accepted_with_all_defaults_written(check, weir_sim):
    """--print-config writes every key, each as text."""
    for path in CONFIGS:
        argv = [weir_sim, path, "--print-config"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            check.validate(loaded(done.stdout))
            check.validate(yaml.load(done.stdout, Loader=yaml.BaseLoader))


@pytest.mark.parametrize("name", BAD)
def test_bad_configs(check, name):
    old, new, _ = BAD[name]
    try:
        config = loaded(GOOD.replace(old, new))
    except yaml.YAMLError:
        return  # no schema is needed
    assert check.is_valid(config) == (name in BEYOND)


def test_what_it_refuses_the_program_refuses(check, weir_sim):
    """The corpus of the fuzzer has configs of all kinds."""
    refused = 0
    for path in CORPUS:
        argv = [weir_sim, path, "--check"]
        good = subprocess.run(argv, capture_output=True, timeout=60).returncode == 0
        try:
            config = loaded(path.read_text())
        except (yaml.YAMLError, UnicodeDecodeError):
            assert not good
            continue
        if good:
            check.validate(config)
        refused += not good
    assert refused > 0


def places(listed):
    """A config with one section of each kind in it, and where it is: (kind, name, config, path)."""
    base = loaded(GOOD)
    for kind, name in ((each, name) for each in listed for name in listed[each]):
        config = copy.deepcopy(base)
        bare = {
            key: "1Mbit" if row["unit"] == "bit/s" else "1s" if row["unit"] == "ns" else "1"
            for key, row in tables.keys(listed[kind][name]).items()
            if row["default"] is None
        }
        if kind == "aqm":
            config["paths"]["forward"][0]["link"]["queue"] = {name: bare}
        elif kind in ("stage", "path"):
            config["paths"]["forward"].insert(0, {name: bare})
            if kind == "path":
                del config["flows"]
        elif kind == "cc":
            config["flows"][0]["cc"] = {name: bare}
        elif kind == "source":
            config["flows"][0]["source"] = {name: bare}
        elif kind == "run" and name in ("telemetry", "stop"):
            config[name] = bare
        elif name == "run":
            bare = config
        elif name == "flows.path":
            config["flows"][0]["path"] = bare
        elif name == "source.sizes":
            config["flows"][0]["source"] = {"poisson": {"interval": "1s", "sizes": bare}}
        elif kind == "flows":
            bare = config["flows"][0]
        else:
            continue
        yield kind, name, config, bare


@pytest.mark.slow
def test_each_key_of_each_table(check, listed, weir_sim, tmp_path):
    """An unknown key, a value of no type and one out of range; the program says the same."""
    for kind, name, config, section in places(listed):
        check.validate(config)
        section["nonsense"] = 1
        assert not check.is_valid(config), (kind, name)
        del section["nonsense"]
        for key, row in listed[kind][name].get("params", {}).items():
            before = section.get(key)
            for value in wrong(row):
                section[key] = value
                assert not check.is_valid(config), (kind, name, key, value)
                file = tmp_path / "x.yaml"
                file.write_text(yaml.safe_dump(config))
                argv = [weir_sim, file, "--check"]
                done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
                assert done.returncode == 2, (kind, name, key, value)
                assert key in done.stderr
            section[key] = before if before is not None else row["default"]
            assert check.is_valid(config), (kind, name, key, section[key])


def wrong(row):
    """Values that a parameter does not take."""
    if row["type"] == "text":
        return [["a", "list"]]
    if row["type"] == "names":
        return [{"a": "map"}, [], [["nested"]]]
    values = ["nonsense", {"a": "map"}]
    if row["type"] in ("u64", "f64") and row["unit"] in ("", "ratio", "B"):
        values += [row["min"] - 1] if row["min"] >= 1 else []
        values += [int(row["max"] * 2)] if row["max"] is not None else []
    if row["type"] in ("u64", "f64") and row["unit"] in ("ns", "bit/s") and not row.get("seconds"):
        values += [5]  # no unit
    return values


def test_a_build_makes_the_one_beside_the_configs(weir, folder_schema):
    """It is not in git: a command that has built weir-sim writes it."""
    os.utime(folder_schema, (0, 0))  # as weir-sim is newer
    subprocess.run([ROOT / "tools/weir", "--build", "sim"], check=True)
    assert folder_schema.stat().st_mtime > 0
    assert json.loads(folder_schema.read_text())["definitions"]["aqm.codel"]
    done = weir("schema")
    assert (done.status, done.out) == (0, folder_schema.read_text())


def test_a_class_in_python_has_its_own_keys(weir, weir_sim, folder_schema, tmp_path):
    """With --plugin FILE:CLASS they are checked; without, any key is good."""
    (tmp_path / "mine.py").write_text(
        "from weir.control import Control, parameter\n\n\nclass Mine(Control):\n"
        "    window = parameter(8, 'segments', max=9)\n\n    def on_ack(self, m): pass\n"
    )
    env = {"WEIR_BUILD": str(weir_sim.parents[2])}
    own = weir("schema", "--plugin", f"{tmp_path}/mine.py:Mine", env=env)
    made = jsonschema.Draft7Validator(json.loads(own.out))
    any_key = jsonschema.Draft7Validator(json.loads(folder_schema.read_text()))
    config = yaml.safe_load((ROOT / "configs/quickstart.yaml").read_text())

    def good(**keys):
        config["flows"] = [{"cc": {"python": "mine.py:Mine", **keys}}]
        return [schema.is_valid(config) for schema in (made, any_key)]

    assert good(every="rtt", window=3, digest="0") == [True, True]
    assert good(windows=3) == good(window=10) == [False, True]
    refused = weir("schema", "--plugin", f"{tmp_path}/mine.py:None", env=env)
    assert refused.status == 2
    assert refused.err == f"weir: list: {tmp_path}/mine.py has no class None\n"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_names_it(path):
    """As the language server for YAML reads it."""
    lines = path.read_text().splitlines()
    assert "# yaml-language-server: $schema=schema.json" in lines


# As in tests/smoke, by the live programs: whether the schema refuses them too. It knows no devices,
# addresses and names of other sections.
LIVE = [
    ("live.switch.colour", "red", True),
    ("live.switch.ports.0.speed", 1, True),
    ("live.switch.lcores", [1, 1], True),
    ("live.switch.lcores", [5000], True),
    ("live.switch.lcores", [], True),
    ("live.switch.hugepages", "maybe", True),
    ("live.switch.static", [{"mac": "02:00:00:00:00:01"}], True),
    ("live.sender.ports", [], True),
    ("live.sender.ports.0.role", "spectator", True),
    ("live.sender.ports.0.dev", ["net_null0"], True),
    ("paths.forward.0.link.rate", "10Gbitt", True),
    ("live.switch.ports.0.dev", "veth0", False),
    ("live.switch.ports.0.path", "sideways", False),
    ("live.sender.ports.0.mac", "zz", False),
    ("live.sender.ports.0.peer", "10.0.0.1", False),
]


@pytest.mark.parametrize(("key", "value", "refused"), LIVE)
def test_bad_live_configs(check, key, value, refused):
    config = loaded((ROOT / "configs/loopback-10g.yaml").read_text())
    *way, last = [int(part) if part.isdigit() else part for part in key.split(".")]
    section = config
    for part in way:
        section = section[part]
    section[last] = value
    assert check.is_valid(config) != refused

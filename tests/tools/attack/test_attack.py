# SPDX-License-Identifier: BSD-3-Clause
"""weir attack: trials are runs, the search is determined by its seed, what it finds replays."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import weir
from typer.testing import CliRunner
from waiting import wait_for
from weir.analysis.run_summary import decode
from weir.attack import attack, documents, registry, run
from weir.attack.box import Box, guests_of
from weir.attack.elements import ELEMENTS
from weir.attack.goals import GOALS, goal_of, payload_share
from weir.attack.minimise import minimise
from weir.attack.search import Budget, Journal, search
from weir.base import configs
from weir.base.errors import UserError
from weir.cli.app import app
from weir.many.trials import opened

ROOT = Path(__file__).resolve().parents[3]
BOXES = ROOT / "configs/attacks/boxes"
CONFIG = {
    "duration": "3s",
    "warmup": "500ms",
    "paths": {
        "forward": [
            {"link": {"rate": "10Mbit", "queue": {"fifo": {"limit": "1BDP"}}}},
            {"delay": {"delay": "10ms"}},
        ],
        "reverse": [{"delay": {"delay": "10ms"}}],
    },
    "flows": [{"cc": "cubic"}, {"cc": "newreno", "start": "10ms"}],
}


@pytest.fixture
def trials(weir_sim):
    with opened(ROOT, 2) as found:
        yield found


def command(*words):
    """The command, in this process, which has what it imports; a sentence is a UserError."""
    return CliRunner().invoke(app, ["attack", *map(str, words)])


def refused(*words):
    """The sentence with which it ends, which is bad usage."""
    with pytest.raises(UserError) as found:
        raise command(*words).exception
    assert found.value.status == 2
    return str(found.value)


def written(tmp_path, **content):
    path = tmp_path / "x.yaml"
    path.write_text(json.dumps({"config": CONFIG, "goal": "utilisation", **content}))
    return path


def test_a_trial_is_the_run_of_its_config(trials, tmp_path):
    """The digest and figures of weir run; one that is refused says why, and the next one runs."""
    path = tmp_path / "run.yaml"
    path.write_text(attack.yaml_text(CONFIG, ["A run."]))
    summary = weir.run(path, out=tmp_path / "run").summary
    [trial] = trials([CONFIG])
    for key in ("digest", "groups", "links", "ledger"):
        assert getattr(trial, key) == getattr(summary, key)
    with pytest.raises(UserError, match=r"^cc: 'cubicc' is not"):
        trials([CONFIG | {"flows": [{"cc": "cubicc"}]}])
    assert trials([CONFIG])[0].digest == summary.digest


def test_trials_are_in_order(trials):
    several = [CONFIG | {"seed": n, "flows": [{"cc": "cubic", "jitter": "1s"}]} for n in range(12)]
    assert [one.seed for one in trials(several)] == list(range(12))


def test_every_element_makes_configs_that_run(trials):
    """At random points and at the ends; at the benign point nothing changes."""
    rng = np.random.default_rng(1)
    for name in ELEMENTS:
        box = Box(CONFIG, {name: {"flows": "each"} if name == "delay" else {}})
        assert len(box.names) == len(box.benign) > 0
        if name != "buffer":
            assert box.configured(box.nothing()) == CONFIG, name
        size = len(box.names)
        points = [[0.0] * size, [1.0] * size, *rng.uniform(0, 1, (4, size)).round(6).tolist()]
        summaries = trials([box.configured(point) for point in points])
        assert len({one.digest for one in summaries}) > 1, name
        assert all(one.ledger.balanced for one in summaries)


def test_delays_are_within_their_bound(trials):
    """No RTT is longer than what the paths, the queue and the bound explain."""
    box = Box(CONFIG, {"delay": {"most": "30ms", "pieces": "3"}, "acks": {"most": "20ms"}})
    config = box.configured([0.2, 1, 0, 0.5, 0.6, 1, 0, 0, 0.3, 0, 1])
    [late] = [s["periodic_delay"] for s in config["paths"]["forward"] if "periodic_delay" in s]
    assert late == {"name": "late", "period": "50.2ms", "delays": "30ms 0ms 15ms"}
    assert config["paths"]["reverse"][0]["periodic_delay"]["delays"].startswith("20ms 0ms")
    [summary] = trials([config])
    longest_ns = 20e6 + 50e6 + summary.links["forward"].sojourn_max_ns + 12.3e6
    assert all(20e6 < g.rtt_mean_ns < longest_ns for g in summary.groups)


@pytest.mark.slow
def test_a_search_is_determined_by_its_seed(tmp_path, weir_sim):
    """The same trials with one process and two, and where it was ended in the middle of a line."""
    asked = attack.read(written(tmp_path, box={"buffer": {}, "loss": {}}))

    def searched(name, workers, runs, seed=1):
        path = tmp_path / name
        with opened(tmp_path, workers) as trials:
            one = attack.Attack(asked, trials)
            journal = Journal(path, {"seed": seed})
            found = search(2, one.measure, Budget(runs), seed, journal)
        journal.close()
        return found, path

    found, first = searched("first", 1, 14)
    same, second = searched("second", 2, 14)
    assert found == same
    assert first.read_bytes() == second.read_bytes()
    assert found.harm == max(
        json.loads(line)["harm"] for line in first.read_text().split("\n")[1:-1]
    )
    second.write_bytes(first.read_bytes()[:300])
    assert searched("second", 2, 14)[0] == found
    assert first.read_bytes() == second.read_bytes()
    assert searched("third", 2, 14, seed=2)[0].point != found.point
    with pytest.raises(UserError, match="is of another search"):
        searched("first", 1, 14, seed=2)


def test_what_the_harm_does_not_need_is_left_out():
    """Of four amounts one does all of the harm, above a quarter."""
    box = Box(CONFIG, {"loss": {}, "losses": {"count": "2"}, "start": {}})
    needed = box.names.index("length of loss 2")
    point = [0.9] * len(box.names)
    left, harm = minimise(box, point, lambda x: float(x[needed] >= 0.25), 0.9)
    assert harm == 1.0
    amounts = {box.names[i]: x for i, x in enumerate(left) if box.benign[i] is not None}
    assert amounts == {**dict.fromkeys(amounts, 0.0), "length of loss 2": 0.45}


def box_of(path):
    asked = attack.read(path)
    return Box(asked.config, asked.box)


def test_goals_by_hand():
    """Of two groups, three flows, a link of 10 Mbit/s and a base RTT of 20 ms."""
    groups = [
        {"goodput_bps": 6e6, "flows": 2, "sent_segs": 700, "drops": 7},
        {"goodput_bps": 1e6, "flows": 1, "sent_segs": 300, "drops": 13},
    ]
    cdf = [[1e6, 0.05], [10e6, 0.5], [31e6, 0.95], [40e6, 1.0]]
    link = {"rate_mean_bps": 10e6, "sojourn_p99_ns": 40e6, "sojourn_cdf": cdf}
    summary = decode({"groups": groups, "links": {"forward": link}}, "x")
    expected = {
        "utilisation": 1 - 7 / (10 * 1448 / 1538),
        "starvation": 1 - 1 / 3,
        "delay": 2,
        "loss": 0.02,
        "oscillation": 1.5,
    }
    assert {name: goal.harm(CONFIG, summary) for name, goal in GOALS.items()} == pytest.approx(
        expected
    )
    assert goal_of("starvation").text(0.8) == "80.0 % (1 to 5.00)"


BAD = [
    ({"box": {"weather": {}}}, "box: weather is none of rate, buffer"),
    ({"box": {"delay": {"most": "20"}}}, "box: delay: period: [1s] is not a list of two"),
    ({"box": {"rate": {"pieces": "0"}}}, "box: rate: pieces: 0 is not a number from 1 to 64"),
    ({"box": {"window": {"low": "9B"}}}, "box: window: low: 9B is not at least 2kB and at most"),
    ({"box": {"pauses": {"sizes": "[1, 2s]"}}}, "box: pauses: sizes: [1, 2s] is not a size"),
    ({"box": {"longer": {"from": "9s"}}}, "box: longer: from: 9s is not before the end of the run"),
    ({"box": {"bursts": {"rat": "1Mbit"}}}, "box: bursts: rat is none of rate, share"),
    ({"box": {"bursts": "often"}}, "box: bursts: is no map"),
    ({"box": {}}, "box: has none of"),
    ({"goal": "fame", "box": {"loss": {}}}, "'fame' is none of utilisation, starvation"),
    ({"bound": "much", "box": {"loss": {}}}, "bound: much is no number"),
    ({"aim": "loss", "box": {"loss": {}}}, "aim is none of config, goal, bound, box"),
    (
        {"config": "none.yaml", "box": {"loss": {}}},
        "none.yaml: cannot be read: No such file or directory",
    ),
]
BAD[1][0]["box"]["delay"]["period"] = ["1s"]


def test_harm_beside_another_control(tmp_path, trials):
    """It is what a control loses more than the other in the same network, in both orders."""
    found = {}
    for control, baseline in (("cubic", "newreno"), ("newreno", "cubic")):
        path = written(tmp_path, box={"loss": {"most": "5%"}}, beside=baseline)
        asked = attack.read(path, control=control)
        found[control] = attack.Attack(asked, trials).measure([[0.5], [1.0]])
        assert asked.goal.name == f"utilisation beside {baseline}"
    assert found["cubic"] == [-harm for harm in found["newreno"]]
    assert any(found["cubic"])
    with pytest.raises(UserError, match=r"^cc: 'nothing' is not a congestion control"):
        attack.Attack(attack.read(path, beside="nothing"), trials)


@pytest.mark.parametrize(("content", "sentence"), BAD)
def test_what_is_no_attack_is_refused(content, sentence, tmp_path):
    with pytest.raises(UserError, match=re.escape(sentence)):
        box_of(written(tmp_path, **content))


@pytest.mark.slow
@pytest.mark.usefixtures("weir_sim")
def test_the_low_rate_attack_is_found(tmp_path):
    """SIGCOMM 2003: with a period near minRTO, 1 s, bursts deny a link to NewReno.

    Nothing tells the search the period. If the bursts took their fifth and no more, the
    harm were 0; the paper's figures have a tenth of the throughput left near minRTO.
    """
    out = tmp_path / "out"
    argv = [BOXES / "low-rate-newreno.yaml", "--runs", "60", "--out", out, "--json"]
    result = json.loads(command(*argv).stdout)
    assert result["trials"] == 60
    assert result["benign"] < 0.05
    assert result["left"] > 0.7
    config = configs.mapping(out / "attack.yaml")
    bursts = config["flows"][1]
    assert 500 < float(bursts["stagger"].removesuffix("ms")) < 1300
    assert json.loads((out / "attack/summary.json").read_text())["digest"] == result["digest"]
    page = (out / "report.html").read_text()
    assert "name: bursts" in page
    assert "benign network" in page
    # The folder is that of this search: it goes on, and refuses another.
    assert json.loads(command(*argv, "--no-report").stdout) == result
    assert "is of another search" in refused(*argv, "--seed", "2")


@pytest.mark.usefixtures("weir_sim")
def test_a_bound_that_is_proved_holds(tmp_path):
    """CCAC's copa_proofs.py: the queue never exceeds 4 BDP and 2 alpha; see the box."""
    argv = [BOXES / "copa-bound.yaml", "--runs", "60", "--no-report", "--json"]
    done = command(*argv, "--out", tmp_path / "x")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["held"] is True
    assert 0.5 < json.loads(done.stdout)["found"] < 4.1


def test_guests_take_the_place_of_a_control(tmp_path):
    """For all victims, in both directions; what a box does to our hosts alone is refused."""
    path = written(tmp_path, box={"loss": {}, "stretch": {}})
    asked = attack.read(path, control="quic:ngtcp2:bbr")
    ngtcp2 = {"quic": {"ngtcp2": {"cc": "bbr", "qlog": "no"}}}
    assert asked.config["flows"] == [{"stack": ngtcp2}, {"stack": ngtcp2, "start": "10ms"}]
    back = attack.with_control(asked.config, configs.control_of("copa"))
    assert back["flows"] == [{"cc": "copa"}, {"cc": "copa", "start": "10ms"}]
    with pytest.raises(UserError, match="box: stretch: is of Weir's own hosts"):
        Box(asked.config, asked.box)
    with pytest.raises(UserError, match="box: stretch: is of Weir's own hosts"):
        attack.Attack(attack.read(path, beside="linux:cubic"), lambda several: [])
    bytes_ = 1452 / (14 + 20 + 8 + 1452 + 24)  # of a packet; FCS, preamble and gap beside it
    assert payload_share(asked.config) == pytest.approx(bytes_)
    options = run.Options(file=path, control="linux:bbr")
    assert options.folder == Path("runs/attack-x-linux-bbr-1")


def test_a_search_with_guests_is_of_their_versions(tmp_path, monkeypatch):
    """Another kernel begins another search; without guests nothing asks for one."""
    monkeypatch.setenv("WEIR_GUESTS", str(tmp_path / "guests"))
    box = {"loss": {}}
    known = {cc: attack.read(written(tmp_path, box=box), control=cc) for cc in ("linux:bbr", "bbr")}
    before = {name: run.identity(asked, 1) for name, asked in known.items()}
    (tmp_path / "guests/KEY").mkdir(parents=True)
    (tmp_path / "guests/KEY/linux").touch(0o755)
    described = dict.fromkeys(("package", "version", "release", "options", "compiler", "key"), "x")
    (tmp_path / "guests/KEY/guest.json").write_text(json.dumps(described))
    (tmp_path / "guests/current").symlink_to("KEY")
    built = run.identity(known["linux:bbr"], 1)
    assert built != before["linux:bbr"]
    assert run.identity(known["bbr"], 1) == before["bbr"]
    (tmp_path / "guests/delay").symlink_to("KEY")  # a word of the config, and no kernel of its
    assert run.identity(known["linux:bbr"], 1) == built
    quic = {"stack": {"quic": {"quinn": {"kernel": "mine"}}}, "peer": "linux"}
    assert guests_of(quic) == {"quinn", "mine", "current"}
    link, found = tmp_path / "guests/quic/quinn", set()
    link.parent.mkdir()
    for key in ("0" * 16, "1" * 16):  # our program is another, the stack's version the same
        link.symlink_to(f"quinn-0.11.12-{key}")
        found.add(run.versions([{"flows": [quic]}]))
        link.unlink()
    assert len(found) == 2


ENDLESS = "__attribute__((constructor)) static void start(void) { for (volatile int i = 0;; i++); }"


@pytest.mark.usefixtures("weir_sim")
def test_a_search_goes_on_only_with_what_it_began_with(tmp_path, build_plugin):
    """Trials of a plug-in that was compiled again were used again, and damage was a traceback."""
    path, out = written(tmp_path, box={"loss": {}}), tmp_path / "out"
    for word in ("nothing", tmp_path / "none.so"):
        refused(path, "--cc", word, "--runs", "2", "--out", out)
        assert not out.exists()
    first, other = build_plugin(), build_plugin(('"50%"', '"60%"'))
    argv = [path, "--runs", "2", "--no-report", "--out", out, "--cc"]
    assert command(*argv, first).exit_code == 0
    assert "a plug-in that has changed" in refused(*argv, other)
    other.write_bytes(first.read_bytes())
    assert command(*argv, other).exit_code == 0
    journal = out / "trials.jsonl"
    for line in (b"{}\n", b'{"x": "a", "harm": 0}\n', b"\xff\n"):
        journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0] + line)
        with pytest.raises(UserError, match=r"trials\.jsonl:2: "):
            raise command(*argv, other).exception


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.usefixtures("weir_sim")
def test_a_search_that_is_ended_leaves_no_process(number, tmp_path, build_plugin):
    """A plug-in that does not return kept weir-sim from seeing that nobody asks any more."""
    config = written(tmp_path, box={"loss": {}})
    plugin = build_plugin(("CC_PLUGIN(ops);", f"CC_PLUGIN(ops);\n{ENDLESS}"))
    argv = [sys.executable, "-m", "weir", "attack", config, "--cc", plugin]
    with subprocess.Popen([*argv, "--workers", "1", "--out", tmp_path / "out"]) as process:
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def loads():
            return any(b"mine.so" in Path(f"/proc/{child}/maps").read_bytes()
                       for child in listed.read_text().split())  # fmt: skip

        wait_for(loads)
        children = listed.read_text().split()
        process.send_signal(number)
        assert process.wait(60) in (128 + number, -number)
    wait_for(lambda: not any(Path(f"/proc/{child}/maps").exists() for child in children))


def test_a_search_that_finds_nothing_leaves_the_benign_network(tmp_path, trials):
    asked = attack.read(written(tmp_path, box={"loss": {}}, beside="cubic"), control="cubic")
    one = attack.Attack(asked, trials)
    journal = Journal(tmp_path / "trials", {"seed": 1})
    result, _, config = one.run(Budget(4), 1, journal, lambda _: None)
    journal.close()
    assert (result.found, result.left, result.distance) == (0, 0, 0)
    assert config == one.box.configured(one.box.nothing())


def test_options_that_are_refused(tmp_path):
    path = str(written(tmp_path, box={"loss": {}}))
    for words, sentence in [
        (["--time", "soon"], "--time: soon is no time"),
        (["--keep", "all"], "--keep: all is no share"),
        (["--goal", "fame"], "'fame' is none of"),
    ]:
        assert sentence in refused(path, *words)


@pytest.mark.usefixtures("weir_sim")
def test_a_bound_that_does_not_hold_is_a_failure(tmp_path):
    """Exit status 1, and the network that shows it; a bound that holds is 0."""
    for bound, status in (("1%", 1), ("99.9%", 0)):
        path = written(tmp_path, box={"loss": {"most": "5%"}}, bound=bound)
        argv = [path, "--runs", "6", "--out", tmp_path / bound, "--no-report"]
        assert command(*argv).exit_code == status


KNOWN = registry.read()


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_a_registered_attack_replays(known, trials):
    """To the same bytes, with the same harm; far worse than its network without the attack."""
    attacked, benign = trials([known.config, known.benign])
    goal = goal_of(known.entry.goal)
    assert attacked.digest == known.entry.digest
    assert goal.harm(known.config, attacked) == pytest.approx(known.entry.left, abs=1e-6)
    assert 2 * goal.harm(known.benign, benign) < known.entry.left
    assert known.entry.digest in (registry.FOLDER / f"{known.name}.yaml").read_text()


def test_the_registry_is_whole():
    """Each network of the folder stands in its index."""
    assert {path.stem for path in registry.FOLDER.glob("*.yaml")} == {one.name for one in KNOWN}
    assert len(KNOWN) >= 6


def test_a_control_under_the_known_attacks(weir_sim):
    """What check cc shows, a row for each attack. One that sends as it likes is not harmed."""
    fixed = {"fixed": {"rate": "4Mbit", "cwnd": "1000"}}
    rows = registry.rows(registry.tried({"copa": "copa", "fixed": fixed}))
    assert [row[0] for row in rows] == [one.name for one in KNOWN]
    late = next(row for row in rows if row[0] == "copa-jitter")
    assert float(late[2].split(" %")[0]) > 80 > float(late[3].split(" %")[0])


@pytest.mark.usefixtures("weir_sim")
def test_only_boxes_of_the_folder_are_registered(tmp_path):
    argv = [written(tmp_path, box={"loss": {}}), "--runs", "4", "--register", "--no-report"]
    assert "--register is for the boxes of" in refused(*argv, "--out", tmp_path / "x")


@pytest.mark.usefixtures("weir_sim")
def test_several_controls_are_a_table(tmp_path):
    """The one that suffers most comes first; the page's table has ten."""
    path = written(tmp_path, box={"delay": {"most": "20ms", "pieces": "2"}})
    timid = "{copa: {delta: 10, mode: default}}"
    several = f"cubic,{timid},copa"
    argv = [path, "--cc", several, "--runs", "8", "--out", tmp_path / "x", "--no-report"]
    found = json.loads(command(*argv, "--json").stdout)
    assert list(found) == [timid, "copa", "cubic"]
    assert found["copa"]["found"] > found["cubic"]["found"]
    assert len(documents.part("worst").splitlines()) == 2 + 10


def test_the_page_has_the_known_attacks():
    """`weir attack ... --register` renews its table."""
    assert documents.part("known") == documents.known()


@pytest.fixture
def workers():
    """A scheduler with two workers, in this process: where it listens."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp",
        dashboard_address="127.0.0.1:0", host="127.0.0.1",
    ) as made:  # fmt: skip
        yield made.scheduler_address


@pytest.mark.slow
def test_a_search_on_a_cluster_finds_what_one_here_does(tmp_path, weir_sim, workers):
    """Byte for byte, with a file that travels; a config that is refused is one sentence."""
    (tmp_path / "up.trace").write_text("1\n2\n4\n")
    link = {"mahimahi_link": {"file": "up.trace", "queue": {"fifo": {"limit": "20pkt"}}}}
    paths = {**CONFIG["paths"], "reverse": [link, *CONFIG["paths"]["reverse"]]}
    file = written(tmp_path, config=CONFIG | {"paths": paths}, box={"losses": {"count": "2"}})
    given = (file, "--runs", 8, "--no-report")
    there = command(*given, "--cluster", workers, "--out", tmp_path / "there")
    assert there.exit_code == 0, there.exception
    command(*given, "--out", tmp_path / "here")
    for name in ("trials.jsonl", "attack.yaml", "attack.json"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    bad = written(tmp_path, config=CONFIG | {"mtu": "9"}, box={"losses": {}})
    done = command(bad, "--cluster", workers, "--out", tmp_path / "bad")
    assert "mtu" in str(done.exception)
    assert refused(bad, "--cluster", "lab") == (
        "--cluster: 'lab' is none of tcp://host:port, ssh:host,host, slurm, pbs"
    )

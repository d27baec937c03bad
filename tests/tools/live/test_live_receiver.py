# SPDX-License-Identifier: BSD-3-Clause
"""live.receiver: the second weir-sender of a live run, its end, its part of the summary."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from weir.analysis import folder, summary
from weir.analysis.run_summary import decode
from weir.base.errors import UserError
from weir.runner import receiver
from weir.runner.options import Options
from weir.runner.run import live_argvs

SECTION = {"lcores": ["1"], "checksum": "no", "ports": [{"name": "b", "dev": "net_memif0,id=0"}]}
# Ends by itself as live.sender's; told to as live.receiver's.
SENDER = """
OUT.mkdir(parents=True, exist_ok=True)
ours = OUT.name == "receiver"
stopped = []
signal.signal(signal.SIGINT, lambda *_: stopped.append(1))
say(ready=True)
(OUT / "manifest-sender.json").write_text("{}")
(OUT / "argv.json").write_text(json.dumps(sys.argv[1:]))
while ours and not stopped:
    time.sleep(0.02)
ended = [{"cause": "interrupted", "sentence": "interrupted"}] if ours else []
(OUT / "summary-sender.json").write_text(json.dumps({
    "program": "weir-sender", "wall_s": 1, "verdict": "ok", "verdicts": ended,
    "receivers" if ours else "jfi": {"bytes": 7} if ours else 0.9,
    "faults": [{"cause": "port_down", "sentence": "port b went down once"}] if ours else [],
    "ledger": {"balanced": True}}))
sys.exit(130 if ours else 0)
"""


def options(*overrides):
    return Options(
        config=Path("x.yaml"),
        out=Path("r"),
        overrides=tuple(overrides),
        seed=3,
        duration="5s",
        pcap=Path("f.pcapng"),
    )


def test_its_weir_sender_reads_the_section_as_its_own():
    given = options("seed=2", "live.sender.lcores=[4]", "live.receiver.lcores=[2]")
    own = receiver.options(given, SECTION)
    assert own.out == Path("r/receiver")
    assert (own.seed, own.duration, own.pcap) == (3, None, None)
    first, *others = own.overrides
    assert yaml.safe_load(first.removeprefix("live.sender=")) == {
        "prefix": "weir-receiver", **SECTION
    }  # fmt: skip
    assert others == ["seed=2", "live.sender.lcores=[2]", "duration=24h"]
    whole = receiver.options(options("live.receiver={prefix: p}"), {"prefix": "q"})
    assert whole.overrides == ("live.sender={prefix: q}", "live.sender={prefix: p}", "duration=24h")


def test_the_shipped_config_is_read_by_both(weir_sender, root, tmp_path):
    config = root / "configs/sender-25g.yaml"
    argvs = live_argvs(Options(config=config, out=tmp_path, only="--check"))
    assert list(argvs) == ["receiver", "sender"]
    for argv in argvs.values():
        assert subprocess.run(argv, capture_output=True).returncode == 0
    more = ["live.sender.lcores=[0,2]", "live.receiver.lcores=[1,3]"]
    more += ["live.sender.ports.0.queues=2", "live.receiver.ports.0.queues=2"]
    four = Options(config=config, out=tmp_path, overrides=tuple(more), only="--check")
    for argv in live_argvs(four).values():
        assert subprocess.run(argv, capture_output=True).returncode == 0


@pytest.mark.parametrize("check", [["--check"], []])
def test_it_says_what_is_wrong_by_the_names_of_the_config(weir, weir_sender, root, check):
    wrong = ("-o", "live.receiver.ports.0.delay=11s")
    config = str(root / "configs/sender-25g.yaml")
    said = weir("run", config, "--live", "--out", "r", *check, *wrong).refused()
    assert f"weir-receiver: {' '.join(wrong)}: delay: 11s is not in [0s, 10s]" in said


def test_alone_it_is_no_live_run(tmp_path):
    (tmp_path / "x.yaml").write_text("live: {receiver: {}}\n")
    with pytest.raises(UserError, match="this config has neither"):
        live_argvs(Options(config=tmp_path / "x.yaml", out=tmp_path))


def test_it_is_stopped_when_the_sender_has_ended(weir, programs, tmp_path):
    (tmp_path / "x.yaml").write_text("live: {sender: {}, receiver: {lcores: [1]}}\n")
    env = programs(sender=SENDER)
    argv = ("run", "x.yaml", "--live", "--out", "r", "--no-report", "--duration", "5s")
    weir(*argv, "--pcap", "f.pcapng", env=env).worked()
    merged = json.loads((tmp_path / "r/summary.json").read_text())
    assert merged["ledger"] == {"balanced": True, "programs": {"sender": True, "receiver": True}}
    assert (merged["receivers"], merged["jfi"]) == ({"bytes": 7}, 0.9)
    assert (merged["verdict"], merged["faults"]) == ("ok", [])
    sender = json.loads((tmp_path / "r/argv.json").read_text())
    own = json.loads((tmp_path / "r/receiver/argv.json").read_text())
    assert "--pcap" in sender
    assert "--pcap" not in own
    assert own[-2:] == ["-o", "duration=24h"]


def test_more_resent_than_lost_is_said():
    port = {"driver_missed": 3, "driver_no_mbuf": 0, "tx_dropped": 1, "tx_unsent": 0}
    switch = {"ledger": {"balanced": True, "drops": {"loss": 5}}, "links": {"forward": {}}}
    switch["ports"] = [port, port | {"driver_missed": None}]
    sender = {"ledger": {"balanced": True}, "sender_ports": []}
    sender["groups"] = [{"retransmits": 13, "spurious": 2}, {"retransmits": None}]
    merged = folder.merge_summaries(switch, sender)
    (fault,) = merged["faults"]
    assert (fault["cause"], fault["count"]) == ("unseen_losses", 1)
    assert fault["sentence"].startswith("11 segments were resent and 10 frames are known to be")
    sender["groups"][0]["spurious"] = 3
    assert folder.merge_summaries(switch, sender)["faults"] == []
    # Behind another's switch, losses are not known.
    assert folder.merge_summaries({}, sender)["faults"] == []


def test_its_figures_are_merged_and_its_sentences_have_its_name():
    late = {f"delay_error_{q}_ns": 500 for q in ("p50", "p99", "p999", "max")}
    slow = {"cause": "lcore", "sentence": "the receiver fell behind"}
    own = {"ledger": {"balanced": False}, "verdicts": [slow], "emulation": late, "jfi": 1}
    merged = folder.merge_summaries({}, {"ledger": {"balanced": True}}, receiver=own)
    assert not merged["ledger"]["balanced"]
    assert "jfi" not in merged
    assert summary.emulation(decode(merged, "x")).rows == [
        ["delay, all packets", *["500 ns"] * 4, ""]
    ]
    assert summary.verdict_lines(decode(merged, "x")) == ["weir-receiver: the receiver fell behind"]
    # A switch's delays are the run's.
    both = folder.merge_summaries(
        {"emulation": {"delay_error_p50_ns": 9}}, {}, receiver={"emulation": late}
    )
    assert both["emulation"]["delay_error_p50_ns"] == 9


def test_one_that_was_killed_is_named(tmp_path):
    (tmp_path / "receiver").mkdir()
    (tmp_path / "receiver/manifest-sender.json").write_text("{}")
    (tmp_path / "summary-sender.json").write_text('{"verdicts": []}')
    assert folder.merge_live(tmp_path)["verdict"].startswith("weir-receiver wrote no summary")

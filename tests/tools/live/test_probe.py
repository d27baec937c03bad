# SPDX-License-Identifier: BSD-3-Clause
"""weir probe: the group it adds, what it prints, and what it says when it cannot."""

import json

import pytest
from weir.base import units
from weir.base.errors import UserError
from weir.live import probe

LOADED = """\
duration: 3s
paths:
  forward:
    - link: {rate: 100Mbit, queue: {fifo: {limit: 5BDP}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
flows:
  - {name: "a, b", cc: {fixed: {cwnd: 263}}, mss: 1400B, ack_every: 1, start: 100ms}
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "loaded.yaml"
    path.write_text(LOADED)
    return path


def test_the_group_is_like_the_first_and_starts_in_the_middle(config):
    flows = json.loads(probe.override(config, probe.Probing(), None).removeprefix("flows="))
    assert flows[0]["name"] == "a, b"
    assert flows[1] == {
        "mss": "1400B",
        "name": "weir probe",
        "cc": "fixed",
        "start": "1500000000ns",
        "source": {"probe": {}},
    }


def test_probes_begin_in_the_middle_of_what_is_measured(config):
    """Those of the warm-up do not count: from 2 s to 3 s, the middle is at 2.5 s."""
    config.write_text(config.read_text() + "warmup: 2s\n")
    flows = json.loads(probe.override(config, probe.Probing(), None).removeprefix("flows="))
    assert flows[1]["start"] == "2500000000ns"


def test_options_are_parameters_of_the_source(config):
    options = probe.Probing("1s", 5, "4ms", 0.1, "2MB", "20ms", alone=True)
    (only,) = json.loads(probe.override(config, options, "9s").removeprefix("flows="))
    assert only["start"] == "1s"
    assert only["source"]["probe"] == {
        "count": "5",
        "interval": "4ms",
        "delta": "0.1",
        "size": "2MB",
        "rtt_min": "20ms",
    }


def test_a_queue_is_seen(weir, config, tmp_path):
    """262 frames of 1478 bytes on a path of 20 ms, of which the queue holds the rest."""
    out = str(tmp_path / "run")
    done = weir("probe", str(config), "--rtt-min", "20ms", "--json", "--out", out)
    found = json.loads(done.out)
    wait_ns = 262 * 1478 * 8 / 0.1 - 20e6
    assert wait_ns <= found["dq_ns"] <= wait_ns + 2 * 1478 * 80
    assert found["rate_bps"] == pytest.approx((1400 - 12) * 8 / (0.5 * found["dq_ns"] * 1e-9))
    table = weir("probe", str(config), "--rtt-min", "20ms", "--out", out, "--force").out
    assert "rate of a Copa flow, delta 0.5" in table
    assert units.time(found["dq_ns"]) in table


def test_an_empty_path_has_no_limit(weir, config, tmp_path):
    done = weir("probe", str(config), "--alone", "--out", str(tmp_path / "run"))
    assert "not limited: no queue was seen" in done.out
    assert "20.0 ms" in done.out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("flows: 1\n", "flows: a list of groups of flows is expected"),
        ("{}\n", "flows: a list of groups of flows is expected"),
        ("flows: [{cc: copa}]\n", "say with --at when the probes are to start"),
        ("flows: [", "while parsing a flow node"),
    ],
)
def test_what_is_no_experiment(tmp_path, text, sentence):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=sentence) as refused:
        probe.override(path, probe.Probing(), None)
    assert refused.value.status == 2


def test_no_such_file(weir, tmp_path):
    assert "No such file or directory" in weir("probe", str(tmp_path / "none.yaml")).refused()


def test_probes_that_nobody_answers(weir, config, tmp_path):
    place = str(tmp_path / "run")
    said = weir("probe", str(config), "--at", "2990ms", "--out", place).refused(1)
    assert "no probe was answered before the run ended" in said


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--count", "0", "count: 0 is not in [1, 64]"),
        ("--interval", "5", "interval: '5' is not a time such as 20ms"),
    ],
)
def test_a_bad_option_is_a_sentence_without_what_it_became(weir, config, option, value, sentence):
    """Before it stood all groups of flows, as JSON."""
    said = weir("probe", str(config), option, value).refused()
    assert said == f"weir: {config}, with the probes: {sentence}"

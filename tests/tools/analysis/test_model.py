# SPDX-License-Identifier: BSD-3-Clause
"""summary.json is as its types say, and nothing of it is taken from a sentence."""

import ast
import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
from weir.analysis import folder, model, run_summary
from weir.analysis import model_parts as parts
from weir.analysis import summary as analysis
from weir.base import tables
from weir.base.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted((ROOT / "tools/src/weir").rglob("*.py"))
CONFIG = """seed: 1
duration: 2s
paths:
  forward: [{link: {rate: 10Mbit, queue: {fifo: {limit: 20pkt}}}}, {delay: {delay: 10ms}}]
  reverse: [{delay: {delay: 10ms}}]
flows: [{cc: copa}, {cc: cubic, start: 9s}]
"""


@pytest.fixture(scope="module")
def written(weir_sim, tmp_path_factory):
    """The summary of a run of which one flow never began, as text."""
    place = tmp_path_factory.mktemp("model")
    (place / "c.yaml").write_text(CONFIG)
    argv = [weir_sim, place / "c.yaml", "--out", place / "run"]
    subprocess.run(argv, check=True, capture_output=True)
    return (place / "run/summary.json").read_text()


def test_a_summary_has_types(written):
    found = model.decode(written)
    assert isinstance(found, parts.Simulation)
    assert found.groups[0].goodput_bps > 8.5e6
    assert found.links["forward"].queue_max_pkts == 20
    # Of a flow that never began nothing is known, and null is not 0.
    assert (found.groups[1].rtt_mean_ns, found.groups[1].jfi) == (None, None)
    assert (found.groups[1].rtx_overhead, found.groups[1].goodput_bps) == (None, 0)


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0, 4e7, "0 bit/s to 40.0 Mbit/s"),
        (3e6, 4e7, "3.00 Mbit/s to 40.0 Mbit/s"),
        (4e7, 4e7, "40.0 Mbit/s"),
        (None, None, "15.0 Mbit/s"),
    ],
)
def test_a_rate_is_shown_with_its_outages(written, low, high, shown):
    link = model.decode(written).links["forward"]
    link.rate_bps, link.rate_min_bps, link.rate_max_bps = 15e6, low, high
    assert analysis.link_rate(link) == shown


def test_cards_are_shown_with_a_dash_where_nothing_is_known(weir_sim, tmp_path):
    (tmp_path / "c.yaml").write_text(CONFIG + "hosts: {sending: {count: 2, coalesce: 1us}}\n")
    argv = [weir_sim, tmp_path / "c.yaml", "--out", tmp_path / "run"]
    subprocess.run(argv, check=True, capture_output=True)
    found = run_summary.read((tmp_path / "run/summary.json").read_bytes(), "summary.json")
    side = found.cards["sending"]
    assert 1 <= side.packets / side.interrupts < 1.005
    shown = analysis.cards(found).rows
    assert shown == [["sending", "2", f"{side.interrupts:,}", "1.00", "–", "0", "–", "–"]]


def test_its_schema_holds_what_its_types_hold(written):
    schema = model.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    summary = json.loads(written)
    assert not list(validator.iter_errors(summary))
    for change in ({"seed": -1}, {"jfi": 1.1}, {"kind": "other"}, {"new": 1}, {"schema": 2}):
        assert list(validator.iter_errors(summary | change)), change
        with pytest.raises(UserError):
            model.decode(json.dumps(summary | change))


def test_what_is_not_as_described_is_named(written):
    summary = json.loads(written)
    summary["links"]["forward"]["drops"] = "many"
    with pytest.raises(UserError, match=r"run/summary.json: Expected `int`, got `str` - at `\$"):
        model.decode(json.dumps(summary), "run/summary.json")


@pytest.mark.parametrize(
    ("summary", "says"),
    [
        ({"links": {"forward": {"drops": "many"}}}, r"Expected `int`, .* - at `\$.links"),
        ({"kind": "other"}, "knows no summary of the kind 'other'"),
        ({"verdicts": [{"cause": "x"}]}, "missing required field `sentence`"),
        ({"groups": [{}] * 1001}, r"length <= 1000 - at `\$.groups`"),
        ({"telemetry": {"streams": {str(n): {"records": 1, "lost": 1} for n in range(1001)}}},
         r"length <= 1000 - at `\$.telemetry.streams`"),
        ({"flows": {"open": 1}, "new": 1, "groups": [{}]}, None),
    ],
)  # fmt: skip
def test_summaries_of_other_versions_are_held_to_the_types_that_are_known(summary, says):
    if says is None:
        assert run_summary.decode(summary, "x").groups[0].goodput_bps is None
        return
    with pytest.raises(UserError, match=f"x: .*{says}"):
        run_summary.decode(summary, "x")


def test_a_file_is_read_at_once_as_it_is_by_its_members(written):
    """A part that no type has may be nested deeply, or have NaN, and the kind may be missing."""
    deep = written.replace("{", '{"new": ' + "[" * 90 + "NaN" + "]" * 90 + ",", 1)
    for text in (written, deep, written.replace('"kind": "simulation",', "", 1)):
        found = run_summary.read(text.encode(), "x")
        assert found == run_summary.decode(json.loads(written), "x")
        assert found.ended
    for text in (written[:-9], written.replace('"simulation"', '"other"', 1), "[]"):
        with pytest.raises(UserError, match="x: "):
            run_summary.read(text.encode(), "x")


def test_live_programs_make_one_summary():
    """Either may be missing; what comes out is a kind of its own."""
    for present in ([], ["switch"], ["sender"], ["switch", "sender"]):
        parts = [
            {"schema": 1, "program": name, "version": "", "title": "", "wall_s": 1,
             "seed": 1, "virtual_s": 1, "start_s": 0, "warmup_s": 0, "measured_from_s": 0,
             "verdict": "ok", "verdicts": [], "faults": [], "ledger": {"balanced": True},
             "telemetry": {"level": 1, "streams": {"events": {"records": 1, "lost": 0}}}}
            if name in present else {}
            for name in ("switch", "sender")
        ]  # fmt: skip
        if present:
            merged = model.decode(json.dumps(folder.merge_summaries(*parts)))
            assert isinstance(merged, model.Live)
            assert list(merged.telemetry.streams) == [f"events-{name}" for name in present]


def test_each_counter_of_a_group_is_defined(weir_sim):
    defined = tables.read()["number"]
    texts = {"name", "cc", "modes", "notes", "stack", "peer", "base_rtt", "back", "transfers"}
    texts |= {"probe"}
    for name in set(parts.Group.__struct_fields__) - texts:
        assert f"groups.{name}" in defined


def strings(node):
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}


def test_no_sentence_is_taken_apart():
    """A verdict was split at "; ", and a sentence with one in it was two.

    A fact's sentence is read in one function, which only shows it; `verdict` is only compared
    with "ok".
    """
    readers = []
    for path in SOURCES:
        text = path.read_text()
        assert '.split("; ")' not in text, path
        for node in ast.walk(ast.parse(text)):
            key = isinstance(node, ast.Subscript) and strings(node.slice) == {"sentence"}
            if key or (isinstance(node, ast.Attribute) and ast.unparse(node) == "fact.sentence"):
                readers.append(f"{path.name}:{node.lineno}")
            if isinstance(node, ast.Compare) and "verdict" in strings(node.left):
                assert strings(node) <= {"verdict", "ok"}, f"{path}:{node.lineno}"
    assert len(readers) == 2, readers  # summary.sentence, and the first of merged verdicts


def test_each_cause_stands_once_in_c():
    """Programs compare it: two places that write the same cause must mean the same."""
    causes = {}
    call = re.compile(r'(?:fact_set\([^,]+,|facts_say\([^,]+,|fact_count\(j,)\s*"(\w+)"')
    for path in sorted(ROOT.glob("[cst]*/**/*.c")):
        if path.relative_to(ROOT).parts[0] in ("common", "sender", "switch", "tools"):
            for cause in call.findall(path.read_text()):
                causes.setdefault(cause, set()).add(path.name)
    assert {"interrupted", "lcore", "port_down", "thrown_away", "no_packets"} <= set(causes)
    twice = {cause: where for cause, where in causes.items() if len(where) > 1}
    # Both ends of a live run have ports whose MTU is too small; two readers find a cut capture.
    assert set(twice) <= {"beyond_mtu", "capture_cut"}, twice

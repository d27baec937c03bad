# SPDX-License-Identifier: BSD-3-Clause
"""study.yaml: a study's runs and claims as data, in any folder."""

from pathlib import Path

import pytest
from weir.base.errors import UserError
from weir.study import claim, find, written

CLAIM = "says: full, runs: a, measure: utilisation, low: 90"


def study(folder: Path, claims: str, runs: str = "a: []") -> claim.Study:
    """Reads a study of one experiment."""
    (folder / "a.yaml").write_text("seed: 1\n")
    text = f"title: T\nruns: {{{runs}}}\nexperiments: {{E: {{claims: [{claims}]}}}}\n"
    (folder / "study.yaml").write_text(text)
    return written.read(folder, "own")


def test_for_repeats_runs_and_claims_and_a_number_has_bounds(tmp_path):
    runs = (
        "a-$cc-$n: {for: [{cc: [x, y]}, {n: [1, 2]}], set: [flows.0.cc=$cc, n=$n], seeds: [1, 3]}"
    )
    number = (
        "says: $n, runs: a-x-$n, measure: rtt_ms(95), published: $ms, within: 0.1, tolerance: o"
    )
    made = study(tmp_path, f"{{{number}, for: {{n: [1, 2], ms: [10, 20]}}}}", runs)
    one, two = made.experiments[0].claims
    assert [(c.says, c.kind, c.low, c.high) for c in (one, two)] == [
        ("1", "number", 9.0, 11.0),
        ("2", "number", 18.0, 22.0),
    ]
    (setup,) = two.setups
    assert (setup.name, setup.override, setup.seeds) == ("a-x-2", ("flows.0.cc=x", "n=2"), (1, 3))
    assert setup.config == tmp_path / "a.yaml"


def test_the_folder_s_own_measures_come_first(tmp_path):
    (tmp_path / "parts.py").write_text("FULL = 7.0\n")
    (tmp_path / "measures.py").write_text(
        "from .parts import FULL\ndef utilisation(run, *, scale=1):\n    return FULL * scale\n"
    )
    made = study(tmp_path, f"{{{CLAIM}}}")
    assert made.experiments[0].claims[0].measure(None) == 7.0


@pytest.mark.parametrize(
    ("claims", "runs", "says"),
    [
        ("{says: x, low: 1, measure: nothing}", "a: []", "E: no measure 'nothing'"),
        ("{says: x, low: 1, measure: utilization}", "a: []", "did you mean 'utilisation'?"),
        ("{says: x, low: 1, measure: 'run.path'}", "a: []", "E: 'run.path' is no measure"),
        ("{says: x, low: 1, measure: '3 +'}", "a: []", "E: '3 +' is no measure"),
        (f"{{{CLAIM}, lo: 1}}", "a: []", "E: Object contains unknown field `lo`"),
        (f"{{{CLAIM}}}".replace("90", "much"), "a: []", "Expected `float`"),
        (f"{{{CLAIM}}}".replace("runs: a", "runs: b"), "a: []", "E: no run is named 'b'; there"),
        (f"{{{CLAIM}}}", "a: {config: b}", "the run 'a' has no config: "),
        (f"{{{CLAIM}, published: 5}}", "a: []", "E: full: a claim of kind 'number' has"),
        (
            f"{{{CLAIM}, for: {{x: [1], y: []}}}}",
            "a: []",
            "E: `for` has lists of different lengths",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(tmp_path, claims, runs, says):
    with pytest.raises(UserError) as refused:
        study(tmp_path, claims, runs)
    assert str(refused.value).startswith(f"{tmp_path / 'study.yaml'}: ")
    assert says in str(refused.value)


def test_a_folder_that_is_no_study_says_how_to_make_one(tmp_path):
    with pytest.raises(UserError, match=r"it has no study\.yaml; weir new study NAME makes one"):
        find.chosen(f"{tmp_path}/")

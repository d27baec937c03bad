# SPDX-License-Identifier: BSD-3-Clause
"""A study's claims beside Linux: `weir reproduce NAME --guests` measures those that have `guests`
with unmodified kernels at both ends, and with our hosts in the same network.

Each is three claims of the study that is run: what Linux has, what ours have, and the second mean
over the first, which is judged: it differs if it is further from 1 than 5 % and than seeds spread,
which is Welch's 95 % interval of the difference. Their results stay in guests.json, so that the
pages of the study have them without guests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weir.base.errors import UserError
from weir.study import kept
from weir.study.claim import Claim, Experiment, Study

FAR = 0.05  # ours over Linux's, less 1
LINUX, OURS, OVER = ": Linux", ": ours", ": ours over Linux's"


def beside(claim: Claim) -> list[Claim]:
    """Makes the three claims of one that has guests; of another none."""
    guests, measure = claim.guests, claim.measure
    if guests is None or measure is None:
        return []
    own = Claim(claim.says, claim.source, "shown", (), measure, claim.unit, kept=True)
    over = Claim(
        claim.says + OVER,
        claim.source,
        "direction",
        guests.ours,
        measure,
        "times",
        low=1 - FAR,
        high=1 + FAR,
        why=guests.why,
        against=guests.setups,
    )
    return [
        replace(own, says=own.says + LINUX, setups=guests.setups),
        replace(own, says=own.says + OURS, setups=guests.ours),
        over,
    ]


def has_guests(study: Study) -> bool:
    return any(claim.guests for one in study.experiments for claim in one.claims)


def studies_of(studies: Sequence[Study]) -> tuple[Study, ...]:
    """Makes the studies beside Linux of those that have any. UserError: none has."""
    found = tuple(study_of(one) for one in studies if has_guests(one))
    if not found:
        raise UserError(f"--guests: no claim of {studies[0].name} is measured with Linux guests")
    return found


def study_of(study: Study) -> Study:
    """Makes the study of the claims that have guests."""
    experiments = (
        Experiment(one.name, one.title, tuple(new for own in one.claims for new in beside(own)))
        for one in study.experiments
    )
    return Study(
        f"{study.name}-guests",
        f"{study.title}: beside Linux",
        study.source,
        tuple(one for one in experiments if one.claims),
        study.folder,
        drawn=None,
        command=f"reproduce {study.name} --guests",
        results="guests.json",
    )


Texts = dict[tuple[str, str], str]


def texts(study: Study) -> Texts:
    """Returns what the study's results have of Linux, and of ours there, by experiment and claim.

    Claims that have changed since then, or were not measured, have nothing.
    """
    if study.folder is None or not has_guests(study):
        return {}
    own = study_of(study)
    if not kept.has(own):
        return {}
    found = {row[:2]: row[2] for row in kept.read(own).rows[own.name] if row[3] != "missing"}
    return {
        (name, says.removesuffix(LINUX)): f"{here}; {ours}"
        for (name, says), here in found.items()
        if (ours := found.get((name, says.removesuffix(LINUX) + OURS))) and says.endswith(LINUX)
    }

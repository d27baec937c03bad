# SPDX-License-Identifier: BSD-3-Clause
"""A study's claims beside Linux: `weir reproduce NAME --guests` measures those that have `guests`
with unmodified kernels at both ends, and with our hosts in the same network.

Each is three claims of the study that is run: what Linux has, what ours have, and the second mean
over the first, which is judged: it differs if it is further from 1 than 5 % and than seeds spread,
which is Welch's 95 % interval of the difference. Their results stay in guests.json, so that the
pages of the study have them without guests.

Where the study names `sources`, a control that Linux has in a file of its own also runs from that
file, in our TCP: this tells a difference of the control from one of the transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from weir.base.errors import UserError
from weir.study import kept
from weir.study.claim import Claim, Experiment, Guests, Study

FAR = 0.05  # ours over Linux's, less 1
OVER = {  # with what the judged claims are compared, by the end of what they say
    Guests((), ()).labels[2]: "Linux's",
    Guests((), (), source=True).labels[2]: "those of Linux's own source in our TCP",
}


def beside(claim: Claim) -> Iterator[Claim]:
    """Yields three claims for each way in which a claim is measured beside Linux."""
    for guests in claim.guests:
        linux, ours, over = guests.labels
        own = Claim(claim.says, claim.source, "shown", (), claim.measure, claim.unit, kept=True)
        yield replace(own, says=own.says + linux, setups=guests.setups)
        yield replace(own, says=own.says + ours, setups=guests.ours)
        yield Claim(
            claim.says + over,
            claim.source,
            "direction",
            guests.ours,
            claim.measure,
            "times",
            low=1 - FAR,
            high=1 + FAR,
            why=guests.why,
            against=guests.setups,
        )


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
        sources=study.sources,
    )


Texts = dict[tuple[str, str], str]  # by experiment and claim
COLUMNS = {False: "Linux; ours there", True: "Linux's source; ours beside it"}  # by Guests.source


def texts(study: Study) -> dict[str, Texts]:
    """Returns what the study's results have of Linux, and of ours there, by the column's header.

    Claims that have changed since then, or were not measured, have nothing.
    """
    if study.folder is None or not has_guests(study):
        return {}
    own = study_of(study)
    if not kept.has(own):
        return {}
    found = {row[:2]: row[2] for row in kept.read(own).rows[own.name] if row[3] != "missing"}
    texts: dict[str, Texts] = {}
    for one in study.experiments:
        for claim in one.claims:
            for of in claim.guests:
                sides = [found.get((one.name, claim.says + end)) for end in of.labels[:2]]
                if all(sides):
                    column = texts.setdefault(COLUMNS[of.source], {})
                    column[one.name, claim.says] = "; ".join(map(str, sides))
    return texts

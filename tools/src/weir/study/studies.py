# SPDX-License-Identifier: BSD-3-Clause
"""The studies that `weir reproduce` knows: a new one is a module, its configs, and a line here."""

from __future__ import annotations

from itertools import chain

from weir.study import (
    bbr_draft,
    c4,
    copa,
    copa_ns3,
    corescale,
    lola,
    mvfst,
    papers,
    rfc7928,
    rmcat,
    tcp_eval,
)
from weir.study.claim import Study

# What `all` runs: the five documents that Weir exists for.
ALL: tuple[Study, ...] = (
    copa.STUDY,
    copa_ns3.STUDY,
    lola.STUDY,
    mvfst.STUDY,
    corescale.CORESCALE,
)
# The field's test suites: suites.md of tools/docs/reference has a section for each, suites/ its
# results.
SUITES: dict[str, tuple[Study, ...]] = {
    "bbr-draft": (bbr_draft.STUDY,),
    "c4": (c4.STUDY,),
    "rmcat": (rmcat.STUDY,),
    "tcp-eval": tcp_eval.STUDIES,
    "rfc7928": rfc7928.STUDIES,
}
STUDIES: dict[str, Study] = {
    study.name: study
    for study in (*ALL, corescale.EDGESCALE, papers.STUDY, *chain.from_iterable(SUITES.values()))
}


def names() -> list[str]:
    """What `weir reproduce` runs; `linux` has a command line of its own."""
    return list(dict.fromkeys([*STUDIES, *SUITES, "linux", "all"]))


def chosen(name: str) -> tuple[Study, ...]:
    """The studies of a name: several of `all` and of some suites."""
    return {"all": ALL, **SUITES}.get(name) or (STUDIES[name],)

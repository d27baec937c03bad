# SPDX-License-Identifier: BSD-3-Clause
"""The studies that `weir reproduce` knows: a new one is a module, its configs, and a line here."""

from __future__ import annotations

from weir.study import copa, copa_ns3, corescale, lola, mvfst, papers
from weir.study.claim import Study

# What `all` runs: the five documents that Weir exists for.
ALL: tuple[Study, ...] = (
    copa.STUDY,
    copa_ns3.STUDY,
    lola.STUDY,
    mvfst.STUDY,
    corescale.CORESCALE,
)
STUDIES: dict[str, Study] = {
    study.name: study for study in (*ALL, corescale.EDGESCALE, papers.STUDY)
}

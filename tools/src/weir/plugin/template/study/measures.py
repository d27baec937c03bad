"""The measures of NAME, each a function of one run or more."""

from weir.analysis.folder import Run


def retransmitted(run: Run) -> float:
    """Returns how many of a thousand segments were sent again, by the first group of flows."""
    group = run.summary.groups[0]
    return 1000 * (group.retransmits or 0) / group.sent_segs

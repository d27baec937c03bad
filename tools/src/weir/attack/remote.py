# SPDX-License-Identifier: BSD-3-Clause
"""Trials on a cluster: each travels to a worker as a sweep's cell does, its summary comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir.attack.trials import Summary, Trials, checked
from weir.base import configs
from weir.base.errors import UserError
from weir.many import cluster, travel
from weir.many.dispatch import Dispatch

JOBS = 4  # of a cluster with queues, without --workers


class RemoteTrials:
    """What Trials is, with the workers of a cluster."""

    def __init__(self, crew: cluster.Crew) -> None:
        self._several: list[dict[str, Any]] = []
        self._dispatch = Dispatch(crew, lambda index: packed(self._several[index]), None)

    def run(self, several: Sequence[dict[str, Any]]) -> list[Summary]:
        """The summary of each config; a config that weir-sim refuses is a UserError."""
        self._several = list(several)
        ended = dict(self._dispatch.results([()] * len(several)))
        return [summary(config, ended[index]) for index, config in enumerate(several)]


def packed(config: dict[str, Any]) -> travel.Trial:
    """A config and the files that it names, which have whole paths."""
    return travel.Trial(*travel.pack(configs.plain(config)))


def summary(config: dict[str, Any], result: travel.Result) -> Summary:
    """What came back."""
    if result.message:
        raise UserError(f"{result.message} in the config {json.dumps(config)}", 1)
    return checked(result.summary, json.dumps(config))


@contextmanager
def opened(folder: Path, where: str | None, workers: int | None) -> Iterator[Trials | RemoteTrials]:
    """Trials here, or on the cluster that is named."""
    if where is None:
        with Trials(folder, workers) as trials:
            yield trials
        return
    cluster.check(where, workers)
    with cluster.connected(where, workers, workers or JOBS) as crew:
        yield RemoteTrials(crew)

# SPDX-License-Identifier: BSD-3-Clause
"""Gives cells to workers, the longest first, and takes what comes back.

A worker has as many cells as threads, no more: no cell waits in one worker while another is idle.
Short ones go several at a time. A worker is asked who it is before its first cell, and refused by
name if it is of another version or computes something else. The cells of a worker that is gone go
to others, each then alone on its worker, so that the one that kills becomes known; after DEATHS_MAX
workers it is given up. When the scheduler is another than before, what was under way begins anew.
"""

from __future__ import annotations

import concurrent.futures
import os
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from weir.base.errors import UserError
from weir.many import travel
from weir.many.cluster import Crew
from weir.many.costs import Costs
from weir.many.travel import Result, Work

if TYPE_CHECKING:
    from distributed import Future

DEATHS_MAX = 3
TRIES_MAX = 20  # of a cell whose scheduler or worker goes again and again
REFRESH_S = 1.0  # between two looks at who is there
POLL_S = 0.2
GATHER_S = (10, 60, 600)  # for a result to arrive from a worker that is there
MESSAGE_S = 0.5  # short cells go together, up to this
MESSAGE_CELLS_MAX = 64
OVERHEAD_S = 0.02  # of a cell, beside its simulation

Prepare = Callable[[int], Work | Result]
Ended = tuple[int, Result]


@dataclass
class Worker:
    """A worker that was accepted."""

    name: str
    threads: int
    keys: set[str] = field(default_factory=set)
    alone: bool = False  # with a cell that others died of


@dataclass(frozen=True)
class Sent:
    """Cells that a worker has."""

    indices: tuple[int, ...]
    address: str
    future: Future[list[Result]]


class Dispatch:
    """The cells of a batch by index, from waiting to ended."""

    def __init__(
        self,
        crew: Crew,
        prepare: Prepare,
        out: Path | None,
    ) -> None:
        self.crew, self.prepare, self.out = crew, prepare, out
        self.settings: Sequence[tuple[Hashable, ...]] = ()
        self.costs = Costs()
        self.sort_at = 1
        self.waiting: list[int] = []  # the next is the last
        self.ready: deque[tuple[int, concurrent.futures.Future[Work | Result]]] = deque()
        self.suspects: deque[int] = deque()
        self.deaths: dict[int, list[str]] = {}
        self.tries: list[int] = []
        self.workers: dict[str, Worker] = {}
        self.refused: dict[str, str] = {}
        self.sent: dict[str, Sent] = {}
        self.ended: SimpleQueue[str] = SimpleQueue()
        self.scheduler = ""
        self.refreshed_s = -REFRESH_S
        self.seen_s = 0.0

    def results(
        self, settings: Sequence[tuple[Hashable, ...]], costs_s: Sequence[float] | None = None
    ) -> Iterator[Ended]:
        """Yields each cell's index and what became of it, as they end.

        settings are each cell's, for its cost; costs_s is a first guess of that [all alike].
        """
        self.settings, self.tries = settings, [0] * len(settings)
        first_s = costs_s or [0.0] * len(settings)
        self.waiting = sorted(range(len(settings)), key=lambda i: (first_s[i], -i))
        self.seen_s = time.monotonic()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            try:
                while self.waiting or self.ready or self.suspects or self.sent:
                    yield from self._refresh()
                    yield from self._give(pool)
                    yield from self._take()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def cost(self, index: int, wall_s: float) -> None:
        """Learns what a cell took, and sorts the waiting ones when twice as many have ended."""
        self.costs.add(self.settings[index], wall_s)
        if self.costs.ended >= self.sort_at:
            self.sort_at *= 2
            cost = {i: self.costs.estimate_s(self.settings[i]) or 0 for i in self.waiting}
            self.waiting.sort(key=lambda i: (cost[i], -i))

    # 1. Who is there.

    def _refresh(self) -> Iterator[Ended]:
        now_s = time.monotonic()
        if now_s - self.refreshed_s < REFRESH_S:
            return
        scheduler, there = self.crew.there()
        self.refreshed_s = time.monotonic()
        if scheduler and scheduler != self.scheduler:
            self._anew()
            self.scheduler = scheduler
        if scheduler:
            for address in self.workers.keys() - there.keys():
                yield from self._gone(address)
            self._accept({a: one for a, one in there.items() if a not in self.workers})
            self.crew.keep({worker.name for worker in self.workers.values()})
        if self.workers and scheduler:
            self.seen_s = self.refreshed_s
        elif self.refreshed_s - self.seen_s > self.crew.away_s_max or (
            self.refused and there and self.refused.keys() >= there.keys()
        ):
            raise UserError("; ".join(self.refused.values()) or "no worker is left", 1)

    def _anew(self) -> None:
        """Requeues everything that the old scheduler had."""
        for key in list(self.sent):
            self._requeue(self._forget(key).indices)
        self.workers.clear()

    def _accept(self, there: dict[str, tuple[str, int]]) -> None:
        """Asks new workers who they are."""
        new = {a: one for a, one in there.items() if a not in self.refused}
        if not new:
            return
        if self.crew.local:
            said = dict.fromkeys(new, travel.LOCAL)
        else:
            said = self.crew.client.run(travel.identity, workers=list(new), on_error="return")
        for address, (name, threads) in new.items():
            wrong = self.crew.differs(said.get(address))
            if wrong is None:
                self.workers[address] = Worker(name, threads)
            elif wrong:
                self.refused[address] = f"worker {name} ({address}) is refused: {wrong}"
                print(f"weir: {self.refused[address]}", file=sys.stderr)

    def _gone(self, address: str) -> Iterator[Ended]:
        worker = self.workers.pop(address)
        for key in list(worker.keys):
            for index in self._forget(key).indices:
                dead = self.deaths.setdefault(index, [])
                dead.append(worker.name)
                if len(dead) < DEATHS_MAX:
                    self.suspects.append(index)
                    continue
                names = ", ".join(dead)
                yield index, Result(f"{DEATHS_MAX} workers died while they ran it: {names}", None)

    # 2. Who gets what.

    def _give(self, pool: ThreadPoolExecutor) -> Iterator[Ended]:
        while True:
            self._fill(pool)
            if self.suspects and (worker := self._idle(wholly=True)) is not None:
                index = self.suspects.popleft()
                yield from self._send(worker, [(index, self.prepare(index))])
            elif self.ready and (worker := self._idle(wholly=False)) is not None:
                yield from self._send(worker, self._message())
            else:
                return

    def _fill(self, pool: ThreadPoolExecutor) -> None:
        """Prepares a few cells before a worker is free."""
        wanted = 4 + 2 * sum(worker.threads for worker in self.workers.values())
        while self.waiting and self.workers and len(self.ready) < wanted:
            index = self.waiting.pop()
            self.ready.append((index, pool.submit(self.prepare, index)))

    def _idle(self, wholly: bool) -> str | None:
        """Returns the worker with most threads to spare, or one without any cell."""
        free = {
            address: worker.threads - len(worker.keys)
            for address, worker in self.workers.items()
            if not worker.alone and not (wholly and worker.keys)
        }
        best = max(free, key=free.__getitem__, default=None)
        return best if best is not None and free[best] > 0 else None

    def _message(self) -> list[tuple[int, Work | Result]]:
        """Takes the next cell, and those after it while all are short."""
        chosen: list[tuple[int, Work | Result]] = []
        cost_s = 0.0
        while self.ready and len(chosen) < MESSAGE_CELLS_MAX:
            index, prepared = self.ready[0]
            estimate_s = self.costs.estimate_s(self.settings[index])
            cost_s += MESSAGE_S if estimate_s is None else estimate_s + OVERHEAD_S
            if chosen and cost_s > MESSAGE_S:
                break
            self.ready.popleft()
            chosen.append((index, prepared.result()))
        return chosen

    def _send(self, address: str, message: list[tuple[int, Work | Result]]) -> Iterator[Ended]:
        """Yields what needs no worker, and sends the rest."""
        tasks = []
        for index, one in message:
            if isinstance(one, Result):
                yield index, one
            else:
                tasks.append((index, one))
        if not tasks:
            return
        worker, key = self.workers[address], f"cells-{uuid.uuid4().hex}"
        indices = tuple(index for index, _ in tasks)
        future = self.crew.client.submit(
            travel.run_tasks, [task for _, task in tasks], self.out,
            key=key, workers=[address], allow_other_workers=False, pure=False,
        )  # fmt: skip
        worker.keys.add(key)
        worker.alone = any(index in self.deaths for index in indices)
        self.sent[key] = Sent(indices, address, future)
        future.add_done_callback(lambda ended: self.ended.put(ended.key))

    # 3. What comes back.

    def _take(self) -> Iterator[Ended]:
        try:
            key = self.ended.get(timeout=POLL_S)
        except Empty:
            return
        if key not in self.sent:
            return
        results = self._gathered(self.sent[key])
        if key not in self.sent:
            return
        sent = self._forget(key)
        if results is None:
            self._requeue(sent.indices)
        else:
            yield from zip(sent.indices, results, strict=True)

    def _gathered(self, sent: Sent) -> list[Result] | None:
        """Returns the results of a message; None if they are lost."""
        from distributed import KilledWorker

        if sent.future.status in ("cancelled", "lost"):
            return None
        for timeout_s in GATHER_S:
            try:
                return list(sent.future.result(timeout=timeout_s))
            except TimeoutError:
                if sent.address not in self.crew.there()[1]:
                    return None
            except KilledWorker:
                return None
            except Exception as error:  # a worker that cannot import weir
                if sent.future.status in ("cancelled", "lost"):
                    return None
                said = f"Dask could not run it: {type(error).__name__}: {error}"
                return [Result(said, None)] * len(sent.indices)
        return None

    def _forget(self, key: str) -> Sent:
        sent = self.sent.pop(key)
        # Nobody holds on to a future whose result is here: Dask would run it again were its worker
        # to die later.
        sent.future.release()
        if sent.address in self.workers:
            worker = self.workers[sent.address]
            worker.keys.discard(key)
            worker.alone = False
        return sent

    def _requeue(self, indices: Sequence[int]) -> None:
        for index in indices:
            self.tries[index] += 1
            if self.tries[index] > TRIES_MAX:
                raise UserError("the scheduler or its workers come and go: given up", 1)
            (self.suspects if index in self.deaths else self.waiting).append(index)

# SPDX-License-Identifier: BSD-3-Clause
"""Workers for cells: on this machine, of a running Dask scheduler, over ssh, as jobs of a cluster.

Dask carries tasks and results. Which worker gets which cell is said by dispatch.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weir.base.errors import UserError
from weir.many import travel
from weir.many.jobs import JOBS_MAX, QUEUES, Jobs, needed, queued

if TYPE_CHECKING:
    from distributed import Client, LocalCluster, SpecCluster
    from distributed.deploy.cluster import Cluster

CONNECT_S_MAX = 30.0  # for a scheduler to answer and to have a worker
AWAY_S_MAX = 300.0  # without a scheduler or a worker, in the middle
QUEUED_S_MAX = 7 * 24 * 3600.0  # for a job of a cluster to begin


@dataclass
class Crew:
    """A client of a scheduler and its workers."""

    client: Client
    address: str | None  # of a scheduler that outlives us and may come back; None: ours
    local: bool
    away_s_max: float
    opened: list[Client] = field(default_factory=list)
    ours: tuple[str, str] | None = None  # who we are, once somebody is asked
    jobs: Jobs | None = None

    def there(self) -> tuple[str, dict[str, tuple[str, int]]]:
        """Returns which scheduler answers, and its workers' names and threads by address."""
        if self.client.status in ("closed", "closing"):
            self._reconnect()
        scheduler = self.client.scheduler
        if self.client.status != "running" or scheduler is None:
            return "", {}
        try:
            # Client.scheduler_info() keeps the answer where Dask's own, without workers, may be put
            # before it is read.
            said = self.client.sync(scheduler.identity, n_workers=-1)
        except (OSError, RuntimeError, TimeoutError):
            return "", {}
        return str(said.get("id", "")), {
            address: (str(one["name"]), int(one["nthreads"]))
            for address, one in said.get("workers", {}).items()
            if one.get("status") in ("running", None)
        }

    def differs(self, said: tuple[str, str] | BaseException | None) -> str | None:
        """Returns why a worker that said this is refused: None if it is not, "" to ask again."""
        if self.local:
            return None
        if self.ours is None:
            self.ours = travel.identity()
        if isinstance(said, BaseException):
            gone = isinstance(said, (OSError, TimeoutError))
            return "" if gone else f"it cannot run weir: {type(said).__name__}: {said}"
        if said is None:
            return ""
        (version, digest), (ours, our_digest) = said, self.ours
        if not version:
            return str(digest)
        if version != ours:
            return f"it has {version}, here is {ours}"
        if digest != our_digest:
            return f"its run of a known cell has digest {digest}, ours {our_digest}"
        return None

    def keep(self, workers: Collection[str]) -> None:
        """Replaces jobs of a cluster that have ended; workers are the names of those accepted."""
        if self.jobs is not None:
            self.jobs.keep(workers)

    def _reconnect(self) -> None:
        from distributed import Client

        if self.address is None:
            raise UserError("the scheduler of the cluster has ended", 1)
        with suppress(OSError, TimeoutError, ValueError):
            self.client = Client(self.address, timeout=5)
            self.opened.append(self.client)

    def close(self) -> None:
        """Closes every client but the first, which its context closes."""
        for client in self.opened:
            with suppress(Exception):
                client.close(timeout=2)


def check(where: str | None, workers: int | None) -> None:
    """Refuses an address that is none."""
    if where is None or where.partition(":")[0] in QUEUES:
        return
    kind, colon, rest = where.partition(":")
    if kind == "ssh" and colon and all(rest.split(",")):
        return
    if "://" not in where:
        raise UserError(
            f"--cluster: '{where}' is none of tcp://host:port, ssh:host,host, slurm, pbs"
        )
    if workers is not None:
        raise UserError("--workers: the workers of a running scheduler are as they are")


@contextmanager
def connected(where: str | None, workers: int | None, cells: int) -> Iterator[Crew]:
    """Connects to a running scheduler, or makes a cluster of our own that ends with the context."""
    from distributed import Client

    # Outcomes say what went wrong; a cluster that closes on a busy machine leaves futures behind.
    for name in ("distributed", "distributed.client", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    kind = (where or "").partition(":")[0]
    running = where is not None and "://" in where
    with ExitStack() as stack:
        address: str | Cluster | None = where
        jobs: Jobs | None = None
        if where is None:
            address = stack.enter_context(_local(workers, cells))
        elif kind == "ssh":
            address = stack.enter_context(_ssh(where.partition(":")[2].split(","), workers))
        elif kind in QUEUES:
            jobs = stack.enter_context(queued(kind, workers or min(cells, JOBS_MAX)))
            address = jobs.made
        try:
            client = stack.enter_context(Client(address, timeout=CONNECT_S_MAX))
            if running:
                client.wait_for_workers(1, timeout=CONNECT_S_MAX)
        except (OSError, ValueError, TimeoutError) as error:
            raise UserError(
                f"{where}: no Dask scheduler with a worker answers there: {error}", 1
            ) from None
        away_s_max = QUEUED_S_MAX if kind in QUEUES else AWAY_S_MAX
        crew = Crew(client, where if running else None, where is None, away_s_max, jobs=jobs)
        stack.callback(crew.close)
        yield crew


@contextmanager
def _local(workers: int | None, cells: int) -> Iterator[LocalCluster]:
    import dask
    from dask.system import CPU_COUNT
    from distributed import LocalCluster

    # No cell waits in one worker while another is idle.
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": 1.0}),
        LocalCluster(
            n_workers=min(workers or CPU_COUNT, cells),
            threads_per_worker=1,
            processes=False,  # a cell is a process already: no ports, no start-up
            dashboard_address="127.0.0.1:0",  # None would be 8787 on every address
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as made,
    ):
        yield made


@contextmanager
def _ssh(hosts: list[str], workers: int | None) -> Iterator[SpecCluster]:
    """Starts a worker on each host and the scheduler on the first, by users of ~/.ssh/config."""
    needed("asyncssh")
    from distributed import SSHCluster

    options = {"dashboard": False, "idle_timeout": "10 minutes", "port": 0}
    try:
        made = SSHCluster(
            [hosts[0], *hosts],
            scheduler_options=options | {"host": asyncio.run(_address(hosts[0]))},
            worker_options={"nthreads": workers, "death_timeout": "60"},
            remote_python=os.environ.get("WEIR_REMOTE_PYTHON") or sys.executable,
        )
    except Exception as error:
        raise UserError(f"ssh:{','.join(hosts)}: no cluster there: {error}", 1) from None
    with made:
        yield made


async def _address(host: str) -> str:
    """Returns the address by which we reach a host: Dask takes that of its way to the internet."""
    async with needed("asyncssh").connect(host) as connection:
        return str(connection.get_extra_info("peername")[0])

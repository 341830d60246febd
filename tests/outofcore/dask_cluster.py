"""A Dask cluster of processes that can be killed.

Schedulers and workers are forked from a process that has the slow imports behind it, so that another worker
takes the place of one that was killed at once.
"""

import asyncio
import multiprocessing
import os
import signal
from contextlib import contextmanager

from distributed import Scheduler, Worker

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "tests.outofcore.dask_cluster",
        "dask.array",
        "dask.dataframe",
        "distributed.shuffle",
        "hubless.outofcore.dask.dask_files",
    ]
)


async def _schedule(pipe):
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") as scheduler:
        pipe.send(scheduler.address)
        await scheduler.finished()


async def _work(address):
    async with Worker(address, nthreads=1, dashboard=False, death_timeout=5) as worker:
        await worker.finished()


def schedule(pipe):
    asyncio.run(_schedule(pipe))


def work(address):
    asyncio.run(_work(address))


class Cluster:
    """A scheduler and workers, each a process."""

    def __init__(self, n_workers=2):
        ours, theirs = FORKS.Pipe()
        self.scheduler = FORKS.Process(target=schedule, args=(theirs,), daemon=True)
        self.scheduler.start()
        assert ours.poll(60)
        self.address = ours.recv()
        self.workers = []
        for _ in range(n_workers):
            self.add()

    def add(self):
        worker = FORKS.Process(target=work, args=(self.address,), daemon=True)
        worker.start()
        self.workers.append(worker)

    def kill_one(self, number):
        """Kill a worker, and let another begin."""
        os.kill(self.workers.pop(number).pid, signal.SIGKILL)
        self.add()

    def kill_scheduler(self):
        os.kill(self.scheduler.pid, signal.SIGKILL)

    def close(self):
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.join()


@contextmanager
def running(n_workers=2):
    cluster = Cluster(n_workers)
    try:
        yield cluster
    finally:
        cluster.close()

"""Other processes for tests, and ways to kill them; they are forked from one that did the slow imports."""

import multiprocessing
import os
import signal

LONG = 600  # seconds, for a machine that is busy
CONTEXT = multiprocessing.get_context("forkserver")
CHANGES = ("ALTER", "CREATE", "DELETE", "DROP", "INSERT")  # what statements that change something begin with
PRELOADED = [  # once for all tests of a process; what is not installed is skipped
    "chromadb",
    "duckdb",
    "lancedb",
    "psycopg",
    "qdrant_client",
    "qdrant_edge",
    "sqlite_vec",
    "hubless.loop.watch",
    "hubless.repair.apply",
    "hubless.testing.store_cases",
]


def start(work, *arguments):
    """Run a function in another process."""
    CONTEXT.set_forkserver_preload(PRELOADED)
    process = CONTEXT.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def killed_at(moment, count_steps, work, *arguments):
    """Run a function in a process that is killed before its step of this number, counted from 0.

    `count_steps(counted)` replaces every function that is a step by `counted` of it.
    """
    process = start(_run_until, moment, count_steps, work, *arguments)
    process.join(LONG)
    assert process.exitcode == -signal.SIGKILL, (moment, process.exitcode)


def _run_until(moment, count_steps, work, *arguments):
    left = [moment]

    def counted(step):
        def step_or_die(*args, **options):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return step(*args, **options)

        return step_or_die

    count_steps(counted)
    work(*arguments)

"""How long hubless takes to start: imports and `--help`, in processor time of separate processes."""

import subprocess
import sys
from functools import partial
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from .record import Options
from .timing import race

PYTHON, HELP = "python", "hubless --help"
IMPORTS = {
    PYTHON: "pass",
    "import numpy": "import numpy",
    "import hubless": "import hubless",
    "import hubless.movers": "import hubless.movers",
}
# before the package was divided into rooms that are loaded when they are used
SECONDS_BEFORE = {"import numpy": 0.15, "import hubless": 1.83, "import hubless.movers": 1.96, HELP: 2.3}
MODULES_BEFORE = {"import hubless.movers": 106}
COUNT = "import sys; print(sum(name.split('.')[0] == 'hubless' for name in sys.modules), file=sys.stderr)"


def measure(options: Options) -> dict[str, Any]:
    """Measure the processor time of every import and every help, and count our modules that they load."""
    scripts = {**IMPORTS, HELP: _help()}
    if not options.quick:
        scripts |= {f"hubless {verb} --help": _help(verb) for verb in verbs()}
    contenders = {name: partial(run, script) for name, script in scripts.items()}
    seconds = race(contenders, options.repeats, title="startup", pause=options.pause, clock=processor_seconds)
    modules = {name: int(run(f"{script}\n{COUNT}")) for name, script in scripts.items()}
    return {"startup": {"reference": PYTHON, "seconds": seconds, "modules": modules}}


def verbs() -> list[str]:
    """Return the verbs of the command line."""
    from hubless.cli import parser

    return next(list(action.choices) for action in parser()._actions if isinstance(action.choices, dict))


def processor_seconds() -> float:
    """Return the processor time of all processes that were started here and have ended."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _help(*verb: str) -> str:
    call = f"main({[*verb, '--help']!r})"
    return f"from hubless.cli import main\ntry: {call}\nexcept SystemExit: pass"


def run(script: str) -> str:
    """Run a script in a new process, and return what it writes to its standard error."""
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ).stderr

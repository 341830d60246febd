"""The command line: a verb parses its options, calls one function and prints the result.

Nothing here imports NumPy at once, so that help is fast: a verb loads what it needs when it runs.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from ..integrations import FORMS
from ..support.imports import lazy_names
from ..support.progress import reporting
from ..support.system_errors import explain
from ..support.version import __version__
from .dry_run import run_dry
from .lines import plain_warnings, write_error, write_traceback
from .options import Parser, Verb, VerbOptions

CODES = "exit codes: 0 success; 1 failure, and why; 2 usage error; 130 interrupted"
GROUPS: dict[str, dict[str, tuple[str, str]]] = {  # verbs by purpose: the module with the options, and words
    "start here": {
        "demo": ("paper", "compare plain k-NN with three ways to move, on example data"),
    },
    "look at an index; nothing in it is changed": {
        "doctor": ("look", "diagnose an index: metric, vectors, hubs, whether moving is safe"),
        "report": ("report", "write a page that shows hubs and what moving changes"),
        "status": ("switch", "say whether an index was moved, and by which model"),
    },
    "learn a model": {
        "fit": ("learn", "learn from labels, from answers, or from queries alone"),
        "explain": ("look", "say what a model is, how it was chosen, and its figures"),
        "preview": ("look", "show what queries find before and after the move"),
        "evaluate": ("report", "measure what a model changes, for queries with known answers"),
        "predict": ("look", "classify queries by the vote of the nearest moved items"),
        "update": ("learn", "learn from more labeled items, or forget some"),
        "merge": ("learn", "merge models that learned from different items"),
    },
    "repair the index": {
        "apply": ("switch", "build the moved index beside the original, which is only read"),
        "promote": ("switch", "switch to the moved index under the same name"),
        "rollback": ("switch", "switch back to the original under the same name"),
        "recover": ("switch", "complete or undo a switch that was interrupted"),
        "move": ("move", "move new items before they are added, from stdin to stdout"),
        "export": ("move", f"write a model for {', '.join(FORMS)}"),
    },
    "keep learning from a log": {
        "watch": ("loop", "learn what is new; promote what fresh queries confirm, or undo"),
        "history": ("loop", "show what the loop decided, as a table or a page"),
    },
    "your shell": {
        "completion": ("shell", "print a script for your shell: the Tab key completes commands"),
    },
    "the paper": {
        "reproduce": ("paper", "run the paper's experiments and keep the raw results"),
        "tables": ("paper", "make the paper's tables from raw results, beside its figures"),
    },
}
VERBS = {name: entry for verbs in GROUPS.values() for name, entry in verbs.items()}
FIRST_STEPS = {  # what to type first, and why
    "hubless demo": "see what it does",
    "hubless doctor vectors.npy": "are there hubs?",
    "hubless report vectors.npy --labels labels.npy --open": "would it help?",
    "hubless fit vectors.npy --labels labels.npy -o model": "learn, and what is next",
}
_load = lazy_names(__name__, {f"add_{verb}": f"{module}_verbs" for verb, (module, _) in VERBS.items()})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; return 0 for success, 1 for a failure, 130 for Ctrl-C. A usage error exits with 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        parser("").print_help()
        return 0
    verb = next((text for text in arguments if not text.startswith("-")), "")
    options = parser(verb).parse_args(arguments, VerbOptions())
    with reporting(None, lines=True), plain_warnings(arguments):
        return _run(options, arguments)


def _run(options: VerbOptions, arguments: Sequence[str]) -> int:
    """Run the verb that was parsed; return its exit code, with errors as words."""
    try:
        options.read_label_files()
        return run_dry(options) if getattr(options, "dry_run", False) else options.run(options) or 0
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        sys.stderr.close()
        return 0
    except OSError as error:
        write_error(explain(error), arguments)
        return 1
    except (ValueError, ImportError) as error:
        write_error(str(error), arguments)
        return 1
    except Exception as error:  # a defect of ours: one line for the user, the traceback for a bug report
        if os.environ.get("HUBLESS_TRACEBACK"):
            write_traceback(error, arguments)
            return 1
        write_error(
            f"{type(error).__name__}: {error}. This is a defect of hubless: set HUBLESS_TRACEBACK=1 to see "
            "the traceback, and report it.",
            arguments,
        )
        return 1
    except KeyboardInterrupt:
        write_error("interrupted; the same command resumes where it can, else it starts again")
        return 130


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all verbs; with `only`, only that verb has its options, which loads less."""
    parser = Parser(
        prog="hubless",
        usage="hubless VERB ...",
        description=_overview(),
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    more = parser.add_argument_group("options")
    text = "show this help; after a verb, its options and examples"
    more.add_argument("-h", "--help", action="help", help=text)
    more.add_argument("--version", action="version", version=f"hubless {__version__}")
    verbs = parser.add_subparsers(
        prog="hubless", help=argparse.SUPPRESS, required=True, metavar="VERB", parser_class=Verb
    )
    for name, (_, text) in VERBS.items():
        verb = verbs.add_parser(name, description=f"{text[0].upper()}{text[1:]}.")
        if only in (None, name):
            _load(f"add_{name}")(verb)
    return parser


def parsers_of(whole: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each verb."""
    (verbs,) = (action for action in whole._actions if isinstance(action, argparse._SubParsersAction))
    return dict(verbs.choices)


def _overview() -> str:
    """Return what hubless is, what to type first, and the verbs by purpose."""
    lines = ["Better k-nearest-neighbour answers: move the stored vectors, never the queries."]
    lines += ["", "first steps:", *(f"  {line:<55}{why}" for line, why in FIRST_STEPS.items())]
    for purpose, verbs in GROUPS.items():
        lines += ["", f"{purpose}:"]
        for name, (_, text) in verbs.items():
            lines.append(f"  {name:<10} {text}")
    return "\n".join(lines)

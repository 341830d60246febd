"""The command line: a verb parses its options, calls one function and prints the result.

Nothing here imports NumPy at once, so that help is fast: a verb loads what it needs when it runs.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

from ..integrations import FORMS
from ..support.imports import lazy_names
from ..support.system_errors import explain
from ..support.version import __version__
from .options import Parser, Verb, VerbOptions, write_error

CODES = "exit codes: 0 success; 1 failure, with a message that says why; 2 usage error; 130 interrupted"
VERBS = {  # in the order in which users need them: the module with the options, and what the verb does
    "demo": ("paper", "compare Euclidean, Move-query, Move-labeled and auto on data from scikit-learn"),
    "doctor": ("look", "diagnose an index: its metric, its vectors, its hubs, and whether moving is safe"),
    "fit": (
        "learn",
        "learn how to move the items of an index, from labels, queries and answers, or queries",
    ),
    "evaluate": ("report", "measure what a model changes for queries whose correct answers are known"),
    "preview": ("look", "show what queries find now, and what they would find after the move"),
    "predict": ("look", "classify queries by the vote of the moved items nearest to them"),
    "move": ("move", "move new items on their way into the index, from stdin to stdout"),
    "export": ("move", f"write a model for another program: {', '.join(FORMS)}"),
    "report": ("report", "write a page that shows the hubs of an index and what moving changes"),
    "apply": ("switch", "build the moved index beside the original, which is only read"),
    "promote": ("switch", "switch to the moved index under the same name; the original is kept"),
    "rollback": ("switch", "switch back to the original under the same name; the moved index is kept"),
    "recover": ("switch", "complete or undo a switch that was interrupted"),
    "status": ("switch", "say whether an index is an original or a moved one, and which model moved it"),
    "update": ("learn", "let a model learn from more labeled items, or forget some, without its old data"),
    "merge": ("learn", "merge models that learned from different items into one, without the data"),
    "reproduce": ("paper", "run the paper's experiments: a raw result per data set, method and split"),
    "tables": ("paper", "make the paper's tables from raw results, beside the published figures"),
}
_load = lazy_names(__name__, {f"add_{verb}": f"{module}_verbs" for verb, (module, _) in VERBS.items()})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; return 0 for success, 1 for a failure, 130 for Ctrl-C. A usage error exits with 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    verb = next((text for text in arguments if not text.startswith("-")), "")
    options = parser(verb).parse_args(arguments, VerbOptions())
    warnings.filterwarnings("ignore", "The number of unique classes")  # data may have many classes
    try:
        return options.run(options) or 0
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
            raise
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
        description="Better k-nearest-neighbour answers: move the stored vectors, never the queries.",
        epilog=CODES,
    )
    parser.add_argument("--version", action="version", version=f"hubless {__version__}")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB", parser_class=Verb)
    for name, (_, text) in VERBS.items():
        verb = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if only in (None, name):
            _load(f"add_{name}")(verb)
    return parser

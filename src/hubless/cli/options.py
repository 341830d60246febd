"""The parser of a verb, the options that several verbs share, and how results are printed."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, NoReturn

from ..stores.kinds import DATABASES, METRICS, SUFFIXES
from ..support.commands import command, quoted, typed
from ..support.credentials import how_to_supply, without_secrets, without_secrets_in
from ..support.nearest import files_near, nearest
from ..support.terminal import wants_colour
from ..support.text import as_json, encodable, printable, terminal_json
from .lines import encoding_of, painted_help, write_lines

SOURCE = (
    f"where the vectors are: a file ({' '.join(SUFFIXES)}), a folder of such files (not of indexes), or a "
    f"database: {', '.join(DATABASES)}"
)
ITEMS = (
    "for files and indexes in files: a table with a row per item, as CSV, JSON or Parquet, or a .npy file of "
    "labels, whose column is `label`"
)
LABELS = "column with the class of each item, or a file with one per row (.npy .txt .csv …)"
LABEL_FILES = (".npy", ".txt", ".csv", ".tsv", ".json", ".jsonl", ".parquet")
MODEL = "folder that `hubless fit` wrote"
TEXT = 'column of items to show (default: "text", "title" or "name", where there is one)'
OF_SOURCE = ("vector", "id", "metric", "items")  # options that describe the source
OF_QUERIES = ("query_vector", "query_id", "query_items")


def positive(text: str) -> int:
    """Return a whole number of at least 1."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text}")
    return value


def option(verb: Any, usage: str, help: str, **how: Any) -> None:
    """Add an option to a verb or a group, given as in a usage line: "source", "-o --out FILE", "--json"."""
    flags = [word for word in usage.split() if word.startswith("-")]
    metavars = [word for word in usage.split() if not word.startswith("-")]
    if flags and metavars:
        how["metavar"] = metavars[0]
    elif flags and "choices" not in how:
        how["action"] = "store_true"
    verb.add_argument(*(flags or metavars), help=help, **how)


class Parser(argparse.ArgumentParser):
    """A parser whose errors show no secret of the command line."""

    given: Sequence[str] = ()
    color = False  # Python 3.14 has colours of its own, and asks other variables

    def _print_message(self, message: str, file: Any = None) -> None:
        stream = sys.stderr if file is None else file
        has_colour = message and wants_colour(stream)
        text = encodable(message or "", encoding_of(stream))
        super()._print_message(painted_help(text) if has_colour else text, stream)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse a command line, and remember it."""
        self.given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage, a message and the nearest known word, and exit."""
        message += self._nearest(message)
        for text in self.given:  # a password may have spaces
            message = message.replace(text, without_secrets(text))
        super().error(printable(without_secrets_in(message, self.given)))

    def _nearest(self, message: str) -> str:
        """Return a hint for a verb, an option or one of its choices that was mistyped."""
        known = {*self._option_string_actions}
        for verbs in (
            action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction)
        ):
            known |= {*verbs}
            known |= {option for verb in verbs.values() for option in verb._option_string_actions}
        wrong = re.findall(r"invalid choice: '([^']*)'", message)
        if wrong and "argument VERB" not in message:
            known = {
                str(choice)
                for action in self._actions
                if message.startswith(f"argument {'/'.join(action.option_strings) or action.dest}: ")
                for choice in action.choices or ()
            }
        if message.startswith("unrecognized arguments: "):
            wrong = [word.partition("=")[0] for word in message.split()[2:] if word.startswith("-")]
        near = [match for word in wrong if (match := nearest(word, known))]
        return f". Did you mean {' and '.join(near)}?" if near else ""


class Verb(Parser):
    """The parser of a verb."""

    def explain(self, run: Any, *examples: str, more: str = "", has_json: bool = True) -> None:
        """Set what the verb runs, and its description and examples; add --json."""
        self.set_defaults(run=run, usage_error=self.error)
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        self.description = fill(f"{self.description} {more}", 79)
        title = "example:" if len(examples) == 1 else "examples:"
        self.epilog = "\n".join([title, *(f"  {line}" for line in examples)])
        if has_json:
            option(self, "--json", "print the result as JSON")

    def add_source(self, usage: str = "source", help: str = SOURCE) -> None:
        """Add the source of the items, and the options that describe it."""
        option(self, usage, help)
        option(self, "--vector COLUMN", "column of vectors, where there are several")
        option(self, "--id COLUMN", 'column of ids (default: the primary key, or "id")')
        option(
            self,
            "--metric",
            "how vectors are compared (default: as the store says; a file of hnswlib does not)",
            choices=METRICS,
        )
        option(self, "--items FILE", ITEMS, type=Path)

    def add_queries(self, usage: str = "--queries SOURCE", **how: Any) -> None:
        """Add the options that name the queries."""
        option(
            self,
            usage,
            "where the query vectors are: a file, a folder or a database, as for the items",
            **how,
        )
        option(self, "--query-vector COLUMN", "column of query vectors")
        option(self, "--query-id COLUMN", "column of query ids")
        option(self, "--query-items FILE", "for files: a table with a row per query", type=Path)

    def add_truth(self, required: bool = True) -> None:
        """Add the options that say what is learned from or compared with: classes, or judgements."""
        kind = self.add_mutually_exclusive_group(required=required)
        option(kind, "--labels COLUMN-OR-FILE", LABELS)
        option(kind, "--pairs FILE", "relevance judgements: query-id, corpus-id, score", type=Path)

    def add_dry_run(self, writes: Callable[["VerbOptions"], list[str]]) -> None:
        """Add --dry-run; `writes` says what would be written. `files_of` says it for options with paths."""
        option(self, "--dry-run", "check inputs and outputs, say what would be written, and stop")
        self.set_defaults(writes=writes)

    def add_seed(self, what: str) -> None:
        """Add the seed of random numbers."""
        option(self, "--seed SEED", f"seed of {what} (default: 0)", type=int, default=0, dest="random_state")


def add_dask(verb: Any) -> None:
    """Add the option that lets a cluster do the work."""
    text = "use a running Dask cluster, e.g. tcp://host:8786; without an address, one is started here"
    option(verb, "--dask ADDRESS", text, nargs="?", const="")


def files_of(*names: str) -> Callable[["VerbOptions"], list[str]]:
    """Return what says which files and folders some options name, and whether there is something already."""

    def files(options: VerbOptions) -> list[str]:
        paths = [value for value in options.given(*names).values() if value is not None]
        there = {path: os.path.lexists(os.path.expanduser(path)) for path in paths}
        return [f"{path}{', which exists and would be replaced' * there[path]}" for path in paths]

    return files


class VerbOptions(argparse.Namespace):
    """The options of a verb, as they were given."""

    def given(self, *names: str) -> dict[str, Any]:
        """Return the options with these names."""
        return {name: getattr(self, name) for name in names}

    def read_label_files(self) -> None:
        """Let --labels and --query-labels name a file with a label per row: a table of one column."""
        for labels, items in (("labels", "items"), ("query_labels", "query_items")):
            name = getattr(self, labels, None)
            if name is None or Path(name).suffix.lower() not in LABEL_FILES:
                continue
            path, typed = Path(os.path.expanduser(name)), labels.replace("_", "-")
            if getattr(self, items) is not None:
                table = items.replace("_", "-")
                self.usage_error(f"--{typed} names a column of the table that --{table} gives; got {name}")
            if not path.is_file():
                near = files_near(path)
                self.usage_error(
                    f"--{typed} is a column or a file with a label per row; no file is {name}.{near}"
                )
            setattr(self, items, path)
            setattr(self, labels, self._label_column(path, typed))

    def _label_column(self, path: Path, typed: str) -> str:
        """Return the column of labels of a file: its only one, or `label`."""
        from ..stores.files.file_rows import read_table

        columns = list(read_table(path))
        if len(columns) == 1 or "label" in columns:
            return columns[0] if len(columns) == 1 else "label"
        has, table = ", ".join(columns), "items" if typed == "labels" else "query-items"
        self.usage_error(f"{path} has the columns {has}: give --{table} {path} --{typed} COLUMN")
        raise AssertionError("a usage error exits")

    def open_source(self) -> Any:
        """Open the store of the items; None where none is named."""
        return self._opened(self.source, **self.given(*OF_SOURCE))

    def open_queries(self) -> Any:
        """Open the store of the queries; None where none is named."""
        columns = {"vector": self.query_vector, "id": self.query_id, "items": self.query_items}
        return self._opened(self.queries, **columns)

    def _opened(self, name: str | None, **options: Any) -> Any:
        from ..stores.opening import open_store

        return None if name is None else open_store(name, **options)

    def source_options(self) -> list[str]:
        """Return the options of the source, as typed on a command line."""
        return self._typed(*OF_SOURCE)

    def source_words(self) -> str:
        """Return the source and its options as a shell reads them, without a secret."""
        return " ".join(map(quoted, [without_secrets(self.source), *self.source_options()]))

    def query_options(self) -> list[str]:
        """Return the options of the queries, as typed on a command line."""
        return self._typed(*OF_QUERIES)

    def _typed(self, *names: str) -> list[str]:
        given = {name: value for name, value in self.given(*names).items() if value is not None}
        words = [typed(f"--{name.replace('_', '-')}", value) for name, value in given.items()]
        return [text for option in words for text in option]

    def next_command(self, start: str, verb: str, *names: str, more: Sequence[str] = ()) -> list[str]:
        """Return a line with a command on the source, and one on how to give a secret that it lacks."""
        line = command(verb, *map(without_secrets, names), options=[*self.source_options(), *more])
        return [f"{start} {line}", *how_to_supply(*names)]

    def show(self, result: Any, lines: Iterable[str] | None = None) -> None:
        """Print a result: as JSON, or in words, line by line."""
        if self.json:
            plain = as_json(result.as_dict() if hasattr(result, "as_dict") else result)
            is_utf = encoding_of(sys.stdout).startswith("utf")  # elsewhere, JSON has escapes for all letters
            text = terminal_json(json.dumps(plain, indent=1, ensure_ascii=not is_utf, allow_nan=False))
            print(encodable(text, encoding_of(sys.stdout)))
        else:
            write_lines(str(result).split("\n") if lines is None else lines, sys.stdout)

    def remark(self, *lines: str) -> None:
        """Print a remark that is not part of the result; with --json, to stderr."""
        write_lines(lines, sys.stderr if self.json else sys.stdout)

"""The verbs that use a model elsewhere: move, for new items, and export, for other programs."""

import sys
from pathlib import Path

from ..integrations import FORMS
from ..support.text import encodable, terminal_json
from .lines import encoding_of
from .options import MODEL, Verb, VerbOptions, files_of, option


def add_move(verb: Verb) -> None:
    """Add the options of `hubless move`."""
    verb.explain(
        _move,
        "hubless move model --vector embedding < new.jsonl > moved.jsonl",
        more="Items are JSON lines, each an object with a vector, or an Arrow stream. Do not move queries: "
        "they stay as they are.",
        has_json=False,
    )
    option(verb, "model", MODEL)
    option(verb, "--arrow", "read and write an Arrow IPC stream instead of JSON lines")
    text = 'field of vectors (default: "vector"; of an Arrow stream, the only column of vectors)'
    option(verb, "--vector FIELD", text)
    option(verb, "--id FIELD", "field of ids (default: id)", default="id")
    option(verb, "--label FIELD", "field of classes (default: the column that the model learned from)")


def _move(options: VerbOptions) -> None:
    from ..repair.move_stream import move_arrow, move_lines

    fields = options.given("vector", "id", "label")
    if options.arrow:
        move_arrow(options.model, sys.stdin.buffer, sys.stdout.buffer, **fields)
        return
    for line in move_lines(options.model, sys.stdin, **fields):
        print(encodable(terminal_json(line), encoding_of(sys.stdout)))


def add_export(verb: Verb) -> None:
    """Add the options of `hubless export`."""
    verb.explain(
        _export,
        "hubless export model onnx -o model-onnx",
        "hubless export model numpy -o mover",
        more="It moves stored vectors; queries stay as they are.",
    )
    option(verb, "model", MODEL)
    option(verb, "form", "the program that will use it", choices=FORMS)
    option(verb, "-o --out FOLDER", "new folder to write", type=Path, required=True)
    verb.add_dry_run(files_of("out"))


def _export(options: VerbOptions) -> None:
    from ..integrations.export import export

    written = [str(path) for path in export(options.model, options.form, options.out)]
    options.show({"written": written}, written)

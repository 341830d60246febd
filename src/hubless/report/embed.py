"""Vectors of what one types on a served page: by a command of the user, or by a model on this computer."""

import shlex
import shutil

# the command is of the user, and no shell reads it
import subprocess  # nosec B404
from collections.abc import Callable
from typing import Any

import numpy as np

from ..support.imports import need
from ..support.text import printable
from ..support.untrusted_json import parse_json

MODEL = "st:"  # before the name or folder of a model of sentence-transformers
SECONDS = 60  # that a command may take
TRIAL = "hubless"  # embedded once, before the first long step
SHOWN = 300  # characters of what a command complains about


def embedder(source: str, width: int) -> Callable[[str], np.ndarray]:
    """Return a function from a text to a vector of `width` numbers; it has been tried once.

    `source` is a command, which gets the text from stdin and prints numbers (as JSON, or with spaces), or
    st:MODEL, a model of sentence-transformers, which is read from this computer alone.
    """
    encode = _of_model(source.removeprefix(MODEL)) if source.startswith(MODEL) else _of_command(source)

    def embed(text: str) -> np.ndarray:
        return _checked(encode(text), width, source)

    embed(TRIAL)
    return embed


def _of_command(source: str) -> Callable[[str], Any]:
    words = shlex.split(source)
    if not words or shutil.which(words[0]) is None:
        raise ValueError(f"--embed needs a program that can be run, or {MODEL}MODEL; got {source!r}.")

    def encode(text: str) -> Any:
        try:
            # a list of words, from the command line
            done = subprocess.run(  # nosec B603
                words, input=text.encode(), capture_output=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"{words[0]} took longer than {SECONDS} s, and was ended.") from None
        if done.returncode:
            said = printable(done.stderr.decode(errors="replace").strip()[-SHOWN:])
            raise ValueError(f"{words[0]} ended with code {done.returncode}. {said}".rstrip())
        return _numbers(done.stdout.decode(errors="replace"), words[0])

    return encode


def _numbers(printed: str, program: str) -> Any:
    """Read numbers: a list of JSON, or numbers with spaces or commas between them."""
    try:
        if printed.lstrip().startswith("["):
            return np.array(parse_json(printed), dtype=np.float64)
        return np.array(printed.replace(",", " ").split(), dtype=np.float64)
    except (ValueError, TypeError, RecursionError):
        start = printable(printed.strip()[:80])
        raise ValueError(f"{program} must print numbers and nothing else; it printed {start!r}.") from None


def _of_model(name: str) -> Callable[[str], Any]:
    package = need("sentence_transformers", "embed")
    try:
        model = package.SentenceTransformer(name, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"sentence-transformers finds no model {name!r} on this computer, and hubless downloads nothing. "
            f"Give a folder, or download it first: hf download {shlex.quote(name)}"
        ) from error
    return lambda text: model.encode_query(text)


def _checked(values: Any, width: int, source: str) -> np.ndarray:
    """Return the numbers as one vector; ValueError where they are none for these items."""
    vector = np.asarray(values, dtype=np.float64)
    vector = vector[0] if vector.ndim == 2 and len(vector) == 1 else vector
    if vector.shape != (width,):
        shape = " × ".join(map(str, vector.shape))
        raise ValueError(f"the queries have {width} columns, and {source!r} gives {shape} numbers.")
    if not np.isfinite(vector).all() or not vector.any():
        raise ValueError(f"{source!r} gives a vector that is 0 or has numbers that are not finite.")
    return vector

"""Look for phrases of words.txt in what users read: documents, help, docstrings, messages, the page.

`python docs/words.py` prints each place with what to say instead, and fails where there are any.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
MARKDOWN = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/*.md", "web/README.md")
# what is code in a page or a docstring: fences, `code`, links, names with _ or . or ( or =, options, doctests
CODE = re.compile(
    r"^(`{3,}).*?^\1$|`[^`\n]*`|\]\([^)\n]*\)|<[^>\n]*>|https?://\S+|\S*[_=(/\\]\S*|--[\w-]+"
    r"|^ *(?:>>>|\.\.\.) .*?$",
    re.MULTILINE | re.DOTALL,
)
JAVASCRIPT = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`", re.DOTALL)


class Phrase(NamedTuple):
    """A phrase to avoid."""

    pattern: re.Pattern[str]
    instead: str


def phrases(text: str) -> list[Phrase]:
    """Return the phrases of words.txt."""
    lines = [line.partition(" => ") for line in text.splitlines() if line and not line.startswith("#")]
    return [
        Phrase(re.compile(rf"(?<![\w-])(?:{phrase})(?![\w-])", re.IGNORECASE), instead)
        for phrase, _, instead in lines
    ]


def blanked(text: str) -> str:
    """Return a text with spaces in place of code; lines stay."""
    return CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def prose() -> Iterator[tuple[Path, int, str]]:
    """Yield all prose: its file, its first line, its text."""
    for pattern in MARKDOWN:
        for file in sorted(ROOT.glob(pattern)):
            yield file, 1, blanked(file.read_text())
    for file in sorted((ROOT / "src").rglob("*.py")):
        for line, text in sentences(ast.parse(file.read_text())):
            yield file, line, blanked(text)
    for file in sorted((ROOT / "web").glob("*.js")):
        text = file.read_text()
        for found in JAVASCRIPT.finditer(text):
            if found[0].count(" ") > 1:
                yield file, text[: found.start()].count("\n") + 1, blanked(found[0].strip("`"))


def sentences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module with more than two words, and their lines: docstrings, help, messages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 1:
            yield node.lineno, node.value


def found(texts: Iterator[tuple[Path, int, str]], known: list[Phrase]) -> Iterator[str]:
    """Yield a line for each place with a phrase."""
    for file, first, text in texts:
        for phrase in known:
            for place in phrase.pattern.finditer(text):
                line = first + text[: place.start()].count("\n")
                yield f"{file.relative_to(ROOT)}:{line}: {place[0]!r}: {phrase.instead}"


def main() -> int:
    """Print what was found; return how it ended."""
    lines = list(found(prose(), phrases((ROOT / "docs" / "words.txt").read_text())))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())

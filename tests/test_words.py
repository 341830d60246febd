"""The words of all prose: `docs/words.py` finds phrases to avoid, and there are none."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def words():
    return runpy.run_path(str(ROOT / "docs" / "words.py"))


def test_no_phrase_to_avoid(words, capsys):
    assert words["main"]() == 0, capsys.readouterr().out


PAGE = """# It plays no part

`it plays no part`, [it](plays no part), plays-no-part

```
it plays no part
```
They play no part.
"""


def test_phrases_are_found_in_prose_and_not_in_code(words):
    known = words["phrases"]("# comment\nplays? no part => is ignored\n")
    places = [(ROOT / "page.md", 1, words["blanked"](PAGE))]
    assert [line.split(": ")[0] for line in words["found"](iter(places), known)] == ["page.md:1", "page.md:8"]


def test_messages_help_and_docstrings_are_prose(words):
    tree = ast.parse(
        '"""It plays no part."""\nraise ValueError(f"{x} plays no part")\noption("--x", "no part")'
    )
    texts = [text for _, text in words["sentences"](tree)]
    assert texts == ["It plays no part.", " plays no part"]


def test_every_kind_of_prose_is_read(words):
    kinds = {(file.suffix, file.parent.name) for file, _, text in words["prose"]() if text.strip()}
    assert {(".md", "docs"), (".py", "cli"), (".py", "stores"), (".js", "web")} <= kinds

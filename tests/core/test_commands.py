"""Commands are read by a shell as they were meant."""

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from hubless.support.commands import command, quoted, typed


def read_by_bash(line):
    """Return the words of a command as bash reads them."""
    script = f'hubless() {{ printf "%s\\0" "$@"; }}\n{line}'
    ran = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    return ran.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@settings(max_examples=20)
@given(st.lists(WORDS, min_size=1, max_size=20))
def test_a_shell_reads_every_word_as_it_was(words):
    line = command("apply", *words[1:], options=words[:1])
    assert line.isprintable()
    assert sorted(set(read_by_bash(line)) - {"--"}) == sorted({"apply", *words} - {"--"})


def test_words_that_need_quotes():
    for word in ("a b", "it's", "$HOME", "#x", "~/x", "a\nb\\'", "\x1b[2J", "\udcff", '"', "", "!x", "naïve"):
        assert read_by_bash(f"hubless {quoted(word)}") == [word]
    assert quoted("naïve") == "'naïve'"


def test_words_that_start_with_a_dash():
    assert command("apply", "m", "v.npy", options=typed("-o", "w.npy")) == "hubless apply m v.npy -o w.npy"
    assert command("apply", "-m", "v.npy", options=typed("-o", "-w")) == "hubless apply -o-w -- -m v.npy"
    assert typed("--items", "-i.csv") == ["--items=-i.csv"]

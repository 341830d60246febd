"""Completion, by the shells themselves: bash, and zsh and fish where they are installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hubless import cli
from hubless.cli.completion import SHELLS

BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hubless
printf '%s\\n' "${COMPREPLY[@]}"
"""
ASKED = [  # what is typed so far → what is offered for the last word
    (["hubless", "pr"], {"preview", "predict", "promote"}),
    (["hubless", "fit", "v.npy", "--lab"], {"--labels"}),
    (["hubless", "fit", "--metric", "c"], {"cosine"}),
    (["hubless", "export", "model", "on"], {"onnx"}),
    (["hubless", "completion", "z"], {"zsh"}),
    (["hubless", "reproduce", "--only", ""], {"cells", "times"}),
]


@pytest.fixture
def script(tmp_path, words):
    def script(shell):
        path = tmp_path / f"hubless.{shell}"
        path.write_text(words("completion", shell))
        return str(path)

    return script


def ask(*command):
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return {line.partition("\t")[0] for line in ran.stdout.splitlines()} - {""}


@pytest.mark.parametrize(("typed", "offered"), ASKED)
def test_bash(script, typed, offered):
    assert ask("bash", "-c", BASH, "bash", script("bash"), *typed) == offered


def test_every_verb_and_option_is_offered(script):
    path = script("bash")
    verbs = cli.parsers_of(cli.parser())
    assert ask("bash", "-c", BASH, "bash", path, "hubless", "") == {*verbs, "--help", "--version"}
    text = Path(path).read_text()
    for name, verb in verbs.items():
        (line,) = (line for line in text.split("\n") if line.startswith(f"        {name}) "))
        assert f'"{" ".join(verb._option_string_actions)}"' in line


def test_values_and_places_are_files(script):
    """Where nothing is offered, bash offers files: `complete -o default`."""
    for typed in (["hubless", "fit", ""], ["hubless", "fit", "--items", "it"]):
        assert ask("bash", "-c", BASH, "bash", script("bash"), *typed) == set()


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_scripts_can_be_read(script, shell):
    assert ask(shell, "-n", script(shell)) == set()


@pytest.mark.parametrize(("typed", "offered"), ASKED if shutil.which("fish") else ASKED[:0])
def test_fish(script, typed, offered):
    line = " ".join(typed)
    assert offered <= ask("fish", "-c", f"source {script('fish')}; complete -C '{line}'")

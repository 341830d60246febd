"""Completion of verbs, options, their choices and files, as a script for a shell that runs no Python.

The scripts are made from the parsers, so what a verb takes is written once.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

SHELLS = ("bash", "zsh", "fish")


class Completed(NamedTuple):
    """An option of a verb, or what it takes by position (without flags)."""

    flags: list[str]
    words: str  # what it is
    choices: list[str]  # the only values that it takes, if there are such
    takes_value: bool


def completed(verb: argparse.ArgumentParser) -> Iterator[Completed]:
    """Yield what can be typed after a verb."""
    for action in verb._actions:
        takes_value = action.nargs != 0
        words = " ".join((action.help or "").split()).replace("%%", "%")
        yield Completed([*action.option_strings], words, [*map(str, action.choices or ())], takes_value)


def script(shell: str, verbs: dict[str, Any], words: dict[str, str]) -> str:
    """Return the script for a shell.

    Parameters
    ----------
    shell : one of SHELLS
    verbs : the parser of each verb
    words : what each verb does
    """
    options = {name: [*completed(verb)] for name, verb in verbs.items()}
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](options, words)


def _values(options: list[Completed]) -> dict[str, list[Completed]]:
    """Return options by how their value is completed: from choices, by a file, or not at all."""
    takers = [each for each in options if each.flags and each.takes_value]
    return {
        "choices": [each for each in takers if each.choices],
        "files": [each for each in takers if not each.choices],
    }


def _places(options: list[Completed]) -> list[str]:
    """Return the choices of what a verb takes by position."""
    return [choice for each in options if not each.flags for choice in each.choices]


# --- bash ---------------------------------------------------------------------------------------------------

_BASH = """\
# hubless: completion for bash. Add to ~/.bashrc: eval "$(hubless completion bash)"
_hubless() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" verb="" each
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$each" in -*) ;; *) verb="$each"; break ;; esac
    done
    COMPREPLY=()
    case "$verb:$before" in
{values}
    esac
    local options="" places=""
    case "$verb" in
        "") COMPREPLY=($(compgen -W "{verbs} --help --version" -- "$word")); return ;;
{verb_cases}
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
        *) [ -z "$places" ] || COMPREPLY=($(compgen -W "$places" -- "$word")) ;;
    esac
}}
complete -o default -F _hubless hubless
"""


def _bash(verbs: dict[str, list[Completed]], words: dict[str, str]) -> str:
    values, cases = [], []
    for name, options in verbs.items():
        for each in _values(options)["choices"]:
            pattern = "|".join(f"{name}:{flag}" for flag in each.flags)
            reply = f'COMPREPLY=($(compgen -W "{" ".join(each.choices)}" -- "$word"))'
            values.append(f"        {pattern}) {reply}; return ;;")
        files = "|".join(f"{name}:{flag}" for each in _values(options)["files"] for flag in each.flags)
        values += [f"        {files}) return ;;"] if files else []
        flags = " ".join(flag for each in options for flag in each.flags)
        cases.append(f'        {name}) options="{flags}"; places="{" ".join(_places(options))}" ;;')
    return _BASH.format(values="\n".join(values), verbs=" ".join(verbs), verb_cases="\n".join(cases))


# --- zsh ----------------------------------------------------------------------------------------------------

_ZSH = """\
#compdef hubless
# hubless: completion for zsh. Add to ~/.zshrc, after compinit: eval "$(hubless completion zsh)"
_hubless() {{
    local -a verbs
    verbs=(
{verbs}
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb="${{words[2]}}"
    shift words
    (( CURRENT-- ))
    case "$verb" in
{cases}
    esac
}}
compdef _hubless hubless
"""


def _zsh(verbs: dict[str, list[Completed]], words: dict[str, str]) -> str:
    described = "\n".join(f"        {_quoted(name + ':' + words[name])}" for name in verbs)
    cases = []
    for name, options in verbs.items():
        specs = [spec for each in options for spec in _zsh_specs(each)]
        cases.append(f"        {name}) _arguments {' '.join(map(_quoted, specs))} '*:file:_files' ;;")
    return _ZSH.format(verbs=described, cases="\n".join(cases))


def _zsh_specs(each: Completed) -> Iterator[str]:
    words = "".join(f"\\{letter}" if letter in "[]:\\" else letter for letter in each.words)
    action = f"({' '.join(each.choices)})" if each.choices else "_files"
    value = f":value:{action}" if each.takes_value else ""
    for flag in each.flags:
        yield f"{flag}[{words}]{value}"
    if not each.flags and each.choices:
        yield f"*:value:{action}"


# --- fish ---------------------------------------------------------------------------------------------------


def _fish(verbs: dict[str, list[Completed]], words: dict[str, str]) -> str:
    head = (
        "# hubless: completion for fish. Add to ~/.config/fish/config.fish: hubless completion fish | source"
    )
    lines = [head, "complete -c hubless -e"]
    for name in verbs:
        first = "-n __fish_use_subcommand"
        lines.append(f"complete -c hubless {first} -f -a {name} -d {_quoted(words[name])}")
    for name, options in verbs.items():
        where = f"complete -c hubless -n '__fish_seen_subcommand_from {name}'"
        for each in options:
            flags = [f"-{'l' if flag.startswith('--') else 's'} {flag.lstrip('-')}" for flag in each.flags]
            choices = [f"-f -a {_quoted(' '.join(each.choices))}"] if each.choices else []
            value = [*(["-r"] if each.flags and each.takes_value else []), *choices]
            if flags or choices:
                lines.append(" ".join([where, *flags, *value, f"-d {_quoted(each.words)}"]))
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a text in single quotes, which all three shells read."""
    return "'" + text.replace("'", "’") + "'"

"""The verb for the shell itself: completion."""

import sys

from .completion import SHELLS, script
from .options import Verb, VerbOptions, option


def add_completion(verb: Verb) -> None:
    """Add the options of `hubless completion`."""
    verb.explain(
        _completion,
        'eval "$(hubless completion bash)"  # in ~/.bashrc',
        'eval "$(hubless completion zsh)"   # in ~/.zshrc, after compinit',
        "hubless completion fish | source   # in ~/.config/fish/config.fish",
        more="It completes verbs, options, their choices and files, and runs no Python when you press Tab.",
        has_json=False,
    )
    option(verb, "shell", "the shell that you use", choices=SHELLS)


def _completion(options: VerbOptions) -> None:
    from . import VERBS, parser, parsers_of

    words = {name: text for name, (_, text) in VERBS.items()}
    sys.stdout.write(script(options.shell, parsers_of(parser()), words))

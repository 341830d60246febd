"""Imports at first use: of optional packages, and of the public names of our packages."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def need(module: str, extra: str) -> Any:
    """Import a module of an optional package; ImportError names the extra of hubless that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{module} is not installed: pip install 'hubless[{extra}]'") from error


# --- names of a package that are loaded when they are first used --------------------------------------------


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are in its modules: name → module."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{homes[name]}", package), name)
        setattr(sys.modules[package], name, value)  # so that this runs once per name
        return value

    return load

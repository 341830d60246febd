"""What a model keeps as plain data: facts as JSON has them, and what identifies it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..saving.values import plain
from ..support.text import short


def without_moments(content: Any) -> Any:
    """Return content without moments, which do not change how items are moved."""
    if isinstance(content, list):
        return [without_moments(value) for value in content]
    if not isinstance(content, dict):
        return content
    return {
        name: without_moments(value)
        for name, value in content.items()
        if not any(word in name for word in ("moments", "mean_weight_"))
    }


def plain_facts(value: Any, where: str = "facts") -> Any:
    """Return facts as JSON has them; a number that is not finite (the mean of no query) becomes None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"{where} must have texts as names; got {short(list(value))}.")
        return {str(name): plain_facts(item, f"{where}[{name!r}]") for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_facts(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if value is not None and not isinstance(value, str | bool | int | float):
        raise TypeError(f"{where} must be texts, numbers, lists or mappings; got {short(value)}.")
    return None if isinstance(value, float) and not np.isfinite(value) else plain(value)

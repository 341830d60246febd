"""Numbers as the page writes them: its script (web/format.js), its part without a script, and its picture."""

from decimal import ROUND_HALF_UP, Decimal

FORMS = {"percent": (100, "0.1", "\u00a0%"), "number": (1, "0.01", ""), "fraction": (1, "0.001", "")}


def in_form(value: float | None, form: str) -> str:
    """Return a number as 92.5 %, 1,204.48 or 0.842; halves are rounded up, as the script does."""
    if value is None:
        return "unknown"
    scale, digits, unit = FORMS[form]
    rounded = Decimal(scale * value).quantize(Decimal(digits), ROUND_HALF_UP)
    return f"{rounded or abs(rounded):,}{unit}".replace("-", "−")

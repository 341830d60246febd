"""Numbers as the page writes them: its script (web/format.js), its part without a script, and its picture."""

from decimal import ROUND_HALF_UP, Decimal

FORMS = {"percent": (100, 1, "\u00a0%"), "number": (1, 2, ""), "fraction": (1, 3, "")}
SHARES = ("accuracy", "precision", "hit rate", "recall")  # written in per cent; other scores as fractions


def form_of(measure: str) -> str:
    """Return the form of a score: a share is written in per cent, nDCG and MRR are numbers from 0 to 1."""
    return "percent" if measure.split("@")[0] in SHARES else "fraction"


def in_form(value: float | None, form: str) -> str:
    """Return a number as 92.5 %, 1,204.48 or 0.842; halves are rounded up, as the script does."""
    if value is None:
        return "unknown"
    scale, digits, unit = FORMS[form]
    return _rounded(scale * value, digits) + unit


def change_in_form(change: float, form: str) -> str:
    """Return a change with its sign, as +0.5 (points), −0.33 or +0.012."""
    scale, digits, _ = FORMS[form]
    if form == "percent" and 0 < abs(change) < 0.0005:
        digits = 2
    return "+" * (change > 0) + _rounded(scale * change, digits)


def _rounded(value: float, digits: int) -> str:
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded or abs(rounded):,}".replace("-", "−")

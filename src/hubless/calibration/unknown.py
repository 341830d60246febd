"""Labels for queries unlike anything stored, and how many false alarms that may cost."""

from numbers import Integral, Real
from typing import Any

from ..arrays import Array, convert, device_of, namespace, to_numpy
from ..arrays.inputs import is_number


def class_names(classes: Array, codes: Array) -> Array:
    """Return the labels of class numbers."""
    return namespace(classes).take(classes, convert(codes, classes))


def check_rate(reject: Any, n_known: int) -> None:
    """Refuse a rate of false alarms that is none, or that so few held-out queries cannot promise."""
    least = 1 / (n_known + 1)
    if not is_number(reject) or not least <= reject < 1:
        raise ValueError(
            f"reject must be a rate of false alarms below 1, and with {n_known} held-out queries to compare "
            f"with at least {least:.2g}; got {reject!r}. Use reject={max(0.05, 2 * least):.2g}, for example."
        )


def unknown_label(unknown: Any, classes: Array) -> Any:
    """Return the label of queries unlike anything stored, which is no class."""
    host = to_numpy(classes)
    kind = host.dtype.kind
    label = ("unknown" if kind in "UO" else -1) if unknown is None else unknown
    is_alike = {"U": str, "O": object, "i": Integral, "f": Real}.get(kind, ())
    if not isinstance(label, is_alike) or isinstance(label, bool):
        raise ValueError(
            f"unknown must be of the type of the classes, {host.dtype}, which need a label to spare; got "
            f"{label!r}. Use familiarity(X) <= reject, or fit with other labels."
        )
    if label in host.tolist():
        raise ValueError(
            f"unknown={label!r} is one of the classes; give another label: predict(…, unknown=…)."
        )
    return label


def with_unknown(classes: Array, is_unknown: Array, label: Any) -> Array:
    """Return labels with another one in some places."""
    xp, is_unknown = namespace(classes), convert(is_unknown, classes)
    return xp.where(is_unknown, xp.asarray(label, device=device_of(classes)), classes)

"""What users give and get, for type checkers: `ArrayLike` goes in, and arrays of its library come out.

A function that returns arrays has two overloads: from what is on the host (NumPy arrays, sequences and data
frames) come NumPy arrays, and from arrays of another library, such as torch, come arrays of that library.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray


class HasShape(Protocol):
    """An array of any library, or a data frame."""

    @property
    def shape(self) -> Any:
        """Rows and columns."""


class DataFrameLike(Protocol):
    """A data frame on the host, such as those of pandas and Polars."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""

    def to_numpy(self) -> NDArray[Any]:
        """Return the values as a NumPy array."""


HostArray = NDArray[Any]
HostLike = HostArray | Sequence[Any] | DataFrameLike
ArrayLike = HasShape | Sequence[Any]
ArrayOrNone = ArrayLike | None
Weights = ArrayOrNone  # one per row
Neighbors = ArrayOrNone | tuple[ArrayLike, ArrayLike]  # indices, or (distances, indices)
SomeArray = TypeVar("SomeArray", bound=HasShape)

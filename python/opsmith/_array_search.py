"""Functions of the array API that find, order and choose elements, and products of tensors."""

from __future__ import annotations

from typing import NamedTuple

from . import _opsmith
from ._array_types import promoted
from ._opsmith import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence, Union

    from ._opsmith import TensorLike

__all__ = [
    "argmax", "argmin", "argsort", "matmul", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "tensordot", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "vecdot", "where",
]  # fmt: skip


def argmax(x: Tensor, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Tensor:
    """The place of the largest element along a dimension, or in row-major order; of equal ones the first.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.argmax(xp.asarray([[1, 4], [3, 2]]), axis=1)
    tensor([1, 0], dtype=int64)
    """
    return _opsmith.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Tensor:
    """The place of the smallest element along a dimension, or in row-major order; of equal ones the first.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.argmin(xp.asarray([[1, 4], [3, 2]]))
    tensor(0, dtype=int64)
    """
    return _opsmith.argmin(x, axis, keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of elements that are not zero: a vector of positions for each dimension.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.nonzero(xp.asarray([0, 5, 6]))
    (tensor([1, 2], dtype=int64),)
    """
    if x.ndim == 0:
        raise ValueError("a tensor without dimensions has no places\n  help: compare it with 0")
    return tuple(_opsmith.unbind(_opsmith.nonzero(x), 1))


def searchsorted(x1: Tensor, x2: TensorLike, /, *, side: str = "left", sorter: Optional[Tensor] = None) -> Tensor:
    """For each element of ``x2`` the place in the ascending vector ``x1`` before which it keeps the order.

    Parameters
    ----------
    side
        ``"left"`` for the first such place, ``"right"`` for the last one.
    sorter
        Positions that bring ``x1`` into ascending order.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.searchsorted(xp.asarray([1, 3, 3]), xp.asarray([3, 0]), side="right")
    tensor([3, 0], dtype=int64)
    """
    vector, values = promoted(x1, x2)
    return _opsmith.searchsorted(vector, values, side=side, sorter=sorter)


def where(condition: Tensor, x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The element of ``x1`` where the condition holds, else that of ``x2``, with broadcasting.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0)
    tensor([1, 0], dtype=int64)
    """
    return _opsmith.where(condition, *promoted(x1, x2))


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Where the elements along a dimension come from if they are in order; equal ones keep theirs, and NaN counts as largest.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2]))
    tensor([1, 2, 0], dtype=int64)
    """
    return _opsmith.argsort(x, dim=axis, descending=descending, stable=stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along a dimension in order; NaN counts as largest.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True)
    tensor([3, 2, 1], dtype=int64)
    """
    return _opsmith.sort(x, dim=axis, descending=descending, stable=stable)[0]


class UniqueAll(NamedTuple):
    """The different elements, where each occurs first, which one each element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The different elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The different elements, and which one each element is."""

    values: Tensor
    inverse_indices: Tensor


def _order(x: Tensor) -> Tensor:
    """The positions of a vector's elements in ascending order; complex numbers are ordered by their real parts first."""
    if not x.dtype.is_complex:
        return argsort(x)
    order = argsort(_opsmith.imag(x))
    return order[argsort(_opsmith.real(x)[order])]


def unique_all(x: Tensor, /) -> UniqueAll:
    """The different elements in ascending order, with positions and counts. Each NaN is one of its own.

    Returns
    -------
    values
        The different elements, a vector.
    indices
        The position of the first element of each, in row-major order.
    inverse_indices
        The position among ``values`` for each element, in the shape of ``x``.
    counts
        How often each occurs.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> found = xp.unique_all(xp.asarray([7, 3, 7]))
    >>> found.values.tolist(), found.indices.tolist(), found.inverse_indices.tolist(), found.counts.tolist()
    ([3, 7], [1, 0], [1, 0, 1], [1, 2])
    """
    elements = _opsmith.flatten(x)
    order = _order(elements)
    ordered = elements[order]
    begins = _opsmith.ones([elements.numel()], dtype="bool", device=x.device)
    begins[1:] = ordered[1:] != ordered[:-1]
    (starts,) = nonzero(begins)
    inverse = _opsmith.zeros_like(order)
    inverse[order] = _opsmith.cumsum(begins, 0) - 1
    counts = _opsmith.diff(starts, append=_opsmith.full([1], elements.numel(), dtype="int64", device=x.device))
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(list(x.shape)), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The different elements in ascending order, and how often each occurs. Each NaN is one of its own.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.unique_counts(xp.asarray([7, 3, 7])).counts
    tensor([1, 2], dtype=int64)
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The different elements in ascending order, and which one each element is. Each NaN is one of its own.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.unique_inverse(xp.asarray([7, 3, 7])).inverse_indices
    tensor([1, 0, 1], dtype=int64)
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements in ascending order. Each NaN is one of its own.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.unique_values(xp.asarray([7, 3, 7]))
    tensor([3, 7], dtype=int64)
    """
    return unique_all(x).values


def take(x: Tensor, indices: Tensor, /, *, axis: Optional[int] = None) -> Tensor:
    """The slices at positions along a dimension, which only of a vector need not be given; negative ones count from the end.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.take(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1]), axis=1).tolist()
    [[2], [4]]
    """
    if axis is None and x.ndim != 1:
        raise ValueError(f"a tensor with {x.ndim} dimensions needs an axis\n  help: give `axis`")
    dim = axis or 0
    x.size(dim)  # an error if there is no such dimension
    return x[(slice(None),) * (dim % x.ndim) + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The element at a position along a dimension, for each place of the others; negative positions count from the end.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]), axis=1).tolist()
    [[2], [3]]
    """
    counted = _opsmith.where(indices < 0, indices + x.size(axis), indices)
    return _opsmith.take_along_dim(x, counted.to(dtype=_opsmith.int64), axis)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, vectors or batches of matrices.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 1]))
    tensor([3, 7], dtype=int64)
    """
    return _opsmith.matmul(*promoted(x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Union[int, tuple[Sequence[int], Sequence[int]]] = 2) -> Tensor:
    """The sum of products over pairs of dimensions.

    Parameters
    ----------
    axes
        The dimensions of ``x1`` and, in their order, those of ``x2``; a number stands for so many last ones of ``x1`` and first ones
        of ``x2``.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.tensordot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 10]), axes=1)
    tensor([21, 43], dtype=int64)
    """
    first, second = (range(x1.ndim - axes, x1.ndim), range(axes)) if isinstance(axes, int) else axes
    left, right = promoted(x1, x2)
    return _opsmith.tensordot(left, right, list(first), list(second))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sums of products of elements of ``x2`` and conjugates of ``x1`` along a dimension, the others broadcast.

    Raises
    ------
    ValueError
        If the dimension has not the same size in both.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 10]))
    tensor([21, 43], dtype=int64)
    """
    if x1.size(axis) != x2.size(axis):
        raise ValueError(f"dimension {axis} has the sizes {x1.size(axis)} and {x2.size(axis)}\n  help: give vectors of one length")
    first, second = (_opsmith.moveaxis(one, axis, -1) for one in promoted(x1, x2))
    products = _opsmith.conj(first) * second
    return _opsmith.sum(products, [-1], dtype=products.dtype)

"""Functions of the array API over dimensions: sums and other statistics, running ones, differences."""

from __future__ import annotations

from . import _opsmith
from ._array_types import isdtype
from ._opsmith import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence, Union

    from ._opsmith import dtype

    Axes = Union[int, Sequence[int], None]

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip


def _over(x: Tensor, axis: Axes, keepdims: bool) -> tuple[Tensor, list[int], bool]:
    """The dimensions of a reduction as a list, which operators take for all dimensions if it is empty. A reduction over none
    becomes one over a new dimension of size 1."""
    axes = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return (x, axes, keepdims) if axes else (x.unsqueeze(-1), [-1], False)


def _sum_type(x: Tensor, given: Optional[dtype]) -> dtype:
    """The type of sums and products: integers and truth values have the widest of their sign, other types their own."""
    if given is not None:
        return given
    if isdtype(x.dtype, "unsigned integer"):
        return _opsmith.uint64
    return _opsmith.int64 if isdtype(x.dtype, ("bool", "signed integer")) else x.dtype


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether no element is zero, of all or over dimensions.

    Parameters
    ----------
    axis
        A dimension, a tuple of several, or None for all.
    keepdims
        Whether the dimensions stay with the size 1.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.all(xp.asarray([[1, 0], [1, 1]]), axis=1)
    tensor([False,  True], dtype=bool)
    """
    return _opsmith.all(*_over(x.to(dtype=_opsmith.bool_), axis, keepdims))


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether an element is not zero, of all or over dimensions; arguments are those of `all`.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.any(xp.asarray([[1, 0], [0, 0]]), axis=(1,))
    tensor([ True, False], dtype=bool)
    """
    return _opsmith.any(*_over(x.to(dtype=_opsmith.bool_), axis, keepdims))


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The largest element, NaN if one is, of all or over dimensions; arguments are those of `all`.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.max(xp.asarray([[1, 4], [3, 2]]), axis=0)
    tensor([3, 4], dtype=int64)
    """
    return _opsmith.amax(*_over(x, axis, keepdims))


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element, NaN if one is, of all or over dimensions; arguments are those of `all`.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.min(xp.asarray([[1, 4], [3, 2]]), keepdims=True)
    tensor([[1]], dtype=int64)
    """
    return _opsmith.amin(*_over(x, axis, keepdims))


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The mean of floating-point numbers, of all or over dimensions; arguments are those of `all`.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.mean(xp.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=0)
    tensor([2., 3.], dtype=float32)
    """
    return _opsmith.mean(*_over(x, axis, keepdims))


def sum(x: Tensor, /, *, axis: Axes = None, dtype: Optional[dtype] = None, keepdims: bool = False) -> Tensor:
    """The sum, of all elements or over dimensions.

    Parameters
    ----------
    axis, keepdims
        As in `all`.
    dtype
        The element type of the result, in which elements are added; for None ``int64`` or ``uint64`` of integers, else that of ``x``.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.sum(xp.asarray([200, 100], dtype=xp.uint8))
    tensor(300, dtype=uint64)
    """
    return _opsmith.sum(*_over(x, axis, keepdims), dtype=_sum_type(x, dtype))


def prod(x: Tensor, /, *, axis: Axes = None, dtype: Optional[dtype] = None, keepdims: bool = False) -> Tensor:
    """The product, of all elements or over dimensions; arguments are those of `sum`.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.prod(xp.asarray([[1, 2], [3, 4]]), axis=(0, 1))
    tensor(24, dtype=int64)
    """
    result, axes, keepdims = _over(x, axis, keepdims)
    places = sorted((one % result.ndim if -result.ndim <= one < 0 else one for one in axes), reverse=True)
    if len(set(places)) < len(places):
        raise ValueError(f"{axis} has a dimension twice\n  help: give each dimension once")
    for one in places:
        result = _opsmith.prod(result, one, keepdims, dtype=_sum_type(x, dtype))
    return result


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation, of all elements or over dimensions; arguments are those of `var`.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.std(xp.asarray([1.0, 3.0]))
    tensor(1., dtype=float32)
    """
    x, axes, keepdims = _over(x, axis, keepdims)
    return _opsmith.std(x, axes, correction=correction, keepdim=keepdims)


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance, of all elements or over dimensions.

    Parameters
    ----------
    axis, keepdims
        As in `all`.
    correction
        Squared distances from the mean are divided by the number of elements less this one; 1 for a sample.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.var(xp.asarray([1.0, 3.0]), correction=1)
    tensor(2., dtype=float32)
    """
    x, axes, keepdims = _over(x, axis, keepdims)
    return _opsmith.var(x, axes, correction=correction, keepdim=keepdims)


def _only_axis(x: Tensor, axis: Optional[int]) -> int:
    if axis is None and x.ndim != 1:
        raise ValueError(f"a tensor with {x.ndim} dimensions needs an axis\n  help: give `axis`")
    return 0 if axis is None else axis


def _with_initial(result: Tensor, axis: int, initial: int) -> Tensor:
    sizes = list(result.shape)
    sizes[axis] = 1
    first = _opsmith.full(sizes, initial, dtype=result.dtype, device=result.device)
    return _opsmith.cat([first, result], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: Optional[int] = None, dtype: Optional[dtype] = None, include_initial: bool = False
) -> Tensor:
    """The running sum along a dimension.

    Parameters
    ----------
    axis
        The dimension, which only a vector need not give.
    dtype
        As in `sum`.
    include_initial
        Whether the result begins with a zero, and is longer by it.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    tensor([0, 1, 3, 6], dtype=int64)
    """
    dim = _only_axis(x, axis)
    result = _opsmith.cumsum(x, dim, dtype=_sum_type(x, dtype))
    return _with_initial(result, dim, 0) if include_initial else result


def cumulative_prod(
    x: Tensor, /, *, axis: Optional[int] = None, dtype: Optional[dtype] = None, include_initial: bool = False
) -> Tensor:
    """The running product along a dimension; arguments are those of `cumulative_sum`, and a first element is 1.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]))
    tensor([1, 2, 6], dtype=int64)
    """
    dim = _only_axis(x, axis)
    result = _opsmith.cumprod(x, dim, dtype=_sum_type(x, dtype))
    return _with_initial(result, dim, 1) if include_initial else result


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The number of elements that are not zero; arguments are those of `all`.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.count_nonzero(xp.asarray([[1, 0], [1, 1]]), axis=0)
    tensor([2, 1], dtype=int64)
    """
    return sum(x != 0, axis=axis, keepdims=keepdims)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Optional[Tensor] = None, append: Optional[Tensor] = None
) -> Tensor:
    """The differences of neighbours along a dimension, ``n`` times.

    Parameters
    ----------
    prepend, append
        Tensors that are joined before and behind ``x`` along the dimension first.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.diff(xp.asarray([1, 4, 9]), prepend=xp.asarray([0]))
    tensor([1, 3, 5], dtype=int64)
    """
    return _opsmith.diff(x, n, axis, prepend, append)

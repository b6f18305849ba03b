"""Functions of the array API that make tensors, and those that change their form."""

from __future__ import annotations

import builtins

from . import _opsmith
from ._array_types import promoted_list
from ._opsmith import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence, Union

    from ._opsmith import DeviceLike, DTypeLike, Number

    Axes = Union[int, Sequence[int]]

__all__ = [
    "arange", "asarray", "broadcast_arrays", "broadcast_to", "concat", "empty", "empty_like", "expand_dims", "eye", "flip",
    "from_dlpack", "full", "full_like", "linspace", "matrix_transpose", "meshgrid", "moveaxis", "ones", "ones_like",
    "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "tril", "triu", "unstack", "zeros", "zeros_like",
]  # fmt: skip

asarray = _opsmith.asarray
empty_like = _opsmith.empty_like
from_dlpack = _opsmith.from_dlpack
full_like = _opsmith.full_like
ones_like = _opsmith.ones_like
zeros_like = _opsmith.zeros_like


def _listed(numbers: Axes) -> list[int]:
    return [numbers] if isinstance(numbers, int) else list(numbers)


def arange(
    start: Number,
    /,
    stop: Optional[Number] = None,
    step: Number = 1,
    *,
    dtype: Optional[DTypeLike] = None,
    device: Optional[DeviceLike] = None,
) -> Tensor:
    """The numbers from ``start`` to before ``stop``, or from 0 to before ``start``; none if the steps lead away from the end.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.arange(3), xp.arange(5, 0, step=-2)
    (tensor([0, 1, 2], dtype=int64), tensor([5, 3, 1], dtype=int64))
    """
    first, end = (0, start) if stop is None else (start, stop)
    if (end - first) * step < 0:  # type: ignore[operator]
        first = end = first + 0 * end
    return _opsmith.arange(first, end, step, dtype=dtype, device=device)


def empty(shape: Axes, *, dtype: Optional[DTypeLike] = None, device: Optional[DeviceLike] = None) -> Tensor:
    """A tensor of a shape, a tuple or one number, whose elements mean nothing yet.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.empty((2, 0)).shape
    (2, 0)
    """
    return _opsmith.empty(_listed(shape), dtype=dtype, device=device)


def ones(shape: Axes, *, dtype: Optional[DTypeLike] = None, device: Optional[DeviceLike] = None) -> Tensor:
    """A tensor of ones.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.ones(2)
    tensor([1., 1.], dtype=float32)
    """
    return _opsmith.ones(_listed(shape), dtype=dtype, device=device)


def zeros(shape: Axes, *, dtype: Optional[DTypeLike] = None, device: Optional[DeviceLike] = None) -> Tensor:
    """A tensor of zeros.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.zeros((1, 2), dtype=xp.int8)
    tensor([[0, 0]], dtype=int8)
    """
    return _opsmith.zeros(_listed(shape), dtype=dtype, device=device)


def full(shape: Axes, fill_value: Number, *, dtype: Optional[DTypeLike] = None, device: Optional[DeviceLike] = None) -> Tensor:
    """A tensor in which every element is a number; without ``dtype`` its type follows from the number.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.full((2,), 7)
    tensor([7, 7], dtype=int64)
    """
    return _opsmith.full(_listed(shape), fill_value, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: Optional[int] = None,
    /,
    *,
    k: int = 0,
    dtype: Optional[DTypeLike] = None,
    device: Optional[DeviceLike] = None,
) -> Tensor:
    """A matrix with ones on a diagonal, the one ``k`` places above the main one, and zeros elsewhere.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.eye(2, 3, k=1, dtype=xp.int64)
    tensor([[0, 1, 0],
            [0, 0, 1]], dtype=int64)
    """
    ones = _opsmith.ones([n_rows, n_rows if n_cols is None else n_cols], dtype=dtype, device=device)
    return _opsmith.triu(_opsmith.tril(ones, k), k)


def linspace(
    start: Number,
    stop: Number,
    /,
    num: int,
    *,
    dtype: Optional[DTypeLike] = None,
    device: Optional[DeviceLike] = None,
    endpoint: builtins.bool = True,
) -> Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, which is the last one unless ``endpoint`` is False.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linspace(0, 1, 2, endpoint=False)
    tensor([0.0, 0.5], dtype=float32)
    """
    if endpoint:
        return _opsmith.linspace(start, stop, num, dtype=dtype, device=device)
    return _opsmith.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Each vector as a grid with a dimension for every vector, along which its elements change.

    Parameters
    ----------
    indexing
        ``"xy"``, in which the first vector changes along the second dimension, or ``"ij"``, dimensions in the order of the vectors.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> [grid.shape for grid in xp.meshgrid(xp.arange(2), xp.arange(3))]
    [(3, 2), (3, 2)]
    """
    return list(_opsmith.meshgrid(arrays, indexing=indexing)) if arrays else []


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, up to the diagonal ``k`` places above the main one, zeros elsewhere.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.tril(xp.ones((2, 2)), k=-1)
    tensor([[0., 0.],
            [1., 0.]], dtype=float32)
    """
    return _opsmith.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, from the diagonal ``k`` places above the main one on, zeros elsewhere.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.triu(xp.ones((2, 2)), k=1)
    tensor([[0., 1.],
            [0., 0.]], dtype=float32)
    """
    return _opsmith.triu(x, k)


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Views of tensors in the shape to which all of them broadcast.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> [array.shape for array in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    return list(_opsmith.broadcast_tensors(arrays)) if arrays else []


def broadcast_to(x: Tensor, /, shape: Axes) -> Tensor:
    """A view of the tensor in a shape to which it broadcasts.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.broadcast_to(xp.arange(2), (2, 2)).tolist()
    [[0, 1], [0, 1]]
    """
    return _opsmith.broadcast_to(x, _listed(shape))


def concat(arrays: Sequence[Tensor], /, *, axis: Optional[int] = 0) -> Tensor:
    """Tensors one after the other along a dimension; for None, all their elements in row-major order.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.concat([xp.arange(2), xp.ones(1, dtype=xp.uint8)])
    tensor([0, 1, 1], dtype=int64)
    """
    given = promoted_list(arrays)
    return _opsmith.cat([_opsmith.flatten(one) for one in given] if axis is None else given, axis or 0)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape, joined along a new dimension.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.stack([xp.arange(2), xp.arange(2)], axis=1).tolist()
    [[0, 0], [1, 1]]
    """
    return _opsmith.stack(promoted_list(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of a tensor along a dimension, without it: views.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> [part.tolist() for part in xp.unstack(xp.eye(2, dtype=xp.int64))]
    [[1, 0], [0, 1]]
    """
    return tuple(_opsmith.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: Axes = 0) -> Tensor:
    """A view with a new dimension of size 1 at a place of the result, or with several.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.expand_dims(xp.ones(3), axis=-1).shape
    (3, 1)
    """
    axes = _listed(axis)
    ndim = x.ndim + len(axes)
    places = sorted(one + ndim if one < 0 else one for one in axes)
    for before, one in zip([-1, *places], places):
        if one == before or not 0 <= one < ndim:
            raise IndexError(f"{axis} are no places of new dimensions\n  help: give different ones from {-ndim} to {ndim - 1}")
        x = x.unsqueeze(one)
    return x


def flip(x: Tensor, /, *, axis: Optional[Axes] = None) -> Tensor:
    """The elements in reversed order along a dimension, several, or all.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.flip(xp.arange(3))
    tensor([2, 1, 0], dtype=int64)
    """
    return _opsmith.flip(x, list(range(x.ndim)) if axis is None else _listed(axis))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two dimensions exchanged.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.matrix_transpose(xp.ones((4, 2, 3))).shape
    (4, 3, 2)
    """
    return x.mT


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """A view with dimensions moved to other places, the rest in their order.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.moveaxis(xp.ones((1, 2, 3)), 0, -1).shape
    (2, 3, 1)
    """
    return _opsmith.moveaxis(x, _listed(source), _listed(destination))


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """A view with the dimensions in another order.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.permute_dims(xp.ones((1, 2, 3)), (2, 0, 1)).shape
    (3, 1, 2)
    """
    return _opsmith.permute(x, list(axes))


def repeat(x: Tensor, repeats: Union[int, Tensor], /, *, axis: Optional[int] = None) -> Tensor:
    """Each slice along a dimension ``repeats`` times, one after the other; of all elements in row-major order without ``axis``.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.repeat(xp.arange(2), xp.asarray([1, 2]))
    tensor([0, 1, 1], dtype=int64)
    """
    return _opsmith.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: Axes, *, copy: Optional[builtins.bool] = None) -> Tensor:
    """The elements in another shape, in which one size may be -1.

    Parameters
    ----------
    copy
        Whether the result has memory of its own; None copies where it must, and False is an error there.

    Raises
    ------
    opsmith.ShapeError
        If the shape has another number of elements, or ``copy`` is False and elements would have to move; a ``ValueError``.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.reshape(xp.arange(4), (2, -1)).tolist()
    [[0, 1], [2, 3]]
    """
    sizes = _listed(shape)
    if copy is False:
        return _opsmith.view(x, sizes)
    return _opsmith.reshape(_opsmith.clone(x) if copy else x, sizes)


def roll(x: Tensor, /, shift: Axes, *, axis: Optional[Axes] = None) -> Tensor:
    """The elements moved along dimensions, the last ones to the front; in row-major order without ``axis``.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.roll(xp.arange(4), 1)
    tensor([3, 0, 1, 2], dtype=int64)
    """
    if axis is None:
        return _opsmith.roll(x, _listed(shift))
    shifts, axes = _listed(shift), _listed(axis)
    return _opsmith.roll(x, shifts * len(axes) if isinstance(shift, int) else shifts, axes)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A view without dimensions of size 1.

    Raises
    ------
    ValueError
        If one of them has another size.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.squeeze(xp.ones((1, 2)), axis=0).shape
    (2,)
    """
    axes = _listed(axis)
    for one in axes:
        if x.size(one) != 1:
            raise ValueError(f"dimension {one} of the shape {x.shape} has not the size 1\n  help: name dimensions of size 1 only")
    return _opsmith.squeeze(x, axes)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """The tensor repeated along each dimension.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.tile(xp.arange(2), (2, 2)).tolist()
    [[0, 1, 0, 1], [0, 1, 0, 1]]
    """
    return _opsmith.tile(x, list(repetitions))

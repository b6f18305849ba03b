"""The extension ``linalg`` of the array API: linear algebra, with the standard's arguments.

Factorisations have their parts by name, as the operators have.
"""

from __future__ import annotations

from . import _opsmith
from ._array_reductions import sum as _sum
from ._array_search import matmul as matmul
from ._array_search import tensordot as tensordot
from ._array_search import vecdot as vecdot
from ._array_creation import matrix_transpose as matrix_transpose
from ._array_types import promoted
from ._opsmith import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence, Union

    from ._opsmith import TensorLike, dtype

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

cholesky = _opsmith.linalg_cholesky
det = _opsmith.linalg_det
diagonal = _opsmith.linalg_diagonal
eigh = _opsmith.linalg_eigh
eigvalsh = _opsmith.linalg_eigvalsh
inv = _opsmith.linalg_inv
matrix_power = _opsmith.linalg_matrix_power
qr = _opsmith.linalg_qr
slogdet = _opsmith.linalg_slogdet
svd = _opsmith.linalg_svd
svdvals = _opsmith.linalg_svdvals


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements along a dimension, the others broadcast.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1.0, 0.0, 0.0]), xp.asarray([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.], dtype=float32)
    """
    left, right = promoted(x1, x2)
    return _opsmith.linalg_cross(left, right, dim=axis)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Union[int, float, str, None] = "fro") -> Tensor:
    """The norms of matrices.

    Parameters
    ----------
    ord
        ``"fro"``, the root of the sum of squares; ``"nuc"``, the sum of the singular values; 1 and -1, the largest and smallest sum
        of a column's sizes, infinity and minus infinity of a row's; 2 and -2, the largest and the smallest singular value.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5., dtype=float32)
    """
    return _opsmith.linalg_matrix_norm(x, "fro" if ord is None else ord, [-2, -1], keepdims)


def matrix_rank(x: Tensor, /, *, rtol: Optional[TensorLike] = None) -> Tensor:
    """The number of singular values above ``rtol`` times the largest one; for None a bound by size and element type.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linalg.matrix_rank(xp.ones((3, 3)))
    tensor(1, dtype=int64)
    """
    return _opsmith.linalg_matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of one vector with each of another.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    return _opsmith.outer(*promoted(x1, x2))


def pinv(x: Tensor, /, *, rtol: Optional[TensorLike] = None) -> Tensor:
    """The Moore-Penrose inverse of matrices; singular values up to ``rtol`` times the largest one count as zero.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    return _opsmith.linalg_pinv(x, rtol=rtol)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solutions ``x`` of ``x1 @ x = x2``. A right side with one dimension is a vector; every other one is of matrices.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    tensor([1.0, 0.5], dtype=float32)
    """
    left, right = promoted(x1, x2)
    if x2.ndim == 1:
        return _opsmith.linalg_solve(left, _opsmith.unsqueeze(right, -1)).squeeze(-1)
    return _opsmith.linalg_solve(left, right)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Optional[dtype] = None) -> Tensor:
    """The sums of the diagonals ``offset`` places above the main one, in the element type that `sum` has.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]), offset=1)
    tensor(2, dtype=int64)
    """
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor, /, *, axis: Union[int, Sequence[int], None] = None, keepdims: bool = False, ord: Union[int, float] = 2
) -> Tensor:
    """The norms of vectors along a dimension, of several dimensions as one, or of all elements.

    Parameters
    ----------
    ord
        The exponent; infinity and minus infinity for the largest and smallest size, 0 for the number of elements that are not zero.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([[3.0, 4.0]]), axis=1)
    tensor([5.], dtype=float32)
    """
    axes = axis if axis is None or isinstance(axis, int) else list(axis)
    return _opsmith.linalg_vector_norm(x, ord, axes, keepdims)

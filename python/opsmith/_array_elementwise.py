"""Functions of the array API that work element by element.

A function of one tensor is the operator of that name wherever it agrees with the standard. One of two tensors brings them into
their common element type first, by the standard's table, which is wider than the operators' and takes no notice of sizes.
"""

from __future__ import annotations

from . import _opsmith
from ._array_types import promoted
from ._opsmith import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, Protocol

    from ._opsmith import TensorLike

    class Binary(Protocol):
        """A function of two tensors, of which one may be a number."""

        def __call__(self, x1: TensorLike, x2: TensorLike, /) -> Tensor: ...


__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos", "cosh",
    "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf",
    "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal",
    "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc",
]  # fmt: skip


def _binary(name: str, operator: Callable[..., Any]) -> Binary:
    def function(x1: TensorLike, x2: TensorLike, /) -> Tensor:
        result: Tensor = operator(*promoted(x1, x2))
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    return function


abs = _opsmith.abs
acos = _opsmith.acos
acosh = _opsmith.acosh
asin = _opsmith.asin
asinh = _opsmith.asinh
atan = _opsmith.atan
atanh = _opsmith.atanh
bitwise_invert = _opsmith.bitwise_not
ceil = _opsmith.ceil
conj = _opsmith.conj
cos = _opsmith.cos
cosh = _opsmith.cosh
exp = _opsmith.exp
expm1 = _opsmith.expm1
floor = _opsmith.floor
imag = _opsmith.imag
isfinite = _opsmith.isfinite
isinf = _opsmith.isinf
isnan = _opsmith.isnan
log = _opsmith.log
log10 = _opsmith.log10
log1p = _opsmith.log1p
log2 = _opsmith.log2
logical_not = _opsmith.logical_not
negative = _opsmith.negative
positive = _opsmith.positive
real = _opsmith.real
reciprocal = _opsmith.reciprocal
signbit = _opsmith.signbit
sin = _opsmith.sin
sinh = _opsmith.sinh
sqrt = _opsmith.sqrt
square = _opsmith.square
tan = _opsmith.tan
tanh = _opsmith.tanh
trunc = _opsmith.trunc
# The sign of a complex number is the number of size 1 in its direction.
sign = _opsmith.sgn

add = _binary("add", _opsmith.add)
atan2 = _binary("atan2", _opsmith.atan2)
bitwise_and = _binary("bitwise_and", _opsmith.bitwise_and)
bitwise_left_shift = _binary("bitwise_left_shift", _opsmith.bitwise_left_shift)
bitwise_or = _binary("bitwise_or", _opsmith.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", _opsmith.bitwise_right_shift)
bitwise_xor = _binary("bitwise_xor", _opsmith.bitwise_xor)
copysign = _binary("copysign", _opsmith.copysign)
divide = _binary("divide", _opsmith.divide)
equal = _binary("equal", _opsmith.eq)
floor_divide = _binary("floor_divide", _opsmith.floor_divide)
greater = _binary("greater", _opsmith.greater)
greater_equal = _binary("greater_equal", _opsmith.greater_equal)
hypot = _binary("hypot", _opsmith.hypot)
less = _binary("less", _opsmith.less)
less_equal = _binary("less_equal", _opsmith.less_equal)
logaddexp = _binary("logaddexp", _opsmith.logaddexp)
logical_and = _binary("logical_and", _opsmith.logical_and)
logical_or = _binary("logical_or", _opsmith.logical_or)
logical_xor = _binary("logical_xor", _opsmith.logical_xor)
maximum = _binary("maximum", _opsmith.maximum)
minimum = _binary("minimum", _opsmith.minimum)
multiply = _binary("multiply", _opsmith.multiply)
nextafter = _binary("nextafter", _opsmith.nextafter)
not_equal = _binary("not_equal", _opsmith.not_equal)
pow = _binary("pow", _opsmith.pow)
remainder = _binary("remainder", _opsmith.remainder)
subtract = _binary("subtract", _opsmith.subtract)


def clip(x: Tensor, /, min: Optional[TensorLike] = None, max: Optional[TensorLike] = None) -> Tensor:
    """Each element, at least ``min`` and at most ``max``, in the element type of ``x``.

    Parameters
    ----------
    min, max
        Numbers, or tensors that broadcast with ``x``; None is no bound.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.clip(xp.asarray([1, 5, 9]), max=6)
    tensor([1, 5, 6], dtype=int64)
    """
    if min is None and max is None:
        return _opsmith.clone(x)
    low, high = (bound.to(dtype=x.dtype) if isinstance(bound, Tensor) else bound for bound in (min, max))
    return _opsmith.clip(x, low, high)


def round(x: Tensor, /) -> Tensor:
    """Each element rounded to the nearest integer, halves to the even one; of a complex number, each part.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.round(xp.asarray([0.5, 1.5, -2.25]))
    tensor([ 0.,  2., -2.], dtype=float32)
    """
    if x.dtype.is_complex:
        return _opsmith.complex(_opsmith.round(_opsmith.real(x)), _opsmith.round(_opsmith.imag(x)))
    return _opsmith.round(x)

"""Element types of the array API: kinds, promotion, limits; and information about the namespace."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple, Union

from . import _opsmith
from ._opsmith import Tensor, device, dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._opsmith import DeviceLike, Number, TensorLike

    Kind = Union[dtype, str, tuple[Union[dtype, str], ...]]

__all__ = [
    "FloatInfo", "IntegerInfo", "NamespaceInfo", "__array_namespace_info__", "astype", "can_cast", "finfo", "iinfo", "isdtype",
    "promoted", "promoted_list", "result_type",
]  # fmt: skip

_BASIC = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_UNIONS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}
# Types of this library beyond the standard, which `isdtype` knows as well.
_BEYOND = {
    "signed integer": ("int4",),
    "unsigned integer": ("uint4",),
    "real floating": ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
}
# Bits of the mantissa without the leading one, and of the exponent.
_FORMATS = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8), "float64": (52, 11)}
_SIGNED_OF_SIZE = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
_DEFAULTS = {"bool": "bool", "integral": "int64", "real floating": "float32", "complex floating": "complex64"}


def _basic_kinds(kind: str) -> tuple[str, ...]:
    if kind in _UNIONS:
        return _UNIONS[kind]
    if kind in _BASIC:
        return (kind,)
    raise ValueError(f"there is no kind {kind!r} of element types\n  help: kinds are {', '.join([*_BASIC, *_UNIONS])}")


def isdtype(dtype: dtype, kind: Kind) -> builtins.bool:
    """Whether an element type is of a kind.

    Parameters
    ----------
    dtype
        The element type.
    kind
        An element type, one of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``,
        ``"complex floating"`` and ``"numeric"``, or a tuple of these, of which one must fit.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, ("bool", "real floating"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return builtins.any([isdtype(dtype, one) for one in kind])
    if not isinstance(kind, str):
        return builtins.bool(dtype == kind)
    return builtins.any(dtype.name in _BASIC[basic] + _BEYOND.get(basic, ()) for basic in _basic_kinds(kind))


def _common(first: dtype, second: dtype) -> dtype:
    """The common type of two, by the table of the standard. Where that has no entry, a truth value takes the other type, an
    integer a floating-point number's, and the rest is that of the operators."""
    for one, other in ((first, second), (second, first)):
        if isdtype(one, "bool") or isdtype(one, "integral") and isdtype(other, ("real floating", "complex floating")):
            return other
        if isdtype(one, "signed integer") and isdtype(other, "unsigned integer"):
            size = builtins.max(one.itemsize, 2 * other.itemsize)
            if size in _SIGNED_OF_SIZE:
                return _opsmith.dtype(_SIGNED_OF_SIZE[size])
        if isdtype(one, "unsigned integer") and isdtype(other, "unsigned integer") and one.itemsize >= other.itemsize:
            return one
    return _opsmith.add(_opsmith.zeros([0], dtype=first), _opsmith.zeros([0], dtype=second)).dtype


def _scalar_kind(value: Number) -> str:
    if isinstance(value, builtins.bool):
        return "bool"
    if isinstance(value, int):
        return "integral"
    return "real floating" if isinstance(value, float) else "complex floating"


def _with_scalar(known: dtype, value: Number) -> dtype:
    """The type of an array and a number of Python: the array's, unless the number is of a higher kind."""
    order = list(_DEFAULTS)
    kind = _scalar_kind(value)
    own = next(index for index, one in enumerate(order) if isdtype(known, one))
    return known if own >= order.index(kind) else _common(known, _opsmith.dtype(_DEFAULTS[kind]))


def result_type(*arrays_and_dtypes: Union[Tensor, dtype, Number]) -> dtype:
    """The element type in which a function of several arrays has its result.

    Parameters
    ----------
    *arrays_and_dtypes
        Tensors and element types, at least one, and numbers of Python, which raise the type only if they are of a higher kind.
        Sizes do not count, also not those of tensors without dimensions.

    Raises
    ------
    opsmith.DTypeError
        If there is no common type, as of ``uint64`` and a signed integer.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.result_type(xp.int16, xp.uint16), xp.result_type(xp.asarray([True]), 2)
    (opsmith.int32, opsmith.int64)
    """
    types = [one.dtype if isinstance(one, Tensor) else one for one in arrays_and_dtypes if isinstance(one, (Tensor, dtype))]
    if not types:
        raise TypeError("a common element type needs a tensor or an element type\n  help: give one beside the numbers")
    common = types[0]
    for one in types[1:]:
        common = common if one == common else _common(common, one)
    for value in arrays_and_dtypes:
        if not isinstance(value, (Tensor, dtype)):
            common = _with_scalar(common, value)
    return common


def promoted(x1: TensorLike, x2: TensorLike) -> tuple[TensorLike, TensorLike]:
    """Two operands, brought into one element type if both are tensors."""
    if not (isinstance(x1, Tensor) and isinstance(x2, Tensor)) or x1.dtype == x2.dtype:
        return x1, x2
    common = _common(x1.dtype, x2.dtype)
    return x1.to(dtype=common), x2.to(dtype=common)


def promoted_list(arrays: Any) -> list[Tensor]:
    """Tensors of a list in one element type."""
    common = result_type(*arrays)
    return [one.to(dtype=common) for one in arrays]


def can_cast(from_: Union[dtype, Tensor], to: dtype, /) -> builtins.bool:
    """Whether values of one element type become another by promotion.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.can_cast(xp.uint8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    known = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return builtins.bool(result_type(known, to) == to)
    except _opsmith.DTypeError:
        return False


def astype(x: Tensor, dtype: dtype, /, *, copy: builtins.bool = True, device: Union[DeviceLike, None] = None) -> Tensor:
    """The tensor in another element type, and on another device if one is given.

    Parameters
    ----------
    copy
        Whether the result has memory of its own in any case; otherwise it is ``x`` if nothing changes.

    Raises
    ------
    TypeError
        If complex numbers would lose their imaginary parts.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.astype(xp.asarray([1.5, 0.0]), xp.bool)
    tensor([ True, False], dtype=bool)
    """
    if x.dtype.is_complex and not (dtype.is_complex or isdtype(dtype, "bool")):
        raise TypeError(f"{x.dtype.name} in {dtype.name} would lose imaginary parts\n  help: use real() or imag() first")
    return x.to(dtype=dtype, copy=copy) if device is None else x.to(dtype=dtype, device=device, copy=copy)


class FloatInfo(NamedTuple):
    """Limits of a floating-point type; those of a complex one are its parts'."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


class IntegerInfo(NamedTuple):
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: dtype


def finfo(type: Union[dtype, Tensor], /) -> FloatInfo:
    """The limits of a floating-point type, or of a tensor's.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.finfo(xp.float32).eps, xp.finfo(xp.complex128).bits
    (1.1920928955078125e-07, 64)
    """
    known = type.dtype if isinstance(type, Tensor) else type
    real = {"complex64": "float32", "complex128": "float64"}.get(known.name, known.name)
    if real not in _FORMATS:
        raise TypeError(f"{known.name} has no limits of floating-point numbers\n  help: types with them are {', '.join(_FORMATS)}")
    mantissa, exponent = _FORMATS[real]
    largest_exponent = 2 ** (exponent - 1) - 1
    largest = (2.0 - 2.0**-mantissa) * 2.0**largest_exponent
    return FloatInfo(
        1 + mantissa + exponent, 2.0**-mantissa, largest, -largest, 2.0 ** (1 - largest_exponent), _opsmith.dtype(real)
    )  # fmt: skip


def iinfo(type: Union[dtype, Tensor], /) -> IntegerInfo:
    """The limits of an integer type, or of a tensor's.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.iinfo(xp.int8).min, xp.iinfo(xp.uint8).max
    (-128, 255)
    """
    known = type.dtype if isinstance(type, Tensor) else type
    if known.name not in _BASIC["signed integer"] + _BASIC["unsigned integer"]:
        raise TypeError(f"{known.name} has no limits of integers\n  help: give one of the types int8 to int64 and uint8 to uint64")
    bits = 8 * known.itemsize
    if isdtype(known, "unsigned integer"):
        return IntegerInfo(bits, 2**bits - 1, 0, known)
    return IntegerInfo(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), known)


class NamespaceInfo:
    """Information about the namespace: capabilities, devices, element types."""

    def capabilities(self) -> dict[str, Any]:
        """Masks as keys and results whose sizes depend on elements are there; dimensions have no bound."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> device:
        """The device of tensors without another one."""
        return _opsmith.device("cpu")

    def default_dtypes(self, *, device: Union[DeviceLike, None] = None) -> dict[str, dtype]:
        """The element types of numbers of Python and of positions."""
        names = {**{kind: name for kind, name in _DEFAULTS.items() if kind != "bool"}, "indexing": "int64"}
        return {kind: _opsmith.dtype(name) for kind, name in names.items()}

    def devices(self) -> list[device]:
        """The CPU, and the CUDA devices that can hold a tensor."""
        found = [self.default_device()]
        while True:
            place = _opsmith.device("cuda", len(found) - 1)
            try:
                _opsmith.zeros([1], device=place)
            except _opsmith.Error:
                return found
            found.append(place)

    def dtypes(self, *, device: Union[DeviceLike, None] = None, kind: Union[str, tuple[str, ...], None] = None) -> dict[str, dtype]:
        """The element types of the standard by name, all or those of a kind or several."""
        kinds = list(_BASIC) if kind is None else [kind] if isinstance(kind, str) else kind
        basic = [one for group in kinds for one in _basic_kinds(group)]
        return {name: _opsmith.dtype(name) for group in _BASIC if group in basic for name in _BASIC[group]}


def __array_namespace_info__() -> NamespaceInfo:
    """Information about the namespace: capabilities, devices, element types.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.__array_namespace_info__().default_dtypes()["integral"]
    opsmith.int64
    """
    return NamespaceInfo()

"""Operators of a user's kernels, compiled and loaded while the program runs."""

from __future__ import annotations

from ._opsmith import _custom_kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Sequence, Union

    from ._opsmith import DTypeLike, _Custom

    Shapes = Union[Sequence[int], Sequence[Sequence[int]]]
    DTypes = Union[DTypeLike, Sequence[DTypeLike]]


def custom(
    func: str,
    out_shape: Shapes | Callable[..., Shapes] | None = None,
    out_dtype: DTypes | Callable[..., DTypes] | None = None,
    func_type: str = "aot",
    bprop: Callable[..., Any] | None = None,
    reg_info: str | Mapping[str, Any] | None = None,
    *,
    flags: Sequence[str] = (),
    check: bool | None = None,
) -> _Custom:
    """An operator of a kernel in C, C++ or CUDA, or in a library, which is compiled at its first call and kept in a cache.

    Parameters
    ----------
    func : str
        ``FILE:FUNCTION``, such as ``./kernels/add.cc:CustomAdd``. The function has the interface of
        ``opsmith/custom_aot_extra.h``.
    out_shape : list of int, a list of those for several outputs, or a function of the shapes of inputs, optional
        By default ``FUNCTIONInferShape`` of the library says it.
    out_dtype : dtype, a list of dtypes, or a function of the dtypes of inputs, optional
        By default the record says it, or ``FUNCTIONInferType`` of the library.
    func_type : str, default "aot"
        No other kind exists.
    bprop : function, optional
        ``bprop(*inputs, out, dout)`` returns the gradient of each input, None where there is none. Several outputs and their
        gradients are tuples.
    reg_info : str or dict, optional
        A registration record: ``op_name``, ``inputs``, ``outputs``, ``attr``, ``dtype_format``, ``target``. Attributes without
        a value are given by calls, behind the tensors or by name.
    flags : list of str
        For the compiler, after its own.
    check : bool, optional
        Whether each call runs twice, with guarded and poisoned buffers.

    Examples
    --------
    >>> import opsmith
    >>> square = opsmith.custom("square.cc:Square", lambda x: x, lambda x: x, bprop=lambda x, out, dout: 2 * x * dout)
    >>> square
    <opsmith.custom Square(Tensor[] inputs) -> Tensor output>
    """
    if func_type != "aot":
        raise ValueError(f"there is no kind of function {func_type!r}\n  help: give the file of a kernel and leave `func_type` out")
    import json

    if not isinstance(func, str):
        raise TypeError(f"`func` is a `{type(func).__qualname__}`\n  help: give the text FILE:FUNCTION, such as './add.cc:CustomAdd'")
    record: Any = {"op_name": func.rpartition(":")[2]} if reg_info is None else reg_info
    if isinstance(record, str):
        try:
            record = json.loads(record)
        except ValueError as error:
            raise ValueError(f"`reg_info` is no JSON: {error}\n  help: give the record as a dict") from error
    if not hasattr(record, "get"):
        raise TypeError(f"`reg_info` is a `{type(record).__qualname__}`\n  help: give a dict, or a text of one in JSON")
    inputs, outputs = record.get("inputs") or [], record.get("outputs") or []
    is_list = any(one.get("paramType") == "dynamic" for one in inputs)
    return _custom_kernel(
        func,
        json.dumps(record),
        0 if is_list else len(inputs),
        max(len(outputs), 1),
        out_shape,
        out_dtype,
        bprop,
        list(flags),
        check,
    )

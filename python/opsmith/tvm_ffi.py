"""Operators of a library as packed functions of tvm-ffi, and its functions on tensors of opsmith.

>>> import tvm_ffi, opsmith.tvm_ffi
>>> gelu = opsmith.tvm_ffi.function("gelu")
>>> gelu(tvm_ffi.from_dlpack(opsmith.zeros([2])))
float32[2]@cpu:0

Tensors are exchanged by DLPack, without a copy. Functions know no gradients: tvm-ffi has none.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Iterable

import tvm_ffi as _tvm_ffi

import opsmith

from ._signature import Entry, chosen

__all__ = ["function", "register", "unsupported", "wrap"]


def unsupported(library: ModuleType = opsmith) -> dict[str, str]:
    """The operators that no function of tvm-ffi is made for, by full name, each with the reason."""
    return {entry.name: reason for entry in chosen(library, None) if (reason := entry.refusal(views=True)) is not None}


def _own(value: Any) -> Any:
    """A value of tvm-ffi as one of opsmith: tensors over the same memory, lists with such."""
    if isinstance(value, _tvm_ffi.Tensor):
        return opsmith.from_dlpack(value)
    if isinstance(value, (_tvm_ffi.Array, _tvm_ffi.List, _tvm_ffi.Shape, list, tuple)):
        return [_own(item) for item in value]
    return value


def _foreign(value: Any) -> Any:
    """A value of opsmith as one of tvm-ffi."""
    if isinstance(value, opsmith.Tensor):
        return _tvm_ffi.from_dlpack(value.detach())
    return [_foreign(item) for item in value] if isinstance(value, (list, tuple)) else value


def _packed(entry: Entry, library: ModuleType) -> Callable[..., Any]:
    arguments = [(name, default and not optional) for name, _, _, optional, default, _ in entry.arguments]

    def call(*args: Any) -> Any:
        if len(args) > len(arguments):
            raise TypeError(f"{len(args)} arguments are given\n  help: the signature is {entry.definition.schema}")
        # Packed functions have no names: those of the signature, also where it takes a name alone; None leaves a default.
        given = {name: _own(value) for (name, is_left), value in zip(arguments, args) if not (is_left and value is None)}
        return _foreign(entry.definition(**given))

    call.__name__, call.__doc__ = entry.name, entry.definition.doc
    return call


def _chosen(names: Iterable[Any] | None, library: ModuleType) -> list[Entry]:
    entries = chosen(library, names)
    refused = {entry.name: reason for entry in entries if (reason := entry.refusal(views=True)) is not None}
    found = [entry for entry in entries if entry.name not in refused]
    if names is not None and not found:
        reasons = "; ".join(f"`{name}`: {reason}" for name, reason in refused.items())
        raise NotImplementedError(f"no function of tvm-ffi is possible: {reasons}")
    return found


def function(operator: Any, *, library: ModuleType = opsmith) -> Any:
    """An operator as a function of tvm-ffi.

    Parameters
    ----------
    operator : str or custom operator
        A full name, such as ``add.Tensor``, a name with one overload, or an operator that ``opsmith.custom`` made.
    library : module, default opsmith

    Returns
    -------
    tvm_ffi.Function
        Arguments are those of the signature by position: tensors, numbers, texts, None, lists of these. A dtype is its name.
    """
    entries = _chosen([operator], library)
    exact = [entry for entry in entries if entry.name == operator]
    if len(entries) > 1 and not exact:
        known = ", ".join(entry.name for entry in entries)
        raise LookupError(f"{operator!r} is the name of several operators\n  help: choose one of {known}")
    return _tvm_ffi.convert(_packed((exact or entries)[0], library))


def register(names: Iterable[Any] | None = None, *, namespace: str = "opsmith", library: ModuleType = opsmith) -> list[str]:
    """Registers operators as global functions of tvm-ffi, which any of its languages calls by name.

    >>> opsmith.tvm_ffi.register(["gelu"])
    ['opsmith.gelu']
    """
    found = []
    for entry in _chosen(names, library):
        name = f"{namespace}.{entry.name}"
        _tvm_ffi.register_global_func(name, _packed(entry, library), override=True)
        found.append(name)
    return found


def wrap(function: Any) -> Callable[..., Any]:
    """A function of tvm-ffi on tensors of opsmith: arguments are given without a copy, and results taken over so.

    >>> double = opsmith.tvm_ffi.wrap(tvm_ffi.convert(lambda x: x))
    >>> double(opsmith.ones([2]))
    tensor([1., 1.], dtype=float32)
    """

    def call(*args: Any) -> Any:
        return _own(function(*map(_foreign, args)))

    return call

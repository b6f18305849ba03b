"""Operators of a library as custom operators of ONNX Runtime.

>>> import onnxruntime, opsmith.onnxruntime
>>> options = onnxruntime.SessionOptions()
>>> options.register_custom_ops_library(opsmith.onnxruntime.library())

Sessions with these options run nodes of the domain ``opsmith``, such as those of models that ``Graph.save_onnx`` writes. A node's
operator is an entry's full name, its inputs are the entry's tensors in order, its attributes the other arguments by name.
Shapes and dtypes of results are inferred when a session is made, and mistakes of the node found; kernels read inputs in place.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"

from __future__ import annotations

import functools
import itertools
import struct
from types import ModuleType
from typing import Any, Iterable, Sequence

import opsmith

from ._signature import Entry, chosen

__all__ = ["library", "node", "register", "unsupported"]

_TENSORS = ("Tensor", "Tensors", "OptionalTensors")
# Kinds of arguments that no attribute is written for: they keep their defaults.
_OTHERS = ("Device", "MemoryFormat", "MemoryLayout", "Strs", "DTypes", "Lists")
_COMPLEX = ("complex64", "complex128")


def unsupported(library: ModuleType = opsmith) -> dict[str, str]:
    """The operators that ONNX Runtime cannot have, by full name, each with the reason.

    >>> opsmith.onnxruntime.unsupported()["native_dropout"]
    'it draws random numbers, which the framework's own seed would not determine'
    """
    return {entry.name: reason for entry in chosen(library, None) if (reason := _refusal(entry)) is not None}


def _refusal(entry: Entry) -> str | None:
    reason = entry.refusal(views=True)
    if reason is not None:
        return reason
    for (name, kind, written, _, default, _), types in zip(entry.arguments, entry.definition.accepted):
        if kind in _OTHERS and not default:
            return f"no attribute of ONNX has values of `{name}`, {written}"
        if kind == "Tensor" and types and all(one in _COMPLEX for one in types):
            return f"ONNX Runtime has no tensors of {', '.join(types)}"
    if any(name and kind not in ("Tensor", "Tensors") for name, kind, _ in entry.results):
        return "its results are no tensors"
    return None


def _constant(entry: Entry) -> list[str | None]:
    """The dtype of each result if it depends on nothing: it is the same for arguments of two dtypes, and for both values of flags."""
    found: list[set[str]] = [set() for _ in entry.results]
    calls = list(itertools.islice(entry.calls(), 1))
    if not calls or any(kind in ("DType", "Scalar") for _, kind, *_ in entry.arguments) or entry.results[0][1] != "Tensor":
        return []
    positional, named = calls[0]
    sample = {name: value for (name, *_), value in zip(entry.arguments, positional)} | named
    flags = [name for name, kind, *_ in entry.arguments if kind == "Bool"]
    for wide, flag in itertools.product((False, True), [None, *flags]):

        def described(value: Any) -> Any:
            if isinstance(value, opsmith.Tensor):
                name = value.dtype.name
                return ({"float32": "float64", "int64": "int32"}.get(name, name) if wide else name), list(value.shape)
            return [described(item) for item in value] if isinstance(value, (list, tuple)) else value

        for value in (False, True) if flag else (None,):
            given = {name: described(value) for name, value in sample.items()} | ({flag: value} if flag else {})
            try:
                results = entry.definition.infer((), given, None)
            except Exception:  # noqa: BLE001, the sample is for the other value
                if flag:
                    continue
                return []
            for dtypes, (dtype, _) in zip(found, results):
                dtypes.add(dtype.name)
    return [dtypes.pop() if len(dtypes) == 1 and dtypes <= {"bool", "int64"} else None for dtypes in found]


def register(names: Iterable[Any] | None = None, *, library: ModuleType = opsmith) -> list[str]:
    """Makes operators known to sessions whose options are made afterwards.

    Parameters
    ----------
    names : iterable of str or of custom operators, optional
        Full names such as ``add.Tensor``, names of all overloads such as ``add``, or operators that ``opsmith.custom`` made. By
        default all that ONNX Runtime can have. A name that it cannot have is an error; see :func:`unsupported`.
    library : module, default opsmith
        A module that `opsmith` made. Operators of a module with memory of its own are registered by its own file.

    Returns
    -------
    list of str
        The operators, each as ``DOMAIN::NAME``.
    """
    from . import _opsmith

    names = None if names is None else list(names)
    entries, refused = [], {}
    for entry in chosen(library, names):
        reason = _refusal(entry)
        if reason is None:
            entries.append(entry)
        else:
            refused[entry.name] = reason
    if names is not None and refused and not entries:
        reasons = "; ".join(f"`{name}`: {reason}" for name, reason in refused.items())
        raise NotImplementedError(f"no operator of ONNX Runtime is possible: {reasons}")
    module = getattr(library, "_opsmith", _opsmith)
    given = [(entry.definition, _constant(entry)) for entry in entries]
    domains = module._onnxruntime_register(given)
    return [f"{domain}::{entry.name}" for domain, entry in zip(domains, entries)]


@functools.cache
def _register_all(library: ModuleType) -> None:
    register(library=library)


def library(module: ModuleType = opsmith, *, names: Iterable[Any] | None = None) -> str:
    """The path of the library for ``SessionOptions.register_custom_ops_library``, with the operators of a module.

    `names` are those of :func:`register`. With a few, ONNX Runtime makes sessions faster than with all; those that the process has
    registered before are there, too. The library is for the process that asks for it: others have no interpreter.
    """
    if names is None:
        _register_all(module)
    else:
        register(names, library=module)
    found: str = getattr(module, "_opsmith", module)._onnxruntime_library()
    return found


def _attribute(name: str, kind: str, value: Any) -> Any:
    """A value as ONNX's attributes have it: floats of 32 bits, or a text for one that needs more."""
    if kind == "DType":
        return opsmith.dtype(value).name
    if kind == "Bool":
        return int(value)
    if kind == "Bools":
        return [int(one) for one in value] if isinstance(value, (list, tuple)) else int(value)
    if kind == "Scalar" and isinstance(value, bool):
        return "true" if value else "false"
    if kind == "Scalar" and isinstance(value, complex):
        raise TypeError(f"`{name}` is complex, which no attribute of ONNX is")
    if kind in ("Float", "Scalar") and isinstance(value, float):
        return value if struct.unpack("f", struct.pack("f", value))[0] == value or value != value else repr(value)
    if kind == "Float":
        return float(value)
    if kind == "Floats":
        return [float(one) for one in value]
    return list(value) if isinstance(value, tuple) else value


def node(operator: str, inputs: Sequence[Any], outputs: Sequence[str], /, *, library: ModuleType = opsmith, **arguments: Any) -> Any:
    """A node of an operator, for models that ``onnx.helper`` makes.

    Parameters
    ----------
    operator : str
        The full name of an entry, such as ``add.Tensor``.
    inputs : sequence of str, None, or lists of these
        The names of the entry's tensors in order, a list for a list of tensors, None for an absent one.
    outputs : sequence of str
        The names of the results.
    **arguments
        The other arguments by name.

    >>> opsmith.onnxruntime.node("softmax.int", ["x"], ["y"], dim=-1).domain
    'opsmith'
    """
    from onnx import helper

    matching = chosen(library, [operator])
    entry = next((one for one in matching if one.name == operator), None)
    if entry is None:
        known = ", ".join(one.name for one in matching)
        raise LookupError(f"{operator!r} is no full name of an operator\n  help: choose one of {known}")
    reason = _refusal(entry)
    if reason is not None:
        raise NotImplementedError(f"`{operator}` cannot be an operator of ONNX Runtime: {reason}")
    kinds = {name: kind for name, kind, *_ in entry.arguments if kind not in _TENSORS}
    tensors = [kind for _, kind, *_ in entry.arguments if kind in _TENSORS]
    unknown = [name for name in arguments if name not in kinds]
    if unknown or len(inputs) > len(tensors):
        problem = f"there is no argument {unknown[0]!r}" if unknown else f"{len(inputs)} inputs are given for {len(tensors)} tensors"
        raise TypeError(f"{problem}\n  help: the signature is {entry.definition.schema}")
    names: list[str] = []
    lengths: list[int] = []
    for kind, value in zip(tensors, inputs):
        if kind != "Tensor":
            if any(one is None for one in value):
                raise TypeError("a list of tensors has an absent one, which ONNX Runtime does not allow\n  help: give all of them")
            lengths.append(len(value))
        names.extend(value if kind != "Tensor" else [value or ""])
    attributes = {name: _attribute(name, kinds[name], value) for name, value in arguments.items() if value is not None}
    made = helper.make_node(entry.name, names, list(outputs), domain=entry.definition.library.replace("-", "_"))
    for name, value in attributes.items():
        # An empty list has no kind of its own.
        number = {"Floats": 6, "Ints": 7, "Bools": 7}.get(kinds[name])
        made.attribute.append(helper.make_attribute(name, value, attr_type=number if value == [] else None))
    if lengths:
        made.attribute.append(helper.make_attribute("tensor_lists", lengths))
    return made

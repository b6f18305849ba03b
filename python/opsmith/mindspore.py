"""Operators of a library as operators of MindSpore.

>>> import mindspore, opsmith.mindspore
>>> softmax = opsmith.mindspore.operator("softmax.int", dim=-1)
>>> softmax(mindspore.Tensor([0.0, 0.0]))
Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01,  5.00000000e-01])

An operator is a primitive, ``mindspore.ops.Custom``, for PyNative and graph mode on the CPU: tensors are arguments of calls, all
else is given when it is made. Shapes and dtypes are inferred; the gradient is that of the entry. In graph mode a result without
dimensions is a number, sizes are those of the compilation, and gradients are for at most eight tensors, with ``tensor_lists``.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Sequence

import mindspore as _mindspore  # pyright: ignore[reportMissingImports]
import numpy as _np

import opsmith

from ._mindspore_bprop import gradient
from ._signature import NUMBERS, Entry, chosen, home

__all__ = ["asarray", "operator", "to_mindspore", "unsupported"]

_NAMES = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_DTYPES = {**{name: getattr(_mindspore, name) for name in _NAMES}, "bool": _mindspore.bool_}
_TENSORS = ("Tensor", "Tensors", "OptionalTensors")


def unsupported(library: ModuleType = opsmith) -> dict[str, str]:
    """The operators that MindSpore cannot have, by full name, each with the reason."""
    return {entry.name: reason for entry in chosen(library, None) if (reason := _refusal(entry)) is not None}


def _refusal(entry: Entry) -> str | None:
    if entry.definition.is_data_dependent:
        return "sizes of its results are known after a run only"
    return entry.refusal(views=True)


def _name(dtype: Any) -> str:
    """The name of an element type of MindSpore."""
    element = dtype.element_type() if hasattr(dtype, "element_type") else dtype
    for name, known in _DTYPES.items():
        if known == element:
            return name
    raise TypeError(f"tensors of {element} are not known to opsmith")


def _dtype(name: str) -> Any:
    if name not in _DTYPES:
        raise TypeError(f"MindSpore's functions of Python have no tensors of {name}")
    return _DTYPES[name]


def _leaf(tensor: Any) -> Any:
    """The tensor, with a gradient if its elements can have one."""
    return tensor.detach().requires_grad_() if tensor.dtype.is_floating_point or tensor.dtype.is_complex else tensor


def _filled(gradients: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
    """Gradients, zeros in the places of absent ones."""
    return [opsmith.zeros_like(leaf.detach()) if one is None else one for one, leaf in zip(gradients, leaves)]


def _array(tensor: opsmith.Tensor) -> Any:
    return _np.asarray(tensor.detach().contiguous())


class _Call:
    """An operator with its arguments that are no tensors."""

    def __init__(self, entry: Entry, lengths: Sequence[int], named: dict[str, Any], library: ModuleType) -> None:
        self.entry, self.lengths, self.named, self.library = entry, lengths, named, home(library)
        # The number of results; of a list it is that of the last inference.
        self.results = len(entry.results)
        self.is_list = entry.results[0][1] == "Tensors"

    def given(self, tensors: Sequence[Any]) -> dict[str, Any]:
        """Arguments by name."""
        return self.entry.filled(tensors, self.named, self.lengths)

    def infer(self, described: Sequence[tuple[str, Sequence[int]]]) -> list[tuple[tuple[int, ...], Any]]:
        """Shape and dtype of each result."""
        if any(size < 0 for _, sizes in described for size in sizes):
            raise NotImplementedError(
                f"`{self.entry.name}` got a size that graph mode does not know\n  help: compile for each size, or use PyNative mode"
            )
        found = self.entry.definition.infer((), self.given([(name, list(sizes)) for name, sizes in described]), NUMBERS)
        self.results = len(found)
        return [(tuple(sizes), _dtype(dtype.name)) for dtype, sizes in found]

    def tensors(self, arrays: Sequence[Any], dtypes: Sequence[str]) -> list[Any]:
        """Tensors over arrays; numbers, which MindSpore gives in the place of tensors without dimensions, become such."""
        return [self.library.asarray(_np.asarray(array, dtype)) for array, dtype in zip(arrays, dtypes)]

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        """The results."""
        found = self.entry.definition(**self.given(tensors))
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def _grad(self, results: Sequence[Any], starts: Sequence[Any], leaves: Sequence[Any], create_graph: bool = False) -> list[Any]:
        """The gradients of all leaves, None where none flows."""
        flows = [(one, start) for one, start in zip(results, starts) if one is not None and one.requires_grad]
        wanted = [one for one in leaves if one.requires_grad]
        found: list[Any] = [None] * len(wanted)
        if flows and wanted:
            flowing, given = map(list, zip(*flows))
            found = list(self.library.grad(flowing, wanted, given, create_graph=create_graph))
        rest = iter(found)
        return [next(rest) if one.requires_grad else None for one in leaves]

    def pull(self, tensors: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        """The gradients of all tensors, zeros where none flows."""
        leaves = list(map(_leaf, tensors))
        return _filled(self._grad(self.run(leaves), gradients, leaves), leaves)

    def pull_again(self, tensors: Sequence[Any], gradients: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """The gradients of all tensors and of the gradients of results, from those of a call of :meth:`pull`."""
        leaves, starts = list(map(_leaf, tensors)), list(map(_leaf, gradients))
        first = self._grad(self.run(leaves), starts, leaves, create_graph=True)
        every = [*leaves, *starts]
        return _filled(self._grad(first, cotangents, every), every)


class _Primitive(_mindspore.ops.Custom):
    """A primitive whose shapes and dtypes are inferred at once, and whose function gets arrays."""

    def __init__(self, name: str, infer: Callable[[Any], Any], run: Callable[[Any, Any], Any], bprop: Any) -> None:
        self._infer, self._run, self._last = infer, run, [""]

        def called(*arrays: Any) -> Any:
            dtypes = [str(array.dtype) if hasattr(array, "dtype") else name for array, name in zip(arrays, self._last)]
            found = run(arrays, dtypes)
            return found[0] if len(found) == 1 else tuple(found)

        self.__name__ = name
        super().__init__(called, lambda *shapes: shapes[0], lambda *dtypes: dtypes[0], func_type="pyfunc", bprop=bprop)

    def inferred(self, described: Sequence[tuple[Any, Sequence[int]]]) -> list[tuple[tuple[int, ...], Any]]:
        """Shape and dtype of each result, from those of tensors."""
        found: list[tuple[tuple[int, ...], Any]] = self._infer([(_name(dtype), sizes) for dtype, sizes in described])
        return found

    def __infer__(self, *args: Any) -> dict[str, Any]:
        described = [(_name(arg["dtype"]), arg["shape"]) for arg in args]
        self._last = [name for name, _ in described]
        # MindSpore counts a function's parameters, of which this one has any number.
        self.add_prim_attr("inputs_num", len(args))
        found = self._infer(described)
        shapes, dtypes = zip(*found)
        if len(found) == 1:
            return {"shape": shapes[0], "dtype": dtypes[0], "value": None}
        return {"shape": shapes, "dtype": dtypes, "value": None}


def operator(name: Any, *, tensor_lists: Sequence[int] = (), library: ModuleType = opsmith, **arguments: Any) -> Any:
    """An operator as a primitive of MindSpore.

    Parameters
    ----------
    name : str or custom operator
        A full name, such as ``add.Tensor``, a name with one overload, or an operator that ``opsmith.custom`` made.
    tensor_lists : sequence of int, optional
        The lengths of lists of tensors, whose tensors are arguments of calls one by one. A list takes all that are left without.
    library : module, default opsmith
    **arguments
        The arguments that are no tensors. An optional tensor is absent if it is given here as None.

    Returns
    -------
    mindspore.ops.Custom
        Called with the tensors in the order of the signature. Several results, and a list of them, are a tuple.
    """
    matching = chosen(library, [name])
    exact = [entry for entry in matching if entry.name == name] or matching
    if len(exact) > 1:
        known = ", ".join(entry.name for entry in exact)
        raise LookupError(f"{name!r} is the name of several operators\n  help: choose one of {known}")
    entry = exact[0]
    reason = _refusal(entry)
    if reason is not None:
        raise NotImplementedError(f"`{entry.name}` cannot be an operator of MindSpore: {reason}")
    kinds = {known: kind for known, kind, *_ in entry.arguments}
    for known, value in arguments.items():
        if known not in kinds or (kinds[known] in _TENSORS and value is not None):
            raise TypeError(f"`{known}` is no argument that is given here\n  help: the signature is {entry.definition.schema}")
    call = _Call(entry, tensor_lists, arguments, library)

    def run(arrays: Any, dtypes: Any) -> list[Any]:
        return [_array(one) for one in call.run(call.tensors(arrays, dtypes))]

    return _Primitive(entry.name, call.infer, run, _gradient(call) if entry.is_differentiable() else None)


def _gradient(call: _Call) -> Callable[..., Any]:
    """The gradient of a primitive: a function that graph mode compiles, around a primitive of its own."""

    def split(values: Any) -> int:
        # Behind the tensors of the call are the gradients of its results.
        return len(values) - call.results

    def infer(described: Any) -> Any:
        return [(tuple(sizes), _dtype(name)) for name, sizes in described[: split(described)]]

    def run(arrays: Any, dtypes: Any) -> list[Any]:
        tensors = call.tensors(arrays, dtypes)
        at = split(tensors)
        return [_array(one) for one in call.pull(tensors[:at], tensors[at:])]

    def split_again(values: Any) -> tuple[int, int]:
        # Behind these are the gradients of the gradients of the call's tensors.
        count = (len(values) - call.results) // 2
        return count, count + call.results

    def infer_again(described: Any) -> Any:
        return [(tuple(sizes), _dtype(name)) for name, sizes in described[: split_again(described)[1]]]

    def run_again(arrays: Any, dtypes: Any) -> list[Any]:
        tensors = call.tensors(arrays, dtypes)
        first, second = split_again(tensors)
        return [_array(one) for one in call.pull_again(tensors[:first], tensors[first:second], tensors[second:])]

    given = [kind for name, kind, *_ in call.entry.arguments if kind in _TENSORS and name not in call.named]
    lists = sum(kind != "Tensor" for kind in given)
    count = len(given) - lists + sum(call.lengths) if lists == len(call.lengths) else None
    # A list of results has a length that no signature tells.
    of_first = None if count is None or call.is_list else count + len(call.entry.results)
    again = _Primitive(f"second gradient of {call.entry.name}", infer_again, run_again, None)
    pull = _Primitive(f"gradient of {call.entry.name}", infer, run, gradient(again, of_first, count != 1))
    return gradient(pull, count, call.is_list or len(call.entry.results) > 1)


def asarray(tensor: Any) -> opsmith.Tensor:
    """The elements of a tensor of MindSpore as one of opsmith, outside any graph.

    >>> opsmith.mindspore.asarray(mindspore.Tensor([1.0]))
    tensor([1.], dtype=float32)
    """
    return opsmith.asarray(tensor.asnumpy())


def to_mindspore(tensor: opsmith.Tensor) -> Any:
    """The elements of a tensor as one of MindSpore, outside any graph.

    >>> opsmith.mindspore.to_mindspore(opsmith.ones([1]))
    Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """
    return _mindspore.Tensor.from_numpy(_array(tensor))

"""Operators of a library as functions of JAX, under ``jit``, ``grad`` and ``vmap``.

>>> import jax.numpy as jnp, opsmith.jax
>>> opsmith.jax.call("gelu", jnp.zeros(2))
Array([0., 0.], dtype=float32)
>>> gelu = opsmith.jax.operator("gelu")
>>> jax.grad(lambda x: gelu(x).sum())(jnp.ones(2))
Array([1.0833155, 1.0833155], dtype=float32)

Shapes and dtypes are inferred when JAX traces; mistakes in them are exceptions there. A call is one of XLA's foreign functions, on
JAX's memory and without the interpreter, on the CPU and on devices of CUDA, in the program's stream. Derivatives are those of entries, in both modes, of the first and second order. A batch is
one call for a pointwise operator, and a call for each item for others. Custom operators are callbacks of Python.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any, no-disallow-any-decorated, no-disallow-untyped-decorators

from __future__ import annotations

import functools
import json
from types import ModuleType
from typing import Any, Callable

import jax as _jax
import jax.core as _jax_core
import numpy as _np

import opsmith

from . import _jax_rules as _rules
from ._opsmith import _Definition, _xla_handler
from ._signature import Entry, Numbers, chosen, home

__all__ = ["asarray", "call", "operator", "to_jax", "unsupported"]


class _Sizes(Numbers):
    """Sizes of JAX: numbers, and in ``jax.export`` symbols, whose comparisons are exceptions of JAX if constraints do not decide them."""

    def greater(self, a: Any, b: Any) -> Any:
        """The maximum."""
        return _jax_core.max_dim(a, b)

    def smaller(self, a: Any, b: Any) -> Any:
        """The minimum."""
        return _jax_core.min_dim(a, b)

    def check(self, condition: Any, text: str) -> None:
        """Refuses sizes for which a condition does not hold."""
        if not condition:
            raise ValueError(f"these sizes are not possible for all values of their symbols: needed is {text}")


_SIZES = _Sizes()


def unsupported(library: ModuleType = opsmith) -> dict[str, str]:
    """The operators that JAX cannot have, by full name, each with the reason."""
    return {entry.name: reason for entry in chosen(library, None) if (reason := _refusal(entry)) is not None}


def _refusal(entry: Entry) -> str | None:
    if entry.definition.is_data_dependent:
        return "sizes of its results are known after a run only"
    # A view of an array that nothing writes into is a copy.
    return entry.refusal(views=True)


def operator(name: Any, *, library: ModuleType = opsmith) -> Callable[..., Any]:
    """The function of JAX for an operator: a full name, a name whose overload the arguments choose, or a custom operator.

    Arrays are those of JAX or NumPy; all other arguments are constants of the program.
    """
    entries = chosen(library, [name])
    usable = [Function(entry, library) for entry in entries if _refusal(entry) is None]
    if not usable:
        reasons = sorted({str(_refusal(entry)) for entry in entries})
        raise NotImplementedError(f"`{name}` cannot be an operator of JAX: {'; '.join(reasons)}")
    return usable[0] if len(usable) == 1 else Overloads(str(name), usable)


_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def call(name: str, *args: Any, **named: Any) -> Any:
    """Calls an operator of opsmith with arrays of JAX."""
    function = _FUNCTIONS.get(name)
    if function is None:
        function = _FUNCTIONS[name] = operator(name)
    return function(*args, **named)


def asarray(array: Any) -> opsmith.Tensor:
    """The elements of an array of JAX as a tensor of opsmith. They are copied, since no array of JAX may be written."""
    return opsmith.asarray(_np.array(array))


def to_jax(tensor: opsmith.Tensor) -> Any:
    """The elements of a tensor as an array of JAX, a copy.

    >>> opsmith.jax.to_jax(opsmith.ones([2]))
    Array([1., 1.], dtype=float32)
    """
    return _jax.numpy.asarray(_np.array(tensor.detach()))


def _is_array(value: Any) -> bool:
    return isinstance(value, (_jax.Array, _np.ndarray))


class Overloads:
    """The operators of one name."""

    def __init__(self, name: str, functions: list[Function]) -> None:
        self.__name__, self.functions = name, functions

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        for function in self.functions:
            if function.fits(args, named):
                return function(*args, **named)
        candidates = "\n  ".join(function.entry.definition.schema for function in self.functions)
        raise TypeError(f"no overload of `{self.__name__}` takes these arguments; there are\n  {candidates}")

    def __repr__(self) -> str:
        return f"<opsmith.jax operators of {self.__name__}>"


class Call:
    """A call without its arrays, as the rules of ``_jax_rules`` have it."""

    def __init__(self, function: Function, given: dict[str, Any]) -> None:
        definition = function.entry.definition
        self.function, self.name = function, function.entry.name
        self.is_differentiable, self.is_pointwise = bool(definition.is_differentiable), bool(definition.is_pointwise)
        kinds = {name: kind for name, kind, *_ in function.entry.arguments}
        self.places: dict[str, Any] = {}
        self.arrays: list[Any] = []
        for name, value in given.items():
            if kinds[name] == "Tensor" and value is not None:
                self.places[name] = self._place(value)
            elif value is not None and kinds[name] in ("Tensors", "OptionalTensors"):
                self.places[name] = [None if one is None else self._place(one) for one in value]
        self.given = {name: None if name in self.places else value for name, value in given.items()}
        self.text = self._encoded()

    def _place(self, value: Any) -> int:
        self.arrays.append(_jax.numpy.asarray(value))
        return len(self.arrays) - 1

    def _encoded(self) -> str | None:
        """The call as text, which any process with opsmith understands; None for an operator that was declared in this one."""
        if not self.function.is_listed:
            return None
        values = {name: value for name, value in self.given.items() if name not in self.places}
        try:
            return json.dumps([self.name, self.places, {name: _encoded(value) for name, value in values.items()}])
        except (TypeError, ValueError):
            return None

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, Call) and self.text is not None and self.text == other.text

    def __hash__(self) -> int:
        return id(self) if self.text is None else hash(self.text)

    def __repr__(self) -> str:
        return self.name

    @property
    def keeps_results(self) -> bool:
        """Whether derivatives are recorded from results. JAX may have narrowed integers among them."""
        definition = self.function.entry.definition
        return definition.reads is not None and (bool(_jax.config.read("jax_enable_x64")) or all(definition.differentiable_results))

    def with_arrays(self, values: Any) -> dict[str, Any]:
        """The arguments by name, with these values in the places of the arrays."""

        def one(place: Any) -> Any:
            if isinstance(place, list):
                return [one(item) for item in place]
            return None if place is None else values[place]

        return {name: one(self.places[name]) if name in self.places else value for name, value in self.given.items()}

    def shapes(self, arrays: Any) -> list[Any]:
        described = [(str(array.dtype), list(array.shape)) for array in arrays]
        found = self.function.entry.definition.infer((), self.with_arrays(described), _SIZES)
        canonical = _jax.dtypes.canonicalize_dtype
        return [_jax.ShapeDtypeStruct(tuple(sizes), canonical(_jax.numpy.dtype(dtype.name))) for dtype, sizes in found]

    def flows(self, results: Any) -> list[bool]:
        known = self.function.entry.definition.differentiable_results
        have = [True] * len(results) if known is None or self.function.is_list else known
        return [_rules.is_inexact(result) and one for result, one in zip(results, have)]

    def execute(self, kind: str, parts: _rules.Parts, shapes: Any, operands: Any) -> Any:
        if self.text is None:
            return self.elsewhere(kind, parts, shapes, operands)
        masks = [list(mask) or [False] * parts.arrays for mask in (parts.flows, parts.moved, parts.others)]
        is_forward = kind in (_rules.TANGENT, _rules.SECOND_TANGENT)
        derivative = None if kind == _rules.RUN else [is_forward, parts.kept, *masks]
        description = json.dumps([*json.loads(self.text), derivative])
        return _jax.ffi.ffi_call(_TARGET, shapes)(*operands, call=description)

    def elsewhere(self, kind: str, parts: _rules.Parts, shapes: Any, operands: Any) -> Any:
        """A call of a function of Python, on the host."""
        run = functools.partial(self.function.run, self, kind, parts, shapes)
        return _jax.pure_callback(run, shapes, *operands, vmap_method="sequential")


class Function:
    """An operator as a function of JAX."""

    def __init__(self, entry: Entry, library: ModuleType = opsmith) -> None:
        self.entry, self.library = entry, home(library)
        self.is_list = [kind for _, kind, _ in entry.results] == ["Tensors"]
        self.accepted = {name: types for (name, *_), types in zip(entry.arguments, entry.definition.accepted) if types}
        # Descriptions are decoded by this package's module, which knows the operators that every process has.
        is_own = library is opsmith and isinstance(entry.definition, _Definition)
        self.is_listed = is_own and (entry.name, entry.definition.library) in _names()
        self.__name__, self.__doc__ = entry.name, entry.definition.doc

    def __repr__(self) -> str:
        return f"<opsmith.jax operator {self.entry.definition.schema}>"

    def fits(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Whether arrays and numbers are where the signature has them."""
        try:
            given = self.entry.bound(args, named)
        except TypeError:
            return False
        for name, kind, _, optional, default, _ in self.entry.arguments:
            if name not in given:
                if not default:
                    return False
                continue
            value = given[name]
            is_list = isinstance(value, (list, tuple)) and any(_is_array(one) for one in value)
            if value is None:
                fits = optional
            elif kind == "Tensor":
                fits = _is_array(value)
            elif kind in ("Tensors", "OptionalTensors"):
                fits = is_list
            elif kind in ("Scalar", "Int", "Float", "Bool"):
                fits = isinstance(value, (bool, int, float, complex))
            else:
                fits = not _is_array(value) and not is_list
            if not fits:
                return False
        return True

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        described = Call(self, self.entry.bound(args, named))
        arrays, described.arrays = described.arrays, []
        results = _rules.call(described, arrays)
        if self.is_list:
            return list(results)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, call: Call, kind: str, parts: _rules.Parts, shapes: Any, *operands: Any) -> list[Any]:
        """The results of a primitive, as arrays of NumPy: for operators and platforms without a foreign function."""
        arrays, _, *groups = parts.split(kind, [self.library.asarray(_np.asarray(one)) for one in operands])
        if kind == _rules.RUN:
            found = self._called(call, arrays)
        elif kind in (_rules.TANGENT, _rules.SECOND_TANGENT):
            found = self._tangents(call, arrays, [parts.moved, parts.others][: len(groups)], groups)
            found = [one for one, flows in zip(found, parts.flows) if flows]
        else:
            found = self._gradients(call, arrays, parts, *groups)
        return _arrays(found, shapes)

    def _called(self, call: Call, tensors: Any) -> list[Any]:
        given = call.with_arrays(tensors)
        for name, types in self.accepted.items():
            one: Any = given.get(name)
            # JAX has integers of 32 bits by default.
            if isinstance(one, self.library.Tensor) and one.dtype.name not in types:
                given[name] = one.to(dtype=types[0])
        results = self.entry.definition(**given)
        return list(results) if isinstance(results, tuple) else [results]

    def _tangents(self, call: Call, tensors: Any, masks: list[Any], groups: Any) -> list[Any]:
        """Derivatives of results along the last group of tangents, then along the one before it."""
        if not groups:
            return self._called(call, tensors)
        places = [at for at, is_moved in enumerate(masks[-1]) if is_moved]

        def function(*moved: Any) -> list[Any]:
            replaced = dict(zip(places, moved))
            given = [replaced.get(at, one) for at, one in enumerate(tensors)]
            found = self._tangents(call, given, masks[:-1], groups[:-1])
            like = found if len(groups) == 1 else self._called(call, given)
            return [self.library.zeros_like(one) if part is None else part for part, one in zip(found, like)]

        found = self.library.jvp(function, [tensors[at] for at in places], groups[-1])[1]
        return [found] if isinstance(found, self.library.Tensor) else list(found)

    def _gradients(self, call: Call, tensors: Any, parts: _rules.Parts, gradients: Any, steps: Any = None) -> list[Any]:
        """Gradients of tensors; with steps, the derivatives of gradients along them."""
        first = parts.others if steps is None else parts.moved
        leaves = [one.detach().requires_grad_() if any(flags) else one for one, *flags in zip(tensors, first, parts.others)]
        results = [one for one, flows in zip(self._called(call, leaves), parts.flows) if flows]
        flowing = [(one, start) for one, start in zip(results, gradients) if one.requires_grad]
        found = self._pulled(flowing, [one for one, is_in in zip(leaves, first) if is_in], steps is not None)
        if steps is None:
            return found
        flowing = [(one, step) for one, step in zip(found, steps) if one is not None and one.requires_grad]
        return self._pulled(flowing, [one for one, is_in in zip(leaves, parts.others) if is_in], False)

    def _pulled(self, flowing: list[tuple[Any, Any]], leaves: list[Any], is_recorded: bool) -> list[Any]:
        if not flowing:
            return [None] * len(leaves)
        results, starts = map(list, zip(*flowing))
        return list(self.library.grad(results, leaves, starts, create_graph=is_recorded))


def _arrays(tensors: list[Any], shapes: Any) -> list[Any]:
    """Arrays of tensors as JAX wants them, zeros for absent ones."""

    def one(tensor: Any, shape: Any) -> Any:
        if tensor is None:
            return _np.zeros(shape.shape, shape.dtype)
        array = _np.asarray(tensor.detach())
        return array if array.dtype == shape.dtype else array.astype(shape.dtype)

    return [one(tensor, shape) for tensor, shape in zip(tensors, shapes)]


_TARGET = "opsmith_call"


def _encoded(value: Any) -> Any:
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (list, tuple)):
        return [_encoded(one) for one in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"dtype": opsmith.dtype(value).name}


def _value(encoded: Any) -> Any:
    if isinstance(encoded, list):
        return [_value(one) for one in encoded]
    if isinstance(encoded, dict):
        return complex(*encoded["complex"]) if "complex" in encoded else encoded["dtype"]
    return encoded


def _decoded(text: str) -> Any:
    """The call that a description of :meth:`Call.execute` is for."""
    name, places, values, derivative = json.loads(text)
    entry = _ENTRIES.get(name) or _ENTRIES.setdefault(name, next(one for one in chosen(opsmith, [name]) if one.name == name))
    accepted = {name: types or [] for (name, *_), types in zip(entry.arguments, entry.definition.accepted)}
    arguments: list[tuple[str, str, Any, list[str]]] = [(name, "value", _value(value), []) for name, value in values.items()]
    for name, place in places.items():
        arguments.append((name, "arrays" if isinstance(place, list) else "array", place, accepted[name]))
    return entry.definition, arguments, None if derivative is None else tuple(derivative)


_ENTRIES: dict[str, Entry] = {}


@functools.cache
def _names() -> frozenset[tuple[str, str]]:
    """The operators of this package, with their libraries."""
    return frozenset((entry.name, entry.definition.library) for entry in chosen(opsmith, None))


for _platform, _registered in _rules.PLATFORMS.items():
    _jax.ffi.register_ffi_target(_TARGET, _xla_handler(_decoded, _platform != "cpu"), platform=_registered)

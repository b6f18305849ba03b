"""Operators of a library as functions of JAX, under ``jit``, ``grad`` and ``vmap``.

>>> import jax.numpy as jnp, opsmith.jax
>>> opsmith.jax.call("gelu", jnp.zeros(2))
Array([0., 0.], dtype=float32)
>>> gelu = opsmith.jax.operator("gelu")
>>> jax.grad(lambda x: gelu(x).sum())(jnp.ones(2))
Array([1.0833155, 1.0833155], dtype=float32)

Shapes and dtypes are inferred when JAX traces; mistakes in them are exceptions there. A call is one of XLA's foreign functions, on
JAX's memory and without the interpreter, and a batch is one call for each item. Derivatives are those of entries, in reverse mode, of
the first and second order. Second derivatives and custom operators are callbacks of Python.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any, no-disallow-any-decorated, no-disallow-untyped-decorators

from __future__ import annotations

import functools
import json
from types import ModuleType
from typing import Any, Callable

import jax as _jax
import numpy as _np

import opsmith

from ._opsmith import _Definition, _xla_handler
from ._signature import NUMBERS, Entry, chosen, home

__all__ = ["asarray", "call", "operator", "to_jax", "unsupported"]


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


class Arguments:
    """The arguments of a call without its arrays."""

    def __init__(self, entry: Entry, given: dict[str, Any]) -> None:
        self.entry, self.given, self.arrays = entry, given, []
        kinds = {name: kind for name, kind, *_ in entry.arguments}
        self.places: dict[str, Any] = {}
        for name, value in given.items():
            if kinds[name] == "Tensor" and value is not None:
                self.places[name] = self._place(value)
            elif kinds[name] in ("Tensors", "OptionalTensors"):
                self.places[name] = [None if one is None else self._place(one) for one in value]

    arrays: list[Any]

    def _place(self, value: Any) -> int:
        self.arrays.append(_jax.numpy.asarray(value))
        return len(self.arrays) - 1

    def with_arrays(self, values: Any) -> dict[str, Any]:
        """The arguments by name, with these values in the places of the arrays."""

        def one(place: Any) -> Any:
            if isinstance(place, list):
                return [one(item) for item in place]
            return None if place is None else values[place]

        return {name: one(self.places[name]) if name in self.places else value for name, value in self.given.items()}


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
        arguments = Arguments(self.entry, self.entry.bound(args, named))
        results = self._differentiable(arguments)(*arguments.arrays)
        if self.is_list:
            return list(results)
        return results[0] if len(results) == 1 else results

    def _shapes(self, arguments: Arguments) -> tuple[Any, ...]:
        """Shapes and dtypes of results."""
        described = [(str(array.dtype), list(array.shape)) for array in arguments.arrays]
        found = self.entry.definition.infer((), arguments.with_arrays(described), NUMBERS)
        canonical = _jax.dtypes.canonicalize_dtype
        return tuple(_jax.ShapeDtypeStruct(tuple(sizes), canonical(_jax.numpy.dtype(dtype.name))) for dtype, sizes in found)

    def _tensors(self, arguments: Arguments, arrays: Any, tracked: Any = ()) -> tuple[dict[str, Any], list[Any]]:
        """The arguments with tensors over arrays, and the tensors; those at tracked places require a gradient."""
        tensors = [self.library.asarray(_np.asarray(array)) for array in arrays]
        leaves = [one.detach().requires_grad_() if at in tracked else one for at, one in enumerate(tensors)]
        given = arguments.with_arrays(leaves)
        for name, types in self.accepted.items():
            one = given.get(name)
            # JAX has integers of 32 bits by default.
            if isinstance(one, self.library.Tensor) and one.dtype.name not in types:
                given[name] = one.to(dtype=types[0])
        return given, leaves

    def _run(self, given: dict[str, Any]) -> list[Any]:
        results = self.entry.definition(**given)
        return list(results) if isinstance(results, tuple) else [results]

    def description(self, arguments: Arguments, derivative: Any = None) -> str | None:
        """A call as text, which any process with opsmith understands; None for an operator that was declared in this one."""
        if not self.is_listed:
            return None
        values = {name: value for name, value in arguments.given.items() if name not in arguments.places}
        try:
            values = {name: _encoded(value) for name, value in values.items()}
        except (TypeError, ValueError):
            return None
        return json.dumps([self.entry.name, arguments.places, values, derivative])

    def _differentiable(self, arguments: Arguments) -> Callable[..., Any]:
        shapes = self._shapes(arguments)

        def forward(*arrays: Any) -> tuple[Any, ...]:
            given, _ = self._tensors(arguments, arrays)
            return _arrays(self._run(given), shapes)

        @_jax.custom_vjp
        def function(*arrays: Any) -> Any:
            return _callback(forward, shapes, *arrays, description=self.description(arguments))

        def save(*arrays: Any) -> Any:
            return function(*arrays), arrays

        def pull(arrays: Any, gradients: Any) -> Any:
            return _conjugated(self._pullback(arguments, len(arrays))(arrays, _conjugated(gradients)))

        function.defvjp(save, pull)
        return function  # type: ignore[no-any-return]

    def _pulled(self, arguments: Arguments, arrays: Any, gradients: Any, again: Any = None) -> Any:
        """Gradients of arrays; if `again`, a list of cotangents of them, those of arrays and gradients."""
        places = [at for at, array in enumerate(arrays) if _is_inexact(array)]
        given, leaves = self._tensors(arguments, arrays, places)
        starts = [self.library.asarray(_np.asarray(one)) for one in gradients]
        starts = [one.detach().requires_grad_() if again is not None and _is_tracked(one) else one for one in starts]
        flows = [(one, start) for one, start in zip(self._run(given), starts) if one.requires_grad]
        inputs = [leaves[at] for at in places]
        if not flows or not inputs:
            found: list[Any] = [None] * len(inputs)
        else:
            results, given_starts = map(list, zip(*flows))
            found = list(self.library.grad(results, inputs, given_starts, create_graph=again is not None))
        if again is None:
            return dict(zip(places, found))
        outer = [(found[at], again[place]) for at, place in enumerate(places) if found[at] is not None]
        outer = [(one, self.library.asarray(_np.asarray(start))) for one, start in outer if one.requires_grad]
        wanted = [*inputs, *(one for one in starts if one.requires_grad)]
        if not outer:
            return [None] * len(wanted)
        results, given_starts = map(list, zip(*outer))
        return list(self.library.grad(results, wanted, given_starts))

    def _pullback(self, arguments: Arguments, count: int) -> Callable[..., Any]:
        """The gradients of arrays, from those of results: differentiable again."""

        @_jax.custom_vjp
        def pullback(arrays: Any, gradients: Any) -> Any:
            present = [at for at, one in enumerate(gradients) if _is_inexact(one)]
            kept = [gradients[at] for at in present]
            places = [at for at, array in enumerate(arrays) if _is_inexact(array)]
            shapes = tuple(_jax.ShapeDtypeStruct(arrays[at].shape, arrays[at].dtype) for at in places)

            def run(*values: Any) -> tuple[Any, ...]:
                found = self._pulled(arguments, values[:count], _filled(values[count:], present, gradients))
                return _arrays([found[at] for at in places], shapes)

            flags = [[at in places for at in range(count)], [at in present for at in range(len(gradients))]]
            text = self.description(arguments, flags)
            found = iter(_callback(run, shapes, *arrays, *kept, description=text)) if places else iter(())
            return tuple(next(found) if at in places else _no_gradient(array) for at, array in enumerate(arrays))

        def save(arrays: Any, gradients: Any) -> Any:
            return pullback(arrays, gradients), (arrays, gradients)

        def pull(saved: Any, cotangents: Any) -> Any:
            arrays, gradients = saved
            cotangents = _conjugated(cotangents)
            present = [at for at, one in enumerate(gradients) if _is_inexact(one)]
            places = [at for at, array in enumerate(arrays) if _is_inexact(array)]
            wanted = [*(arrays[at] for at in places), *(gradients[at] for at in present)]
            shapes = tuple(_jax.ShapeDtypeStruct(one.shape, one.dtype) for one in wanted)
            split = count + len(present)

            def run(*values: Any) -> tuple[Any, ...]:
                again = dict(zip(places, values[split:]))
                kept = _filled(values[count:split], present, gradients)
                return _arrays(self._pulled(arguments, values[:count], kept, again), shapes)

            given = [*arrays, *(gradients[at] for at in present), *(cotangents[at] for at in places)]
            found = iter(_callback(run, shapes, *given))
            of_arrays = tuple(next(found) if at in places else _no_gradient(one) for at, one in enumerate(arrays))
            of_gradients = tuple(next(found) if at in present else one for at, one in enumerate(gradients))
            return _conjugated(of_arrays), _conjugated(of_gradients)

        pullback.defvjp(save, pull)
        return pullback  # type: ignore[no-any-return]


def _is_tracked(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def _is_inexact(array: Any) -> bool:
    return bool(_jax.numpy.issubdtype(array.dtype, _jax.numpy.inexact))


def _conjugated(arrays: Any) -> tuple[Any, ...]:
    """Gradients of complex numbers as the other library has them: JAX's are transposes, those of entries are adjoints."""
    is_complex = lambda one: _jax.numpy.issubdtype(one.dtype, _jax.numpy.complexfloating)  # noqa: E731
    return tuple(_jax.numpy.conj(one) if is_complex(one) else one for one in arrays)


def _no_gradient(array: Any) -> Any:
    return _np.zeros(array.shape, _jax.dtypes.float0)


def _filled(kept: Any, present: list[int], gradients: Any) -> list[Any]:
    """Gradients of all results: those of integers, which JAX has no values for, are zeros."""
    rest = iter(kept)
    return [next(rest) if at in present else _np.zeros(one.shape, _np.float32) for at, one in enumerate(gradients)]


def _arrays(tensors: list[Any], shapes: Any) -> tuple[Any, ...]:
    """Arrays of tensors as JAX wants them, zeros for absent ones."""

    def one(tensor: Any, shape: Any) -> Any:
        if tensor is None:
            return _np.zeros(shape.shape, shape.dtype)
        array = _np.asarray(tensor.detach())
        return array if array.dtype == shape.dtype else array.astype(shape.dtype)

    return tuple(one(tensor, shape) for tensor, shape in zip(tensors, shapes))


def _callback(function: Callable[..., Any], shapes: Any, *arrays: Any, description: str | None = None) -> Any:
    """Calls the handler that a description is for; a function of Python if there is none, or the program is for another device."""
    if description is None or _jax.default_backend() != "cpu":
        return _jax.pure_callback(function, shapes, *arrays, vmap_method="sequential")
    return _jax.ffi.ffi_call(_TARGET, shapes, vmap_method="sequential")(*arrays, call=description)


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
    """The call that a description of :meth:`Function.description` is for."""
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


_jax.ffi.register_ffi_target(_TARGET, _xla_handler(_decoded), platform="cpu")

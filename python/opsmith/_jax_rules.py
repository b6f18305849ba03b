"""Operators as primitives of JAX: one for calls, four for derivatives, with the rules that turn each into the others.

A call object describes a call without its arrays. It can be a key of a table (equal ones do the same), and has:

- ``name``; ``is_differentiable``; ``is_pointwise``, whether results are functions of elements at the same place of broadcast arrays;
- ``keeps_results``: whether its derivatives read results;
- ``shapes(arrays)``: shapes and dtypes of results, from those of arrays;
- ``flows(results)``: for each result, whether it has a derivative;
- ``execute(kind, parts, shapes, operands)``: arrays of these shapes, by a primitive of this kind, on platforms with foreign functions;
- ``elsewhere`` of the same arguments, on other platforms.

With ``f`` the function of arrays ``x``, the primitives are ``run`` f(x), ``tangent`` f'(x)·t, ``gradient`` of ⟨g, f⟩ by x, ``second`` the
derivative of that gradient along c, and ``second_tangent`` f''(x)·t·u. The derivative of a gradient is symmetric, so each linear one is
the transpose of another: there are both modes of differentiation and every order of two of them. Operands are the arrays, the results
if they are kept, then the linear operands. Gradients of complex numbers are adjoints here, and transposes in JAX: rules conjugate.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-any-decorated, no-disallow-untyped-decorators

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import jax as _jax
import jax.core as _jax_core
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

__all__ = ["GRADIENT", "PLATFORMS", "RUN", "SECOND", "SECOND_TANGENT", "TANGENT", "Parts", "call", "is_inexact"]

RUN, TANGENT, GRADIENT, SECOND, SECOND_TANGENT = "run", "tangent", "gradient", "second", "second_tangent"
# The platforms that have foreign functions, as lowering names them and as their registration does.
PLATFORMS = {"cpu": "cpu", "cuda": "CUDA"}
_np = _jax.numpy
Mask = tuple[bool, ...]


class Parts(NamedTuple):
    """The operands of a primitive, as counts and truth values."""

    arrays: int
    # The kept results.
    kept: int = 0
    # For each result, whether it has a derivative.
    flows: Mask = ()
    # For each array, whether the derivative is along it: t of `tangent` and `second_tangent`, c of `second`.
    moved: Mask = ()
    # The same for u of `second_tangent`; for `gradient` and `second` the arrays whose gradients are results.
    others: Mask = ()

    def linear(self, kind: str) -> list[Mask]:
        """The groups of linear operands."""
        groups = {TANGENT: [self.moved], GRADIENT: [self.flows], SECOND: [self.flows, self.moved]}
        return {**groups, RUN: [], SECOND_TANGENT: [self.moved, self.others]}[kind]

    def split(self, kind: str, operands: Any) -> list[list[Any]]:
        """The arrays, the kept results, and each group of linear operands."""
        found: list[list[Any]] = []
        rest = list(operands)
        for count in (self.arrays, self.kept, *map(sum, self.linear(kind))):
            found.append(rest[:count])
            rest = rest[count:]
        return found


def call(described: Any, arrays: Any) -> list[Any]:
    """The results of a call."""
    return list(_PRIMITIVES[RUN].bind(*arrays, call=described, parts=Parts(len(arrays))))


def is_inexact(array: Any) -> bool:
    """Whether it has elements that can have a derivative."""
    return bool(_np.issubdtype(array.dtype, _np.inexact))


def _bind(kind: str, described: Any, parts: Parts, *groups: Any) -> list[Any]:
    return list(_PRIMITIVES[kind].bind(*(one for group in groups for one in group), call=described, parts=parts))


def _shapes(kind: str, operands: Any, described: Any, parts: Parts) -> list[Any]:
    arrays = operands[: parts.arrays]
    if kind in (GRADIENT, SECOND):
        return [array for array, one in zip(arrays, parts.others) if one]
    results = described.shapes(arrays)
    return list(results) if kind == RUN else [result for result, one in zip(results, parts.flows) if one]


# Differentiation.


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, ad.Zero) or tangent.dtype == _jax.dtypes.float0


def _moving(arrays: Any, tangents: Any) -> tuple[Mask, list[Any]]:
    """The arrays with a tangent, and those tangents."""
    moved = tuple(is_inexact(array) and not _is_zero(one) for array, one in zip(arrays, tangents))
    return moved, [one for one, is_moved in zip(tangents, moved) if is_moved]


def _sum(results: list[Any], parts: list[list[Any]]) -> list[Any]:
    """Tangents of results: the sum of parts, zeros without any."""
    if not parts:
        return [ad.Zero(_jax.typeof(result).to_tangent_aval()) for result in results]
    return [functools.reduce(operator.add, column) for column in zip(*parts)]


def _run_jvp(primals: Any, tangents: Any, *, call: Any, parts: Parts) -> tuple[Any, Any]:
    results = _bind(RUN, call, parts, primals)
    moved, steps = _moving(primals, tangents)
    flows = tuple(call.flows(results))
    if not any(moved) or not any(flows):
        return results, _sum(results, [])
    if not call.is_differentiable:
        raise NotImplementedError(f"`{call.name}` has no derivative")
    kept = results if call.keeps_results else []
    parts = Parts(parts.arrays, len(kept), flows, moved)
    found = iter(_bind(TANGENT, call, parts, primals, kept, steps))
    return results, [next(found) if one else zero for one, zero in zip(flows, _sum(results, []))]


def _linear_jvp(kind: str, primals: Any, tangents: Any, *, call: Any, parts: Parts) -> tuple[Any, Any]:
    """The rule of a derivative: it is linear in its last groups of operands, and its derivative by arrays is one of the second order.
    Kept results are functions of the arrays, whose tangents have their part there already."""
    results = _bind(kind, call, parts, primals)
    arrays, kept, *groups = parts.split(kind, primals)
    of_arrays, _, *of_groups = parts.split(kind, tangents)
    found: list[list[Any]] = []
    for at, steps in enumerate(of_groups):
        if not all(map(_is_zero, steps)):
            replaced = [*groups[:at], [ad.instantiate_zeros(step) for step in steps], *groups[at + 1 :]]
            found.append(_bind(kind, call, parts, arrays, kept, *replaced))
    moved, steps = _moving(arrays, of_arrays)
    if any(moved) and kind == GRADIENT:
        found.append(_bind(SECOND, call, parts._replace(moved=moved), arrays, kept, *groups, steps))
    elif any(moved) and kind == TANGENT:
        found.append(_bind(SECOND_TANGENT, call, parts._replace(others=moved), arrays, kept, *groups, steps))
    elif any(moved):
        raise NotImplementedError(f"`{call.name}` has derivatives of the first and second order only")
    return results, _sum(results, found)


def _conjugated(arrays: Any) -> list[Any]:
    return [_np.conj(one) if _np.issubdtype(one.dtype, _np.complexfloating) else one for one in arrays]


def _transpose(kind: str, cotangents: Any, *operands: Any, call: Any, parts: Parts) -> list[Any]:
    arrays, kept, *groups = parts.split(kind, operands)
    given = _conjugated(map(ad.instantiate_zeros, cotangents))
    place = next(at for at, group in enumerate(groups) if any(map(ad.is_undefined_primal, group)))
    if any(ad.is_undefined_primal(one) for at, group in enumerate(groups) if at != place for one in group):
        raise NotImplementedError(f"a derivative of `{call.name}` is linear in one argument at a time")
    moved, others = parts.moved, parts.others
    if kind == TANGENT:
        found = _bind(GRADIENT, call, parts._replace(moved=(), others=moved), arrays, kept, given)
    elif kind == GRADIENT:
        found = _bind(TANGENT, call, parts._replace(moved=others, others=()), arrays, kept, given)
    elif kind == SECOND and place == 0:
        found = _bind(SECOND_TANGENT, call, parts, arrays, kept, groups[1], given)
    elif kind == SECOND:
        found = _bind(SECOND, call, parts._replace(moved=others, others=moved), arrays, kept, groups[0], given)
    elif place == 0:
        found = _bind(SECOND, call, parts._replace(moved=others, others=moved), arrays, kept, given, groups[1])
    else:
        found = _bind(SECOND, call, parts, arrays, kept, given, groups[0])
    before = parts.arrays + parts.kept + (len(groups[0]) if place else 0)
    after = len(operands) - before - len(groups[place])
    kept_places = [one if ad.is_undefined_primal(at) else None for one, at in zip(_conjugated(found), groups[place])]
    return [None] * before + kept_places + [None] * after


# Batches.


def _batch(kind: str, operands: Any, dims: Any, *, call: Any, parts: Parts) -> tuple[Any, Any]:
    size = next(one.shape[dim] for one, dim in zip(operands, dims) if dim is not None)
    fronted = [one if dim is None else _np.moveaxis(one, dim, 0) for one, dim in zip(operands, dims)]
    is_batched = [dim is not None for dim in dims]
    found = _broadcast(kind, fronted, is_batched, size, call, parts)
    if found is None:

        def one(items: Any) -> Any:
            rest = iter(items)
            return _bind(kind, call, parts, [next(rest) if own else given for given, own in zip(fronted, is_batched)])

        found = _jax.lax.map(one, [given for given, own in zip(fronted, is_batched) if own])
    return found, [0] * len(found)


def _broadcast(kind: str, operands: Any, is_batched: Any, size: int, call: Any, parts: Parts) -> Any:
    """A batch of a pointwise operator as one call, with the batch as the first dimension. None if it is none: for other operators,
    and where a number of dimensions decides a dtype."""
    if not call.is_pointwise:
        return None
    shapes = [one.shape[1:] if own else one.shape for one, own in zip(operands, is_batched)]
    arrays, kept, *groups = parts.split(kind, list(zip(operands, is_batched, shapes)))
    if any(own and not shape for _, own, shape in arrays) and len({str(one.dtype) for one, *_ in arrays}) > 1:
        return None
    rank = max(len(shape) for _, _, shape in arrays)
    moving = [any(column) for column in zip(*(mask for mask in (parts.moved, parts.others) if mask))] or [False] * len(arrays)

    def filled(one: Any, own: bool, shape: Any) -> Any:
        """With the batch, and ones between it and the array's own dimensions."""
        padded = (1,) * (rank - len(shape)) + tuple(shape)
        return one.reshape(size, *padded) if own else _np.broadcast_to(one.reshape(1, *padded), (size, *padded))

    # Gradients are sums over the items if an array is the same for all.
    arrays = [filled(*one) if one[1] or is_moving else one[0] for one, is_moving in zip(arrays, moving)]
    plain = [_jax.ShapeDtypeStruct(shape, one.dtype) for one, shape in zip(operands[: parts.arrays], shapes)]
    try:
        expected, found = call.shapes(plain), call.shapes(arrays)
    except Exception:
        return None
    if any(a.dtype != b.dtype or b.shape != (size, *a.shape) for a, b in zip(expected, found)):
        return None
    found = _bind(kind, call, parts, arrays, [filled(*one) for one in kept], *([filled(*one) for one in group] for group in groups))
    if kind in (GRADIENT, SECOND):
        wanted = [shape for shape, one in zip(shapes, parts.others) if one]
        return [one.reshape(size, *shape) for one, shape in zip(found, wanted)]
    return found


# Registration.


@functools.cache
def _has_foreign_functions(platform: str) -> bool:
    """Whether devices of a platform, as JAX names it, have them. Those of CUDA and of others have one name."""
    try:
        return platform in PLATFORMS or platform == "gpu" and bool(_jax.devices("cuda"))
    except RuntimeError:
        return False


def _platform(operands: Any) -> str:
    """The platform of arrays."""
    devices = (device for one in operands if isinstance(one, _jax.Array) for device in one.devices())
    return str(next((device.platform for device in devices), _jax.default_backend()))


def _register(kind: str) -> Primitive:
    primitive = Primitive(f"opsmith_{kind}")
    primitive.multiple_results = True

    def run(is_foreign: bool, *operands: Any, call: Any, parts: Parts) -> Any:
        shapes = [_jax.ShapeDtypeStruct(one.shape, one.dtype) for one in _shapes(kind, operands, call, parts)]
        return list((call.execute if is_foreign else call.elsewhere)(kind, parts, shapes, operands))

    def evaluate(*operands: Any, call: Any, parts: Parts) -> Any:
        return run(_has_foreign_functions(_platform(operands)), *operands, call=call, parts=parts)

    def infer(*operands: Any, call: Any, parts: Parts) -> Any:
        return [_jax_core.ShapedArray(one.shape, one.dtype) for one in _shapes(kind, operands, call, parts)]

    primitive.def_impl(evaluate)
    primitive.def_abstract_eval(infer)
    foreign, other = (mlir.lower_fun(functools.partial(run, is_foreign), multiple_results=True) for is_foreign in (True, False))
    for platform in PLATFORMS:
        mlir.register_lowering(primitive, foreign, platform=platform)
    mlir.register_lowering(primitive, other)
    batching.primitive_batchers[primitive] = lambda operands, dims, **rest: _batch(kind, operands, dims, **rest)
    if kind == RUN:
        ad.primitive_jvps[primitive] = _run_jvp
    else:
        ad.primitive_jvps[primitive] = lambda primals, tangents, **rest: _linear_jvp(kind, primals, tangents, **rest)
        ad.primitive_transposes[primitive] = lambda *operands, **rest: _transpose(kind, *operands, **rest)
    return primitive


_PRIMITIVES = {kind: _register(kind) for kind in (RUN, TANGENT, GRADIENT, SECOND, SECOND_TANGENT)}

"""Rules of ``torch.vmap``: a call for each item of a batch.

This file is also one of the folders that ``opsmith bridge torch`` makes, so it imports nothing of the package.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any, no-disallow-any-decorated, no-disallow-untyped-decorators

from __future__ import annotations

from typing import Any, Callable

import torch as _torch


def batched(operator: Any) -> Callable[..., Any]:
    """The rule of an operator. An empty batch has no item to call it for: shapes and dtypes are inferred then."""

    def rule(info: Any, in_dims: Any, *args: Any, **named: Any) -> Any:
        if info.batch_size == 0:
            results = operator(*map(_without_memory, args, in_dims), **named)
            columns = [_empty_batch(one, args) for one in _listed(results)]
        else:
            calls = [operator(*(_item(arg, dim, at) for arg, dim in zip(args, in_dims)), **named) for at in range(info.batch_size)]
            results = calls[0]
            columns = [_torch.stack(column) for column in zip(*map(_listed, calls))]
        if isinstance(results, _torch.Tensor):
            return columns[0], 0
        return (columns, [0] * len(columns)) if isinstance(results, list) else (tuple(columns), (0,) * len(columns))

    return rule


def _listed(results: Any) -> list[Any]:
    return [results] if isinstance(results, _torch.Tensor) else list(results)


def _each(function: Callable[[Any, Any], Any], values: Any, dims: Any) -> list[Any]:
    """A function of the items of a list and of their batch dimensions."""
    return [function(value, dim) for value, dim in zip(values, dims if isinstance(dims, (list, tuple)) else [dims] * len(values))]


def _item(value: Any, dim: Any, index: int) -> Any:
    """The argument of a call: an item of its batch."""
    if isinstance(value, (list, tuple)):
        return _each(lambda one, its: _item(one, its, index), value, dim)
    return value if dim is None else value.select(dim, index)


def _without_memory(value: Any, dim: Any) -> Any:
    """The argument of a call for inference: a tensor with the shape of an item."""
    if isinstance(value, (list, tuple)):
        return _each(_without_memory, value, dim)
    if not isinstance(value, _torch.Tensor):
        return value
    shape = list(value.shape)
    if dim is not None:
        del shape[dim]
    return value.new_empty(shape, device="meta")


def _empty_batch(inferred: _torch.Tensor, args: Any) -> _torch.Tensor:
    """A result for no items. It has a derivative by each argument, so that gradients are zeros, as for other operators of PyTorch."""
    tensors = list(_tensors(args))
    made = _torch.empty((0, *inferred.shape), dtype=inferred.dtype, device=tensors[0].device)
    if not made.dtype.is_floating_point and not made.dtype.is_complex:
        return made
    tracked = [one.real if one.dtype.is_complex and not made.dtype.is_complex else one for one in tensors]
    parts = [one.reshape(-1)[:0].to(made.dtype) for one in tracked if one.dtype.is_floating_point or one.dtype.is_complex]
    return _torch.cat([made.reshape(-1), *parts]).reshape(made.shape)


def _tensors(values: Any) -> Any:
    for value in values:
        if isinstance(value, _torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)

"""Inference of shapes for PyTorch: results without elements, whose sizes may be symbols."""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any, no-disallow-any-decorated, no-disallow-untyped-decorators

from __future__ import annotations

from typing import Any, Callable

import torch

from ._signature import Entry, flattened


class Hooks:
    """Symbolic sizes of PyTorch, for inference."""

    def hint(self, size: torch.SymInt) -> int | None:
        """An example of a size; None for one that is known after a run."""
        node: Any = size.node
        return int(node.hint) if node.has_hint() else None

    def fresh(self, low: int, high: int | None) -> Any:
        """A size that is known after a run."""
        return torch.library.get_ctx().new_dynamic_size(min=low, max=high)

    def greater(self, a: Any, b: Any) -> Any:
        """The maximum."""
        return torch.sym_max(a, b)

    def smaller(self, a: Any, b: Any) -> Any:
        """The minimum."""
        return torch.sym_min(a, b)

    def check(self, condition: Any, text: str) -> None:
        """Makes a condition one of the program."""
        torch._check_value(condition, lambda: f"sizes do not fit: {text}")


_HOOKS = Hooks()


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor of PyTorch."""
    return isinstance(value, torch.Tensor)


def _described(value: Any, number: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch."), [number(size) for size in value.shape]
    if isinstance(value, (list, tuple)):
        return [_described(item, number) for item in value]
    if isinstance(value, torch.SymInt):
        return number(value)
    if isinstance(value, torch.SymFloat):
        return float(value)
    if isinstance(value, torch.SymBool):
        return bool(value)
    return value


def _same(size: Any) -> Any:
    return size


def fake(entry: Entry) -> Callable[..., Any]:
    """The function that PyTorch calls in the place of an operator before anything runs."""
    definition = entry.definition
    is_list = [kind for _, kind, _ in entry.results] == ["Tensors"]
    numbers = {name for name, kind, *_ in entry.arguments if kind == "Scalar"}
    positions = [name for name, *_ in entry.arguments]

    def inferred(args: tuple[Any, ...], named: dict[str, Any], number: Callable[[Any], Any]) -> Any:
        def one(name: str, value: Any) -> Any:
            # The value of a number may decide a dtype, as its size never does.
            return _described(value, int if name in numbers else number)

        given = tuple(one(name, value) for name, value in zip(positions, args))
        return definition.infer(given, {name: one(name, value) for name, value in named.items()}, _HOOKS)

    def run(*args: Any, **named: Any) -> Any:
        try:
            found = inferred(args, named, _same)
        except TypeError:
            # Sizes whose formula is not known become numbers, and the program is one for these.
            found = inferred(args, named, int)
        device = next(flattened([*args, *named.values()], is_tensor)).device
        made = [torch.empty(sizes, dtype=getattr(torch, dtype.name), device=device) for dtype, sizes in found]
        if is_list:
            return made
        return made[0] if len(made) == 1 else tuple(made)

    return run

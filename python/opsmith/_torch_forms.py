"""Forms of operators that write into given tensors, for PyTorch."""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any, no-disallow-any-decorated, no-disallow-untyped-decorators

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import _C
from torch.autograd import forward_ad
from torch.autograd.graph import increment_version

from ._signature import Entry
from ._torch_autograd import KEYS


def inplace_schema(entry: Entry) -> str | None:
    """The signature of the form that writes into the first argument; None if it has none."""
    name = entry.definition.inplace
    if name is None or len(entry.results) != 1 or not entry.parameters.startswith("Tensor "):
        return None
    return f"{name}(Tensor(a!) {entry.parameters.removeprefix('Tensor ')}) -> Tensor(a!)"


def out_schema(entry: Entry) -> str | None:
    """The signature of the form that writes into a given tensor; None if it has none, or several results."""
    name = entry.definition.out
    if name is None or [kind for _, kind, _ in entry.results] != ["Tensor"]:
        return None
    separator = ", " if any(keyword for *_, keyword in entry.arguments) else ", *, "
    return f"{name}({entry.parameters}{separator}Tensor(a!) out) -> Tensor(a!)"


def _is_tracked(*args: Any) -> bool:
    return bool(_C.is_grad_enabled() and _C._any_requires_grad(*args)) or forward_ad._current_level >= 0


def define_inplace(registration: Any, entry: Entry, functional: Any) -> None:
    """Registers the form that writes into the first argument. Its derivative is that of the functional form and a copy."""
    schema = inplace_schema(entry)
    if schema is None:
        return
    operator = _define(registration, schema, entry.definition.kernel(torch.Tensor, "inplace"), torch.Tag.inplace)

    def kernel(keyset: Any, target: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
        if _is_tracked(target, *args):
            # The derivative may read the elements before the call.
            return target.copy_(functional(target.clone(), *args, **named))
        with _C._AutoDispatchBelowAutograd():
            operator.redispatch(keyset & _C._after_autograd_keyset, target, *args, **named)
        increment_version(target)
        return target

    _implement(registration, operator, kernel)


def define_out(registration: Any, entry: Entry) -> None:
    """Registers the form that writes into a given tensor. It has no derivative."""
    schema = out_schema(entry)
    if schema is None:
        return
    write = entry.definition.kernel(torch.Tensor, "out")

    def cpu(*args: Any, out: torch.Tensor, **named: Any) -> torch.Tensor:
        # New memory may have bytes that are no truth values.
        if out.dtype is torch.bool and bool((out.view(torch.uint8) > 1).any()):
            out.zero_()
        written: torch.Tensor = write(*args, out=out, **named)
        return written

    operator = _define(registration, schema, cpu, torch.Tag.out)

    def kernel(keyset: Any, *args: Any, out: torch.Tensor, **named: Any) -> torch.Tensor:
        if _is_tracked(*args, out):
            raise RuntimeError(f"`{operator}` writes into `out`, and has no derivative\n  help: call the form without `out`")
        with _C._AutoDispatchBelowAutograd():
            operator.redispatch(keyset & _C._after_autograd_keyset, *args, out=out, **named)
        increment_version(out)
        return out

    _implement(registration, operator, kernel)


def _define(registration: Any, schema: str, kernel: Callable[..., Any], tag: Any) -> Any:
    name = schema.partition("(")[0]
    registration._library.define(schema, tags=(torch.Tag.pt2_compliant_tag, tag))
    for key in KEYS:
        registration._library.impl(name, kernel, key)
    registration.names.append(name)
    return registration.overload(name)


def _implement(registration: Any, operator: Any, kernel: Callable[..., Any]) -> None:
    name = operator._schema.name.partition("::")[2]
    overload = operator._schema.overload_name
    registration._library.impl(f"{name}.{overload}" if overload else name, kernel, "Autograd", with_keyset=True)

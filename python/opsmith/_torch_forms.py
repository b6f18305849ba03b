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


# The key of kernels that call operators of PyTorch alone, for every device and for tensors without memory. Their copies count as writes.
COMPOSITE = ("CompositeExplicitAutograd",)

# An argument of `out` forms alone, which no call gives. PyTorch's compiler Inductor replaces a call by one of the `out` form if both have
# the same arguments, and writes that call without regard to names and lists, or to several results. With another argument it has no such
# form. Folders declare it, too (`codegen/tools/src/bridge/torch.rs`).
NOT_FUNCTIONAL = "bool? _form=None"


def inplace_schema(entry: Entry) -> str | None:
    """The signature of the form that writes into the first argument, a tensor or a list of them; None if it has none."""
    name = entry.definition.inplace
    if name is None or len(entry.results) != 1:
        return None
    if entry.parameters.startswith("Tensor "):
        return f"{name}(Tensor(a!) {entry.parameters.removeprefix('Tensor ')}) -> Tensor(a!)"
    if entry.parameters.startswith("Tensor[] ") and entry.results[0][1] == "Tensors":
        return f"{name}(Tensor(a!)[] {entry.parameters.removeprefix('Tensor[] ')}) -> ()"
    return None


def out_names(entry: Entry) -> list[str]:
    """The arguments of the form that writes into given tensors: `out`, or the names of several results."""
    if len(entry.results) == 1:
        return ["out"]
    known = {name for name, *_ in entry.arguments}
    return [name if name and name not in known else f"out{at}" for at, (name, *_) in enumerate(entry.results)]


def out_schema(entry: Entry) -> str | None:
    """The signature of the form that writes into given tensors, one for each result; None if it has none."""
    name = entry.definition.out
    if name is None or any(kind != "Tensor" for _, kind, _ in entry.results):
        return None
    separator = ", " if any(keyword for *_, keyword in entry.arguments) else ", *, "
    outs = [f"Tensor({letter}!) {out}" for letter, out in zip("abcdefghijklmnopqrstuvwxyz", out_names(entry))]
    returns = "Tensor(a!)" if len(outs) == 1 else f"({', '.join(outs)})"
    return f"{name}({entry.parameters}{separator}{NOT_FUNCTIONAL}, {', '.join(outs)}) -> {returns}"


def _is_tracked(*args: Any) -> bool:
    return bool(_C.is_grad_enabled() and _C._any_requires_grad(*args)) or forward_ad._current_level >= 0


def define_inplace(registration: Any, entry: Entry, functional: Any) -> None:
    """Registers the form that writes into the first argument. Its derivative is that of the functional form and a copy."""
    schema = inplace_schema(entry)
    if schema is None:
        return
    if schema.endswith("-> ()"):
        _define_list(registration, schema, functional)
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


def _define_list(registration: Any, schema: str, functional: Any) -> None:
    """Registers the form that writes into the tensors of its first argument: the functional one, and copies."""

    def write(targets: list[torch.Tensor], *args: Any, **named: Any) -> None:
        for target, result in zip(targets, functional(targets, *args, **named)):
            target.copy_(result)

    # The tag of forms in place is for those of a tensor, in PyTorch's compilers.
    operator = _define(registration, schema, write, None, COMPOSITE)

    def kernel(keyset: Any, targets: list[torch.Tensor], *args: Any, **named: Any) -> None:
        if _is_tracked(*targets, *args):
            # The derivative may read the elements before the call.
            for target, result in zip(targets, functional([target.clone() for target in targets], *args, **named)):
                target.copy_(result)
            return
        with _C._AutoDispatchBelowAutograd():
            operator.redispatch(keyset & _C._after_autograd_keyset, targets, *args, **named)

    _implement(registration, operator, kernel)


def define_out(registration: Any, entry: Entry, functional: Any) -> None:
    """Registers the form that writes into given tensors. It has no derivative."""
    schema = out_schema(entry)
    if schema is None:
        return
    if len(entry.results) > 1:
        _define_outs(registration, schema, out_names(entry), functional)
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


def _define_outs(registration: Any, schema: str, names: list[str], functional: Any) -> None:
    """Registers the form that writes several results into given tensors: the functional one, and copies."""

    def write(*args: Any, **named: Any) -> tuple[torch.Tensor, ...]:
        outs = tuple(named.pop(name) for name in names)
        for out, result in zip(outs, functional(*args, **named)):
            if not torch.can_cast(result.dtype, out.dtype):
                raise TypeError(f"`{operator}` has a result of {result.dtype}, which a tensor of {out.dtype} cannot have")
            if out.shape != result.shape:
                out.resize_(result.shape)
            out.copy_(result)
        return outs

    operator = _define(registration, schema, write, torch.Tag.out, COMPOSITE)

    def kernel(keyset: Any, *args: Any, **named: Any) -> tuple[torch.Tensor, ...]:
        outs = tuple(named[name] for name in names)
        if _is_tracked(*args, *outs):
            raise RuntimeError(f"`{operator}` writes into given tensors, and has no derivative\n  help: call the form without them")
        with _C._AutoDispatchBelowAutograd():
            operator.redispatch(keyset & _C._after_autograd_keyset, *args, **named)
        return outs

    _implement(registration, operator, kernel)


def _define(registration: Any, schema: str, kernel: Callable[..., Any], tag: Any, keys: tuple[str, ...] = KEYS) -> Any:
    name = schema.partition("(")[0]
    registration._library.define(schema, tags=(torch.Tag.pt2_compliant_tag, *([] if tag is None else [tag])))
    for key in keys:
        registration._library.impl(name, kernel, key)
    registration.names.append(name)
    return registration.overload(name)


def _implement(registration: Any, operator: Any, kernel: Callable[..., Any]) -> None:
    name = operator._schema.name.partition("::")[2]
    overload = operator._schema.overload_name
    registration._library.impl(f"{name}.{overload}" if overload else name, kernel, "Autograd", with_keyset=True)

"""Gradients of entries as operators of PyTorch.

An operator has a second one, which computes the gradients of its arguments, and that has a third, for second derivatives. They are
operators, so that compilers see them whole. Tensors are kept for the backward pass only if a formula reads their elements.

The kernel for PyTorch's key ``Autograd`` is a ``torch.autograd.Function`` of the call's tensors, with lists taken apart, so that
the transforms of ``torch.func`` apply to it.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any, no-disallow-any-decorated, no-disallow-untyped-decorators

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, Sequence

import torch
from torch import _C
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ._signature import Entry, flattened
from ._torch_fake import is_tensor


def _plain() -> int:
    """The keys of a call that no mode, transform or wrapper takes part in."""
    library = torch.library.Library("_opsmith_probe", "FRAGMENT")
    library.define("keys(Tensor x) -> Tensor")
    found: list[int] = []

    def kernel(keyset: Any, x: torch.Tensor) -> torch.Tensor:
        found.append(keyset.raw_repr())
        return x.clone()

    library.impl("keys", kernel, "Autograd", with_keyset=True)
    torch.ops._opsmith_probe.keys(torch.zeros(()))
    library._destroy()
    return found[0]


_PLAIN = _plain()
# The keys of devices with kernels.
KEYS = "CPU", "CUDA"
_BELOW = _C._after_autograd_keyset
_PLACEHOLDERS: dict[tuple[Any, torch.dtype, torch.device], torch.Tensor] = {}
_MOST_PLACEHOLDERS = 1024


class Call:
    """The arguments of a call without its tensors. Of a plain one, kernels are called without the dispatcher."""

    __slots__ = ("is_plain", "keyset", "named", "places")

    def __init__(self, keyset: Any, named: dict[str, Any], args: Sequence[Any], tensors: list[torch.Tensor]) -> None:
        self.keyset, self.named = keyset, named
        self.is_plain = keyset.raw_repr() == _PLAIN
        self.places: list[Any] = []
        for arg in args:
            if isinstance(arg, torch.Tensor):
                self.places.append(len(tensors))
                tensors.append(arg)
            else:
                self.places.append(self._place(arg, tensors))

    def _place(self, arg: Any, tensors: list[torch.Tensor]) -> Any:
        if isinstance(arg, torch.Tensor):
            tensors.append(arg)
            return len(tensors) - 1
        if isinstance(arg, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in arg):
            return [self._place(item, tensors) for item in arg]
        return (arg,)

    def args(self, tensors: Sequence[Any]) -> list[Any]:
        """The arguments with these tensors."""

        return [tensors[place] if isinstance(place, int) else self._value(place, tensors) for place in self.places]

    def _value(self, place: Any, tensors: Sequence[Any]) -> Any:
        if isinstance(place, int):
            return tensors[place]
        return [self._value(item, tensors) for item in place] if isinstance(place, list) else place[0]

    def counts(self) -> list[int]:
        """Number of tensors of each argument."""

        def count(place: Any) -> int:
            return 1 if isinstance(place, int) else sum(map(count, place)) if isinstance(place, list) else 0

        return [count(place) for place in self.places]


def placeholder(shape: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor with one element in memory, in the place of one that no formula reads."""
    return torch.zeros((), dtype=dtype, device=device).expand(shape)


def _shared_placeholder(shape: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """As :func:`placeholder`, one for all calls."""
    found = _PLACEHOLDERS.get((shape, dtype, device))
    if found is None:
        if len(_PLACEHOLDERS) >= _MOST_PLACEHOLDERS:
            _PLACEHOLDERS.clear()
        found = _PLACEHOLDERS[shape, dtype, device] = placeholder(shape, dtype, device)
    return found


def keep(context: Any, tensors: Sequence[torch.Tensor], reads: Sequence[bool] | None = None) -> None:
    """Keeps tensors in the context of a function, of those that are not read the shapes."""
    saved, shapes = tensors, None
    if reads is not None and not all(reads):
        saved = [tensor for tensor, read in zip(tensors, reads) if read]
        shapes = [None if read else (tensor.shape, tensor.dtype, tensor.device) for tensor, read in zip(tensors, reads)]
    context.shapes = shapes
    if saved:
        context.save_for_backward(*saved)
        if forward_ad._current_level >= 0:
            context.save_for_forward(*saved)


def kept(context: Any) -> Sequence[torch.Tensor]:
    """The kept tensors again."""
    saved: Sequence[torch.Tensor] = context.saved_tensors
    if context.shapes is None:
        return saved
    rest, make = iter(saved), _shared_placeholder if context.call.is_plain else placeholder
    return [next(rest) if shape is None else make(*shape) for shape in context.shapes]


def _likes(values: Sequence[Any], wanted: Sequence[bool]) -> list[torch.Tensor]:
    """New tensors like those of arguments whose gradient is wanted."""
    tensors = flattened(values, is_tensor)
    return [torch.empty(one.shape, dtype=one.dtype, device=one.device) for one, needed in zip(tensors, wanted) if needed]


def _spread(wanted: Sequence[bool], found: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """Gradients in the places of the tensors that they belong to."""
    gradients = iter(found)
    return [next(gradients) if needed else None for needed in wanted]


@contextlib.contextmanager
def _both_modes() -> Iterator[None]:
    """Differentiation in both directions, which PyTorch switches off in functions of its own."""
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
        yield


def _are_plain(gradients: Sequence[Any]) -> bool:
    """Whether gradients are tensors that no mode or transform takes part in."""
    return (
        all(one is None or type(one) is torch.Tensor and not one.is_conj() and not one.is_neg() for one in gradients)
        and not _C._len_torch_dispatch_stack()
        and not _C._are_functorch_transforms_active()
    )


def autograd_kernel(
    operator: Any,
    cpu: Callable[..., Any],
    setup: Callable[[Any, Call, Sequence[torch.Tensor], Sequence[torch.Tensor]], None],
    backward: Callable[[Any, Sequence[Any], Sequence[bool]], Sequence[torch.Tensor | None]],
    forward_mode: Callable[[Any, list[Any]], Sequence[torch.Tensor | None]],
) -> Callable[..., Any]:
    """The kernel of an operator for the key ``Autograd``."""
    apply = _function(operator, cpu, setup, backward, forward_mode)
    apply_plain = _plain_function(operator, cpu, setup, backward)
    is_list = isinstance(operator._schema.returns[0].type, _C.ListType)

    def kernel(keyset: Any, *args: Any, **named: Any) -> Any:
        is_tracked = _C.is_grad_enabled() and _C._any_requires_grad(*args)
        if not is_tracked and forward_ad._current_level < 0:
            if keyset.raw_repr() == _PLAIN:
                return cpu(*args, **named)
            with _C._AutoDispatchBelowAutograd():
                return operator.redispatch(keyset & _BELOW, *args, **named)
        tensors: list[torch.Tensor] = []
        call = Call(keyset, named, args, tensors)
        if call.is_plain and forward_ad._current_level < 0:
            output = apply_plain(call, args, *tensors)
        elif _C._are_functorch_transforms_active():
            # The dispatcher applies one transform after the other: this call is of one level alone.
            with enable_single_level_autograd_function():
                output = apply(call, *tensors)
        else:
            output = apply(call, *tensors)
        return list(output) if is_list else output

    return kernel


def _function(operator: Any, cpu: Any, setup: Any, backward: Any, forward_mode: Any) -> Callable[..., Any]:
    """The function of PyTorch for an operator: of a :class:`Call` and its tensors."""

    class Function(_SingleLevelFunction):
        @staticmethod
        def forward(call: Call, *tensors: Any) -> Any:
            if call.is_plain:
                output = cpu(*call.args(tensors), **call.named)
                return tuple(output) if isinstance(output, list) else output
            # The next transform differentiates in the mode of its own.
            mode = _both_modes() if _C._are_functorch_transforms_active() else contextlib.nullcontext()
            with mode, _C._AutoDispatchBelowAutograd():
                output = operator.redispatch(call.keyset & _BELOW, *call.args(tensors), **call.named)
            return tuple(output) if isinstance(output, list) else output

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            call, *tensors = inputs
            ctx.call, ctx.is_several = call, isinstance(output, (list, tuple))
            ctx.set_materialize_grads(False)
            setup(ctx, call, tensors, list(output) if ctx.is_several else [output])

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            if all(gradient is None for gradient in gradients):
                return (None,) * len(ctx.needs_input_grad)
            return (None, *backward(ctx, gradients, ctx.needs_input_grad[1:]))

        @staticmethod
        def jvp(ctx: Any, _call: Any, *tangents: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            found = forward_mode(ctx, list(tangents))
            return tuple(found) if ctx.is_several else found[0]

    Function.__name__ = Function.__qualname__ = f"{operator._opname}_{operator._overloadname}"
    apply: Callable[..., Any] = getattr(Function, "apply")
    return apply


def _plain_function(operator: Any, cpu: Any, setup: Any, backward: Any) -> Callable[..., Any]:
    """As :func:`_function`, of a call that no mode or transform takes part in: its arguments are given, too, and its
    context is made with its results."""

    class Function(_SingleLevelFunction):
        @staticmethod
        def forward(ctx: Any, call: Call, args: Any, *tensors: Any) -> Any:
            output = cpu(*args, **call.named)
            is_several = ctx.is_several = isinstance(output, (list, tuple))
            ctx.call = call
            ctx.set_materialize_grads(False)
            setup(ctx, call, tensors, output if is_several else (output,))
            return tuple(output) if is_several else output

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            needed = ctx.needs_input_grad[2:]
            if all(gradient is None for gradient in gradients):
                return (None,) * (len(needed) + 2)
            return (None, None, *backward(ctx, gradients, needed))

    Function.__name__ = Function.__qualname__ = f"{operator._opname}_{operator._overloadname}"
    apply: Callable[..., Any] = getattr(Function, "apply")
    return apply


class Derivative:
    """The derivative of a registered operator."""

    def __init__(
        self, registration: Any, entry: Entry, operator: Any, cpu: Callable[..., Any], batched: Callable[[Any], Any]
    ) -> None:
        self.registration, self.entry, self.operator, self.cpu, self.batched = registration, entry, operator, cpu, batched
        self.pullback = entry.definition.pullback(torch.Tensor)
        self.direct = self.pullback.direct
        self.reads: tuple[list[bool], list[bool]] | None = entry.definition.reads
        if self.reads is not None and any(self.reads[1]):
            # A second derivative goes through results that are read, and needs the edges of all arguments.
            self.reads = [True] * len(self.reads[0]), self.reads[1]
        self.differentiable: list[bool] | None = entry.definition.differentiable_results
        self.are_all_differentiable = self.differentiable is None or all(self.differentiable)
        self.is_list = entry.results[0][1] == "Tensors"
        self.has_lists = self.is_list or any(kind in ("Tensors", "OptionalTensors") for _, kind, *_ in entry.arguments)

    def define(self) -> None:
        """Registers the derivatives."""
        entry, registration = self.entry, self.registration
        given = f"Tensor?[] _gradients, Tensor[] _results, bool[] _wanted, {entry.parameters}"
        first, second = entry.named("_pullback_"), entry.named("_second_pullback_")
        self._operator(first, f"{first}({given}) -> Tensor[]", self.pullback, self._first_fake)
        self._operator(
            second, f"{second}(Tensor?[] _cotangents, bool[] _needed, {given}) -> Tensor[]", self.pullback.second, self._second_fake
        )
        self.first, self.second = registration.overload(first), registration.overload(second)
        self._autograd(self.operator, self.cpu, self._setup, self._backward, self._forward_mode)
        self._autograd(self.first, self.pullback, self._first_setup, self._first_backward, self._first_forward_mode)
        self._autograd(self.second, self.pullback.second, lambda *_: None, self._refused, self._refused)

    def _operator(self, name: str, schema: str, function: Callable[..., Any], shapes: Callable[..., Any]) -> None:
        library, qualified = self.registration._library, f"{self.registration.namespace}::{name}"
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        for key in KEYS:
            library.impl(name, function, key)
        torch.library.register_fake(qualified, shapes, lib=library)
        torch.library.register_vmap(qualified, self.batched(self.registration.overload(name)), lib=library)

    def _autograd(self, operator: Any, cpu: Any, setup: Any, backward: Any, forward_mode: Any) -> None:
        name = operator._schema.name.split("::")[1] + (f".{operator._schema.overload_name}" if operator._schema.overload_name else "")
        kernel = autograd_kernel(operator, cpu, setup, backward, forward_mode)
        self.registration._library.impl(name, kernel, "Autograd", with_keyset=True)

    def _setup(self, ctx: Any, call: Call, tensors: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        if not self.are_all_differentiable:
            ctx.mark_non_differentiable(*(one for one, flag in zip(results, self._flags(results)) if not flag))
        if forward_ad._current_level >= 0:
            ctx.flags = self._flags(results)
            ctx.results = [(one.shape, one.dtype, one.device) for one in results]
        if self.reads is None:
            ctx.count = 0
            keep(ctx, tensors)
            return
        ctx.count = len(results)
        read_arguments, read_results = self.reads
        if self.has_lists:
            read_arguments = [read for count, read in zip(call.counts(), read_arguments) for _ in range(count)]
            read_results = read_results * len(results) if self.is_list else read_results
        else:
            read_arguments = [read for place, read in zip(call.places, read_arguments) if isinstance(place, int)]
        keep(ctx, [*tensors, *results], read_arguments + read_results)

    def _flags(self, results: Sequence[torch.Tensor]) -> list[bool]:
        """Whether each result can have a gradient."""
        flags = [True] if self.differentiable is None else self.differentiable
        flags = flags * len(results) if len(flags) == 1 else flags
        return [flag and (one.is_floating_point() or one.is_complex()) for flag, one in zip(flags, results)]

    def _backward(self, ctx: Any, gradients: Sequence[Any], needed: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        tensors = kept(ctx)
        count = len(tensors) - ctx.count
        tensors, results = tensors[:count], tensors[count:]
        wanted = list(needed)
        is_plain = ctx.call.is_plain and not _C.is_grad_enabled() and _are_plain(gradients)
        pull = self.direct if is_plain else self.first
        found = pull(list(gradients), results, wanted, *ctx.call.args(tensors), **ctx.call.named)
        return _spread(wanted, found)

    def _forward_mode(self, ctx: Any, tangents: list[Any]) -> Sequence[torch.Tensor | None]:
        tensors = kept(ctx)
        count = len(tensors) - ctx.count
        tensors, results = tensors[:count], tensors[count:]
        # Gradients of arguments are linear in those of results: the derivative of that is the transpose, a tangent.
        ofs = [placeholder(*shape) if flag else None for shape, flag in zip(ctx.results, ctx.flags)]
        given = [tangent for tangent in tangents if tangent is not None]
        if not given or not any(ctx.flags):
            return [None] * len(ofs)
        wanted = [tangent is not None for tangent in tangents]
        needed = [True] * sum(ctx.flags) + [False] * count
        found = self.second(given, needed, ofs, results, wanted, *ctx.call.args(tensors), **ctx.call.named)
        return _spread(ctx.flags, found)

    def _first_fake(self, gradients: Any, results: Any, wanted: list[bool], *args: Any, **named: Any) -> list[torch.Tensor]:
        return _likes(args, wanted)

    def _first_setup(self, ctx: Any, call: Call, tensors: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        keep(ctx, tensors)

    def _first_backward(self, ctx: Any, cotangents: Sequence[Any], wanted_flags: Sequence[bool]) -> Sequence[torch.Tensor | None]:
        flags = list(wanted_flags)
        gradients, results, wanted, *args = ctx.call.args(kept(ctx))
        ofs, between = (sum(is_tensor(one) for one in list) for list in (gradients, results))
        needed = flags[:ofs] + flags[ofs + between :]
        found = self.second(list(cotangents), needed, gradients, results, wanted, *args, **ctx.call.named)
        spread = _spread(needed, found)
        # Results are functions of the arguments, whose gradients include the way through them.
        return [*spread[:ofs], *[None] * between, *spread[ofs:]]

    def _first_forward_mode(self, ctx: Any, tangents: list[Any]) -> Any:
        raise NotImplementedError(
            f"the gradient of `{self.entry.name}` has no derivative in forward mode\n  help: use torch.func.jacrev or "
            "torch.autograd for the outer derivative"
        )

    def _second_fake(
        self, cotangents: Any, needed: list[bool], gradients: Any, results: Any, wanted: list[bool], *args: Any, **named: Any
    ) -> list[torch.Tensor]:
        return _likes([list(gradients), *args], needed)

    def _refused(self, ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(f"`{self.entry.name}` has no third derivative in PyTorch\n  help: differentiate by opsmith itself")

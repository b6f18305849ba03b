"""Operators of a library as PyTorch's own, and tensors between both without a copy.

>>> import torch, opsmith.torch
>>> ops = opsmith.torch.register(["gelu", "layer_norm"])
>>> ops.gelu(torch.zeros(2))
tensor([0., 0.])

A registered operator is ``torch.ops.NAMESPACE.NAME``, with a schema, an implementation on the tensors' own memory, inference of
shapes (also symbolic ones), gradients of the first and second order, and a rule for ``torch.vmap``. On a CUDA device it runs in
PyTorch's current stream.
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any, no-disallow-any-decorated, no-disallow-untyped-decorators

from __future__ import annotations

import pathlib
import tempfile
from types import ModuleType
from typing import Any, Iterable

import torch as _torch
import torch.utils.dlpack as _dlpack

import opsmith

from ._signature import Entry, chosen
from ._torch_autograd import KEYS, Derivative
from ._torch_batches import batched
from ._torch_fake import fake
from ._torch_forms import define_inplace, define_out

__all__ = ["Registration", "asarray", "from_module", "register", "to_torch", "unsupported"]

if not hasattr(_torch.Tensor, "__dlpack_c_exchange_api__"):
    raise ImportError(
        f"PyTorch {_torch.__version__} cannot exchange tensors by C functions\n  help: install a newer version"
    )


def unsupported(library: ModuleType = opsmith) -> dict[str, str]:
    """The operators that PyTorch cannot have, by full name, each with the reason.

    >>> opsmith.torch.unsupported()["transpose.int"]
    'its result shares memory with an argument'
    """
    return {entry.name: reason for entry in chosen(library, None) if (reason := _refusal(entry)) is not None}


def _refusal(entry: Entry) -> str | None:
    reason = entry.refusal()
    if reason is not None:
        return reason
    if any(keyword and kind in ("Tensor", "Tensors") for _, kind, _, _, _, keyword in entry.arguments):
        return "a tensor is given by name alone, which PyTorch's derivatives do not take"
    try:
        _torch._C.parse_schema(f"{entry.name}({entry.parameters}) -> {entry.returns}")
    except RuntimeError as error:
        return f"PyTorch has no such type: {str(error).splitlines()[0]}"
    return None


class Registration:
    """Operators of one namespace of PyTorch. Attributes are those of ``torch.ops.NAMESPACE``.

    ``names`` are the full names of the operators, and ``skipped`` those that were left out, each with the reason.
    """

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.names: list[str] = []
        self.skipped: dict[str, str] = {}
        self._library = _torch.library.Library(namespace, "FRAGMENT")

    def __getattr__(self, name: str) -> Any:
        found = getattr(getattr(_torch.ops, self.namespace), name)
        if not name.startswith("_"):
            # The next look-up finds it without a call of this function.
            self.__dict__[name] = found
        return found

    def __repr__(self) -> str:
        return f"<{len(self.names)} operators in torch.ops.{self.namespace}, {len(self.skipped)} left out>"

    def overload(self, name: str) -> Any:
        """The operator of a full name, such as ``add.Tensor``."""
        base, _, overload = name.partition(".")
        return getattr(getattr(self, base), overload or "default")


_REGISTERED: dict[str, Registration] = {}


def register(names: Iterable[Any] | None = None, *, namespace: str = "opsmith", library: ModuleType = opsmith) -> Registration:
    """Makes operators of a library operators of PyTorch, in a namespace of ``torch.ops``.

    Parameters
    ----------
    names : iterable of str or of custom operators, optional
        Full names such as ``add.Tensor``, names of all overloads such as ``add``, or operators that ``opsmith.custom`` made. By
        default all that PyTorch can have. A name that it cannot have is an error; see :func:`unsupported`.
    namespace : str, default "opsmith"
    library : module, default opsmith
        A module that `opsmith` made, also one of a user's own operators.

    Operators that the namespace has already are kept.
    """
    found = _REGISTERED.setdefault(namespace, Registration(namespace))
    names = None if names is None else list(names)
    names_of_all = [name if isinstance(name, str) else name.definition.name for name in names or []]
    for entry in chosen(library, names):
        if entry.name in found.names:
            continue
        reason = _refusal(entry)
        if reason is None:
            _define(found, entry)
        else:
            found.skipped[entry.name] = reason
    for name in names_of_all:
        if not any(name in (known, known.partition(".")[0]) for known in found.names):
            reasons = {reason for known, reason in found.skipped.items() if name in (known, known.partition(".")[0])}
            raise NotImplementedError(f"`{name}` cannot be an operator of PyTorch: {'; '.join(sorted(reasons))}")
    return found


def _tags(entry: Entry) -> tuple[Any, ...]:
    tags = [_torch.Tag.pt2_compliant_tag]
    if entry.definition.is_data_dependent:
        tags.append(_torch.Tag.dynamic_output_shape)
    return tuple(tags)


def _define(registration: Registration, entry: Entry) -> None:
    library, definition = registration._library, entry.definition
    library.define(f"{entry.name}({entry.parameters}) -> {entry.returns}", tags=_tags(entry))
    cpu = definition.kernel(_torch.Tensor)
    for key in KEYS:
        library.impl(entry.name, cpu, key)
    qualified = f"{registration.namespace}::{entry.name}"
    _torch.library.register_fake(qualified, fake(entry), lib=library)
    registration.names.append(entry.name)
    operator = registration.overload(entry.name)
    if entry.is_differentiable():
        Derivative(registration, entry, operator, cpu, batched).define()
    elif definition.is_composition:
        # Its results depend on shapes alone, so no gradient flows.
        library.impl(entry.name, _torch.library.fallthrough_kernel, "Autograd")
    _torch.library.register_vmap(qualified, batched(operator), lib=library)
    define_inplace(registration, entry, operator)
    define_out(registration, entry, operator)


def asarray(tensor: _torch.Tensor) -> opsmith.Tensor:
    """The elements of a tensor of PyTorch as one of opsmith, in the same memory and outside any graph.

    >>> x = torch.zeros(2)
    >>> y = opsmith.torch.asarray(x)
    >>> y += 1
    >>> x
    tensor([1., 1.])
    """
    return opsmith.from_dlpack(tensor.detach().resolve_conj().resolve_neg())


def to_torch(tensor: opsmith.Tensor) -> _torch.Tensor:
    """The elements of a tensor as one of PyTorch, in the same memory and outside any graph.

    >>> opsmith.torch.to_torch(opsmith.ones([2]))
    tensor([1., 1.])
    """
    shared: _torch.Tensor = _dlpack.from_dlpack(tensor.detach())
    return shared


def from_module(
    module: _torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None
) -> opsmith.Program:
    """A module of PyTorch as a program that runs without it: exported for these arguments by ``torch.export``, and loaded.

    >>> program = opsmith.torch.from_module(torch.nn.Linear(3, 2), (torch.zeros(4, 3),))
    >>> program(opsmith.ones([4, 3])).shape
    (4, 2)

    Inputs are given by position, or by their names (``program.inputs``). Registered operators may be part of the module if they are the
    package's own, in the namespace ``opsmith``.
    """
    exported = _torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
    _check_operators(exported)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "program.pt2")
        _torch.export.save(exported, path)
        return opsmith.load(path)


def _check_operators(exported: Any) -> None:
    """Refuses operators of other libraries than the package, which a program would be loaded without."""
    graphs = [part for part in exported.graph_module.modules() if isinstance(part, _torch.fx.GraphModule)]
    targets = [node.target for part in graphs for node in part.graph.nodes if isinstance(node.target, _torch._ops.OpOverload)]
    others = sorted({str(target) for target in targets if target.namespace != "opsmith" and target.namespace in _REGISTERED})
    if others:
        raise NotImplementedError(
            f"the module calls {', '.join(others)}; a program has registered operators of the package alone, in the namespace `opsmith`"
            "\n  help: write them by operators of PyTorch in the module that is exported"
        )

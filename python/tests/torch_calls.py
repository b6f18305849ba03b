"""Every operator that PyTorch has by the bridge, with calls of its samples: for tests, which have checked that PyTorch is there."""

import torch

import opsmith
import opsmith.torch
from opsmith._signature import MISSING, chosen, mapped

OPS = opsmith.torch.register()
ENTRIES = {entry.name: entry for entry in chosen(opsmith, None)}
FUNCTIONAL = [name for name in OPS.names if name in ENTRIES]
# Entries whose derivative is declared not to exist: a backward pass is an error, in opsmith as here.
WITHOUT_DERIVATIVE = {"histc", "heaviside", "linalg_lu_factor_ex"}


def converted(tensor, tracked):
    made = opsmith.torch.to_torch(tensor)
    return made.requires_grad_() if tracked and (made.is_floating_point() or made.is_complex()) else made


def calls(name, tracked=False):
    """The samples of an operator as calls of PyTorch's."""
    entry, schema = ENTRIES[name], OPS.overload(name)._schema
    defaults = [argument.default_value for argument in schema.arguments]
    dtypes = {argument for argument, kind, *_ in entry.arguments if kind == "DType"}

    def one(name, value):
        if isinstance(value, str) and name in dtypes:
            return getattr(torch, value)
        return mapped(value, lambda tensor: converted(tensor, tracked))

    for positional, named in entry.calls():
        given = [defaults[at] if value is MISSING else value for at, value in enumerate(positional)]
        given = [one(argument, value) for (argument, *_), value in zip(entry.arguments, given)]
        yield given, {name: one(name, value) for name, value in named.items()}


def tensors_of(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from tensors_of(value)
        elif isinstance(value, torch.Tensor):
            yield value


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))

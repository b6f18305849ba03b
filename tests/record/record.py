"""Records calls of PyTorch's operators for `tests/data/recorded`, in the format that `opsmith_tests::parity` reads.

    python3 -m venv torch && torch/bin/pip install torch==2.15.0 numpy safetensors
    torch/bin/python tests/record/record.py tests/data/recorded [MODULE …]

In: the calls of the modules beside this one, or of those named (`calls` for `calls.py`). Out: a pair of files an overload. What a call gives, its gradients if all its floats are
`float64`, or the error if PyTorch refuses it are recorded as they come; nothing here knows what is right.
"""

import importlib
import json
import math
import sys
from collections import defaultdict
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.utils._pytree import tree_leaves, tree_map

MEMORY_FORMATS = {torch.contiguous_format: "contiguous_format", torch.preserve_format: "preserve_format"}


class Case:
    """One call: its description, and its tensors by key."""

    def __init__(self, number):
        self.number, self.tensors = number, {}

    def tensor(self, value):
        key = f"c{self.number}.t{len(self.tensors)}"
        value = value.detach().resolve_conj()
        dense = value.clone(memory_format=torch.contiguous_format)
        self.tensors[key] = torch.view_as_real(dense).contiguous() if dense.is_complex() else dense
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": key, "dtype": dtype, "shape": list(value.shape), "strides": list(value.stride())}

    def value(self, value):
        match value:
            case torch.Tensor():
                return self.tensor(value)
            case None | bool() | int() | str():
                return value
            case float():
                return {"float": repr(value)}
            case complex():
                return {"complex": [part if math.isfinite(part) else repr(part) for part in (value.real, value.imag)]}
            case torch.dtype():
                return {"dtype": str(value).removeprefix("torch.")}
            case torch.memory_format():
                return {"memory_format": MEMORY_FORMATS[value]}
            case list() | tuple():
                return [self.value(item) for item in value]
        raise TypeError(f"cannot record {value!r}")


def flat(result):
    """The results of a call, those of a list one by one."""
    results = result if isinstance(result, (tuple, list)) else [result]
    return [item for result in results for item in (result if isinstance(result, (tuple, list)) else [result])]


def gradients(case, overload, args, kwargs):
    """What differentiating the call gives, or nothing if it has no `float64` inputs or no gradient."""
    is_float = lambda value: isinstance(value, torch.Tensor) and value.dtype.is_floating_point
    floats = [value for value in tree_leaves((args, kwargs)) if is_float(value)]
    if not floats or any(value.dtype != torch.float64 for value in floats):
        return None
    leaf = lambda value: value.detach().clone().requires_grad_() if is_float(value) else value
    args, kwargs = tree_map(leaf, (args, kwargs))
    leaves = [value for value in tree_leaves((args, kwargs)) if is_float(value)]
    try:
        results = flat(overload(*args, **kwargs))
        tracked = [at for at, result in enumerate(results) if isinstance(result, torch.Tensor) and result.requires_grad]
        if not tracked:
            return None
        cotangents = [torch.randn(results[at].shape, dtype=results[at].dtype) for at in tracked]
        of_inputs = torch.autograd.grad([results[at] for at in tracked], leaves, cotangents, allow_unused=True)
    except RuntimeError:
        return None  # PyTorch has no derivative.
    return {
        "of_outputs": tracked,
        "cotangents": [case.value(cotangent) for cotangent in cotangents],
        "of_float_inputs_in_order": [case.value(gradient) for gradient in of_inputs],
    }


def record(module, number, name, args, kwargs):
    """Makes one call and describes it."""
    packet, _, overload_name = name.partition(".")
    overload = getattr(getattr(torch.ops.aten, packet), overload_name or "default")
    case = Case(number)
    record = {"op": packet, "overload": overload._overloadname or "default", "from": f"tests/record/{module}.py"}
    record["args"] = [case.value(arg) for arg in args]
    record["kwargs"] = {key: case.value(arg) for key, arg in kwargs.items()}
    try:
        with torch.no_grad():
            result = overload(*args, **kwargs)
    except (RuntimeError, IndexError, ValueError, NotImplementedError) as error:
        record.update(returns_list=False, outputs=[], raises=str(error).splitlines()[0])
        return record, case.tensors
    record["returns_list"] = isinstance(result, list)
    record["outputs"] = [case.value(item) for item in flat(result)]
    of_call = gradients(case, overload, args, kwargs)
    if of_call is not None:
        record["grads"] = of_call
    return record, case.tensors


def modules():
    """The modules that describe calls."""
    here = Path(__file__)
    return sorted(path.stem for path in here.parent.glob("*.py") if path != here)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    overloads = defaultdict(list)
    for module in sys.argv[2:] or modules():
        torch.manual_seed(0)
        for name, args, *options in importlib.import_module(module).calls():
            kwargs = options[0] if options else {}
            packet, _, overload = name.partition(".")
            cases = overloads[f"{packet}.{overload or 'default'}"]
            cases.append(record(module, len(cases), name, args, kwargs))
    for name, cases in overloads.items():
        tensors = {key: tensor for _, tensors in cases for key, tensor in tensors.items()}
        save_file(tensors, folder / f"{name}.safetensors")
        (folder / f"{name}.json").write_text("[\n" + ",\n".join(json.dumps(case) for case, _ in cases) + "\n]\n")
    print(f"{sum(map(len, overloads.values()))} calls of {len(overloads)} overloads")


main()

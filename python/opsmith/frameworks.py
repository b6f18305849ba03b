"""An operator in every framework that is installed: ``python -m opsmith.frameworks SPEC OPERATOR``.

The operator is called with the samples of its entry. Of each framework it is shown that values are those of opsmith, that shapes and
dtypes are inferred before anything runs, and that gradients are those of opsmith. Without SPEC it is an operator of this library.

>>> print(opsmith.frameworks.shown(opsmith, "gelu", ["torch"]))
gelu(Tensor self, *, str approximate='none') -> Tensor
framework   runs  infers              differentiates
torch       yes   (2, 3) float32      yes
"""

# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"
# mypy: no-warn-unused-ignores, no-disallow-subclassing-any

from __future__ import annotations

import argparse
import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable, Iterable

import opsmith

from ._signature import MISSING, Entry, chosen, mapped

__all__ = ["FRAMEWORKS", "Sample", "shown"]


class Sample:
    """A call of an operator: its arguments, and the results and gradients of opsmith."""

    def __init__(self, entry: Entry, library: ModuleType) -> None:
        self.entry, self.library = entry, library
        calls = list(entry.calls())
        if not calls:
            raise LookupError(f"`{entry.name}` has no sample\n  help: give its entry the key `samples`")
        positional, named = calls[0]
        given = {name: value for (name, *_), value in zip(entry.arguments, positional) if value is not MISSING}
        self.given: dict[str, Any] = {**given, **named}
        self.tensors: list[opsmith.Tensor] = []
        mapped(list(self.given.values()), self.tensors.append)
        leaves = iter([one.detach().requires_grad_() if _is_real(one) else one for one in self.tensors])
        self.leaves: list[opsmith.Tensor] = []

        def leaf(_: Any) -> Any:
            self.leaves.append(next(leaves))
            return self.leaves[-1]

        self.results = _listed(entry.definition(**{name: mapped(value, leaf) for name, value in self.given.items()}))
        self.wanted = [at for at, one in enumerate(self.leaves) if one.requires_grad]
        flows = [one for one in self.results if one.requires_grad and _is_real(one)]
        self.gradients: list[Any] | None = None
        if flows and self.wanted:
            wanted = [self.leaves[at] for at in self.wanted]
            found = opsmith.grad([(one * one).sum() for one in flows], wanted)
            self.gradients = [opsmith.zeros_like(leaf) if one is None else one for one, leaf in zip(found, wanted)]

    def with_tensors(self, tensors: Iterable[Any]) -> dict[str, Any]:
        """The arguments by name, with these in the places of the tensors."""
        rest = iter(tensors)
        return {name: mapped(value, lambda _: next(rest)) for name, value in self.given.items()}

    def others(self) -> dict[str, Any]:
        """The arguments that are no tensors."""
        kinds = {name: kind for name, kind, *_ in self.entry.arguments}
        return {name: value for name, value in self.given.items() if "Tensor" not in kinds[name]}

    def lengths(self) -> list[int]:
        """The lengths of lists of tensors."""
        kinds = {name: kind for name, kind, *_ in self.entry.arguments}
        return [len(value) for name, value in self.given.items() if kinds[name] in ("Tensors", "OptionalTensors")]

    def check(self, found: Iterable[Any], expected: Iterable[Any]) -> str:
        """Compares arrays with tensors: yes, or the difference."""
        for at, (one, other) in enumerate(zip(found, expected, strict=True)):
            own = opsmith.asarray(one)
            if own.shape != other.shape:
                return f"no: tensor {at} has the shape {own.shape}, not {other.shape}"
            if not own.to(dtype=other.dtype).allclose(other.detach(), 1e-4, 1e-5, True):
                return f"no: elements of tensor {at} differ"
        return "yes"


def _is_real(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _described(results: Iterable[tuple[Any, Any]]) -> str:
    return ", ".join(f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''}) {dtype}" for sizes, dtype in results)


# Three texts: values, inferred shapes, gradients.
Shown = tuple[str, str, str]


def _own(sample: Sample) -> Shown:
    inferred = _described((one.shape, one.dtype.name) for one in sample.results)
    return "yes", inferred, "yes" if sample.gradients is not None else "has none"


def _torch(sample: Sample) -> Shown:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    import opsmith.torch as bridge

    entry, namespace = sample.entry, f"shown_{sample.entry.definition.library.replace('-', '_').replace('.', '_')}"
    operator = bridge.register([entry.name], namespace=namespace, library=sample.library).overload(entry.name)

    def tensors(values: Iterable[Any]) -> dict[str, Any]:
        def dtype(name: str, value: Any) -> Any:
            return getattr(torch, opsmith.dtype(value).name) if kinds[name] == "DType" and value is not None else value

        kinds = {name: kind for name, kind, *_ in entry.arguments}
        return {name: dtype(name, value) for name, value in sample.with_tensors(values).items()}

    leaves = [bridge.to_torch(one.detach().clone()) for one in sample.tensors]
    for at in sample.wanted:
        leaves[at].requires_grad_()
    results = _listed(operator(**tensors(leaves)))
    runs = sample.check([one.detach() for one in results], sample.results)
    mode = FakeTensorMode()
    without_elements = [mode.from_tensor(one.detach()) for one in leaves]
    with mode:
        fakes = _listed(operator(**tensors(without_elements)))
    inferred = _described((tuple(one.shape), str(one.dtype).removeprefix("torch.")) for one in fakes)
    if sample.gradients is None:
        return runs, inferred, "has none"
    loss: Any = sum((one * one).sum() for one in results if one.requires_grad)
    wanted = [leaves[at] for at in sample.wanted]
    return runs, inferred, sample.check(torch.autograd.grad(loss, wanted, materialize_grads=True), sample.gradients)


def _jax(sample: Sample) -> Shown:
    import jax
    import numpy as np

    import opsmith.jax as bridge

    operator = bridge.operator(sample.entry.name, library=sample.library)
    arrays = [jax.numpy.asarray(np.asarray(one)) for one in sample.tensors]

    def call(*values: Any) -> list[Any]:
        return _listed(operator(**sample.with_tensors(values)))

    shapes = jax.eval_shape(call, *arrays)
    inferred = _described((one.shape, one.dtype) for one in shapes)
    runs = sample.check(map(np.array, jax.jit(call)(*arrays)), sample.results)
    if sample.gradients is None:
        return runs, inferred, "has none"

    def loss(*values: Any) -> Any:
        flows = [one for one in call(*values) if jax.numpy.issubdtype(one.dtype, jax.numpy.floating)]
        return sum((one * one).sum() for one in flows)

    found = jax.jit(jax.grad(loss, tuple(sample.wanted)))(*arrays)
    return runs, inferred, sample.check(map(np.array, found), sample.gradients)


def _onnxruntime(sample: Sample) -> Shown:
    import numpy as np
    import onnxruntime
    from onnx import helper

    import opsmith.onnxruntime as bridge

    entry = sample.entry
    options = onnxruntime.SessionOptions()
    if isinstance(sample.library, opsmith.Operators):
        bridge.register([entry.name], library=sample.library)
        options.register_custom_ops_library(bridge.library(names=["add.Tensor"]))
    else:
        options.register_custom_ops_library(bridge.library(sample.library, names=[entry.name]))
    names = [f"x{at}" for at in range(len(sample.tensors))]
    given = sample.with_tensors(names)
    others = sample.others()
    inputs = [value for name, value in given.items() if name not in others]
    outputs = [f"y{at}" for at in range(len(sample.results))]
    node = bridge.node(entry.name, inputs, outputs, library=sample.library, **others)
    arrays = [np.asarray(one.detach()) for one in sample.tensors]
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape) for name, one in zip(names, arrays)]
    graph = helper.make_graph([node], "shown", values, [helper.make_tensor_value_info(name, 0, None) for name in outputs])
    for output in graph.output:
        output.ClearField("type")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(node.domain, 1)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    inferred = _described((one.shape, _dtype_of_onnx(one.type)) for one in session.get_outputs())
    return sample.check(session.run(None, dict(zip(names, arrays))), sample.results), inferred, "has none"


def _dtype_of_onnx(text: str) -> str:
    inner = text.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(inner, inner)


def _mindspore(sample: Sample) -> Shown:
    import mindspore  # pyright: ignore[reportMissingImports]
    import numpy as np

    import opsmith.mindspore as bridge

    entry = sample.entry
    # A gradient has a parameter for each tensor that is not absent by declaration.
    absent = {name: None for name, kind, *_ in entry.arguments if kind == "Tensor" and sample.given.get(name) is None}
    named = {**sample.others(), **absent}
    operator = bridge.operator(entry.name, tensor_lists=sample.lengths(), library=sample.library, **named)
    tensors = [mindspore.Tensor(np.array(one)) for one in sample.tensors]
    described = operator.inferred([(one.dtype, one.shape) for one in tensors])
    inferred = _described((shape, str(dtype).lower()) for shape, dtype in described)
    verdicts = []
    for mode in (mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE):
        mindspore.set_context(mode=mode)

        class Network(mindspore.nn.Cell):
            def construct(self, *values: Any) -> Any:
                found = operator(*values)
                return (found * found).sum()

        runs = sample.check([one.asnumpy() for one in _listed(operator(*tensors))], sample.results)
        if sample.gradients is None:
            verdicts.append((runs, "has none"))
        elif len(sample.results) > 1:
            verdicts.append((runs, "not shown for several results"))
        else:
            found = _listed(mindspore.grad(Network(), tuple(sample.wanted))(*tensors))
            verdicts.append((runs, sample.check([one.asnumpy() for one in found], sample.gradients)))
    first, second = verdicts
    pick = lambda a, b: a if a == "yes" or a == b else b  # noqa: E731
    return pick(second[0], first[0]) if first[0] == "yes" else first[0], inferred, second[1] if first[1] == "yes" else first[1]


def _tvm_ffi(sample: Sample) -> Shown:
    import tvm_ffi

    import opsmith.tvm_ffi as bridge

    function = bridge.function(sample.entry.name, library=sample.library)
    given = sample.with_tensors([tvm_ffi.from_dlpack(one.detach()) for one in sample.tensors])
    last = max(at for at, (name, *_) in enumerate(sample.entry.arguments) if name in given)
    args = [given.get(name) for name, *_ in sample.entry.arguments[: last + 1]]
    found = function(*args)
    # Several results are an array of tvm-ffi.
    found = [found] if len(sample.results) == 1 and not hasattr(found, "__len__") else list(found)
    return sample.check(map(opsmith.from_dlpack, found), sample.results), "has none", "has none"


FRAMEWORKS: dict[str, Callable[[Sample], Shown]] = {
    "opsmith": _own,
    "torch": _torch,
    "jax": _jax,
    "onnxruntime": _onnxruntime,
    "mindspore": _mindspore,
    "tvm_ffi": _tvm_ffi,
}


def _row(framework: str, sample: Sample) -> Shown | str:
    if framework != "opsmith" and importlib.util.find_spec(framework) is None:
        return "is not installed"
    try:
        return FRAMEWORKS[framework](sample)
    except NotImplementedError as error:
        return f"cannot have it: {str(error).splitlines()[0]}"


def rows(library: ModuleType, operator: str, frameworks: Iterable[str] = FRAMEWORKS) -> tuple[Entry, dict[str, Shown | str]]:
    """The operator, and for each framework three texts, or the reason why there are none."""
    matching = chosen(library, [operator])
    exact = [entry for entry in matching if entry.name == operator] or matching
    if len(exact) > 1:
        known = ", ".join(entry.name for entry in exact)
        raise LookupError(f"{operator!r} is the name of several operators\n  help: choose one of {known}")
    sample = Sample(exact[0], library)
    return exact[0], {framework: _row(framework, sample) for framework in frameworks}


def shown(library: ModuleType, operator: str, frameworks: Iterable[str] = FRAMEWORKS) -> str:
    """A table of an operator in frameworks."""
    return _table(*rows(library, operator, frameworks))


def _table(entry: Entry, found: dict[str, Shown | str]) -> str:
    lines = [entry.definition.schema, f"{'framework':11} {'runs':5} {'infers':19} differentiates"]
    for framework, texts in found.items():
        lines.append(f"{framework:11} " + (texts if isinstance(texts, str) else f"{texts[0]:5} {texts[1]:19} {texts[2]}"))
    return "\n".join(line.rstrip() for line in lines)


def main() -> int:
    """The command line: 1 if a framework differs."""
    parser = argparse.ArgumentParser(
        prog="python -m opsmith.frameworks",
        description="Runs, shape-infers and differentiates an operator in every framework that is installed, and compares.",
    )
    parser.add_argument("spec", nargs="?", help="the file of a spec; without it the operator is one of this package")
    parser.add_argument("operator", help="a full name, such as add.Tensor, or the name of one overload")
    parser.add_argument("--framework", action="append", choices=FRAMEWORKS, help="one of them; may be repeated")
    given = parser.parse_args()
    try:
        library = opsmith if given.spec is None else opsmith.load_spec(given.spec)
        entry, found = rows(library, given.operator, given.framework or FRAMEWORKS)
    except (opsmith.Error, OSError, LookupError) as error:
        parser.exit(2, f"{error}\n")
    sys.stdout.write(_table(entry, found) + "\n")
    return int(any(text.startswith("no:") for texts in found.values() if not isinstance(texts, str) for text in texts))


if __name__ == "__main__":
    sys.exit(main())

"""Operators in MindSpore: values and gradients of both modes, dynamic sizes, several results, lists, mistakes."""

import numpy as np
import pytest

mindspore = pytest.importorskip("mindspore", reason="MindSpore is not installed")

import guide  # noqa: E402
import opsmith  # noqa: E402
import opsmith.mindspore as bridge  # noqa: E402
from opsmith._signature import MISSING, chosen  # noqa: E402

TENSORS = ("Tensor", "Tensors", "OptionalTensors")
REFUSED = bridge.unsupported()
ENTRIES = [entry for entry in chosen(opsmith, None) if entry.name not in REFUSED]
MODES = pytest.mark.parametrize("mode", [mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE], ids=["pynative", "graph"])


def array(tensor):
    return np.asarray(tensor.detach().contiguous())


def same(found, expected):
    found, expected = found.asnumpy(), array(expected)
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


def foreign(tensor):
    return mindspore.Tensor(array(tensor))


def taken_apart(entry, positional, named):
    """The tensors of a call one by one, the lengths of lists, and the other arguments."""
    values = {name: value for (name, *_), value in zip(entry.arguments, positional) if value is not MISSING}
    values.update(named)
    tensors, lengths, rest = [], [], {}
    for name, kind, *_ in entry.arguments:
        value = values.get(name)
        if kind in TENSORS and value is not None:
            tensors.extend([value] if kind == "Tensor" else value)
            lengths.extend([] if kind == "Tensor" else [len(value)])
        elif name in values:
            rest[name] = value
    return values, tensors, lengths, rest


@pytest.mark.parametrize("start", range(0, len(ENTRIES), 100))
def test_every_operator(start):
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    ran = 0
    for entry in ENTRIES[start : start + 100]:
        for positional, named in list(entry.calls())[:1]:
            values, tensors, lengths, rest = taken_apart(entry, positional, named)
            results = entry.definition(**values)
            results = list(results) if isinstance(results, (tuple, list)) else [results]
            if any(one is None or one.dtype.name == "bfloat16" or 0 in one.shape for one in [*tensors, *results]) or not tensors:
                continue
            found = bridge.operator(entry.name, tensor_lists=lengths, **rest)(*map(foreign, tensors))
            found = list(found) if isinstance(found, (tuple, list)) else [found]
            assert len(found) == len(results) and all(map(same, found, results)), entry.name
            ran += 1
    assert ran > 10


@MODES
@pytest.mark.parametrize(
    "name, arguments, shapes",
    [
        ("gelu", {}, [(2, 3)]),
        ("add.Tensor", {"alpha": 2}, [(2, 3), (3,)]),
        ("softmax.int", {"dim": -1}, [(2, 3)]),
        ("mm", {}, [(2, 3), (3, 4)]),
        ("layer_norm", {"normalized_shape": [3]}, [(2, 3), (3,), (3,)]),
        ("cat", {"dim": 1, "tensor_lists": [2]}, [(2, 3), (2, 1)]),
        ("sum.dim_IntList", {"dim": [0]}, [(2, 3)]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_gradients(mode, name, arguments, shapes):
    mindspore.set_context(mode=mode)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    operator = bridge.operator(name, **arguments)

    class Network(mindspore.nn.Cell):
        def construct(self, *inputs):
            result = operator(*inputs)
            return (result * result).sum()

    places = tuple(range(len(arrays)))
    found = mindspore.grad(Network(), places)(*map(mindspore.Tensor, arrays))
    found = found if isinstance(found, tuple) else (found,)
    leaves = [opsmith.asarray(one).requires_grad_() for one in arrays]
    result = operator_of(name, arguments, leaves)
    expected = opsmith.grad([(result * result).sum()], leaves)
    for one, other in zip(found, expected):
        assert np.allclose(one.asnumpy(), array(other), rtol=1e-5, atol=1e-6)


def operator_of(name, arguments, tensors):
    (entry,) = [entry for entry in ENTRIES if entry.name == name]
    lengths = arguments.get("tensor_lists", ())
    rest = {key: value for key, value in arguments.items() if key != "tensor_lists"}
    return entry.definition(**entry.filled(tensors, rest, lengths))


@MODES
@pytest.mark.parametrize("name, shapes", [("gelu", [(3,)]), ("mul.Tensor", [(3,), (3,)]), ("mm", [(2, 3), (3, 2)])], ids=lambda one: str(one))
def test_second_derivatives(mode, name, shapes):
    mindspore.set_context(mode=mode)
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    operator = bridge.operator(name)

    def loss(*inputs):
        result = operator(*inputs)
        return (result * result).sum()

    first = mindspore.grad(loss)

    def outer(*inputs):
        slope = first(*inputs)
        return (slope * slope).sum()

    places = tuple(range(len(arrays)))
    found = mindspore.grad(outer, places)(*map(mindspore.Tensor, arrays))
    found = found if isinstance(found, tuple) else (found,)
    leaves = [opsmith.asarray(one).requires_grad_() for one in arrays]
    result = operator_of(name, {}, leaves)
    (slope,) = opsmith.grad([(result * result).sum()], leaves[:1], create_graph=True)
    for one, other in zip(found, opsmith.grad([(slope * slope).sum()], leaves)):
        assert np.allclose(one.asnumpy(), array(other), rtol=1e-4, atol=1e-5)


@MODES
def test_several_results(mode):
    mindspore.set_context(mode=mode)
    sort = bridge.operator("sort")
    x = mindspore.Tensor([[3.0, 1.0, 2.0]])

    class Network(mindspore.nn.Cell):
        def construct(self, x):
            return sort(x)[0] * mindspore.Tensor([1.0, 2.0, 3.0])

    assert sort(x)[1].asnumpy().tolist() == [[1, 2, 0]]
    assert mindspore.grad(Network())(x).asnumpy().tolist() == [[3, 1, 2]]


def test_sizes_that_are_not_known():
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    operator = bridge.operator("gelu")

    class Network(mindspore.nn.Cell):
        def construct(self, x):
            return operator(x)

    network = Network()
    network.set_inputs(mindspore.Tensor(shape=[None, 3], dtype=mindspore.float32))
    with pytest.raises(Exception, match="graph mode does not know"):
        network(mindspore.Tensor(np.ones((2, 3), np.float32)))


def test_mistakes():
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    x = mindspore.Tensor(np.ones((2, 3), np.float32))
    with pytest.raises(Exception, match="mm"):
        bridge.operator("mm")(x, x)
    with pytest.raises(LookupError, match="add.Tensor"):
        bridge.operator("add")
    with pytest.raises(TypeError, match="beta"):
        bridge.operator("add.Tensor", beta=2)
    with pytest.raises(NotImplementedError, match="random"):
        bridge.operator("native_dropout")


def test_the_guide(monkeypatch, tmp_path):
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    guide.run("MindSpore", monkeypatch, tmp_path)

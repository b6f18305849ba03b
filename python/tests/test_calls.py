"""Calls of operators: overloads, keywords, conversions, errors, signatures, documentation."""

import inspect
import pydoc

import numpy as np
import pytest

import opsmith


def test_overloads_by_the_types_of_arguments():
    x = opsmith.tensor([[1.0, 4.0], [3.0, 2.0]])
    assert opsmith.max(x).item() == 4.0
    values, indices = opsmith.max(x, 1)
    assert values.tolist() == [4.0, 3.0] and indices.tolist() == [1, 0]
    found = x.max(dim=0, keepdim=True)
    assert found.values.shape == (1, 2) and found.indices.dtype is opsmith.int64
    assert x.sum([0, 1]).item() == x.sum().item() == 10.0
    assert x.sum((0,), keepdim=True).shape == (1, 2)
    assert x.sum(1).tolist() == [5.0, 5.0]
    assert opsmith.pow(2, x).tolist() == [[2, 16], [8, 4]]
    assert opsmith.arange(3).tolist() == [0, 1, 2] and opsmith.arange(1, 3).tolist() == [1, 2]
    assert opsmith.arange(0, 1, 0.5).tolist() == [0.0, 0.5]


def test_keywords_and_their_other_names():
    x = opsmith.tensor([1.0, 2.0])
    assert opsmith.add(x, x, alpha=3).tolist() == [4.0, 8.0]
    assert opsmith.add(input=x, other=1).tolist() == opsmith.add(self=x, other=1).tolist() == [2.0, 3.0]
    assert opsmith.sum(x, axis=0).item() == opsmith.sum(x, dim=[0]).item() == 3.0
    assert opsmith.zeros([2], dtype="int64", device="cpu").dtype is opsmith.int64
    assert x.sum(dtype=opsmith.float64).dtype is opsmith.float64


def test_sizes_one_by_one():
    x = opsmith.arange(6)
    assert x.reshape(2, 3).shape == x.reshape([2, 3]).shape == x.reshape((2, 3)).shape == (2, 3)
    assert opsmith.zeros(2, 3).shape == (2, 3) and opsmith.ones(4).shape == (4,)
    assert x.reshape(-1).shape == (6,) and x.view(3, 2).permute(1, 0).shape == (2, 3)


def test_full_names():
    x = opsmith.ones([2])
    assert opsmith.call("add.Scalar", x, 1).tolist() == opsmith.call("aten::add", x, 1).tolist() == [2, 2]
    assert opsmith.call("_log_softmax", x, 0, False).shape == (2,)
    assert opsmith.call("max.dim", x, dim=0).indices.item() == 0
    with pytest.raises(LookupError, match="did you mean"):
        opsmith.call("ad.Tensor", x, x)


def test_out_is_written_and_returned():
    x, out = opsmith.tensor([1.0, 2.0]), opsmith.zeros([2])
    assert opsmith.add(x, x, out=out) is out and out.tolist() == [2.0, 4.0]
    empty = opsmith.zeros([0])
    assert opsmith.mul(x, 3, out=empty) is empty and empty.tolist() == [3.0, 6.0]
    assert opsmith.add(x, 1, out=None).tolist() == [2.0, 3.0]
    with pytest.raises(ValueError):
        opsmith.add(x, x, out=opsmith.zeros([3]))


def test_arrays_and_numbers_of_numpy_are_arguments():
    a = np.array([1.0, 2.0])
    assert opsmith.add(a, np.float32(1)).tolist() == [2.0, 3.0]
    assert opsmith.cat([a, a]).shape == (4,)
    assert opsmith.sum(a, np.int64(0)).item() == 3.0
    assert opsmith.zeros(np.array([2, 3]).tolist(), dtype=np.dtype("int16")).dtype is opsmith.int16


def test_an_error_lists_the_overloads_and_why_each_failed():
    x = opsmith.ones([2])
    with pytest.raises(TypeError) as caught:
        opsmith.add(x, "two")
    error = caught.value
    assert isinstance(error, opsmith.Error) and isinstance(error, opsmith.ArgumentError)
    text = str(error)
    assert "no overload of `add` takes (a tensor, a str)" in text
    assert "add.Tensor(Tensor self, Tensor other" in text and "`other` must be a tensor, got a str" in text
    assert "add.Scalar(" in text and "help:" in text and error.help in text


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: x @ opsmith.ones([3]), ValueError, "opsmith.ShapeError"),
        (lambda x: x.sum(5), IndexError, "opsmith.OutOfRangeError"),
        (lambda x: opsmith.add(x), TypeError, "missing"),
        (lambda x: opsmith.relu(x, x), TypeError, "at most 1"),
        (lambda x: opsmith.relu(x, zzz=1), TypeError, "no argument `zzz`"),
        (lambda x: opsmith.zeros([-1]), ValueError, "-1"),
        (lambda x: opsmith.zeros([2**62, 2**62]), (ValueError, MemoryError), ""),
        (lambda x: opsmith.zeros([2**45]), MemoryError, "no memory"),
        (lambda x: x.requires_grad_().add_(1), RuntimeError, ""),
        (lambda x: x.backward(), RuntimeError, "part of a graph"),
        (lambda x: opsmith.ones([2], dtype="int64").requires_grad_(), RuntimeError, "cannot require"),
        (lambda x: opsmith.relu(object()), TypeError, "object"),
        (lambda x: opsmith.zeros([2**70]), OverflowError, ""),
        (lambda x: opsmith.load_npy("/nowhere.npy"), OSError, "/nowhere.npy"),
    ],
)
def test_errors_have_the_class_of_their_kind(call, kind, text):
    with pytest.raises(kind) as caught:
        call(opsmith.ones([2]))
    assert text in str(caught.value) or text in f"opsmith.{type(caught.value).__name__}"


def test_an_error_has_its_parts():
    with pytest.raises(opsmith.ShapeError) as caught:
        opsmith.add(opsmith.ones([2]), opsmith.ones([3]))
    error = caught.value
    assert error.operator == "add.Tensor" and error.message in str(error)
    assert error.operands == [("self", "float32 (2)"), ("other", "float32 (3)")]


def test_signatures():
    assert str(inspect.signature(opsmith.add)) == "(input, other, *, alpha=1, out=None)"
    assert str(inspect.signature(opsmith.Tensor.add)) == "(self, /, other, *, alpha=1, out=None)"
    assert str(inspect.signature(opsmith.ones([1]).add)) == "(other, *, alpha=1, out=None)"
    assert str(inspect.signature(opsmith.relu)) == "(input, *, out=None)"
    assert str(inspect.signature(opsmith.sum)) == "(input, dim=None, keepdim=False, *, dtype=None, out=None)"


def names():
    return sorted(name for name in dir(opsmith) if inspect.isbuiltin(getattr(opsmith, name)))


def test_every_function_has_a_signature_and_is_described():
    assert len(names()) > 500
    for name in names():
        function = getattr(opsmith, name)
        signature = inspect.signature(function)
        assert all(not one.startswith("_") for one in signature.parameters), name
        assert function.__doc__ and function.__name__ == name, name
    # Functions of the package itself, such as `opsmith.grad`, have no entry.
    operators = [name for name in names() if getattr(opsmith, name).__module__ == "opsmith"]
    assert len(operators) > 500
    for name in operators:
        function = getattr(opsmith, name)
        for part in ("Parameters\n---", "Notes\n---", "Gradients: ", "qual inputs", "Declared at "):
            assert part in function.__doc__, f"{name}: {part!r} is not in\n{function.__doc__}"
    text = pydoc.render_doc(opsmith.add, renderer=pydoc.plaintext)
    assert "add(input, other, *, alpha=1, out=None)" in text and "Parameters" in text
    text = opsmith.gelu.__doc__
    for part in ("CPU: computes in float16, bfloat16, float32, float64", "Gradients: of `input`.", "By name also `x`."):
        assert part in text, text
    assert "Not deterministic" not in text and "Gradients: those of the operators" in opsmith.log_softmax.__doc__


def test_every_method_is_a_function_too():
    for name in dir(opsmith.Tensor):
        method = inspect.getattr_static(opsmith.Tensor, name)
        if type(method).__name__ == "method_descriptor" and "See `opsmith." in (method.__doc__ or ""):
            assert hasattr(opsmith, name), name
            inspect.signature(method)


def test_examples_of_the_documentation_run():
    import opsmith.testing

    ran = 0
    for name in names():
        lines = [line[4:] for line in getattr(opsmith, name).__doc__.splitlines() if line.startswith(">>> result")]
        for line in lines:
            space = {"opsmith": opsmith, **vars(opsmith.testing)}
            try:
                exec(line, space)
            except Exception as error:
                raise AssertionError(f"{name}: {line}\n{error}") from error
            ran += 1
    assert ran > 300


def test_deep_and_odd_arguments_are_errors():
    deep = []
    for _ in range(2000):
        deep = [deep]
    endless = []
    endless.append(endless)
    for _ in range(300_000):
        deep = [deep]
    for argument in (deep, endless, [[1], "a"], {1: 2}, b"a", lambda: 0, float, object()):
        with pytest.raises((TypeError, ValueError, RecursionError)):
            opsmith.add(opsmith.ones([1]), argument)
    for data in (deep, endless):
        with pytest.raises(ValueError, match="deep"):
            opsmith.tensor(data)
    while deep:
        deep = deep[0]

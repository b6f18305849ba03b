"""Calls of operators: overloads, keywords, conversions, errors, signatures, documentation."""

import fractions
import inspect
import pydoc
import re

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
        (lambda x: opsmith.zeros([2], pin_memory=True), ValueError, "pin_memory"),
        (lambda x: opsmith.ones_like(x, pin_memory=True), ValueError, "pin_memory"),
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
    profile = "(name='profile', *, shapes=True, memory=True, sites=True, devices=True)"
    assert str(inspect.signature(opsmith.profile)) == profile
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
    text = pydoc.render_doc(opsmith.add, renderer=pydoc.plaintext)
    assert "add(input, other, *, alpha=1, out=None)" in text and "Parameters" in text


def operators():
    # Functions of the package itself, such as `opsmith.grad`, have no entry.
    return [name for name in names() if getattr(opsmith, name).__module__ == "opsmith" and name not in {"call", "families"}]


def sections(name):
    """The sections of a function's documentation, by their titles; the text before them under an empty one."""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", getattr(opsmith, name).__doc__, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def items(section):
    """The entries of a section, each with the text below it."""
    entries = re.split(r"^(?=\S)", section, flags=re.MULTILINE)
    return [entry.split("\n", 1) for entry in entries if entry.strip()]


def test_every_operator_is_documented_with_an_example():
    assert len(operators()) > 500
    wrong = []
    for name in operators():
        parts = sections(name)
        missing = [title for title in ("Returns", "Raises", "Notes") if not parts.get(title, "").strip()]
        if not parts[""].strip():
            missing.append("a description")
        if "Gives a new tensor." in parts.get("See Also", ""):
            # In place: the example is that of the other form.
            other = parts["See Also"].split(" : ")[0]
            if "Examples" not in sections(other):
                missing.append(f"an example of {other}")
        elif f">>> result = opsmith.{name}(" not in parts.get("Examples", ""):
            missing.append("an example")
        missing += [f"the meaning of {head}" for head, text in items(parts.get("Parameters", "")) if not text.strip()]
        facts = parts.get("Notes", "")
        missing += [fact for fact in ("Gradients:", "qual inputs", "Declared at ") if fact not in facts]
        if missing:
            wrong.append(f"{name}: no {', '.join(missing)}")
    assert not wrong, "\n".join(wrong)


def test_documentation_has_the_facts_of_the_entry():
    parts = sections("mm")
    assert "Shape `[input.size(0), mat2.size(1)]` (2 dimensions: size 0 of `input` by size 1 of `mat2`)" in parts["Returns"]
    assert "dtype `same(input, mat2)` (the dtype all operands share; different dtypes are an error)." in parts["Returns"]
    assert "    - Unless `input.size(1) == mat2.size(0)`.\n" in parts["Raises"]
    assert "- `mat2`: `mm(input.t().conj(), grad)`.\n" in parts["Notes"] and "by the kernel `linalg::mm`" in parts["Notes"]
    assert "Adds `alpha * other` to `input`" in sections("add")[""]
    assert "Each element: `input + (alpha * other)`." in sections("add")["Notes"]
    assert "    A factor of the second term" in sections("add")["Parameters"]
    gelu = sections("gelu")
    assert "CPU: computes in float16, bfloat16, float32, float64" in gelu["Notes"] and "By name also `x`." in gelu["Parameters"]
    assert "Not deterministic" not in gelu["Notes"] and "Not deterministic" in sections("dropout")["Notes"]
    composed = sections("log_softmax")["Notes"]
    assert "In terms of other operators: `_log_softmax(" in composed and "operators that it is composed of" in composed
    # Formulas have names of Python, and a line for each of theirs.
    assert "Formula: `y_{…, i, …} = Σ_{k=0}^i input_{…, k, …}, along dim`.\n" in sections("cumsum")["Notes"]
    formula = sections("sort")["Notes"].split("Formula:\n\n    values_{…, i, …} = input_{…, indices_")[1]
    formula, rest = formula.split("\n\n")[:2]
    assert "\n    values_{…, i, …} ≤ values_{…, i + 1, …}" in formula and rest.startswith("Arithmetic operations: ")
    assert all(line.startswith("    ") for line in formula.splitlines()[1:])
    # Overloads have their own results.
    assert "        `values`: " in sections("max")["Notes"] and "        `indices`: " in sections("max")["Notes"]
    assert "add_ : Writes the result" in sections("add")["See Also"] and "add : Gives" in sections("add_")["See Also"]


def test_operators_are_grouped_by_family():
    families = opsmith.families()
    assert "mm" in families["ops/products.yaml"] and "add" in families["ops/arithmetic.yaml"]
    known = {name for family in families.values() for name in family}
    assert known <= set(dir(opsmith)), known - set(dir(opsmith))
    assert sum(map(len, families.values())) < len(known) + 20


def test_every_method_is_a_function_too():
    for name in dir(opsmith.Tensor):
        method = inspect.getattr_static(opsmith.Tensor, name)
        if type(method).__name__ == "method_descriptor" and "See `opsmith." in (method.__doc__ or ""):
            assert hasattr(opsmith, name), name
            inspect.signature(method)


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


def unwritable():
    """Arrays whose memory a tensor cannot have, each with a word of the reason."""
    read_only = np.zeros(3, np.float32)
    read_only.flags.writeable = False
    unaligned = np.zeros(13, np.uint8)[1:].view(np.float32)
    return [(read_only, "must not be written"), (np.zeros(3, ">f4"), "byte order"), (unaligned, "not aligned")]


@pytest.mark.parametrize("place", range(3))
def test_an_array_that_cannot_be_written_is_no_place_of_results(place):
    x, (array, reason) = opsmith.ones([3]), unwritable()[place]
    pair = (opsmith.zeros([3]), opsmith.zeros([3], dtype="int64"))
    calls = {
        "out": lambda: opsmith.add(x, x, out=array),
        "input": lambda: opsmith.add_(array, x),
        "self": lambda: opsmith.call("add_.Tensor", array, x),
        "out, by a full name": lambda: opsmith.call("add.Tensor", x, x, out=array),
        "out, of a list": lambda: opsmith.cat([x[:1], x[:2]], out=array),
        "out, one of two": lambda: opsmith.sort(x, out=[array, pair[1]]),
        "values": lambda: opsmith.call("sort", x, values=array, indices=pair[1]),
        "an item of a list": lambda: opsmith._foreach_add_([opsmith.zeros([3]), array], 1),
    }
    for name, call in calls.items():
        with pytest.raises(opsmith.ArgumentError, match="is written, and a tensor cannot have the memory") as caught:
            call()
        assert reason in str(caught.value), name
        assert array.tolist() == [0, 0, 0] and "help: give a tensor, or an array" in str(caught.value), name


def test_numbers_and_empty_arrays_are_no_places_of_results():
    x = opsmith.ones([3])
    for number in (1.0, 1, True, 1j, np.float32(1), fractions.Fraction(1, 2)):
        with pytest.raises(opsmith.ArgumentError, match="`input` is written, and .* cannot be"):
            opsmith.add_(number, 1)
    with pytest.raises(opsmith.ArgumentError, match="`out` is an array without elements"):
        opsmith.add(x, x, out=np.zeros(0, np.float32))
    with pytest.raises(opsmith.ArgumentError, match="no argument `zzz`"):
        opsmith.relu(x, zzz=1)


def test_arrays_are_written_where_a_tensor_can_have_their_memory():
    x, array = opsmith.ones([3]), np.zeros(3, np.float32)
    opsmith.add(x, x, out=array)
    assert array.tolist() == [2, 2, 2]
    assert opsmith.add_(array, 1) is array and array.tolist() == [3, 3, 3]
    opsmith.call("mul_.Tensor", array, x * 2)
    assert array.tolist() == [6, 6, 6]
    values, indices = np.zeros(2, np.float32), np.zeros(2, np.int64)
    opsmith.call("sort", opsmith.tensor([2.0, 1.0]), values=values, indices=indices)
    assert values.tolist() == [1, 2] and indices.tolist() == [1, 0]
    opsmith._foreach_add_([array, x], 1)
    assert array.tolist() == [7, 7, 7] and x.tolist() == [2, 2, 2]


def test_an_in_place_form_returns_its_argument_given_by_name():
    x, y = opsmith.ones([2]), opsmith.ones([2])
    assert opsmith.add_(other=y, input=x) is x and x.tolist() == [2, 2]
    assert opsmith.add_(other=2, input=x) is x and x.tolist() == [4, 4]
    assert opsmith.add_(other=np.ones(2, np.float32), input=x) is x and x.tolist() == [5, 5]


@pytest.mark.parametrize(
    "call, kind, texts",
    [
        (lambda x: opsmith.zeros(2, dtype="flaot32"), opsmith.ArgumentError, ['"flaot32"', 'did you mean "float32"?', "int64"]),
        (lambda x: opsmith.zeros(2, dtype="f4"), opsmith.ArgumentError, ['there is no element type "f4"']),
        (lambda x: x.sum(0, dtype="flaot32"), opsmith.ArgumentError, ['did you mean "float32"?']),
        (lambda x: opsmith.zeros(2, dtype=object), opsmith.ArgumentError, ['no element type "object"']),
        (lambda x: opsmith.dtype("flaot32"), opsmith.ArgumentError, ['did you mean "float32"?']),
        (lambda x: opsmith.zeros(2, device="gpu"), opsmith.AttributeValueError, ['no device "gpu"', '"cuda"']),
        (lambda x: opsmith.cat([[x, x]]), opsmith.ArgumentError, ["`list` with items of the types `list`", "a list of one level"]),
        (lambda x: opsmith.cat(x for _ in "ab"), opsmith.ArgumentError, ["`generator`", "make a list"]),
        (lambda x: opsmith.zeros([opsmith.tensor(3), 2]), opsmith.ArgumentError, ["`Tensor`, `int`"]),
        (lambda x: opsmith.asarray(b"a"), opsmith.ArgumentError, ["`bytes`", "memoryview(data)"]),
        (lambda x: opsmith.asarray({1: 2}), opsmith.ArgumentError, ["`dict`", "nested lists of numbers"]),
        (lambda x: opsmith.tensor([[1, "a"]]), opsmith.ArgumentError, ["`str` is none"]),
        (lambda x: opsmith.from_dlpack(3), opsmith.ArgumentError, ["a `int` has no `__dlpack__`", "asarray"]),
        (lambda x: opsmith.vjp(lambda y: {"a": y}, [x], [x]), opsmith.ArgumentError, ["the function returned a `dict`", "values()"]),
    ],
)
def test_errors_say_what_is_wrong_with_a_value(call, kind, texts):
    with pytest.raises(kind) as caught:
        call(opsmith.ones([2]))
    assert all(text in str(caught.value) for text in texts), str(caught.value)

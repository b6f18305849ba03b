"""The class Tensor: making, attributes, conversions, operators of Python, pickles."""

import copy
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest

import opsmith


def test_data_of_python_has_the_dtype_of_its_numbers():
    assert opsmith.tensor([1.0, 2]).dtype is opsmith.float32
    assert opsmith.tensor([1, True]).dtype is opsmith.int64
    assert opsmith.tensor([[True], [False]]).dtype is opsmith.bool_
    assert opsmith.tensor(1j).dtype is opsmith.complex64
    assert opsmith.tensor([]).shape == (0,)
    assert opsmith.tensor([[], []]).shape == (2, 0)
    assert opsmith.tensor([1, 2], dtype="int8").dtype is opsmith.int8
    assert opsmith.tensor([1, 2], dtype=np.float64).dtype is opsmith.float64
    assert opsmith.tensor([1, 2], dtype=float).dtype is opsmith.float64
    assert opsmith.tensor(range(3)).tolist() == [0, 1, 2]
    assert opsmith.tensor([opsmith.tensor([1, 2]), opsmith.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("data", [[[1], [1, 2]], [1, [2]], [[1], 2], [[[1]], [2]]])
def test_ragged_lists_are_an_error(data):
    with pytest.raises(ValueError, match="different lengths"):
        opsmith.tensor(data)


def test_attributes():
    x = opsmith.zeros([2, 3], dtype=opsmith.float64)
    assert (x.shape, x.ndim, x.size(), x.size(-1), x.numel()) == ((2, 3), 2, (2, 3), 3, 6)
    assert (x.stride(), x.itemsize, x.nbytes, len(x)) == ((3, 1), 8, 48, 2)
    assert x.is_contiguous() and not x.T.is_contiguous() and x.T.shape == (3, 2)
    assert x.device == opsmith.device("cpu") and x.device.type == "cpu" and x.device.index is None
    assert repr(opsmith.float32) == "opsmith.float32" and opsmith.bool_.name == "bool"
    assert opsmith.dtype("complex64").is_complex and opsmith.bfloat16.is_floating_point
    assert opsmith.zeros([3, 4, 2]).mT.shape == (3, 2, 4)


def test_numbers_of_python():
    assert float(opsmith.tensor([[2.5]])) == 2.5 and int(opsmith.tensor(7.9)) == 7
    assert complex(opsmith.tensor(1 + 2j)) == 1 + 2j and bool(opsmith.tensor(1))
    assert [10, 20, 30][opsmith.tensor(1)] == 20
    with pytest.raises(OverflowError):
        opsmith.tensor(2**64)
    assert f"{opsmith.tensor(2.0):.2f}" == "2.00"
    with pytest.raises(ValueError, match="ambiguous"):
        bool(opsmith.tensor([1, 2]))
    with pytest.raises(TypeError, match="no index"):
        [1][opsmith.tensor(0.0)]
    with pytest.raises(TypeError, match="no length"):
        len(opsmith.tensor(1))


def test_unsigned_integers_of_64_bits_keep_their_value():
    array = np.array([0, 2**64 - 1, 2**63], dtype=np.uint64)
    x = opsmith.asarray(array)
    assert x.tolist() == array.tolist() and x[1].item() == 2**64 - 1


class tensor(np.ndarray):
    """An array whose text NumPy begins with the name of opsmith's function."""


# The guide says how the text of numbers differs from NumPy's: by these options, and in the padding of truth values that all hold.
TEXT = {"precision": 4, "floatmode": "maxprec_equal", "linewidth": 81}


def text_of_numpy(array):
    """NumPy's own text of an array, with the element type as opsmith has it."""
    text = repr(array.view(tensor))
    ends = [text.rfind(end) for end in (", dtype=", ", shape=", ",\n       dtype=", ",\n       shape=") if end in text]
    shape = f", shape={array.shape}" if array.size == 0 else ""
    return f"{text[: min(ends, default=-1)]}, dtype={array.dtype}{shape})"


def test_text_is_that_of_numpy():
    alike = [
        1, 2.5, [3, -40, 500], [True, False], [[1, 2], [3, 4]], [1.5, -0.5], [[1.0, 2.0], [-3.0, 40.0]], [[[1]], [[2]]],
        [math.nan, math.inf, -1.0], [0.0, -0.0], [1e-7, 2e-7], [1e10, 1e11], [1.5 + 2.5j, -3.5 - 0.5j], [1 + 2j], np.arange(2000),
        np.arange(2000.0).reshape(50, 40) % 7, np.arange(24).reshape(2, 3, 4), [], np.zeros((0, 2)), np.zeros((2, 0), "int8"),
    ]  # fmt: skip
    for values in alike:
        for dtype in ("float32", "float64") if np.asarray(values).dtype == "float64" else (np.asarray(values).dtype,):
            array = np.asarray(values, dtype=dtype)
            assert repr(opsmith.asarray(array)) == text_of_numpy(array)
            assert str(opsmith.asarray(array)) == np.array2string(array, separator=", ")
    assert repr(opsmith.zeros([0])) == "tensor([], dtype=float32, shape=(0,))"
    assert repr(opsmith.ones([1]).requires_grad_()) == "tensor([1.], dtype=float32, requires_grad=True)"


def test_text_differs_from_that_of_numpy_as_the_guide_says():
    random = np.random.default_rng(0)
    for dtype in ("int16", "float16", "float32", "float64", "complex64", "complex128"):
        for shape in ((), (3,), (4, 9), (2, 3, 7), (1500,), (40, 38)):
            for scale in (1e-6, 1e-3, 1.0, 1e3, 1e6 if dtype != "float16" else 1e2):
                numbers = random.normal(size=shape) * scale
                array = np.asarray(numbers + 1j * numbers[..., ::-1] if "complex" in dtype and shape else numbers)
                array = array.astype("int32").astype(dtype) if dtype == "int16" else array.astype(dtype)
                with np.printoptions(**TEXT):
                    expected = text_of_numpy(array)
                assert repr(opsmith.asarray(array)) == expected
    assert repr(opsmith.tensor([1.0, 0.25])) == "tensor([1.00, 0.25], dtype=float32)"
    assert repr(opsmith.tensor([True, True])) == "tensor([True, True], dtype=bool)"


def test_operators_of_python_are_those_of_numpy():
    a, b = np.array([[1.0, -2.0], [3.0, 4.5]]), np.array([[2.0, 3.0], [-1.5, 2.0]])
    x, y = opsmith.asarray(a), opsmith.asarray(b)
    pairs = [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x // y, a // b), (x % y, a % b),
        (x @ y, a @ b), (-x, -a), (+x, +a), (abs(x), abs(a)), (x < y, a < b), (x <= y, a <= b), (x > y, a > b),
        (x >= y, a >= b), (x == y, a == b), (x != y, a != b), (x**2, a**2), (2 + x, 2 + a), (2 - x, 2 - a),
        (2 * x, 2 * a), (2 / x, 2 / a), (2 // x, 2 // a), (2 % x, 2 % a), (2**x, 2**a), (x - 2, a - 2), (x / 4, a / 4),
        (x // 2, a // 2), (x % 2, a % 2),
    ]  # fmt: skip
    for number, (found, expected) in enumerate(pairs):
        np.testing.assert_allclose(found.numpy(), expected, err_msg=f"pair {number}")
        assert found.dtype.name == expected.dtype.name, number


def test_operators_between_integers_are_those_of_numpy():
    a, b = np.array([12, 7, -3]), np.array([3, 1, 2])
    x, y = opsmith.asarray(a), opsmith.asarray(b)
    pairs = [
        (x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x << y, a << b), (x >> y, a >> b), (6 & x, 6 & a),
        (1 << y, 1 << b), (x // y, a // b), (x % y, a % b), (1 | x, 1 | a), (5 - x, 5 - a),
    ]  # fmt: skip
    for found, expected in pairs:
        assert found.tolist() == expected.tolist() and found.dtype.name == expected.dtype.name


def test_arrays_on_either_side():
    a = np.array([1.0, 2.0], dtype=np.float32)
    x = opsmith.asarray(a)
    for found in (a + x, x + a, np.float32(1) * x + a, a @ x + a):
        assert isinstance(found, opsmith.Tensor), type(found)
    assert (a + x).tolist() == [2, 4] and (a - x * 2).tolist() == [-1, -2]
    assert (np.float64(2) * x).tolist() == [2, 4] and (x * np.int64(3)).tolist() == [3, 6]


def test_other_operands_are_left_to_python():
    x = opsmith.ones([2])
    for operate in (lambda: x + "a", lambda: "a" * x, lambda: x @ object(), lambda: x < "a"):
        with pytest.raises(TypeError):
            operate()
    assert (x == "a") is False and (x != None) is True  # noqa: E711

    class Other:
        def __radd__(self, other):
            return "other"

    assert x + Other() == "other"


def test_in_place_operators_keep_the_tensor():
    x = opsmith.ones([2])
    before, y = x.data_ptr(), x
    x += 2
    x *= opsmith.tensor([1.0, 2.0])
    x -= 1
    x /= 2
    assert y is x and x.data_ptr() == before and x.tolist() == [1.0, 2.5]
    assert x.add_(1) is x and x.tolist() == [2.0, 3.5]
    assert opsmith.mul_(x, 2) is x


def test_rows_and_membership():
    x = opsmith.tensor([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    a, b = x
    a += 10
    assert x.tolist() == [[11, 12], [3, 4]]
    assert 12 in x and 5 not in x and "a" not in x
    assert list(opsmith.zeros([0, 2])) == []
    with pytest.raises(TypeError, match="no rows"):
        iter(opsmith.tensor(1))


def test_conversions():
    x = opsmith.tensor([1.5, 2.5])
    assert x.to(opsmith.int32).dtype is opsmith.int32 and x.to("float64").dtype is opsmith.float64
    assert x.to("cpu") is x and x.to(dtype=opsmith.float32) is x and x.to(x) is x
    assert x.to(opsmith.float32, copy=True).data_ptr() != x.data_ptr()
    assert x.to("cpu", opsmith.float16).dtype is opsmith.float16
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="there is no device"):
        x.to("nowhere")


def test_pickles_and_copies():
    for dtype in ("float32", "bfloat16", "complex128", "bool", "uint8"):
        x = opsmith.tensor([[1, 0], [1, 1]], dtype=dtype).T
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype is x.dtype and y.tolist() == x.tolist()
    x = opsmith.ones([2]).requires_grad_()
    assert pickle.loads(pickle.dumps(x)).requires_grad
    with pytest.raises(TypeError, match="part of a graph"):
        pickle.dumps(x * 2)
    assert pickle.loads(pickle.dumps(opsmith.float32)) is opsmith.float32
    assert pickle.loads(pickle.dumps(opsmith.device("cuda:1"))) == opsmith.device("cuda", 1)
    assert pickle.loads(pickle.dumps(opsmith.add)) is opsmith.add
    y = copy.deepcopy(x)
    y.requires_grad_(False)
    y += 1
    assert x.tolist() == [1, 1] and copy.copy(x) is x
    with pytest.raises(ValueError, match="neither 0 nor 1"):
        opsmith.Tensor._from_bytes(b"\x02", [1], "bool", False)
    with pytest.raises(ValueError, match="bytes are no tensor"):
        opsmith.Tensor._from_bytes(b"\x02", [2], "float32", False)


def test_numbers_that_are_not_finite():
    x = opsmith.tensor([math.nan, math.inf, -math.inf])
    assert math.isnan(x.tolist()[0]) and x.tolist()[1:] == [math.inf, -math.inf]
    assert str(x) == "[ nan,  inf, -inf]"


def test_results_with_names_are_pickled():
    x = opsmith.tensor([[1.0, 4.0], [3.0, 2.0]])
    found = x.max(1)
    assert type(found).__module__ == "opsmith" and type(found).__name__ == "max"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(found, protocol))
        assert type(again) is type(found) and again.indices.tolist() == [1, 0] and again.values.tolist() == [4, 3]
    assert copy.deepcopy(found).values.tolist() == [4, 3] and type(copy.copy(found)) is type(found)
    # Overloads share a class, a new process makes its own.
    text = "import pickle, sys; one = pickle.loads(sys.stdin.buffer.read()); print(type(one).__name__, one.indices.tolist())"
    made = subprocess.run([sys.executable, "-c", text], input=pickle.dumps(found), stdout=subprocess.PIPE, check=True)
    assert made.stdout.split(maxsplit=1) == [b"max", b"[1, 0]\n"]


def test_a_generator_is_pickled_with_its_place():
    generator = opsmith.Generator(7)
    opsmith.randn([3], generator=generator)
    again = pickle.loads(pickle.dumps(generator))
    assert again.seed == 7
    assert opsmith.randn([3], generator=again).tolist() == opsmith.randn([3], generator=generator).tolist()


def test_protocols_of_numbers():
    x = opsmith.tensor([7.25, -7.5])
    with pytest.raises(TypeError, match="takes no modulus"):
        pow(x, 2, 3)
    with pytest.raises(TypeError, match="takes no modulus"):
        pow(2, x, 3)
    assert pow(x, 2, None).tolist() == [7.25**2, 7.5**2]
    with pytest.raises(TypeError, match=r"'\.2f'|\"\.2f\""):
        format(x, ".2f")
    assert format(x[0], ".1f") == "7.2" and format(x) == str(x)
    assert round(x).tolist() == np.round([7.25, -7.5]).tolist() and round(x, 1).tolist() == np.round(np.float32([7.25, -7.5]), 1).tolist()
    quotient, remainder = divmod(x, 2)
    assert quotient.tolist() == (x // 2).tolist() == [3, -4] and remainder.tolist() == (x % 2).tolist() == [1.25, 0.5]
    quotient, remainder = divmod(15, x)
    assert quotient.tolist() == [2, -2] and remainder.tolist() == [0.5, 0]
    with pytest.raises(TypeError):
        divmod(x, "a")


def test_integers_of_more_than_64_bits():
    x = opsmith.tensor([1.0])
    for call in (lambda: x + 2**100, lambda: opsmith.tensor(2**100), lambda: opsmith.zeros([2**100]), lambda: opsmith.full([2], -(2**100))):
        with pytest.raises(OverflowError, match="an integer of 101 bits is beyond int64\n  help: "):
            call()
    for index in (2**70, -(2**70)):
        with pytest.raises(IndexError, match="71 bits is out of range"):
            x[index]
    largest = opsmith.tensor([[2**63, 2**64 - 1], [0, 1]], dtype="uint64")
    assert largest.tolist() == [[2**63, 2**64 - 1], [0, 1]] and opsmith.asarray(2**63, dtype="uint64").item() == 2**63
    for wrong in (2**64, 2**63):
        with pytest.raises(OverflowError):
            opsmith.tensor(wrong, dtype="uint64" if wrong == 2**64 else None)

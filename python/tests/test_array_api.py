"""The namespace of the array API: it has every name of the standard, takes its arguments, and computes as NumPy does."""

import doctest
import importlib
import inspect
import math
import re
import subprocess
import sys

import numpy as np
import pytest

import opsmith
import opsmith.array_api as xp

# The functions of version 2024.12, each with the names of the arguments that are given by keyword.
FUNCTIONS = {
    **dict.fromkeys(
        """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
        bitwise_right_shift bitwise_xor ceil conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
        greater_equal hypot imag isfinite isinf isnan less less_equal log log10 log1p log2 logaddexp logical_and logical_not
        logical_or logical_xor matmul matrix_transpose maximum minimum multiply negative nextafter nonzero not_equal positive pow
        real reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc unique_all unique_counts
        unique_inverse unique_values where broadcast_arrays can_cast finfo iinfo result_type moveaxis tile""".split(),
        "",
    ),
    "clip": "min max",
    "arange": "stop step dtype device", "asarray": "dtype device copy", "empty": "shape dtype device",
    "empty_like": "dtype device", "eye": "k dtype device", "from_dlpack": "device copy", "full": "shape fill_value dtype device",
    "full_like": "fill_value dtype device", "linspace": "num dtype device endpoint", "meshgrid": "indexing",
    "ones": "shape dtype device", "ones_like": "dtype device", "tril": "k", "triu": "k", "zeros": "shape dtype device",
    "zeros_like": "dtype device",
    "astype": "copy device", "isdtype": "dtype kind", "broadcast_to": "shape",
    "concat": "axis", "expand_dims": "axis", "flip": "axis", "permute_dims": "axes", "repeat": "axis", "reshape": "shape copy",
    "roll": "shift axis", "squeeze": "axis", "stack": "axis", "unstack": "axis",
    "take": "axis", "take_along_axis": "axis", "tensordot": "axes", "vecdot": "axis",
    "argmax": "axis keepdims", "argmin": "axis keepdims", "count_nonzero": "axis keepdims", "searchsorted": "side sorter",
    "argsort": "axis descending stable", "sort": "axis descending stable",
    "cumulative_sum": "axis dtype include_initial", "cumulative_prod": "axis dtype include_initial",
    "max": "axis keepdims", "mean": "axis keepdims", "min": "axis keepdims", "prod": "axis dtype keepdims",
    "std": "axis correction keepdims", "sum": "axis dtype keepdims", "var": "axis correction keepdims",
    "all": "axis keepdims", "any": "axis keepdims", "diff": "axis n prepend append",
    "__array_namespace_info__": "",
}  # fmt: skip
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
METHODS = """abs add and array_namespace bool complex dlpack dlpack_device eq float floordiv ge getitem gt index int invert le
lshift lt matmul mod mul ne neg or pos pow rshift setitem sub truediv xor""".split()
WITH_OTHERS = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
CONSTANTS = {"e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi}


class Call:
    """Arguments of a call, in which arrays and element types are those of NumPy."""

    def __init__(self, *args, **named):
        self.args, self.named = args, named


def converted(value):
    """A value for opsmith: arrays become tensors, element types those of the namespace."""
    if isinstance(value, np.ndarray):
        return opsmith.asarray(value, copy=True)
    if isinstance(value, np.dtype):
        return getattr(xp, value.name)
    return type(value)(converted(one) for one in value) if isinstance(value, (list, tuple)) else value


def array(values, dtype="float64"):
    return np.array(values, dtype=dtype)


def typed(name):
    return np.dtype(name)


M = array([[1.5, -2.0, 0.25], [-0.5, 3.0, 2.0]])
N = array([[3, 1, 2], [1, 5, 4]], "int32")
U = array([[200, 3, 0], [7, 100, 1]], "uint8")
B = array([[True, False, True], [True, True, True]], "bool")
C = array([[1 + 2j, -1j, 0.5], [3, -2 - 1j, 1j]], "complex128")
S = array([0.125, -0.5, 0.875, 0.0], "float32")
SCALAR = array(3, "int64")
V = array([3.0, 1.0, math.nan, 1.0, 3.0, math.nan])
SPECIAL = array([math.inf, -math.inf, math.nan, 1.0])
REPEATED = array([2, 1, 2, 0], "int16")

UNARY = {
    "abs": (M, N, C), "acos": (S,), "acosh": (S + 2,), "asin": (S,), "asinh": (S, C), "atan": (S,), "atanh": (S,),
    "bitwise_invert": (N, U, B), "ceil": (M, N), "conj": (C,), "cos": (S, C), "cosh": (S,), "exp": (S, C), "expm1": (S,),
    "floor": (M, N), "imag": (C,), "isfinite": (V, N, C), "isinf": (SPECIAL,), "isnan": (V, C), "log": (S + 1, C), "log10": (S + 1,),
    "log1p": (S,), "log2": (S + 1,), "logical_not": (B,), "matrix_transpose": (M, N), "negative": (M, N, C), "nonzero": (N, B, M),
    "positive": (M, N), "real": (C,), "reciprocal": (M[:, :2], C + 4), "round": (M, N, C * 1.25), "sign": (M, N, C),
    "signbit": (M, S * -0.0), "sin": (S, C), "sinh": (S,), "sqrt": (S + 1, C), "square": (M, N, C), "tan": (S,), "tanh": (S,),
    "trunc": (M, N), "unique_all": (V, N, B, U, C, np.zeros((2, 0))), "unique_counts": (V, N), "unique_inverse": (V, N, C),
    "unique_values": (V, N, C, np.repeat(C, 2)),
}  # fmt: skip
FLOATS = ((M, M[0]), (M, 2.5), (2.5, M), (S, 0.5), (S, array(0.5)), (S, M[:, :1]))
INTEGERS = ((N, N[0]), (N, 2), (2, N), (N, SCALAR), (U, 2), (U, array([1, 2, 3], "int8")), (U, array([1, 2, 3], "uint16")))
TRUTHS = ((B, B[0]), (B, True), (False, B))
BINARY = {
    **dict.fromkeys(("add", "subtract", "multiply"), (*FLOATS, *INTEGERS, (C, C[0]), (M, C), (C, 2j))),
    **dict.fromkeys(("maximum", "minimum", "greater", "greater_equal", "less", "less_equal"), (*FLOATS, *INTEGERS)),
    **dict.fromkeys(("equal", "not_equal"), (*FLOATS, *INTEGERS, *TRUTHS, (C, C[0]))),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), FLOATS),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), TRUTHS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (*INTEGERS, *TRUTHS)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGERS[:4]),
    **dict.fromkeys(("floor_divide", "remainder"), (*FLOATS[:3], (S, S * 0 + 2), (N - 3, N[0]), (N, 2), (20, N), (N, SCALAR))),
    "divide": (*FLOATS[:3], (S + 1, array(0.5)), (C, C + 4), (M, C + 4)),
    "pow": ((abs(M), M[0]), (M, 2.0), (2.0, M), (N, N[0]), (N, 2), (2, N), (C, 2.0)),
}
KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
AXES = (Call(M), Call(M, axis=0), Call(M, axis=-1, keepdims=True), Call(M, axis=(0, 1)), Call(M, axis=(), keepdims=True))
CASES = {
    **{name: [Call(one) for one in values] for name, values in UNARY.items()},
    **{name: [Call(*pair) for pair in pairs] for name, pairs in BINARY.items()},
    "clip": [Call(M, 0.0, 2.0), Call(M, min=array([0.0, 1.0, 1.0])), Call(N, max=3), Call(M), Call(S, min=S[:1], max=0.5)],
    "arange": [Call(3), Call(1, 7, 2), Call(5, stop=0, step=-2), Call(0, -5), Call(0, -5.0, 1.0, dtype=typed("float32")),
               Call(3, dtype=typed("float64"), device="cpu")],
    "asarray": [Call(M), Call(M, copy=True, dtype=typed("float32")), Call([[1, 2], [3, 4]], device="cpu"), Call(True),
                Call([1.5, 2], dtype=typed("float64")), Call((1j, 2), dtype=typed("complex128"))],
    "eye": [Call(2, dtype=typed("int8")), Call(2, 3, k=1, dtype=typed("float64"), device="cpu"),
            Call(3, 2, k=-2, dtype=typed("bool")), Call(2, k=5, dtype=typed("float32"))],
    "from_dlpack": [Call(M), Call(M, device="cpu", copy=True)],
    "full": [Call(2, 7), Call(shape=(2, 3), fill_value=1.5, dtype=typed("float32"), device="cpu"), Call((), True), Call((0, 2), 1)],
    "full_like": [Call(M, 3), Call(N, fill_value=2.5, dtype=typed("float32"), device="cpu")],
    "linspace": [Call(0, 1, 5, dtype=typed("float64")), Call(1.0, 0.0, num=4, endpoint=False, dtype=typed("float64"), device="cpu"),
                 Call(0, 1, 0, dtype=typed("float32")), Call(0, 1j, 3, dtype=typed("complex128")),
                 Call(2.0, 3.0, 1, dtype=typed("float64"))],
    "meshgrid": [Call(N[0], N[1]), Call(N[0], N[1], indexing="ij"), Call(N[0]), Call(M[0], M[1], M[0], indexing="xy"), Call()],
    "tril": [Call(M), Call(M, k=1), Call(np.stack([N, N]), k=-1)],
    "triu": [Call(M), Call(M, k=1), Call(np.stack([N, N]), k=-1)],
    **{name: [Call(3, dtype=typed("float64")), Call(shape=(2, 0), dtype=typed("int8"), device="cpu"), Call((), dtype=typed("bool"))]
       for name in ("ones", "zeros")},
    **{name: [Call(N), Call(M, dtype=typed("bool"), device="cpu")] for name in ("ones_like", "zeros_like")},
    "astype": [Call(M, typed("int32")), Call(N, typed("complex64"), copy=False), Call(C, typed("bool"), device="cpu"),
               Call(U, typed("int8"))],
    "can_cast": [Call(typed(a), typed(b)) for group in (TYPES[1:9], TYPES[9:]) for a in group for b in group if "uint64" not in (a, b)],
    "isdtype": [Call(typed(name), kind) for name in TYPES for kind in KINDS]
    + [Call(dtype=typed("int8"), kind=("bool", typed("int8"))), Call(typed("int8"), typed("int16"))],
    "result_type": [Call(typed(a), typed(b)) for a in TYPES[1:9] for b in TYPES[1:9] if a[0] == b[0] or "uint64" not in (a, b)]
    + [Call(typed(a), typed(b)) for a in TYPES[9:] for b in TYPES[9:]]
    + [Call(N, SCALAR), Call(S, 2.0), Call(U, 1, typed("int8")), Call(B, True), Call(typed("float64"), 1j), Call(S, M, 1)],
    "broadcast_arrays": [Call(M[:, :1], N[0]), Call(M), Call()],
    "broadcast_to": [Call(N[0], (2, 3)), Call(SCALAR, shape=(2,))],
    "concat": [Call([M, M]), Call((N, U), axis=1), Call([M, SCALAR], axis=None)],
    "expand_dims": [Call(M, axis=0), Call(M, axis=-1), Call(M, axis=(0, -1))],
    "flip": [Call(M), Call(M, axis=1), Call(M, axis=(0, -1))],
    "moveaxis": [Call(np.stack([M, M]), 0, -1), Call(np.stack([M, M]), (0, 1), (-1, 0))],
    "permute_dims": [Call(M, (1, 0)), Call(np.stack([M, M]), axes=(2, 0, 1))],
    "repeat": [Call(M, 2), Call(M, 2, axis=1), Call(M, array([1, 2], "int64"), axis=0)],
    "reshape": [Call(M, (3, 2)), Call(M, (-1,), copy=True), Call(M, shape=(1, 6), copy=False), Call(M.T, (6,))],
    "roll": [Call(M, 1), Call(M, -1, axis=1), Call(M, (1, 2), axis=(0, 1)), Call(M, shift=1, axis=(0, 1))],
    "squeeze": [Call(M[None], axis=0), Call(M[None, :, :, None], axis=(0, -1))],
    "stack": [Call([M, M]), Call((N, U), axis=-1)],
    "tile": [Call(M, (2,)), Call(M, (2, 1, 2)), Call(SCALAR, (2,))],
    "unstack": [Call(M), Call(M, axis=1)],
    "take": [Call(V, array([0, -1], "int64")), Call(M, array([2, 0], "int32"), axis=1)],
    "take_along_axis": [Call(M, array([[0], [-1]], "int64"), axis=1), Call(M, array([[1, 0, 1]], "int32"), axis=0)],
    "matmul": [Call(M, M.T), Call(M, M[0]), Call(np.stack([N, N]), N.T), Call(N, SCALAR.reshape(1).repeat(3)), Call(C, C.T)],
    "tensordot": [Call(M, M), Call(M, M.T, axes=1), Call(N, N, axes=0), Call(M, M, axes=((0,), (0,))), Call(N, U.T, axes=1)],
    "vecdot": [Call(M, M[0]), Call(N, N, axis=0), Call(C, C[0], axis=-1), Call(U, N[0]), Call(C, M)],
    "argmax": [Call(M), Call(M, axis=0), Call(N, axis=-1, keepdims=True), Call(M, keepdims=True)],
    "argmin": [Call(M), Call(M, axis=0), Call(N, axis=-1, keepdims=True), Call(M, keepdims=True)],
    "count_nonzero": [*AXES[:4], Call(B, axis=0), Call(U)],
    "searchsorted": [Call(array([1.0, 2.0, 2.0]), M), Call(array([1, 2], "int16"), N, side="right"),
                     Call(array([2.0, 1.0]), V[:2], sorter=array([1, 0], "int64"))],
    "where": [Call(B, M, N[0]), Call(B, M, 0.0), Call(B, 1, N), Call(B, C, M), Call(B, SCALAR, N)],
    "argsort": [Call(M), Call(REPEATED, stable=True), Call(N, axis=0)],
    "sort": [Call(M), Call(V), Call(N, axis=0, stable=True), Call(B)],
    **{name: [*AXES, Call(N), Call(N, axis=(1, -2))] for name in ("max", "min")},
    **{name: [*AXES, Call(N), Call(U), Call(B), Call(S), Call(C, axis=0), Call(N, dtype=typed("float32"), axis=(1, 0)), Call(SCALAR)]
       for name in ("sum", "prod")},
    "mean": [*AXES, Call(S), Call(C, axis=0)],
    **{name: [*AXES, Call(M, correction=1), Call(S, axis=0, correction=1.5), Call(array(1.0))] for name in ("std", "var")},
    **{name: [*AXES, Call(B, axis=1), Call(U, axis=0, keepdims=True), Call(V), Call(array(True, "bool")), Call(np.zeros((0, 2)), axis=0)]
       for name in ("all", "any")},
    **{name: [Call(V[:2]), Call(N, axis=0), Call(U, axis=-1, include_initial=True), Call(M, axis=1, dtype=typed("float32")),
              Call(np.zeros((2, 0)), axis=1, include_initial=True)]
       for name in ("cumulative_sum", "cumulative_prod")},
    "diff": [Call(M), Call(N, axis=0), Call(M, n=2), Call(M, prepend=M, append=M[:, :1], axis=1)],
}  # fmt: skip
SQUARE = array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
SQUARES = np.stack([SQUARE, SQUARE + np.eye(3)])
W = array([1.0, -2.0, 0.5, 3.0, 0.25, -1.0])
LINALG = {
    **dict.fromkeys("det eigh eigvalsh inv matmul matrix_power matrix_transpose outer slogdet solve svdvals".split(), ""),
    "cholesky": "upper", "cross": "axis", "diagonal": "offset", "matrix_norm": "keepdims ord", "matrix_rank": "rtol",
    "pinv": "rtol", "qr": "mode", "svd": "full_matrices", "tensordot": "axes", "trace": "offset dtype", "vecdot": "axis",
    "vector_norm": "axis keepdims ord",
}  # fmt: skip
FFT = {
    **dict.fromkeys("fft hfft ifft ihfft irfft rfft".split(), "n axis norm"),
    **dict.fromkeys("fftn ifftn irfftn rfftn".split(), "s axes norm"),
    **dict.fromkeys(("fftfreq", "rfftfreq"), "d dtype device"),
    **dict.fromkeys(("fftshift", "ifftshift"), "axes"),
}
EXTENSIONS = {
    **{f"linalg.{name}": [Call(SQUARE), Call(SQUARES)] for name in ("det", "eigvalsh", "inv", "matrix_transpose", "slogdet", "svdvals")},
    **{f"linalg.{name}": CASES[name] for name in ("matmul", "tensordot", "vecdot")},
    "linalg.cholesky": [Call(SQUARE), Call(SQUARES, upper=True)],
    "linalg.cross": [Call(M, M[::-1]), Call(M.T, M[0][:, None], axis=0), Call(N, M)],
    "linalg.diagonal": [Call(M), Call(SQUARES, offset=1), Call(SQUARE, offset=-1)],
    "linalg.matrix_norm": [Call(SQUARES), Call(M, keepdims=True)]
    + [Call(M, ord=one) for one in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)],
    "linalg.matrix_power": [Call(SQUARE, 3), Call(SQUARES, 0), Call(SQUARE, -2)],
    "linalg.matrix_rank": [Call(SQUARES), Call(np.ones((3, 2))), Call(SQUARE, rtol=0.9)],
    "linalg.outer": [Call(M[0], M[1]), Call(N[0], M[1])],
    "linalg.pinv": [Call(M), Call(SQUARES, rtol=0.5)],
    "linalg.solve": [Call(SQUARE, M.T), Call(SQUARES, M[0]), Call(SQUARE, N[0])],
    "linalg.trace": [Call(SQUARES), Call(N, offset=1), Call(M, dtype=typed("float32"))],
    "linalg.vector_norm": [Call(M), Call(M, axis=1), Call(SQUARES, axis=(0, 2), keepdims=True), Call(C, axis=0)]
    + [Call(M, ord=one) for one in (0, 1, -1, 3, math.inf, -math.inf)],
    **{f"fft.{name}": [Call(C), Call(C, n=4, axis=0, norm="ortho"), Call(C, norm="forward")] for name in ("fft", "ifft", "hfft", "irfft")},
    **{f"fft.{name}": [Call(W), Call(M, n=4, axis=0, norm="ortho"), Call(M, norm="forward")] for name in ("rfft", "ihfft")},
    **{f"fft.{name}": [Call(C), Call(C, s=(4, 4), axes=(0, 1), norm="ortho"), Call(C, axes=(0,))] for name in ("fftn", "ifftn", "irfftn")},
    "fft.rfftn": [Call(M), Call(M, s=(4, 4), axes=(0, 1), norm="ortho"), Call(M, axes=(0,))],
    **{f"fft.{name}": [Call(5, dtype=typed("float64")), Call(4, d=0.5, dtype=typed("float64"), device="cpu")]
       for name in ("fftfreq", "rfftfreq")},
    **{f"fft.{name}": [Call(W), Call(M, axes=1), Call(N, axes=(0, 1))] for name in ("fftshift", "ifftshift")},
}  # fmt: skip
# Compared in tests of their own.
APART = {"empty", "empty_like", "finfo", "iinfo", "__array_namespace_info__", "linalg.eigh", "linalg.qr", "linalg.svd"}


def compare(found, expected, where):
    if isinstance(expected, (list, tuple)):
        assert isinstance(found, (list, tuple)) and len(found) == len(expected), where
        for one, other in zip(found, expected):
            compare(one, other, where)
    elif isinstance(expected, np.dtype) or np.ndim(expected) == 0 and isinstance(expected, bool):
        assert found == (converted(expected) if isinstance(expected, np.dtype) else expected), where
    else:
        expected = np.asarray(expected)
        assert isinstance(found, opsmith.Tensor), where
        assert (found.dtype.name, found.shape) == (expected.dtype.name, expected.shape), where
        tolerance = 1e-6 if expected.dtype.name in ("float32", "complex64") else 1e-14
        np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance, err_msg=where)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(CASES))
def test_results_are_those_of_numpy(name):
    for number, call in enumerate(CASES[name]):
        # NumPy's own `unique_values` has them in no order.
        reference = np.unique if name == "unique_values" else getattr(np, name)
        named = {"equal_nan": False} if name == "unique_values" else call.named
        expected = reference(*call.args, **named)
        run(getattr(xp, name), call, expected, f"{name}, call {number}: {call.args} {call.named}")


@pytest.mark.parametrize("name", sorted(EXTENSIONS))
def test_results_of_the_extensions_are_those_of_numpy(name):
    for number, call in enumerate(EXTENSIONS[name]):
        module, function = name.split(".")
        # NumPy's frequencies have one element type.
        named = {key: value for key, value in call.named.items() if key != "dtype" or "freq" not in name}
        expected = getattr(getattr(np, module), function)(*call.args, **named)
        run(getattr(getattr(xp, module), function), call, expected, f"{name}, call {number}: {call.args} {call.named}")


def run(function, call, expected, where):
    named = {key: converted(value) for key, value in call.named.items()}
    compare(function(*converted(call.args), **named), expected, where)


def test_every_name_of_the_standard_is_there():
    names = {*FUNCTIONS, *TYPES, *CONSTANTS, "__array_api_version__", "fft", "linalg"}
    assert {name for name in names if not hasattr(xp, name)} == set()
    assert {name for name in dir(xp) if not name.startswith("_")} == {name for name in names if not name.startswith("_")}
    for module, functions in (("fft", FFT), ("linalg", LINALG)):
        assert {name for name in functions if not hasattr(getattr(xp, module), name)} == set()
        assert set(getattr(xp, module).__all__) == set(functions)
    assert xp.__array_api_version__ == "2024.12"
    for name, value in CONSTANTS.items():
        assert getattr(xp, name) is value or getattr(xp, name) == value or name == "nan" and math.isnan(xp.nan)
    for name in TYPES:
        assert getattr(xp, name) is opsmith.dtype(name)


def test_tensors_have_the_attributes_of_the_standard():
    special = METHODS + [kind + name for kind in "ri" for name in WITH_OTHERS]
    names = [*(f"__{name}__" for name in special), "to_device", "T", "mT", "device", "dtype", "ndim", "shape"]
    # Without a method, Python computes `x @= y` as `x = x @ y`.
    assert [name for name in names if not hasattr(opsmith.Tensor, name)] == ["__imatmul__"]
    x = xp.ones((2, 3), device="cpu")
    assert (x.ndim, x.shape, x.dtype, x.T.shape) == (2, (2, 3), xp.float32, (3, 2))
    # The guide says that the number of elements, an attribute in the standard, is a method.
    assert x.numel() == 6 and x.size() == x.shape


def test_every_argument_by_keyword_is_given_in_a_call():
    for functions, cases, prefix in ((FUNCTIONS, CASES, ""), (FFT, EXTENSIONS, "fft."), (LINALG, EXTENSIONS, "linalg.")):
        for name, named in functions.items():
            calls = cases.get(prefix + name)
            assert (calls is None) == (prefix + name in APART), name
            given = {key for call in calls or () for key in call.named}
            expected = set(named.split()) - ({"descending"} if name in ("argsort", "sort") else set())
            assert given == expected or calls is None, (name, given ^ expected)


def test_descending_order_keeps_equal_elements_in_theirs():
    x = converted(REPEATED)
    assert xp.sort(x, axis=-1, descending=True).tolist() == [2, 2, 1, 0]
    assert xp.argsort(x, axis=-1, descending=True, stable=True).tolist() == [0, 2, 1, 3]


def test_factorisations_give_the_matrix_again():
    matrix = array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
    x = converted(matrix)
    values, vectors = xp.linalg.eigh(x)
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(matrix), rtol=1e-13)
    np.testing.assert_allclose(((vectors * values) @ vectors.mT).numpy(), matrix, rtol=1e-13, atol=1e-13)
    for mode in ("reduced", "complete"):
        found = xp.linalg.qr(converted(M.T), mode=mode)
        np.testing.assert_allclose((found.Q @ found.R).numpy(), M.T, rtol=1e-13, atol=1e-13)
        assert found.Q.shape == ((3, 2) if mode == "reduced" else (3, 3))
    for full in (False, True):
        found = xp.linalg.svd(converted(M), full_matrices=full)
        np.testing.assert_allclose(((found.U * found.S) @ found.Vh[:2]).numpy(), M, rtol=1e-13, atol=1e-13)
        assert found.Vh.shape == ((3, 3) if full else (2, 3))


def test_tensors_without_contents():
    assert xp.empty((2, 3), dtype=xp.int8, device="cpu").shape == xp.empty(shape=(2, 3)).shape == (2, 3)
    like = xp.empty_like(converted(M), dtype=xp.int8, device="cpu")
    assert (like.shape, like.dtype) == ((2, 3), xp.int8)


def test_limits_are_those_of_numpy():
    for name in TYPES[1:9]:
        found, expected = xp.iinfo(getattr(xp, name)), np.iinfo(name)
        assert found == (expected.bits, expected.max, expected.min, getattr(xp, name))
    for name in TYPES[9:]:
        found, expected = xp.finfo(getattr(xp, name)), np.finfo(name)
        numbers = (expected.bits, expected.eps, expected.max, expected.min, expected.smallest_normal)
        assert found == (*map(float, numbers), opsmith.dtype(expected.dtype.name))
    assert xp.finfo(opsmith.float16).max == float(np.finfo("float16").max)
    assert xp.finfo(xp.ones(2)).dtype is xp.float32 and xp.iinfo(xp.ones(2, dtype=xp.int8)).bits == 8


def test_information_about_the_namespace():
    info = xp.__array_namespace_info__()
    expected = np.__array_namespace_info__()
    assert info.capabilities() == {**expected.capabilities(), "max dimensions": None}
    assert info.default_device() == xp.ones(1).device and info.default_device() in info.devices()
    defaults = {"real floating": 1.0, "complex floating": 1j, "integral": 1}
    assert info.default_dtypes(device="cpu") == {
        **{kind: xp.asarray(value).dtype for kind, value in defaults.items()}, "indexing": xp.argmax(xp.ones(1)).dtype,
    }  # fmt: skip
    assert sorted(info.dtypes(device="cpu")) == sorted(TYPES)
    for kind in (*KINDS, ("bool", "real floating")):
        assert sorted(info.dtypes(kind=kind)) == sorted(expected.dtypes(kind=kind))


def test_gradients_flow_through_the_functions():
    x = opsmith.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
    kept = xp.var(xp.concat([x, xp.expand_dims(x[0], axis=0)]), axis=0, correction=1)
    xp.sum(xp.vecdot(kept, xp.take(x, xp.asarray([1, 0]), axis=1)[0])).backward()
    assert x.grad is not None and xp.all(xp.isfinite(x.grad)).item() and xp.any(x.grad != 0).item()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: xp.isdtype(xp.int8, "float"), ValueError, "kinds are bool, signed integer"),
        (lambda: xp.finfo(xp.int8), TypeError, "int8 has no limits of floating-point numbers"),
        (lambda: xp.iinfo(xp.float32), TypeError, "float32 has no limits of integers"),
        (lambda: xp.astype(converted(C), xp.float32), TypeError, "would lose imaginary parts"),
        (lambda: xp.result_type(1, 2.0), TypeError, "needs a tensor or an element type"),
        (lambda: xp.result_type(xp.uint64, xp.int8), opsmith.DTypeError, "no common dtype"),
        (lambda: xp.squeeze(xp.ones((2, 1)), axis=0), ValueError, "has not the size 1"),
        (lambda: xp.expand_dims(xp.ones(2), axis=4), IndexError, "are no places"),
        (lambda: xp.expand_dims(xp.ones(2), axis=(0, -4, 0)), IndexError, "are no places"),
        (lambda: xp.reshape(xp.ones((2, 3)).mT, (6,), copy=False), ValueError, "without moving elements"),
        (lambda: xp.nonzero(xp.asarray(1)), ValueError, "has no places"),
        (lambda: xp.cumulative_sum(xp.ones((2, 2))), ValueError, "give `axis`"),
        (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), ValueError, "give `axis`"),
        (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0]), axis=2), IndexError, "dimension 2 is out of range"),
        (lambda: xp.vecdot(xp.ones(3), xp.ones(1)), ValueError, "has the sizes 3 and 1"),
        (lambda: xp.sum(xp.ones(3), axis=1), IndexError, "dimension 1 is out of range"),
        (lambda: xp.prod(xp.ones(3), axis=(1,)), IndexError, "dimension 1 is out of range"),
        (lambda: xp.prod(xp.ones((2, 2)), axis=(0, -2)), ValueError, "twice"),
        (lambda: xp.ones(1).__array_namespace__(api_version="2050.12"), ValueError, "ask for '2024.12'"),
        (lambda: xp._namespace(np.ones(1), None), TypeError, "opsmith.from_dlpack"),
    ],
)
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=re.escape(text)):
        call()


def test_cannot_cast_to_a_type_without_a_promotion():
    assert not xp.can_cast(xp.uint64, xp.int8) and not xp.can_cast(xp.int64, xp.uint64) and xp.can_cast(xp.bool, xp.bool)
    assert xp.can_cast(xp.ones(1, dtype=xp.uint8), xp.int16)


def test_tensors_have_the_namespace():
    x = opsmith.ones([2])
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is xp
    assert x.__array_namespace__() is xp


def test_the_package_itself_is_as_before():
    """The namespace is loaded when it is asked for, and none of its names that Python has is in the package."""
    code = "import sys, opsmith; assert 'opsmith.array_api' not in sys.modules; from opsmith import *; assert bool is type(True)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert opsmith.equal(opsmith.ones([2]), opsmith.ones([2])) is True and not hasattr(opsmith, "bool")


def test_functions_have_documentation_whose_examples_run():
    functions = {name: getattr(xp, name) for name in FUNCTIONS}
    functions.update({f"fft.{name}": getattr(xp.fft, name) for name in FFT})
    functions.update({f"linalg.{name}": getattr(xp.linalg, name) for name in LINALG})
    for name, function in functions.items():
        assert function.__doc__, name
        assert "Examples" in function.__doc__ or not inspect.isfunction(function), name
    ran = 0
    for part in ("array_api", "_array_types", "_array_creation", "_array_elementwise", "_array_reductions", "_array_search",
                 "_array_fft", "_array_linalg"):  # fmt: skip
        failed, count = doctest.testmod(importlib.import_module(f"opsmith.{part}"))
        assert failed == 0, part
        ran += count
    assert ran > 120

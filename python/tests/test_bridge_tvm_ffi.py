"""Operators of a folder that ``opsmith bridge tvm-ffi`` made: the package ``opsmith_example_custom_op_tvm_ffi`` of the example crate with
some stock operators. ``scripts/bridges.sh`` builds it and runs this; without it, the tests are skipped."""

import pytest

np = pytest.importorskip("numpy")
tvm_ffi = pytest.importorskip("tvm_ffi")
package = pytest.importorskip("opsmith_example_custom_op_tvm_ffi")


def example(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def laplacian(x):
    padded = np.pad(x, 1)
    return padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4 * x


def softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def layer_norm(x, bias):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) + bias


def call(name, *args):
    found = package.function(name)(*args)
    return [np.from_dlpack(one) for one in ([found] if isinstance(found, tvm_ffi.Tensor) else found)]


@pytest.mark.parametrize(
    "name, rest, expected",
    [
        ("transpose_copy", ([1, 0],), lambda x: [x.T]),
        ("laplacian", (), lambda x: [laplacian(x)]),
        ("gaussian", (2.0,), lambda x: [np.exp(-x * x / 8)]),
        ("heat_step", (0.5,), lambda x: [x + 0.5 * laplacian(x)]),
        ("sort", (1, True), lambda x: [-np.sort(-x, 1), np.argsort(-x, 1)]),
        ("softmax.int", (1, None), lambda x: [softmax(x)]),
        ("softmax.int", (1, "float64"), lambda x: [softmax(x.astype(np.float64))]),
        ("gelu", ("tanh",), lambda x: [gelu(x).astype(np.float32)]),
        ("clamp", (-0.5,), lambda x: [np.maximum(x, np.float32(-0.5))]),
        ("exp", (), lambda x: [np.exp(x)]),
        ("sum.dim_IntList", ([0], True), lambda x: [x.sum(0, keepdims=True)]),
        ("amax", ([1],), lambda x: [x.max(1)]),
        ("mean.dim", ([0, 1], False, "float64"), lambda x: [x.astype(np.float64).mean()]),
        ("cumsum", (1,), lambda x: [x.cumsum(1)]),
        ("topk", (2, 1), lambda x: [-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2]]),
        ("max.dim", (1,), lambda x: [x.max(1), x.argmax(1)]),
        ("constant_pad_nd", ([1, 2], 0.5), lambda x: [np.pad(x, ((0, 0), (1, 2)), constant_values=0.5)]),
        ("roll", ([1], [1]), lambda x: [np.roll(x, 1, 1)]),
    ],
)
def test_values(name, rest, expected):
    x = example(3, 4)
    for one, other in zip(call(name, tvm_ffi.from_dlpack(x), *rest), expected(x), strict=True):
        assert one.dtype == other.dtype and np.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    "name, make, expected",
    [
        ("add.Tensor", lambda x, y: (x, y, 2), lambda x, y: x + 2 * y),
        ("mul.Tensor", lambda x, y: (x, y), lambda x, y: x * y),
        ("maximum", lambda x, y: (x, y), np.maximum),
        ("gt.Tensor", lambda x, y: (x, y), lambda x, y: x > y),
        ("where.self", lambda x, y: (x > 0, x, y), lambda x, y: np.where(x > 0, x, y)),
        ("mm", lambda x, y: (x, x.T.copy()), lambda x, y: x @ x.T),
        ("layer_norm", lambda x, y: (x, [4], None, y), lambda x, y: layer_norm(x, y)),
        ("stack", lambda x, y: ([x, x],), lambda x, y: np.stack([x, x])),
    ],
)
def test_values_of_several_tensors(name, make, expected):
    def own(value):
        if isinstance(value, list) and isinstance(value[0], np.ndarray):
            return [own(one) for one in value]
        return tvm_ffi.from_dlpack(value) if isinstance(value, np.ndarray) else value

    x, y = example(3, 4), example(4)
    (found,), wanted = call(name, *map(own, make(x, y))), expected(x, y)
    assert found.dtype == wanted.dtype and np.allclose(found, wanted, atol=1e-6)


def test_several_tensors_and_lists_of_them():
    x, y = example(3, 4), example(4)
    own = [tvm_ffi.from_dlpack(one) for one in (x, y)]
    assert np.allclose(call("add.Tensor", *own, 2)[0], x + 2 * y)
    assert np.array_equal(call("cat", [own[0], own[0]], 1)[0], np.concatenate([x, x], 1))
    for one, other in zip(call("_foreach_mul.Scalar", own, 2.0), (2 * x, 2 * y), strict=True):
        assert np.array_equal(one, other)


def test_a_large_result_of_a_composition_outlives_its_call():
    x = example(300, 300)
    found = package.function("heat_step")(tvm_ffi.from_dlpack(x))
    array = np.from_dlpack(found)
    del found
    assert np.allclose(array, x + 0.1 * laplacian(x), atol=1e-5)


@pytest.mark.parametrize(
    "name, make, kind, text",
    [
        ("laplacian", lambda x: (x[0],), ValueError, "self.dim() == 2"),
        ("transpose_copy", lambda x: (x, [0, 7]), IndexError, "dimension 7 is out of range"),
        ("gelu", lambda x: (), TypeError, "`self` is missing"),
        ("gelu", lambda x: (x, "no", 3), TypeError, "3 arguments were given"),
        ("cat", lambda x: ([1, 2],), TypeError, "must be a list of tensors"),
        ("laplacian", lambda x: (x.astype(int),), RuntimeError, "no CPU kernel for int64"),
    ],
)
def test_mistakes(name, make, kind, text):
    args = [tvm_ffi.from_dlpack(one) if isinstance(one, np.ndarray) else one for one in make(example(3, 4))]
    with pytest.raises(kind) as error:
        package.function(name)(*args)
    assert text in str(error.value)


def test_names():
    assert "cat" in package.OPERATORS and tvm_ffi.get_global_func("opsmith_example_custom_op.cat") is not None
    with pytest.raises(LookupError):
        package.function("nothing")

"""Operators of a folder that ``opsmith bridge jax`` made: the package ``opsmith_example_custom_op_jax`` of the example crate with some stock
operators. ``scripts/bridges.sh`` builds it and runs this; without it, the tests are skipped."""

import pytest

jax = pytest.importorskip("jax")
ops = pytest.importorskip("opsmith_example_custom_op_jax")
jnp = jax.numpy


def example(*shape, seed=0):
    return jax.random.normal(jax.random.key(seed), shape)


def laplacian(x):
    padded = jnp.pad(x, 1)
    return padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4 * x


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


# The operator and JAX's own: kernels in C++ and in Rust, an expression, compositions, several results, lists.
CASES = {
    "cpp": (lambda x: ops.transpose_copy(x, [1, 0]), jnp.transpose),
    "rust": (ops.laplacian, laplacian),
    "expression": (lambda x: ops.gaussian(x, width=2.0), lambda x: jnp.exp(-x * x / 8)),
    "composition": (ops.heat_step, lambda x: x + 0.1 * laplacian(x)),
    "several results": (lambda x: ops.sort(x, 1), lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1))),
    "list": (lambda x: ops.cat([x, x * 2], 1), lambda x: jnp.concatenate([x, x * 2], 1)),
    "list result": (lambda x: ops._foreach_mul_Scalar([x, x[0]], 2.0), lambda x: [x * 2, x[0] * 2]),
    "stock expression": (ops.gelu, gelu),
    "stock composition": (lambda x: ops.softmax_int(x, 1), lambda x: jax.nn.softmax(x, 1)),
    "broadcast": (lambda x: ops.add_Tensor(x, x[0], alpha=3), lambda x: x + 3 * x[0]),
}
cases = pytest.mark.parametrize("name", CASES)


def results(found):
    return list(found) if isinstance(found, (tuple, list)) else [found]


def squares(function):
    return lambda x: sum((one**2).sum() for one in results(function(x)) if jnp.issubdtype(one.dtype, jnp.floating))


@cases
def test_values_with_and_without_a_compiler(name):
    own, expected = CASES[name]
    x = example(3, 4)
    for function in (own, jax.jit(own)):
        for one, other in zip(results(function(x)), results(expected(x)), strict=True):
            assert one.dtype == other.dtype and jnp.allclose(one, other, atol=1e-6)


@cases
def test_gradients_with_and_without_a_compiler(name):
    own, expected = CASES[name]
    x = example(3, 4)
    wanted = jax.grad(squares(expected))(x)
    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        assert jnp.allclose(transform(squares(own))(x), wanted, atol=1e-5)


@cases
def test_batches(name):
    own, expected = CASES[name]
    batch = example(2, 3, 4)
    for one, other in zip(results(jax.vmap(own)(batch)), results(jax.vmap(expected)(batch)), strict=True):
        assert jnp.allclose(one, other, atol=1e-6)
    found, wanted = (jax.vmap(jax.grad(squares(function)))(batch) for function in (own, expected))
    assert jnp.allclose(found, wanted, atol=1e-5)


def test_shapes_are_known_without_a_run():
    found = jax.eval_shape(lambda x: ops.cat([x, ops.gelu(x)], 0), jax.ShapeDtypeStruct((3, 4), jnp.float32))
    assert found.shape == (6, 4) and found.dtype == jnp.float32


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: ops.laplacian(x[0]), ValueError, "self.dim() == 2"),
        (lambda x: ops.transpose_copy(x, [0, 7]), IndexError, "dimension 7 is out of range"),
        (lambda x: ops.gaussian(x, width=-1.0), ValueError, "width > 0.0"),
        (lambda x: ops.gelu(), TypeError, "`self` is missing"),
        (lambda x: ops.gelu(x, x), TypeError, "takes 1 positional arguments"),
        (lambda x: ops.gelu(x, other=1), TypeError, "`other` is given twice or no argument"),
        (lambda x: ops.call("nothing", x), LookupError, "there is no operator 'nothing'"),
        (lambda x: ops.laplacian(x.astype(int)), Exception, "there is no CPU kernel for int32"),
        (lambda x: jax.jvp(ops.gelu, (x,), (x,)), TypeError, "forward-mode"),
    ],
)
def test_mistakes(call, kind, text):
    with pytest.raises(kind) as error:
        call(example(3, 4))
    assert text in str(error.value)

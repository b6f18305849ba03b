"""Operators of a folder that ``opsmith bridge jax`` made: the package ``opsmith_example_custom_op_jax`` of the example crate with some stock
operators. ``scripts/bridges.sh`` builds it and runs this; without it, the tests are skipped."""

import os
import pathlib
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
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


def layer_norm(x, bias):
    return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5) + bias


# Further operators of the package, for values and gradients.
MORE = {
    "mul": (lambda x: ops.mul_Tensor(x, x[0]), lambda x: x * x[0]),
    "maximum": (lambda x: ops.maximum(x, x[0] + 1), lambda x: jnp.maximum(x, x[0] + 1)),
    "gt": (lambda x: ops.gt_Tensor(x, x[0]), lambda x: x > x[0]),
    "where": (lambda x: ops.where_self(x > 0, x, x[0]), lambda x: jnp.where(x > 0, x, x[0])),
    "clamp": (lambda x: ops.clamp(x, min=-0.5), lambda x: jnp.maximum(x, -0.5)),
    "exp": (ops.exp, jnp.exp),
    "gelu": (lambda x: ops.gelu(x, approximate="tanh"), jax.nn.gelu),
    "sum": (lambda x: ops.sum_dim_IntList(x, [0], True), lambda x: x.sum(0, keepdims=True)),
    "amax": (lambda x: ops.amax(x, [1]), lambda x: x.max(1)),
    "mean": (lambda x: ops.mean_dim(x, [0, 1]), jnp.mean),
    "cumsum": (lambda x: ops.cumsum(x, 1), lambda x: jnp.cumsum(x, 1)),
    "mm": (lambda x: ops.mm(x, x.T), lambda x: x @ x.T),
    "layer_norm": (lambda x: ops.layer_norm(x, [4], None, x[0]), lambda x: layer_norm(x, x[0])),
    "topk": (lambda x: ops.topk(x, 2, 1), lambda x: jax.lax.top_k(x, 2)),
    "max": (lambda x: ops.max_dim(x, 1), lambda x: (x.max(1), x.argmax(1))),
    "stack": (lambda x: ops.stack([x, x * 2]), lambda x: jnp.stack([x, x * 2])),
    "pad": (lambda x: ops.constant_pad_nd(x, [1, 2], 0.5), lambda x: jnp.pad(x, ((0, 0), (1, 2)), constant_values=0.5)),
    "roll": (lambda x: ops.roll(x, [1], [1]), lambda x: jnp.roll(x, 1, 1)),
}


@pytest.mark.parametrize("name", MORE)
def test_values_and_gradients_of_operators_of_the_package(name):
    own, expected = MORE[name]
    x = example(3, 4)
    for function in (own, jax.jit(own)):
        for one, other in zip(results(function(x)), results(expected(x)), strict=True):
            assert one.dtype == other.dtype and jnp.allclose(one, other, atol=1e-6)
    if name != "gt":
        wanted = jax.grad(squares(expected))(x)
        for transform in (jax.grad, lambda f: jax.jit(jax.grad(f))):
            assert jnp.allclose(transform(squares(own))(x), wanted, atol=1e-4)


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


def moved(function, seed=1):
    """Values and derivatives of the results with floats, along a direction."""
    direction = example(3, 4, seed=seed)

    def floats(x):
        return [one for one in results(function(x)) if jnp.issubdtype(one.dtype, jnp.floating)]

    return lambda x: jax.jvp(floats, (x,), (direction,))


@cases
def test_forward_mode_is_that_of_jax_and_of_differences(name):
    own, expected = CASES[name]
    x, step = example(3, 4), 1e-2
    wanted = moved(expected)(x)[1]
    for function in (moved(own), jax.jit(moved(own))):
        for one, other in zip(function(x)[1], wanted, strict=True):
            assert jnp.allclose(one, other, atol=1e-5)
    ahead, behind = (results(own(x + sign * step * example(3, 4, seed=1))) for sign in (1, -1))
    slopes = [(a - b) / (2 * step) for a, b in zip(ahead, behind) if jnp.issubdtype(a.dtype, jnp.floating)]
    if name != "several results":
        for one, other in zip(moved(own)(x)[1], slopes, strict=True):
            assert jnp.allclose(one, other, atol=2e-3)


@cases
@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev], ids=["forward", "reverse"])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev], ids=["forward", "reverse"])
def test_second_derivatives_in_all_orders_of_modes(name, outer, inner):
    own, expected = CASES[name]
    x = example(3, 4)
    wanted = jax.hessian(squares(expected))(x)
    for transform in (lambda f: outer(inner(f)), lambda f: jax.jit(outer(inner(f)))):
        assert jnp.allclose(transform(squares(own))(x), wanted, atol=1e-4)


@cases
def test_batches_of_derivatives(name):
    own, expected = CASES[name]
    batch, direction = example(2, 3, 4), example(3, 4, seed=1)

    def product(function):
        gradient = jax.grad(squares(function))
        return lambda x: jax.jvp(gradient, (x,), (direction,))[1]

    assert jnp.allclose(jax.vmap(product(own))(batch), jax.vmap(product(expected))(batch), atol=1e-4)
    found, wanted = (jax.jit(jax.vmap(moved(function)))(batch)[1] for function in (own, expected))
    assert all(jnp.allclose(one, other, atol=1e-5) for one, other in zip(found, wanted, strict=True))


def test_a_batch_of_a_pointwise_operator_is_one_call():
    batch, row = example(5, 3, 4), example(4, seed=1)
    text = jax.jit(jax.vmap(lambda x: ops.add_Tensor(x, row))).lower(batch).as_text()
    assert "while" not in text and "tensor<5x3x4xf32>" in text
    assert "while" in jax.jit(jax.vmap(ops.laplacian)).lower(batch).as_text()

    # An argument that all items share gets the sum of gradients, one that is batched with fewer dimensions its own.
    def total(add):
        def loss(x, y):
            return (jax.vmap(add, in_axes=(1, None))(x, y) ** 2).sum() + (jax.vmap(add, in_axes=(0, 0))(x, x[:, 0, :]) ** 3).sum()

        return jax.grad(loss, (0, 1))(example(3, 3, 4), row)

    for one, other in zip(total(ops.add_Tensor), total(jnp.add), strict=True):
        assert jnp.allclose(one, other, atol=1e-4)


def test_a_scalar_of_another_dtype_keeps_its_meaning_in_a_batch():
    with jax.enable_x64(True):
        wide = jnp.array([1.0, 2.0], jnp.float64)
        found = jax.vmap(lambda y: ops.add_Tensor(jnp.ones(3, jnp.float32), y))(wide)
        assert found.dtype == jnp.float32 and found.tolist() == [[2, 2, 2], [3, 3, 3]]


def test_linear_functions_are_kept_and_transposed():
    x = example(3, 4)
    value, pushed = jax.linearize(ops.gaussian, x)
    assert jnp.allclose(value, ops.gaussian(x)) and jnp.allclose(pushed(x), moved(lambda y: ops.gaussian(y), 0)(x)[1][0], atol=1e-6)
    assert "opsmith_tangent" in str(jax.make_jaxpr(pushed)(x))
    assert "opsmith_gradient" in str(jax.make_jaxpr(jax.linear_transpose(pushed, x))(x))
    kept = jax.checkpoint(lambda y: (ops.gaussian(ops.gelu(y)) ** 2).sum())
    assert jnp.allclose(jax.grad(kept)(x), jax.grad(lambda y: (jnp.exp(-(gelu(y) ** 2) / 2) ** 2).sum())(x), atol=1e-5)


def test_programs_have_no_callbacks():
    for function in (jax.hessian(squares(ops.heat_step)), jax.jacfwd(jax.jacfwd(squares(ops.gelu)))):
        assert "callback" not in jax.jit(function).lower(example(3, 4)).as_text()


@pytest.mark.parametrize("platforms", [("cuda",), ("cpu", "cuda")])
def test_programs_for_cuda_call_the_handlers(platforms):
    x = example(3, 4)
    for function, handler in (
        (ops.gelu, "run"),
        (jax.grad(squares(ops.gelu)), "gradient"),
        (jax.jacfwd(ops.gaussian), "tangent"),
        (jax.hessian(squares(ops.gaussian)), "gradient"),
    ):
        text = jax.jit(function).trace(x).lower(lowering_platforms=platforms).as_text()
        assert f"@opsmith_example_custom_op.{handler}" in text and "callback" not in text


def test_other_platforms_are_refused():
    with pytest.raises(NotImplementedError, match="runs on the CPU and on devices of CUDA"):
        jax.jit(ops.gelu).trace(example(3, 4)).lower(lowering_platforms=("tpu",))


@pytest.mark.skipif("OPSMITH_STAND_IN" not in os.environ, reason="OPSMITH_STAND_IN names no folder with the stand-ins for CUDA")
def test_handlers_run_in_the_stream_of_a_frame(tmp_path):
    program = pathlib.Path(__file__).with_name("xla_frames.py")
    variables = {
        **os.environ,
        "LD_LIBRARY_PATH": os.environ["OPSMITH_STAND_IN"],
        "OPSMITH_CACHE_DIR": str(tmp_path / "cache"),
        "OPSMITH_CUDA_LIBRARIES": "off",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, str(program), "folder"]
    run = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "the folder's handlers ran in the program's stream" in run.stdout


def test_shapes_are_known_without_a_run():
    found = jax.eval_shape(lambda x: ops.cat([x, ops.gelu(x)], 0), jax.ShapeDtypeStruct((3, 4), jnp.float32))
    assert found.shape == (6, 4) and found.dtype == jnp.float32


def exported(function, shapes, constraints=()):
    scope = jax.export.SymbolicScope(constraints)
    structs = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(one, scope=scope), jnp.float32) for one in shapes]
    targets = [f"opsmith_example_custom_op.{name}" for name in ("run", "gradient", "tangent")]
    checks = [jax.export.DisabledSafetyCheck.custom_call(target) for target in targets]
    return jax.export.export(jax.jit(function), disabled_checks=checks)(*structs)


SYMBOLIC = {
    "gelu": (ops.gelu, ["rows, 4"], ()),
    "add": (lambda x, y: ops.add_Tensor(x, y, alpha=2), ["a, b", "b"], ()),
    "softmax": (lambda x: ops.softmax_int(x, 1), ["a, b"], ()),
    "cat": (lambda x, y: ops.cat([x, y, x], 0), ["a, c", "b, c"], ()),
    "laplacian": (ops.laplacian, ["h, w"], ("h >= 3", "w >= 3")),
    "transpose_copy": (lambda x: ops.transpose_copy(x, [1, 0]), ["a, b"], ()),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_one_exported_program_serves_all_sizes(name):
    function, shapes, constraints = SYMBOLIC[name]
    slopes = jax.grad(lambda *args: (function(*args) ** 2).sum(), tuple(range(len(shapes))))
    programs = [(exported(one, shapes, constraints), one) for one in (function, slopes)]
    for sizes in ({"rows": 3, "a": 2, "b": 3, "c": 4, "h": 5, "w": 6}, {"rows": 6, "a": 4, "b": 7, "c": 2, "h": 9, "w": 8}):
        made = np.random.default_rng(0)
        arrays = [[int(sizes.get(one, one)) for one in shape.split(", ")] for shape in shapes]
        arrays = [jnp.array(made.standard_normal(shape), jnp.float32) for shape in arrays]
        for program, one in programs:
            for found, wanted in zip(jax.tree.leaves(program.call(*arrays)), jax.tree.leaves(one(*arrays)), strict=True):
                np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_sizes_of_results_are_formulas():
    assert str(exported(*SYMBOLIC["cat"]).out_avals[0].shape) == "(b + 2*a, c)"
    with pytest.raises(ValueError, match="not possible for all values of their symbols: needed is"):
        exported(SYMBOLIC["add"][0], ["a, b", "c"])


def test_a_size_that_a_run_decides_is_no_part_of_a_formula():
    kinds = ops._abi.NODES
    nodes = [SimpleNamespace(kind=kinds[f"NODE_{kind}"], a=a, b=b) for kind, a, b in (("FRESH", 0, -1), ("NUMBER", 1, 0), ("ADD", 0, 1))]
    sizes = ops._abi._Sizes(SimpleNamespace(nodes=nodes, guard_count=0), [], ops._NUMBERS)
    assert sizes.size(1) == 1
    for place in (0, 2):
        with pytest.raises(NotImplementedError, match="known after a run only"):
            sizes.size(place)


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
        (lambda x: jax.grad(jax.grad(jax.grad(lambda y: ops.gelu(y))))(x[0, 0]), NotImplementedError, "first and second order only"),
    ],
)
def test_mistakes(call, kind, text):
    with pytest.raises(kind) as error:
        call(example(3, 4))
    assert text in str(error.value)

"""The bridge to JAX: values, gradients, `jit` and `vmap` of operators are those of opsmith and of JAX."""

import concurrent.futures
import re
import subprocess
import sys

import numpy as np
import pytest

import guide
import opsmith
from opsmith._signature import MISSING, chosen
from opsmith._signature import mapped as mapped_own

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

import opsmith.jax  # noqa: E402

ENTRIES = {entry.name: entry for entry in chosen(opsmith, None)}
REFUSED = opsmith.jax.unsupported()
# Entries whose derivative is declared not to exist.
WITHOUT_DERIVATIVE = {"histc", "heaviside", "linalg_lu_factor_ex"}
# Elements of memory that nothing was written into.
WITHOUT_VALUES = {"empty_like", "new_empty", "new_empty_strided"}


@pytest.fixture(autouse=True)
def wide_numbers():
    """Numbers of 64 bits, as opsmith has them."""
    with jax.enable_x64(True):
        yield


def calls(name):
    """The samples of an operator, with tensors of opsmith."""
    entry = ENTRIES[name]
    for positional, named in entry.calls():
        given = {argument: one for (argument, *_), one in zip(entry.arguments, positional) if one is not MISSING}
        yield {**given, **named}


def to_jax(value):
    return mapped_own(value, opsmith.jax.to_jax)


@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in REFUSED and name not in WITHOUT_VALUES])
def test_values_and_gradients_are_those_of_opsmith(name):
    function = opsmith.jax.operator(name)
    entry = ENTRIES[name]
    differentiable = entry.is_differentiable() and name not in WITHOUT_DERIVATIVE
    for given in calls(name):
        own = {key: mapped_own(value, tracked if differentiable else lambda one: one) for key, value in given.items()}
        expected = opsmith.call(name, **own)
        expected = list(expected) if isinstance(expected, tuple) else [expected]

        arrays, rebuilt = split(given)
        run = jax.jit(lambda *arrays: function(**rebuilt(arrays)))
        if name == "index.Tensor" and any(one.dtype is opsmith.bool_ for one in leaves_of(own.values())):
            with pytest.raises(NotImplementedError, match="sizes of the results are known after a run only"):
                run(*arrays)
            continue
        found = run(*arrays)
        found = list(found) if isinstance(found, (list, tuple)) else [found]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other.detach()), rtol=1e-5, atol=1e-6)
            assert one.dtype == np.asarray(other.detach()).dtype

        leaves = [one for one in leaves_of(own.values()) if one.requires_grad]
        flowing = [one for one in expected if one.requires_grad]
        if not flowing or not leaves or any(one.dtype.is_complex for one in [*leaves, *flowing]):
            continue
        gradients = opsmith.grad([one.sum() for one in flowing], leaves)

        def total(*arrays):
            results = function(**rebuilt(arrays))
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            return sum(one.sum() for one, other in zip(results, expected) if other.requires_grad)

        places = tuple(at for at, array in enumerate(arrays) if jnp.issubdtype(array.dtype, jnp.inexact))
        found = jax.grad(total, places)(*arrays)
        for one, other in zip(found, gradients, strict=True):
            other = np.zeros(one.shape) if other is None else np.asarray(other.detach())
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)

        def moved(*chosen):
            replaced = dict(zip(places, chosen))
            return total(*(replaced.get(at, array) for at, array in enumerate(arrays)))

        # Forward mode gives the same sum of derivatives along a direction.
        starts = [arrays[at] for at in places]
        along = [jnp.cos(jnp.arange(one.size, dtype=one.dtype)).reshape(one.shape) for one in starts]
        try:
            slope = jax.jvp(jax.jit(moved), starts, along)[1]
        except jax.errors.JaxRuntimeError as error:
            # Forward mode transposes the gradient, of which a few samples have no derivative.
            assert "the derivative is not implemented" in str(error) and "in forward mode" in str(error)
            continue
        expected = sum((one * other).sum() for one, other in zip(found, along))
        np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-4)


def tracked(tensor):
    inexact = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    return tensor.detach().requires_grad_() if inexact else tensor


def leaves_of(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from leaves_of(value)
        elif isinstance(value, opsmith.Tensor):
            yield value


def split(given):
    """The arrays of arguments, and a function that puts others in their places."""
    arrays = [opsmith.jax.to_jax(one) for one in leaves_of(given.values())]

    def rebuilt(others):
        rest = iter(others)
        return {key: mapped_own(value, lambda _: next(rest)) for key, value in given.items()}

    return arrays, rebuilt


def test_every_operator_is_a_function_or_listed_with_the_reason():
    assert 480 < len(ENTRIES) - len(REFUSED) < len(ENTRIES)
    assert REFUSED["nonzero"] == "sizes of its results are known after a run only"
    assert "draws random numbers" in REFUSED["native_dropout"] and "transpose.int" not in REFUSED
    with pytest.raises(NotImplementedError, match="`nonzero` cannot be an operator of JAX"):
        opsmith.jax.operator("nonzero")
    with pytest.raises(LookupError, match="there is no operator 'nosuch'"):
        opsmith.jax.operator("nosuch")


def test_overloads_are_chosen_by_arguments():
    x = jnp.array([[1.0, 3.0], [4.0, 2.0]])
    assert opsmith.jax.call("add", x, 1).tolist() == [[2, 4], [5, 3]]
    assert opsmith.jax.call("add", x, x, alpha=2).tolist() == [[3, 9], [12, 6]]
    assert opsmith.jax.call("max", x).item() == 4
    values, indices = opsmith.jax.call("max", x, 1)
    assert values.tolist() == [3, 4] and indices.tolist() == [1, 0]
    with pytest.raises(TypeError, match="no overload of `add` takes these arguments"):
        opsmith.jax.call("add", x, "one")


def test_transforms():
    tanh = opsmith.jax.operator("tanh")
    x = jnp.array([0.5, -1.0, 2.0])
    loss, same = (lambda x: (tanh(x) ** 2).sum()), (lambda x: (jnp.tanh(x) ** 2).sum())
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x), jax.grad(same)(x), rtol=1e-6)
    np.testing.assert_allclose(jax.jacrev(jax.jacrev(loss))(x), jax.hessian(same)(x), rtol=1e-5)
    batched = jax.vmap(lambda a, b: opsmith.jax.call("matmul", a, b), in_axes=(0, None))
    a, b = jnp.arange(24.0).reshape(2, 3, 4), jnp.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(batched(a, b), a @ b)
    np.testing.assert_allclose(jax.vmap(jax.grad(loss))(jnp.stack([x, x * 2])), jax.vmap(jax.grad(same))(jnp.stack([x, x * 2])))


@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev], ids=["forward", "reverse"])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev], ids=["forward", "reverse"])
def test_both_modes_of_differentiation_compose(outer, inner):
    call = opsmith.jax.call
    x = jnp.array([[0.5, -1.0, 2.0], [0.1, 0.7, -0.3]])
    pairs = [
        (lambda x: (call("gelu", x) ** 2).sum(), lambda x: (jax.nn.gelu(x, approximate=False) ** 2).sum()),
        (lambda x: (call("softmax", x, 1) ** 2).sum(), lambda x: (jax.nn.softmax(x, 1) ** 2).sum()),
        (lambda x: (call("cat", [x, x * 2], 1) ** 3).sum(), lambda x: (jnp.concatenate([x, x * 2], 1) ** 3).sum()),
        (lambda x: (call("sort", x, 1)[0] ** 3 * jnp.arange(3)).sum(), lambda x: (jnp.sort(x, 1) ** 3 * jnp.arange(3)).sum()),
        (lambda x: (call("mul", x, x[0]) ** 2).sum(), lambda x: ((x * x[0]) ** 2).sum()),
    ]
    for own, same in pairs:
        wanted = jax.hessian(same)(x)
        for function in (outer(inner(own)), jax.jit(outer(inner(own)))):
            np.testing.assert_allclose(function(x), wanted, rtol=1e-6, atol=1e-9)
        assert "callback" not in jax.jit(outer(inner(own))).lower(x).as_text()


def test_forward_mode_is_that_of_differences():
    x, along, step = jnp.array([0.5, -1.0, 2.0]), jnp.array([1.0, 2.0, -0.5]), 1e-5
    tanh = opsmith.jax.operator("tanh")
    slope = jax.jvp(tanh, (x,), (along,))[1]
    np.testing.assert_allclose(slope, (tanh(x + step * along) - tanh(x - step * along)) / (2 * step), rtol=1e-8)
    np.testing.assert_allclose(jax.jacfwd(tanh)(x), jax.jacrev(tanh)(x), rtol=1e-6)
    np.testing.assert_allclose(jax.linearize(tanh, x)[1](along), slope, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="first and second order only"):
        jax.grad(jax.grad(jax.grad(tanh)))(0.5)


def test_batches_of_pointwise_operators_are_one_call():
    add, softmax = opsmith.jax.operator("add.Tensor"), opsmith.jax.operator("softmax.int")
    batch, row = jnp.arange(24.0).reshape(2, 3, 4), jnp.arange(4.0)
    text = jax.jit(jax.vmap(lambda x: add(x, row))).lower(batch).as_text()
    assert "while" not in text and "tensor<2x3x4xf64>" in text
    assert "while" in jax.jit(jax.vmap(lambda x: softmax(x, 1))).lower(batch).as_text()

    def total(function):
        return lambda x, y: (jax.vmap(function, in_axes=(1, None))(x, y) ** 2).sum() + (jax.vmap(function)(x[:, 0], y[:2]) ** 3).sum()

    for one, other in zip(jax.grad(total(add), (0, 1))(batch, row), jax.grad(total(jnp.add), (0, 1))(batch, row), strict=True):
        np.testing.assert_allclose(one, other)
    # A number of dimensions decides this dtype, so that each item is a call.
    found = jax.vmap(lambda y: add(jnp.ones(3, jnp.float32), y))(jnp.array([1.0, 2.0]))
    assert found.dtype == jnp.float32 and found.tolist() == [[2, 2, 2], [3, 3, 3]]


def test_gradients_of_complex_numbers_are_those_of_jax():
    x, y = jnp.array([0.3 + 0.4j, -1.0 + 2.0j]), jnp.array([1.5 - 0.5j, 0.2 + 0.1j])
    mul, exp = opsmith.jax.operator("mul"), opsmith.jax.operator("exp")

    def loss(multiply, exponential):
        return lambda x, y: (exponential(multiply(x, y)) * (2 - 1j)).real.sum()

    ours, theirs = loss(mul, exp), loss(jnp.multiply, jnp.exp)
    for one, other in zip(jax.grad(ours, (0, 1))(x, y), jax.grad(theirs, (0, 1))(x, y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    twice = lambda function: jax.grad(lambda x: jnp.abs(jax.grad(function)(x, y)).sum())(x)  # noqa: E731
    np.testing.assert_allclose(twice(ours), twice(theirs), rtol=1e-5)
    along = jnp.array([1.0 - 2.0j, 0.5j])
    for function in (lambda f: jax.jvp(lambda x: f(x, y), (x,), (along,))[1], lambda f: jax.jvp(jax.grad(f), (x, y), (along, along))[1]):
        np.testing.assert_allclose(function(ours), function(theirs), rtol=1e-6)


def test_numbers_of_32_bits_are_enough():
    with jax.enable_x64(False):
        x = jnp.arange(6.0).reshape(3, 2)
        assert opsmith.jax.call("index_select", x, 0, jnp.array([0, 2])).tolist() == [[0, 1], [4, 5]]
        assert opsmith.jax.call("argmax", x, 0).dtype == jnp.int32


def test_mistakes_are_exceptions_when_jax_traces():
    with pytest.raises(opsmith.ShapeError, match="the inner sizes of the product differ"):
        jax.jit(lambda x: opsmith.jax.call("matmul", x, x))(jnp.ones((2, 3)))
    with pytest.raises(TypeError, match="do not fit"):
        opsmith.jax.operator("gelu")(jnp.ones(2), nothing=1)


def test_programs_call_the_handler_on_the_memory_of_jax():
    gelu = opsmith.jax.operator("gelu")
    x = jnp.ones(3)
    assert "opsmith_call" in jax.jit(gelu).lower(x).as_text()
    assert "opsmith_call" in jax.jit(jax.grad(lambda x: gelu(x).sum())).lower(x).as_text()
    program = jax.export.export(jax.jit(gelu), disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("opsmith_call")])(x)
    again = jax.export.deserialize(program.serialize())
    np.testing.assert_allclose(again.call(x), gelu(x))


@pytest.mark.parametrize("platforms", [("cuda",), ("cpu", "cuda")])
def test_programs_for_cuda_call_the_handler_too(platforms):
    gelu, x = opsmith.jax.operator("gelu"), jnp.ones(3)
    functions = (gelu, jax.grad(lambda x: gelu(x).sum()), jax.hessian(lambda x: gelu(x).sum()), jax.vmap(gelu))
    for function in functions:
        text = jax.jit(function).trace(x).lower(lowering_platforms=platforms).as_text()
        assert "@opsmith_call" in text and "callback" not in text
    checks = [jax.export.DisabledSafetyCheck.custom_call("opsmith_call")]
    program = jax.export.export(jax.jit(gelu), platforms=platforms, disabled_checks=checks)(x)
    assert program.platforms == platforms and "opsmith_call" in program.mlir_module()


def test_programs_for_other_platforms_call_python():
    gelu, x = opsmith.jax.operator("gelu"), jnp.ones(3)
    # JAX makes callbacks for the process's own platform alone.
    with pytest.raises(ValueError, match="platform for the specified backend"):
        jax.jit(gelu).trace(x).lower(lowering_platforms=("tpu",))


def test_a_saved_program_runs_in_another_process(tmp_path):
    gelu = opsmith.jax.operator("leaky_relu")
    checks = [jax.export.DisabledSafetyCheck.custom_call("opsmith_call")]
    program = jax.export.export(jax.jit(lambda x: gelu(x, 0.5)), disabled_checks=checks)(jnp.ones(3, dtype=jnp.float32))
    (tmp_path / "program").write_bytes(program.serialize())
    text = """
import pathlib, jax, numpy, opsmith.jax
program = jax.export.deserialize(bytearray(pathlib.Path("program").read_bytes()))
print(program.call(numpy.array([-2, 0, 3], dtype="float32")).tolist())
"""
    run = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.strip() == "[-1.0, 0.0, 3.0]", run.stderr


SYMBOLIC = {
    "gelu": (lambda x: opsmith.jax.call("gelu", x), ["rows, 4"]),
    "add": (lambda x, y: opsmith.jax.call("add.Tensor", x, y, alpha=2), ["a, b", "b"]),
    "matmul": (lambda x, y: opsmith.jax.call("matmul", x, y), ["a, b", "b, c"]),
    "layer_norm": (lambda x: opsmith.jax.call("layer_norm", x, [4]), ["rows, 4"]),
    "softmax": (lambda x: opsmith.jax.call("softmax.int", x, 1), ["a, b"]),
    "sum": (lambda x: opsmith.jax.call("sum.dim_IntList", x, [0]), ["a, b"]),
    "sort": (lambda x: opsmith.jax.call("sort", x, 1)[0], ["a, b"]),
    "cat": (lambda x, y: opsmith.jax.call("cat", [x, y, x], 0), ["a, c", "b, c"]),
    "conv2d": (lambda x, w: opsmith.jax.call("conv2d", x, w), ["n, 2, h, w", "3, 2, 3, 3"]),
}
SIZES = [
    {"rows": 3, "a": 2, "b": 3, "c": 4, "n": 1, "h": 5, "w": 6},
    {"rows": 6, "a": 4, "b": 7, "c": 2, "n": 2, "h": 9, "w": 8},
]


def exported(function, shapes, constraints=None):
    if constraints is None:
        constraints = [f"{size} >= 3" for size in "hw" if size in re.findall(r"\w+", " ".join(shapes))]
    scope = jax.export.SymbolicScope(constraints)
    structs = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(one, scope=scope), jnp.float32) for one in shapes]
    checks = [jax.export.DisabledSafetyCheck.custom_call("opsmith_call")]
    return jax.export.export(jax.jit(function), disabled_checks=checks)(*structs)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_one_exported_program_serves_all_sizes(name):
    function, shapes = SYMBOLIC[name]
    slopes = jax.grad(lambda *args: (function(*args) ** 2).sum(), tuple(range(len(shapes))))
    programs = [(exported(one, shapes), one) for one in (function, slopes)]
    for sizes in SIZES:
        made = np.random.default_rng(0)
        arrays = [[int(sizes.get(one, one)) for one in shape.split(", ")] for shape in shapes]
        arrays = [jnp.array(made.standard_normal(shape), jnp.float32) for shape in arrays]
        for program, one in programs:
            for found, wanted in zip(jax.tree.leaves(program.call(*arrays)), jax.tree.leaves(one(*arrays)), strict=True):
                np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_sizes_of_results_are_formulas():
    cat, pool = SYMBOLIC["cat"], lambda x: opsmith.jax.call("max_pool2d", x, [2, 2])
    assert str(exported(*cat).out_avals[0].shape) == "(b + 2*a, c)"
    assert str(exported(pool, ["n, 2, 2*h, 2*w"]).out_avals[0].shape) == "(n, 2, h, w)"
    with pytest.raises(ValueError, match="do not|not possible"):
        exported(SYMBOLIC["add"][0], ["a, b", "c"])
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="'h' < '3'"):
        exported(*SYMBOLIC["conv2d"], constraints=())


def test_mistakes_in_elements_are_errors_of_the_program():
    with pytest.raises(jax.errors.JaxRuntimeError, match="index_select"):
        opsmith.jax.call("index_select", jnp.ones((3, 2)), 0, jnp.array([7])).block_until_ready()


def test_threads_run_programs():
    gelu = jax.jit(opsmith.jax.operator("gelu"))
    inputs = [jnp.full(1000, float(at)) for at in range(8)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: [gelu(x).sum().item() for _ in range(20)], inputs))
    assert all(len(set(one)) == 1 for one in found) and len({one[0] for one in found}) == 8


def test_arrays_are_not_written():
    x = jnp.ones(3)
    own = opsmith.jax.asarray(x)
    own += 1
    assert x.tolist() == [1, 1, 1] and opsmith.jax.to_jax(own).tolist() == [2, 2, 2]


def test_the_blocks_of_the_guide_run(monkeypatch, tmp_path):
    with jax.enable_x64(False):
        guide.run("JAX", monkeypatch, tmp_path)


def test_examples_run():
    import doctest

    with jax.enable_x64(False):
        failed, count = doctest.testmod(opsmith.jax, extraglobs={"jax": jax, "opsmith": opsmith})
    assert failed == 0 and count == 5

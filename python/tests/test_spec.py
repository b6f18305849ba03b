"""Specs that a program loads: values, forms, gradients, graphs, mistakes; custom kernels; other frameworks."""

import inspect
import itertools
import pathlib
import pickle
import shutil

import numpy as np
import pytest

import opsmith
from opsmith.testing import between

ROOT = pathlib.Path(__file__).resolve().parents[2]

SPEC = """
edition: 1
ops:
- func: softclip(Tensor self, *, float limit=1.0) -> Tensor
  doc: A smooth bound of each element.
  variants: [functional, inplace, out]
  check: [limit > 0.0]
  shape: follow(self)
  dtype: promote_float(self)
  pointwise: limit * tanh(self / limit)
  samples: [{self: "spread(2, 3)", limit: 2.0}]

- func: blend(Tensor self, Tensor other, Scalar weight) -> Tensor
  doc: A weighted mean.
  pointwise: self + weight * (other - self)

- func: blend.Tensor(Tensor self, Tensor other, Tensor weight) -> Tensor
  doc: A mean with a weight for each element.
  pointwise: self + weight * (other - self)

- func: quotient(Tensor self, Tensor other) -> Tensor
  doc: The quotient, or 0 where the divisor is.
  dtypes: real_numeric
  pointwise: if other == 0 { 0 } else { trunc_div(self, other) }

- func: centered(Tensor self, int dim=0) -> Tensor
  doc: Differences from the mean along a dimension.
  decompose: self - mean(self, [dim], true)

- func: gaussian(Tensor self, *, float width=1.0) -> Tensor
  doc: The bell curve.
  dtype: promote_float(self)
  dtypes: real
  pointwise: exp(-(self * self) / (2.0 * width * width))
  derivatives:
    self: grad * result * self * (-1.0 / (width * width))

- func: extremes(Tensor self) -> (Tensor low, Tensor high)
  doc: The least and the greatest element.
  decompose: (amin(self), amax(self))
"""


@pytest.fixture(scope="module")
def ops():
    return opsmith.load_spec(SPEC)


def test_values_dtypes_and_broadcasting(ops):
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    got = ops.softclip(opsmith.asarray(x), limit=2.0).numpy()
    assert np.allclose(got, 2 * np.tanh(x / 2), atol=1e-6)
    assert ops.softclip(opsmith.tensor([1, 2])).dtype is opsmith.float32
    assert ops.softclip(opsmith.tensor([1.0], dtype="float64")).dtype is opsmith.float64
    a, b = opsmith.arange(6).reshape(2, 3), opsmith.tensor([10, 20, 30])
    assert ops.blend(a, b, 1).tolist() == [[10, 20, 30], [10, 20, 30]]
    assert ops.blend(a, b, opsmith.tensor([[0], [1]])).tolist() == [[0, 1, 2], [10, 20, 30]]
    assert ops.blend(a, b, 0.5).dtype is opsmith.float32


def test_elements_at_any_stride_and_in_threads(ops):
    x = np.random.default_rng(0).standard_normal((600, 700)).astype(np.float32)
    whole = ops.softclip(opsmith.asarray(x)).numpy()
    assert np.array_equal(ops.softclip(opsmith.asarray(x).transpose(0, 1)).numpy(), whole.T)
    assert np.array_equal(ops.softclip(opsmith.asarray(x)[::3, 1::2]).numpy(), whole[::3, 1::2])
    y = opsmith.asarray(x[0])
    assert np.array_equal(ops.blend(opsmith.asarray(x), y, 0.25).numpy(), x + np.float32(0.25) * (x[0] - x))


def test_a_branch_is_computed_where_it_is_taken(ops):
    a, b = opsmith.tensor([7, -7, 7, 5]), opsmith.tensor([2, 2, 0, -2])
    assert ops.quotient(a, b).tolist() == [3, -3, 0, -2]


def test_forms(ops):
    x = opsmith.tensor([0.0, 5.0])
    kept = x.clone()
    out = opsmith.zeros([2])
    assert ops.softclip(x, out=out) is out
    assert ops.softclip_(x) is x
    assert x.tolist() == out.tolist() == ops.softclip(kept).tolist()


def test_several_results_have_names(ops):
    low, high = ops.extremes(opsmith.tensor([3.0, -1.0, 2.0]))
    assert (low.item(), high.item()) == (-1, 3)
    assert ops.extremes(opsmith.tensor([1.0])).high.item() == 1


def numeric(function, x):
    step = 1e-6
    parts = [(function(x + step * row) - function(x - step * row)) / (2 * step) for row in np.eye(x.size).reshape(-1, *x.shape)]
    return np.array(parts).reshape(x.shape)


@pytest.mark.parametrize("name", ["softclip", "gaussian", "centered"])
def test_gradients(ops, name):
    function = getattr(ops, name)
    x = np.random.default_rng(1).standard_normal((3, 2))
    weights = np.random.default_rng(2).standard_normal((3, 2))
    leaf = opsmith.asarray(x.copy()).requires_grad_()
    (function(leaf) * weights).sum().backward()
    expected = numeric(lambda x: float((function(opsmith.asarray(x)).numpy() * weights).sum()), x)
    assert np.allclose(leaf.grad.numpy(), expected, atol=1e-7)
    _, tangent = opsmith.jvp(function, opsmith.asarray(x), opsmith.asarray(weights))
    slope = numeric(lambda x: float(function(opsmith.asarray(x)).numpy().sum()), x)
    assert np.isclose(tangent.detach().numpy().sum(), (slope * weights).sum(), atol=1e-6)


def test_second_derivatives(ops):
    x = opsmith.tensor([0.3, -0.7], dtype="float64", requires_grad=True)
    (first,) = opsmith.grad(ops.softclip(x).sum(), x, create_graph=True)
    (second,) = opsmith.grad(first.sum(), x)
    tanh = np.tanh(x.detach().numpy())
    assert np.allclose(second.numpy(), -2 * tanh * (1 - tanh**2))


def test_graphs(ops):
    @opsmith.graph(opsmith.InputSpec(["batch", 3], name="x"))
    def model(x):
        return ops.centered(ops.softclip(x) + ops.blend(x, x * 2, 0.5), 1)

    for batch in (1, 5):
        x = opsmith.randn([batch, 3])
        expected = ops.centered(ops.softclip(x) + ops.blend(x, x * 2, 0.5), 1)
        assert model(x).tolist() == expected.tolist()
    (graph,) = model.graphs.values()
    assert "softclip" in graph.describe() and "(batch, 3)" in graph.describe()
    with pytest.raises(opsmith.Error, match="declared while the program ran"):
        graph.save("model.json")


def test_signatures_and_documentation(ops):
    assert str(inspect.signature(ops.softclip)) == "(input, *, limit=1.0, out=None)"
    assert "A smooth bound of each element." in ops.softclip.__doc__ and "ops.softclip(between(" in ops.softclip.__doc__
    assert "softclip" in dir(ops) and "blend" in ops and list(ops)[:2] == ["blend", "blend_"] and len(ops) == 10 and inspect.ismodule(ops)
    with pytest.raises(AttributeError, match="did you mean 'softclip'"):
        ops.softclop
    assert "softclip" in repr(ops)


def test_errors_of_calls(ops):
    with pytest.raises(opsmith.ShapeError, match=r"`limit > 0.0` does not hold"):
        ops.softclip(opsmith.ones([2]), limit=-1.0)
    with pytest.raises(opsmith.ShapeError, match="blend"):
        ops.blend(opsmith.ones([2]), opsmith.ones([3]), 1)
    with pytest.raises(opsmith.ArgumentError, match="no overload of `blend` takes"):
        ops.blend(opsmith.ones([2]), opsmith.ones([2]), "half")
    with pytest.raises(opsmith.Error, match="quotient"):
        ops.quotient(opsmith.tensor([True]), opsmith.tensor([True]))


MISTAKES = """edition: 1
ops:
- func: twice(Tensor self) -> Tensor
  doc: Twice.
  pointwise: 2 * slef
- func: thrice(Tensor self) -> Tensor
  doc: Thrice.
  pointwise: 3 * tan_h(self)
"""


def test_all_mistakes_of_a_spec_are_one_exception():
    with pytest.raises(opsmith.SpecError) as caught:
        opsmith.load_spec(MISTAKES, name="mistakes.yaml")
    error = caught.value
    assert isinstance(error, ValueError) and isinstance(error, opsmith.Error)
    first, second = error.diagnostics
    assert (first.severity, first.file, first.line, first.column) == ("error", "mistakes.yaml", 5, 18)
    assert "slef" in first.message and "self" in first.help
    assert second.line == 8 and "tanh" in second.help
    assert "5 |   pointwise: 2 * slef\n" in str(error) and "^^^^" in str(error) and "2 errors" in str(error)
    assert pickle.loads(pickle.dumps(error)).diagnostics == error.diagnostics


def test_files(tmp_path):
    path = tmp_path / "my_ops.yaml"
    path.write_text(SPEC)
    assert opsmith.load_spec(path).softclip(opsmith.zeros([1])).tolist() == [0]
    assert opsmith.load_spec(str(path)).softclip.__module__ == "my_ops"
    with pytest.raises(OSError, match="nothing.yaml"):
        opsmith.load_spec(tmp_path / "nothing.yaml")


def test_a_kernel_in_rust_is_refused_with_advice():
    spec = """edition: 1
ops:
- func: laplacian(Tensor self) -> Tensor
  doc: The Laplacian of a grid.
  shape: follow(self)
  dtype: follow(self)
  dtypes: floating
  dispatch: {CPU: grid::laplacian}
"""
    with pytest.raises(opsmith.SpecError) as caught:
        opsmith.load_spec(spec)
    (mistake,) = [one for one in caught.value.diagnostics if one.severity == "error"]
    assert mistake.line == 8 and "kernel in Rust" in mistake.message and "opsmith init --python" in mistake.help


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="there is no compiler of C++")
def test_custom_kernels(tmp_path):
    kernel = ROOT / "examples" / "aot" / "kernels" / "add_reduce.cc"
    if not kernel.exists():
        pytest.skip("the examples are not here")
    (tmp_path / "add_reduce.cc").write_text(kernel.read_text())
    (tmp_path / "ops.yaml").write_text("""edition: 1
ops:
- func: add_reduce(Tensor x, Tensor y, *, int axis=1, bool keep_dim=False) -> Tensor
  doc: The sum of `x + y` over `axis`.
  shape: reduce(x, [axis], keep_dim)
  dtype: follow(x)
  dtypes: float32
  dispatch: {CPU: "aot:add_reduce.cc:CustomKernel"}
  derivatives:
    x, y: |
      {
        let wide = if keep_dim { grad } else { unsqueeze(grad, axis) };
        (expand(wide, x.sizes()), expand(wide, x.sizes()))
      }
""")
    ops = opsmith.load_spec(tmp_path / "ops.yaml")
    x = opsmith.ones([4, 5]).requires_grad_()
    out = ops.add_reduce(x, opsmith.ones([4, 5]))
    assert out.tolist() == [10] * 4
    out.sum().backward()
    assert x.grad.tolist() == [[1] * 5] * 4


SOFTCLIP = np.linspace(-2, 2, 5, dtype=np.float32)
CLIPPED, SLOPES = 2 * np.tanh(SOFTCLIP / 2), 1 - np.tanh(SOFTCLIP / 2) ** 2


def test_pytorch(ops):
    torch = pytest.importorskip("torch")
    import opsmith.torch

    opsmith.torch.register(library=ops, namespace="loaded_spec")
    x = torch.tensor(SOFTCLIP, requires_grad=True)
    out = torch.ops.loaded_spec.softclip(x, limit=2.0)
    out.sum().backward()
    assert np.allclose(out.detach(), CLIPPED) and np.allclose(x.grad, SLOPES, atol=1e-6)


def test_forms_that_write_in_pytorch(ops):
    torch = pytest.importorskip("torch")
    import opsmith.torch

    mine = opsmith.torch.register(["softclip"], library=ops, namespace="loaded_forms")
    assert mine.names == ["softclip", "softclip_", "softclip.out"]
    x, out = torch.tensor(SOFTCLIP), torch.empty(len(SOFTCLIP))
    version = x._version
    assert mine.softclip.out(x, limit=2.0, out=out) is out and np.allclose(out, CLIPPED)
    assert mine.softclip_(x, limit=2.0) is x and np.allclose(x, CLIPPED) and x._version == version + 1
    tracked = torch.tensor(SOFTCLIP, requires_grad=True)
    mine.softclip_(tracked * 1, limit=2.0).sum().backward()
    assert np.allclose(tracked.grad, SLOPES, atol=1e-6)
    for form, given in ((mine.softclip_.default, {}), (mine.softclip.out, {"out": torch.empty(len(SOFTCLIP))})):
        found = torch.library.opcheck(form, (torch.tensor(SOFTCLIP),), {"limit": 2.0, **given})
        assert set(found.values()) == {"SUCCESS"}
    found = torch.compile(lambda x: mine.softclip(x, limit=2.0), fullgraph=True)(torch.tensor(SOFTCLIP))
    assert np.allclose(found, CLIPPED)
    with pytest.raises(opsmith.ArgumentError, match="softclip"):
        mine.softclip.out(x, limit=2.0, out=out, _form=True)


def test_jax(ops):
    jax = pytest.importorskip("jax")
    import opsmith.jax

    softclip = opsmith.jax.operator("softclip", library=ops)
    call = lambda x: softclip(x, limit=2.0)  # noqa: E731
    x = jax.numpy.array(SOFTCLIP)
    assert np.allclose(jax.jit(call)(x), CLIPPED, atol=1e-6)
    assert np.allclose(jax.grad(lambda x: call(x).sum())(x), SLOPES, atol=1e-6)
    assert np.allclose(jax.vmap(call)(x.reshape(5, 1)).ravel(), CLIPPED, atol=1e-6)
    # Forward mode, and both orders of both modes: functions of Python here.
    assert np.allclose(jax.jvp(call, (x,), (x,))[1], SOFTCLIP * SLOPES, atol=1e-6)
    wanted = jax.hessian(lambda x: (4 * jax.numpy.tanh(x / 2) ** 2).sum())(x)
    for outer, inner in itertools.product((jax.jacfwd, jax.jacrev), repeat=2):
        assert np.allclose(outer(inner(lambda x: (call(x) ** 2).sum()))(x), wanted, atol=1e-5)
    centered = opsmith.jax.operator("centered", library=ops)
    assert np.allclose(jax.jacfwd(centered)(x), np.eye(5) - 0.2, atol=1e-6)


def test_onnxruntime(ops):
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    import opsmith.onnxruntime

    (known,) = opsmith.onnxruntime.register(["softclip"], library=ops)
    node = opsmith.onnxruntime.node("softclip", ["x"], ["y"], library=ops, limit=2.0)
    assert known == f"{node.domain}::softclip"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([node], "loaded", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(node.domain, 1)]
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(opsmith.onnxruntime.library(names=["add.Tensor"]))
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    assert session.get_outputs()[0].shape == ["n"]
    assert np.allclose(session.run(None, {"x": SOFTCLIP})[0], CLIPPED, atol=1e-6)


def test_mindspore(ops):
    mindspore = pytest.importorskip("mindspore")
    import opsmith.mindspore

    softclip = opsmith.mindspore.operator("softclip", library=ops, limit=2.0)

    def call(x):
        return softclip(x)

    for mode in (mindspore.PYNATIVE_MODE, mindspore.GRAPH_MODE):
        mindspore.set_context(mode=mode)
        x = mindspore.Tensor(SOFTCLIP)
        assert np.allclose(softclip(x).asnumpy(), CLIPPED, atol=1e-6)
        assert np.allclose(mindspore.grad(call)(x).asnumpy(), SLOPES, atol=1e-6)


def test_tvm_ffi(ops):
    pytest.importorskip("tvm_ffi")
    import opsmith.tvm_ffi

    found = opsmith.tvm_ffi.function("softclip", library=ops)(SOFTCLIP, 2.0)
    assert np.allclose(np.from_dlpack(found), CLIPPED, atol=1e-6)


def test_samples_run(ops):
    result = ops.softclip(between([2, 3], -1.0, 1.0), limit=2.0)
    assert result.shape == (2, 3)


def test_names_that_python_reserves_or_a_module_has():
    entry = "- func: {}(Tensor self) -> Tensor\n  doc: The double.\n  variants: [functional, inplace]\n  pointwise: 2 * self\n"
    words = ["lambda", "class", "pass", "global", "with", "assert", "print"]
    ops = opsmith.load_spec("edition: 1\nops:\n" + "".join(map(entry.format, words)))
    assert list(ops) == sorted(list(ops)) and len(set(ops)) == len(ops) == 14
    for word in words:
        name = word if word == "print" else f"{word}_"
        x = opsmith.ones([2])
        assert getattr(ops, name)(x).tolist() == [2, 2] and x.tolist() == [1, 1], word
        assert getattr(ops, f"{name}_")(x) is x and x.tolist() == [2, 2], word
    # State of the module has no name that an operator can have.
    ops = opsmith.load_spec("edition: 1\nops:\n" + "".join(map(entry.format, ["_names", "_own"])))
    assert list(ops) == ["_names", "_names_", "_own", "_own_"] and "_own" in ops and len(ops) == 4
    assert ops._own(opsmith.ones([1])).tolist() == [2] and len(ops._definitions()) == 2
    with pytest.raises(ValueError, match="`_definitions` is a name that each module of operators has itself"):
        opsmith.load_spec("edition: 1\nops:\n" + entry.format("_definitions"))


def test_a_spec_that_is_neither_a_path_nor_a_text():
    with pytest.raises(TypeError, match=r"the spec is a `bytes`\n  help: .*decode"):
        opsmith.load_spec(b"edition: 1\n")
    with pytest.raises(TypeError):
        opsmith.load_spec(3)
    with pytest.raises(opsmith.FileError, match="there is no file 'edition: 1'\n  help: .*more than one line"):
        opsmith.load_spec("edition: 1")


def test_names_of_operators_that_do_not_exist(ops):
    from opsmith._signature import chosen

    with pytest.raises(LookupError, match="no operator 'softclipp'; did you mean 'softclip'?"):
        chosen(ops, ["softclipp"])
    assert [one.name for one in chosen(ops, "softclip")] == ["softclip"]

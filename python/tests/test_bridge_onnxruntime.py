"""Operators of a folder that ``opsmith bridge onnxruntime`` made: the package ``opsmith_example_custom_op_onnxruntime`` of the example crate
with some stock operators. ``scripts/bridges.sh`` builds it and runs this; without it, the tests are skipped."""

import pathlib
import shutil
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
package = pytest.importorskip("opsmith_example_custom_op_onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

LEVELS = onnxruntime.GraphOptimizationLevel
NUMBERS = {"float32": 1, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


def info(name, dtype, shape):
    return helper.make_tensor_value_info(name, NUMBERS[dtype], shape)


def model(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "test", inputs, outputs)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(package.DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def session(nodes, inputs, outputs, level=LEVELS.ORT_ENABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    options.register_custom_ops_library(package.library())
    made = model(nodes, inputs, outputs).SerializeToString()
    return onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])


def example(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def laplacian(x):
    padded = np.pad(x, 1)
    return padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:] - 4 * x


def softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def gelu(x):
    return (x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))).astype(x.dtype)


def layer_norm(x, bias):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) + bias


# Of each operator the names of its inputs, its attributes, and its results in NumPy for x of (3, 4) and y of (4): kernels in C++ and in Rust,
# expressions, compositions, several results, lists among arguments and results, absent inputs, attributes of each kind.
CASES = {
    "transpose_copy": (["x"], {"perm": [1, 0]}, lambda x, y: [x.T]),
    "laplacian": (["x"], {}, lambda x, y: [laplacian(x)]),
    "gaussian": (["x"], {"width": 2.0}, lambda x, y: [np.exp(-x * x / 8)]),
    "heat_step": (["x"], {"rate": 0.5}, lambda x, y: [x + 0.5 * laplacian(x)]),
    "add_reduce": (["x", "x"], {"axis": 1, "keep_dim": True}, lambda x, y: [2 * x.sum(1, keepdims=True)]),
    "add.Tensor": (["x", "y"], {"alpha": 2}, lambda x, y: [x + 2 * y]),
    "mul.Tensor": (["x", "y"], {}, lambda x, y: [x * y]),
    "maximum": (["x", "y"], {}, lambda x, y: [np.maximum(x, y)]),
    "gt.Tensor": (["x", "y"], {}, lambda x, y: [x > y]),
    "where.self": (["truth", "x", "y"], {}, lambda x, y: [np.where(x > 0, x, y)]),
    "clamp": (["x"], {"min": -0.5}, lambda x, y: [np.maximum(x, np.float32(-0.5))]),
    "exp": (["x"], {}, lambda x, y: [np.exp(x)]),
    "gelu": (["x"], {"approximate": "tanh"}, lambda x, y: [gelu(x)]),
    "sum.dim_IntList": (["x"], {"dim": [0], "keepdim": True}, lambda x, y: [x.sum(0, keepdims=True)]),
    "amax": (["x"], {"dim": [1]}, lambda x, y: [x.max(1)]),
    "mean.dim": (["x"], {"dim": [0, 1], "dtype": "float64"}, lambda x, y: [x.astype(np.float64).mean()]),
    "cumsum": (["x"], {"dim": 1}, lambda x, y: [x.cumsum(1)]),
    "mm": (["x", "square"], {}, lambda x, y: [x @ x.T @ x]),
    "softmax.int": (["x"], {"dim": 1}, lambda x, y: [softmax(x)]),
    "layer_norm": (["x", None, "y"], {"normalized_shape": [4]}, lambda x, y: [layer_norm(x, y)]),
    "sort": (["x"], {"dim": 1, "descending": True}, lambda x, y: [-np.sort(-x, 1), np.argsort(-x, 1)]),
    "topk": (["x"], {"k": 2, "dim": 1}, lambda x, y: [-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2]]),
    "max.dim": (["x"], {"dim": 1}, lambda x, y: [x.max(1), x.argmax(1)]),
    "cat": ([["x", "x", "x"]], {"dim": 1}, lambda x, y: [np.concatenate([x, x, x], 1)]),
    "stack": ([["x", "x"]], {}, lambda x, y: [np.stack([x, x])]),
    "_foreach_mul.Scalar": ([["x", "y"]], {"scalar": 2.0}, lambda x, y: [2 * x, 2 * y]),
    "constant_pad_nd": (["x"], {"pad": [1, 2], "value": 0.1}, lambda x, y: [np.pad(x, ((0, 0), (1, 2)), constant_values=np.float32(0.1))]),
    "roll": (["x"], {"shifts": [1], "dims": [1]}, lambda x, y: [np.roll(x, 1, 1)]),
}
INPUTS = {"x": ["rows", 4], "y": [4], "truth": ["rows", 4], "square": [4, 4]}


@pytest.mark.parametrize("level", [LEVELS.ORT_DISABLE_ALL, LEVELS.ORT_ENABLE_ALL])
@pytest.mark.parametrize("name", CASES)
def test_values_for_several_sizes(name, level):
    names, attributes, expected = CASES[name]
    used = sorted({one for item in names if item for one in ([item] if isinstance(item, str) else item)})
    outputs = [f"result{at}" for at in range(len(expected(example(3, 4), example(4))))]
    dtypes = [str(np.asarray(one).dtype) for one in expected(example(3, 4), example(4))]
    run = session(
        [package.node(name, names, outputs, **attributes)],
        [info(one, "bool" if one == "truth" else "float32", INPUTS[one]) for one in used],
        [info(one, dtype, None) for one, dtype in zip(outputs, dtypes)],
        level,
    )
    for rows in (3, 1, 6):
        x, y = example(rows, 4), example(4)
        feeds = {"x": x, "y": y, "truth": x > 0, "square": x.T @ x}
        found = run.run(None, {one: feeds[one] for one in used})
        for one, other in zip(found, expected(x, y), strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype and np.allclose(one, other, atol=1e-5), name


def test_all_operators_of_the_cases_are_there():
    assert set(CASES) <= set(package.OPERATORS) and pathlib.Path(package.library()).exists()


def test_symbolic_sizes_and_inferred_dtypes():
    nodes = [
        package.node("cat", [["x", "x", "y"]], ["long"], dim=0),
        package.node("gt.Tensor", ["long", "long"], ["truth"]),
        helper.make_node("Cast", ["truth"], ["z"], to=TensorProto.FLOAT),
    ]
    inputs = [info("x", "float32", ["n", 3]), info("y", "float32", ["m", 3])]
    run = session(nodes, inputs, [info("z", "float32", None)])
    rows, columns = run.get_outputs()[0].shape
    assert sorted(rows.replace("2 * n", "n").split(" + ")) == ["m", "n"] and columns == 3
    for n, m in ((1, 2), (4, 1), (0, 3)):
        found = run.run(None, {"x": np.zeros((n, 3), np.float32), "y": np.ones((m, 3), np.float32)})[0]
        assert found.shape == (2 * n + m, 3)


def test_equal_formulas_are_equal_sizes():
    # ONNX Runtime knows that both results have equal shapes: it adds them without a broadcast, and says the same size.
    nodes = [
        package.node("cat", [["x", "x"]], ["a"], dim=0),
        package.node("cat", [["x", "x"]], ["b"], dim=0),
        helper.make_node("Add", ["a", "b"], ["c"]),
    ]
    run = session(nodes, [info("x", "float32", ["n", 3])], [info("a", "float32", None), info("c", "float32", None)])
    a, c = (one.shape for one in run.get_outputs())
    assert a == c and isinstance(a[0], str) and "n" in a[0]


def test_dtypes_that_depend_on_nothing_need_no_shapes():
    nodes = [package.node("gt.Tensor", ["x", "x"], ["b"]), helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT)]
    run = session(nodes, [info("x", "float32", [])], [info("y", "float32", [])])
    assert run.run(None, {"x": np.array(3, np.float32)})[0] == 0


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64"])
def test_dtypes(dtype):
    run = session(
        [package.node("add.Tensor", ["x", "y"], ["z"], alpha=2)],
        [info("x", dtype, ["n"]), info("y", dtype, [1])],
        [info("z", dtype, None)],
    )
    found = run.run(None, {"x": np.arange(5).astype(dtype), "y": np.ones(1, dtype)})[0]
    assert found.dtype == dtype and found.tolist() == [2, 3, 4, 5, 6]


def test_outputs_that_nothing_reads():
    x = example(3, 4)
    for outputs in (["values"], ["", "places"]):
        used = [one for one in outputs if one]
        declared = [info(one, "float32" if one == "values" else "int64", None) for one in used]
        run = session([package.node("sort", ["x"], outputs)], [info("x", "float32", [3, "n"])], declared)
        expected = np.sort(x, 1) if used == ["values"] else np.argsort(x, 1)
        assert np.array_equal(run.run(None, {"x": x})[0], expected)


def test_empty_tensors():
    run = session([package.node("gelu", ["x"], ["y"])], [info("x", "float32", ["n", 4])], [info("y", "float32", None)])
    assert run.run(None, {"x": np.zeros((0, 4), np.float32)})[0].shape == (0, 4)


def test_floats_of_64_bits():
    made = package.node("add.Tensor", ["x", "x"], ["y"], alpha=0.1)
    run = session([made], [info("x", "float64", [1])], [info("y", "float64", [1])])
    assert run.run(None, {"x": np.array([1.0])})[0].tolist() == [1.1]


def test_a_large_result_of_a_composition():
    x = example(300, 300)
    run = session([package.node("heat_step", ["x"], ["y"])], [info("x", "float32", ["n", "m"])], [info("y", "float32", None)])
    assert np.allclose(run.run(None, {"x": x})[0], x + 0.1 * laplacian(x), atol=1e-5)


def plain(name, inputs, **attributes):
    return helper.make_node(name, inputs, ["y"], domain=package.DOMAIN, **attributes)


@pytest.mark.parametrize(
    "made, match",
    [
        (plain("softmax.int", ["x"]), "no attribute `dim`"),
        (plain("softmax.int", ["x"], dim="last"), 'attribute `dim` is the text "last", and no int'),
        (plain("softmax.int", ["x"], dim=0, dtype="float33"), 'the text "float33", and no dtype'),
        (plain("mm", ["x", "x"]), "mm"),
        (plain("transpose_copy", ["x"], perm=[0, 7]), "dimension 7 is out of range"),
        (plain("gaussian", ["x"], width=-1.0), "width > 0.0"),
        (plain("cat", ["x", "x"], tensor_lists=[3]), "3 tensors by the attribute `tensor_lists`, and 2 inputs are left"),
        (plain("cat", ["x", "x"], tensor_lists=[1]), "1 of 2 inputs too many"),
        (plain("nothing", ["x"]), "nothing"),
        (helper.make_node("sort", ["x"], ["y", "z", "v"], domain=package.DOMAIN), "sort"),
    ],
)
def test_mistakes_of_nodes_are_errors_of_the_session(made, match):
    with pytest.raises(Exception, match=match):
        session([made], [info("x", "float32", [2, 3])], [info("y", "float32", None)])


def test_an_output_of_another_dtype():
    with pytest.raises(Exception, match="int64"):
        session([plain("gelu", ["x"])], [info("x", "float32", [2, 3])], [info("y", "int64", [2, 3])])


def test_mistakes_of_a_run():
    inputs = [info("x", "float32", ["n"]), info("y", "float32", ["m"])]
    run = session([package.node("add.Tensor", ["x", "y"], ["z"])], inputs, [info("z", "float32", None)])
    with pytest.raises(Exception, match="add.Tensor.*broadcast"):
        run.run(None, {"x": np.zeros(2, np.float32), "y": np.zeros(3, np.float32)})
    assert run.run(None, {"x": np.ones(2, np.float32), "y": np.ones(2, np.float32)})[0].tolist() == [2, 2]
    run = session([package.node("laplacian", ["x"], ["y"])], [info("x", "int64", ["n", 2])], [info("y", "int64", None)])
    with pytest.raises(Exception, match="no CPU kernel for int64"):
        run.run(None, {"x": np.zeros((2, 2), np.int64)})
    run = session([package.node("softmax.int", ["x"], ["y"], dim=7)], [info("x", "float32", ["n"])], [info("y", "float32", None)])
    with pytest.raises(Exception, match="softmax.int.*dimension 7 is out of range"):
        run.run(None, {"x": np.zeros(2, np.float32)})


@pytest.mark.parametrize(
    "make, kind, text",
    [
        (lambda: package.node("nothing", ["x"], ["y"]), LookupError, "there is no operator 'nothing'"),
        (lambda: package.node("gelu", ["x", "y"], ["z"]), TypeError, "2 inputs are given for 1 tensors"),
        (lambda: package.node("gelu", [], ["y"]), TypeError, "`self` is missing"),
        (lambda: package.node("gelu", ["x"], ["y"], width=1), TypeError, "no argument 'width'"),
        (lambda: package.node("softmax.int", ["x"], ["y"]), TypeError, "`dim` is missing"),
        (lambda: package.node("cat", ["x"], ["y"]), TypeError, "must be a list of names"),
        (lambda: package.node("add.Tensor", ["x", "y"], ["z"], alpha=1j), TypeError, "complex"),
    ],
)
def test_mistakes_of_the_helper(make, kind, text):
    with pytest.raises(kind) as error:
        make()
    assert text in str(error.value)


def test_a_program_without_python(tmp_path):
    compiler = shutil.which("c++")
    runtime = sorted(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so*"))
    if compiler is None or not runtime:
        pytest.skip("there is no compiler, or the package has no library for other programs")
    nodes = [package.node("heat_step", ["x"], ["h"], rate=0.5), package.node("cat", [["h", "h"]], ["y"], dim=0)]
    path = tmp_path / "model.onnx"
    path.write_bytes(model(nodes, [info("x", "float32", ["n", 2])], [info("y", "float32", None)]).SerializeToString())
    program = tmp_path / "program"
    source = pathlib.Path(__file__).parent / "onnxruntime_program.cpp"
    subprocess.run([compiler, "-std=c++17", str(source), "-o", str(program), "-ldl"], check=True)
    run = subprocess.run([str(program), str(runtime[0]), package.library(), str(path)], check=True, capture_output=True, text=True)
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    expected = np.tile(x + 0.5 * laplacian(x), (2, 1))
    assert np.allclose([float(one) for one in run.stdout.split()], expected.ravel())

"""Operators in ONNX Runtime: results of all entries, dtypes, symbolic sizes, lists, absent inputs, mistakes, saved graphs."""

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")

import guide  # noqa: E402
import opsmith  # noqa: E402
import opsmith.onnxruntime as bridge  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from opsmith._signature import MISSING, chosen  # noqa: E402

REFUSED = bridge.unsupported()
ENTRIES = [entry for entry in chosen(opsmith, None) if entry.name not in REFUSED]
NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
    "uint32": 12, "uint64": 13, "bfloat16": 16,
}  # fmt: skip


def info(name, dtype, shape):
    return helper.make_tensor_value_info(name, NUMBERS[dtype], shape)


def session(nodes, inputs, outputs):
    graph = helper.make_graph(nodes, "test", inputs, outputs)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("opsmith", 1)]
    return loaded(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())


def loaded(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(bridge.library())
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def array(tensor):
    return np.asarray(tensor.detach().contiguous())


def same(found, expected):
    """Whether shape, dtype and bits are equal."""
    expected = array(expected)
    return found.shape == expected.shape and found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def as_node(entry, positional, named):
    """The inputs of a node with their tensors, and the node's attributes."""
    values = {name: value for (name, *_), value in zip(entry.arguments, positional) if value is not MISSING}
    values.update(named)
    feeds, names, attributes = {}, [], {}

    def one(tensor):
        if tensor is None:
            return None
        name = f"input{len(feeds)}"
        feeds[name] = tensor
        return name

    for name, kind, *_ in entry.arguments:
        value = values.get(name)
        if kind == "Tensor":
            names.append(one(value))
        elif kind in ("Tensors", "OptionalTensors"):
            names.append([one(item) for item in value])
        elif name in values:
            attributes[name] = value
    while names and names[-1] is None:
        names.pop()
    return feeds, names, attributes, values


def fits(tensors):
    return all(tensor.dtype.name in NUMBERS and tensor.dtype.name != "bfloat16" for tensor in tensors)


def runnable(entry):
    """The calls of an entry's samples that ONNX Runtime and NumPy have tensors for, each with its results."""
    for positional, named in entry.calls():
        feeds, names, attributes, values = as_node(entry, positional, named)
        results = entry.definition(**values)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        if not results or not fits([*feeds.values(), *results]) or any(isinstance(one, complex) for one in attributes.values()):
            continue
        if any(kind in bridge._OTHERS and name in attributes for name, kind, *_ in entry.arguments):
            continue
        # ONNX Runtime has no absent inputs among those of a list.
        if any(isinstance(one, list) and None in one for one in names):
            continue
        yield feeds, names, attributes, results


@pytest.mark.parametrize("start", range(0, len(ENTRIES), 40))
def test_every_operator(start):
    # Many nodes in a session: to make one takes long.
    nodes, inputs, outputs, arrays, expected = [], [], [], {}, []
    for entry in ENTRIES[start : start + 40]:
        for feeds, names, attributes, results in runnable(entry):
            prefix = f"call{len(nodes)}_"
            renamed = [[prefix + item for item in one] if isinstance(one, list) else one and prefix + one for one in names]
            outs = [f"{prefix}output{at}" for at in range(len(results))]
            nodes.append(bridge.node(entry.name, renamed, outs, **attributes))
            inputs.extend(info(prefix + name, tensor.dtype.name, list(tensor.shape)) for name, tensor in feeds.items())
            outputs.extend(info(name, one.dtype.name, None) for name, one in zip(outs, results))
            arrays.update({prefix + name: array(tensor) for name, tensor in feeds.items()})
            expected.extend((entry.name, one) for one in results)
    # The others have samples of dtypes or absent items that ONNX has none of.
    assert len({name for name, _ in expected}) > 10
    found = session(nodes, inputs, outputs).run(None, arrays)
    for one, (name, result) in zip(found, expected):
        assert same(one, result), name


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_dtypes(dtype):
    made = bridge.node("add.Tensor", ["x", "y"], ["z"], alpha=2)
    run = session([made], [info("x", dtype, ["n"]), info("y", dtype, [1])], [info("z", dtype, None)])
    x, y = np.arange(5).astype(dtype), np.ones(1, dtype)
    assert same(run.run(None, {"x": x, "y": y})[0], opsmith.add(opsmith.asarray(x), opsmith.asarray(y), alpha=2))


def test_bfloat16():
    # NumPy has no such arrays: the elements are casts before and behind the node.
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=TensorProto.BFLOAT16),
        bridge.node("mul.Tensor", ["narrow", "narrow"], ["product"]),
        helper.make_node("Cast", ["product"], ["y"], to=TensorProto.FLOAT),
    ]
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    narrow = opsmith.asarray(x).to(dtype=opsmith.bfloat16)
    found = session(nodes, [info("x", "float32", ["n"])], [info("y", "float32", ["n"])]).run(None, {"x": x})[0]
    assert same(found, opsmith.mul(narrow, narrow).to(dtype=opsmith.float32))


def test_symbolic_sizes_and_inferred_dtypes():
    nodes = [
        bridge.node("cat", [["x", "x", "y"]], ["long"], dim=0),
        bridge.node("gt.Tensor", ["long", "long"], ["truth"]),
        helper.make_node("Cast", ["truth"], ["z"], to=TensorProto.FLOAT),
    ]
    run = session(nodes, [info("x", "float32", ["n", 3]), info("y", "float32", ["m", 3])], [info("z", "float32", None)])
    rows, columns = run.get_outputs()[0].shape
    assert isinstance(rows, str) and "n" in rows and "m" in rows and columns == 3
    for n, m in ((1, 2), (4, 1), (0, 3)):
        found = run.run(None, {"x": np.zeros((n, 3), np.float32), "y": np.ones((m, 3), np.float32)})[0]
        assert found.shape == (2 * n + m, 3)


def test_scalars_have_inferred_dtypes():
    nodes = [bridge.node("eq.Tensor", ["x", "x"], ["b"]), helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT)]
    run = session(nodes, [info("x", "float32", [])], [info("y", "float32", [])])
    assert run.run(None, {"x": np.array(3, np.float32)})[0] == 1


def test_several_outputs_and_those_that_nothing_reads():
    x = np.array([[3.0, 1.0, 2.0]], np.float32)
    expected = opsmith.sort(opsmith.asarray(x))
    for outputs in (["values", "places"], ["values"], ["", "places"]):
        used = [one for one in outputs if one]
        declared = [info(one, "float32" if one == "values" else "int64", None) for one in used]
        run = session([bridge.node("sort", ["x"], outputs)], [info("x", "float32", [1, "n"])], declared)
        for name, one in zip(used, run.run(None, {"x": x})):
            assert same(one, expected[0 if name == "values" else 1])


def test_absent_inputs():
    x, bias = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    made = bridge.node("layer_norm", ["x", None, "bias"], ["y"], normalized_shape=[3])
    run = session([made], [info("x", "float32", ["n", 3]), info("bias", "float32", [3])], [info("y", "float32", None)])
    found = run.run(None, {"x": x, "bias": bias})[0]
    assert same(found, opsmith.layer_norm(opsmith.asarray(x), [3], bias=opsmith.asarray(bias)))


def test_floats_of_64_bits():
    x = np.array([0.1, 0.2])
    made = bridge.node("add.Scalar", ["x"], ["y"], other=0.1)
    found = session([made], [info("x", "float64", [2])], [info("y", "float64", [2])]).run(None, {"x": x})[0]
    assert found.tolist() == [0.1 + 0.1, 0.2 + 0.1]


def refused(match, made, inputs, outputs):
    with pytest.raises(Exception, match=match):
        session([made], inputs, outputs)


def test_mistakes_of_nodes_are_errors_of_the_session():
    x, y = info("x", "float32", [2, 3]), info("y", "float32", None)
    plain = lambda name, inputs, **attributes: helper.make_node(name, inputs, ["y"], domain="opsmith", **attributes)  # noqa: E731
    refused("no attribute `dim`", plain("softmax.int", ["x"]), [x], [y])
    refused("attribute `dim` is the text", plain("softmax.int", ["x"], dim="last"), [x], [y])
    refused("mm", plain("mm", ["x", "x"]), [x], [y])
    refused(r"Type \(tensor\(int64\)\)", plain("gelu", ["x"]), [x], [info("y", "int64", [2, 3])])


def test_mistakes_of_a_run():
    run = session(
        [bridge.node("add.Tensor", ["x", "y"], ["z"])],
        [info("x", "float32", ["n"]), info("y", "float32", ["m"])],
        [info("z", "float32", None)],
    )
    with pytest.raises(Exception, match="add.Tensor"):
        run.run(None, {"x": np.zeros(2, np.float32), "y": np.zeros(3, np.float32)})
    run = session([bridge.node("softmax.int", ["x"], ["y"], dim=5)], [info("x", "float32", [2])], [info("y", "float32", None)])
    with pytest.raises(Exception, match="softmax"):
        run.run(None, {"x": np.zeros(2, np.float32)})
    run = session([bridge.node("gelu", ["x"], ["y"])], [info("x", "bool", [2])], [info("y", "bool", [2])])
    with pytest.raises(Exception, match="gelu.*bool"):
        run.run(None, {"x": np.zeros(2, bool)})


def test_mistakes_of_the_helper():
    with pytest.raises(LookupError, match="add.Tensor"):
        bridge.node("add", ["x", "y"], ["z"])
    with pytest.raises(TypeError, match="(?s)'beta'.*signature"):
        bridge.node("add.Tensor", ["x", "y"], ["z"], beta=1)
    with pytest.raises(TypeError, match="3 inputs"):
        bridge.node("add.Tensor", ["x", "y", "z"], ["z"])
    with pytest.raises(NotImplementedError, match="random"):
        bridge.node("native_dropout", ["x"], ["y"])
    with pytest.raises(NotImplementedError, match="random"):
        bridge.register(["native_dropout"])


def test_a_saved_graph_runs(tmp_path):
    # `erfinv` is no operator of ONNX: the model has a node of our domain.
    def model(x):
        return opsmith.erfinv(x) * 2 + opsmith.softmax(x, 1)

    path = str(tmp_path / "model.onnx")
    opsmith.Graph.trace(model, opsmith.InputSpec(["rows", 3])).save_onnx(path)
    assert "erfinv" in {node.op_type for node in onnx.load(path).graph.node if node.domain == "opsmith"}
    run = loaded(path)
    for rows in (2, 5):
        x = opsmith.linspace(-0.5, 0.5, 3 * rows).reshape([rows, 3])
        (found,) = run.run(None, {run.get_inputs()[0].name: array(x)})
        assert np.allclose(found, array(model(x)), rtol=1e-6)


def test_custom_operators(tmp_path):
    source = tmp_path / "double.cc"
    source.write_text(
        "#include <cstdint>\n"
        'extern "C" int Double(int n, void **p, int *d, int64_t **s, const char **t, void *stream, void *extra) {\n'
        "  for (int64_t i = 0; i < s[0][0]; i++) ((float *)p[1])[i] = 2 * ((float *)p[0])[i];\n"
        "  return 0;\n}\n"
    )
    double = opsmith.custom(f"{source}:Double", lambda x: x, lambda x: x)
    (name,) = bridge.register([double])
    domain, _, operator = name.partition("::")
    made = helper.make_node(operator, ["x"], ["y"], domain=domain)
    graph = helper.make_graph([made], "test", [info("x", "float32", ["n"])], [info("y", "float32", None)])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
    run = loaded(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())
    assert run.run(None, {"x": np.array([1.0, 2.0], np.float32)})[0].tolist() == [2, 4]


def test_the_guide(monkeypatch, tmp_path):
    guide.run("ONNX Runtime", monkeypatch, tmp_path)

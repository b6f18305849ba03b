"""Makes `tests/data/onnx/int4.onnx`: products with packed weights of four bits (`MatMulNBits`), and results of ONNX Runtime."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

DATA = Path(__file__).parent.parent / "data" / "onnx"
F32, U8 = TensorProto.FLOAT, TensorProto.UINT8
RANDOM = np.random.default_rng(0)


def product(name, length, count, block, zeros, bias):
    """The node of a product, with its weights."""
    blocks = -(-length // block)
    tensors = [
        helper.make_tensor(f"{name}_weight", U8, [count, blocks, block // 2], RANDOM.integers(0, 256, count * blocks * block // 2, np.uint8)),
        helper.make_tensor(f"{name}_scales", F32, [count * blocks], RANDOM.uniform(0.01, 0.1, count * blocks).astype(np.float32)),
    ]
    inputs = ["x", tensors[0].name, tensors[1].name, "", "", ""]
    if zeros == "packed":
        size = count * -(-blocks // 2)
        tensors.append(helper.make_tensor(f"{name}_zeros", U8, [size], RANDOM.integers(0, 256, size, np.uint8)))
    elif zeros == "floats":
        tensors.append(helper.make_tensor(f"{name}_zeros", F32, [count * blocks], RANDOM.uniform(4, 12, count * blocks).astype(np.float32)))
    if zeros:
        inputs[3] = tensors[-1].name
    if bias:
        tensors.append(helper.make_tensor(f"{name}_bias", F32, [count], RANDOM.normal(size=count).astype(np.float32)))
        inputs[5] = tensors[-1].name
    while not inputs[-1]:
        inputs.pop()
    node = helper.make_node("MatMulNBits", inputs, [name], domain="com.microsoft", K=length, N=count, bits=4, block_size=block)
    return node, tensors


def main():
    parts = [
        product("plain", 64, 24, 32, None, False),
        product("zeros", 64, 24, 16, "packed", False),
        product("reals", 64, 70, 32, "floats", True),
        product("longer", 64, 5, 128, "packed", True),
    ]
    value = lambda name, sizes: helper.make_tensor_value_info(name, F32, sizes)  # noqa: E731
    nodes = [node for node, _ in parts]
    results = [value(node.output[0], ["batch", next(a.i for a in node.attribute if a.name == "N")]) for node in nodes]
    tensors = [tensor for _, tensors in parts for tensor in tensors]
    graph = helper.make_graph(nodes, "int4", [value("x", ["batch", 64])], results, tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    found = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.save(found, DATA / "int4.onnx")
    session = onnxruntime.InferenceSession(found.SerializeToString(), providers=["CPUExecutionProvider"])
    arrays = {}
    for case, batch in enumerate((4, 1, 3, 12)):
        arrays[f"case{case}.in0"] = x = RANDOM.normal(size=(batch, 64)).astype(np.float32)
        for number, result in enumerate(session.run(None, {"x": x})):
            arrays[f"case{case}.out{number}"] = result
    np.savez(DATA / "int4.npz", **arrays)


main()

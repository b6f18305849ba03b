"""Makes the programs with 8-bit floats of `tests/data`, `programs/float8.pt2` and `onnx/float8.onnx`, with inputs and results.

The first by PyTorch 2.15: a linear layer whose weights are 8-bit floats with a scale for each row. The second by `onnx`, with the
results of its reference evaluator: `Cast` that saturates and does not, `QuantizeLinear` and `DequantizeLinear`.
"""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import torch
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

DATA = Path(__file__).parent.parent / "data"
E4M3, E5M2, F32 = TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        weight = torch.randn(6, 8)
        scale = weight.abs().amax(1, keepdim=True) / 448
        self.register_buffer("weight", (weight / scale).to(torch.float8_e4m3fn))
        self.register_buffer("scale", scale)

    def forward(self, x):
        weight = self.weight.to(torch.float32) * self.scale
        rounded = torch.nn.functional.linear(x, weight).to(torch.float8_e5m2)
        return rounded.to(torch.float32), rounded.t().contiguous().to(torch.float16)


def program():
    torch.manual_seed(0)
    layer = Layer()
    arrays = {}
    for case, batch in enumerate((4, 1, 3, 9)):
        x = torch.randn(batch, 8)
        arrays[f"case{case}.in0"] = x.numpy()
        for number, result in enumerate(layer(x)):
            arrays[f"case{case}.out{number}"] = result.numpy()
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(layer, (torch.randn(4, 8),), dynamic_shapes=({0: batch},))
    for node in exported.graph.nodes:
        node.meta.pop("stack_trace", None)
    torch.export.save(exported, DATA / "programs" / "float8.pt2")
    np.savez(DATA / "programs" / "float8.npz", **arrays)


def model():
    nodes, outputs = [], []

    def add(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    for name, code in (("e4m3", E4M3), ("e5m2", E5M2)):
        for saturate in (0, 1):
            small = add("Cast", ["x"], f"small_{name}_{saturate}", to=code, saturate=saturate)
            outputs.append(add("Cast", [small], f"cast_{name}_{saturate}", to=F32))
        small = add("QuantizeLinear", ["x", "scale", f"zero_{name}"], f"quantized_{name}")
        outputs.append(add("DequantizeLinear", [small, "scale", f"zero_{name}"], f"dequantized_{name}"))
    outputs.append(add("Cast", ["weights"], "weights_f32", to=F32))
    weights = np.array([0.3, -1.5, 448.0, np.nan], np.float32).astype(ml_dtypes.float8_e4m3fn)
    tensors = [
        helper.make_tensor("scale", F32, [], [0.5]),
        helper.make_tensor("zero_e4m3", E4M3, [], b"\0", raw=True),
        helper.make_tensor("zero_e5m2", E5M2, [], b"\0", raw=True),
        helper.make_tensor("weights", E4M3, [4], weights.tobytes(), raw=True),
    ]
    x = np.array([0.3, -1.5, 447.0, 463.9, 464.0, 465.0, -500.0, 6e4, 7e4, 1e-9, np.inf, -np.inf, np.nan], np.float32)
    value = lambda name, size: helper.make_tensor_value_info(name, F32, [size])
    results = [value(name, 4 if name == "weights_f32" else len(x)) for name in outputs]
    graph = helper.make_graph(nodes, "float8", [value("x", len(x))], results, tensors)
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(found)
    arrays = {}
    for case, numbers in enumerate((x, -x, x / 3, x / 1000)):
        arrays[f"case{case}.in0"] = numbers
        for number, result in enumerate(ReferenceEvaluator(found).run(None, {"x": numbers})):
            arrays[f"case{case}.out{number}"] = result
    onnx.save(found, DATA / "onnx" / "float8.onnx")
    np.savez(DATA / "onnx" / "float8.npz", **arrays)


program()
model()

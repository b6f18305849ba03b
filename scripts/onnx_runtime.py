"""Runs saved models in onnxruntime: `onnx_runtime.py SAVED FOLDER...`, with recorded results `NAME.npz` in the folders."""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime


def main():
    saved, folders = pathlib.Path(sys.argv[1]), [pathlib.Path(path) for path in sys.argv[2:]]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for path in sorted(saved.glob("*.onnx")):
        recorded = np.load(next(f / f"{path.stem}.npz" for f in folders if (f / f"{path.stem}.npz").exists()))
        model = onnx.load(path)
        own = sorted({node.op_type for node in model.graph.node if node.domain})
        if own:
            print(f"{path.stem}: has operators of its library, {', '.join(own)}")
            continue
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(path, options)
        for case in range(4):
            inputs = {x.name: recorded[f"case{case}.in{n}"] for n, x in enumerate(session.get_inputs())}
            for number, output in enumerate(session.run(None, inputs)):
                expected = recorded[f"case{case}.out{number}"]
                bound = 1e-4 * max(1, np.abs(expected).max())
                assert output.shape == expected.shape, (path.stem, case, output.shape, expected.shape)
                assert np.abs(output - expected).max() <= bound, (path.stem, case)
        print(f"{path.stem}: equal in onnxruntime")


main()

"""Writes exported programs as ONNX models: `onnx_networks.py FOLDER OUT [NAME...]`.

Each `NAME.pt2` of the folder becomes `OUT/NAME.onnx` by PyTorch's exporter; the recorded results of `FOLDER/NAME.npz` hold
for it, too.
"""

import logging
import pathlib
import sys
import warnings

import torch

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


def main():
    source, target, names = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    for path in sorted(source.glob("*.pt2")):
        name = path.stem
        if name.endswith(".decomposed") or names and name not in names:
            continue
        try:
            program = torch.export.load(path)
            exported = torch.onnx.export(program, dynamo=True, opset_version=20, verbose=False)
            # Traces name folders of the machine.
            for node in exported.model.graph.all_nodes():
                node.metadata_props.clear()
                node.doc_string = None
            exported.save(target / f"{name}.onnx", external_data=False)
            print(name)
        except Exception as error:
            print(f"{name}: not exported: {str(error)[:300]!r}")


main()

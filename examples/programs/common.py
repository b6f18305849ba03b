"""The folder of the exported programs, and the way in which all of them are saved."""

import pathlib
import re

import torch

FOLDER = pathlib.Path(__file__).resolve().parent


def save(name: str, model: torch.nn.Module, inputs: tuple, dynamic_shapes: tuple) -> torch.nn.Module:
    """Writes `NAME.pt2`; the result runs the exported program."""
    with torch.no_grad():
        program = torch.export.export(model.eval(), inputs, dynamic_shapes=dynamic_shapes)
    for node in program.graph.nodes:
        # Places in the source are without the folders of this machine.
        if trace := node.meta.get("stack_trace"):
            trace = trace.replace(f"{FOLDER}/", "")
            node.meta["stack_trace"] = re.sub(r'File ".*/site-packages/', 'File "', trace)
    file = FOLDER / f"{name}.pt2"
    torch.export.save(program, file)
    print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")
    return torch.export.load(file).module()

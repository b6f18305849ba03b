"""Records the node tests of the package `onnx` as one archive: `onnx_nodes.py FOLDER_OR_ZIP [--subset]`.

Each case is a model with one node, its inputs and the results that the package's reference implementation gave. A model
is written for the version of the operators that was current when the test was made; it is set to one of 18 to 23 in which
all its operators mean the same. Others are left out, and counted by reason.
"""

import collections
import io
import re
import sys
import zipfile

import numpy as np
import onnx
import onnx.defs
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

FIRST, LAST = 18, 23
# The element types that NumPy's files have.
TYPES = {"bool", "float16", "float32", "float64", "complex64", "complex128"}
TYPES |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def version(model):
    """A version in the range in which all operators mean what the model means; None if there is none."""
    given = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    wanted = min(max(given, FIRST), LAST)
    if given == 0:
        return None

    def nodes(graph):
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from nodes(attribute.g)

    for node in nodes(model.graph):
        if node.domain not in ("", "ai.onnx"):
            return None
        try:
            old = onnx.defs.get_schema(node.op_type, given)
            new = onnx.defs.get_schema(node.op_type, wanted)
        except onnx.defs.SchemaError:
            return None
        # Later versions of an operator add element types, inputs or attributes, which a node may not use.
        if any(a.name not in new.attributes for a in node.attribute) or len(node.input) > new.max_input:
            return None
        if old.since_version != new.since_version and set(old.attributes) - set(new.attributes):
            return None
    return wanted


def array(value):
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    value = np.asarray(value)
    if value.dtype.name not in TYPES:
        return None
    return np.ascontiguousarray(value).reshape(value.shape)


# Inputs that decide about shapes, which the reader has to know: they become tensors of the model.
# Operators that the reader does not have, or of which no case has tensors alone.
LEFT_OUT = """ImageDecoder Scatter TfIdfVectorizer Upsample Optional
OptionalGetElement OptionalHasElement""".split()
KNOWN = """axes axis pads shape size split repeats starts ends steps sizes scales roi K depth k image_shape block_shape
dft_length frame_step frame_length start limit delta constant_value training_mode ratio num_mel_bins sample_rate
lower_edge_hertz upper_edge_hertz position max_output_boxes_per_class iou_threshold score_threshold output_shape""".split()


def known_positions(model):
    """The inputs of a model with one node that the node has to know."""
    node = model.graph.node[0]
    names = [i.name for i in model.graph.input]
    positions = set()
    schema = onnx.defs.get_schema(node.op_type, node.domain)
    for number, name in enumerate(node.input):
        formal = schema.inputs[min(number, len(schema.inputs) - 1)].name
        shape = node.op_type in ("ConstantOfShape", "Loop") and number == 0
        if name in names and (formal in KNOWN or shape) and not (node.op_type == "Slice" and number == 0):
            positions.add(names.index(name))
    return positions


def freeze(model, inputs, positions):
    """Makes inputs tensors of the model; returns the others."""
    for position in positions:
        name = model.graph.input[position].name
        model.graph.initializer.append(numpy_helper.from_array(inputs[position], name))
    kept = [i for n, i in enumerate(model.graph.input) if n not in positions]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return [x for n, x in enumerate(inputs) if n not in positions]


def cases():
    reasons = collections.Counter()
    positions = {}
    for case in collect_testcases(None):
        model = case.model
        if model is None:
            continue
        wanted = version(model)
        if wanted is None:
            reasons["operators of another version or domain"] += 1
            continue
        for o in model.opset_import:
            if o.domain in ("", "ai.onnx"):
                o.version = wanted
        inputs, outputs = case.data_sets[0]
        inputs, outputs = [array(x) for x in inputs], [array(x) for x in outputs]
        if any(x is None for x in inputs + outputs):
            reasons["values that are no tensors of numbers"] += 1
            continue
        base = re.sub("_expanded.*", "", case.name)
        if base == case.name:
            positions[base] = known_positions(model)
        if len(model.graph.input) == len(inputs):
            inputs = freeze(model, inputs, positions.get(base, set()))
        yield case.name.removeprefix("test_"), model, inputs, outputs
    for reason, count in reasons.items():
        print(f"left out: {count} with {reason}")


def main():
    target, subset = sys.argv[1], "--subset" in sys.argv
    found = sorted(cases(), key=lambda case: case[0])
    if subset:
        # One, the smallest, for each operator and each of its first attributes' values in a name.
        best = {}
        for case in found:
            if "expanded" in case[0] or "unique_sorted_with" in case[0] or "5d" in case[0] or "precomputed_strides" in case[0]:
                continue
            if case[1].graph.node[0].op_type in LEFT_OUT or len(case[1].SerializeToString()) > 4000:
                continue
            if sum(x.nbytes for x in case[2] + case[3]) > 8000:
                continue
            kind = (case[1].graph.node[0].op_type, tuple(sorted(a.name for a in case[1].graph.node[0].attribute)))
            size = sum(x.nbytes for x in case[2] + case[3])
            if kind not in best or size < best[kind][0]:
                best[kind] = (size, case)
        found = sorted((case for _, case in best.values()), key=lambda case: case[0])
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:

        def write(name, data):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

        for name, model, inputs, outputs in found:
            write(f"{name}/model.onnx", model.SerializeToString())
            for kind, arrays in (("in", inputs), ("out", outputs)):
                for number, value in enumerate(arrays):
                    data = io.BytesIO()
                    np.save(data, value)
                    write(f"{name}/{kind}{number}.npy", data.getvalue())
    operators = {case[1].graph.node[0].op_type for case in found}
    print(f"{len(found)} cases of {len(operators)} operators")


main()

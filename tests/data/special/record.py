"""Adds to derived calls what PyTorch gives for them.

    OPSMITH_DERIVE=/tmp/calls.jsonl cargo test -p opsmith-tests --test special derived
    python tests/data/special/record.py /tmp/calls.jsonl tests/data/special/record.jsonl.gz

In: calls, a line of JSON each. Out, compressed: the same lines with `outcomes`, one for each call; those that PyTorch
refuses all, or that name no operator of it, are left out, and the operators are printed. Tensors are made as in
`tests/testing/src/special/given.rs` and `runtime/src/sample.rs`, gradients start from the numbers of `numbers_like`.
"""

import gzip
import json
import math
import os
import sys
import warnings

import numpy as np
import torch

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

WHOLE_UP_TO = 64  # A result of a call at special points is recorded whole up to this many elements.
DTYPES = {
    "float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "complex64": torch.complex64, "complex128": torch.complex128, "bool": torch.bool, "uint8": torch.uint8,
    "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
}
# Calls that are not recorded, or not as a whole, and why.
REASONS = {
    "overflow": "PyTorch overflows on the way where the result is in range, or fuses a product with a sum",
    "vector": "PyTorch's vectors and the elements that are left over differ",
    "order": "which of NaN and infinity comes out follows the order of sums",
    "float": "PyTorch rounds a constant to float32",
    "chain": "PyTorch has a formula at the ends of the domain, where the composition's is not defined",
    "pole": "PyTorch's value near a pole is rounding",
    "complex": "PyTorch's complex arithmetic at 0 gives NaN, or its formula is that of real numbers",
    "attribute": "an infinite number is multiplied with sums, or subtracted, in another order",
    "zero": "the library that PyTorch leaves products to does not read one that is multiplied by 0",
    "series": "PyTorch's series gives NaN at infinity, where the function is 0",
    "sparse": "PyTorch's sparse gradients name the same row several times, or other rows",
    "shares": "PyTorch counts an equal element that takes no part, and its gradients do not add up to the given one",
    "distances": "the distances are not those of the points, and each library reads another of the two",
    "single": "the library that PyTorch leaves single precision to multiplies with the zeros of the border",
    "frequencies": "PyTorch misreads an input that has more frequencies than the result is made of",
    "square root": "PyTorch takes the square root instead, NaN for minus infinity",
}
CALM = {
    "add.Tensor": "overflow", "sub.Tensor": "overflow", "rsub.Tensor": "overflow", "lerp.Scalar": "overflow",
    "remainder.Tensor": "overflow", "remainder.Scalar": "overflow", "remainder.Scalar_Tensor": "overflow",
    "fmod.Tensor": "overflow", "fmod.Scalar": "overflow", "pow.Tensor_Scalar": "square root",
}
NO_GRADIENTS = {
    "celu": "float", "hardsigmoid": "float", "logit": "chain", "binary_cross_entropy": "chain",
    "digamma": "pole", "polygamma": "pole",
}
NOT_WILD = {
    op: "order"
    for op in (
        "_fft_r2c", "_fft_c2c", "_fft_c2r", "grid_sampler_2d", "grid_sampler_2d_backward", "_pdist_forward",
        "_pdist_backward", "cumprod", "prod", "prod.dim_int", "native_layer_norm_backward",
        "native_group_norm", "native_group_norm_backward", "_softmax_backward_data",
    )
}
NOT_INFINITE = {  # of attributes
    "elu_backward": "order", "softplus_backward": "order", "_cdist_forward": "order",
    "addmm": "attribute", "addmv": "attribute", "baddbmm": "attribute", "linspace": "attribute",
    "var.correction": "attribute", "std.correction": "attribute", "var_mean.correction": "attribute",
    "celu": "attribute",
}
NOT_WILD_AND_SINGLE = {"convolution": "single", "convolution_backward": "single"}
NOT_WILD_TIMES_ZERO = {"addmm": "zero", "addmv": "zero"}
NOT_WILD_FROM_ORDER = {"polygamma": ("series", 2)}
NOT_GROWN_ALONE = {"_fft_c2r": "frequencies"}
NOT_WRITTEN = ("empty.memory_format", "empty_like", "new_empty")  # PyTorch leaves what was in memory.
NOT_SPARSE = ("sparse", "sparse_grad")
NO_GRADIENTS_OF_EQUAL = {"_pdist_backward": "distances"}
NO_GRADIENTS_OF_EQUAL_WITHOUT_SELF = {"scatter_reduce.two": ("shares", ("amax", "amin"))}
# Attributes that are no number: whether a gradient flows differs there between PyTorch's loops over vectors and the rest.
NOT_NAN = {"hardtanh": "vector", "hardtanh_backward": "vector", "elu_backward": "order", "softplus_backward": "order"}
NOT_COMPLEX = {"addcdiv": "complex", "pow.Tensor_Tensor": "complex", "silu_backward": "complex"}
# The first results of operators whose others are for gradients alone.
FIRST = {"_embedding_bag": 1}
# Those of operators whose others, and gradients, name any of equal elements, where elements are equal.
FIRST_OF_EQUAL = {"argsort": 0, "sort": 1, "topk": 1}
FIRST_OF_NAN = {"_unique2": 1}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def between(low, high, count, seed):
    step = int(count * 0.618) + 1
    while math.gcd(step, max(count, 1)) != 1:
        step += 1
    shift = 0.137 + 0.611 * ((seed * 0.754877666) % 1.0)
    places = (np.arange(count) * step + seed * 5) % max(count, 1)
    return low + (high - low) * (places.astype(np.float64) + shift) / max(count, 1)


def number(value):
    return float(value)


def build(given, dtype):
    """The tensor of a description."""
    shape, seed = given["shape"], given["seed"]
    count = math.prod(shape)
    exact = not (dtype.is_floating_point or dtype.is_complex)
    index = np.arange(count)
    if "mask" in given or ("between" in given and dtype == torch.bool):
        values = torch.tensor((index * 5 + seed) % 3 != 0)
    elif "integers" in given or ("between" in given and exact):
        low, high = given["integers"] if "integers" in given else (-9 if given["between"][0] < 0 else 1, 10)
        span = high - low
        values = torch.tensor(low + (index * 7 + seed * 3 + index // span) % span)
        if "between" in given:
            values = values.to(dtype)
    elif "between" in given:
        low, high = map(number, given["between"])
        values = between(low, high, count, seed)
        if dtype.is_complex:
            values = values + 1j * between(min(low, -high / 2.0), high, count, count + 17)
        values = torch.tensor(values).to(dtype)
    elif "cycle" in given:
        # Parts are set one by one: arithmetic with an infinity would make NaN of the other part.
        cycle = np.zeros(len(given["cycle"]), dtype=np.complex128)
        for place, value in enumerate(given["cycle"]):
            pair = value if isinstance(value, list) else [value, 0.0]
            cycle.real[place], cycle.imag[place] = number(pair[0]), number(pair[1])
        values = cycle[index % len(cycle)]
        values = torch.tensor(values if dtype.is_complex else values.real.copy()).to(dtype)
    elif "places" in given:
        values = torch.tensor(np.array(given["places"], dtype=np.int64)[index % len(given["places"])])
    else:
        values = torch.tensor(np.array(given["whole"], dtype=np.int64)[index % len(given["whole"])]).to(dtype)
    values = values.reshape(shape)
    return values.expand(given["grid"]).contiguous() if "grid" in given else values


def argument(given, dtype, inputs):
    if isinstance(given, dict):
        if "float" in given:
            return number(given["float"])
        if "complex" in given:
            return complex(*given["complex"])
        if "dtype" in given:
            return DTYPES[given["dtype"]]
        tensor = build(given, dtype)
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
            inputs.append(tensor)
        return tensor
    if isinstance(given, list):
        return [argument(item, dtype, inputs) for item in given]
    return given


def grown(given, size, attributes, to):
    """The description with another size in place of one."""
    def replace(value):
        return to if value == size or (size == 0 and value > 1) else value
    if isinstance(given, dict) and "shape" in given:
        return {**given, "shape": [replace(value) for value in given["shape"]]}
    if isinstance(given, list):
        return [grown(item, size, attributes, to) for item in given]
    if attributes and isinstance(given, int) and not isinstance(given, bool):
        return replace(given)
    return given


def weights(shape, seed):
    index = np.arange(math.prod(shape))
    return (((index * 37 + seed * 101 + 11) % 97).astype(np.float64) / 49.1 - 0.98).reshape(shape)


def numbers_like(tensor, seed):
    values = weights(list(tensor.shape), seed)
    if tensor.dtype.is_complex:
        values = values + 1j * weights(list(tensor.shape), seed + 13)
    return torch.tensor(values).to(tensor.dtype)


def plain(value):
    value = float(value)
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "inf", "-inf": "-inf"}[str(value)]
    if abs(value) < 1e300:  # Rounded up, the largest number would be infinite.
        value = float(f"{value:.11g}")
    if value == 0.0 and math.copysign(1.0, value) < 0.0:
        return value
    return int(value) if abs(value) < 1e15 and value == int(value) else value


def digest(tensor, whole):
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    shape, name = list(tensor.shape), NAMES[tensor.dtype]
    if tensor.dtype.is_complex:
        tensor = torch.view_as_real(tensor)
    parts = tensor.to(torch.float64).reshape(-1).numpy(force=True)
    # A huge element would hide the others in a sum.
    has_huge = (np.isfinite(parts) & (np.abs(parts) > 1e6)).any()
    if len(parts) <= ((600 if has_huge else WHOLE_UP_TO) if whole else 4):
        return [name, shape, [plain(part) for part in parts]]
    weight = ((np.arange(len(parts)) + 1) * 0.6180339887498949) % 1.0 - 0.5
    kinds = [np.isfinite(parts), np.isnan(parts), parts == np.inf, parts == -np.inf]
    # A huge element must not hide the others.
    numbers = np.clip(np.where(kinds[0], parts, 0.0), -1e15, 1e15)
    terms = [numbers * weight, *(np.where(kind, weight, 0.0) for kind in kinds[1:])]
    sums = [float(f"{math.fsum(term):.10g}") for term in terms]
    while len(sums) > 1 and sums[-1] == 0.0:
        sums.pop()
    return [name, shape, {"sums": [int(s) if s == int(s) and abs(s) < 1e15 else s for s in sums]}]


def calm(tensor, inputs):
    """The tensor without the elements at which an input of its shape is no number, infinite, huge or tiny."""
    tensor = tensor.detach().clone()
    for given in inputs:
        if given.shape == tensor.shape:
            given = torch.view_as_real(given.detach()) if given.dtype.is_complex else given.detach().unsqueeze(-1)
            size = given.abs()
            tensor[~((size <= 1e100) & ((size >= 1e-100) | (size == 0))).all(-1)] = 0
    return tensor


def flat(results):
    if isinstance(results, (list, tuple)):
        return [item for result in results for item in flat(result)]
    return [results]


def outcome(function, op, given, dtype, whole, differentiate, calmly):
    inputs = []
    # Gradients are recorded in the order of the signature.
    names = [arg.name for arg in function._schema.arguments if arg.name in given]
    if len(names) < len(given):
        return None, f"arguments {sorted(set(given) - set(names))}"
    args = {name: argument(given[name], dtype, inputs) for name in names}
    try:
        for tensor in inputs:
            tensor.requires_grad_(differentiate)
        results = flat(function(**args))
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        return None, str(error)
    if not all(isinstance(result, torch.Tensor) or result is None for result in results):
        return None, "no tensors"
    compared = FIRST.get(op, len(results))
    distinct = inputs and all(len(set(tensor.reshape(-1).tolist())) == tensor.numel() for tensor in inputs)
    if any(tensor.isnan().any() for tensor in inputs):
        compared, distinct = FIRST_OF_NAN.get(op, compared), False
    if op in FIRST_OF_EQUAL and not distinct:
        compared, differentiate = FIRST_OF_EQUAL[op], False
    results = [r if i < compared else None for i, r in enumerate(results)]
    tracked = [i for i, r in enumerate(results) if r is not None and r.requires_grad and differentiate]
    gradients, of = [None] * len(inputs), []
    if tracked and inputs:
        try:
            starts = [numbers_like(results[i], 1 + i) for i in tracked]
            gradients = torch.autograd.grad([results[i] for i in tracked], inputs, starts, allow_unused=True)
            gradients = [torch.zeros_like(t) if g is None else g.to_dense() for t, g in zip(inputs, gradients)]
            of = tracked
        except (RuntimeError, NotImplementedError):
            gradients = [None] * len(inputs)
    # What only gradients call is compared as they are.
    is_slope = function._schema.name.endswith("_backward")
    slope = lambda r: calm(r, inputs) if (is_slope or calmly) and (r.is_floating_point() or r.is_complex()) else r
    return {
        "outs": [None if r is None else digest(slope(r), whole) for r in results],
        "of": of,
        "grads": [digest(calm(g, inputs), whole) for g in gradients] if of else [],
    }, None


def recorded(line, unknown, refused):
    """The line with its outcomes; nothing if PyTorch has no such operator or refuses all calls."""
    base, _, overload = line["op"].partition(".")
    function = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
    if function is None:
        unknown.add(line["op"])
        return None
    dtype, grow = DTYPES[line["dtype"]], line.get("grow")
    text = json.dumps(line["args"])
    wild = "NaN" in text or "inf" in text
    left_out = line["op"] in NOT_WILD and wild
    left_out |= line["op"] in NOT_INFINITE and ('{"float": "inf"}' in text or '{"float": "-inf"}' in text)
    left_out |= line["op"] in NOT_WILD_AND_SINGLE and wild and dtype == torch.float32
    left_out |= line["op"] in NOT_WILD_TIMES_ZERO and wild and line["args"].get("alpha") in (0, {"float": 0})
    left_out |= line["op"] in NOT_WILD_FROM_ORDER and wild and line["args"]["n"] >= NOT_WILD_FROM_ORDER[line["op"]][1]
    left_out |= any(line["args"].get(name) for name in NOT_SPARSE)
    left_out |= line["op"] in NOT_GROWN_ALONE and bool(grow) and not grow["attributes"]
    left_out |= line["op"] in NOT_NAN and '{"float": "NaN"}' in text
    left_out |= line["op"] in NOT_WRITTEN
    left_out |= line["op"] in NOT_COMPLEX and dtype.is_complex
    if left_out:
        return None
    if line["op"] in CALM:
        line = {**line, "calm": True}
    calls = [line["args"]]
    if grow:
        calls = [
            {name: grown(given, grow["size"], grow["attributes"], to) for name, given in line["args"].items()}
            for to in grow["to"]
        ]
    outcomes = []
    for call, size in zip(calls, grow["to"] if grow else [0]):
        # Kernels of gradients are operators, too, and have sizes of their own.
        differentiate = line["op"] not in NO_GRADIENTS
        # The numbers of patterns repeat, so that some are equal.
        differentiate &= line["op"] not in NO_GRADIENTS_OF_EQUAL or "cycle" not in text
        if line["op"] in NO_GRADIENTS_OF_EQUAL_WITHOUT_SELF and not line["args"].get("include_self", True):
            reductions = NO_GRADIENTS_OF_EQUAL_WITHOUT_SELF[line["op"]][1]
            differentiate &= line["args"]["reduce"] not in reductions or "cycle" not in text
        differentiate &= not grow or len(grow["to"]) <= 6 or size in (5, 33, 130)
        found, why = outcome(function, line["op"], call, dtype, grow is None, differentiate, "calm" in line)
        outcomes.append(found)
        if why:
            refused.setdefault(line["op"], why.splitlines()[0][:100])
    return {**line, "outcomes": outcomes} if any(outcomes) else None


def record(lines, target):
    """Appends the recorded lines to a file, and how many lines were read to another."""
    unknown, refused = set(), {}
    with open(target, "a") as out, open(target + ".read", "a") as read:
        for line in lines:
            read.write("x")
            read.flush()
            found = recorded(line, unknown, refused)
            if found:
                out.write(json.dumps(found, separators=(",", ":")) + "\n")
                out.flush()
    for op in sorted(unknown):
        print("no such operator:", op)
    for op, why in sorted(refused.items()):
        print(f"refused: {op}: {why}")
    sys.stdout.flush()


def main(source, packed):
    lines = [json.loads(text) for text in open(source)]
    target = packed.removesuffix(".gz")
    for path in (target, target + ".read"):
        open(path, "w").close()
    done = 0
    while done < len(lines):
        # Some calls end the process: another one goes on behind them.
        child = os.fork()
        if child == 0:
            record(lines[done:], target)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        done = os.path.getsize(target + ".read")
        if status:
            print("ended the process:", json.dumps(lines[done - 1]))
    os.remove(target + ".read")
    # Without a time, so that the same record is the same file.
    with open(target, "rb") as text, gzip.GzipFile(packed, "wb", mtime=0) as out:
        out.write(text.read())
    os.remove(target)


if __name__ == "__main__":
    main(*sys.argv[1:])

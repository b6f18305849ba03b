"""Exports small programs whose nodes depend on elements, numbers or conditions, with PyTorch's results at several sizes.

    python tests/data/programs/record.py

writes NAME.pt2 and NAME.npz beside this file. With PyTorch 2.6 or 2.7 it writes `old` alone, whose weights are pickled.
"""

import io
import os
import sys
import zipfile

import numpy as np
import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401, declares operators
from torch.export import Dim, export
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves

HERE = os.path.dirname(os.path.abspath(__file__))
PREFIXES = [HERE + os.sep, os.path.dirname(os.path.dirname(torch.__file__)) + os.sep]


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def first_rows(x, count):
    """The sum of the first rows; how many is an element."""
    rows = count.item()
    torch._check(rows >= 1)
    torch._check(rows <= x.shape[0])
    return x[:rows].sum(0) + torch.arange(rows).sum(), rows + 1


def positives(x):
    """Sizes that elements decide, within bounds that the exporter checks."""
    return x[x > 0].sum() + x.nonzero().shape[0], x.unique()


def scans(x):
    from torch._higher_order_ops import map as map_rows
    from torch._higher_order_ops import scan

    state, sums = scan(lambda state, row: (state + row, (state * row).sin()), torch.zeros(3), x)
    return state, sums, map_rows(lambda row: row.cos() * 2, x)


def repeated(x, times):
    """A number as an input."""
    return x * times, x.repeat(times, 1)


def slopes(ids, mask):
    """The batch of the mask is one size with that of the tokens only by an expanded addition."""
    past = mask.cumsum(-1)[:, None, :] * torch.tensor([0.5, 0.25])[:, None]
    bias = past.reshape(mask.shape[0] * 2, 1, -1).view(ids.shape[0], -1, 1, ids.shape[1])
    heads = ids.float()[:, None, :, None].expand(-1, 2, -1, 3)
    return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=bias.expand(-1, -1, ids.shape[1], -1))


def window(x):
    """Positions from the end of a table, so that the size has a bound."""
    table = torch.arange(1 - 64, 1).float()
    return x + table[64 - x.shape[1] :] + x.shape[0]


class Cached(torch.nn.Module):
    """A step of a language model with a cache that grows: the mask is as long as cached and new tokens together."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(20, 16)
        self.projection = torch.nn.Linear(16, 48)
        self.last = torch.nn.Linear(16, 20)

    def forward(self, ids, mask, keys, values):
        x = self.tokens(ids)
        query, key, value = self.projection(x).unflatten(2, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        mask = mask[:, None, None, :].bool()
        x = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        return self.last(x.transpose(1, 2).flatten(2)), keys, values


class Casts(torch.nn.Module):
    """A region of automatic casts: to fewer bits, to more, to the wider of two, and a region without casts inside."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 4, 3)
        self.batch_norm = torch.nn.BatchNorm2d(4)
        self.linear = torch.nn.Linear(16, 5)
        self.norm = torch.nn.LayerNorm(5)

    def forward(self, x, target):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = torch.relu(self.batch_norm(self.convolution(x)))
            y = self.norm(self.linear(y.flatten(1)))
            wide = torch.cat([y, y.float()], 1)
            loss = torch.nn.functional.mse_loss(y, target)
            with torch.autocast("cpu", enabled=False):
                square = y.float() @ y.float().T
            sums = torch.logsumexp(y.double().float() @ y.T, 0)
            return y.float(), wide, loss, square.exp(), sums.float(), y.argmax(1), y.double() @ torch.ones(5).double()


def without_casts(x):
    """A region without casts."""
    with torch.autocast("cpu", enabled=False):
        y = x @ x.mT
    return (y.float() + 1) * 2


class Adam(torch.nn.Module):
    """A step of Adam over lists of tensors, in place and not."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = (torch.nn.Parameter(torch.rand(size)) for size in [(3, 4), (3,)])

    def forward(self, x, means, squares, step):
        parameters = [self.weight.detach().clone(), self.bias.detach().clone()]
        gradients = [x.sum(0) * torch.ones(3, 1), x.sum(1)[:3] * 2]
        means, squares = torch._foreach_clone(means), torch._foreach_clone(squares)
        norms = torch._foreach_norm(gradients)
        torch._foreach_mul_(gradients, torch.clamp(1 / torch.stack(norms).norm(), max=1.0))
        torch._foreach_lerp_(means, gradients, 0.1)
        torch._foreach_mul_(squares, 0.999)
        torch._foreach_addcmul_(squares, gradients, gradients, 0.001)
        roots = torch._foreach_sqrt(torch._foreach_div(squares, [1 - 0.999**step] * 2))
        torch._foreach_add_(roots, 1e-8)
        torch._foreach_add_(parameters, torch._foreach_div(means, roots), alpha=-0.01)
        steps = torch._foreach_addcdiv(parameters, means, roots, [-0.01, -0.02])
        return *steps, *means, *squares, *norms, x.clone().resize_(2, 2) + 1


def nested(x, pair):
    """Nested arguments and results, of which one is absent."""
    return {"sum": x + pair[0], "parts": [pair[0] * 2, (pair[1], x)], "nothing": None}, x.sum()


def pairs(odd, half):
    """Sizes 2*n + 1 and n + 1 of a symbol that is no size."""
    return odd[::2] + half, torch.cat([half, odd])


class Mapped(torch.nn.Module):
    """Functions mapped over dimensions with `torch.vmap`: masks of attention over four, lines, products, views, lists."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 3))

    def forward(self, x, tokens):
        vmap = torch.vmap
        batch, count = tokens.shape
        segments = torch.arange(count) // 2

        def sees(row, head, query, key):
            near = (query - key).abs() <= head + 1
            return (key <= query) & near & (tokens[row, key] != 0) & (segments[query] == segments[key])

        def over(which):
            return tuple(0 if dim == which else None for dim in range(4))

        mask = vmap(vmap(vmap(vmap(sees, over(3)), over(2)), over(1)), over(0))
        mask = mask(torch.arange(batch), torch.arange(2), torch.arange(count), torch.arange(count))

        def of_row(row):
            scores = torch.softmax(self.weight @ row, 0)
            parts = scores.view(2, -1).unbind(1)
            largest, place = row.max(0)
            return scores.sum(), parts[0] * largest, place, row.add(1).mul_(2), scores.shape[0] * 2

        def of_pair(row, column):
            return torch.where(row.sum() > column.sum(), row.cumsum(0), row.flip(0)), row.argmax(), row.mean(-1, keepdim=True)

        sums, parts, places, others, _ = vmap(of_row, out_dims=(0, 0, 0, 0, None))(x)
        pairs = vmap(vmap(of_pair, (None, 1)), (0, None))(x, x)
        columns = vmap(lambda column: torch.log_softmax(column, 0) + torch.ones(1), in_dims=1)(x)
        return mask, sums, parts, places, others, pairs, columns, vmap(lambda row: self.weight.sum(1))(x)


def columns(x):
    """Results along other dimensions than the first."""
    return torch.vmap(lambda row: (torch.softmax(row, 0), row[:2].outer(row), row.sum()), out_dims=(-1, 1, 0))(x)


def prefixes(x, y):
    """Sums of all elements so far, and compositions of all functions from the last one on."""
    from torch._higher_order_ops.associative_scan import associative_scan

    def compose(first, then):
        return first[0] * then[0], first[1] * then[0] + then[1]

    sums = associative_scan(lambda a, b: a + b, x, 0, combine_mode="pointwise")
    lines = associative_scan(compose, (x, y), 1, combine_mode="pointwise", reverse=True)
    return sums, lines


def places(x):
    """The places of patches, for a batch, and a number that is no formula of sizes."""
    patches = torch.nn.functional.avg_pool2d(x, 4).permute(0, 2, 3, 1)
    return torch.nn.functional.linear(patches, torch.ones(2, 3)), x.new_full((2,), x.shape[3] ** 0.5)


def choices(x):
    """Sizes that decide: multiples of a large number, a branch, the larger of two numbers."""
    size = x.shape[0]
    padded = torch.nn.functional.pad(x, (0, 0, 0, (-size) % 1024))
    branch = torch.cond(size > 4, lambda x: x + 1, lambda x: x - 1, (x,))
    return padded.sum(0), padded.shape[0], branch, x.new_ones(torch.sym_max(size, 4)), x * (size % 1000)


def turned(x):
    """Views of a result whose size depends on elements, that are the result again."""
    places = torch.nonzero(x > 0)
    return places.T.T, x[x > 0][None][0] + 1, (places + 1).T.T


def written(x):
    """Copies from a part of a tensor to one beside it."""
    x = x.clone()
    x[:, 3] = x[:, 0]
    x[..., 0::2] = x[..., 1::2]
    x[:, -1].add_(x[:, 1])
    y = x.clone()
    y.unsqueeze_(0).transpose_(1, 2)
    y.squeeze_(0).t_()
    return x, y.swapaxes_(0, 1) * 2


def thirds(x):
    """Sizes that a condition accepts, but for every third one."""
    return x.sum(0) * torch.ones(x.shape[0] % 3 + 1)[0], torch.ones(x.shape[0] % 3 + 1).sum()


class Statistics(torch.nn.Module):
    """Batch normalisation in training, as it is exported: it updates the running statistics."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(3)
        self.instances = torch.nn.InstanceNorm2d(3, affine=True)
        # Without shifts, gradients by them are nothing but rounding.
        for number, parameter in enumerate(self.parameters()):
            torch.nn.init.constant_(parameter, 0.3 * number - 0.4)

    def forward(self, x):
        return torch.relu(self.norm(x)), self.instances(x), self.norm.running_mean + 0, self.norm.running_var + 0


class Narrow(torch.nn.Module):
    """Elements of 16 bits in recurrent layers; conjugates, indices by dimension, a check of an element."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru = torch.nn.LSTM(3, 4, bidirectional=True).half(), torch.nn.GRU(3, 4).bfloat16()

    def forward(self, x):
        torch._assert_async((x == x).all(), "no number")
        rounded = x.round().int()
        spectrum = torch.fft.fft(x).conj() * 2
        steps = self.lstm(x.half()[:, None])[0].float(), self.gru(x.bfloat16()[:, None])[0].float()
        return *steps, torch.view_as_real(spectrum), *torch.where(rounded > 0), *torch.nonzero(x, as_tuple=True)


def quantised(x, weight):
    """Integers of eight bits for floats, as `torch.ao.quantization` writes them."""
    ops = torch.ops.quantized_decomposed
    scale, zero = torch.tensor(0.05), torch.tensor(3)
    scales, zeros = torch.tensor([0.02, 0.03, 0.01, 0.05]), torch.tensor([0, 1, -2, 0])
    q = ops.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
    w = ops.quantize_per_channel(weight, scales, zeros, 0, -127, 127, torch.int8)
    back = ops.dequantize_per_tensor(q, 0.05, 3, -128, 127, torch.int8)
    back_w = ops.dequantize_per_channel(w, scales, zeros, 0, -127, 127, torch.int8)
    by_tensor = ops.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
    same = ops.dequantize_per_tensor.tensor(by_tensor, scale, zero, 0, 255, torch.uint8)
    return q, w, back @ back_w.T, by_tensor, same, torch._int_mm(q, w.T)


@torch.library.custom_op("opsmith::relu_", mutates_args={"self"})
def relu_(self: torch.Tensor) -> None:
    self.relu_()


@torch.library.custom_op("opsmith::_foreach_sqrt_", mutates_args={"self"})
def roots_(self: list[torch.Tensor]) -> None:
    torch._foreach_sqrt_(self)


@torch.library.custom_op("opsmith::_native_batch_norm_legit", mutates_args={"running_mean", "running_var"})
def batch_norm_(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.ops.aten._native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps)


@batch_norm_.register_fake
def _(input, weight, bias, running_mean, running_var, training, momentum, eps):
    return torch.empty_like(input), torch.empty_like(running_mean), torch.empty_like(running_mean)


def on_copies(x):
    """Operators that write their arguments: all of one, a slice, rows with a stride, a list, and beside results."""
    whole, part = x - 1, x - 1
    torch.ops.opsmith.relu_(whole)
    torch.ops.opsmith.relu_(part[1:3])
    torch.ops.opsmith.relu_(part.t()[::2, -1])
    lists = x.abs() + 1
    torch.ops.opsmith._foreach_sqrt_([lists[0], lists[1]])
    mean, variance = torch.zeros(3), torch.ones(3)
    out, *_ = torch.ops.opsmith._native_batch_norm_legit(x, None, None, mean, variance, True, 0.1, 1e-5)
    return whole, part, lists, mean + 1, variance, out


class Regions(torch.nn.Module):
    """Boxes that do not overlap better ones, the contents of each, and a convolution with offsets: operators of torchvision."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 2, 3, 3))
        self.bias = torch.nn.Parameter(torch.randn(4))

    def forward(self, images, boxes, scores, offset, mask):
        from torchvision.ops import deform_conv2d, nms, roi_align

        kept = nms(boxes, scores, 0.4)
        rois = torch.cat([torch.ones_like(scores[kept])[:, None], boxes[kept]], 1)
        even = roi_align(images, rois, (2, 3), 0.5, 2, True)
        fitted = roi_align(images, rois, (3, 2), 0.5, -1, False)
        moved = deform_conv2d(images, offset, self.weight, self.bias, (1, 2), (1, 0), (1, 1), mask)
        return kept, even, fitted, moved, deform_conv2d(images, offset, self.weight, None, (1, 2), (1, 0), (1, 1))


class Old(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.last = torch.nn.Linear(8, 3)
        self.tied = self.first
        self.register_buffer("scale", torch.tensor([2.0]))
        self.offset = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.first(x)))) * self.scale + self.offset


def rows(*sizes):
    generator = torch.Generator().manual_seed(len(sizes))
    return [torch.randn(*size, generator=generator) for size in sizes]


def ids(*sizes):
    return [torch.arange(batch * length).reshape(batch, length) % 7 for batch, length in sizes]


SIZES = [(4, 3), (2, 3), (9, 3), (5, 3)]
TOKENS = [(2, 5), (3, 4), (2, 9), (5, 6)]
# Batches, new tokens, cached ones.
STEPS = [(2, 3, 5), (3, 2, 7), (4, 3, 2), (2, 4, 2)]
ALL = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
HALF = Dim("half", min=2, max=50)
PROGRAMS = {
    "first_rows": (first_rows, [(x, torch.tensor(n)) for x, n in zip(rows(*SIZES), [3, 2, 9, 1])], ({0: Dim.DYNAMIC}, None)),
    "positives": (positives, [(x,) for x in rows(*SIZES)], ({0: Dim.DYNAMIC},)),
    "scans": (scans, [(x,) for x in rows(*SIZES)], ({0: Dim.DYNAMIC},)),
    "repeated": (repeated, list(zip(rows(*SIZES), [3, 2, 5, 4])), ({0: Dim.DYNAMIC}, Dim.DYNAMIC)),
    "slopes": (slopes, [(i, torch.ones_like(i)) for i in ids(*TOKENS)], (ALL, ALL)),
    "without_casts": (without_casts, [(x,) for x in rows(*SIZES)], ({0: Dim.DYNAMIC},)),
    "nested": (nested, [(x, (x + 1, x[:1])) for x in rows(*SIZES)], ({0: Dim.DYNAMIC}, ({0: Dim.DYNAMIC}, None))),
    "pairs": (pairs, [tuple(rows((2 * n + 1,), (n + 1,))) for n in (3, 4, 7, 2)], ({0: 2 * HALF + 1}, {0: HALF + 1})),
    "prefixes": (prefixes, [tuple(rows(size, size)) for size in [(4, 3), (3, 3), (9, 3), (5, 3)]], ({0: Dim.DYNAMIC},) * 2),
    "places": (places, [(x,) for x in rows((2, 3, 8, 8), (1, 3, 12, 9), (3, 3, 16, 20), (2, 3, 11, 8))], ({0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO},)),
    "quantised": (quantised, [tuple(rows((n, 16), (4, 16))) for n in (18, 20, 32, 17)], ({0: Dim.DYNAMIC}, None)),
    "choices": (choices, [(x,) for x in rows((6, 1), (3, 1), (2050, 1), (1024, 1), (5, 1), (1, 1), (4, 1))], ({0: Dim.DYNAMIC},)),
    "turned": (turned, [(x,) for x in rows(*SIZES)], ({0: Dim.DYNAMIC},)),
    "thirds": (thirds, [(x,) for x in rows((4, 2), (5, 2), (2, 2), (7, 2), (100, 2))], ({0: Dim.DYNAMIC},)),
    "written": (written, [(x,) for x in rows((2, 6), (3, 6), (5, 6), (4, 6))], ({0: Dim.DYNAMIC},)),
    "window": (window, [(x,) for x in rows((2, 7), (3, 64), (2, 9), (5, 2))], (ALL,)),
}


class Coder(torch.nn.Module):
    """An encoder and a decoder that share a weight."""

    def __init__(self, weight, is_decoder):
        super().__init__()
        self.weight = weight
        self.bias = torch.nn.Parameter(torch.rand(weight.shape[1 if is_decoder else 0]))
        self.is_decoder = is_decoder

    def forward(self, x):
        return x @ (self.weight if self.is_decoder else self.weight.T) + self.bias


class JointMlp(torch.nn.Module):
    """The loss of two linear layers."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.last = torch.nn.Linear(16, 3)

    def forward(self, x, label):
        return torch.nn.functional.cross_entropy(self.last(torch.relu(self.first(x))), label)


class JointPatches(torch.nn.Module):
    """The loss of a convolution, batch normalisation in training, and causal attention over the patches of an image."""

    def __init__(self):
        super().__init__()
        self.patches = torch.nn.Conv2d(1, 8, 2, stride=2)
        self.batch_norm = torch.nn.BatchNorm2d(8)
        self.norm = torch.nn.LayerNorm(8)
        self.projection = torch.nn.Linear(8, 24)
        self.last = torch.nn.Linear(8, 3)

    def forward(self, x, label):
        x = torch.relu(self.batch_norm(self.patches(x))).flatten(2).transpose(1, 2)
        query, key, value = self.projection(self.norm(x)).unflatten(2, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        found = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + found.transpose(1, 2).flatten(2)
        return torch.nn.functional.cross_entropy(self.last(torch.nn.functional.gelu(x).mean(1)), label)


def save_joint(name, module, sizes):
    """A joint graph, with the loss and the gradients of automatic differentiation at several batches."""
    from torch.export.experimental import _export_forward_backward

    generator = torch.Generator().manual_seed(7)
    cases = [
        (torch.randn(*size, generator=generator), torch.randint(0, 3, size[:1], generator=generator)) for size in sizes
    ]
    batch = {0: Dim("batch", min=2, max=64)}
    # The gradient of the fused attention gets other arguments than it needs, in PyTorch itself.
    with sdpa_kernel(SDPBackend.MATH):
        joint = _export_forward_backward(export(module, cases[0], dynamic_shapes=(batch, batch)))
    buffer = io.BytesIO()
    torch.export.save(joint, buffer)
    write(name, buffer)
    arrays = {}
    for number, (x, label) in enumerate(cases):
        module.zero_grad()
        loss = module(x, label)
        loss.backward()
        of = dict(module.named_parameters())
        outputs = [spec for spec in joint.graph_signature.output_specs if spec.kind.name != "BUFFER_MUTATION"]
        results = [of[spec.target].grad if spec.target else loss for spec in outputs]
        for position, value in enumerate((x, label)):
            arrays[f"case{number}.in{position}"] = np.asarray(value.detach())
        for position, value in enumerate(results):
            arrays[f"case{number}.out{position}"] = np.asarray(value.detach())
    np.savez(os.path.join(HERE, f"{name}.npz"), **arrays)
    print(name, len(cases), [(spec.kind.name, spec.target) for spec in joint.graph_signature.output_specs])


def write(name, buffer):
    """An archive without the places of files on this machine."""
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(os.path.join(HERE, f"{name}.pt2"), "w") as target:
        for member in source.namelist():
            data = source.read(member)
            if member.endswith(".json"):
                for prefix in PREFIXES:
                    data = data.replace(prefix.encode(), b"")
            target.writestr(zipfile.ZipInfo(member), data)


def save_several():
    """Two models in one archive."""
    from torch.export.pt2_archive._package import package_pt2

    weight = torch.nn.Parameter(torch.rand(3, 5))
    x = torch.rand(2, 5)
    coders = {"encoder": Coder(weight, False), "decoder": Coder(weight, True)}
    inputs = {"encoder": x, "decoder": coders["encoder"](x).detach()}
    programs = {name: export(coder, (inputs[name],)) for name, coder in coders.items()}
    buffer = io.BytesIO()
    package_pt2(buffer, exported_programs=programs)
    write("coders", buffer)
    arrays = {}
    for name, coder in coders.items():
        arrays[f"{name}.in"] = np.asarray(inputs[name])
        arrays[f"{name}.out"] = np.asarray(coder(inputs[name]).detach())
    np.savez(os.path.join(HERE, "coders.npz"), **arrays)
    print("coders", len(coders))


def save(name, program, cases, gradients=()):
    """Saves a program with its results, and these gradients of the sum of squared results of the first case, by name."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    write(name, buffer)
    arrays = {}
    module = program.module()
    for number, case in enumerate(cases):
        for position, value in enumerate(tree_leaves(case)):
            arrays[f"case{number}.in{position}"] = np.asarray(value)
        results = [value for value in tree_leaves(module(*case)) if value is not None]
        for position, value in enumerate(results):
            arrays[f"case{number}.out{position}"] = np.asarray(value.detach() if torch.is_tensor(value) else value)
    np.savez(os.path.join(HERE, f"{name}.npz"), **arrays, **{f"grad.{key}": value for key, value in gradients})
    print(name, len(cases))


def gradients(module, case):
    """The gradients of the sum of squared results by all parameters."""
    sum((result * result).sum() for result in module(*case)).backward()
    return [(name, parameter.grad.numpy()) for name, parameter in module.named_parameters()]


def main():
    torch.manual_seed(0)
    if torch.__version__ < "2.8":
        cases = [(x,) for x in rows((5, 4), (2, 4), (9, 4), (3, 4))]
        save("old", export(Old().eval(), cases[0], dynamic_shapes=({0: Dim("batch", max=64)},)), cases)
        return
    save_several()
    save_joint("joint_mlp", JointMlp(), [(4, 8), (3, 8), (7, 8), (2, 8)])
    save_joint("joint_patches", JointPatches().train(), [(4, 1, 6, 6), (3, 1, 6, 6), (7, 1, 6, 6), (2, 1, 6, 6)])
    pictures = [(torch.randn(n, 3, 4, 4), torch.randn(n, 5)) for n in (3, 2, 7, 4)]
    batch = {0: Dim.DYNAMIC}
    steps = [
        (x, [torch.randn(3, 4), torch.randn(3)], [torch.rand(3, 4), torch.rand(3)], torch.tensor(float(step)))
        for step, x in enumerate(rows((5, 4), (3, 4), (9, 4), (4, 4)), 1)
    ]
    state = [None, None]
    save("adam", export(Adam(), steps[0], dynamic_shapes=(batch, state, state, None)), steps)
    tokens = [(x, torch.randint(0, 3, (len(x), 6))) for x in rows((5, 3), (2, 3), (9, 3), (3, 3))]
    save("mapped", export(Mapped(), tokens[0], dynamic_shapes=(batch, batch)), tokens)
    rows_of_three = [(x,) for x in rows((4, 3), (3, 3), (9, 3), (5, 3))]
    program = export(Function(columns), rows_of_three[0], dynamic_shapes=(({0: Dim.DYNAMIC},),), strict=True)
    save("columns", program, rows_of_three)
    five = [(torch.randn(5, 3),) for _ in range(4)]
    save("narrow", export(Narrow().eval(), five[0]), five)
    images = [(x,) for x in rows((4, 3, 5, 4), (2, 3, 5, 4), (7, 3, 5, 4), (3, 3, 5, 4))]
    trained = gradients(Statistics().train(), images[0])
    save("statistics", export(Statistics().train(), images[0], dynamic_shapes=(batch,)), images, trained)
    save("casts", export(Casts().eval(), pictures[0], dynamic_shapes=(batch, batch)), pictures)
    program = export(Function(on_copies), rows_of_three[0], dynamic_shapes=(({0: Dim.DYNAMIC},),))
    save("on_copies", program.run_decompositions(), rows_of_three)
    detections = []
    for number in (6, 3, 20, 9):
        corner = torch.rand(number, 2) * 12
        boxes = torch.cat([corner, corner + torch.rand(number, 2) * 8], 1)
        images = torch.randn(2, 4, 8, 9)
        detections.append((images, boxes, torch.rand(number), torch.randn(2, 36, 8, 4), torch.rand(2, 18, 8, 4)))
    boxes = {0: Dim.DYNAMIC}
    save("regions", export(Regions(), detections[0], dynamic_shapes=(None, boxes, boxes, None, None)), detections)
    cached = [
        (torch.randint(0, 20, (b, new)), torch.ones(b, new + old, dtype=torch.int64), *rows((b, 2, old, 8), (b, 2, old, 8)))
        for b, new, old in STEPS
    ]
    cache = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}
    save("cached", export(Cached().eval(), cached[0], dynamic_shapes=(ALL, ALL, cache, cache), strict=False), cached)
    for name, (function, cases, shapes) in PROGRAMS.items():
        save(name, export(Function(function), cases[0], dynamic_shapes=(shapes,), strict=False), cases)


if __name__ == "__main__":
    sys.exit(main())

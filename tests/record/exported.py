"""Operators that programs exported from PyTorch call."""

import torch

from calls import BF16, C64, F16, F32, F64, INF, NAN, integers, of, randn


def calls():
    """Every call: an overload, its arguments, its keyword arguments."""
    for group in (repeated, bags, same_sizes, directions, shrunk, parts, volumes, finer, windows, spectra, projected, experts):
        for name, args, *kwargs in group():
            yield name, args, kwargs[0] if kwargs else {}


def repeated():
    x = randn(2, 3, 4)
    for dim in (None, 0, 1, 2, -1, -3):
        for repeats in (0, 1, 3):
            yield "repeat_interleave.self_int", [x, repeats, dim]
    yield "repeat_interleave.self_int", [integers(3, 2), 2, 0], {"output_size": 6}
    yield "repeat_interleave.self_int", [randn(0, 2), 2, 1]
    yield "repeat_interleave.self_int", [x, -1, 1]
    yield "repeat_interleave.self_int", [x, 2, 3]
    yield "repeat_interleave.self_int", [x, 2, 1], {"output_size": 5}
    for dtype in (torch.int64, torch.int32):
        yield "repeat_interleave.Tensor", [torch.tensor([2, 0, 3, 1], dtype=dtype)]
    yield "repeat_interleave.Tensor", [torch.tensor([2, 0, 3, 1])], {"output_size": 6}
    yield "repeat_interleave.Tensor", [torch.zeros(0, dtype=torch.int64)]
    yield "repeat_interleave.Tensor", [torch.tensor([2, -1])]
    yield "repeat_interleave.Tensor", [torch.tensor([[2, 1]])]
    yield "repeat_interleave.self_Tensor", [x, torch.tensor([2, 0, 1]), 1]
    yield "repeat_interleave.self_Tensor", [x, torch.tensor([2]), -1]
    yield "repeat_interleave.self_Tensor", [x, torch.tensor(2), 0]
    yield "repeat_interleave.self_Tensor", [randn(2, 2), torch.tensor([1, 2, 0, 3])], {"output_size": 6}
    yield "repeat_interleave.self_Tensor", [integers(3), torch.tensor([1, 2, 3], dtype=torch.int32), 0]
    yield "repeat_interleave.self_Tensor", [x, torch.tensor([1, 2]), 1]


def bags():
    weight, places, offsets = randn(6, 3), torch.tensor([1, 4, 0, 4, 5, 2]), torch.tensor([0, 2, 2, 5])
    # Of means, the last result is of no use, and another number in each of PyTorch's kernels.
    for mode in (0, 2):
        yield "embedding_bag", [weight, places, offsets, False, mode]
        for padding in (None, 4, -2):
            yield "embedding_bag.padding_idx", [weight, places, offsets, False, mode, False, None, False, padding]
    factors = randn(6)
    yield "embedding_bag", [weight, places, offsets, False, 0, False, factors]
    yield "embedding_bag.padding_idx", [weight, places, offsets, False, 0, False, factors, False, 4]
    yield "embedding_bag.padding_idx", [weight, places, offsets, False, 0, False, None, False, 6]
    yield "embedding_bag.padding_idx", [weight, places, offsets, False, 0, False, None, False, -7]


def same_sizes():
    for dims, sizes, kernel in ((1, [9], [4]), (2, [6, 5], [3, 4]), (3, [4, 3, 5], [2, 3, 1])):
        x, weight = randn(2, 4, *sizes), randn(6, 2, *kernel)
        for padding in ("valid", "same"):
            for dilation in (1, 2):
                if padding == "valid" and dilation == 2 and dims == 3:
                    continue
                yield f"conv{dims}d.padding", [x, weight, randn(6), [1] * dims, padding, [dilation] * dims, 2]
            yield f"conv{dims}d.padding", [x[0], randn(3, 4, *kernel), None, [1] * dims, padding]
        yield f"conv{dims}d.padding", [x, weight, None, [2] * dims, "valid", [1] * dims, 2]
        yield f"conv{dims}d.padding", [x, weight, None, [2] * dims, "same", [1] * dims, 2]


def directions():
    for sizes, dim in (([4, 3, 2], 0), ([4, 3, 2], 2), ([4, 3, 2], 1), ([4, 3], -1), ([4], 0)):
        v = randn(*sizes)
        for order in (1, 2, 3):
            yield "norm_except_dim", [v, order, dim]
        lengths = torch.rand([1 if dim != at else size for at, size in enumerate(sizes)], dtype=F64) + 0.5
        yield "_weight_norm", [v, lengths if dim >= 0 else lengths.flatten()[0], dim]
    yield "_weight_norm", [randn(4, 3, dtype=F32), randn(4, 1, dtype=F32)]
    yield "_weight_norm_interface", [randn(4, 3, 2), randn(4, 1, 1)]


def shrunk():
    for dtype in (F64, F32, F16, BF16):
        x = of(-2.0, -0.7, -0.5, -0.1, 0.0, 0.3, 0.5, 0.6, 3.0, INF, -INF, NAN, dtype=dtype)
        for name in ("hardshrink", "softshrink"):
            yield name, [x]
            yield name, [x, 0.6]
            yield name, [x, 0]
            yield f"{name}_backward", [randn(12, dtype=dtype), x, 0.5]
    yield "softshrink", [randn(3), -0.5]
    yield "hardshrink", [randn(3), -0.5]
    yield "softshrink", [integers(3)]
    yield "hardshrink", [integers(3)]
    for name in ("sinc", "special_sinc"):
        for dtype in (F64, F32, F16):
            yield name, [of(-3.0, -1.5, -0.25, 0.0, 1e-4, 0.5, 1.0, 2.25, dtype=dtype)]
        yield name, [integers(5)]
        yield name, [randn(4, dtype=C64)]
    yield "max.other", [randn(2, 3), randn(3)]
    yield "max.other", [integers(2, 3), integers(3)]


def parts():
    for dtype in (F64, F32):
        yield "polar", [torch.rand(2, 3, dtype=dtype), randn(2, 3, dtype=dtype)]
        yield "polar", [torch.rand(2, 1, dtype=dtype), randn(3, dtype=dtype)]
        yield "view_as_complex", [randn(3, 2, dtype=dtype)]
        yield "view_as_complex", [randn(2, 3, 1, 2, dtype=dtype)]
    yield "polar", [torch.rand(2, dtype=F64), randn(2, dtype=F32)]
    yield "polar", [torch.rand(2).to(BF16), randn(2, dtype=BF16)]
    yield "view_as_real", [randn(2, 3, dtype=C64)]
    yield "view_as_real", [randn(dtype=torch.complex128)]
    yield "view_as_complex", [randn(2, 3)]
    yield "view_as_complex", [integers(3, 2)]


def volumes():
    x, grid = randn(2, 3, 3, 4, 5), randn(2, 2, 3, 4, 3, scale=0.8)
    for mode in (0, 1):
        for padding in (0, 1, 2):
            for align in (False, True):
                yield "grid_sampler_3d", [x, grid, mode, padding, align]
    yield "grid_sampler_3d", [x.to(F32), grid.to(F32), 0, 2, False]
    yield "grid_sampler_3d", [randn(1, 1, 1, 1, 1), randn(1, 1, 2, 2, 3), 0, 2, True]
    yield "grid_sampler_3d", [x, randn(2, 2, 3, 4, 2), 0, 0, False]
    yield "grid_sampler_3d", [x, randn(1, 2, 3, 4, 3), 0, 0, False]
    yield "grid_sampler", [x, grid, 0, 0, False]
    yield "grid_sampler", [randn(2, 3, 4, 5), randn(2, 3, 2, 2), 0, 1, True]
    yield "grid_sampler", [randn(2, 3, 4, 5), randn(2, 3, 2, 2), 2, 0, False]
    yield "grid_sampler", [randn(3, 4, 5), randn(2, 3, 2), 0, 0, False]


def finer():
    for kind in ("bilinear", "bicubic"):
        name = f"_upsample_{kind}2d_aa"
        for align in (False, True):
            for sizes, output in (([2, 3, 6, 7], [3, 3]), ([1, 2, 4, 5], [7, 9]), ([1, 1, 9, 4], [4, 4]), ([1, 1, 5, 5], [1, 1])):
                yield name, [randn(*sizes), output, align]
                yield f"{name}_backward", [randn(*sizes[:2], *output), output, sizes, align]
            yield name, [randn(1, 2, 6, 7), [2, 4], align, 0.4, 0.6]
            yield f"{name}.vec", [randn(1, 2, 6, 7), None, align, [0.4, 1.6]]
            yield f"{name}.vec", [randn(1, 2, 6, 7, dtype=F32), [3, 10], align, None]
        yield name, [randn(1, 2, 6, 7, dtype=F32), [3, 3], False]
        yield name, [randn(1, 6, 7), [3, 3], False]
        yield name, [randn(1, 2, 6, 7), [0, 3], False]
        yield f"{name}.vec", [randn(1, 2, 6, 7), None, False, None]


def windows():
    for name in ("hann_window", "hamming_window", "blackman_window", "bartlett_window"):
        for length in (0, 1, 2, 7, 8):
            for dtype in (F32, F64):
                yield name, [length], {"dtype": dtype}
                for periodic in (False, True):
                    yield f"{name}.periodic", [length, periodic], {"dtype": dtype}
        yield name, [5]
        yield name, [-1]
    yield "hamming_window.periodic_alpha", [6, True, 0.6], {"dtype": F64}
    yield "hamming_window.periodic_alpha_beta", [6, False, 0.6, 0.3], {"dtype": F64}


def spectra():
    signal, window = randn(2, 20), torch.rand(5, dtype=F64) + 0.5
    for onesided in (None, True, False):
        for normalized in (False, True):
            yield "stft", [signal, 8, 3, 5, window, normalized, onesided, True]
    yield "stft", [signal[0], 8, None, None, None, False, None, True]
    yield "stft", [signal[0], 8, 2, 6, None, False, None, False]
    yield "stft", [signal.to(F32), 7, 2, None, None, False, None, True]
    yield "stft", [randn(2, 20, dtype=torch.complex128), 8, 3, 5, window]
    yield "stft", [signal, 21, 3, None, None, False, None, True]
    yield "stft", [signal, 8, 0, None, None, False, None, True]
    yield "stft", [signal, 8, 3, 9, None, False, None, True]
    yield "stft", [signal, 8, 3, 5, randn(6), False, None, True]
    for center in (False, True):
        yield "stft.center", [signal, 8, 3, 5, window, center, "reflect", False, None, True]
    yield "stft.center", [signal[0], 7, 3, None, None, True, "constant", True, False, False]
    whole = randn(2, 5, 6, dtype=torch.complex128)
    for center in (False, True):
        for normalized in (False, True):
            yield "istft", [whole, 8, 3, None, torch.rand(8, dtype=F64) + 0.5, center, normalized]
    yield "istft", [whole[0], 8, 2, 6, torch.rand(6, dtype=F64) + 0.5, True, False, None, 7]
    yield "istft", [whole[0], 8, 2, None, torch.rand(8, dtype=F64) + 0.5, True, False, None, 25]
    yield "istft", [randn(8, 4, dtype=torch.complex128), 8, 3, None, torch.rand(8, dtype=F64) + 0.5, True, False, False]
    yield "istft", [randn(8, 4, dtype=torch.complex128), 8, 3, None, torch.rand(8, dtype=F64) + 0.5, True, False, False, None, True]
    yield "istft", [whole, 9, 3]
    yield "istft", [whole, 8, 9]


def projected():
    for layers, both, biases, first in ((1, False, True, False), (2, False, False, True), (1, True, True, False), (2, True, True, True)):
        count, inputs, units, states = layers * (2 if both else 1), 3, 4, 2
        params = []
        for layer in range(layers):
            of_layer = inputs if layer == 0 else states * (2 if both else 1)
            for _ in range(2 if both else 1):
                params += [randn(4 * units, of_layer), randn(4 * units, states)]
                params += [randn(4 * units), randn(4 * units)] if biases else []
                params += [randn(states, units)]
        x = randn(2, 5, inputs) if first else randn(5, 2, inputs)
        state = [randn(count, 2, states), randn(count, 2, units)]
        yield "lstm.input", [x, state, params, biases, layers, 0.0, False, both, first]


def experts():
    """Products of groups, whose ends are 32-bit integers in PyTorch, of rows that fill whole vectors there."""
    ends = lambda *numbers: torch.tensor(numbers, dtype=torch.int32)
    for dtype in (F32, BF16, F16):
        rows, matrices, columns = randn(7, 8, dtype=dtype), randn(3, 8, 16, dtype=dtype), randn(8, 16, dtype=dtype)
        yield "_grouped_mm", [rows, matrices, ends(2, 2, 7)]
        yield "_grouped_mm", [rows, matrices.transpose(1, 2).contiguous().transpose(1, 2), ends(0, 4, 7)]
        yield "_grouped_mm", [matrices.transpose(1, 2), columns, ends(8, 8, 16)]
        yield "_grouped_mm", [randn(8, 16, dtype=dtype), randn(16, 8, dtype=dtype), ends(8, 16)]
        yield "_grouped_mm", [matrices, randn(3, 16, 8, dtype=dtype)]
    yield "_grouped_mm", [rows, matrices]
    yield "_grouped_mm", [rows, randn(3, 4, 8, dtype=F16), ends(2, 4, 7)]

"""Pooling, borders, normalisation, regrouped channels, gates and cells."""

import torch

from calls import BF16, F16, F32, F64, INF, NAN, integers, of, randn


def calls():
    for group in (pooling, borders, normalisation, channels, gates, distances, cells, attention):
        for name, args, *kwargs in group():
            yield name, args, kwargs[0] if kwargs else {}


def pooling():
    odd = of(1, NAN, 2, 3, -INF, -INF, 5, dtype=F32).reshape(1, 7)
    for x in (randn(2, 3, 7), randn(3, 7), randn(2, 3, 7, dtype=F32), randn(3, 7, dtype=BF16), randn(0, 3, 7), randn(7), randn(1, 2, 3, 7)):
        yield "avg_pool1d", [x, [3]]
        yield "avg_pool1d", [x, [3], [2], [1], True, False]
        yield "max_pool1d", [x, [3], [2], [1], [2], True]
        yield "max_pool1d_with_indices", [x, [3], [2], [1], [2], True]
        yield "max_pool1d_with_indices", [x, [2]]
        for size in (1, 3, 9, 0):
            yield "adaptive_avg_pool1d", [x, [size]]
            yield "adaptive_max_pool1d", [x, [size]]
    for name in ("avg_pool1d", "max_pool1d_with_indices", "max_pool1d"):
        for arguments in ([[0]], [[2], [0]], [[2], [1], [2]], [[9]], [[2, 2]]):
            yield name, [randn(3, 7), *arguments]
    for name in ("max_pool1d_with_indices", "max_pool1d"):
        yield name, [odd, [2]]
        yield name, [odd, [3], [1], [1]]
    yield "max_pool1d_with_indices", [integers(2, 7), [2]]
    yield "avg_pool1d", [integers(2, 7), [2]]
    for name, sizes in (("adaptive_max_pool2d", [4, 5]), ("adaptive_max_pool3d", [2, 4, 5])):
        dims = len(sizes)
        for output in ([2] * dims, [1] * dims, [3, *[7] * (dims - 1)], [0] * dims):
            yield name, [randn(2, 3, *sizes), output]
            yield name, [randn(3, *sizes, dtype=F32), output]
        yield name, [randn(2, *sizes, dtype=F16), [2] * dims]
        yield name, [randn(0, 2, *sizes), [2] * dims]
        yield name, [randn(2, 0, *sizes), [2] * dims]
        yield name, [integers(2, *sizes), [2] * dims]
        yield name, [randn(*sizes[1:]), [2] * dims]
        yield name, [odd.reshape(1, *[1] * (dims - 1), 7), [1] * (dims - 1) + [3]]
        x = randn(2, *sizes)
        result, indices = getattr(torch.ops.aten, name)(x, [2] * dims)
        yield f"{name}_backward", [randn(*result.shape), x, indices]
        yield f"{name}_backward", [randn(*result.shape)[:, :1], x, indices]
    for x in (randn(1, 2, 3, 4), randn(2, 1, 2, 3, 4), randn(2, 2, 3, 4, dtype=BF16)):
        yield "adaptive_avg_pool3d", [x, [1, 2, 3]]
        yield "adaptive_avg_pool3d", [x, [3, 1, 5]]
    yield "adaptive_avg_pool3d", [randn(3, 4), [1, 1, 1]]


def borders():
    for mode in ("constant", "reflect", "replicate", "circular", "mirror"):
        yield "pad", [randn(2, 3), [1, 2], mode]
        yield "pad", [randn(1, 2, 3), [1, 2], mode]
        yield "pad", [randn(1, 3, 4), [1, 2, 2, 0], mode]
        yield "pad", [randn(1, 2, 3, 4, dtype=F32), [1, -2, 0, 1], mode]
        yield "pad", [randn(1, 1, 2, 2, 3), [1, 1, 0, 1, 1, 0], mode]
        yield "pad", [integers(2, 3), [2, 0], mode]
        yield "pad", [randn(2, 3), [1, 2], mode, 0.0]
        yield "pad", [randn(2, 3), [1, 2], mode, 1.5]
        yield "pad", [randn(2, 3), [1, 2, 0], mode]
        yield "pad", [randn(3), [1, 2], mode]
        yield "pad", [randn(2, 3), [3, 0], mode]
        yield "pad", [randn(2, 3), [4, 0], mode]
    yield "pad", [randn(2, 3), []]
    yield "pad", [randn(2, 3), [0, 0, 0, -1], "constant", 2.5]
    yield "pad", [randn(2, 3, dtype=torch.complex128), [1, 1]]
    for pad in ([1, 2], [3, 3], [-1, 2], [2, -1], [-1, -1], [4, 0]):
        yield "_pad_circular", [randn(2, 2, 3), pad]
    yield "_pad_circular", [randn(1, 2, 3, 4), [1, -1, 2, 3]]


def normalisation():
    for x in (randn(2, 4, 3), randn(2, 4), randn(1, 4, 2, 3), randn(2, 4, 3, dtype=F32), randn(0, 4, 3), randn(4)):
        factor = lambda count: randn(count, dtype=x.dtype)
        yield "group_norm", [x, 2]
        yield "group_norm", [x, 4, factor(4), factor(4), 0.1]
        yield "group_norm", [x, 1, factor(4)]
        yield "group_norm", [x, 3]
        yield "group_norm", [x, 2, factor(3)]
        if x.numel() == 0:
            continue  # PyTorch refuses these only with statistics of the input, by accident.
        yield "instance_norm", [x, factor(4), factor(4), None, None, True, 0.1, 0.01, False]
        yield "instance_norm", [x, None, None, None, None, True, 0.1, 1e-5, False]
        yield "instance_norm", [x, factor(4), None, factor(4), factor(4).abs() + 0.5, False, 0.1, 0.01, False]
    yield "instance_norm", [randn(2, 4, 3), None, None, None, None, False, 0.1, 0.01, False]


def channels():
    for x in (randn(1, 4, 2, 3), randn(8, 2, 3), randn(0, 4, 2, 3), randn(2, 0, 2, 3), integers(2, 1, 4, 1, 2), randn(7, 2, 2), randn(2, 4)):
        yield "pixel_shuffle", [x, 2]
    yield "pixel_shuffle", [randn(9, 1, 1), 3]
    yield "pixel_shuffle", [randn(9, 1, 1), 0]
    for x in (randn(1, 4, 2, 4), randn(1, 4, 6), randn(1, 3, 2), randn(2, 4)):
        yield "pixel_unshuffle", [x, 2]
    yield "pixel_unshuffle", [randn(1, 3, 3), -3]
    for name in ("channel_shuffle", "native_channel_shuffle"):
        for x in (randn(1, 6, 2), randn(2, 6, 2, 2), integers(1, 6, 2), randn(0, 6, 1)):
            for groups in (1, 2, 3, 6):
                yield name, [x, groups]
        yield name, [randn(1, 6, 2), 4]
        yield name, [randn(1, 6, 2), 0]
        yield name, [randn(1, 6), 2]


def gates():
    for dtype in (F64, F32, F16, BF16):
        yield "glu", [randn(2, 4, dtype=dtype)]
        yield "prelu", [randn(2, 3, 2, dtype=dtype), randn(3, dtype=dtype)]
        yield "prelu", [randn(2, 3, dtype=dtype), randn(1, dtype=dtype)]
        yield "glu_backward", [randn(2, 2, dtype=dtype), randn(2, 4, dtype=dtype), -1]
    for x, dim in ((randn(2, 4, 3), 1), (randn(4), 0), (randn(2, 3), 1), (randn(2, 4), 2), (randn(), 0), (randn(0, 4), 1), (integers(2, 4), 1)):
        yield "glu", [x, dim]
    for x, weight in (
        (randn(4), randn(1)), (randn(4), randn(4)), (randn(), randn(1)), (randn(2, 4), randn()), (randn(2, 4), randn(2)),
        (randn(2, 4), randn(1, 4)), (randn(2, 4, dtype=F32), randn(4)), (of(0.0, -0.0, NAN, -INF), of(2.0)), (randn(0, 3), randn(3)),
    ):
        yield "prelu", [x, weight]
    yield "_prelu_kernel", [randn(2, 3), randn(1, 3)]
    yield "_prelu_kernel", [of(0.0, -1.0, 1.0), of(2.0)]
    yield "_prelu_kernel_backward", [randn(2, 3), randn(2, 3), randn(2, 3)]


def distances():
    for p in (0.0, 0.5, 1.0, 2.0, 3.0, INF):
        yield "cdist", [randn(2, 3), randn(4, 3), p]
        yield "cdist", [randn(2, 1, 2, 3), randn(3, 2, 3), p]
        yield "pdist", [randn(4, 3), p]
        yield "pairwise_distance", [randn(2, 3), randn(2, 3), p]
    yield "cdist", [randn(2, 3, dtype=F32), randn(4, 3, dtype=F32), 2.0, 2]
    yield "cdist", [randn(2, 3), randn(4, 2)]
    yield "cdist", [randn(2, 3), randn(4, 3), -1.0]
    yield "cdist", [randn(3), randn(4, 3)]
    yield "cdist", [randn(0, 3), randn(4, 3)]
    yield "cdist", [randn(2, 0), randn(4, 0)]
    yield "pdist", [randn(3)]
    yield "pdist", [randn(1, 3)]
    yield "pdist", [randn(4, 3), -1.0]
    yield "pairwise_distance", [randn(2, 3), randn(4, 1, 3), 2.0, 0.1, True]
    yield "pairwise_distance", [randn(2, 3, dtype=F32), randn(3, dtype=F32)]
    yield "pairwise_distance", [randn(2, 3), randn(2, 4)]


def cells():
    for dtype in (F64, F32):
        make = lambda *sizes: randn(*sizes, dtype=dtype)
        for name, gates in (("gru_cell", 3), ("rnn_tanh_cell", 1), ("rnn_relu_cell", 1)):
            weights = [make(gates * 2, 4), make(gates * 2, 2)]
            yield name, [make(3, 4), make(3, 2), *weights, make(gates * 2), make(gates * 2)]
            yield name, [make(3, 4), make(3, 2), *weights]
            yield name, [make(3, 5), make(3, 2), *weights]
            yield name, [make(3, 4), make(3, 3), *weights]
        weights = [make(8, 4), make(8, 2)]
        yield "lstm_cell", [make(3, 4), [make(3, 2), make(3, 2)], *weights, make(8), make(8)]
        yield "lstm_cell", [make(3, 4), [make(3, 2), make(3, 2)], *weights]
        yield "lstm_cell", [make(3, 4), [make(3, 2)], *weights]
        yield "lstm_cell", [make(3, 4), [make(2, 2), make(2, 2)], *weights]


def attention():
    name = "_scaled_dot_product_flash_attention_for_cpu"
    for dtype in (F64, F32, BF16):
        make = lambda *sizes: randn(*sizes, dtype=dtype)
        q, k, v = make(1, 2, 3, 4), make(1, 2, 5, 4), make(1, 2, 5, 4)
        for kwargs in ({}, {"attn_mask": make(3, 5)}, {"attn_mask": make(1, 2, 3, 5), "scale": 0.3}):
            yield name, [q, k, v], kwargs
        yield name, [q, q, q, 0.0, True]
        out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)
        yield f"{name}_backward", [make(1, 2, 3, 4), q, k, v, out, logsumexp, 0.0, False]
        out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q, 0.0, True, scale=0.3)
        yield f"{name}_backward", [make(1, 2, 3, 4), q, q, q, out, logsumexp, 0.0, True], {"scale": 0.3}
    for dtype in (F32, BF16, F16):
        yield "_weight_int8pack_mm", [randn(3, 8, dtype=dtype), integers(16, 8, dtype=torch.int8, low=-100, high=100), randn(16, dtype=dtype)]

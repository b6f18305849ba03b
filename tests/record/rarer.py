"""Operators that few programs call: quantisation for training, affine grids, ranks and condition numbers."""

import torch

from calls import C128, F32, F64, INF, integers, of, randn


def calls():
    """Every call: an overload, its arguments, its keyword arguments."""
    for group in (quantised, grids, margins, ranks, truths):
        for name, args, *kwargs in group():
            yield name, args, kwargs[0] if kwargs else {}


def quantised():
    x = of(-0.75, -0.31, 0.0, 0.05, 0.15, 0.25, 0.349, 5.0, dtype=F32)
    for bounds in ((0, 255, 3), (-8, 7, 0), (-128, 127, -5)):
        least, most, zero = bounds
        yield "fake_quantize_per_tensor_affine", [x, 0.1, zero, least, most]
        yield "fake_quantize_per_tensor_affine", [randn(3, 4, dtype=F32), 0.037, zero, least, most]
        scale, zeros = of(0.1, 0.03, 0.5, dtype=F32), torch.tensor([zero, 0, zero], dtype=torch.int32)
        yield "fake_quantize_per_channel_affine", [randn(2, 3, 4, dtype=F32), scale, zeros, 1, least, most]
    yield "_int_mm", [integers(18, 16, dtype=torch.int8, low=-128, high=128), integers(16, 24, dtype=torch.int8, low=-128, high=128)]


def grids():
    for dtype in (F64, F32):
        for corners in (False, True):
            yield "affine_grid_generator", [randn(2, 2, 3, dtype=dtype), [2, 3, 4, 5], corners]
            yield "affine_grid_generator", [randn(2, 3, 4, dtype=dtype), [2, 1, 3, 2, 5], corners]
            yield "affine_grid_generator", [randn(1, 2, 3, dtype=dtype), [1, 1, 1, 1], corners]
    yield "affine_grid_generator", [randn(2, 2, 3), [3, 1, 2, 2], False]


def margins():
    for reduction in (0, 1, 2):
        for p in (1, 2):
            x, classes = randn(4, 3), integers(4, low=0, high=3)
            yield "multi_margin_loss", [x, classes, p, 1, None, reduction]
            yield "multi_margin_loss", [x, classes, p, 0.3, randn(3).abs(), reduction]
        yield "multi_margin_loss", [randn(3), torch.tensor(1), 1, 1, None, reduction]
    yield "multi_margin_loss", [randn(4, 3, dtype=F32), integers(4, low=0, high=3)]


def ranks():
    low = of([1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, 0.1, 1.0])
    for x in (low, low.to(F32), randn(2, 3, 4), randn(4, 2), torch.zeros(2, 2, dtype=F64), randn(3, 3, dtype=C128)):
        yield "linalg_matrix_rank.atol_rtol_tensor", [x]
        yield "linalg_matrix_rank.atol_rtol_float", [x], {"atol": 0.5}
        yield "linalg_matrix_rank.atol_rtol_float", [x], {"rtol": 0.3, "atol": 0.01}
        yield "linalg_pinv.atol_rtol_tensor", [x]
        yield "linalg_pinv.atol_rtol_tensor", [x], {"atol": torch.tensor(0.4, dtype=F64), "rtol": torch.tensor(0.1, dtype=F64)}
    yield "linalg_matrix_rank.atol_rtol_tensor", [randn(2, 3, 3)], {"atol": of(0.5, 1.5)}
    yield "linalg_matrix_rank.atol_rtol_float", [low @ low.T], {"hermitian": True}
    for p in (None, 2, -2, 1, -1, INF, -INF):
        yield "linalg_cond", [randn(2, 3, 3) + 2 * torch.eye(3, dtype=F64), p]
    yield "linalg_cond", [randn(3, 2)]


def truths():
    for x in (torch.tensor([True, True]), torch.tensor([[True, False]]), torch.zeros(0, dtype=torch.bool)):
        yield "_is_all_true", [x]
        yield "_is_any_true", [x]

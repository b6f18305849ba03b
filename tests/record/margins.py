"""Losses of margins, counts and images."""

import torch

from calls import BF16, F32, F64, integers, of, randn


def signs(*sizes, dtype=F64):
    return torch.randint(0, 2, sizes).to(dtype) * 2 - 1


def calls():
    for reduction in (0, 1, 2):
        for dtype in (F64, F32, BF16):
            make = lambda *sizes: randn(*sizes, dtype=dtype)
            yield "margin_ranking_loss", [make(2, 3), make(2, 3), signs(2, 3, dtype=dtype), 0.3, reduction]
            yield "hinge_embedding_loss", [make(2, 3), signs(2, 3, dtype=dtype), 0.7, reduction]
            yield "triplet_margin_loss", [make(2, 3), make(2, 3), make(2, 3), 1.0, 2.0, 1e-6, False, reduction]
            yield "soft_margin_loss", [make(2, 3), signs(2, 3, dtype=dtype), reduction]
            yield "cosine_embedding_loss", [make(2, 3), make(2, 3), signs(2, dtype=dtype), 0.1, reduction]
            yield "poisson_nll_loss", [make(4), make(4).abs() * 3, True, False, 1e-8, reduction]
            yield "poisson_nll_loss", [make(4).abs(), make(4).abs() * 3, False, True, 1e-3, reduction]
        grad = [2] if reduction == 0 else []
        yield "soft_margin_loss_backward", [randn(*grad), randn(2), signs(2), reduction]
        for weight in (None, randn(3).abs()):
            x, target = randn(2, 3, 2, 2), integers(2, 2, 2, low=0, high=3)
            yield "nll_loss2d", [x, target, weight, reduction]
            yield "nll_loss2d", [x, target, weight, reduction, 1]
            yield "nll_loss2d_forward", [x, target, weight, reduction, 1]
            _, total = torch.ops.aten.nll_loss2d_forward(x, target, weight, reduction, 1)
            grad = [2, 2, 2] if reduction == 0 else []
            yield "nll_loss2d_backward", [randn(*grad), x, target, weight, reduction, 1, total]
    yield "margin_ranking_loss", [randn(3), randn(2, 1), signs(2, 3)]
    yield "hinge_embedding_loss", [randn(2, 3), signs(3)]
    yield "hinge_embedding_loss", [randn(3), of(1, -1, 2)]
    yield "triplet_margin_loss", [randn(2, 3), randn(2, 3), randn(2, 3), 0.5, 3.0, 1e-3, True]
    yield "triplet_margin_loss", [randn(2, 3), randn(1, 3), randn(3), 0.5]
    yield "triplet_margin_loss", [randn(3), randn(3), randn(3)]
    yield "soft_margin_loss", [randn(2, 3), signs(2, 3).to(torch.int64)]
    yield "cosine_embedding_loss", [randn(3), randn(3), signs()]
    yield "cosine_embedding_loss", [randn(2, 3), randn(2, 3), signs()]
    yield "cosine_embedding_loss", [randn(2, 3), randn(2, 3), of(1, 2)]
    yield "cosine_embedding_loss", [torch.zeros(2, 3, dtype=F64), randn(2, 3), signs(2)]
    yield "nll_loss2d", [randn(2, 3, 2), integers(2, 2, low=0, high=3)]
    yield "nll_loss2d", [randn(2, 3, 2, 2), torch.full((2, 2, 2), 3)]

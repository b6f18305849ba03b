"""Norms, powers and products of matrices."""

import torch

from calls import BF16, C64, C128, F16, F32, F64, INF, integers, randn


def calls():
    yield from products()
    yield from norms()


def products():
    for dtype in (F64, F32, F16, BF16, C64, torch.int32):
        draw = (lambda *sizes: integers(*sizes, dtype=dtype)) if dtype == torch.int32 else (lambda *sizes: randn(*sizes, dtype=dtype))
        yield "linalg_cross", [draw(2, 3), draw(2, 3)]
        yield "cross", [draw(3, 3, 2), draw(3, 3, 2)]
        yield "kron", [draw(2, 3), draw(3, 2)]
        yield "linalg_vecdot", [draw(2, 3), draw(2, 3)]
        yield "tensordot", [draw(2, 3, 4), draw(4, 3, 2), [1, 2], [1, 0]]
        yield "matrix_power", [draw(3, 3), 3]
    yield "linalg_cross", [randn(3, 1), randn(3, 4)], {"dim": 0}
    yield "linalg_cross", [randn(2, 3), randn(3)]
    yield "linalg_cross", [randn(2, 2), randn(2, 2)]
    yield "linalg_cross", [randn(2, 3), randn(2, 3, dtype=F32)]
    yield "cross", [randn(2, 3), randn(2, 3), 1]
    yield "cross", [randn(2, 3), randn(2, 3), 0]
    yield "cross", [randn(2, 2), randn(2, 2)]
    yield "cross", [randn(3, 1), randn(3, 2)]
    for first, second in (((), (2,)), ((2,), (3,)), ((2,), (2, 3)), ((2, 1, 3), (2, 2)), ((0, 2), (2, 2))):
        yield "kron", [randn(*first), randn(*second)]
    yield "kron", [randn(2, dtype=F32), randn(2)]
    for first, second, dims_self, dims_other in (
        ((2, 3), (3, 2), [], []),
        ((2, 3), (3, 2), [0, 1], [1, 0]),
        ((2, 3), (3, 2), [-1], [-2]),
        ((2, 1), (3, 2), [1], [0]),
        ((2, 3, 4), (5, 1, 4), [1, 2], [1, 2]),
        ((2, 0), (0, 3), [1], [0]),
        ((), (), [], []),
        ((2, 3), (3, 2), [0], [0]),
        ((2, 3), (3, 2), [0, 1], [0]),
        ((2, 3), (3, 2), [0, 0], [1, 1]),
    ):
        yield "tensordot", [randn(*first), randn(*second), dims_self, dims_other]
    yield "tensordot", [randn(2, dtype=F32), randn(2), [0], [0]]
    yield "linalg_vecdot", [randn(2, 3), randn(2, 1)], {"dim": 0}
    yield "linalg_vecdot", [randn(2, 3, dtype=C128), randn(3, dtype=C128)]
    for name in ("matrix_power", "linalg_matrix_power"):
        yield name, [randn(2, 2, dtype=F32), 0]
        for n in (1, 2, 5, 6, -1, -3):
            yield name, [randn(2, 2) + 2 * torch.eye(2, dtype=F64), n]
        yield name, [randn(2, 3, 3), 2]
        yield name, [randn(2, 3), 2]
        yield name, [randn(2), 2]
        yield name, [integers(2, 2), -1]
        yield name, [torch.zeros(2, 2), -1]


def norms():
    orders = [1, -1, 2, -2, INF, -INF]
    for dtype in (F64, F32, C64):
        for ord in orders:
            yield "linalg_matrix_norm", [randn(2, 3, 4, dtype=dtype), ord]
            yield "linalg_matrix_norm", [randn(2, 3, 4, dtype=dtype), ord, [2, 0], True]
            yield "linalg_norm", [randn(3, 2, dtype=dtype), ord]
            yield "linalg_norm", [randn(2, 3, dtype=dtype), ord, [1]]
        for ord in ("fro", "nuc"):
            yield "linalg_matrix_norm.str_ord", [randn(2, 3, 4, dtype=dtype), ord]
            yield "linalg_matrix_norm.str_ord", [randn(2, 3, 4, dtype=dtype), ord, [-1, 0], True]
            yield "linalg_norm.ord_str", [randn(3, 2, dtype=dtype), ord]
        for keepdim in (False, True):
            yield "linalg_norm", [randn(2, 3, dtype=dtype), None, None, keepdim]
            yield "linalg_norm", [randn(2, 3, dtype=dtype), None, [0, 1], keepdim]
            yield "frobenius_norm.dim", [randn(2, 3, dtype=dtype), [1], keepdim]
            yield "frobenius_norm.dim", [randn(2, 3, dtype=dtype), [0, 1], keepdim]
            yield "nuclear_norm", [randn(2, 3, dtype=dtype), keepdim]
            yield "nuclear_norm.dim", [randn(2, 3, 2, dtype=dtype), [0, 2], keepdim]
        for p in (2, 1, 0, 3.5, INF, -INF):
            yield "norm.Scalar", [randn(2, 3, dtype=dtype), p]
            yield "norm.ScalarOpt_dim", [randn(2, 3, dtype=dtype), p, [1]]
        yield "norm.ScalarOpt_dim", [randn(2, 3, dtype=dtype), None, [0], True]
    yield "linalg_matrix_norm", [randn(2, 3, dtype=F32), 2], {"dtype": F64}
    yield "linalg_matrix_norm.str_ord", [randn(2, 3, dtype=F32)], {"dtype": F64}
    yield "linalg_norm", [randn(2, 3, dtype=F32), 1], {"dtype": F64}
    yield "norm.ScalarOpt_dtype", [randn(2, 3, dtype=F32), 2], {"dtype": F64}
    yield "norm.ScalarOpt_dtype", [randn(2, 3, dtype=F32), None], {"dtype": F64}
    yield "norm.ScalarOpt_dim_dtype", [randn(2, 3, dtype=F32), 1, [0], True], {"dtype": F64}
    yield "norm.Scalar", [randn(2, 3, dtype=F16)]
    # Refused.
    yield "linalg_matrix_norm", [randn(2, 3), 3]
    yield "linalg_matrix_norm", [randn(3), 1]
    yield "linalg_matrix_norm", [randn(2, 3), 1, [0]]
    yield "linalg_matrix_norm", [randn(2, 3), 1, [0, 0]]
    yield "linalg_matrix_norm", [integers(2, 3), 1]
    yield "linalg_matrix_norm.str_ord", [randn(2, 3), "other"]
    yield "linalg_norm", [randn(2, 3, 4), 1]
    yield "linalg_norm", [integers(2, 3)]
    yield "norm.Scalar", [integers(2, 3)]
    yield "nuclear_norm", [randn(2, 3, 4)]

"""Dense linear algebra, of the results that are unique: triangular factors, solutions, determinants, singular values."""

import torch

from calls import C64, C128, F16, F32, F64, integers, of, randn

DTYPES = [F64, F32, C64, C128]


def calls():
    yield from factors()
    yield from systems()
    yield from determinants()
    yield from values()
    yield from least_squares()


def regular(*sizes, dtype=F64):
    """Matrices whose elimination is well-conditioned."""
    return randn(*sizes, dtype=dtype) + 2 * torch.eye(sizes[-2], sizes[-1], dtype=dtype)


def positive(*sizes, dtype=F64):
    x = randn(*sizes, dtype=dtype)
    return x @ x.mH + torch.eye(sizes[-1], dtype=dtype)


def factors():
    for dtype in DTYPES:
        for sizes in ((3, 3), (2, 4, 4), (1, 1), (0, 0), (0, 2, 2)):
            x = positive(*sizes, dtype=dtype)
            yield "linalg_cholesky_ex", [x]
            yield "linalg_cholesky", [x], {"upper": True}
            yield "linalg_inv_ex", [regular(*sizes, dtype=dtype)]
            yield "linalg_inv", [regular(*sizes, dtype=dtype)]
            if dtype != F64:
                yield "linalg_lu_factor_ex", [regular(*sizes, dtype=dtype)]
        for sizes in ((3, 3), (4, 2), (2, 4), (2, 3, 3), (0, 2), (2, 0)):
            for mode in ("reduced", "complete", "r"):
                yield "linalg_qr", [regular(*sizes, dtype=dtype), mode]
        if dtype != F64:
            yield "linalg_lu_factor_ex", [randn(4, 2, dtype=dtype)]
            yield "linalg_lu_factor_ex", [randn(2, 4, dtype=dtype)]
            yield "linalg_lu_factor_ex", [regular(3, 3, dtype=dtype)], {"pivot": True}
    yield "linalg_cholesky", [positive(60, 60, dtype=F32)]
    yield "linalg_inv", [regular(55, 55, dtype=F32)]
    for name in ("inverse", "linalg_inv", "linalg_inv_ex", "linalg_cholesky"):
        yield name, [integers(2, 2)]
        yield name, [randn(2, 2, dtype=F16)]
        yield name, [randn(2, 3)]
        yield name, [randn(2)]
    yield "inverse", [regular(2, 3, 3)]
    yield "linalg_cholesky", [-torch.eye(2, dtype=F64)]
    for name in ("linalg_inv", "inverse"):
        yield name, [torch.zeros(2, 2, dtype=F64)]
    yield "linalg_qr", [randn(2, 2), "other"]
    yield "linalg_lu_factor_ex", [torch.zeros(2, 2)]


def systems():
    for dtype in DTYPES:
        for a, b in (((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((0, 0), (0, 2))):
            yield "linalg_solve", [regular(*a, dtype=dtype), randn(*b, dtype=dtype)]
        yield "linalg_solve", [regular(2, 2, dtype=dtype), randn(3, 2, dtype=dtype)], {"left": False}
        yield "linalg_solve_ex", [regular(2, 2, dtype=dtype), randn(2, 3, dtype=dtype)]
        yield "_linalg_solve_ex", [regular(2, 2, dtype=dtype), randn(2, 3, dtype=dtype)]
        for upper in (False, True):
            for unit in (False, True):
                options = {"upper": upper, "unitriangular": unit}
                yield "linalg_solve_triangular", [regular(3, 3, dtype=dtype), randn(3, 2, dtype=dtype)], options
                right = [regular(2, 3, 3, dtype=dtype), randn(2, 3, dtype=dtype)]
                yield "linalg_solve_triangular", right, {"left": False, **options}
            if dtype != F64:  # The gradient there has elements beyond the triangle.
                yield "cholesky_solve", [randn(3, 2, dtype=dtype), regular(3, 3, dtype=dtype), upper]
    yield "cholesky_inverse", [torch.linalg.cholesky(positive(3, 3)).float()]
    lu, pivots = torch.linalg.lu_factor(regular(2, 3, 3))
    for left, adjoint in ((True, False), (True, True), (False, False), (False, True)):
        options = {"left": left, "adjoint": adjoint}
        with_no_gradient = [lu.float(), pivots, randn(2, 3, 3, dtype=F32)]
        yield "linalg_lu_solve", with_no_gradient, options
    # Refused.
    yield "linalg_solve", [torch.zeros(2, 2, dtype=F64), randn(2)]
    yield "linalg_solve", [randn(2, 3), randn(2)]
    yield "linalg_solve", [randn(2, 2), randn(3)]
    yield "linalg_solve", [randn(2, 2), randn(2)], {"left": False}
    yield "linalg_solve", [randn(2, 2), randn(2, 2, dtype=F32)]
    yield "linalg_solve", [integers(2, 2), integers(2, 2)]
    yield "linalg_solve_triangular", [randn(2, 2), randn(2)], {"upper": True}
    yield "linalg_solve_triangular", [randn(2, 3), randn(2, 2)], {"upper": True}


def determinants():
    for name in ("linalg_det", "det", "linalg_slogdet", "slogdet", "logdet", "_linalg_det", "_linalg_slogdet"):
        for dtype in DTYPES:
            for sizes in ((3, 3), (2, 2, 2), (1, 1), (0, 0)):
                # Of real matrices, the factors are those of the transposed ones there.
                if dtype.is_complex or name[0] != "_":
                    yield name, [regular(*sizes, dtype=dtype)]
            yield name, [torch.zeros(2, 2, dtype=F32).to(dtype if dtype != F64 else F32)]
        if name[0] != "_":
            yield name, [of([0.0, 1.0], [1.0, 0.0])]
        yield name, [integers(2, 2)]
        yield name, [randn(2, 3)]


def values():
    for dtype in DTYPES:
        for sizes in ((3, 3), (4, 2), (2, 5), (2, 3, 2), (1, 1), (0, 2), (2, 0)):
            yield "linalg_svdvals", [randn(*sizes, dtype=dtype)]
        for sizes in ((3, 3), (2, 4, 4), (1, 1), (0, 0)):
            x = randn(*sizes, dtype=dtype)
            yield "linalg_eigvalsh", [x + x.mH]
            yield "linalg_eigvalsh", [x, "U"]
    x = randn(30, 20, dtype=F32)
    yield "linalg_svdvals", [x]
    yield "linalg_svdvals", [x @ x.mT]
    yield "linalg_svdvals", [torch.zeros(3, 2)]
    yield "linalg_svdvals", [torch.ones(3, 4)]
    yield "linalg_svdvals", [of([1e-20, 1.0], [0.0, 1e10])]
    yield "linalg_eigvalsh", [x @ x.mT]
    yield "linalg_eigvalsh", [torch.zeros(3, 3)]
    yield "linalg_eigvalsh", [torch.ones(3, 3)]
    yield "linalg_eigvalsh", [torch.eye(3, dtype=F32)]
    for name in ("linalg_svdvals", "linalg_eigvalsh"):
        yield name, [integers(2, 2)]
        yield name, [randn(2, 2, dtype=F16)]
        yield name, [randn(2)]
        yield name, [torch.full((2, 2), float("nan"))]
    yield "linalg_eigvalsh", [randn(2, 3)]
    yield "linalg_eigvalsh", [randn(2, 2), "X"]


def least_squares():
    for dtype in DTYPES:
        for sizes in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2), (2, 0)):
            x = randn(*sizes, dtype=dtype)
            yield "linalg_pinv.atol_rtol_float", [x]
            yield "pinverse", [x]
            for driver in (None, "gels") if sizes[-1] else (None,):
                yield "linalg_lstsq", [x, randn(*sizes[:-1], 2, dtype=dtype)], {"driver": driver}
        x = randn(3, 3, dtype=dtype)
        yield "linalg_pinv.atol_rtol_float", [x + x.mH], {"hermitian": True}
        yield "linalg_pinv", [x, 0.4]
    low = randn(4, 2) @ randn(2, 3)
    yield "linalg_pinv.atol_rtol_float", [low]
    yield "linalg_pinv.atol_rtol_float", [randn(3, 2)], {"atol": 0.5}
    yield "linalg_pinv.atol_rtol_float", [randn(3, 2)], {"atol": 0.1, "rtol": 0.5}
    yield "linalg_lstsq", [low.float(), randn(4, 2, dtype=F32)]
    yield "linalg_lstsq", [low.float(), randn(4, 2, dtype=F32), 1e-4]
    yield "linalg_lstsq", [randn(4, 2), randn(4)]
    yield "linalg_lstsq", [randn(2, 4, 2), randn(2, 4)], {"driver": "gels"}
    # Refused.
    for name in ("linalg_pinv.atol_rtol_float", "pinverse"):
        yield name, [randn(2)]
        yield name, [integers(2, 2)]
    yield "linalg_lstsq", [randn(3, 2), randn(2, 2)]
    yield "linalg_lstsq", [randn(3, 2), randn(3, 2, dtype=F32)]
    yield "linalg_lstsq", [randn(3, 2), randn(3, 2)], {"driver": "other"}

"""Order statistics, histograms, sums without NaN, running extremes."""

import torch

from calls import BF16, C64, C128, F16, F32, F64, INF, NAN, integers, of, randn


def calls():
    for group in (medians, quantiles, sums, counts, running, moments):
        yield from group()


def medians():
    inputs = [
        randn(2, 5),
        randn(2, 4, 3),
        randn(4, dtype=F32),
        randn(5, dtype=BF16),
        of(1, NAN, 3, 2, NAN),
        of(NAN, NAN),
        of(INF, -INF, 0),
        randn(),
        torch.randperm(7),
        torch.randperm(6).to(torch.uint8),
    ]
    for x in inputs:
        yield "median", [x]
        yield "nanmedian", [x]
        yield "median.dim", [x, -1]
        yield "median.dim", [x, 0, True]
        yield "nanmedian.dim", [x, -1]
        yield "kthvalue", [x, 1]
        yield "kthvalue", [x, 2, -1, True]
        yield "mode", [x]
        yield "mode", [x, 0, True]
    for name in ("median", "nanmedian"):
        yield name, [randn(0)]
        yield f"{name}.dim", [randn(2, 0), 0]
        yield f"{name}.dim", [randn(2, 0), 1]
        yield name, [randn(2, dtype=C64)]
    yield "kthvalue", [randn(3), 0]
    yield "kthvalue", [randn(3), 4]
    yield "kthvalue", [randn(2, 0), 1]
    yield "mode", [of(3, 1, 3, 1, 2, dtype=torch.int64)]
    yield "mode", [of(True, False, True, dtype=torch.bool)]
    yield "mode", [randn(2, 0)]


def quantiles():
    several = of(0, 0.1, 0.5, 0.77, 1)
    for name in ("quantile", "nanquantile"):
        for interpolation in ("linear", "lower", "higher", "midpoint", "nearest"):
            yield name, [randn(2, 5), several, 1], {"interpolation": interpolation}
            yield name, [randn(4, 3), of(0.3)[0], 0], {"interpolation": interpolation}
            yield f"{name}.scalar", [randn(4), 0.4], {"interpolation": interpolation}
        x = randn(2, 3, 4)
        x[0, 1, 2] = NAN
        for args in ([None], [None, True], [0], [-2, True], [2]):
            yield name, [x, several, *args]
            yield name, [x, of(0.3)[0], *args]
            yield f"{name}.scalar", [x, 0.5, *args]
        yield name, [of(NAN, NAN), several]
        yield name, [randn(3, dtype=F32), several.to(F32)]
        yield name, [randn(), several]
        yield name, [of(INF, 1, -INF), of(0.5, 0.5)]
        yield name, [randn(3, dtype=F32), several]
        yield name, [integers(3), several]
        yield name, [randn(0), several]
        yield name, [randn(3), randn(2, 2)]
        yield name, [randn(3), several], {"interpolation": "cubic"}
        yield f"{name}.scalar", [randn(3), 1.5]


def sums():
    x = randn(2, 3)
    x[0, 1] = NAN
    for name in ("nansum", "nanmean"):
        for args in ([], [[0]], [[1], True], [[0, 1]], [[]], [None, True]):
            yield name, [x, *args]
        yield name, [x.to(F16)], {"dtype": F32}
        yield name, [of(NAN, NAN)]
        yield name, [integers(3)]
        yield name, [randn(0, 2), [0]]
        yield name, [randn(2, dtype=C128)]
    y = integers(3, 4, low=-1, high=2)
    for dtype in (torch.int64, torch.bool, F32, C64):
        yield "count_nonzero", [y.to(dtype)]
        yield "count_nonzero", [y.to(dtype), 0]
        yield "count_nonzero.dim_IntList", [y.to(dtype), [0, -1]]
        yield "count_nonzero.dim_IntList", [y.to(dtype), [1]]
    yield "count_nonzero", [x]
    yield "count_nonzero.dim_IntList", [y, []]
    for value in (x, randn(3, 2), integers(3, 2), of(1, 1, 0), randn()):
        yield "aminmax", [value]
        yield "aminmax", [value], {"dim": 0}
        yield "aminmax", [value], {"dim": -1, "keepdim": True}
        yield "aminmax", [value], {"keepdim": True}
    yield "aminmax", [randn(0)]
    for p, dim, largest in [(2, 0, 1.0), (1, 1, 0.5), (INF, -1, 0.3), (3.5, 0, 100.0), (2, 0, 0.0)]:
        yield "renorm", [randn(3, 4), p, dim, largest]
        yield "renorm", [randn(3, 4, dtype=F32), p, dim, largest]
    yield "renorm", [randn(3, 2, 2, dtype=BF16), 2, 1, 0.5]
    yield "renorm", [randn(3, 2, dtype=C64), 2, 1, 0.5]
    yield "renorm", [randn(3), 2, 0, 0.5]


def counts():
    x = of(0, 1, 1.5, 2, 3, -1, NAN)
    for args in ([4], [4, 0, 3], [2, 1, 1.5], [3, 0, 2], [1], [5, 3, 1], [0]):
        yield "histc", [x[:6], *args]
    yield "histc", [x, 4, 0, 3]
    yield "histc", [x, 4]
    yield "histc", [randn(50, dtype=F32), 7]
    yield "histc", [randn(50, dtype=F32), 10, -1, 1]
    yield "histc", [randn(0), 3]
    yield "histc", [of(2, 2), 3]
    yield "histc", [of(INF, 1), 3]
    for x in (integers(9, low=0), integers(9, low=0, dtype=torch.int32), integers(0), integers(4, low=0, dtype=torch.uint8)):
        yield "bincount", [x]
        yield "bincount", [x, None, 9]
        for dtype in (F64, F32, F16, torch.int64):
            weights = randn(x.numel(), dtype=dtype) if dtype.is_floating_point else integers(x.numel())
            yield "bincount", [x, weights]
    yield "bincount", [of(-1, 2, dtype=torch.int64)]
    yield "bincount", [randn(2)]
    yield "bincount", [integers(2, 2, low=0)]
    yield "bincount", [integers(2, low=0), randn(3)]
    yield "bincount", [integers(2, low=0), None, -1]


def running():
    for name in ("cummax", "cummin"):
        for x in (randn(2, 5), of(1, 3, 3, NAN, 5, NAN), integers(4, 3), randn(), randn(4, dtype=BF16), randn(0, 2)):
            yield name, [x, 0]
            yield name, [x, -1]
        yield name, [of(True, False, True, dtype=torch.bool), 0]
        yield name, [randn(2), 1]
        yield name, [randn(2, dtype=C64), 0]
    for x in (randn(2, 5), of(1, -INF, 3, INF, 5), of(-INF, -INF, 2), of(1, NAN, 2), randn(), randn(0, 2)):
        yield "logcumsumexp", [x, 0]
        yield "logcumsumexp", [x, -1]
    for dtype in (F32, BF16):
        yield "logcumsumexp", [randn(8, dtype=dtype), 0]
    yield "logcumsumexp", [integers(3), 0]


def moments():
    for y, x, dim in [(randn(2, 4), randn(4), -1), (randn(4, 2), randn(4), 0), (randn(2, 3, 4), randn(3, 1), 1), (randn(2, 3), randn(2, 3), -1)]:
        yield "trapezoid.x", [y, x], {"dim": dim}
    yield "trapezoid.x", [randn(2, 3), randn(2)]
    yield "trapezoid.x", [integers(4), integers(4)]
    yield "trapezoid.x", [randn(2, 0), randn(0)]
    for y, options in [(randn(2, 4), {}), (randn(4, 2), {"dx": 0.5, "dim": 0}), (integers(5), {"dx": 2}), (randn(2, 0), {}), (randn(1), {}), (randn(), {})]:
        yield "trapezoid.dx", [y], options
    for x in (randn(2, 5), randn(4), randn(), randn(3, 4, dtype=F32), randn(2, 1)):
        yield "cov", [x]
        yield "cov", [x], {"correction": 0}
        yield "corrcoef", [x]
    f, a = of(1, 2, 3, 1, dtype=torch.int64), of(0.5, 1, 2, 1)
    yield "cov", [randn(2, 4)], {"fweights": f}
    yield "cov", [randn(2, 4)], {"aweights": a}
    yield "cov", [randn(4)], {"aweights": a, "fweights": f}
    yield "cov", [randn(2, 4)], {"aweights": a, "correction": 0}
    yield "cov", [randn(2, 3, dtype=C128)]
    yield "cov", [randn(2, 2, 2)]
    yield "cov", [integers(2, 4)]

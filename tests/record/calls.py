"""The calls that `record.py` records: arguments at which operators are easily wrong."""

from itertools import product

import torch

F16, BF16, F32, F64, C64, C128 = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
)
HALVES = [F16, BF16]
INF, NAN = float("inf"), float("nan")


def of(*elements, dtype=F64):
    return torch.tensor(elements, dtype=dtype)


def randn(*sizes, dtype=F64, scale=1.0):
    wide = dtype if dtype.is_complex or dtype == F64 else F32
    return (torch.randn(sizes, dtype=wide) * scale).to(dtype)


def integers(*sizes, dtype=torch.int64, low=-5, high=6):
    return torch.randint(max(low, 0) if dtype == torch.uint8 else low, high, sizes).to(dtype)


def calls():
    """Every call: an overload, its arguments, its keyword arguments."""
    for group in (numbers, ranges, reductions, norms, logarithms, bounds, powers, products, windows, losses, indices):
        for name, args, *kwargs in group():
            yield name, args, kwargs[0] if kwargs else {}


def numbers():
    """Numbers that meet elements of less precision, and quotients that are rounded."""
    elements = [0.1, -0.1, 0.3, 1 / 3, 2.7, -2.7, 1e-3, 100.1, 0.5, 1, 2, 3, 0, 5.1, -7.3]
    for dtype, number in product([*HALVES, F32], [0.1, -0.1, 1 / 3, 2.7, 1.5]):
        x = of(*elements, dtype=dtype)
        for name in ("eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod"):
            yield f"{name}.Scalar", [x, number]
        yield "remainder.Scalar_Tensor", [number, x]
        yield "pow.Tensor_Scalar", [x, number]
        yield "pow.Scalar", [number, x]
        yield "floor_divide.Scalar", [x, number]
    for dtype, mode in product([*HALVES, F32], ["trunc", "floor", None]):
        a, b = randn(200, dtype=dtype, scale=8), randn(200, dtype=dtype)
        yield "div.Tensor_mode", [a, b], {"rounding_mode": mode}
        yield "div.Tensor_mode", [a, b[:1]], {"rounding_mode": mode}
        yield "div.Scalar_mode", [a, 0.1], {"rounding_mode": mode}
    yield "roll", [randn(5), []]
    yield "roll", [randn(2, 3), [1, 1], [0, 1]]
    for real, imag in [(F32, F32), (F64, F64), (F32, F64), (F32, torch.int32), (torch.int64, torch.int64), (BF16, BF16)]:
        yield "complex", [torch.ones(2, dtype=real), torch.ones(2, dtype=imag)]


def ranges():
    """Sequences whose ends and steps are no integers, in every dtype."""
    dtypes = [None, torch.int64, torch.int32, torch.uint8, F16, F32, F64]
    for start, end, steps in ((2, INF, 1), (2.0, 1j, 2), (0, 5, 3), (3, 3, 1)):
        yield "linspace", [start, end, steps]
    for dtype in dtypes:
        for end in (5, 5.5, 3.1, 0.0, 4.999999999):
            yield "arange", [end], {"dtype": dtype}
        for start, end in ((0.5, 5.5), (-0.5, 4), (1.9, 7.2), (2, 7)):
            yield "arange.start", [start, end], {"dtype": dtype}
        for start, end, step in ((0, 5, 1.5), (0, 5, 0.5), (5.5, 0, -1), (0, 7.2, 2), (5, 0, -2), (0, 5, -1), (0, 5, 0)):
            yield "arange.start_step", [start, end, step], {"dtype": dtype}


def reductions():
    """Sums and truths over nothing, to sizes, and in dtypes that accumulate."""
    for dtype in (torch.bool, torch.uint8, torch.int32, torch.int64, F16, F32, F64, C64):
        x = (torch.rand(2, 3) > 0.5) if dtype == torch.bool else torch.arange(6).reshape(2, 3).to(dtype)
        for size in ([], [3], [1, 3], [2, 1], [1, 1], [2, 3]):
            yield "sum_to_size", [x, size]
        yield "sum_to_size", [x[0, 0], []]
        for name, dim, keepdim in product(("any", "all"), (None, [], [0], [0, -1]), (False, True)):
            yield f"{name}.dims", [x, dim, keepdim]
    yield "cat", [[torch.zeros(0, dtype=F64), randn(3, 2, 2), torch.zeros(0, dtype=F64)]]


def norms():
    """Norms of every order, of nothing, and where powers overflow."""
    orders = [0, 0.5, 1, 2, 3, 6, -1, -2, INF, -INF]
    for dtype, ord in product([F16, BF16, F32, F64, C64], orders):
        yield "linalg_vector_norm", [randn(2, 3, 4, dtype=dtype, scale=4), ord]
        yield "linalg_vector_norm", [randn(2, 3, 4, dtype=dtype, scale=9), ord, [-1, 0], True]
    for shape, ord, dim in product([(0,), (0, 3), (2, 0)], [0, 1, 2, 3, -1, INF, -INF], [None, [0], [-1]]):
        yield "linalg_vector_norm", [torch.zeros(shape), ord, dim]
    yield "linalg_vector_norm", [of(8.5, dtype=F16), 6]
    yield "linalg_vector_norm", [randn(4, dtype=F16), 2], {"dtype": F32}
    yield "linalg_vector_norm", [randn(4, dtype=C64), 2], {"dtype": C128}
    yield "linalg_vector_norm", [integers(3), 2]
    shapes = [((1, 2, 3), (2, 1, 3), -2), ((2, 3), (2, 3), 1), ((2, 3), (3,), 0), ((4, 1, 2), (3, 2), -1), ((3, 1), (1, 4), 1)]
    for dtype, (first, second, dim) in product([F16, BF16, F32, F64], shapes):
        yield "cosine_similarity", [randn(*first, dtype=dtype), randn(*second, dtype=dtype), dim]
    yield "cosine_similarity", [of([0.0, 0.0], [1e-9, 0.0], [3.0, 4.0]), randn(3, 2), 1]
    yield "cosine_similarity", [randn(3, 2), randn(3, 2), 1, 10.0]
    yield "cosine_similarity", [randn(3, 2, dtype=F16), randn(3, 2)]
    yield "cosine_similarity", [integers(3, 2), randn(3, 2)]
    yield "cosine_similarity", [integers(3, 2), integers(3, 2)]
    yield "cosine_similarity", [randn(3, 2, dtype=C64), randn(3, 2, dtype=C64)]


def logarithms():
    """Sums of exponentials, odds, and the derivatives of the gamma function's logarithm."""
    for dtype in (F16, BF16, F32, F64, C64, C128):
        yield "logsumexp", [randn(3, 4, dtype=dtype, scale=5), [1]]
        yield "logsumexp", [randn(3, 4, dtype=dtype), [0, -1], True]
        yield "logsumexp", [torch.zeros(0, dtype=dtype), [0]]
        yield "logsumexp", [torch.zeros(0, 3, dtype=dtype), [0], True]
        yield "logsumexp", [torch.full((2, 2), -INF, dtype=dtype), [0]]
        yield "logaddexp", [randn(5, 1, dtype=dtype, scale=20), randn(5, dtype=dtype)]
        yield "logaddexp", [of(INF, -INF, 1.0, NAN, 2.0, -INF, dtype=dtype), of(INF, -INF, 1.0, 0.0, INF, 3.0, dtype=dtype)]
    yield "logsumexp", [integers(2, 3), [1]]
    x = of(-1.0, 0.0, 0.1, 0.3, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.7, 1.0, 2.0)
    for dtype, eps in product([F16, BF16, F32, F64], [None, 0.0, 0.2, 1 / 3, 0.5, 0.6, 1.0, 1.3, -1.0]):
        yield "logit", [x.to(dtype), eps]
    yield "logit", [torch.tensor([0, 1, 3, 200], dtype=torch.uint8), 0.6]
    yield "logit", [torch.tensor([True, False]), 0.6]
    special = of(-INF, INF, NAN, 0.0, -0.0, -1.0, -2.0, -3.0, -1.5, -2.001, 0.2, 0.5, 1.0, 30.5, 1e10, -7.3)
    yield "digamma", [special]
    for n, dtype in product([0, 1], [F32, F64, torch.int64, torch.int16]):
        elements = special[special != INF] if dtype.is_floating_point else torch.arange(-4, 5)
        yield "polygamma", [n, elements.to(dtype)]


def bounds():
    """Ties and NaN between elements and their bounds, where gradients are shared."""
    triples = list(product((1.0, 2.0, 3.0, NAN), repeat=3))
    x, low, high = (of(*column) for column in zip(*triples))
    for args in ([x, low, high], [x, low], [x, None, high]):
        yield "clamp.Tensor", args
    for name in ("fmax", "fmin", "maximum", "minimum"):
        yield name, [x, low]
    zeros = of(0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 0.0, 3.0)
    yield "atan2", [zeros, of(0.0, 0.0, -0.0, -0.0, 0.0, 0.0, 2.0, -4.0)]


def powers():
    """Powers of complex numbers and of two."""
    for dtype in (C64, C128):
        base, exponent = randn(200, dtype=dtype, scale=4), randn(200, dtype=dtype, scale=4)
        yield "pow.Tensor_Tensor", [base, exponent]
        yield "pow.Tensor_Tensor", [base / 8, exponent]
        yield "pow.Tensor_Scalar", [base, 2.5 - 1j]
        yield "pow.Scalar", [1.5 + 0.5j, exponent]
        yield "exp2", [torch.tensor([complex(-INF, 1), complex(-INF, 0), 3, 1 + 2j], dtype=dtype)]


def products():
    """Products with scales that integers do not hold, and distances of stacks that broadcast."""
    for dtype in (torch.int64, torch.int32, torch.uint8, F16, BF16, F32, F64, C64):
        draw = (lambda *sizes: randn(*sizes, dtype=dtype)) if dtype.is_floating_point or dtype.is_complex else (
            lambda *sizes: integers(*sizes, dtype=dtype)
        )
        for beta, alpha in ((0.2, 0.6), (1, 1), (0, 2), (2, -1)):
            yield "addmv", [draw(5), draw(5, 10), draw(10)], {"beta": beta, "alpha": alpha}
            yield "addmv", [draw(1), draw(5, 10), draw(10)], {"beta": beta, "alpha": alpha}
            yield "addmv", [draw(), draw(10, 5).t(), draw(10)], {"beta": beta, "alpha": alpha}
    yield "addmv", [randn(4), randn(5, 10), randn(10)]
    for first, second in (((1, 2, 2), (2, 1, 1, 2)), ((3, 5), (0, 4, 5)), ((2, 3, 5), (4, 5))):
        x1, x2 = randn(*first), randn(*second)
        distances = torch.ops.aten._cdist_forward(x1, x2, 1.0, None)
        yield "_cdist_backward", [torch.ones_like(distances), x1, x2, 1.0, distances]


def windows():
    """Windows over half-precision elements, whose sums are rounded in memory or not."""
    transposed = [
        ((1, 2, 4), (2, 2, 4), 4, [3], [1], [4], [2], 2),
        ((2, 4, 8), (4, 6, 5), 6, [1], [2], [1], [0], 1),
        ((2, 8, 6, 6), (8, 4, 3, 3), 4, [2, 2], [1, 1], [1, 1], [1, 1], 1),
        ((2, 2, 4, 4), (2, 2, 4, 5), 4, [3, 2], [1, 2], [4, 4], [2, 3], 2),
        ((1, 4, 3, 4, 4), (4, 2, 3, 3, 3), 2, [1] * 3, [1] * 3, [1] * 3, [0] * 3, 1),
    ]
    for dtype, (x, w, bias, stride, padding, dilation, extra, groups) in product([*HALVES, F32], transposed):
        args = [stride, padding, dilation, True, extra, groups]
        yield "convolution", [randn(*x, dtype=dtype), randn(*w, dtype=dtype), randn(bias, dtype=dtype), *args]
        yield "convolution", [randn(*x, dtype=dtype), randn(*w, dtype=dtype), None, *args]
    for dtype in HALVES:
        weight = randn(4, 8, 3, 3, dtype=dtype)
        yield "convolution", [randn(2, 8, 6, 6, dtype=dtype), weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1]
        images, grid = randn(2, 3, 5, 9, dtype=dtype), (torch.rand(2, 4, 6, 2) * 2.4 - 1.2).to(dtype)
        for mode, outside, corners in product((0, 1, 2), (0, 1, 2), (False, True)):
            yield "grid_sampler_2d", [images, grid, mode, outside, corners]
        pads = [1, 1, 1, 1, 1, 1]
        yield "reflection_pad3d_backward", [randn(3, 5, 7, 7, dtype=dtype), randn(3, 3, 5, 5, dtype=dtype), pads]
        yield "replication_pad3d_backward", [randn(3, 5, 7, 7, dtype=dtype), randn(3, 3, 5, 5, dtype=dtype), pads]
        yield "avg_pool2d_backward", [randn(2, 3, 9, 9, dtype=dtype), randn(2, 3, 9, 9, dtype=dtype), [3, 3], [1, 1], [1], True, False, 2]
        yield "_adaptive_avg_pool3d_backward", [randn(2, 3, 6, 6, 6, dtype=dtype), randn(2, 3, 4, 4, 4, dtype=dtype)]
    yield "avg_pool2d_backward", [integers(1, 2, 3), integers(1, 4, 6), [2, 2], [2, 2], [0, 0], False, True, None]
    for dtype in (torch.bool, F16, C64, F64):
        planes = torch.ones(2, 1, 5, 5).to(dtype)
        yield "im2col", [planes, [2, 2], [1, 1], [0, 1], [1, 2]]
        yield "im2col", [planes[:0], [2, 2], [1, 1], [0, 0], [1, 1]]
    for sizes in ((0, 1, 4, 4), (1, 0, 4, 4, 4), (0, 1, 4, 4, 4)):
        yield "max_pool3d_with_indices", [torch.zeros(sizes), [1]]
    for sizes in ((0, 4, 4), (1, 0, 4, 4), (0, 1, 4, 4)):
        yield "max_pool2d_with_indices", [torch.zeros(sizes), [1]]


def losses():
    """Losses of probabilities, of one sample, and in half precision."""
    for dtype, reduction in product([BF16, F32, F64], (0, 1, 2)):
        for sizes in ((2, 3), (4, 3), (2, 3, 5), (3,)):
            scores, target = randn(*sizes, dtype=dtype), torch.rand(sizes, dtype=F64).to(dtype)
            yield "cross_entropy_loss", [scores, target, None, reduction]
            weight = (torch.rand(3, dtype=F64) + 0.5).to(dtype)
            yield "cross_entropy_loss", [scores, target, weight, reduction, -100, 0.1]
    for dtype, reduction in product([*HALVES, F32, F64], (0, 1, 2)):
        a, b = randn(5, 5, dtype=dtype, scale=6), randn(5, 5, dtype=dtype)
        for delta in (8.698115367693557, 0.5):
            yield "huber_loss", [a, b, reduction, delta]
        yield "smooth_l1_loss", [a, b, reduction, 0.7]
        yield "smooth_l1_loss", [of(INF, 1.0, -INF, 0.2, 0.0, dtype=dtype), of(0.0, 0.5, 0.1, 0.1, 0.0, dtype=dtype), reduction, 0.7]
        weight = (torch.rand(4, dtype=F64) + 0.5).to(dtype)
        for target in (2, -100):
            args = [randn(4, dtype=dtype), torch.tensor(target), weight, reduction, -100]
            yield "nll_loss_forward", args


def indices():
    """Indices that are none."""
    nothing = torch.zeros(0, dtype=torch.uint8)
    yield "gather", [randn(5), 0, nothing]
    yield "scatter_add", [randn(5), 0, nothing, torch.zeros(0, dtype=F64)]
    grad, weight, places, offsets = randn(2, 3), randn(4, 3), torch.tensor([0, 3, 1, 3]), torch.tensor([0, 3])
    for bags in (torch.tensor([0, 0, 0, 1]), torch.zeros(0, dtype=torch.int64)):
        yield "_embedding_bag_per_sample_weights_backward", [grad, weight, places, offsets, bags, 0]

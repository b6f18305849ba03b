"""Larger and smaller grids of the same contents."""

import torch

from calls import BF16, F16, F32, F64, INF, NAN, integers, of, randn

SIZES = {1: [2, 3, 5], 2: [1, 2, 4, 5], 3: [1, 2, 3, 4, 2]}
LARGER = {1: [8], 2: [7, 10], 3: [4, 6, 3]}
SMALLER = {1: [3], 2: [2, 3], 3: [2, 1, 1]}
NEAREST = [f"{name}{dims}d" for name in ("upsample_nearest", "_upsample_nearest_exact") for dims in (1, 2, 3)]
BETWEEN = ["upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"]


def calls():
    for name in NEAREST:
        yield from of_one(name, [])
        dims = int(name[-2])
        yield name, [integers(*SIZES[dims], dtype=torch.uint8, high=200), LARGER[dims]]
    for name in BETWEEN:
        for align in (False, True):
            yield from of_one(name, [align])
    yield "upsample_linear1d", [of(1.0, INF, NAN, -2.0, dtype=F32).reshape(1, 1, 4), [5], False]
    yield "upsample_nearest1d", [randn(1, 1, 7), [23], 3.3]
    yield "_upsample_nearest_exact1d", [randn(1, 1, 7, dtype=F32), [23], 3.3]
    yield "upsample_bilinear2d.vec", [randn(1, 1, 3, 3), [5, 5], False, [2.0, 2.0]]
    yield "upsample_bilinear2d.vec", [randn(1, 1, 3, 3), None, False, None]
    yield "upsample_bilinear2d.vec", [randn(1, 1, 3, 3), None, False, [0.2, 0.2]]
    yield "upsample_bilinear2d.vec", [randn(1, 1, 3, 3), None, False, [-1.0, 1.0]]
    yield "upsample_bilinear2d.vec", [randn(1, 1, 3, 3), None, False, [2.0]]
    yield "upsample_bilinear2d.vec", [randn(1, 3, 3), None, False, [2.0, 2.0]]


def of_one(name, align):
    dims = int(name[-2])
    sizes, scales = SIZES[dims], [1.7, 0.6, 2.0][:dims]
    scaled = [int(size * scale) for size, scale in zip(sizes[2:], scales)]
    yield name, [randn(*sizes), LARGER[dims], *align]
    yield name, [randn(*sizes), scaled, *align, *scales]
    yield name, [randn(*sizes), sizes[2:], *align]
    yield name, [randn(*sizes), [1] * dims, *align]
    for dtype in (F32, F16, BF16):
        yield name, [randn(*sizes, dtype=dtype), LARGER[dims], *align]
    yield name, [randn(*sizes).transpose(0, 1).contiguous().transpose(0, 1), SMALLER[dims], *align]
    yield f"{name}.vec", [randn(*sizes), None, *align, scales]
    yield f"{name}.vec", [randn(*sizes), SMALLER[dims], *align, None]
    yield f"{name}.vec", [randn(*sizes, dtype=F32), None, *align, [1.5] * dims]
    yield f"{name}_backward", [randn(*sizes[:2], *LARGER[dims]), LARGER[dims], sizes, *align]
    yield f"{name}_backward", [randn(*sizes[:2], *scaled), scaled, sizes, *align, *scales]
    yield f"{name}_backward", [randn(*sizes[:2], *SMALLER[dims], dtype=BF16), SMALLER[dims], sizes, *align]
    yield f"{name}_backward", [randn(*sizes[:2], *LARGER[dims]), SMALLER[dims], sizes, *align]
    # Without elements, and refused.
    yield name, [torch.zeros(0, *sizes[1:], dtype=F64), LARGER[dims], *align]
    yield name, [torch.zeros(sizes[0], 0, *sizes[2:], dtype=F64), LARGER[dims], *align]
    yield name, [torch.zeros(*sizes[:2], *[0] * dims, dtype=F64), LARGER[dims], *align]
    yield name, [randn(*sizes), [0] * dims, *align]
    yield name, [randn(*sizes), [2] * (dims + 1), *align]
    yield name, [randn(*sizes[1:]), LARGER[dims], *align]
    yield name, [integers(*sizes), LARGER[dims], *align]

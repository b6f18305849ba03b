"""Signs, special values, closeness and units of elements; operators of Python; tensors that programs make."""

import torch

from calls import BF16, C64, C128, F16, F32, F64, HALVES, INF, NAN, integers, of, randn


def calls():
    for group in (special, close, signs, units, bits, programs):
        yield from group()


def special():
    for dtype in (F64, F32, *HALVES):
        yield "nan_to_num", [of(NAN, INF, -INF, 1.5, -0.0, dtype=dtype)]
        yield "nan_to_num", [of(NAN, INF, -INF, 1.5, dtype=dtype), 2.5, 7.0, -3.0]
        yield "nan_to_num", [of(NAN, INF, -INF, dtype=dtype), None, 7.0]
    yield "nan_to_num", [of(complex(NAN, INF), complex(-INF, 2), 1 + 2j, dtype=C64)]
    for x in (integers(2, 3), randn(), randn(0, 2), of(True, False, dtype=torch.bool)):
        yield "nan_to_num", [x]
    for dtype in (F64, F32, F16, torch.int64, torch.int32):
        yield "heaviside", [of(-1, 0, 2, dtype=dtype), of(5, 6, 7, dtype=dtype)]
        yield "heaviside", [of(-1, 0, 2, dtype=dtype), of(3, dtype=dtype)]
    yield "heaviside", [of(NAN, -0.0, INF, -INF, dtype=F32), of(NAN, NAN, 1, 1, dtype=F32)]
    yield "heaviside", [of(True, False, dtype=torch.bool), of(True, True, dtype=torch.bool)]
    yield "heaviside", [randn(2), randn(2, dtype=F32)]
    yield "heaviside", [randn(2, dtype=C64), randn(2, dtype=C64)]


def close():
    pairs = [
        (of(1, 2, NAN, INF, -INF, INF), of(1 + 1e-9, 2.1, NAN, INF, INF, 1)),
        (of(1, 2, NAN, INF, dtype=F32), of(1 + 1e-6, 2.001, NAN, INF, dtype=F32)),
        (of(1, 2, 3, dtype=F16), of(1.001, 2, 3.5, dtype=F16)),
        (of(1 + 2j, 3, dtype=C128), of(1 + 2.000001j, 3j, dtype=C128)),
        (of(1, 2, 100000, dtype=torch.int64), of(1, 3, 100001, dtype=torch.int64)),
        (of(1, 200, dtype=torch.uint8), of(2, 200, dtype=torch.uint8)),
        (of(True, False, dtype=torch.bool), of(True, True, dtype=torch.bool)),
        (randn(2, 1), randn(3)),
        (randn(0), randn(0)),
        (randn(2), randn(3)),
        (randn(2), randn(2, dtype=F32)),
    ]
    for name in ("isclose", "allclose"):
        for a, b in pairs:
            yield name, [a, b]
            yield name, [a, b, 1e-3, 0.1, True]
            yield name, [a, b, 0.0, 0.0]
        yield name, [pairs[0][0], pairs[0][1], -1.0]
        yield name, [of(1, 2), of(1 + 1e-9, 2)]
        yield name, [of(1.0, NAN), of(1.0, NAN), 1e-5, 1e-8, True]
    for x in (of(0.0), of(2), of(NAN), randn(2), integers(1, 1), of(1j, dtype=C128), randn(0)):
        yield "is_nonzero", [x]


def signs():
    for dtype in (F64, F32, *HALVES):
        a, b = of(1, -2, 0.0, INF, NAN, 3, dtype=dtype), of(-0.0, 0.0, -1, -2, -3, NAN, dtype=dtype)
        yield "copysign.Tensor", [a, b]
        yield "copysign.Scalar", [a, -2.5]
        yield "signbit", [b]
    for dtype in (torch.int64, torch.uint8, torch.bool):
        yield "signbit", [of(0, 1, dtype=dtype)]
        yield "copysign.Tensor", [of(0, 1, dtype=dtype), randn(2, dtype=F32)]
    yield "signbit", [integers(5)]
    yield "signbit", [randn(2, dtype=C64)]
    yield "copysign.Scalar", [integers(3), -1]
    yield "copysign.Tensor", [randn(2, 1), randn(3)]
    for dtype in (F64, F32):
        a = of(0, 1, -1, INF, NAN, 2, 1e-310 if dtype == F64 else 1e-40, dtype=dtype)
        yield "nextafter", [a, of(1, INF, -INF, 0, 1, 2, 0, dtype=dtype)]
    yield "nextafter", [randn(2, 1), randn(3)]
    yield "ldexp.Tensor", [randn(2, 3), integers(3)]
    yield "ldexp.Tensor", [randn(2, 3, dtype=F32), integers(3, dtype=torch.int32)]
    yield "ldexp.Tensor", [randn(3), randn(3)]
    yield "ldexp.Tensor", [integers(3), integers(3)]


def units():
    for name in ("deg2rad", "rad2deg"):
        for x in (randn(2, 3, scale=100), randn(3, dtype=F32), randn(3, dtype=BF16), integers(3), randn(), randn(0)):
            yield name, [x]
    for dtype in (F64, F32, F16, torch.int64):
        yield "logspace", [0, 3, 4], {"dtype": dtype}
        yield "logspace", [0, 5, 6, 2.0], {"dtype": dtype}
    yield "logspace", [-2.5, 1, 5]
    yield "logspace", [1, -1, 1]
    yield "logspace", [1, 2, 0]
    yield "logspace", [1, 2, -1]


def bits():
    for name in ("and", "or", "xor"):
        for dtype in (torch.int64, torch.uint8, torch.bool):
            a, b = integers(2, 3, dtype=dtype), integers(3, dtype=dtype)
            yield f"__{name}__.Tensor", [a, b]
            yield f"__{name}__.Scalar", [a, True if dtype == torch.bool else 3]
        yield f"__{name}__.Tensor", [randn(2), randn(2)]
    for name in ("lshift", "rshift"):
        yield f"__{name}__.Tensor", [integers(2, 3), integers(3, low=0)]
        yield f"__{name}__.Scalar", [integers(2, 3, dtype=torch.int32), 2]


def programs():
    for size in ([3, 2], [-1], [6, 1], [4]):
        yield "_unsafe_view", [randn(2, 3), size]
    yield "_unsafe_view", [integers(0, 2), [2, 0]]

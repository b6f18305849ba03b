"""Operators of exported programs that compositions of others give, and Bessel functions."""

import torch

from calls import C64, F16, F32, F64, INF, NAN, integers, of, randn


def calls():
    """Every call: an overload, its arguments, its keyword arguments."""
    for group in (bessel, kaiser, numbers, angles, products, statistics, places, pieces, pools):
        for name, args, *kwargs in group():
            yield name, args, kwargs[0] if kwargs else {}


def bessel():
    for name in ("i0", "special_i0", "special_i0e", "special_i1", "special_i1e"):
        for dtype in (F64, F32, F16):
            yield name, [of(-20.0, -8.0, -1.5, -1e-3, 0.0, 0.25, 1.0, 7.9, 8.1, 10.5, INF, -INF, NAN, dtype=dtype)]
        yield name, [integers(6)]
        yield name, [randn(2, dtype=C64)]


def kaiser():
    for length in (0, 1, 2, 7, 8):
        yield "kaiser_window", [length], {"dtype": F64}
        for periodic in (False, True):
            yield "kaiser_window.periodic", [length, periodic], {"dtype": F64}
            yield "kaiser_window.beta", [length, periodic, 8.5], {"dtype": F64}
    yield "kaiser_window", [9]
    yield "kaiser_window", [-1]


def numbers():
    odd = of(-2.0, -0.5, 0.0, 0.3, 1.0, 4.0, INF, -INF, NAN)
    for name in ("special_entr", "special_ndtr", "isposinf", "isneginf", "isreal", "positive"):
        for x in (odd, odd.to(F32), integers(5)):
            yield name, [x]
    yield "isreal", [torch.complex(of(1.0, 2.0), of(0.0, 1.0))]
    yield "positive", [torch.tensor([True])]
    for x in (odd, odd.to(F32)):
        yield "special_xlog1py", [x, of(0.0, -1.0, -0.5, 2.0, NAN, 0.0, 1.0, 1.0, 1.0, dtype=x.dtype)]
        yield "logaddexp2", [x, of(0.0, -1.0, -0.5, 200.0, NAN, 0.0, INF, -INF, 1.0, dtype=x.dtype)]
    yield "special_xlog1py", [integers(3), integers(3, low=0)]
    yield "special_polygamma", [2, of(0.5, 1.0, 3.5)]
    for x in (randn(3), integers(3, low=1), randn(2, dtype=C64)):
        yield "float_power.Tensor_Scalar", [x, 2]
    yield "float_power.Tensor_Scalar", [torch.rand(3, dtype=F64), 1.5]
    yield "float_power.Tensor_Tensor", [torch.rand(2, 3, dtype=F64), randn(3)]
    yield "float_power.Tensor_Tensor", [integers(3, low=1), integers(3, low=0)]
    for decimals in (0, 1, 3, -1, -2):
        for dtype in (F64, F32):
            yield "round.decimals", [of(-123.4567, 0.05, 0.15, 2.5, 1234.5, 0.0, NAN, dtype=dtype)], {"decimals": decimals}
    yield "round.decimals", [integers(3)], {"decimals": 2}
    for name in ("true_divide.Tensor", "true_divide.Scalar"):
        yield name, [randn(2, 3), randn(3) if name.endswith("Tensor") else 1.5]
        yield name, [integers(3), integers(3, low=1) if name.endswith("Tensor") else 2]


def angles():
    for dtype in (F64, F32):
        yield "angle", [of(-1.5, 0.0, 2.0, NAN, -INF, dtype=dtype)]
    yield "angle", [integers(4)]
    yield "angle", [randn(2, 3, dtype=C64)]
    yield "angle", [torch.complex(of(-1.0, 0.0, 2.0), of(0.0, -1.0, 0.0))]
    for name in ("resolve_conj", "resolve_neg"):
        yield name, [randn(2, dtype=C64)]
    yield "matrix_H", [randn(2, 3, dtype=C64)]
    yield "matrix_H", [randn(2, 3, 4)]


def products():
    yield "inner", [randn(2, 3), randn(4, 3)]
    yield "inner", [randn(3), randn(3)]
    yield "inner", [randn(), randn(2)]
    yield "inner", [randn(2, 3), randn(4, 2)]
    yield "addr", [randn(2, 3), randn(2), randn(3)]
    yield "addr", [randn(3), randn(2), randn(3)], {"beta": 0.5, "alpha": 2}
    yield "addr", [of(NAN, NAN, NAN), randn(2), randn(3)], {"beta": 0}
    yield "addr", [randn(2, 3), randn(2, 1), randn(3)]
    yield "addbmm", [randn(2, 4), randn(3, 2, 3), randn(3, 3, 4)]
    yield "addbmm", [randn(4), randn(1, 2, 3), randn(1, 3, 4)], {"beta": 0.5, "alpha": 2}
    yield "addbmm", [randn(2, 4), randn(3, 2, 3), randn(2, 3, 4)]
    yield "bilinear", [randn(2, 3), randn(2, 4), randn(5, 3, 4), randn(5)]
    yield "bilinear", [randn(2, 2, 3), randn(2, 2, 4), randn(1, 3, 4)]
    yield "bilinear", [randn(2, 3), randn(2, 4), randn(5, 4, 3)]
    for p in (2, 1, 0, INF, 3.5):
        yield "dist", [randn(2, 3), randn(3), p]
    yield "linalg_lu_factor", [randn(3, 3, dtype=F32)]
    yield "linalg_lu_factor", [randn(2, 3, 4, dtype=F32)]
    yield "linalg_diagonal", [randn(2, 3, 4)]
    yield "linalg_diagonal", [randn(2, 3, 4)], {"offset": -1, "dim1": 0, "dim2": 2}


def statistics():
    for name in ("var_mean", "std_mean"):
        for unbiased in (False, True):
            yield name, [randn(2, 3), unbiased]
            yield f"{name}.dim", [randn(2, 3, 2), [0, -1], unbiased, True]
            yield f"{name}.dim", [randn(2, 3, 2, dtype=F32), [1], unbiased]
    for correction in (None, 0, 1, 1.5):
        yield "std_mean.correction", [randn(2, 3), [1]], {"correction": correction}
    yield "std_mean.correction", [randn(2, 3)], {"correction": 0, "keepdim": True}
    for name in ("trapz", "cumulative_trapezoid"):
        yield f"{name}.x", [randn(2, 4), of(0.0, 1.0, 3.0, 4.0)]
        yield f"{name}.x", [randn(3, 2), randn(3, 2)], {"dim": 0}
        yield f"{name}.dx", [randn(2, 4)]
        yield f"{name}.dx", [randn(4, 2)], {"dx": 0.5, "dim": 0}


def places():
    x = of(3.0, 1.0, 2.0, 1.0, NAN, 3.0).reshape(2, 3)
    for descending in (False, True):
        yield "argsort.stable", [x], {"stable": True, "dim": 1, "descending": descending}
    yield "msort", [randn(4, 3)]
    for invert in (False, True):
        yield "isin.Tensor_Tensor", [integers(2, 3), integers(4)], {"invert": invert}
        yield "isin.Tensor_Tensor", [randn(3), torch.zeros(0, dtype=F64)], {"invert": invert}
        yield "isin.Tensor_Scalar", [integers(2, 3), 2], {"invert": invert}
    rows, columns = torch.tensor([2, 0, -1]), torch.tensor([1, 3, 0])
    yield "_unsafe_index.Tensor", [randn(3, 4), [rows, columns]]
    yield "_unsafe_index.Tensor", [randn(2, 3, 4), [None, rows, columns]]
    yield "_unsafe_index_put", [randn(3, 4), [rows, columns], randn(3)]
    yield "_unsafe_index_put", [randn(3, 4), [rows, rows], randn(3), True]
    index = torch.tensor([[0, 2], [2, 0], [0, 1]])
    for reduce in ("add", "multiply"):
        yield "scatter.reduce", [randn(3, 3), 1, index, randn(3, 2)], {"reduce": reduce}
    yield "scatter.reduce", [randn(3, 3), 1, index, randn(3, 2)], {"reduce": "max"}
    yield "_safe_softmax", [of(1.0, 2.0, -INF, -INF).reshape(2, 2), 1]
    yield "_safe_softmax", [randn(2, 3, dtype=F32), 0, F64]


def pieces():
    yield "unsafe_split.Tensor", [randn(5, 2), 2]
    yield "unsafe_split_with_sizes", [randn(2, 5), [1, 4], 1]
    yield "unsafe_chunk", [randn(2, 5), 3, 1]
    yield "cartesian_prod", [[randn(2), randn(3)]]
    yield "cartesian_prod", [[integers(2), integers(1), integers(2)]]
    yield "cartesian_prod", [[randn(3)]]
    yield "native_dropout_backward", [randn(3), torch.tensor([True, False, True]), 1.25]
    yield "rrelu", [randn(3)]
    yield "rrelu", [randn(3, dtype=F32), 0.2, 0.4]


def pools():
    values, indices = torch.nn.functional.max_pool2d(randn(2, 3, 5, 6), 2, return_indices=True)
    yield "max_unpool2d", [values, indices, [5, 6]]
    yield "max_unpool2d", [values[0].to(F32), indices[0], [4, 8]]
    yield "max_unpool2d", [values, indices[0], [5, 6]]
    values, indices = torch.nn.functional.max_pool3d(randn(1, 2, 4, 3, 5), 2, return_indices=True)
    yield "max_unpool3d", [values, indices, [4, 3, 5], [2, 2, 2], [0, 0, 0]]

"""Places in sequences, elements and slices at indices."""

import torch

from calls import BF16, F32, F64, INF, NAN, integers, of, randn


def calls():
    for group in (places, taken, filled):
        yield from group()


def places():
    sequence, x = of(1, 3, 3, 5), of(0, 1, 3, 4, 5, 9, NAN, -INF)
    rows = of([1, 3, 5], [2, 2, 4])
    for options in ({}, {"right": True}, {"side": "right"}, {"side": "left"}, {"out_int32": True}, {"right": True, "side": "left"}):
        yield "searchsorted.Tensor", [sequence, x], options
        yield "searchsorted.Tensor", [rows, of([3, 0, 9, 2], [2, 1, 4, 5])], options
        yield "searchsorted.Scalar", [sequence, 3], options
    for sorted_sequence, elements in [
        (sequence, of(3)[0]),
        (sequence.to(F32), x.to(F32)),
        (sequence.to(BF16), x.to(BF16)),
        (sequence.to(torch.int64), integers(2, 3)),
        (sequence, x.reshape(2, 4)),
        (of(), x),
        (sequence, of()),
        (rows, x),
        (rows, of(3)[0]),
        (of(3)[0], x),
    ]:
        yield "searchsorted.Tensor", [sorted_sequence, elements]
    yield "searchsorted.Scalar", [sequence.to(torch.int64), 2.5]
    yield "searchsorted.Scalar", [sequence.to(F32), 2]
    yield "searchsorted.Scalar", [rows, 2]
    yield "searchsorted.Tensor", [of(5, 1, 3), x], {"sorter": of(1, 2, 0, dtype=torch.int64)}
    yield "searchsorted.Tensor", [of(5, 1, 3), x], {"sorter": of(1, 2, dtype=torch.int64)}
    for options in ({}, {"right": True}, {"out_int32": True}):
        yield "bucketize.Tensor", [x.reshape(2, 4), sequence], options
        yield "bucketize.Scalar", [3, sequence], options
    yield "bucketize.Tensor", [x, rows]


def taken():
    for x in (randn(2, 3), integers(2, 3), randn(6, dtype=F32)):
        for index in (of(5, 0, 0, dtype=torch.int64), of([-1, 2], dtype=torch.int64), torch.tensor(3)):
            yield "take", [x, index]
    for index in (of(6, dtype=torch.int64), of(0, dtype=torch.int32), of(dtype=torch.int64)):
        yield "take", [randn(2, 3), index]
    yield "take", [randn(0), of(0, dtype=torch.int64)]
    at = of([2], [0], dtype=torch.int64)
    yield "take_along_dim", [randn(2, 3), at, 1]
    yield "take_along_dim", [randn(2, 3), at.T.contiguous(), 0]
    yield "take_along_dim", [randn(2, 3), at.reshape(2)]
    yield "take_along_dim", [randn(1, 3), at, 1]
    yield "take_along_dim", [randn(2, 3), of([0, 1, 1], dtype=torch.int64), 0]
    yield "take_along_dim", [randn(2, 3), at, -1]
    yield "take_along_dim", [randn(2, 3), at.reshape(2), 1]
    yield "take_along_dim", [randn(3, 3), at, 1]
    for x, classes in [(of([2, 0], [1, 2], dtype=torch.int64), -1), (of(2, 0, dtype=torch.int64), 5), (torch.tensor(1), 3)]:
        yield "one_hot", [x, classes]
    yield "one_hot", [of(2, 0, dtype=torch.int64), 2]
    yield "one_hot", [of(-1, 0, dtype=torch.int64), 2]
    yield "one_hot", [of(2, 0, dtype=torch.int32), 4]
    yield "one_hot", [of(dtype=torch.int64), -1]
    yield "one_hot", [of(dtype=torch.int64), 3]


def filled():
    at = of(2, 0, dtype=torch.int64)
    for x, dim in [(randn(2, 3), 1), (randn(3, 2), 0), (randn(2, 2, 3), -1), (integers(3), 0), (randn(3, dtype=F32), 0)]:
        yield "index_fill.int_Scalar", [x, dim, at, 7]
        yield "index_fill.int_Tensor", [x, dim, at, torch.tensor(2, dtype=x.dtype)]
    for index in (of(-1, dtype=torch.int64), of(3, dtype=torch.int64), of(dtype=torch.int64), torch.tensor(1)):
        yield "index_fill.int_Scalar", [randn(2, 3), 1, index, 1.5]
    yield "index_fill.int_Scalar", [randn(), 0, of(0, dtype=torch.int64), 1.5]
    yield "index_fill.int_Tensor", [randn(2, 3), 1, at, randn(1)]
    for dim, source in [(0, randn(2, 2)), (0, randn(2, 3)), (1, randn(3, 2)), (0, randn(2, 2, dtype=F32))]:
        yield "index_copy", [randn(3, 2), dim, at[:1] if dim else at, source]
        for reduce in ("prod", "mean", "amax", "amin"):
            yield "index_reduce", [randn(3, 2), dim, at[:1] if dim else at, source, reduce]
    for include in (True, False):
        for reduce in ("prod", "mean", "amax", "amin"):
            repeated = of(2, 0, 2, dtype=torch.int64)
            yield "index_reduce", [randn(3, 2), 0, repeated, randn(3, 2), reduce], {"include_self": include}
    yield "index_copy", [randn(2, 3), 1, at, randn(2, 2)]
    yield "index_copy", [randn(3), 0, of(1, dtype=torch.int64), randn(1)]
    yield "index_copy", [randn(3), 0, of(-1, dtype=torch.int64), randn(1)]
    yield "index_copy", [randn(3), 0, of(3, dtype=torch.int64), randn(1)]
    yield "index_copy", [randn(), 0, of(0, dtype=torch.int64), randn(1)]
    for accumulate in (False, True):
        yield "put", [randn(2, 3), of(5, -6, dtype=torch.int64), randn(2), accumulate]
        yield "put", [integers(2, 3), of([1, 2], dtype=torch.int64), integers(2, 1), accumulate]
    yield "put", [randn(2, 3), of(1, 1, dtype=torch.int64), randn(2), True]
    yield "put", [randn(2, 3), of(6, dtype=torch.int64), randn(1)]
    yield "put", [randn(2, 3), of(0, dtype=torch.int64), randn(2)]
    yield "put", [randn(2, 3), of(0, dtype=torch.int64), randn(1, dtype=F32)]

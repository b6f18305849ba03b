"""Stacks, blocks, diagonals, grids, turns and pieces."""

import torch

from calls import BF16, C128, F32, INF, NAN, integers, of, randn


def calls():
    for group in (repeated, lists, diagonals, turns, pieces, indices):
        yield from group()


def repeated():
    for x, dims in [(randn(2, 3), [2]), (randn(2), [2, 1, 3]), (randn(), [3]), (randn(2), []), (randn(2, 0), [2, 2]), (randn(2), [0])]:
        yield "tile", [x, dims]
    yield "tile", [integers(2), [-1]]
    for x, size in [(randn(2, 1), [4, 2, 3]), (randn(3), [-1]), (randn(), [2]), (randn(2), [3]), (randn(0), [2, 0])]:
        yield "broadcast_to", [x, size]
    for x, count, increasing in [(randn(3), None, False), (randn(3), 4, True), (randn(3), 0, False), (randn(3), 1, False)]:
        yield "vander", [x, count, increasing]
    yield "vander", [integers(3, dtype=torch.int32), 3]
    yield "vander", [randn(0), 2]
    yield "vander", [randn(2, 2)]
    yield "vander", [randn(2, dtype=C128), 3]


def lists():
    yield "broadcast_tensors", [[randn(2, 1), randn(3), randn()]]
    yield "broadcast_tensors", [[randn(2, 1), integers(1, 3)]]
    yield "broadcast_tensors", [[randn(2), randn(3)]]
    grids = [[randn(2), randn(3)], [randn(2), randn(), randn(3)], [randn(2)], [integers(2), integers(0)], [randn(2, 2)]]
    for tensors in grids:
        yield "meshgrid", [tensors]
        for indexing in ("ij", "xy"):
            yield "meshgrid.indexing", [tensors], {"indexing": indexing}
    yield "meshgrid.indexing", [[randn(2)]], {"indexing": "ji"}
    several = [randn(), randn(3), randn(2, 3), randn(1, 2, 3), randn(1, 1, 2, 2), integers(2), randn(0)]
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        for x in several:
            yield name, [x]
        yield f"{name}.Sequence", [several[:4]]
    stacks = [
        [randn(3), randn(3)],
        [randn(2, 3), randn(2, 3)],
        [randn(2, 3), randn(2, 3), randn(2, 3)],
        [randn(2, 3, 2), randn(2, 3, 2)],
        [randn(), randn(), randn()],
        [randn(3), integers(3)],
        [randn(2, 2, dtype=BF16), randn(2, 2, dtype=F32)],
        [randn(2)],
        [randn(2), randn(3)],
        [randn(2, 1), randn(2)],
        [randn(2), randn(2, 2)],
        [randn(0), randn(0)],
        [],
    ]
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        for tensors in stacks:
            yield name, [tensors]
    for tensors in (*stacks[:2], stacks[4], stacks[5], [randn(2, 0), randn(1, 2)], [randn(2, 2, dtype=C128), randn(1)], [randn(1, 1, 1)]):
        yield "block_diag", [tensors]


def diagonals():
    for x in (randn(3), randn(3, 3), randn(2, 3), randn(0), randn(0, 2), integers(2, 2)):
        for diagonal in (0, 1, -1):
            yield "diag", [x, diagonal]
        yield "diagflat", [x, 1]
    yield "diag", [randn()]
    yield "diag", [randn(2, 2, 2)]
    yield "diagflat", [randn()]
    for x, args in [(randn(2, 3), []), (randn(2, 3), [1]), (randn(2, 3), [-2, 0, 2]), (randn(2, 3), [1, 2, 0]), (randn(3), [0, 1, 0])]:
        yield "diag_embed", [x, *args]
    yield "diag_embed", [randn(2, 3), 0, 1, 1]
    yield "diag_embed", [randn(2, 3), 0, 1, 3]
    yield "diag_embed", [randn()]
    yield "diag_embed", [randn(2, 0), 1]


def turns():
    for x in (randn(2, 3), randn(2, 3, 2), randn(3), randn(), integers(2, 0)):
        yield "fliplr", [x]
        yield "flipud", [x]
        yield "rot90", [x]
        yield "ravel", [x]
        for name in ("mT", "mH", "adjoint"):
            if x.dim() > 1:
                yield name, [x]
    for k in range(-5, 6):
        yield "rot90", [randn(2, 3), k]
    for dims in ([1, 0], [0, 2], [-1, 1], [0, 0], [0], [0, 3], [0, -3]):
        yield "rot90", [randn(2, 3, 2), 1, dims]
    yield "mH", [randn(2, 3, dtype=C128)]
    yield "adjoint", [randn(2, 3, dtype=C128)]
    yield "swapdims", [randn(2, 3, 4), 0, -1]
    yield "moveaxis.int", [randn(2, 3, 4), 0, -1]
    yield "moveaxis.intlist", [randn(2, 3, 4), [0, 1], [1, 2]]
    yield "narrow_copy", [randn(2, 5), 1, 1, 3]
    yield "narrow_copy", [randn(2, 5), 1, -2, 2]
    yield "narrow_copy", [randn(2, 5), 1, 4, 2]


def pieces():
    for x, args in [(randn(5, 2), [3]), (randn(2, 6), [4, 1]), (randn(2), [3]), (randn(5), [0]), (randn(), [1]), (randn(0), [2])]:
        yield "tensor_split.sections", [x, *args]
    for x, args in [(randn(5, 2), [[1, 3]]), (randn(2, 6), [[2, -1], 1]), (randn(5), [[]]), (randn(5), [[7, 9]]), (randn(5), [[-9]])]:
        yield "tensor_split.indices", [x, *args]
    for name, sizes in (("hsplit", [[2, 4], [4], [], [2, 3]]), ("vsplit", [[4, 2], [4], [3, 2]]), ("dsplit", [[1, 2, 4], [2, 4]])):
        for shape in sizes:
            yield f"{name}.int", [randn(*shape), 2]
            yield f"{name}.array", [randn(*shape), [1, 2]]
        yield f"{name}.int", [randn(*sizes[0]), 0]


def indices():
    for name in ("tril_indices", "triu_indices"):
        for args in ([3, 3], [4, 2, 1], [2, 4, -1], [0, 3], [3, 0], [2, 2, 9], [2, 2, -9], [-1, 2]):
            yield name, args
        yield name, [2, 2], {"dtype": torch.int32}

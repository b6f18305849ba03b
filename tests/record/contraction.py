"""Einstein sums, and operators that exported programs call."""

import torch

from calls import BF16, C128, F32, F64, integers, randn


def calls():
    a, b, c = randn(2, 3), randn(3, 4), randn(4, 2)
    for equation, tensors in [
        ("ij,jk->ik", [a, b]),
        ("ij,jk", [a, b]),
        ("ij, kj -> ik", [a, randn(4, 3)]),
        ("ij,jk,kl->il", [a, b, c]),
        ("ij,jk,ki->", [a, b, c]),
        ("ij,jk,kl->jl", [a, b, c]),
        ("i,j->ij", [randn(2), randn(3)]),
        ("i,i->", [randn(3), randn(3)]),
        ("i,i->i", [randn(3), randn(3)]),
        ("ij->ji", [a]),
        ("ij->", [a]),
        ("ij->j", [a]),
        ("ba", [a]),
        ("ii", [randn(3, 3)]),
        ("ii->i", [randn(3, 3)]),
        ("iij,jj->i", [randn(3, 3, 2), randn(2, 2)]),
        ("iiji->ij", [randn(2, 2, 3, 2)]),
        ("bij,bjk->bik", [randn(2, 3, 4), randn(2, 4, 2)]),
        ("bij,bjk->kib", [randn(2, 3, 4), randn(2, 4, 2)]),
        ("...ij,...jk->...ik", [randn(2, 3, 4), randn(4, 2)]),
        ("...ij,...jk->...ik", [randn(2, 1, 3, 4), randn(3, 4, 2)]),
        ("...,...->...", [randn(2, 1), randn(3)]),
        ("i...j,jk...", [randn(2, 3, 4), randn(4, 2, 3)]),
        ("...i->i", [randn(2, 3)]),
        ("...i,i->", [randn(2, 3), randn(3)]),
        ("bhid,bhjd->bhij", [randn(1, 2, 3, 4), randn(1, 2, 2, 4)]),
        ("ij,jk->ik", [randn(2, 1), b]),
        ("ij,ij->ij", [randn(1, 3), randn(2, 3)]),
        ("Ab,bC->CA", [a, b]),
        ("aB,Bc", [a, b]),
        ("ij,jk->ik", [randn(2, 0), randn(0, 3)]),
        ("ij,jk->ik", [randn(0, 3), b]),
        (",ij->ij", [randn(), a]),
        ("ij,j,i->", [a, randn(3), randn(2)]),
        ("ij,jk->ik", [a.t().contiguous().t(), b.t().contiguous().t()]),
        ("ij,jk->ik", [randn(2, 3, dtype=F32), randn(3, 2, dtype=F32)]),
        ("ij,jk->ik", [randn(2, 3, dtype=BF16), randn(3, 2, dtype=BF16)]),
        ("ij,jk->ik", [randn(2, 3, dtype=C128), randn(3, 2, dtype=C128)]),
        ("ij,jk->ik", [integers(2, 3), integers(3, 2)]),
        ("ij->i", [integers(2, 3, dtype=torch.int32)]),
        # Refused.
        ("ij,jk->ik", [a]),
        ("ij->ij", [a, b]),
        ("ij", [randn(2)]),
        ("ij", [randn(2, 3, 4)]),
        ("ij,jk->ik", [a, c]),
        ("ij->ik", [a]),
        ("ij->ii", [a]),
        ("i j.", [a]),
        ("i1->i", [a]),
        ("ii->i", [a]),
        ("ij->i->j", [a]),
        ("", [a]),
        ("ij,jk->ik", []),
    ]:
        yield "einsum", [equation, tensors]
    for x in (randn(2, 3), randn(2, 3, 4), randn(3), randn(), integers(2, 3)):
        yield "numpy_T", [x]
        yield "lift_fresh_copy", [x]
        yield "zero", [x]

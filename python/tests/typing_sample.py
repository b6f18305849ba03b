"""Code that type checkers accept, line by line; it is checked, and runs."""

from typing import Any

import opsmith
import opsmith.array_api as xp
from opsmith import Tensor

x: Tensor = opsmith.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y: Tensor = opsmith.add(x, 1, alpha=2) + x.mul(x) @ x.T - 2 * x
values: Tensor = x.max(1).values
first, second = opsmith.max(x, 0)
parts: tuple[Tensor, ...] = x.split(1)
zeros: Tensor = opsmith.zeros(2, 3, dtype=opsmith.int64, device="cpu")
shaped: Tensor = zeros.reshape([3, 2]).reshape(2, -1).permute(1, 0)
total: Tensor = x.sum([0, 1], keepdim=True).sum()
total.backward()
gradient: Tensor | None = x.grad
mask: Tensor = (x > 2) & (x < 4)
picked: Tensor = x[mask]
flag: bool = opsmith.equal(x, x)
number: Any = x[0, 0].item()
size: int = x.size(0)
shape: tuple[int, ...] = x.size()
same: Tensor = x == x

columns: Tensor = xp.sum(xp.add(x, 1), axis=0, keepdims=True)
counts: Tensor = xp.unique_all(columns).counts
solved: Tensor = xp.linalg.solve(xp.matrix_transpose(x), xp.fft.fftshift(x, axes=1))
promoted: opsmith.dtype = xp.result_type(x, xp.bool)
is_number: bool = xp.isdtype(promoted, "numeric")


@opsmith.no_grad()
def scale(tensor: Tensor, factor: float) -> Tensor:
    return tensor.mul_(factor)


scaled: Tensor = scale(x, 2.0)


@opsmith.graph
def model(tensor: Tensor) -> Tensor:
    return tensor.relu()


class Square(opsmith.Function):
    @staticmethod
    def forward(context: opsmith.FunctionContext, tensor: Tensor) -> Tensor:
        context.save_for_backward(tensor)
        return tensor * tensor

    @staticmethod
    def backward(context: opsmith.FunctionContext, gradient: Tensor) -> Tensor:
        (tensor,) = context.saved_tensors
        return 2 * tensor * gradient


squared: Any = Square.apply(x)
try:
    wrong: Tensor = opsmith.ones([2]) + opsmith.ones([3])
except opsmith.ShapeError as error:
    help_text: str | None = error.help

"""Tensors for examples and tests, by shape and kind, as the samples of definitions have them."""

from __future__ import annotations

from typing import Sequence

from ._opsmith import Tensor
from ._opsmith import tensor as _tensor

__all__ = ["between", "integers", "mask", "numbers", "places", "assert_close"]

nan = float("nan")
inf = float("inf")


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def between(shape: Sequence[int], low: float, high: float, dtype: str = "float32") -> Tensor:
    """Numbers between two bounds, all different and in no order."""
    count = _count(shape)
    step = int(count * 0.618) + 1
    while count and _gcd(step, count) != 1:
        step += 1
    values = [low + (high - low) * ((index * step) % max(count, 1) + 0.137) / max(count, 1) for index in range(count)]
    return _tensor(values, dtype=dtype).reshape(list(shape))


def _gcd(a: int, b: int) -> int:
    return a if b == 0 else _gcd(b, a % b)


def integers(shape: Sequence[int], low: int, high: int) -> Tensor:
    """Integers from the first up to but not including the second."""
    count = _count(shape)
    return _tensor([low + (index * 7 + index // (high - low)) % (high - low) for index in range(count)], dtype="int64").reshape(
        list(shape)
    )


def mask(shape: Sequence[int]) -> Tensor:
    """Truth values."""
    return _tensor([index * 5 % 3 != 0 for index in range(_count(shape))], dtype="bool").reshape(list(shape))


def numbers(shape: Sequence[int], values: Sequence[float], dtype: str = "float32") -> Tensor:
    """These numbers."""
    return _tensor(list(values), dtype=dtype).reshape(list(shape))


def places(shape: Sequence[int], values: Sequence[int]) -> Tensor:
    """These integers."""
    return _tensor(list(values), dtype="int64").reshape(list(shape))


def assert_close(actual: Tensor, expected: Tensor, *, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Raises an AssertionError if two tensors differ in dtype, shape, or an element by more than the tolerance."""
    if actual.dtype != expected.dtype:
        raise AssertionError(f"{actual.dtype!r} is not {expected.dtype!r}")
    if actual.shape != expected.shape:
        raise AssertionError(f"the shape {actual.shape} is not {expected.shape}")
    if not actual.allclose(expected, rtol, atol, True):
        raise AssertionError(f"{actual!r} is not close to {expected!r}")

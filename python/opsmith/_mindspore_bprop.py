"""Gradients of primitives for MindSpore's compiler, which reads their source and wants a parameter for each tensor.

In: a primitive that computes gradients, and a number of tensors. Out: a function of the tensors, the results and their gradients.
"""

from __future__ import annotations

from typing import Any, Callable

__all__ = ["gradient"]


def gradient(pull: Any, count: int | None, several: bool) -> Callable[..., Any]:
    """The gradient of a primitive with so many tensors. With None, and above eight, it is for PyNative mode alone."""
    made = _MADE.get((count, several))
    return made(pull) if made is not None else _several(pull) if several else _single(pull)


def _tuple(found: Any) -> Any:
    return found if isinstance(found, tuple) else (found,)


def _single(pull: Any) -> Callable[..., Any]:
    return lambda *args: _tuple(pull(*args[:-2], args[-1]))


def _several(pull: Any) -> Callable[..., Any]:
    return lambda *args: _tuple(pull(*args[:-2], *args[-1]))


def _single_1(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, out: Any, dout: Any) -> Any:
        return (pull(a, dout),)

    return bprop


def _several_1(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, out: Any, dout: Any) -> Any:
        return (pull(a, *dout),)

    return bprop


def _single_2(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, dout)

    return bprop


def _several_2(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, *dout)

    return bprop


def _single_3(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, dout)

    return bprop


def _several_3(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, *dout)

    return bprop


def _single_4(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, dout)

    return bprop


def _several_4(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, *dout)

    return bprop


def _single_5(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, e: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, e, dout)

    return bprop


def _several_5(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, e: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, e, *dout)

    return bprop


def _single_6(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, e, f, dout)

    return bprop


def _several_6(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, e, f, *dout)

    return bprop


def _single_7(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, e, f, g, dout)

    return bprop


def _several_7(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, e, f, g, *dout)

    return bprop


def _single_8(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, e, f, g, h, dout)

    return bprop


def _several_8(pull: Any) -> Callable[..., Any]:
    def bprop(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, out: Any, dout: Any) -> Any:
        return pull(a, b, c, d, e, f, g, h, *dout)

    return bprop


_MADE: dict[Any, Callable[[Any], Callable[..., Any]]] = {
    (1, False): _single_1,
    (1, True): _several_1,
    (2, False): _single_2,
    (2, True): _several_2,
    (3, False): _single_3,
    (3, True): _several_3,
    (4, False): _single_4,
    (4, True): _several_4,
    (5, False): _single_5,
    (5, True): _several_5,
    (6, False): _single_6,
    (6, True): _several_6,
    (7, False): _single_7,
    (7, True): _several_7,
    (8, False): _single_8,
    (8, True): _several_8,
}

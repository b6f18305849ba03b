"""Recording modes, and functions with a backward of their own."""

from __future__ import annotations

import functools

from . import _opsmith

# To import `typing` takes longer than all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])


class set_grad_enabled:
    """Switches recording for gradients in this thread: until the end of a ``with`` block or a decorated function.

    >>> import opsmith
    >>> with opsmith.set_grad_enabled(False):
    ...     opsmith.is_grad_enabled()
    False
    """

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_opsmith._set_grad_enabled(self._enabled))

    def __exit__(self, *exception: object) -> None:
        _opsmith._set_grad_enabled(self._before.pop())

    def __call__(self, function: _F) -> _F:
        enabled = self._enabled

        @functools.wraps(function)
        def run(*args: Any, **named: Any) -> Any:
            with set_grad_enabled(enabled):
                return function(*args, **named)

        return run  # type: ignore[return-value]


class no_grad(set_grad_enabled):
    """Records nothing for gradients: a ``with`` block or a decorator.

    >>> import opsmith
    >>> x = opsmith.ones([2]).requires_grad_()
    >>> with opsmith.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(set_grad_enabled):
    """Records for gradients again, for instance inside :class:`no_grad`."""

    def __init__(self) -> None:
        super().__init__(True)


class Function:
    """A function with a backward of its own: a class with the static methods ``forward`` and ``backward``.

    ``forward(context, *inputs)`` is not recorded; it may save tensors by ``context.save_for_backward``. ``backward(context,
    *gradients)`` gets the gradients of the results and returns those of the inputs, None where there is none.

    >>> import opsmith
    >>> class Square(opsmith.Function):
    ...     @staticmethod
    ...     def forward(context, x):
    ...         context.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(context, gradient):
    ...         (x,) = context.saved_tensors
    ...         return 2 * x * gradient
    >>> x = opsmith.tensor([3.0], requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor([6.], dtype=float32)
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Calls the function."""
        for name in ("forward", "backward"):
            if not hasattr(cls, name):
                raise NotImplementedError(f"`{cls.__name__}` has no `{name}`: give the class that static method")
        return _opsmith._custom(cls.__name__, cls.forward, cls.backward, inputs)

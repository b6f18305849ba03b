"""The extension ``fft`` of the array API: Fourier transforms, with the standard's arguments."""

from __future__ import annotations

from . import _opsmith
from ._opsmith import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, Protocol, Sequence

    from ._opsmith import DeviceLike, DTypeLike

    class AlongAxis(Protocol):
        """A transform along one dimension, of ``n`` elements of it."""

        def __call__(self, x: Tensor, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Tensor: ...

    class OverAxes(Protocol):
        """A transform over several dimensions, of ``s`` elements of each."""

        def __call__(
            self, x: Tensor, /, *, s: Optional[Sequence[int]] = None, axes: Optional[Sequence[int]] = None, norm: str = "backward"
        ) -> Tensor: ...


__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _along_axis(name: str, operator: Callable[..., Any]) -> AlongAxis:
    def function(x: Tensor, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Tensor:
        result: Tensor = operator(x, n, axis, norm)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    return function


def _over_axes(name: str, operator: Callable[..., Any]) -> OverAxes:
    def function(
        x: Tensor, /, *, s: Optional[Sequence[int]] = None, axes: Optional[Sequence[int]] = None, norm: str = "backward"
    ) -> Tensor:
        result: Tensor = operator(x, None if s is None else list(s), None if axes is None else list(axes), norm)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator.__doc__
    return function


fft = _along_axis("fft", _opsmith.fft_fft)
hfft = _along_axis("hfft", _opsmith.fft_hfft)
ifft = _along_axis("ifft", _opsmith.fft_ifft)
ihfft = _along_axis("ihfft", _opsmith.fft_ihfft)
irfft = _along_axis("irfft", _opsmith.fft_irfft)
rfft = _along_axis("rfft", _opsmith.fft_rfft)
fftn = _over_axes("fftn", _opsmith.fft_fftn)
ifftn = _over_axes("ifftn", _opsmith.fft_ifftn)
irfftn = _over_axes("irfftn", _opsmith.fft_irfftn)
rfftn = _over_axes("rfftn", _opsmith.fft_rfftn)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Optional[DTypeLike] = None, device: Optional[DeviceLike] = None) -> Tensor:
    """The frequencies of a transform of ``n`` elements at distances ``d``, the negative ones in the second half.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.fft.fftfreq(4)
    tensor([ 0.00,  0.25, -0.50, -0.25], dtype=float32)
    """
    return _opsmith.fft_fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Optional[DTypeLike] = None, device: Optional[DeviceLike] = None) -> Tensor:
    """The frequencies of a transform of ``n`` real elements at distances ``d``.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.fft.rfftfreq(4)
    tensor([0.00, 0.25, 0.50], dtype=float32)
    """
    return _opsmith.fft_rfftfreq(n, d, dtype=dtype, device=device)


def _listed(axes: Optional[int | Sequence[int]]) -> Optional[list[int]]:
    return None if axes is None else [axes] if isinstance(axes, int) else list(axes)


def fftshift(x: Tensor, /, *, axes: Optional[int | Sequence[int]] = None) -> Tensor:
    """The elements with the frequency 0 moved from the start to the middle of dimensions, of all by default.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.fft.fftshift(xp.fft.fftfreq(4))
    tensor([-0.50, -0.25,  0.00,  0.25], dtype=float32)
    """
    return _opsmith.fft_fftshift(x, _listed(axes))


def ifftshift(x: Tensor, /, *, axes: Optional[int | Sequence[int]] = None) -> Tensor:
    """The inverse of `fftshift`.

    Examples
    --------
    >>> import opsmith.array_api as xp
    >>> xp.fft.ifftshift(xp.asarray([-1, 0, 1]))
    tensor([ 0,  1, -1], dtype=int64)
    """
    return _opsmith.fft_ifftshift(x, _listed(axes))

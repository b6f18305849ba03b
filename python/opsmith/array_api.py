"""The namespace of the Python array API standard, version 2024.12, for tensors of this package.

``x.__array_namespace__()`` returns this module. Its functions take the arguments of the standard and are compositions of the
package's operators, so that gradients flow through them. Names such as ``bool``, ``sum`` and ``max`` are Python's as well, so it
is no module to import all names of. ``docs/python.md`` of the project says in which points tensors differ from the standard.

>>> import opsmith
>>> xp = opsmith.tensor([1.0]).__array_namespace__()
>>> xp.sum(xp.ones((2, 3)), axis=1, keepdims=True)
tensor([[3.],
        [3.]], dtype=float32)
"""

import math as _math
import sys as _sys
from types import ModuleType as _ModuleType

from . import _array_fft, _array_linalg, _opsmith
from ._array_creation import *  # noqa: F403
from ._array_elementwise import *  # noqa: F403
from ._array_reductions import *  # noqa: F403
from ._array_search import *  # noqa: F403
from ._array_types import __array_namespace_info__ as __array_namespace_info__
from ._array_types import astype as astype
from ._array_types import can_cast as can_cast
from ._array_types import finfo as finfo
from ._array_types import iinfo as iinfo
from ._array_types import isdtype as isdtype
from ._array_types import result_type as result_type
from ._opsmith import complex64 as complex64
from ._opsmith import complex128 as complex128
from ._opsmith import float32 as float32
from ._opsmith import float64 as float64
from ._opsmith import int8 as int8
from ._opsmith import int16 as int16
from ._opsmith import int32 as int32
from ._opsmith import int64 as int64
from ._opsmith import uint8 as uint8
from ._opsmith import uint16 as uint16
from ._opsmith import uint32 as uint32
from ._opsmith import uint64 as uint64

__array_api_version__ = "2024.12"

bool = _opsmith.bool_
e = _math.e
fft = _array_fft
inf = _math.inf
linalg = _array_linalg
nan = _math.nan
newaxis = None
pi = _math.pi

# Versions of which this one has every function.
_EARLIER = ("2021.12", "2022.12", "2023.12")


def _namespace(tensor: object, api_version: str | None) -> _ModuleType:
    """The namespace for a tensor, at the request of its method ``__array_namespace__``."""
    if api_version is not None and api_version not in (*_EARLIER, __array_api_version__):
        raise ValueError(
            f"there is no version {api_version!r} of the array API here\n  help: ask for {__array_api_version__!r}, or no version"
        )
    if not isinstance(tensor, _opsmith.Tensor):
        raise TypeError(
            "the namespace is that of opsmith's own tensors, and this one is of another package"
            "\n  help: share its memory by opsmith.from_dlpack(tensor)"
        )
    return _sys.modules[__name__]

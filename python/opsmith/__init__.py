"""Tensor operators declared once, in a YAML file, for Rust and Python.

Every operator is a function of this package, a method of :class:`Tensor`, and where it makes sense one of Python's own
operators. ``help(opsmith.add)`` describes one; the guide is ``docs/python.md`` of the project.

>>> import opsmith
>>> x = opsmith.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.], dtype=float32)
"""

from ._opsmith import *  # noqa: F403
from ._custom import custom as custom
from ._gradients import Function as Function
from ._gradients import enable_grad as enable_grad
from ._gradients import no_grad as no_grad
from ._gradients import set_grad_enabled as set_grad_enabled
from ._graphs import graph as graph
from ._opsmith import __version__ as __version__
from ._spec import Diagnostic as Diagnostic
from ._spec import Operators as Operators
from ._spec import SpecError as SpecError
from ._spec import load_spec as load_spec
from .files import load_file as load_file
from .files import save_file as save_file

"""The decorator that runs a function as graphs."""

from __future__ import annotations

import functools
from _thread import allocate_lock

from ._opsmith import Graph, InputSpec, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Union, overload


class GraphFunction:
    """A function that is traced at its first call for inputs of some dtypes and shapes, and runs as a graph from then on.

    The function takes tensors and returns one or several; while it is traced they have no elements. Its graphs are in
    ``graphs``, by dtypes and shapes. With ``specs``, one graph serves all shapes that they describe.
    """

    def __init__(self, function: Callable[..., Any], specs: tuple[InputSpec, ...] = (), optimize: bool = True) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.specs = specs
        self.optimize = optimize
        self.graphs: dict[object, Graph] = {}
        self._lock = allocate_lock()

    def trace(self, *inputs: Union[Tensor, InputSpec]) -> Graph:
        """The graph for inputs like these."""
        return Graph.trace(self.function, *inputs, optimize=self.optimize)

    def __call__(self, *inputs: Tensor) -> Any:
        key = None if self.specs else tuple((one.dtype, one.shape, one.device) for one in inputs)
        graph = self.graphs.get(key)
        if graph is None:
            with self._lock:
                graph = self.graphs.get(key)
                if graph is None:
                    graph = self.trace(*(self.specs or (one.detach() for one in inputs)))
                    self.graphs[key] = graph
        return graph(*inputs)

    def __repr__(self) -> str:
        return f"<opsmith.graph of {self.function!r}>"


if TYPE_CHECKING:

    @overload
    def graph(function: Callable[..., Any], /) -> GraphFunction: ...
    @overload
    def graph(*specs: InputSpec, optimize: bool = True) -> Callable[[Callable[..., Any]], GraphFunction]: ...


def graph(*given: Any, optimize: bool = True) -> Any:
    """Runs a function as graphs: traced once, checked, with memory planned before it runs.

    >>> import opsmith
    >>> @opsmith.graph
    ... def model(x):
    ...     return (x * 2).relu().sum()
    >>> model(opsmith.ones([2, 3]))
    tensor(12., dtype=float32)

    With specifications one graph serves many shapes:

    >>> @opsmith.graph(opsmith.InputSpec(["batch", 3]))
    ... def rows(x):
    ...     return x.sum([1])
    >>> rows(opsmith.ones([2, 3])), rows(opsmith.ones([1, 3]))
    (tensor([3., 3.], dtype=float32), tensor([3.], dtype=float32))
    """
    if len(given) == 1 and callable(given[0]) and not isinstance(given[0], InputSpec):
        return GraphFunction(given[0])
    return lambda function: GraphFunction(function, given, optimize)

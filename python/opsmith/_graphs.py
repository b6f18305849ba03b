"""The decorator that runs a function as graphs."""

from __future__ import annotations

import functools
from _thread import allocate_lock
from operator import is_

from ._opsmith import ArgumentError, Graph, InputSpec, Tensor, asarray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Union, overload

    from ._opsmith import TensorLike


def _is_shared(value: Any) -> bool:
    try:
        asarray(value, copy=False)
    except (TypeError, ValueError, BufferError):
        return False
    return True


class GraphFunction:
    """A function that is traced at its first call for inputs of some dtypes and shapes, and runs as a graph from then on.

    The function takes tensors and returns one or several; while it is traced they have no elements. Calls take all that ``asarray``
    takes, by position or by name. Its graphs are in ``graphs``, by dtypes and shapes. With ``specs``, one graph serves all shapes that
    they describe. A method has graphs for each object; tensors that a function takes from elsewhere are those of its first call.
    """

    def __init__(self, function: Callable[..., Any], specs: tuple[InputSpec, ...] = (), optimize: bool = True) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._name: str = getattr(function, "__name__", type(function).__name__)
        self.specs = specs
        self.optimize = optimize
        self.graphs: dict[object, Graph] = {}
        # The methods of objects, by the addresses of these, which go with them.
        self._bound: dict[int, tuple[Any, GraphFunction]] = {}
        # The first parameter of the function that is an input: not the object of a method.
        self._first = 0
        self._lock = allocate_lock()

    def trace(self, *inputs: Union[Tensor, InputSpec]) -> Graph:
        """The graph for inputs like these."""
        return Graph.trace(self.function, *inputs, optimize=self.optimize)

    def __call__(self, *args: TensorLike, **named: TensorLike) -> Any:
        names: tuple[str, ...] = ()
        if named:
            args, names = self._in_order(args, named)
        inputs = [one if isinstance(one, Tensor) else self._tensor(one, place, len(args), names) for place, one in enumerate(args)]
        shapes = None if self.specs else tuple((one.dtype, one.shape, one.device) for one in inputs)
        key = (names, shapes) if names else shapes
        graph = self.graphs.get(key)
        if graph is None:
            with self._lock:
                graph = self.graphs.get(key)
                if graph is None:
                    function = self._with_names(len(args) - len(names), names) if names else self.function
                    graph = Graph.trace(function, *(self.specs or (one.detach() for one in inputs)), optimize=self.optimize)
                    self.graphs[key] = graph
        if all(map(is_, inputs, args)):
            return graph(*inputs)
        return self._run(graph, inputs, args)

    def _run(self, graph: Graph, inputs: list[Tensor], args: tuple[Any, ...]) -> Any:
        """Runs with tensors of other values, of which some are copies: a write into one would be lost."""
        versions = [one.version for one in inputs]
        results = graph(*inputs)
        for place, (one, version, given) in enumerate(zip(inputs, versions, args)):
            if one is not given and one.version != version and not _is_shared(given):
                text = f"`{self._name}` wrote into its input {place}, a `{type(given).__qualname__}` whose memory a tensor cannot have"
                raise ArgumentError(f"{text}\n  help: give a tensor: `opsmith.asarray(...)`")
        return results

    def _in_order(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """All arguments in the order of the signature, and the names of those at the end that must be given by name."""
        bound = self._signature().bind(*args, **named)
        return (*bound.args, *bound.kwargs.values()), tuple(bound.kwargs)

    def _signature(self) -> Any:
        import inspect

        signature = inspect.signature(self.function)
        return signature.replace(parameters=[*signature.parameters.values()][self._first :])

    def _with_names(self, count: int, names: tuple[str, ...]) -> Callable[..., Any]:
        return lambda *all: self.function(*all[:count], **dict(zip(names, all[count:])))

    def _tensor(self, value: Any, place: int, count: int, names: tuple[str, ...]) -> Tensor:
        """The tensor of an argument that is none yet."""
        try:
            return asarray(value)
        except TypeError as error:
            parameters = self._signature().parameters.values()
            known = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
            given = [*known[: count - len(names)], *names]
            name = f"`{given[place]}`" if len(given) == count else str(place)
            text = f"the argument {name} of `{self._name}` is a `{type(value).__qualname__}`, and inputs of a graph are tensors"
            raise TypeError(f"{text}\n  help: give other values to the function before: `opsmith.graph(functools.partial(...))`") from error

    def __get__(self, instance: Any, owner: Any = None) -> GraphFunction | GraphMethod:
        if instance is None:
            return self
        key = id(instance)
        found = self._bound.get(key)
        if found is None:
            with self._lock:
                found = self._bound.get(key)
                if found is None:
                    found = self._bound[key] = self._method(instance, key)
        return GraphMethod(instance, found[1])

    def _method(self, instance: Any, key: int) -> tuple[Any, GraphFunction]:
        """The method of an object, which its graphs do not keep alive."""
        from weakref import ref

        own = ref(instance, lambda _: self._bound.pop(key, None))
        function = self.function

        @functools.wraps(function)
        def call(*inputs: Any, **named: Any) -> Any:
            return function(own(), *inputs, **named)

        method = GraphFunction(call, self.specs, self.optimize)
        method._first = 1
        return own, method

    def __repr__(self) -> str:
        return f"<opsmith.graph of {self.function!r}>"


class GraphMethod:
    """A method of an object that runs as graphs, with all of its :class:`GraphFunction`; it keeps the object."""

    def __init__(self, instance: Any, function: GraphFunction) -> None:
        self.__self__ = instance
        self.__func__ = function

    def __call__(self, *args: TensorLike, **named: TensorLike) -> Any:
        return self.__func__(*args, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __repr__(self) -> str:
        return repr(self.__func__)


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

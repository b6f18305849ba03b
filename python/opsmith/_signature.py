"""Definitions of a library as other frameworks need them: names, signatures as text, positions of tensors."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Iterable, Iterator, Sequence

__all__ = ["MISSING", "NUMBERS", "Entry", "chosen", "entries", "flattened", "home", "mapped"]

_TENSORS = ("Tensor", "Tensors", "OptionalTensors")


class Numbers:
    """Sizes of a framework that has numbers wherever it infers shapes."""

    def hint(self, size: Any) -> None:
        """No size has an example: all are numbers."""

    def fresh(self, low: int, high: int | None) -> Any:
        """No size is known after the run only."""
        raise NotImplementedError("sizes of the results are known after a run only")

    def check(self, condition: Any, text: str) -> None:
        """Conditions of numbers are decided before."""


NUMBERS = Numbers()


class Entry:
    """An operator of a library: its definition, with texts and facts that follow from it."""

    def __init__(self, definition: Any) -> None:
        self.definition = definition
        self.name: str = definition.name
        base, _, overload = self.name.partition(".")
        self.base, self.overload = base, overload
        self.arguments: list[tuple[str, str, str, bool, bool, bool]] = definition.arguments
        self.results: list[tuple[str | None, str, bool]] = definition.results

    @property
    def parameters(self) -> str:
        """The arguments as the spec declares them, without parentheses."""
        signature = " ".join(self.definition.schema.split())
        start, end = signature.index("("), signature.rindex(") ->")
        return signature[start + 1 : end]

    @property
    def returns(self) -> str:
        """The results of a call, as a schema writes them."""
        types = [{"Tensor": "Tensor", "Tensors": "Tensor[]"}.get(kind, kind) for _, kind, _ in self.results]
        written = [f"{kind} {name}" if name else kind for kind, (name, _, _) in zip(types, self.results)]
        return written[0] if len(written) == 1 and self.results[0][0] is None else f"({', '.join(written)})"

    def named(self, prefix: str) -> str:
        """The full name with a prefix before its base."""
        return prefix + self.name

    def refusal(self, views: bool = False) -> str | None:
        """The reason for which a framework with functional operators cannot have it; None if it can. With `views`, a result may
        share memory with an argument, since nothing is written there."""
        reason: str | None = self.definition.refusal(views)
        return reason

    def bound(self, args: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        """Arguments by their names in the signature."""
        positional = [name for name, *_, keyword in self.arguments if not keyword]
        known = {name for name, *_ in self.arguments}
        given = dict(zip(positional, args))
        if len(args) > len(positional) or set(named) - known or set(named) & set(given):
            raise TypeError(f"the arguments do not fit `{self.definition.schema}`")
        return {**given, **named}

    def filled(self, tensors: Sequence[Any], named: dict[str, Any], lengths: Sequence[int] = ()) -> dict[str, Any]:
        """Arguments by name, of which tensors are given one after the other in the order of the signature, those of lists too.
        `lengths` are those of the lists; a list takes all that is left without one. An argument that `named` has is no tensor
        among these."""
        given, rest, left = dict(named), list(tensors), list(lengths)
        for name, kind, _, optional, default, _ in self.arguments:
            if kind not in _TENSORS or name in named:
                continue
            if kind != "Tensor":
                length = left.pop(0) if left else len(rest)
                given[name], rest = rest[:length], rest[length:]
            elif rest:
                given[name] = rest.pop(0)
            elif optional and not default:
                given[name] = None
            elif not default:
                raise TypeError(f"the tensor `{name}` is missing\n  help: the signature is {self.definition.schema}")
        if rest or set(given) - {name for name, *_ in self.arguments}:
            raise TypeError(f"the arguments do not fit `{self.definition.schema}`")
        return given

    def calls(self) -> Iterator[tuple[list[Any], dict[str, Any]]]:
        """The arguments of the definition's samples, by position and by name. ``MISSING`` stands for a default between others."""
        from . import testing

        functions = testing.__dict__
        for sample in self.definition.samples:
            values = {name: eval(text, functions) for name, text in sample}
            last = max((at for at, (name, *_) in enumerate(self.arguments) if name in values), default=-1)
            positional: list[Any] = []
            named: dict[str, Any] = {}
            for at, (name, _, _, _, default, keyword) in enumerate(self.arguments):
                if keyword and (name in values or not default):
                    named[name] = values.get(name)
                elif not keyword and (name in values or at <= last or not default):
                    positional.append(values.get(name, MISSING if default else None))
            yield positional, named

    def is_differentiable(self) -> bool:
        """Whether a gradient flows through it: a formula says so, or a composition tracks the results of a sample."""
        definition = self.definition
        if not definition.is_differentiable or definition.differentiable_results is not None:
            return bool(definition.is_differentiable)
        calls = list(self.calls())
        return not calls or any(self._is_tracked(positional, named) for positional, named in calls)

    def _is_tracked(self, positional: list[Any], named: dict[str, Any]) -> bool:
        names = [name for name, *_ in self.arguments]
        given = {name: value for name, value in zip(names, positional) if value is not MISSING}
        given = {name: mapped(value, _tracked) for name, value in {**given, **named}.items()}
        results = self.definition(**given)
        return any(one.requires_grad for one in (results if isinstance(results, tuple) else (results,)))


# A default that a call leaves to the operator, between arguments that it gives.
MISSING = object()


def mapped(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A value with each tensor of opsmith converted, also those in lists."""
    import opsmith

    if isinstance(value, opsmith.Tensor):
        return convert(value)
    return [mapped(item, convert) for item in value] if isinstance(value, (list, tuple)) else value


def _tracked(tensor: Any) -> Any:
    is_differentiable = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    return tensor.detach().requires_grad_() if is_differentiable else tensor


def home(library: ModuleType) -> ModuleType:
    """The module with the tensors of a library's operators: those of a loaded spec take this package's."""
    import opsmith

    return opsmith if isinstance(library, opsmith.Operators) else library


def entries(library: ModuleType) -> list[Entry]:
    """The operators of a module that opsmith made, those of the libraries that it builds on first."""
    module = getattr(library, "_opsmith", library)
    if not hasattr(module, "_definitions"):
        raise TypeError(f"{getattr(library, '__name__', library)!r} is no module of operators that opsmith made")
    return [Entry(definition) for definition in module._definitions()]


def chosen(library: ModuleType, names: Iterable[Any] | None) -> list[Entry]:
    """The operators of some names, with or without overload, and custom operators; all of the library for None."""
    known = entries(library)
    if names is None:
        return known
    names = [names] if isinstance(names, str) else names
    found: list[Entry] = []
    for name in names:
        if not isinstance(name, str):
            found.append(Entry(name.definition))
            continue
        matching = [entry for entry in known if name in (entry.name, entry.base)]
        if not matching:
            import difflib

            near = difflib.get_close_matches(name, [text for entry in known for text in (entry.base, entry.name)], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise LookupError(f"there is no operator {name!r}{hint}\n  help: names are those of entries, such as 'add.Tensor' or 'add'")
        found.extend(entry for entry in matching if entry not in found)
    return found


def flattened(values: Sequence[Any], is_tensor: Any) -> Iterator[Any]:
    """The tensors among arguments and lists of them, in order."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from (item for item in value if is_tensor(item))
        elif is_tensor(value):
            yield value

"""Operators of a spec, loaded while the program runs: no toolchain for Rust, no build."""

from __future__ import annotations

from types import ModuleType

from ._opsmith import Error, FileError, _load_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, Callable, Iterator, Sequence, Union

    from ._opsmith import _Definition


# The place of functions and definitions in a module of operators: no operator can have this name.
_STATE = "operators of the spec"


class Diagnostic:
    """A mistake of a spec with its place: lines and columns from 1, the end exclusive."""

    severity: str
    code: str
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    label: str
    help: str | None
    notes: list[str]
    text: str

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Diagnostic) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.code, self.file, self.line, self.column))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.severity} {self.code} at {self.file}:{self.line}:{self.column}: {self.message}>"


class SpecError(Error, ValueError):
    """A spec has mistakes. The text shows each with its line underlined, as ``opsmith check`` does.

    ``diagnostics`` has them one by one: ``code``, ``message``, ``file``, ``line``, ``column``, ``help``, ``text``.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], count: str) -> None:
        super().__init__("\n\n".join([*(one.text for one in diagnostics), count]))
        self.diagnostics = list(diagnostics)
        self.message = count
        self.help = next((one.help for one in diagnostics if one.help), None)
        self.notes = [note for one in diagnostics for note in one.notes]
        self.operands = []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics, self.message)


class Operators(ModuleType):
    """The operators of a loaded spec, as a module: each is a function under its name.

    Bridges to other frameworks take it as they take a module: ``opsmith.torch.register(library=ops)``.
    """

    def __init__(self, name: str, functions: Sequence[tuple[str, Callable[..., Any]]], definitions: Sequence[_Definition]) -> None:
        super().__init__(name, f"Operators of the spec {name!r}.")
        own = {*dir(type(self)), *self.__dict__}
        taken = [name for name, _ in functions if name in own]
        if taken:
            raise ValueError(f"`{taken[0]}` is a name that each module of operators has itself\n  help: give the operator another name")
        self.__dict__[_STATE] = dict(functions), list(definitions)
        self.__dict__.update(functions)

    def _definitions(self, parents: bool = True) -> list[_Definition]:
        definitions: list[_Definition] = self.__dict__[_STATE][1]
        return definitions

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # Only what is no attribute comes here.
        near = ""
        if not name.startswith("_"):
            import difflib

            near = "".join(f"; did you mean {one!r}?" for one in difflib.get_close_matches(name, list(self), 1))
        raise AttributeError(f"the spec {self.__name__!r} has no operator {name!r}{near}", name=name, obj=self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__[_STATE][0])

    def __len__(self) -> int:
        return len(self.__dict__[_STATE][0])

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__[_STATE][0]

    def __repr__(self) -> str:
        return f"<operators of {self.__name__!r}: {', '.join(self)}>"


def load_spec(spec: Union[str, os.PathLike[str]], *, name: str = "spec.yaml") -> Operators:
    """Operators of a spec in YAML, checked and made while the program runs.

    Expressions of elements run interpreted, block by block, with the functions and the rounding of compiled kernels; compositions
    call operators; kernels ``aot:FILE:FUNCTION`` are compiled once and kept. Gradients, in-place and ``out`` forms, checks and
    graphs are those of every operator. A kernel in Rust needs a build: ``opsmith init --python NAME``.

    Parameters
    ----------
    spec : str or path
        The file of the spec, or, if it has more than one line, its text.
    name : str
        The name of a text in messages. Files that it includes and kernels lie beside a file of this name.

    Returns
    -------
    Operators
        An object with a function for each operator.

    Raises
    ------
    SpecError
        If the spec has mistakes; all of them are in it.
    FileError
        If the file cannot be read.

    Examples
    --------
    >>> import opsmith
    >>> ops = opsmith.load_spec('''
    ... edition: 1
    ... ops:
    ... - func: softclip(Tensor self, *, float limit=1.0) -> Tensor
    ...   doc: A smooth bound.
    ...   dtype: promote_float(self)
    ...   pointwise: limit * tanh(self / limit)
    ... ''')
    >>> ops.softclip(opsmith.tensor([0.0, 10.0]), limit=2.0)
    tensor([0.0000, 1.9998], dtype=float32)
    """
    import os

    is_text = isinstance(spec, str) and "\n" in spec
    path = name if is_text else os.fspath(spec)
    if not isinstance(path, str):
        raise TypeError(f"the spec is a `{type(spec).__qualname__}`\n  help: give a path or a text: `data.decode()`")
    if not is_text and ": " in path and not os.path.exists(path):
        raise FileError(f"there is no file {path!r}\n  help: the text of a spec has more than one line, or ends in a line break")
    stem = os.path.splitext(os.path.basename(path))[0]
    package = stem if stem.isidentifier() else "spec"
    functions, definitions, mistakes, count = _load_spec(path, str(spec) if is_text else None, package)
    if mistakes:
        raise SpecError([Diagnostic(**mistake) for mistake in mistakes], count)
    return Operators(path, functions, definitions)

"""The examples of docstrings: ``python -m opsmith.examples FILE`` runs those of the library's own operators, and records their results.

The next build puts the recorded file into the docstrings. :func:`check` runs all examples and compares the results that they show.
"""

from __future__ import annotations

import argparse
import doctest
import importlib
import inspect
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

from . import _opsmith

_PACKAGE = str(__package__)
_MOST_LINES = 16
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")


def sessions() -> Iterator[tuple[str, list[doctest.Example]]]:
    """The examples of each function that has some: names with the parts of their sessions."""
    parser = doctest.DocTestParser()
    package = importlib.import_module(_PACKAGE)
    for name in sorted(dir(package)):
        function = getattr(package, name)
        if not inspect.isbuiltin(function):
            continue
        examples = parser.get_examples(function.__doc__ or "")
        if examples and examples[0].source.split() == ["import", _PACKAGE]:
            yield name, examples


def of_operators() -> list[tuple[str, list[doctest.Example]]]:
    """Those of the functions of the library's own operators, which are made from samples."""
    own = set(_opsmith._own_examples())
    return [
        (name, examples)
        for name, examples in sessions()
        if name in own and any("result = " in one.source for one in examples)
    ]


class Checker(doctest.OutputChecker):
    """Compares numbers with a tolerance: processors differ in the last digit."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether a printed result is the one that is shown."""
        texts = want.replace("<BLANKLINE>", ""), got
        between = [["".join(part.split()) for part in _NUMBER.split(text)] for text in texts]
        if between[0] != between[1]:
            return False
        shown, found = ([float(number) for number in _NUMBER.findall(text)] for text in texts)
        pairs = zip(shown, found, strict=True)
        return all(a == b or (a != a and b != b) or abs(a - b) <= 2e-4 + 1e-3 * abs(b) for a, b in pairs)


def _result(examples: list[doctest.Example]) -> Any:
    """The result of an example's call."""
    scope: dict[str, Any] = {}
    importlib.import_module(_PACKAGE).manual_seed(1)
    for example in examples:
        exec(example.source, scope)
        if "result" in scope:
            return scope["result"]
    raise AssertionError("an example without a result")


def _session(examples: list[doctest.Example]) -> list[str]:
    """The lines that show the result of an example: its elements, or the shapes of one with many."""
    found = _result(examples)
    shown = repr(found).splitlines()
    if len(shown) <= _MOST_LINES:
        return [">>> result", *(line or "<BLANKLINE>" for line in shown)]
    if isinstance(found, _opsmith.Tensor):
        return [">>> result.shape", repr(found.shape)]
    return [">>> [part.shape for part in result]", repr([part.shape for part in found])]


def text() -> str:
    """The results of the examples of the library's own operators, as the build reads them."""
    lines: list[str] = []
    for name, examples in of_operators():
        lines += [name, *(f"    {line}" for line in _session(examples))]
    return "\n".join(lines) + "\n"


def silent() -> list[str]:
    """The functions of the library's own operators whose example shows no result."""
    return [name for name, examples in of_operators() if not examples[-1].want.strip()]


def check() -> tuple[int, str]:
    """Runs all examples: the number of lines that ran, and the differences from the results that they show."""
    runner = doctest.DocTestRunner(Checker(), verbose=False)
    said: list[str] = []
    for name, examples in sessions():
        runner.run(doctest.DocTest(examples, {}, name, None, 0, None), out=said.append)
    return runner.tries, "".join(said)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {_PACKAGE}.examples", description="Runs the examples of the library's own operators, and records their results."
    )
    parser.add_argument("path", type=pathlib.Path, nargs="?", help="the file that is written; without it the results are printed")
    path: pathlib.Path | None = parser.parse_args().path
    if path is None:
        sys.stdout.write(text())
        return
    try:
        path.write_text(text())
    except OSError as error:
        parser.error(f"{path} cannot be written: {error.strerror}")


if __name__ == "__main__":
    main()

"""The examples of docstrings: they run, and print the results that the docstring shows.

``OPSMITH_BLESS=1`` writes the recorded results anew, which the next build puts into the docstrings.
"""

import doctest
import inspect
import os
import pathlib
import re

import opsmith

RECORDED = pathlib.Path(__file__).parents[1] / "binding/src/documentation/printed.txt"
MOST_LINES = 16
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")


def sessions():
    """The examples of each function that has some: names with the parts of their sessions."""
    parser = doctest.DocTestParser()
    for name in sorted(dir(opsmith)):
        function = getattr(opsmith, name)
        if inspect.isbuiltin(function) and (examples := parser.get_examples(function.__doc__)):
            yield name, examples


def of_operators():
    """Those of operators' functions, which are made from samples."""
    return [(name, examples) for name, examples in sessions() if any("result = " in one.source for one in examples)]


class Checker(doctest.OutputChecker):
    """Compares numbers with a tolerance: processors differ in the last digit."""

    def check_output(self, want, got, optionflags):
        texts = want.replace("<BLANKLINE>", ""), got
        between = [["".join(part.split()) for part in NUMBER.split(text)] for text in texts]
        if between[0] != between[1]:
            return False
        numbers = [map(float, NUMBER.findall(text)) for text in texts]
        pairs = zip(*numbers, strict=True)
        return all(a == b or a != a and b != b or abs(a - b) <= 2e-4 + 1e-3 * abs(b) for a, b in pairs)


def result(examples):
    """The result of an example's call."""
    scope = {}
    opsmith.manual_seed(1)
    for example in examples:
        exec(example.source, scope)
        if "result" in scope:
            return scope["result"]
    raise AssertionError("an example without a result")


def session(examples):
    """The lines that show the result of an example: its elements, or the shapes of one with many."""
    found = result(examples)
    shown = repr(found).splitlines()
    if len(shown) <= MOST_LINES:
        return [">>> result", *(line or "<BLANKLINE>" for line in shown)]
    if isinstance(found, opsmith.Tensor):
        return [">>> result.shape", repr(found.shape)]
    return [">>> [part.shape for part in result]", repr([part.shape for part in found])]


def bless():
    blocks = []
    for name, examples in of_operators():
        blocks += [name, *(f"    {line}" for line in session(examples))]
    RECORDED.write_text("\n".join(blocks) + "\n")


def test_examples_run_and_print_the_results_that_they_show():
    if os.environ.get("OPSMITH_BLESS"):
        bless()
    runner = doctest.DocTestRunner(Checker(), verbose=False)
    said = []
    for name, examples in sessions():
        runner.run(doctest.DocTest(examples, {}, name, None, 0, None), out=said.append)
    help_text = "OPSMITH_BLESS=1 and a new build write new results"
    assert runner.failures == 0, "".join(said) + help_text
    assert runner.tries > 1900


def test_every_example_of_an_operator_shows_its_result():
    silent = [name for name, examples in of_operators() if not examples[-1].want.strip()]
    assert len(of_operators()) > 450 and not silent, f"{silent}: OPSMITH_BLESS=1 and a new build record results"
    dropout = opsmith.dropout.__doc__
    assert ">>> opsmith.manual_seed(1)\n>>> result = opsmith.dropout(" in dropout
    assert ">>> result\ntensor([[" in opsmith.mm.__doc__
    assert ">>> result.shape\n(2, 6, 7, 7)\n" in opsmith.conv2d.__doc__


def test_a_wrong_result_is_noticed():
    checker = Checker()
    assert checker.check_output("tensor([ 1.0000, -2.5])\n", "tensor([1.0001, -2.5])\n", 0)
    assert not checker.check_output("tensor([1.0, 2.5])\n", "tensor([1.1, 2.5])\n", 0)
    assert not checker.check_output("tensor([1.0])\n", "tensor([1.0, 2.0])\n", 0)
    assert not checker.check_output("(2, 3)\n", "(2, 4)\n", 0)

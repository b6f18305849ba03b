"""The examples of docstrings: they run, and print the results that the docstring shows.

``OPSMITH_BLESS=1`` writes the recorded results anew, which the next build puts into the docstrings.
"""

import os
import pathlib
import subprocess
import sys

import pytest

import opsmith
from opsmith import examples

RECORDED = pathlib.Path(__file__).parents[1] / "binding/src/documentation/printed.txt"


def test_examples_run_and_print_the_results_that_they_show():
    if os.environ.get("OPSMITH_BLESS"):
        RECORDED.write_text(examples.text())
    tries, differences = examples.check()
    assert not differences, f"{differences}OPSMITH_BLESS=1 and a new build write new results"
    assert tries > 1900


def test_every_example_of_an_operator_shows_its_result():
    silent = examples.silent()
    found = len(examples.of_operators())
    assert found > 450 and not silent, f"{silent}: OPSMITH_BLESS=1 and a new build record results"
    dropout = opsmith.dropout.__doc__
    assert ">>> opsmith.manual_seed(1)\n>>> result = opsmith.dropout(" in dropout
    assert ">>> result\ntensor([[" in opsmith.mm.__doc__
    assert ">>> result.shape\n(2, 6, 7, 7)\n" in opsmith.conv2d.__doc__


def test_the_recorded_results_are_of_all_operators():
    recorded = [line for line in RECORDED.read_text().splitlines() if not line.startswith(" ")]
    assert recorded == [name for name, _ in examples.of_operators()]


def test_a_wrong_result_is_noticed():
    checker = examples.Checker()
    assert checker.check_output("tensor([ 1.0000, -2.5])\n", "tensor([1.0001, -2.5])\n", 0)
    assert not checker.check_output("tensor([1.0, 2.5])\n", "tensor([1.1, 2.5])\n", 0)
    assert not checker.check_output("tensor([1.0])\n", "tensor([1.0, 2.0])\n", 0)
    assert not checker.check_output("(2, 3)\n", "(2, 4)\n", 0)


PROGRAMS = [path.stem for path in pathlib.Path(opsmith.__file__).parent.glob("*.py") if "__main__" in path.read_text()]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_of_the_package_have_command_lines(program, tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", f"opsmith.{program}", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    help = run("--help")
    assert help.returncode == 0 and help.stdout.startswith(f"usage: python -m opsmith.{program} "), help
    unknown = run("--unknown")
    assert unknown.returncode == 2 and "usage:" in unknown.stderr and "Traceback" not in unknown.stderr, unknown
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    path = str(tmp_path / "missing" / "stub.pyi")
    run = subprocess.run([sys.executable, "-m", "opsmith.stubs", path], capture_output=True, text=True)
    assert run.returncode == 2 and f"{path} cannot be written" in run.stderr and "Traceback" not in run.stderr

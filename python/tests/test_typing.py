"""Stubs: they are those of the definitions, name every function and method, and type checkers accept them."""

import inspect
import os
import pathlib
import subprocess
import sys

import pytest

import opsmith
import opsmith.stubs

PACKAGE = pathlib.Path(opsmith.__file__).parent
SAMPLE = pathlib.Path(__file__).with_name("typing_sample.py")


def test_the_stub_of_operators_is_that_of_the_definitions():
    written = (PACKAGE / "_operators.pyi").read_text()
    assert written == opsmith.stubs.text(), "write it anew: python -m opsmith.stubs python/opsmith/_operators.pyi"


def test_every_function_and_attribute_has_a_declaration():
    functions, methods = map(set, opsmith.stubs.declared(PACKAGE / "_opsmith.pyi"))
    text = (PACKAGE / "_operators.pyi").read_text()
    rest = (PACKAGE / "_opsmith.pyi").read_text()
    for name in dir(opsmith._opsmith):
        if not name.startswith("__"):
            known = name in functions or f"\ndef {name}(" in text or f"\n{name}: " in rest
            assert known, name
    for name, member in vars(opsmith.Tensor).items():
        special = ("__new__", "__delitem__", "__module__", "__doc__", "__weakref__", "__array_priority__", "__dict__")
        if name in special or name in vars(object) or "copy__" in name or name == "__release_buffer__":
            continue
        assert name in methods or f"    def {name}(" in text, (name, member)


def test_the_sample_runs():
    exec(compile(SAMPLE.read_text(), str(SAMPLE), "exec"), {"__name__": "sample"})


def check(folder, module, *arguments):
    pytest.importorskip(module)
    found = os.environ.copy()
    if "site-packages" not in PACKAGE.parts:
        found["MYPYPATH"] = str(PACKAGE.parent)
    command = [sys.executable, "-m", module, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=found)
    assert run.returncode == 0, run.stdout + run.stderr


def test_mypy_accepts_the_package_and_the_sample(tmp_path):
    check(tmp_path, "mypy", "--strict", "-p", "opsmith")
    check(tmp_path, "mypy", "--strict", str(SAMPLE))


def test_pyright_accepts_the_sample(tmp_path):
    check(tmp_path, "pyright", "--pythonpath", sys.executable, str(SAMPLE))


def test_examples_of_the_package_run():
    import doctest

    import opsmith._gradients
    import opsmith._graphs

    ran = 0
    for module in (opsmith, opsmith._gradients, opsmith._graphs):
        failed, count = doctest.testmod(module)
        assert failed == 0
        ran += count
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner()
    for name in ("tensor", "from_dlpack", "asarray"):
        for test in finder.find(getattr(opsmith, name), name, module=opsmith, globs={}):
            assert runner.run(test).failed == 0
            ran += len(test.examples)
    assert ran > 15 and inspect.isclass(opsmith.Function)

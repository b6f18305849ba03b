"""The program that shows an operator in every framework: of each that is installed, values and gradients are those of opsmith."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

import guide
import opsmith
from opsmith import frameworks

INSTALLED = [one for one in frameworks.FRAMEWORKS if one != "opsmith" and importlib.util.find_spec(one) is not None]
SPEC = pathlib.Path(__file__).resolve().parents[2] / "examples/frameworks/ops.yaml"
STOCK = """add.Tensor mul.Tensor div.Tensor exp tanh gelu where.self clamp softmax.int log_softmax.int layer_norm mm bmm addmm linear
cumsum sum.dim_IntList mean.dim sort topk cat stack conv2d avg_pool2d index_select""".split()


def check(library, operator, framework):
    entry, found = frameworks.rows(library, operator, [framework])
    texts = found[framework]
    assert not isinstance(texts, str), texts
    runs, infers, gradients = texts
    assert runs == "yes" and gradients in ("yes", "has none", "not shown for several results"), (entry.name, texts)
    (expected,) = frameworks.rows(library, operator, ["opsmith"])[1].values()
    if infers != "has none":
        # JAX has integers of 32 bits by default.
        assert infers == (expected[1].replace("int64", "int32") if framework == "jax" else expected[1])
    return gradients


@pytest.mark.parametrize("framework", INSTALLED)
@pytest.mark.parametrize("operator", STOCK)
def test_stock_operators(operator, framework):
    check(opsmith, operator, framework)


@pytest.mark.parametrize("framework", INSTALLED)
def test_operators_of_a_spec(framework):
    ops = opsmith.load_spec(SPEC)
    gradients = [check(ops, operator, framework) for operator in ("softclip", "centered", "extremes")]
    assert gradients[0] == ("has none" if framework in ("onnxruntime", "tvm_ffi") else "yes")


def test_a_difference_is_told():
    entry, found = frameworks.rows(opsmith, "exp", ["opsmith"])
    sample = frameworks.Sample(entry, opsmith)
    assert sample.check([one.detach() for one in sample.results], sample.results) == "yes"
    assert sample.check([one.detach() + 1 for one in sample.results], sample.results).startswith("no: elements")
    assert sample.check([one.detach().reshape(-1, 1) for one in sample.results], sample.results).startswith("no: tensor 0 has the shape")


def test_the_command():
    command = [sys.executable, "-m", "opsmith.frameworks"]
    run = subprocess.run([*command, str(SPEC), "softclip", "--framework", "opsmith"], capture_output=True, text=True)
    assert run.returncode == 0 and "(2, 3) float32" in run.stdout, run
    for arguments, text in ((["nothing"], "no operator 'nothing'"), (["missing.yaml", "x"], "missing.yaml"), (["add"], "add.Tensor")):
        run = subprocess.run([*command, *arguments], capture_output=True, text=True)
        assert run.returncode == 2 and text in run.stderr and "Traceback" not in run.stderr, run


def test_the_blocks_of_the_guide_run(monkeypatch, tmp_path):
    guide.run("One operator in all of them", monkeypatch, tmp_path)
    # The declaration that the guide shows is the one that its blocks load.
    shown = guide.GUIDE.read_text().partition("```yaml\n")[2].partition("```")[0]
    spec = SPEC.read_text()
    assert shown in spec[spec.index("edition:") :]

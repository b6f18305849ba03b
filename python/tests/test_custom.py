"""Kernels of files: values, several outputs, attributes, gradients, mistakes; and the same operators in PyTorch."""

import inspect
import json
import pathlib
import shutil
import threading

import pytest

import guide
import opsmith

pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="there is no compiler of C++")

SOURCE = """
#include <cstdint>
#include "custom_aot_extra.h"

static int64_t count(int ndim, const int64_t *shape) {
  int64_t all = 1;
  for (int i = 0; i < ndim; ++i) all *= shape[i];
  return all;
}

extern "C" int Square(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *) {
  auto *x = static_cast<const float *>(params[0]);
  auto *out = static_cast<float *>(params[1]);
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) out[i] = x[i] * x[i];
  return 0;
}

extern "C" int SumProduct(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *) {
  auto *x = static_cast<const float *>(params[0]), *y = static_cast<const float *>(params[1]);
  auto *sum = static_cast<float *>(params[2]), *product = static_cast<float *>(params[3]);
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) {
    sum[i] = x[i] + y[i];
    product[i] = x[i] * y[i];
  }
  return 0;
}

extern "C" int Scale(int, void **params, int *ndims, int64_t **shapes, const char **, void *, void *extra) {
  auto *x = static_cast<const float *>(params[0]);
  auto *out = static_cast<float *>(params[1]);
  float factor = static_cast<AotExtra *>(extra)->Attr<float>("factor");
  for (int64_t i = 0; i < count(ndims[0], shapes[0]); ++i) out[i] = x[i] * factor;
  return 0;
}
extern "C" int ScaleInit(int *, int64_t **, const char **, AotExtra *) { return 0; }

extern "C" int Fails(int, void **, int *, int64_t **, const char **, void *, void *) { return 7; }
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "kernels.cc"
    path.write_text(SOURCE)
    return path


def record(name, inputs, outputs, attributes=()):
    row = [["float32", "DefaultFormat"]] * (len(inputs) + len(outputs))
    named = lambda names: [{"index": at, "name": one, "paramType": "required"} for at, one in enumerate(names)]  # noqa: E731
    return {"op_name": name, "inputs": named(inputs), "outputs": named(outputs), "attr": list(attributes), "dtype_format": [row]}


def square(kernels):
    return opsmith.custom(f"{kernels}:Square", lambda x: x, lambda x: x, bprop=lambda x, out, dout: 2 * x * dout)


def pair(kernels):
    def bprop(x, y, out, dout):
        assert out[0].shape == x.shape
        return dout[0] + dout[1] * y, dout[0] + dout[1] * x

    info = record("sum_product", ["x", "y"], ["sum", "product"])
    return opsmith.custom(f"{kernels}:SumProduct", lambda x, y: (x, y), bprop=bprop, reg_info=json.dumps(info))


def test_shapes_and_dtypes_are_values_or_functions(kernels):
    x = opsmith.tensor([1.0, 2.0, 3.0])
    assert square(kernels)(x).tolist() == [1, 4, 9]
    assert opsmith.custom(f"{kernels}:Square", [3], "float32")(x).tolist() == [1, 4, 9]
    assert opsmith.custom(f"{kernels}:Square", (3,), opsmith.float32)(x).tolist() == [1, 4, 9]
    assert repr(square(kernels)) == "<opsmith.custom Square(Tensor[] inputs) -> Tensor output>"


def test_a_gradient_is_a_function(kernels):
    x = opsmith.tensor([1.0, -2.0], requires_grad=True)
    square(kernels)(x).sum().backward()
    assert x.grad.tolist() == [2, -4]


def test_several_outputs_are_a_tuple_and_so_are_their_gradients(kernels):
    x, y = (opsmith.tensor(values, requires_grad=True) for values in ([1.0, 2.0], [4.0, 5.0]))
    total, product = pair(kernels)(x, y)
    assert total.tolist() == [5, 7] and product.tolist() == [4, 10]
    product.sum().backward()
    assert x.grad.tolist() == [4, 5] and y.grad.tolist() == [1, 2]


def test_attributes_are_of_the_record_or_of_the_call(kernels):
    x = opsmith.tensor([1.0, 2.0])
    fixed = record("fixed", ["x"], ["out"], [{"name": "factor", "paramType": "required", "type": "float", "value": 3.0}])
    assert opsmith.custom(f"{kernels}:Scale", lambda x: x, reg_info=fixed)(x).tolist() == [3, 6]
    free = record("free", ["x"], ["out"], [{"name": "factor", "paramType": "required", "type": "float"}])
    scale = opsmith.custom(f"{kernels}:Scale", lambda x: x, reg_info=free)
    assert scale(x, 2.0).tolist() == scale(x, factor=2).tolist() == [2, 4]
    with pytest.raises(TypeError, match="factor"):
        scale(x)


def test_mistakes_are_exceptions(kernels):
    x = opsmith.tensor([1.0, 2.0])
    with pytest.raises(LookupError, match="there is no function `Cube`"):
        opsmith.custom(f"{kernels}:Cube", lambda x: x, lambda x: x)(x)
    with pytest.raises(opsmith.ArgumentError, match="write FILE:FUNCTION"):
        opsmith.custom("kernels.cc", [2], "float32")
    with pytest.raises(OSError, match="cannot read"):
        opsmith.custom("missing.cc:Square", [2], "float32")(x)
    with pytest.raises(opsmith.KernelError, match="7"):
        opsmith.custom(f"{kernels}:Fails", lambda x: x, lambda x: x)(x)
    with pytest.raises(ZeroDivisionError):
        opsmith.custom(f"{kernels}:Square", lambda x: 1 // 0, lambda x: x)(x)
    with pytest.raises(TypeError, match="is no shape"):
        opsmith.custom(f"{kernels}:Square", "wide", "float32")
    with pytest.raises(ValueError, match="there is no kind of function 'pyfunc'"):
        opsmith.custom(f"{kernels}:Square", [2], "float32", "pyfunc")
    with pytest.raises(opsmith.AutogradError, match="the gradient of `Square` is not defined"):
        opsmith.custom(f"{kernels}:Square", lambda x: x, lambda x: x)(x.requires_grad_()).sum().backward()


def test_an_exception_in_a_gradient_comes_out_unchanged(kernels):
    def bprop(x, out, dout):
        raise KeyError("mine")

    x = opsmith.tensor([1.0], requires_grad=True)
    with pytest.raises(KeyError, match="mine"):
        opsmith.custom(f"{kernels}:Square", lambda x: x, lambda x: x, bprop=bprop)(x).sum().backward()


def test_threads_call_one_operator(kernels):
    operator, found = square(kernels), []
    small, large = opsmith.full([2], 3.0), opsmith.full([100_000], 3.0)

    def run():
        for _ in range(50):
            found.append(operator(small)[0].item() + operator(large)[-1].item())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [18.0] * 200


def test_the_same_operators_in_pytorch(kernels):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import opsmith.torch

    ops = opsmith.torch.register([square(kernels), pair(kernels)], namespace="custom_test")
    assert ops.names == ["Square", "sum_product"]
    x, y = (torch.tensor(values, requires_grad=True) for values in ([1.0, 2.0], [4.0, 5.0]))
    torch.library.opcheck(ops.sum_product.default, (x, y))
    torch.library.opcheck(ops.Square.default, ([x],))
    (found,) = torch.autograd.grad(ops.sum_product(x, y)[1].sum(), x)
    assert found.tolist() == [4, 5]
    compiled = torch.compile(lambda x: ops.Square([x]) * 2, backend="aot_eager", fullgraph=True, dynamic=True)
    assert compiled(torch.tensor([3.0, 1.0])).tolist() == [18, 2] and compiled(torch.ones(5)).shape == (5,)


def test_the_same_operators_in_jax(kernels):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    import opsmith.jax

    function = opsmith.jax.operator(pair(kernels))
    x, y = jax.numpy.array([1.0, 2.0]), jax.numpy.array([4.0, 5.0])
    assert jax.jit(lambda x, y: function(x, y)[0])(x, y).tolist() == [5, 7]
    assert jax.grad(lambda x: function(x, y)[1].sum())(x).tolist() == [4, 5]


def test_the_blocks_of_the_guide_run(monkeypatch, tmp_path):
    guide.run("Kernels of your own", monkeypatch, tmp_path)


def test_the_example_of_the_documentation_runs(kernels, monkeypatch):
    import doctest

    import opsmith._custom

    monkeypatch.chdir(kernels.parent)
    pathlib.Path("square.cc").write_text(SOURCE)
    failed, count = doctest.testmod(opsmith._custom)
    assert failed == 0 and count == 3


def test_an_operator_has_a_name_and_a_signature(kernels):
    record = {
        "op_name": "Scale",
        "inputs": [{"index": 0, "name": "x"}],
        "outputs": [{"index": 0, "name": "y"}],
        "attr": [{"name": "factor", "type": "float"}],
    }
    scale = opsmith.custom(f"{kernels}:Scale", lambda x: x, lambda x: x, reg_info=record)
    assert scale.__name__ == "Scale" and str(inspect.signature(scale)) == "(x, /, factor)"
    plain = opsmith.custom(f"{kernels}:Square", lambda x: x, lambda x: x)
    assert str(inspect.signature(plain)) == "(*inputs)"


@pytest.mark.parametrize(
    "given, kind, text",
    [
        ({"func": pathlib.Path("a.cc")}, TypeError, "`func` is a `.*Path`"),
        ({"func": 3}, TypeError, "`func` is a `int`"),
        ({"func": "a.cc:F", "reg_info": []}, TypeError, "`reg_info` is a `list`"),
        ({"func": "a.cc:F", "reg_info": "{"}, ValueError, "`reg_info` is no JSON"),
        ({"func": "a.cc:F", "reg_info": "[]"}, TypeError, "`reg_info` is a `list`"),
    ],
)
def test_wrong_declarations_say_which_argument_it_is(given, kind, text):
    with pytest.raises(kind, match=text):
        opsmith.custom(**given)

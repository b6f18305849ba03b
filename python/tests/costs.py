"""Costs of calls from Python: ``python costs.py`` prints the least of many rounds, in microseconds of processor time.

With PyTorch, a C++ compiler and PyTorch's headers, an operator of the bridge is compared with the same one by ``custom_op`` and by a
hand-written extension. The rounds of all are interleaved, so that ratios hold on a busy machine.
"""

import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time

import opsmith

ROUNDS, CALLS = 60, 2000

EXTENSION = """
#include <torch/library.h>
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

static at::Tensor forward(const at::Tensor &x, const at::Tensor &y) {
  at::Tensor result = at::empty_like(x);
  const float *a = x.const_data_ptr<float>(), *b = y.const_data_ptr<float>();
  float *to = result.mutable_data_ptr<float>();
  for (int64_t at = 0; at < x.numel(); ++at) to[at] = a[at] + b[at] * 2;
  return result;
}

struct Function : torch::autograd::Function<Function> {
  static at::Tensor forward(AutogradContext *, at::Tensor x, at::Tensor y) {
    at::AutoDispatchBelowADInplaceOrView guard;
    static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("costs_cpp::blend", "").typed<at::Tensor(const at::Tensor &, const at::Tensor &)>();
    return op.call(x, y);
  }
  static variable_list backward(AutogradContext *, variable_list gradients) {
    return {gradients[0], gradients[0] * 2};
  }
};

static at::Tensor differentiated(const at::Tensor &x, const at::Tensor &y) { return Function::apply(x, y); }

TORCH_LIBRARY(costs_cpp, m) { m.def("blend(Tensor x, Tensor y) -> Tensor"); m.def("plain(Tensor x, Tensor y) -> Tensor"); }
TORCH_LIBRARY_IMPL(costs_cpp, CPU, m) { m.impl("blend", forward); m.impl("plain", forward); }
TORCH_LIBRARY_IMPL(costs_cpp, Autograd, m) { m.impl("blend", differentiated); }
"""

SPEC = """
edition: 1
ops:
- func: blend(Tensor self, Tensor other) -> Tensor
  doc: A sum.
  pointwise: self + other * 2
"""


def measured(calls, rounds=ROUNDS, count=CALLS):
    """The least microseconds of a call of each function, without those of the loop."""
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, function in calls.items():
            start = time.thread_time_ns()
            for _ in range(count):
                function()
            least[name] = min(least[name], (time.thread_time_ns() - start) / count / 1000)
    return least


def show(calls, **options):
    found = measured({"nothing": lambda: None, **calls}, **options)
    loop = found.pop("nothing")
    for name, microseconds in found.items():
        print(f"{microseconds - loop:9.3f}  {name}")
    return {name: microseconds - loop for name, microseconds in found.items()}


def own():
    x, y = opsmith.tensor([1.0]), opsmith.tensor([2.0])
    a, b = (opsmith.ones([4]).requires_grad_() for _ in range(2))
    add = opsmith.add
    show({"add(x, y)": lambda: add(x, y), "x + y": lambda: x + y, "x + 1": lambda: x + 1})
    show({"(a * b).sum().backward()": lambda: (a * b).sum().backward()}, count=500)


def custom():
    kernel = pathlib.Path(__file__).resolve().parents[2] / "examples/aot/kernels/square.cc"
    square = opsmith.custom(f"{kernel}:Square", lambda x: x, lambda x: x)
    x = opsmith.ones([4])
    show({"custom kernel": lambda: square(x)})


def extension(torch):
    """Compiles and loads the hand-written extension."""
    from torch.utils import cpp_extension

    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "costs.cc").write_text(EXTENSION)
    flags = [f"-I{path}" for path in [*cpp_extension.include_paths(), sysconfig.get_path("include")]]
    library = pathlib.Path(torch.__file__).parent / "lib"
    command = ["c++", "-O2", "-shared", "-fPIC", "-std=c++20", *flags, "costs.cc", "-o", "costs.so"]
    subprocess.run([*command, f"-L{library}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{library}"], cwd=folder, check=True)
    torch.ops.load_library(folder / "costs.so")


def folder():
    """The sum of a folder that ``opsmith bridge torch`` made, if ``scripts/bridges.sh`` installed it here."""
    try:
        import opsmith_example_custom_op_torch as package
    except ImportError:
        return {}
    return {"folder": package.ops.add}


def bridge():
    import torch

    import opsmith.torch

    ops = opsmith.torch.register(namespace="costs_own", library=opsmith.load_spec(SPEC))

    @torch.library.custom_op("costs_python::blend", mutates_args=())
    def blend(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y * 2

    @torch.library.custom_op("costs_python::plain", mutates_args=())
    def plain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y * 2

    blend.register_autograd(lambda ctx, gradient: (gradient, gradient * 2), setup_context=lambda ctx, inputs, output: None)
    extension(torch)
    all_of = {
        "bridge": ops.blend,
        **folder(),
        "custom_op": torch.ops.costs_python.blend,
        "custom_op without derivative": torch.ops.costs_python.plain,
        "C++ extension": torch.ops.costs_cpp.blend,
        "C++ extension without derivative": torch.ops.costs_cpp.plain,
    }
    for title, tracked, backward in (("a call", False, False), ("recorded", True, False), ("forward and backward", True, True)):
        x, y = (torch.ones(4, requires_grad=tracked) for _ in range(2))
        start = torch.ones(4)

        def run(function):
            if backward:
                return lambda: torch.autograd.grad(function(x, y), (x, y), start)
            return lambda: function(x, y)

        print(f"PyTorch, {title}")
        chosen = {name: run(function) for name, function in all_of.items() if not (backward and "without" in name)}
        found = show(chosen, count=500)
        for own in (name for name in ("bridge", "folder") if name in found):
            for name in list(found)[1:]:
                print(f"           {own}: {found[own] / found[name]:.2f} of {name}")


def main():
    own()
    custom()
    if "--torch" in sys.argv[1:]:
        bridge()


if __name__ == "__main__":
    main()

"""Programs of PyTorch with operators of the bridge: of its default compiler, exported ones, and those that opsmith runs."""

import pytest

import opsmith

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import opsmith.torch  # noqa: E402
from torch_calls import ENTRIES, FUNCTIONAL, OPS, WITHOUT_DERIVATIVE, calls, random, tensors_of  # noqa: E402

# Programs of an earlier build must not come from a cache.
torch.compiler.config.force_disable_caches = True

SYMBOLIC = {
    "add": (lambda x, y: OPS.add(x, y), [((3, 4), (4,)), ((5, 6), (6,)), ((7, 9), (9,))]),
    "matmul": (lambda x, y: OPS.matmul(x, y), [((3, 4), (4, 5)), ((6, 7), (7, 8)), ((9, 2), (2, 3))]),
    "layer_norm": (lambda x: OPS.layer_norm(x, [x.shape[-1]]), [((3, 4),), ((5, 6),), ((7, 9),)]),
    "softmax": (lambda x: OPS.softmax.int(x, -1), [((3, 4),), ((5, 6),), ((7, 9),)]),
    "sum": (lambda x: OPS.sum.dim_IntList(x, [0]), [((3, 4),), ((5, 6),), ((7, 9),)]),
    "cat": (lambda x, y: OPS.cat([x, y], 0), [((3, 4), (2, 4)), ((5, 6), (8, 6)), ((7, 9), (11, 9))]),
    "conv2d": (lambda x, w: OPS.conv2d(x, w), [((2, 3, 8, 9), (4, 3, 3, 3)), ((5, 3, 9, 10), (4, 3, 3, 3))]),
    "max_pool2d": (lambda x: OPS.max_pool2d(x, [2, 2]), [((2, 3, 8, 9),), ((5, 3, 9, 12),), ((7, 3, 13, 10),)]),
    "repeat": (lambda x: OPS.repeat(x, [2, 3]), [((3, 4),), ((5, 6),), ((7, 9),)]),
    "pad": (lambda x: OPS.constant_pad_nd(x, [1, 2]), [((3, 4),), ((5, 6),), ((7, 9),)]),
    "nonzero": (lambda x: OPS.nonzero(x).float(), [((3, 4),), ((5, 6),), ((7, 9),)]),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_one_compiled_program_serves_all_sizes(name):
    from torch._dynamo.testing import CompileCounterWithBackend

    function, shapes = SYMBOLIC[name]
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("inductor")
    compiled = torch.compile(function, backend=counter, fullgraph=True, dynamic=True)
    for shape in shapes:
        inputs = [random(*one).requires_grad_() for one in shape]
        found, expected = compiled(*inputs), function(*inputs)
        torch.testing.assert_close(found, expected)
        if expected.requires_grad:
            torch.testing.assert_close(*(torch.autograd.grad(one, inputs, torch.ones_like(one)) for one in (found, expected)))
    assert counter.frame_count == 1


def test_a_compiled_training_step_gives_the_gradients_of_pytorch():
    torch._dynamo.reset()
    layer = torch.nn.Linear(8, 8)
    x = random(4, 8)

    def step(x):
        return OPS.layer_norm(OPS.gelu(layer(x)), [8]).pow(2).sum()

    torch.compile(step, fullgraph=True)(x).backward()
    found = layer.weight.grad.clone()
    layer.weight.grad = None
    torch.nn.functional.layer_norm(torch.nn.functional.gelu(layer(x)), [8]).pow(2).sum().backward()
    torch.testing.assert_close(found, layer.weight.grad, rtol=1e-4, atol=1e-4)


def of_each_signature():
    """An operator for each choice of kinds of arguments and results, with and without a form that writes."""
    found = {}
    for name in FUNCTIONAL:
        entry = ENTRIES[name]
        arguments = frozenset((kind, is_keyword) for _, kind, *_, is_keyword in entry.arguments)
        found.setdefault((arguments, *(kind for _, kind, *_ in entry.results), entry.definition.out in OPS.names), name)
    return list(found.values())


@pytest.mark.parametrize("half", [0, 1])
def test_the_default_compiler_runs_operators_of_each_signature(half):
    names = of_each_signature()[half::2]
    assert len(names) > 50
    given = [(name, *next(iter(calls(name, tracked=name not in WITHOUT_DERIVATIVE)))) for name in names]

    def program(given):
        return [OPS.overload(name)(*args, **named) for name, args, named in given]

    def slopes(results):
        tracked = [one for one in tensors_of(results) if one.requires_grad]
        inputs = [one for one in tensors_of(args for _, args, _ in given) if one.requires_grad]
        return torch.autograd.grad(tracked, inputs, [torch.ones_like(one) for one in tracked], allow_unused=True)

    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        found = torch.compile(program, fullgraph=True)(given)
    expected = program(given)
    for name, one, other in zip(names, found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True, msg=lambda text: f"{name}: {text}")
    for one, other in zip(slopes(found), slopes(expected), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, equal_nan=True)


def test_an_exported_program_keeps_the_operator_and_a_symbolic_batch():
    class Model(torch.nn.Module):
        def forward(self, x):
            return OPS.gelu(x) @ torch.ones(8, 2)

    batch = torch.export.Dim("batch", min=2, max=100)
    program = torch.export.export(Model(), (random(4, 8),), dynamic_shapes={"x": {0: batch}})
    assert "opsmith.gelu.default" in [str(node.target) for node in program.graph.nodes]
    assert program.module()(random(7, 8)).shape == (7, 2)


def test_a_module_becomes_a_program():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    batch = torch.export.Dim("batch", min=1, max=64)
    program = opsmith.torch.from_module(module, (torch.zeros(5, 3),), dynamic_shapes=({0: batch},))
    x = random(7, 3)
    found = opsmith.torch.to_torch(program(opsmith.torch.asarray(x)))
    torch.testing.assert_close(found, module(x).detach())


def test_inputs_of_programs_have_names():
    class Scaled(torch.nn.Module):
        def forward(self, x, shift, *, scale):
            return OPS.gelu(x) * scale + shift

    x, shift, scale = random(3), random(3) + 1, random(3) + 2
    program = opsmith.torch.from_module(Scaled(), (x, shift), {"scale": scale})
    own = [opsmith.torch.asarray(one) for one in (x, shift, scale)]
    expected = Scaled()(x, shift, scale=scale)
    for run in (program, program.call):
        for found in (run(*own), run(own[0], scale=own[2], shift=own[1]), run(*own[:2], scale=scale)):
            torch.testing.assert_close(opsmith.torch.to_torch(found), expected)
    for given, named, text in (
        (own[:2], {"scales": own[2]}, "there is no input `scales`\n  help: the inputs are: x, shift, scale"),
        (own[:2], {"shift": own[1]}, "`shift` is given twice"),
        (own[:1], {"scale": own[2]}, "the input `shift` is missing"),
    ):
        with pytest.raises(opsmith.ArgumentError, match=text):
            program(*given, **named)


def test_a_program_has_no_operators_of_other_libraries():
    other = opsmith.torch.register(["gelu"], namespace="elsewhere")

    class Other(torch.nn.Module):
        def forward(self, x):
            return other.gelu(x)

    with pytest.raises(NotImplementedError, match="calls elsewhere.gelu.default; a program has registered operators of the package alone"):
        opsmith.torch.from_module(Other(), (random(3),))

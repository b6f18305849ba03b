"""The bridge to PyTorch: every operator passes its own check, differentiates, compiles; memory is shared, errors are exceptions."""

import collections
import gc
import weakref

import pytest

import guide
import opsmith

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import opsmith.torch  # noqa: E402
from opsmith._signature import MISSING, chosen  # noqa: E402
from opsmith._signature import mapped as mapped_own  # noqa: E402
from opsmith._torch_forms import out_names  # noqa: E402

OPS = opsmith.torch.register()
ENTRIES = {entry.name: entry for entry in chosen(opsmith, None)}
FUNCTIONAL = [name for name in OPS.names if name in ENTRIES]
# Entries whose derivative is declared not to exist: a backward pass is an error, in opsmith as here.
WITHOUT_DERIVATIVE = {"histc", "heaviside", "linalg_lu_factor_ex"}


def converted(tensor, tracked):
    made = opsmith.torch.to_torch(tensor)
    return made.requires_grad_() if tracked and (made.is_floating_point() or made.is_complex()) else made


def calls(name, tracked=False):
    """The samples of an operator as calls of PyTorch's."""
    entry, schema = ENTRIES[name], OPS.overload(name)._schema
    defaults = [argument.default_value for argument in schema.arguments]
    dtypes = {argument for argument, kind, *_ in entry.arguments if kind == "DType"}

    def one(name, value):
        if isinstance(value, str) and name in dtypes:
            return getattr(torch, value)
        return mapped_own(value, lambda tensor: converted(tensor, tracked))

    for positional, named in entry.calls():
        given = [defaults[at] if value is MISSING else value for at, value in enumerate(positional)]
        given = [one(argument, value) for (argument, *_), value in zip(entry.arguments, given)]
        yield given, {name: one(name, value) for name, value in named.items()}


def tensors_of(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from tensors_of(value)
        elif isinstance(value, torch.Tensor):
            yield value


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_the_check_of_pytorch_passes(name):
    count = 0
    for args, named in calls(name, tracked=name not in WITHOUT_DERIVATIVE):
        torch.library.opcheck(OPS.overload(name), tuple(args), named)
        count += 1
    assert count > 0


def inplace_calls():
    for name in FUNCTIONAL:
        target = ENTRIES[name].definition.inplace
        if target in OPS.names:
            yield name, target


def listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("name, target", list(inplace_calls()))
def test_forms_that_write_into_the_first_argument(name, target):
    for args, named in calls(name):
        expected, written = listed(OPS.overload(name)(*args, **named)), listed(args[0])
        if any(one.dtype != other.dtype or one.shape != other.shape for one, other in zip(expected, written, strict=True)):
            continue
        torch.library.opcheck(OPS.overload(target), tuple(args), named)
        versions = [one._version for one in written]
        found = OPS.overload(target)(*args, **named)
        assert found is (None if isinstance(args[0], list) else args[0])
        for one, other, version in zip(written, expected, versions):
            assert one._version == version + 1
            torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in FUNCTIONAL if ENTRIES[name].definition.out in OPS.names])
def test_forms_that_write_into_given_tensors(name):
    operator, names = OPS.overload(ENTRIES[name].definition.out), out_names(ENTRIES[name])
    for args, named in calls(name):
        expected = listed(OPS.overload(name)(*args, **named))
        given = {out: torch.empty_like(one) for out, one in zip(names, expected, strict=True)}
        if len(names) > 1:
            # PyTorch 2.15 compiles no such form of an operator with an argument `mode`, the name of one of its own functions' arguments.
            names_mode = any(argument.name == "mode" for argument in operator._schema.arguments)
            checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
            torch.library.opcheck(operator, tuple(args), {**named, **given}, test_utils=checks[:3] if names_mode else checks)
        found = listed(operator(*args, **named, **given))
        for one, out, other in zip(found, given.values(), expected, strict=True):
            assert one is out
            torch.testing.assert_close(out, other, equal_nan=True)


def test_several_results_are_written_into_tensors_of_other_sizes():
    x = random(3, 4)
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    found = OPS.sort.values(x, 1, values=values, indices=indices)
    assert found[0] is values and found[1] is indices and values._version > 0
    torch.testing.assert_close((values, indices), tuple(torch.sort(x, 1)))
    with pytest.raises(TypeError, match="a tensor of torch.int32 cannot have"):
        OPS.sort.values(x, 1, values=torch.empty(0, dtype=torch.int32), indices=indices)
    with pytest.raises(RuntimeError, match="has no derivative"):
        OPS.sort.values(x.requires_grad_(), 1, values=values, indices=indices)


def test_lists_are_written_in_place_with_a_gradient():
    x, y = random(2, 3).requires_grad_(), random(4)
    a, b = x * 1, y.clone()
    OPS._foreach_mul_.Scalar([a, b], 3.0)
    assert a._version == 1 and b._version == 1
    torch.testing.assert_close((a, b), (x * 3, y * 3))
    a.sum().backward()
    assert (x.grad == 3).all()

    def doubled(one, other):
        one, other = one.clone(), other.clone()
        OPS._foreach_mul_.Scalar([one, other], 2.0)
        return one, other

    found = torch.compile(doubled, fullgraph=True, backend="aot_eager")(x.detach(), y)
    torch.testing.assert_close(found, (x.detach() * 2, y * 2))


@pytest.mark.parametrize("name", [name for name in FUNCTIONAL if ENTRIES[name].is_differentiable()])
def test_gradients_are_those_of_opsmith(name):
    if name in WITHOUT_DERIVATIVE:
        return
    for args, named in calls(name, tracked=True):
        results = OPS.overload(name)(*args, **named)
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        places = [at for at, one in enumerate(results) if one.requires_grad]
        results = [results[at] for at in places]
        inputs = [one for one in tensors_of(args) if one.requires_grad]
        if not results or not inputs:
            continue
        starts = [torch.linspace(0.5, 1.5, one.numel(), dtype=torch.float64).reshape(one.shape).to(one.dtype) for one in results]
        found = torch.autograd.grad(results, inputs, starts, allow_unused=True)

        own = {id(one): opsmith.torch.asarray(one).requires_grad_() for one in inputs}
        convert = lambda one: own[id(one)] if id(one) in own else opsmith.torch.asarray(one)  # noqa: E731
        given = [mapped(one, convert) for one in args]
        expected = opsmith.call(name, *given, **{key: mapped(one, convert) for key, one in named.items()})
        expected = expected if isinstance(expected, tuple) else [expected]
        expected = [expected[at] for at in places]
        # PyTorch tracks all results of a composition, also those that no argument changes.
        tracked = [(one, opsmith.torch.asarray(start)) for one, start in zip(expected, starts) if one.requires_grad]
        if not tracked:
            assert all(one is None or not one.any() for one in found)
            continue
        outputs, starts = map(list, zip(*tracked))
        expected = opsmith.grad(outputs, [own[id(one)] for one in inputs], starts)
        for one, other, like in zip(found, expected, inputs):
            other = torch.zeros_like(like) if other is None else opsmith.torch.to_torch(other)
            torch.testing.assert_close(torch.zeros_like(like) if one is None else one, other, equal_nan=True)


def mapped(value, convert):
    if isinstance(value, torch.Tensor):
        return convert(value)
    if isinstance(value, (list, tuple)):
        return [mapped(item, convert) for item in value]
    return value


def test_every_operator_is_registered_or_listed_with_the_reason():
    reasons = opsmith.torch.unsupported()
    assert set(reasons) | set(FUNCTIONAL) == set(ENTRIES) and not set(reasons) & set(FUNCTIONAL)
    assert OPS.skipped == reasons
    assert reasons["transpose.int"] == "its result shares memory with an argument"
    assert reasons["bincount"] == "elements of self determine shapes of its results"
    assert "draws random numbers" in reasons["native_dropout"]
    kinds = collections.Counter(reason.partition(" ")[0] for reason in reasons.values())
    assert sum(kinds.values()) == len(reasons) and len(FUNCTIONAL) > 450
    for name in ("transpose.int", "transpose", "dropout"):
        with pytest.raises(NotImplementedError, match=f"`{name}` cannot be an operator of PyTorch"):
            opsmith.torch.register([name])
    with pytest.raises(LookupError, match="there is no operator 'nosuch'"):
        opsmith.torch.register(["nosuch"])


def test_a_namespace_has_the_operators_asked_for_and_keeps_them():
    found = opsmith.torch.register(["gelu", "add.Tensor"], namespace="few")
    assert found.names == ["gelu", "gelu_", "gelu.out", "add.Tensor", "add_.Tensor", "add.out"]
    again = opsmith.torch.register(["relu"], namespace="few")
    assert again is found and "relu" in found.names and str(found) == "<9 operators in torch.ops.few, 0 left out>"
    assert torch.ops.few.gelu(torch.zeros(2)).tolist() == [0, 0]
    assert str(torch.ops.few.add.Tensor._schema) == "few::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


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
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(function, backend=counter, fullgraph=True, dynamic=True)
    for shape in shapes:
        inputs = [random(*one) for one in shape]
        torch.testing.assert_close(compiled(*inputs), function(*inputs))
    assert counter.frame_count == 1


def test_a_compiled_training_step_gives_the_gradients_of_pytorch():
    torch._dynamo.reset()
    layer = torch.nn.Linear(8, 8)
    x = random(4, 8)

    def step(x):
        return OPS.layer_norm(OPS.gelu(layer(x)), [8]).pow(2).sum()

    torch.compile(step, backend="aot_eager", fullgraph=True)(x).backward()
    found = layer.weight.grad.clone()
    layer.weight.grad = None
    torch.nn.functional.layer_norm(torch.nn.functional.gelu(layer(x)), [8]).pow(2).sum().backward()
    torch.testing.assert_close(found, layer.weight.grad, rtol=1e-4, atol=1e-4)


def test_an_exported_program_keeps_the_operator_and_a_symbolic_batch():
    class Model(torch.nn.Module):
        def forward(self, x):
            return OPS.gelu(x) @ torch.ones(8, 2)

    batch = torch.export.Dim("batch", min=2, max=100)
    program = torch.export.export(Model(), (random(4, 8),), dynamic_shapes={"x": {0: batch}})
    assert "opsmith.gelu.default" in [str(node.target) for node in program.graph.nodes]
    assert program.module()(random(7, 8)).shape == (7, 2)


DOUBLE = {
    "tanh": (lambda x: OPS.tanh(x), [(3,)]),
    "mul": (lambda x, y: OPS.mul(x, y), [(2, 3), (3,)]),
    "matmul": (lambda x, y: OPS.matmul(x, y), [(2, 3), (3, 2)]),
    "layer_norm": (lambda x, w: OPS.layer_norm(x, [4], w), [(2, 4), (4,)]),
    "softmax": (lambda x: OPS.softmax.int(x, 1), [(2, 3)]),
    "cat": (lambda x, y: OPS.cat([x, y], 1), [(2, 3), (2, 1)]),
    "max": (lambda x: OPS.max.dim(x, 1)[0], [(2, 3)]),
    "gelu": (lambda x: OPS.gelu(x), [(3,)]),
    "meshgrid": (lambda x, y: OPS.meshgrid([x, y])[1], [(2,), (3,)]),
    "conv2d": (lambda x, w: OPS.conv2d(x, w), [(1, 1, 3, 3), (1, 1, 2, 2)]),
}


@pytest.mark.parametrize("name", DOUBLE)
def test_first_and_second_derivatives_are_those_of_differences(name):
    function, shapes = DOUBLE[name]
    inputs = tuple(random(*shape).double().requires_grad_() for shape in shapes)
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_derivatives_of_complex_numbers_are_those_of_differences():
    def function(x, y):
        return OPS.exp(OPS.mul(x, y))

    inputs = tuple(torch.complex(random(3), random(4)[:3]).to(torch.complex128).requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_third_derivatives_are_refused():
    x = random(3).requires_grad_()
    (first,) = torch.autograd.grad(OPS.tanh(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="no third derivative"):
        torch.autograd.grad(second.sum(), x)


TRANSFORMED = {
    "tanh": (lambda x: OPS.tanh(x), torch.tanh, [(3,)]),
    "mul": (lambda x, y: OPS.mul(x, y), torch.mul, [(3,), (3,)]),
    "cat": (lambda x, y: OPS.cat([x, y]), lambda x, y: torch.cat([x, y]), [(3,), (2,)]),
    "max": (lambda x: OPS.max.dim(x, 0)[0], lambda x: x.max(0)[0], [(3,)]),
    "layer_norm": (lambda x: OPS.layer_norm(x, [3]), lambda x: torch.layer_norm(x, [3]), [(3,)]),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_of_functions(name):
    ours, theirs, shapes = TRANSFORMED[name]
    inputs = [random(*shape) for shape in shapes]
    several = [torch.stack([one, one * 2]) for one in inputs]
    tangents = tuple(random(*shape) + 1 for shape in shapes)
    places = tuple(range(len(shapes)))

    def compare(transform):
        for one, other in zip(tensors_of([transform(ours)]), tensors_of([transform(theirs)]), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)

    compare(lambda function: torch.func.vmap(function)(*several))
    compare(lambda function: torch.func.grad(lambda *args: function(*args).sum(), places)(*inputs))
    compare(lambda function: torch.func.jacrev(function, places)(*inputs))
    compare(lambda function: torch.func.jvp(function, tuple(inputs), tangents))
    compare(lambda function: torch.func.vmap(torch.func.grad(lambda *args: function(*args).sum(), places))(*several))
    compare(lambda function: torch.func.jacrev(torch.func.jacrev(lambda *args: function(*args).pow(2).sum()))(*inputs))


def test_mistakes_are_exceptions_of_their_class_with_the_operands():
    with pytest.raises(opsmith.ShapeError, match="the inner sizes of the product differ") as raised:
        OPS.matmul(random(2, 3), random(2, 3))
    assert isinstance(raised.value, ValueError) and raised.value.operands == [("self", "float32 (2, 3)"), ("other", "float32 (2, 3)")]
    with pytest.raises(NotImplementedError, match="there is no CPU kernel for int64"):
        OPS.gelu(torch.ones(2, dtype=torch.int64))
    with pytest.raises(IndexError):
        OPS.softmax.int(random(2, 3), 7)
    with pytest.raises(RuntimeError, match="the inner sizes of the product differ"):
        torch.compile(lambda x: OPS.matmul(x, x), backend="aot_eager", fullgraph=True)(random(2, 3))
    with pytest.raises(opsmith.ShapeError, match="`out` has no elements"):
        OPS.add.out(random(3), random(3), out=torch.empty(0))
    with pytest.raises(RuntimeError, match="has no derivative"):
        OPS.tanh.out(random(3).requires_grad_(), out=torch.empty(3))
    with pytest.raises(NotImplementedError, match="counts have no gradient"):
        OPS.histc(random(3).requires_grad_(), 4).sum().backward()


def test_arguments_are_shared_and_results_are_new_and_row_major():
    x = random(4, 3)
    same = opsmith.torch.asarray(x)
    assert same.data_ptr() == x.data_ptr() and opsmith.torch.to_torch(same).data_ptr() == x.data_ptr()
    transposed = OPS.relu(x.t())
    assert transposed.is_contiguous() and torch.equal(transposed, x.t().relu())
    copies = OPS.meshgrid([x[0], x[0]])
    addresses = {one.data_ptr() for one in copies}
    assert len(addresses) == 2 and x.data_ptr() not in addresses
    assert torch.equal(OPS.mul(x[::2, 1:], x[:1, :2]), x[::2, 1:] * x[:1, :2])
    conjugated = torch.tensor([1 + 2j]).conj()
    assert OPS.mul(conjugated, conjugated).item() == -3 - 4j and opsmith.torch.asarray(conjugated).tolist() == [1 - 2j]


def test_memory_lives_as_long_as_a_tensor_needs_it():
    x = torch.ones(1000)
    result, shared = OPS.add(x, x), opsmith.torch.asarray(x)
    watch = weakref.ref(x.untyped_storage())
    del x
    gc.collect()
    assert result.sum() == 2000 and shared.sum().item() == 1000
    made = opsmith.ones([1000])
    other = opsmith.torch.to_torch(made)
    del made
    gc.collect()
    assert other.sum() == 1000 and watch is not None


def test_objects_of_pytorch_are_arguments():
    assert opsmith.zeros([2], dtype=torch.float64, device=torch.device("cpu")).dtype is opsmith.float64
    assert OPS.sum.dim_IntList(torch.ones(2, dtype=torch.int32), [0], dtype=torch.float64).dtype is torch.float64
    assert opsmith.add(torch.ones(2), opsmith.ones([2])).tolist() == [2, 2]


def test_a_module_becomes_a_program():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    batch = torch.export.Dim("batch", min=1, max=64)
    program = opsmith.torch.from_module(module, (torch.zeros(5, 3),), dynamic_shapes=({0: batch},))
    x = random(7, 3)
    found = opsmith.torch.to_torch(program(opsmith.torch.asarray(x)))
    torch.testing.assert_close(found, module(x).detach())


def test_the_blocks_of_the_guide_run(monkeypatch, tmp_path):
    guide.run("PyTorch", monkeypatch, tmp_path)


def test_examples_run():
    import doctest

    failed, count = doctest.testmod(opsmith.torch, extraglobs={"torch": torch, "opsmith": opsmith})
    assert failed == 0 and count > 8


def test_operators_are_also_those_of_tensors_on_cuda():
    opsmith.torch.register(["gelu"])
    for name in ("gelu", "gelu.out", "_pullback_gelu", "_second_pullback_gelu"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"opsmith::{name}", "CUDA")


def test_a_gradient_that_passes_unchanged_is_not_copied():
    ops = opsmith.torch.register(["add"])
    x, y = (torch.zeros(3, requires_grad=True) for _ in range(2))
    start = torch.ones(3)
    found = torch.autograd.grad(ops.add(x, y), (x, y), start)
    assert all(one.data_ptr() == start.data_ptr() for one in found)
    # A recorded backward pass is an operator, whose results are new.
    found = torch.autograd.grad(ops.add(x, y), (x, y), start, create_graph=True)
    assert all(one.data_ptr() != start.data_ptr() and torch.equal(one, start) for one in found)

"""The bridge to PyTorch: every operator passes its own check, differentiates, compiles; memory is shared, errors are exceptions."""

import collections
import gc
import weakref

import pytest

import guide
import opsmith

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import opsmith.torch  # noqa: E402
from opsmith._torch_forms import out_names  # noqa: E402
from torch_calls import ENTRIES, FUNCTIONAL, OPS, WITHOUT_DERIVATIVE, calls, random, tensors_of  # noqa: E402

# Programs of an earlier build must not come from a cache.
torch.compiler.config.force_disable_caches = True


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

    found = torch.compile(doubled, fullgraph=True)(x.detach(), y)
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


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_of_a_batch_without_items(name):
    ours, theirs, shapes = TRANSFORMED[name]
    inputs = [torch.ones(0, *shape) for shape in shapes]
    total = lambda function: lambda *args: function(*args).sum()  # noqa: E731
    for transform in (
        torch.func.vmap,
        lambda function: torch.func.vmap(torch.func.grad(total(function))),
        lambda function: torch.func.grad(total(torch.func.vmap(function))),
        lambda function: lambda *args: torch.func.jvp(torch.func.vmap(function), args, args)[1],
        lambda function: lambda *args: torch.func.vmap(torch.func.vmap(function))(*(one[None] for one in args)),
    ):
        found, expected = transform(ours)(*inputs), transform(theirs)(*inputs)
        assert found.shape == expected.shape and found.dtype == expected.dtype


def test_what_items_share_has_no_slope_without_items():
    items, shared = torch.ones(0, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    torch.func.vmap(lambda x: OPS.mul(x, shared))(items).sum().backward()
    assert items.grad.shape == (0, 3) and shared.grad.tolist() == [0, 0, 0]


def test_mistakes_are_exceptions_of_their_class_with_the_operands():
    with pytest.raises(opsmith.ShapeError, match="the inner sizes of the product differ") as raised:
        OPS.matmul(random(2, 3), random(2, 3))
    assert isinstance(raised.value, ValueError) and raised.value.operands == [("self", "float32 (2, 3)"), ("other", "float32 (2, 3)")]
    with pytest.raises(NotImplementedError, match="there is no CPU kernel for int64"):
        OPS.gelu(torch.ones(2, dtype=torch.int64))
    with pytest.raises(IndexError):
        OPS.softmax.int(random(2, 3), 7)
    with pytest.raises(RuntimeError, match="the inner sizes of the product differ"):
        torch.compile(lambda x: OPS.matmul(x, x), fullgraph=True)(random(2, 3))
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

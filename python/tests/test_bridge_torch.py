"""Operators of a folder that ``opsmith bridge torch`` made: the package ``opsmith_example_custom_op_torch`` of the example crate with some
stock operators. ``scripts/bridges.sh`` builds it and runs this; without it, the tests are skipped."""

import pytest

torch = pytest.importorskip("torch")
package = pytest.importorskip("opsmith_example_custom_op_torch")

ops = package.ops
# Programs of an earlier build must not come from a cache.
torch.compiler.config.force_disable_caches = True


def example(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def laplacian(x):
    """The five-point Laplacian, by PyTorch's convolution."""
    kernel = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]], dtype=x.dtype)
    return torch.nn.functional.conv2d(x[None, None], kernel[None, None], padding=1)[0, 0]


# Operator, PyTorch's own, and arguments: kernels in C++ and in Rust, an expression, compositions, several results, lists.
CASES = {
    "cpp": (ops.transpose_copy, lambda x, perm: x.permute(perm).contiguous(), lambda x: (x, [1, 0])),
    "rust": (ops.laplacian, laplacian, lambda x: (x,)),
    "expression": (ops.gaussian, lambda x: torch.exp(-x * x / 2), lambda x: (x,)),
    "composition": (ops.heat_step, lambda x: x + 0.1 * laplacian(x), lambda x: (x,)),
    "several results": (ops.sort, torch.sort, lambda x: (x, 1)),
    "list": (ops.cat, torch.cat, lambda x: ([x, x * 2], 1)),
    "list result": (ops._foreach_mul, lambda list, by: [x * by for x in list], lambda x: ([x, x[0]], 2.0)),
    "stock expression": (ops.gelu, torch.nn.functional.gelu, lambda x: (x,)),
    "stock composition": (ops.softmax, torch.softmax, lambda x: (x, 1)),
    "broadcast": (ops.add, torch.add, lambda x: (x, x[0])),
    "mul": (ops.mul, torch.mul, lambda x: (x, x[0])),
    "maximum": (ops.maximum, torch.maximum, lambda x: (x, x[0])),
    "where": (ops.where, torch.where, lambda x: (x > 0, x, x[0])),
    "clamp": (ops.clamp, torch.clamp, lambda x: (x, -0.5)),
    "exp": (ops.exp, torch.exp, lambda x: (x,)),
    "sum": (ops.sum, torch.sum, lambda x: (x, [0], True)),
    "amax": (ops.amax, torch.amax, lambda x: (x, [1])),
    "mean": (ops.mean, torch.mean, lambda x: (x, [0, 1])),
    "cumsum": (ops.cumsum, torch.cumsum, lambda x: (x, 1)),
    "mm": (ops.mm, torch.mm, lambda x: (x, x.t())),
    "layer_norm": (ops.layer_norm, torch.layer_norm, lambda x: (x, [x.shape[1]], None, x[0])),
    "topk": (ops.topk, torch.topk, lambda x: (x, 2, 1)),
    "max": (ops.max, torch.max, lambda x: (x, 1)),
    "stack": (ops.stack, torch.stack, lambda x: ([x, x * 2],)),
    "pad": (ops.constant_pad_nd, torch.constant_pad_nd, lambda x: (x, [1, 2], 0.1)),
    "roll": (ops.roll, torch.roll, lambda x: (x, [1], [1])),
}
cases = pytest.mark.parametrize("name", CASES)


def results(found):
    return list(found) if isinstance(found, (tuple, list)) else [found]


def floats(found):
    return [one for one in results(found) if one.is_floating_point()]


@cases
def test_values_and_gradients_are_those_of_pytorch(name):
    own, expected, arguments = CASES[name]
    x = example(4, 5, dtype=torch.float64).requires_grad_()
    found, wanted = own(*arguments(x)), expected(*arguments(x))
    for one, other in zip(results(found), results(wanted), strict=True):
        assert one.dtype == other.dtype and torch.allclose(one, other)
    gradient, other = (torch.autograd.grad(sum(one.pow(2).sum() for one in floats(some)), x)[0] for some in (found, wanted))
    assert torch.allclose(gradient, other)


@cases
def test_derivatives_of_both_orders_are_those_of_differences(name):
    own, _, arguments = CASES[name]
    x = example(3, 4, dtype=torch.float64).requires_grad_()

    def function(x):
        return tuple(floats(own(*arguments(x))))

    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


@cases
def test_pytorch_accepts_the_registration(name):
    own, _, arguments = CASES[name]
    given = arguments(example(3, 4).requires_grad_())
    overload = next(getattr(own, one) for one in own.overloads() if accepts(getattr(own, one), given))
    found = torch.library.opcheck(overload, given)
    assert set(found.values()) == {"SUCCESS"}


def accepts(overload, given):
    try:
        overload(*given)
    except Exception:
        return False
    return True


@cases
def test_compiled_programs_have_no_breaks_and_are_for_all_sizes(name):
    own, _, arguments = CASES[name]
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: own(*arguments(x)), fullgraph=True, backend=counter, dynamic=True)
    for rows in (3, 5, 7):
        x = example(rows, 4).requires_grad_()
        for one, other in zip(results(compiled(x)), results(own(*arguments(x))), strict=True):
            assert torch.equal(one, other)
    if name != "list result":
        assert counter.frame_count == 1


def test_the_default_compiler_has_one_program_of_all_operators():
    def program(x):
        return [one for own, _, arguments in CASES.values() for one in results(own(*arguments(x)))]

    torch._dynamo.reset()
    compiled = torch.compile(program, fullgraph=True, dynamic=True)
    for rows in (3, 5):
        x = example(rows, 4).requires_grad_()
        found, wanted = compiled(x), program(x)
        torch.testing.assert_close(found, wanted)
        slopes = [torch.autograd.grad(sum(one.pow(2).sum() for one in floats(some)), x)[0] for some in (found, wanted)]
        torch.testing.assert_close(*slopes)


def test_a_result_that_is_no_number_has_no_gradient():
    x = example(3, 4).requires_grad_()
    found = ops.gt(x, x[0])
    assert torch.equal(found, x > x[0]) and not found.requires_grad


EMPTY = {
    "one result": (ops.gelu, torch.nn.functional.gelu),
    "several results": (lambda x: ops.sort(x, 0), lambda x: torch.sort(x, 0)),
    "list": (lambda x: ops.cat([x, x]), lambda x: torch.cat([x, x])),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_batch_without_items(name):
    own, expected = EMPTY[name]

    def same(transform):
        for one, other in zip(results(transform(own)), results(transform(expected)), strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype

    same(lambda function: torch.func.vmap(function)(torch.ones(0, 3)))
    same(lambda function: torch.func.vmap(function, in_dims=1)(torch.ones(3, 0)))
    same(lambda function: torch.func.vmap(torch.func.vmap(function))(torch.ones(2, 0, 3)))
    same(lambda function: torch.func.vmap(torch.func.grad(lambda x: results(function(x))[0].sum()))(torch.ones(0, 3)))


def test_an_exported_program_has_formulas_as_sizes():
    class Module(torch.nn.Module):
        def forward(self, x):
            return ops.softmax(ops.gelu(x), 1), ops.cat([x, x], 0), ops.heat_step(x)

    program = torch.export.export(Module(), (example(3, 4),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    assert [tuple(one.shape) for one in program.module()(example(7, 4))] == [(7, 4), (14, 4), (7, 4)]


@pytest.mark.parametrize("name", ["cpp", "rust", "expression", "composition", "stock composition"])
def test_transforms(name):
    own, expected, arguments = CASES[name]
    x, batch = example(3, 4), example(2, 3, 4, seed=1)

    def squares(function):
        return lambda x: function(*arguments(x)).pow(2).sum()

    for transform in (torch.func.grad, lambda f: torch.func.vjp(f, x)[1], torch.func.jacrev):
        given = torch.tensor(1.0) if transform not in (torch.func.grad, torch.func.jacrev) else x
        found, wanted = (transform(squares(function))(given) for function in (own, expected))
        found, wanted = results(found)[0], results(wanted)[0]
        assert torch.allclose(found, wanted, atol=1e-5)
    both = [torch.func.vmap(torch.func.grad(squares(function)))(batch) for function in (own, expected)]
    assert torch.allclose(*both, atol=1e-5)


@cases
def test_forward_mode(name):
    own, expected, arguments = CASES[name]
    x, tangent = example(3, 4, dtype=torch.float64), example(3, 4, dtype=torch.float64, seed=1)

    def forward(function):
        return lambda x: tuple(floats(function(*arguments(x))))

    found, wanted = (torch.func.jvp(forward(function), (x,), (tangent,)) for function in (own, expected))
    for one, other in zip([*found[0], *found[1]], [*wanted[0], *wanted[1]], strict=True):
        assert torch.allclose(one, other)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, tangent)
        for one, other in zip(forward(own)(dual), wanted[1], strict=True):
            assert torch.allclose(torch.autograd.forward_ad.unpack_dual(one).tangent, other)


def test_jacobians_of_forward_mode():
    x = example(3, dtype=torch.float64)
    wanted = torch.func.jacfwd(torch.nn.functional.gelu)(x)
    assert torch.allclose(torch.func.jacfwd(ops.gelu)(x), wanted)
    assert torch.autograd.gradcheck(ops.gelu, (x.requires_grad_(),), check_forward_ad=True)


def test_derivatives_beyond_the_second_are_refused():
    x = example(3)

    def tangent(x):
        return torch.func.jvp(ops.gelu, (x,), (torch.ones(3),))[1]

    with pytest.raises(NotImplementedError, match="no derivative in forward mode"):
        torch.func.jvp(torch.func.grad(lambda x: ops.gelu(x).sum()), (x,), (x,))
    with pytest.raises(NotImplementedError, match="second order in forward mode"):
        torch.func.jvp(tangent, (x,), (x,))
    with pytest.raises(NotImplementedError, match="first and second order alone"):
        torch.func.grad(lambda x: tangent(x).sum())(x)
    leaf = x.requires_grad_()
    (first,) = torch.autograd.grad(ops.gelu(leaf).sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), leaf, create_graph=True)
    with pytest.raises(NotImplementedError, match="first and second order alone"):
        torch.autograd.grad(second.sum(), leaf)


@pytest.mark.parametrize(
    "own, expected, rest",
    [
        (ops.gelu_, lambda x: torch.nn.functional.gelu(x), ()),
        (ops.gaussian_, lambda x: torch.exp(-x * x / 2), ()),
        (ops.add_, torch.add, (torch.arange(4.0),)),
    ],
    ids=["gelu", "gaussian", "add"],
)
class TestInPlace:
    def test_values_and_versions(self, own, expected, rest):
        x = example(3, 4)
        other, version = x.clone(), x._version
        assert own(x, *rest) is x and torch.allclose(x, expected(other, *rest)) and x._version == version + 1
        strided = example(4, 3).t()
        other = strided.clone()
        own(strided, *rest)
        assert torch.allclose(strided, expected(other, *rest)) and strided.stride() == (1, 3)
        with torch.inference_mode():
            version = x._version
            own(x, *rest)
        assert x._version == version + 1

    def test_gradients(self, own, expected, rest):
        x = example(3, 4).requires_grad_()
        doubled = x * 2
        assert own(doubled, *rest) is doubled
        (found,) = torch.autograd.grad(doubled.pow(2).sum(), x)
        (wanted,) = torch.autograd.grad(expected(x * 2, *rest).pow(2).sum(), x)
        assert torch.allclose(found, wanted, atol=1e-6)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
            own(x, *rest)
        with torch.no_grad():
            own(x, *rest)
        base = (x * 2).exp()  # its gradient reads the result
        own(base, *rest)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            base.sum().backward()

    def test_views_of_recorded_tensors(self, own, expected, rest):
        x = example(3, 4).requires_grad_()
        whole, other = x * 2, x * 2
        own(whole[1], *rest)
        wanted = torch.stack([other[0], expected(other[1], *rest), other[2]])
        assert torch.allclose(whole, wanted, atol=1e-6)
        found = [torch.autograd.grad(one.pow(2).sum(), x)[0] for one in (whole, wanted)]
        assert torch.allclose(*found, atol=1e-6)

    def test_forward_mode(self, own, expected, rest):
        x, tangent = example(3, 4), example(3, 4, seed=1)
        found = torch.func.jvp(lambda x: own(x * 1, *rest), (x,), (tangent,))
        wanted = torch.func.jvp(lambda x: expected(x, *rest), (x,), (tangent,))
        assert torch.allclose(found[0], wanted[0]) and torch.allclose(found[1], wanted[1])

    def test_transforms(self, own, expected, rest):
        x = example(2, 3, 4)
        found = torch.func.grad(lambda x: own(x * 1, *rest).pow(2).sum())(x)
        assert torch.allclose(found, torch.func.grad(lambda x: expected(x, *rest).pow(2).sum())(x), atol=1e-6)
        assert torch.allclose(torch.func.vmap(lambda x: own(x * 1, *rest))(x), expected(x, *rest))

    def test_registration_and_compiled_programs(self, own, expected, rest):
        overload = getattr(own, own.overloads()[0])
        for given in (example(3, 4), example(3, 4).requires_grad_() * 1):
            assert set(torch.library.opcheck(overload, (given.detach().clone(), *rest)).values()) == {"SUCCESS"}
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: own(x * 2, *rest) + 1, fullgraph=True, dynamic=True)
        for rows in (3, 5):
            x = example(rows, 4).requires_grad_()
            found, wanted = compiled(x), expected(x * 2, *rest) + 1
            assert torch.allclose(found, wanted)
            assert torch.allclose(*(torch.autograd.grad(one.pow(2).sum(), x)[0] for one in (found, wanted)), atol=1e-6)
        mutated = torch.compile(lambda x: own(x, *rest), fullgraph=True)
        x = example(3, 4)
        other = x.clone()
        mutated(x)
        assert torch.allclose(x, expected(other, *rest))


OUTS = pytest.mark.parametrize(
    "own, expected, arguments",
    [
        (ops.gelu.out, torch.nn.functional.gelu, lambda x: (x,)),
        (ops.add.out, torch.add, lambda x: (x, x[0])),
        (ops.cat.out, torch.cat, lambda x: ([x, x],)),
    ],
    ids=["gelu", "add", "cat"],
)


@OUTS
def test_out(own, expected, arguments):
    x = example(3, 4)
    wanted = expected(*arguments(x))
    for out in (torch.empty(0), torch.empty_like(wanted), torch.empty(wanted.t().shape).t()):
        version = out._version
        assert own(*arguments(x), out=out) is out
        assert torch.allclose(out, wanted) and out._version > version
    double = torch.empty(wanted.shape, dtype=torch.float64)
    assert torch.allclose(own(*arguments(x), out=double).float(), wanted)
    with pytest.raises(TypeError, match="cannot have"):
        own(*arguments(x), out=torch.empty(0, dtype=torch.int64))
    with pytest.raises(TypeError, match="an argument `_form` that no call gives"):
        own(*arguments(x), out=torch.empty(0), _form=True)
    aliased = x.clone()
    if wanted.shape == x.shape:
        assert torch.allclose(own(*arguments(aliased), out=aliased), wanted)


@OUTS
def test_out_has_no_derivative(own, expected, arguments):
    x = example(3, 4).requires_grad_()
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        own(*arguments(x), out=torch.empty(0))
    with torch.no_grad():
        own(*arguments(x), out=torch.empty(0))


@OUTS
def test_registration_of_out(own, expected, arguments):
    x = example(3, 4)
    out = torch.empty_like(expected(*arguments(x)))
    assert set(torch.library.opcheck(own, arguments(x), {"out": out}).values()) == {"SUCCESS"}
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, out: own(*arguments(x), out=out), fullgraph=True)
    compiled(x, out)
    assert torch.allclose(out, expected(*arguments(x)))


def test_mistakes_of_forms_that_write():
    with pytest.raises(ValueError, match="writes into a tensor of"):
        ops.add_(torch.zeros(3), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="writes into a tensor of"):
        ops.add_(torch.zeros(3, device="meta"), torch.zeros(2, 3, device="meta"))
    with pytest.raises(TypeError, match="cannot have"):
        ops.add_(torch.zeros(3, dtype=torch.int64), torch.zeros(3))
    with pytest.raises(RuntimeError, match="single memory location"):
        ops.gelu_(torch.zeros(1).expand(3))


def test_large_results_of_compositions_are_handed_over():
    x = example(300, 300)
    found = ops.heat_step(x)
    assert torch.allclose(found, x + 0.1 * laplacian(x), atol=1e-5) and found.is_contiguous()
    found.add_(1)


def test_strided_and_empty_arguments():
    x = example(4, 6)[::2, 1:].t()
    assert torch.equal(ops.gelu(x), ops.gelu(x.contiguous()))
    assert ops.gelu(torch.zeros(0, 3)).shape == (0, 3)
    with torch.no_grad():
        assert not ops.gelu(example(2).requires_grad_()).requires_grad


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: ops.laplacian(x[0]), ValueError, "self.dim() == 2"),
        (lambda x: ops.transpose_copy(x, [0, 7]), IndexError, "dimension 7 is out of range"),
        (lambda x: ops.add(x, torch.zeros(7)), ValueError, "do not broadcast"),
        (lambda x: ops.gaussian(x, width=-1.0), ValueError, "width > 0.0"),
        (lambda x: ops.laplacian(x.long()), NotImplementedError, "int64"),
        (lambda x: ops.gelu(x.to_sparse()), NotImplementedError, "SparseCPU"),
    ],
)
def test_mistakes_are_exceptions_of_pythons_classes(call, kind, text):
    with pytest.raises(kind) as error:
        call(example(3, 4))
    assert text in str(error.value)


def test_several_threads_call_at_once():
    import threading

    failures = []

    def work(seed):
        x = example(20, 20, seed=seed).requires_grad_()
        for _ in range(100):
            found = ops.heat_step(ops.gelu(x))
            found.sum().backward()
            try:
                ops.laplacian(x[0])
            except ValueError as error:
                if "self.dim() == 2" not in str(error):
                    failures.append(error)
        if not torch.allclose(found, torch.nn.functional.gelu(x) + 0.1 * laplacian(torch.nn.functional.gelu(x)), atol=1e-5):
            failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_several_results_are_written_into_given_tensors():
    x = torch.randn(3, 4)
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    found = ops.sort.values(x, 1, values=values, indices=indices)
    assert found[0] is values and found[1] is indices and values._version > 0
    torch.testing.assert_close((values, indices), tuple(torch.sort(x, 1)))
    given = {"values": torch.empty(3, 4), "indices": torch.empty(3, 4, dtype=torch.int64)}
    assert set(torch.library.opcheck(ops.sort.values, (x, 1), given).values()) == {"SUCCESS"}
    with pytest.raises(TypeError, match="which a tensor of Int cannot have"):
        ops.sort.values(x, 1, values=torch.empty(0, dtype=torch.int32), indices=indices)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        ops.sort.values(x.requires_grad_(), 1, values=values, indices=indices)


def test_lists_are_written_in_place():
    x, y = torch.randn(2, 3, requires_grad=True), torch.randn(4)
    a, b = x * 1, y.clone()
    assert ops._foreach_mul_.Scalar([a, b], 3.0) is None and a._version == 1 and b._version == 1
    torch.testing.assert_close((a, b), (x * 3, y * 3))
    a.sum().backward()
    assert (x.grad == 3).all()
    assert set(torch.library.opcheck(ops._foreach_mul_.Scalar, ([y, y * 2], 2.0)).values()) == {"SUCCESS"}

"""Operators of a folder that ``opsmith bridge torch`` made: the package ``opsmith_example_custom_op_torch`` of the example crate with some
stock operators. ``scripts/bridges.sh`` builds it and runs this; without it, the tests are skipped."""

import pytest

torch = pytest.importorskip("torch")
package = pytest.importorskip("opsmith_example_custom_op_torch")

ops = package.ops


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


def test_forward_mode_is_refused():
    with pytest.raises(NotImplementedError, match="forward mode"):
        torch.func.jvp(ops.gelu, (example(2),), (example(2),))


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

"""Differentiation: backward, grad, derivatives of functions, modes, hooks, functions with a backward of their own."""

import gc
import sys
import threading
import time
import weakref

import pytest

import opsmith


def leaf(*values, dtype="float32"):
    return opsmith.tensor(values, dtype=dtype).requires_grad_()


def test_backward_adds_to_leaves():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (a * b).sum().backward()
    assert a.grad.tolist() == [3, 4] and b.grad.tolist() == [1, 2]
    (a * a).sum().backward()
    assert a.grad.tolist() == [5, 8]
    a.grad = None
    b.zero_grad()
    assert a.grad is None and b.grad is None
    assert a.is_leaf and not (a * b).is_leaf and "mul" in (a * b).grad_fn


def test_backward_from_given_gradients():
    a = leaf(1.0, 2.0)
    y = a * 3
    y.backward(opsmith.tensor([1.0, 10.0]), retain_graph=True)
    assert a.grad.tolist() == [3, 30]
    opsmith.backward([y], [opsmith.tensor([1.0, 1.0])])
    assert a.grad.tolist() == [6, 33]
    with pytest.raises(opsmith.AutogradError):
        (a * 2).backward()


def test_grad_of_any_tensor():
    x = leaf(2.0)
    y = x**3
    (first,) = opsmith.grad(y, x, create_graph=True)
    (second,) = opsmith.grad(first, [x])
    assert first.tolist() == [12] and second.tolist() == [12] and x.grad is None
    other = leaf(1.0)
    assert opsmith.grad((x * 2).sum(), [x, other])[1] is None


def test_derivatives_of_functions():
    x, v = opsmith.tensor([1.0, 2.0]), opsmith.tensor([1.0, 0.5])
    value, tangent = opsmith.jvp(lambda x: x * x, x, v)
    assert value.tolist() == [1, 4] and tangent.tolist() == [2, 2]
    value, gradient = opsmith.vjp(lambda x: x * x, x, v)
    assert gradient.tolist() == [2, 2]
    # Nobody else has the graph of a transform, so its results are plain tensors.
    for result in (value, tangent, gradient, opsmith.jacobian(lambda x: x * x, x)):
        assert not result.requires_grad and result.numpy().dtype == "float32"
    values, gradients = opsmith.vjp(lambda a, b: (a * b, a), (x, v), (v, v))
    assert len(values) == len(gradients) == 2
    assert opsmith.jacobian(lambda x: x * x, x).tolist() == [[2, 0], [0, 4]]
    assert opsmith.hessian(lambda x: (x**3).sum(), x).tolist() == [[6, 0], [0, 12]]
    assert opsmith.hvp(lambda x: (x**3).sum(), x, v).tolist() == [6, 6]


def test_modes():
    x = leaf(1.0)
    with opsmith.no_grad():
        assert not opsmith.is_grad_enabled() and not (x * 2).requires_grad
        with opsmith.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad

    @opsmith.no_grad()
    def run():
        """Words."""
        return x * 2

    assert not run().requires_grad and run.__doc__ == "Words."
    with pytest.raises(RuntimeError, match="stop"):
        with opsmith.no_grad():
            raise RuntimeError("stop")
    assert opsmith.is_grad_enabled()
    mode = opsmith.no_grad()
    with mode, mode:
        pass
    assert opsmith.is_grad_enabled()


def test_hooks():
    x, seen = leaf(1.0, 2.0), []
    handle = x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    x.register_hook(lambda gradient: gradient * 2)
    (x * 3).sum().backward()
    assert seen == [[3, 3]] and x.grad.tolist() == [6, 6]
    handle.remove()
    y = x * 1
    y.retain_grad()
    y.sum().backward()
    assert len(seen) == 1 and y.grad.tolist() == [1, 1]


def test_an_exception_of_a_hook_comes_out_unchanged():
    class Own(Exception):
        pass

    def fail(gradient):
        raise Own("mine")

    x = leaf(1.0)
    x.register_hook(fail)
    with pytest.raises(Own, match="mine"):
        (x * 2).sum().backward()
    with pytest.raises(Own):
        opsmith.jvp(fail, x.detach(), x.detach())
    with pytest.raises(opsmith.ShapeError):
        opsmith.add(opsmith.ones([2]), opsmith.ones([3]))
    x.register_hook(lambda gradient: "text")
    with pytest.raises((TypeError, Own)):
        (x * 2).sum().backward()


class Scaled(opsmith.Function):
    @staticmethod
    def forward(context, x, factor, y):
        context.save_for_backward(x, y)
        context.factor = factor
        return x * y * factor, x + y

    @staticmethod
    def backward(context, first, second):
        x, y = context.saved_tensors
        assert context.needs_input_grad == (True, False, True)
        return first * y * context.factor + second, None, first * x * context.factor + second


def test_a_function_with_its_own_backward():
    x, y = leaf(2.0), leaf(5.0)
    product, total = Scaled.apply(x, 3, y)
    assert product.tolist() == [30] and total.tolist() == [7] and product.requires_grad
    (product + 2 * total).sum().backward()
    assert x.grad.tolist() == [17] and y.grad.tolist() == [8]
    with opsmith.no_grad():
        assert not Scaled.apply(x, 3, y)[0].requires_grad


def test_a_function_whose_backward_is_wrong():
    class Wrong(opsmith.Function):
        @staticmethod
        def forward(context, x, y):
            return x + y

        @staticmethod
        def backward(context, gradient):
            return gradient

    with pytest.raises(ValueError, match="returned 1 gradients for 2 inputs"):
        Wrong.apply(leaf(1.0), leaf(1.0)).sum().backward()
    with pytest.raises(NotImplementedError):
        opsmith.Function.apply(leaf(1.0))


def test_a_function_frees_what_it_saved():
    class Kept(opsmith.Function):
        @staticmethod
        def forward(context, x):
            y = x * 2
            context.save_for_backward(y)
            context.marker = marker
            return y

        @staticmethod
        def backward(context, gradient):
            context.saved_tensors
            return gradient * 2

    class Marker:
        pass

    marker = Marker()
    gone = weakref.ref(marker)
    x = leaf(1.0)
    Kept.apply(x).sum().backward()
    del marker
    gc.collect()
    assert gone() is None and x.grad.tolist() == [2]


def test_checkpoints():
    runs = []

    def function(x):
        runs.append(1)
        return (x * x).exp()

    x = leaf(0.5)
    opsmith.checkpoint(function, x).sum().backward()
    expected = leaf(0.5)
    (expected * expected).exp().sum().backward()
    assert x.grad.tolist() == expected.grad.tolist() and len(runs) == 2


def test_threads_compute_at_the_same_time():
    x, results = opsmith.ones([200, 200]).requires_grad_(), []

    def work():
        y = x.detach().requires_grad_()
        for _ in range(3):
            (y @ y).sum().backward()
        results.append(y.grad[0, 0].item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert results == [1200.0] * 4


def test_other_threads_of_python_run_while_an_operator_does():
    x, ticks, ended = opsmith.ones([1500, 1500]), [], threading.Event()

    def work():
        while not ended.wait(0.001):
            ticks.append(None)

    thread, interval = threading.Thread(target=work), sys.getswitchinterval()
    # Nobody is made to give up the lock: the other thread runs only where this one lets it.
    sys.setswitchinterval(60)
    try:
        thread.start()
        while not ticks:
            time.sleep(0.001)
        before = len(ticks)
        x @ x
        after = len(ticks)
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        thread.join()
    assert after > before


def test_random_numbers_follow_the_seed():
    opsmith.manual_seed(3)
    first = opsmith.randn([4]).tolist()
    opsmith.manual_seed(3)
    assert opsmith.randn([4]).tolist() == first != opsmith.randn([4]).tolist()
    a, b = opsmith.Generator(5), opsmith.Generator(5)
    assert opsmith.rand([3], generator=a).tolist() == opsmith.rand([3], generator=b).tolist()

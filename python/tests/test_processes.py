"""Interruption, copies of the process, threads that end with it, and other interpreters, each in a process of its own."""

import os
import signal
import subprocess
import sys
import time

import pytest

START = "import os, signal, sys, threading\nimport opsmith\n"


def heed_interrupts():
    # A shell starts background jobs with interrupts ignored, and their children, these tests' programs, inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(program):
    command = [sys.executable, "-c", START + program]
    heeding = None if os.name == "nt" else heed_interrupts
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeding)


def finish(process, limit):
    """The end of a program, which is killed at the limit."""
    try:
        out, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, errors


def run(program, limit=120):
    return finish(start(program), limit)


LOOPS = {
    "operators": "x = opsmith.ones([100_000])\nprint('ready', flush=True)\nwhile True: x = x * 1.0",
    "backward": """
x = opsmith.ones([100]).requires_grad_()
y = x
for _ in range(1000): y = y * 1.0
print('ready', flush=True)
while True: y.sum().backward(retain_graph=True)
""",
    "graph": """
@opsmith.graph
def f(x):
    for _ in range(20): x = (x @ x) * 0.01
    return x
x = opsmith.ones([100, 100])
f(x)
print('ready', flush=True)
while True: f(x)
""",
}


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
@pytest.mark.parametrize("loop", LOOPS)
def test_an_interrupt_ends_a_loop(loop):
    process = start(LOOPS[loop])
    assert process.stdout.readline() == "ready\n", process.communicate()
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    code, _, errors = finish(process, 60)
    assert errors.rstrip().endswith("KeyboardInterrupt") and "panic" not in errors, errors
    assert code == -signal.SIGINT and time.monotonic() - sent < 30


# Calls that take seconds on any machine, with a signal soon after their beginning. A function that ran to its end wrote
# that down.
SIGNALED = """
import time
class Alarm(Exception): pass
def alarm(*_): raise Alarm
signal.signal(signal.SIGALRM, alarm)
def lasting(make, steps=50):
    while True:
        call = make(steps)
        begin = time.monotonic()
        call()
        if time.monotonic() - begin > 1: return call
        steps *= 2
def signaled(call):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        call()
    except Alarm: return True
    return False
ended = opsmith.zeros([1])
big = opsmith.ones([600, 600])
def products(steps):
    def f(x, ended):
        for _ in range(steps): x = (x @ x) * 0.001
        ended.add_(x.sum() * 0 + 1)
        return x
    f = opsmith.Graph.trace(f, big, ended)
    return lambda: f(big, ended)
f = lasting(products)
ended.zero_()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_an_interrupt_ends_a_single_graph_call():
    code, out, errors = run(
        SIGNALED
        + """
print(signaled(f), ended.item())
signal.signal(signal.SIGALRM, lambda *_: None)
print(signaled(f), ended.item())
"""
    )
    assert (code, out) == (0, "True 0.0\nFalse 1.0\n"), errors


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_an_interrupt_ends_a_single_backward_pass():
    code, out, errors = run(
        SIGNALED
        + """
x = opsmith.ones([1_000_000]).requires_grad_()
def chain(steps):
    y = x
    for _ in range(steps): y = y * 1.0
    y = y.sum()
    return lambda: y.backward(retain_graph=True)
backward = lasting(chain)
x.grad = None
print(signaled(backward), x.grad)
backward()
print(x.grad[0].item())
"""
    )
    assert (code, out) == (0, "True None\n1.0\n"), errors


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_a_thread_that_waits_for_a_tensor_lets_others_ask_for_signals():
    code, out, errors = run(
        SIGNALED
        + """
def wait():
    time.sleep(0.1)
    ended.add_(10)
thread = threading.Thread(target=wait)
thread.start()
print(signaled(f))
thread.join()
print(ended.item())
"""
    )
    assert (code, out) == (0, "True\n10.0\n"), errors


def test_an_interrupt_in_a_hook_comes_out_unchanged():
    code, out, errors = run("""
w = opsmith.tensor([1.0], requires_grad=True)
def hook(gradient): raise KeyboardInterrupt
w.register_hook(hook)
try: (w * 2).sum().backward()
except KeyboardInterrupt: print('interrupted')
class Ends(opsmith.Function):
    @staticmethod
    def forward(context, x): return x * 2
    @staticmethod
    def backward(context, gradient): raise SystemExit(7)
Ends.apply(opsmith.tensor([1.0], requires_grad=True)).backward()
""")
    assert out == "interrupted\n" and code == 7, errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_copy_of_the_process_computes_while_other_threads_do():
    code, out, errors = run("""
stop = False
def work():
    x = opsmith.ones([300_000])
    while not stop: (x * 1.0).sum()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
bad = 0
for _ in range(40):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        x = opsmith.ones([300_000]).requires_grad_()
        (x * x).sum().backward()
        y = opsmith.ones([64, 64])
        os._exit(0 if x.grad.sum().item() == 600_000 and (y @ y).sum().item() == 64**3 else 3)
    bad += os.waitpid(child, 0)[1] != 0
stop = True
for thread in threads: thread.join()
print('bad', bad)
""")
    assert code == 0 and out == "bad 0\n", (out, errors)


def test_threads_that_run_when_the_program_ends():
    code, out, errors = run("""
def work():
    while True: (opsmith.ones([100_000]) * 2).sum()
for _ in range(4): threading.Thread(target=work, daemon=True).start()
print('end')
""")
    assert code == 0 and out == "end\n" and not errors, errors


def test_another_interpreter_is_refused():
    code, out, errors = run("""
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
found = None
try: found = interpreters.run_string(interpreters.create(), 'import opsmith')
except Exception as error: found = error
assert 'ImportError' in str(getattr(found, 'formatted', found)), found
print(opsmith.ones([2]).tolist())
""")
    assert code == 0 and out == "[1.0, 1.0]\n", errors

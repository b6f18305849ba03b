#!/usr/bin/env python3
"""The cases `dev.*` of `opsmith-bench --device cuda` in PyTorch: a line of JSON each, for compare.py."""

import json
import statistics
import sys
import time

import torch

LARGE, ROWS = 1 << 26, (16384, 4096)
REPETITION, REPETITIONS = 4e-3, 20


def timed(name, call):
    call()
    torch.cuda.synchronize()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        elapsed = time.perf_counter() - start
        if elapsed >= REPETITION / 2:
            break
        count *= 2
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / count * 1e9)
    row = {"lib": "torch", "run": "r1", "case": f"dev.{name}", "threads": 1}
    row |= {"median_ns": round(statistics.median(times), 2), "min_ns": round(min(times), 2), "reps": REPETITIONS, "inner": count}
    print(json.dumps(row), flush=True)


def main():
    if not torch.cuda.is_available():
        sys.exit("PyTorch has no device here")
    functional = torch.nn.functional
    with torch.no_grad():
        one, other, out = (torch.ones(1, device="cuda") for _ in range(3))
        timed("add1", lambda: torch.add(one, other))
        timed("add1.out", lambda: torch.add(one, other, out=out))
        a, b = (torch.randn(LARGE, device="cuda") for _ in range(2))
        timed("copy", a.clone)
        timed("add", lambda: a + b)
        timed("mul_scalar", lambda: a * 2.0)
        timed("exp", a.exp)
        timed("tanh", a.tanh)
        timed("gelu", lambda: functional.gelu(a))
        square = a.reshape(8192, 8192)
        timed("transposed_copy", lambda: square.t().contiguous())
        row = square[0]
        timed("add_row", lambda: square + row)
        a, weight = torch.randn(ROWS, device="cuda"), torch.ones(ROWS[1], device="cuda")
        timed("sum_all", a.sum)
        timed("sum_last", lambda: a.sum(-1))
        timed("sum_first", lambda: a.sum(0))
        timed("argmax_last", lambda: a.argmax(-1))
        timed("softmax", lambda: a.softmax(-1))
        timed("layer_norm", lambda: functional.layer_norm(a, (ROWS[1],), weight, weight))
        for size in (1024, 4096):
            a = torch.randn(size, size, device="cuda")
            timed(f"mm_{size}", lambda a=a: a @ a)


if __name__ == "__main__":
    main()

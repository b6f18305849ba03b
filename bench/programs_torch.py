"""Times exported programs: ours by `opsmith-run --bench`, PyTorch's eager, compiled and packaged by AOTInductor.

    OPSMITH_NUM_THREADS=1 python bench/programs_torch.py FOLDER [NAME ...] --run target/release/opsmith-run

FOLDER has NAME.pt2 and NAME.npz with the inputs `case0.in0`, `case0.in1` and so on. Each program runs with these inputs
and with the first element of their first dimension (batch 1), in one thread. Every side is timed in a process of its own,
one after the other; ours and eager twice, of which the smaller median counts. Prints a line of JSON for each.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

KINDS = ("eager", "compiled", "packaged")


def seconds(call, budget=1.0):
    """The median time of a call, of at least 20 runs after a second of them."""
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        call()
    times = []
    end = time.perf_counter() + budget
    while len(times) < 20 or time.perf_counter() < end and len(times) < 5000:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def torch_side(program, arrays, kind):
    """Prints PyTorch's median for a program, in this process."""
    import torch

    torch.set_num_threads(1)
    exported = torch.export.load(program)
    inputs = [torch.from_numpy(array) for array in np.load(arrays).values()]
    with torch.no_grad():
        if kind == "packaged":
            folder = tempfile.mkdtemp()
            package = torch._inductor.aoti_compile_and_package(
                exported, package_path=os.path.join(folder, "model.pt2")
            )
            run = torch._inductor.aoti_load_package(package)
        else:
            run = exported.module()
            if kind == "compiled":
                run = torch.compile(run, dynamic=False)
        print(seconds(lambda: run(*inputs)))


def ours(binary, program, arrays, runs):
    """Our median for a program."""
    names = [name for name in np.load(arrays).files]
    inputs = [f"{position}=@{arrays}:{name}" for position, name in enumerate(names)]
    command = [binary, str(program)]
    for text in inputs:
        command += ["--input", text]
    done = subprocess.run(command + ["--bench", str(runs)], capture_output=True, text=True)
    found = re.search(r"median ([0-9.]+) (us|ms)", done.stdout)
    if not found:
        raise RuntimeError(done.stderr.strip() or done.stdout)
    return float(found.group(1)) * {"us": 1e-6, "ms": 1e-3}[found.group(2)]


def measure(function, times=2):
    """The smallest of some medians, or the reason why there is none."""
    try:
        return min(function() for _ in range(times))
    except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
        return str(error).strip().splitlines()[-1][:200]


def torch_median(program, arrays, kind):
    done = subprocess.run(
        [sys.executable, __file__, "--side", kind, str(program), str(arrays)],
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[-1])


def main():
    if sys.argv[1:2] == ["--side"]:
        torch_side(sys.argv[3], sys.argv[4], sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--run", default="target/release/opsmith-run")
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    os.environ.setdefault("OPSMITH_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = options.names or sorted(
        path.stem for path in options.folder.glob("*.pt2") if not path.stem.endswith(".decomposed")
    )
    for name in names:
        program = options.folder / f"{name}.pt2"
        recorded = np.load(options.folder / f"{name}.npz")
        case = {key.split(".")[1]: recorded[key] for key in recorded.files if key.startswith("case0.in")}
        for batch in ("recorded", "1"):
            inputs = case if batch == "recorded" else {key: array[:1] for key, array in case.items()}
            with tempfile.NamedTemporaryFile(suffix=".npz") as file:
                np.savez(file, **inputs)
                file.flush()
                line = {"program": name, "batch": batch}
                first = measure(lambda: ours(options.run, program, file.name, 50))
                runs = 50 if isinstance(first, str) else int(min(2000, max(20, 1.0 / first)))
                line["ours"] = measure(lambda: ours(options.run, program, file.name, runs))
                for kind in options.kinds.split(","):
                    line[kind] = measure(lambda: torch_median(program, file.name, kind), 2 if kind == "eager" else 1)
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

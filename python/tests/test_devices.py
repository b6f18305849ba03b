"""Devices of CUDA, which the module has on every machine: without a driver, they are an error that says so."""

import os
import subprocess
import sys

PROGRAM = """
import opsmith
try:
    opsmith.tensor([1.0]).to("cuda")
except opsmith.DeviceError as error:
    print(error)
"""


def test_a_missing_driver_is_named(tmp_path):
    for library in ("libcuda.so", "libcuda.so.1"):
        (tmp_path / library).write_text("no library")
    variables = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert "no CUDA driver was found" in run.stdout and "help: install NVIDIA's driver" in run.stdout, run.stdout + run.stderr

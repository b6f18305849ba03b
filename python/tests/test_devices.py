"""Devices of CUDA, which the module has on every machine: without a driver, they are an error that says so. With the folder of
the stand-ins for driver and compiler in OPSMITH_STAND_IN (`tests/cuda`), tensors on devices are exchanged with others."""

import os
import pathlib
import subprocess
import sys

import pytest

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


EXCHANGE = """
import gc, opsmith

class Other:
    # An array of another library, which knows one of the names.
    def __init__(self, tensor):
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.tensor.__dlpack__(stream=stream)

x = opsmith.tensor([1.0, 2.0, 3.0]).to("cuda")
y = opsmith.from_dlpack(x)
assert y.device == x.device and y.data_ptr() == x.data_ptr()
y.add_(1)
assert x.tolist() == [2.0, 3.0, 4.0]

other = Other(x)
z = opsmith.from_dlpack(other)
assert z.data_ptr() == x.data_ptr() and isinstance(other.streams[0], int) and other.streams[0] != 0
assert opsmith.from_dlpack(other, copy=True).data_ptr() != x.data_ptr()
address = x.data_ptr()
del x, y, other
gc.collect()
assert z.data_ptr() == address and (z * 2).tolist() == [4.0, 6.0, 8.0]
assert opsmith.asarray(z[1:]).tolist() == [3.0, 4.0]
print("exchanged")
"""


PINNED = '''
import opsmith

host = opsmith.tensor([1.0, 2.0, 3.0]).pin_memory()
assert host.is_pinned() and host.pin_memory() is host and not opsmith.tensor([1.0]).is_pinned()
for round in range(5):
    expected = host.tolist()
    there = host.to("cuda", non_blocking=True)
    host.add_(1)
    assert there.tolist() == expected and host.tolist() != expected
# NumPy, or another reader of the memory, writes without the library's knowledge.
view = memoryview(host)
there = host.to("cuda")
view[0] = 50.0
assert there.tolist()[0] != 50.0 and host.tolist()[0] == 50.0
leaf = opsmith.tensor([1.0], requires_grad=True)
(leaf.pin_memory().to("cuda") * 3).sum().backward()
assert leaf.grad.tolist() == [3.0]
try:
    there.pin_memory()
except opsmith.DeviceError as error:
    print("refused:", error)
'''


STANDS_IN = pytest.mark.skipif(
    "OPSMITH_STAND_IN" not in os.environ, reason="OPSMITH_STAND_IN names no folder with the stand-ins for CUDA"
)


def run_on_stand_ins(folder, *command):
    variables = {
        **os.environ,
        "LD_LIBRARY_PATH": os.environ["OPSMITH_STAND_IN"],
        "OPSMITH_CACHE_DIR": str(folder / "cache"),
        "OPSMITH_CUDA_LIBRARIES": "off",
    }
    variables.pop("OPSMITH_NVRTC", None)
    run = subprocess.run([sys.executable, *command], env=variables, cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@STANDS_IN
def test_tensors_on_devices_are_exchanged_without_a_copy(tmp_path):
    assert "exchanged" in run_on_stand_ins(tmp_path, "-c", EXCHANGE)


@STANDS_IN
def test_pinned_tensors_are_read_before_they_change(tmp_path):
    assert "refused: " in run_on_stand_ins(tmp_path, "-c", PINNED)


@STANDS_IN
def test_a_foreign_function_of_xla_runs_in_the_programs_stream(tmp_path):
    program = pathlib.Path(__file__).with_name("xla_frames.py")
    assert "the package's handler ran in the program's stream" in run_on_stand_ins(tmp_path, str(program), "package")


@STANDS_IN
def test_work_on_tensors_of_another_library_is_in_its_current_stream(tmp_path):
    program = pathlib.Path(__file__).with_name("foreign_streams.py")
    assert "in the other library's stream" in run_on_stand_ins(tmp_path, str(program))

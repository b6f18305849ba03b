"""Operators as functions of tvm-ffi, and its functions on tensors of opsmith."""

import numpy as np
import pytest

tvm_ffi = pytest.importorskip("tvm_ffi", reason="tvm-ffi is not installed")

import guide  # noqa: E402
import opsmith  # noqa: E402
import opsmith.tvm_ffi as bridge  # noqa: E402
from opsmith._signature import MISSING, chosen  # noqa: E402

REFUSED = bridge.unsupported()
PLAIN = ("Tensor", "Tensors", "OptionalTensors", "Bool", "Int", "Float", "Scalar", "Str", "Ints", "Floats", "Bools")


def same(found, expected):
    found, expected = (np.asarray(one.detach().contiguous()) for one in (opsmith.from_dlpack(found), expected))
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


def foreign(value):
    if isinstance(value, opsmith.Tensor):
        return tvm_ffi.from_dlpack(value.detach())
    return [foreign(item) for item in value] if isinstance(value, (list, tuple)) else value


def test_every_operator():
    ran = 0
    for entry in chosen(opsmith, None):
        if entry.name in REFUSED or any(kind not in PLAIN for _, kind, *_ in entry.arguments):
            continue
        for positional, named in entry.calls():
            values = [value for value in positional]
            if named or MISSING in [value for value in values if value is MISSING]:
                continue
            flat = [item for value in values for item in (value if isinstance(value, (list, tuple)) else [value])]
            tensors = [one for one in flat if isinstance(one, opsmith.Tensor)]
            results = entry.definition(*values)
            results = list(results) if isinstance(results, (tuple, list)) else [results]
            if any("bfloat16" in one.dtype.name or isinstance(one, complex) for one in [*tensors, *results]):
                continue
            if any(isinstance(one, complex) for one in flat):
                continue
            found = tvm_ffi.convert(bridge._packed(entry, opsmith))(*map(foreign, values))
            found = list(found) if isinstance(found, (tvm_ffi.Array, tvm_ffi.List, list)) else [found]
            assert len(found) == len(results), entry.name
            assert all(map(same, found, results)), entry.name
            ran += 1
    assert ran > 300


def test_global_functions():
    assert bridge.register(["add.Tensor"], namespace="own") == ["own.add.Tensor"]
    x = tvm_ffi.from_dlpack(opsmith.tensor([1.0, 2.0]))
    assert same(tvm_ffi.get_global_func("own.add.Tensor")(x, x), opsmith.tensor([2.0, 4.0]))


def test_memory_is_shared():
    x = opsmith.zeros([3])
    seen = []
    function = tvm_ffi.convert(lambda x: seen.append(opsmith.from_dlpack(x).data_ptr()) or x)
    assert bridge.wrap(function)(x).data_ptr() == x.data_ptr() == seen[0]


def test_functions_of_tvm_ffi():
    double = tvm_ffi.convert(lambda x, y: [tvm_ffi.from_dlpack(opsmith.from_dlpack(x) * 2), y])
    found, number = bridge.wrap(double)(opsmith.tensor([1.0, 2.0]), 3)
    assert found.tolist() == [2, 4] and number == 3


def test_mistakes():
    x, y = (tvm_ffi.from_dlpack(opsmith.zeros([size])) for size in (2, 3))
    with pytest.raises(Exception, match="add.Tensor: the shapes"):
        bridge.function("add.Tensor")(x, y)
    with pytest.raises(LookupError, match="add.Tensor"):
        bridge.function("add")
    with pytest.raises(NotImplementedError, match="random"):
        bridge.function("native_dropout")


def test_the_guide(monkeypatch, tmp_path):
    guide.run("tvm-ffi", monkeypatch, tmp_path)

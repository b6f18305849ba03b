"""Recorded calls of PyTorch through Python: ``python parity.py FOLDER`` runs all of them and prints the failing overloads.

In: folders of recorded calls, as `opsmith_tests::parity` reads them. Out: for each overload how many passed, and why others
failed. A call goes through the function of its base name, so that overloads are chosen by the arguments.
"""

from __future__ import annotations

import functools
import json
import math
import pathlib
import sys
from typing import Any

import opsmith

SUMS = (
    "sum mean prod var std norm mm mv dot matmul linear softmax conv cdist pdist pool embedding_bag fft grid_sampler scatter "
    "index_put col2im linalg cholesky inverse det matrix_power"
).split()
UNORDERED = {"sort": (1, 1), "topk": (2, 1), "argsort": (1, 0)}
TOLERANCES = {"float64": (1e-7, 1e-7), "complex128": (1e-7, 1e-7), "float16": (1e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2)}


class Difference(Exception):
    """A result that is not the recorded one."""


def tolerance(dtype: str, sums: bool) -> tuple[float, float]:
    if dtype in ("float32", "complex64"):
        return (1e-4, 1e-4) if sums else (1.3e-6, 1e-5)
    return TOLERANCES.get(dtype, (0.0, 0.0))


class Case:
    """The values of one recorded call."""

    def __init__(self, record: dict[str, Any], stored: dict[str, opsmith.Tensor]) -> None:
        self.record, self.stored = record, stored
        self.inputs: list[opsmith.Tensor] = []

    def tensor(self, value: dict[str, Any]) -> opsmith.Tensor:
        shape, strides = value["shape"], value["strides"]
        given = self.stored[value["tensor"]]
        # Complex numbers are stored as pairs of floats.
        if value["dtype"].startswith("complex") and not given.dtype.is_complex:
            real, imaginary = given.numpy()[..., 0], given.numpy()[..., 1]
            given = opsmith.tensor((real + 1j * imaginary).astype(value["dtype"]))
        given = given.reshape(shape)
        if given.numel() == 0 or strides == list(given.stride()):
            return given.clone().as_strided(shape, strides) if given.numel() == 0 else given.clone()
        extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
        flat = opsmith.zeros([extent], dtype=given.dtype)
        # Elements along a stride of 0 are one.
        once = given[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)]
        try:
            flat.as_strided(list(once.shape), strides).copy_(once)
        except opsmith.AliasingError:
            return given.clone()
        return flat.as_strided(shape, strides)

    def value(self, value: Any, tracked: bool = False) -> Any:
        if isinstance(value, list):
            return [self.value(item, tracked) for item in value]
        if not isinstance(value, dict):
            return value
        if "tensor" in value:
            tensor = self.tensor(value)
            if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
                self.inputs.append(tensor)
                if tracked:
                    tensor.requires_grad_()
            return tensor
        if "float" in value:
            return float(value["float"])
        if "complex" in value:
            return complex(*map(float, value["complex"]))
        if "dtype" in value:
            return opsmith.dtype(value["dtype"])
        return value.get("memory_format") or value["layout"]

    def run(self, name: str) -> None:
        record, tracked = self.record, "grads" in self.record
        args = [self.value(value, tracked) for value in record["args"]]
        named = {name: self.value(value, tracked) for name, value in record["kwargs"].items() if name != "layout"}
        try:
            base = name.split(".")[0]
            function = getattr(opsmith._opsmith, base, None) or functools.partial(opsmith.call, base)
            results = function(*args, **named)
        except (opsmith.Error, ValueError, TypeError, OverflowError) as error:
            if record.get("raises"):
                return
            raise Difference(str(error)) from error
        if record.get("raises"):
            raise Difference(f"an error is expected: {record['raises']}")
        results = list(results) if isinstance(results, tuple) else [results]
        if len(results) != len(record["outputs"]):
            raise Difference(f"{len(record['outputs'])} results expected, {len(results)} given")
        sums = any(part in name for part in SUMS)
        for index, (found, expected) in enumerate(zip(results, record["outputs"])):
            try:
                self.compare(found, expected, sums)
            except Difference as error:
                place = UNORDERED.get(name.split(".")[0])
                if place and place[1] == index:
                    dim = named.get("dim", args[place[0]] if len(args) > place[0] else -1)
                    self.compare(args[0].gather(dim, found), None, sums, args[0].gather(dim, self.tensor(expected)))
                else:
                    raise Difference(f"result {index}, {error}") from None
        if tracked:
            self.backward(record["grads"], results, sums)

    def backward(self, record: dict[str, Any], results: list[Any], sums: bool) -> None:
        outputs = [results[place] for place in record["of_outputs"]]
        starts = [self.tensor(value) for value in record["cotangents"]]
        expected = record["of_float_inputs_in_order"]
        if not all(output.requires_grad for output in outputs):
            if any(value is not None for value in expected):
                raise Difference("a result has no gradient")
            return
        for place, (found, value) in enumerate(zip(opsmith.grad(outputs, self.inputs, starts), expected)):
            if found is None or value is None:
                other = found if value is None else self.tensor(value)
                if other is not None and other.ne(0).any():
                    raise Difference(f"gradient of input {place}: one is absent, the other not zero")
                continue
            try:
                self.compare(found, value, sums)
            except Difference as error:
                raise Difference(f"gradient of input {place}, {error}") from None

    def compare(self, found: Any, value: Any, sums: bool, expected: Any = None) -> None:
        if value is None and expected is None:
            if found is not None and not (isinstance(found, opsmith.Tensor) and found.numel() == 0):
                raise Difference("no result is expected")
            return
        if expected is None:
            expected = self.tensor(value) if isinstance(value, dict) and "tensor" in value else self.value(value)
        if not isinstance(expected, opsmith.Tensor):
            if not accepts(found, expected, (1e-7, 1e-7)):
                raise Difference(f"expected {expected}, got {found}")
            return
        if found.dtype is not expected.dtype or found.shape != expected.shape:
            raise Difference(f"expected {expected.dtype} {expected.shape}, got {found.dtype} {found.shape}")
        limits = tolerance(expected.dtype.name, sums)
        pairs = zip(found.reshape(-1).tolist(), expected.reshape(-1).tolist())
        wrong = [pair for pair in pairs if not accepts(*pair, limits)]
        if wrong:
            raise Difference(f"expected {wrong[0][1]}, got {wrong[0][0]} ({len(wrong)} of {found.numel()} differ)")


def accepts(found: Any, expected: Any, limits: tuple[float, float]) -> bool:
    if found == expected:
        return True
    if isinstance(expected, complex) or isinstance(found, complex):
        found, expected = complex(found), complex(expected)
        nan = [math.isnan(value.real) or math.isnan(value.imag) for value in (found, expected)]
        parts = accepts(found.real, expected.real, limits) and accepts(found.imag, expected.imag, limits)
        return all(nan) or parts or abs(found - expected) <= limits[1] + limits[0] * abs(expected)
    if not isinstance(expected, float) or not isinstance(found, float):
        return False
    return math.isnan(found) and math.isnan(expected) or abs(found - expected) <= limits[1] + limits[0] * abs(expected)


def overload(path: pathlib.Path) -> tuple[int, list[str]]:
    """How many recorded calls of an overload passed, and the reasons of the others."""
    records = json.loads(path.read_text())
    stored = opsmith.load_file(path.with_suffix(".safetensors"))
    passed, reasons = 0, []
    for number, record in enumerate(records):
        try:
            Case(record, stored).run(path.stem)
            passed += 1
        except (Difference, opsmith.Error) as error:
            reasons.append(f"{path.stem} {number}: {error}")
    return passed, reasons


def main() -> None:
    passed, failed = 0, 0
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).glob("*.json")):
            count, reasons = overload(path)
            passed, failed = passed + count, failed + len(reasons)
            if reasons:
                print(f"{path.stem} {count}/{count + len(reasons)}\n  {reasons[0]}")
    print(f"{passed} passed, {failed} failed")


if __name__ == "__main__":
    main()

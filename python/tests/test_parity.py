"""The recorded calls of PyTorch that the project carries, through Python."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import parity  # noqa: E402

FOLDER = pathlib.Path(__file__).parents[2] / "tests/data/parity"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_recorded_calls(path):
    passed, reasons = parity.overload(path)
    assert passed and not reasons, "\n".join(reasons[:5])

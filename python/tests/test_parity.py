"""Recorded calls of PyTorch through Python: those that the project carries, and all of `../shared`."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import parity  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "tests/data/parity"
# The call whose recorded input lay inside a larger storage, of which the recording holds a part: nobody can repeat it.
UNREPEATABLE = "as_strided.default 27: "


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_recorded_calls(path):
    passed, reasons = parity.overload(path)
    assert passed and not reasons, "\n".join(reasons[:5])


@pytest.mark.parametrize("name", ["aten_cases", "aten_cases_more"])
def test_all_recorded_calls(name):
    folder = ROOT.parent / "shared/data" / name
    if not folder.is_dir():
        pytest.skip("../shared/data, which has all recorded calls, is not here")
    passed, reasons = 0, []
    for path in sorted(folder.glob("*.json")):
        count, found = parity.overload(path)
        passed, reasons = passed + count, reasons + found
    assert passed > 2500 and not [reason for reason in reasons if not reason.startswith(UNREPEATABLE)], "\n".join(reasons[:5])

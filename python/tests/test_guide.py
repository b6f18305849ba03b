"""The guide: its blocks run, in their order."""

import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).parents[2] / "docs/python.md"
PROGRAMS = pathlib.Path(__file__).parents[2] / "tests/data/programs"


def test_the_blocks_of_the_guide_run(tmp_path, monkeypatch):
    if not GUIDE.exists():
        pytest.skip("the guide is not here")
    monkeypatch.chdir(tmp_path)
    space = {"__name__": "guide", "PROGRAMS": PROGRAMS}
    text = GUIDE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) > 10
    for block in blocks:
        # Lines of a failure are those of the guide.
        lines = text[: block.start(1)].count("\n")
        exec(compile("\n" * lines + block.group(1), str(GUIDE), "exec"), space)

"""Blocks of the guide to other frameworks, run section by section."""

import pathlib
import re

import pytest

import opsmith

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = ROOT / "docs/frameworks.md"
# The spec with the operator that every section starts with.
SPEC = ROOT / "examples/frameworks/ops.yaml"


def run(section, monkeypatch, folder):
    """Runs the blocks of a section, in their order."""
    if not GUIDE.exists():
        pytest.skip("the guide is not here")
    monkeypatch.chdir(folder)
    text = GUIDE.read_text()
    start = text.index(f"\n## {section}\n")
    end = text.find("\n## ", start + 1)
    space = {"__name__": "guide", "opsmith": opsmith, "KERNELS": str(ROOT / "examples/aot/kernels"), "SPEC": str(SPEC)}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text[start : end if end > 0 else None], re.MULTILINE | re.DOTALL))
    assert blocks
    for block in blocks:
        # Lines of a failure are those of the guide.
        lines = text[: start + block.start(1)].count("\n")
        exec(compile("\n" * lines + block.group(1), str(GUIDE), "exec"), space)

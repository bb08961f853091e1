"""The python of the guide runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .conftest import ROOT


@pytest.mark.weights
def test_the_python_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guides" / "export-and-eject.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, str] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, "export-and-eject", "exec"), names)
    assert (tmp_path / "out" / "hf" / "config.json").is_file()
    assert (tmp_path / "out" / "onnx" / "run.py").is_file()
    assert "class Model" in ast.unparse(ast.parse(names["source"]))


def test_its_table_of_runtimes_is_what_exports_say() -> None:
    from nest.export.onnx.runtimes import OLDEST

    text = (ROOT / "docs" / "guides" / "export-and-eject.md").read_text(encoding="utf-8")
    opsets, runtimes = re.findall(r"^\| (?:opset|ONNX Runtime) \|(.*)\|$", text, re.MULTILINE)
    pairs = zip(opsets.split("|"), runtimes.split("|"), strict=True)
    assert {int(n): runtime.strip() for sets, runtime in pairs for n in sets.split(",")} == OLDEST

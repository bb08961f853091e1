"""The guide's table of runtimes; tests/docs runs its code."""

from __future__ import annotations

import re

from .conftest import ROOT


def test_its_table_of_runtimes_is_what_exports_say() -> None:
    from nest.export.onnx.runtimes import OLDEST

    text = (ROOT / "docs" / "guides" / "export-and-eject.md").read_text(encoding="utf-8")
    opsets, runtimes = re.findall(r"^\| (?:opset|ONNX Runtime) \|(.*)\|$", text, re.MULTILINE)
    pairs = zip(opsets.split("|"), runtimes.split("|"), strict=True)
    assert {int(n): runtime.strip() for sets, runtime in pairs for n in sets.split(",")} == OLDEST

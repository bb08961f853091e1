"""What entries declare is less than what the project admits; tolerances only tighten."""

from __future__ import annotations

import pytest

from nest.ir.program import Program
from nest.loading import program_of
from nest.registry import entries, find
from nest.verify.limits import PROJECT

NAMES = [e.name for e in entries()]
LARGEST = {
    "whisper-tiny.en": {
        "encode": 4e-4, "listen": 4e-4, "decode": 5e-5, "prefill": 7e-5, "step": 1.4e-4, "align": 7e-6,
    },
}  # fmt: skip
"""Bounds of max|Δ| with published weights, as they were first declared."""


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_of_a_definition_has_a_bound(name: str) -> None:
    program: Program = program_of(name)
    assert set(find(name).manifest.tolerance) == set(program.entries)


@pytest.mark.parametrize("name", NAMES)
def test_relative_bounds_are_below_the_project_s(name: str) -> None:
    for output, bound in find(name).manifest.tolerance.items():
        assert bound.relative is not None, output
        assert bound.relative <= PROJECT["f32"] / 4, output
        for dtype in ("f16", "bf16"):
            assert (getattr(bound, dtype) or 0) <= PROJECT[dtype], output


@pytest.mark.parametrize("name", LARGEST)
def test_bounds_with_published_weights_only_tighten(name: str) -> None:
    declared = find(name).manifest.tolerance
    assert {n: b.max is not None and b.max <= LARGEST[name][n] for n, b in declared.items()} == dict.fromkeys(
        LARGEST[name], True
    )

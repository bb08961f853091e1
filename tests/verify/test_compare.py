"""Differences, the bounds that they are held to, and what a table says of them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nest.registry.manifest import Tolerance
from nest.verify import Row, markdown
from nest.verify.compare import Difference, compare, worst
from nest.verify.limits import PROJECT, UNMEASURED, Limit, limit_of
from nest.verify.rows import measured
from nest.verify.tokens import Tokens, mismatch

COMMON: dict[str, Any] = {
    "entry": "a", "configuration": "full", "weights": "real", "input": "audio", "backend": "onnx", "plan": "exact",
    "dtype": "f32", "batch": 1,
}  # fmt: skip


def test_a_difference() -> None:
    want = np.array([[1.0, -4.0, 3.0], [0.0, 2.0, 1.9]])
    found = compare(np.array([[1.0, -4.5, 3.0], [0.0, 1.8, 1.9]], np.float32), want, choices=True)
    assert (found.largest, found.scale, found.relative) == (0.5, 4.0, 0.125)
    assert (found.choices, found.flips, found.finite) == (2, 1, True)
    assert found.margin == pytest.approx(0.1)


def test_what_is_not_a_number_is_infinitely_far() -> None:
    found = compare(np.array([1.0, np.nan]), np.array([1.0, 2.0]))
    assert (found.largest, found.finite) == (float("inf"), False)
    assert not Limit().admits(found)
    assert compare(np.array([1e-30]), np.array([0.0])).relative == float("inf")
    assert compare(np.array([0.0]), np.array([0.0])).relative == 0


def test_shapes_must_be_equal() -> None:
    with pytest.raises(ValueError, match=r"a result is \(2, 1\), and should be \(1, 2\)"):
        compare(np.zeros((2, 1)), np.zeros((1, 2)))


def test_the_worst_of_each() -> None:
    found = worst([Difference(1.0, 0.1, 10.0, True, 5, 1, 0.2), Difference(0.5, 0.5, 1.0, True, 3, 0, 0.0)])
    assert found == Difference(1.0, 0.5, 10.0, True, 8, 1, 0.2)


@pytest.mark.parametrize(
    ("found", "admitted"),
    [
        (Difference(0.9, 0.009, 100.0), True),
        (Difference(1.1, 0.009, 100.0), False),
        (Difference(0.9, 0.011, 80.0), False),
        (Difference(0.9, 0.009, 100.0, False), False),
        (Difference(0.9, 0.009, 100.0, True, 9, 1, 1.9), True),  # a tie to within twice the bound
        (Difference(0.9, 0.009, 100.0, True, 9, 1, 2.1), False),
        (Difference(0.5, 0.009, 60.0, True, 9, 1, 1.3), False),
    ],
)
def test_a_limit(found: Difference, admitted: bool) -> None:
    assert Limit(0.01, 1.0).admits(found) == admitted


def test_what_an_entry_declares() -> None:
    tolerance = {
        "encode": Tolerance(max=3.0, relative=1e-6, f16=1e-3),
        "decode": Tolerance(max=2.0),
        "step": Tolerance(relative=1e-6),
    }
    entry: Any = SimpleNamespace(manifest=SimpleNamespace(tolerance=tolerance))
    assert limit_of(entry, "encode", "f32", real=True) == Limit(largest=3.0)
    assert limit_of(entry, "encode", "f32", real=False) == Limit(1e-6)
    assert limit_of(entry, "encode", "f16", real=True) == Limit(1e-3)
    assert limit_of(entry, "encode", "bf16", real=True) == Limit(PROJECT["bf16"])
    assert limit_of(entry, "decode", "f32", real=False) == Limit(PROJECT["f32"])
    assert limit_of(entry, "step", "f32", real=True) == Limit(UNMEASURED)
    assert limit_of(entry, "pool", "f32", real=True) == Limit(UNMEASURED)
    assert limit_of(entry, "pool", "f32", real=False) == limit_of(None, "pool", "f32", real=False)


def test_rows_say_why_they_failed() -> None:
    limit = Limit(1e-5, 1e-4)
    assert measured(COMMON, "encode", Difference(1e-4, 1e-5, 10), limit).status == "ok"
    over = measured(COMMON, "encode", Difference(2e-4, 1e-5, 20), limit)
    assert (over.status, over.reason) == ("failed", "over 1.0e-04, 1.0e-05 of the largest")
    assert measured(COMMON, "encode", Difference(0, 0, 1, False), limit).reason == "NaN or infinite"
    flipped = measured(COMMON, "encode", Difference(0, 0, 1, True, 7, 2, 0.5), limit)
    assert flipped.reason == "2 of 7 argmaxes differ, by a margin of up to 5.0e-01"


def test_a_table_puts_batches_together() -> None:
    rows = [
        Row(**COMMON, output="encode", difference=1e-5, relative=1e-6, choices=2),
        Row(**{**COMMON, "batch": 3}, output="encode", difference=2e-5, relative=5e-7, choices=6),
        Row(**COMMON, output="tokens, cached", tokens="equal", choices=24),
        Row(**{**COMMON, "backend": "jax", "batch": 0}, output="load", status="left out", reason="no bf16"),
    ]
    assert markdown(rows).splitlines() == [
        "**a**, real weights, audio input",
        "",
        "| output | backend | plan | dtype | batch | max diff | of the largest | choices | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| encode | onnx | exact | f32 | 1, 3 | 2.0e-05 | 1.0e-06 | 8 equal | ok |",
        "| tokens, cached | onnx | exact | f32 | 1 |  |  | 24 equal | ok |",
        "| load | jax | exact | f32 |  |  |  |  | left out: no bf16 |",
    ]
    facts = rows[0].facts()
    assert json.loads(json.dumps(facts)) == facts
    assert "library" not in facts


def test_where_tokens_differ() -> None:
    right = [Tokens([5, 6, 7], [1.0, 0.5, 0.1, 2.0]), Tokens([5], [1.0, 0.25])]
    assert mismatch([[5, 6, 7], [5]], right) is None
    assert mismatch([[5, 9, 7], [5]], right) == (0, 1, 0.5)
    assert mismatch([[5, 6], [5]], right) == (0, 2, 0.1)
    assert mismatch([[5, 6, 7], [5, 8]], right) == (1, 1, 0.25)
    assert mismatch([[5, 6, 9], [6]], right) == (1, 0, 1.0)

"""Static fields take what they are annotated with."""

from __future__ import annotations

from typing import Any

import pytest

from nest.errors import DefinitionError
from nest.layers._statics import accepts
from nest.loading import program_of


@pytest.mark.parametrize(
    ("annotation", "value", "fits"),
    [
        ("Static[float]", 1e-5, True),
        ("Static[float]", 1, True),
        ("Static[float]", True, False),
        ("Static[float]", "x", False),
        ("Static[float]", float("nan"), False),
        ("Static[int | None]", None, True),
        ("Static[int | None]", 1.5, False),
        ("Static[bool]", "no", False),
        ("Static[bool]", 1, False),
        ("Static[str]", "mean", True),
        ("Static[tuple[tuple[int, int], ...]]", ((1, 2),), True),
        ("Static[tuple[float, ...] | None]", 3.0, False),
        ("layers.Static[int]", "x", False),
        ("Static[bool | Tensor | None]", object(), True),
        (int, "x", True),
    ],
)
def test_what_fits(annotation: Any, value: Any, fits: bool) -> None:
    assert accepts(annotation, value) is fits


@pytest.mark.parametrize(
    ("name", "value"), [("tied", "no"), ("eps", "x"), ("window", 1.5), ("rope_theta", True)]
)
def test_a_definition_refuses_what_does_not(name: str, value: Any) -> None:
    with pytest.raises(DefinitionError, match=rf"Model: '{name}' is Static\[.*\]; got {value!r}"):
        program_of("smollm2-135m-instruct", **{name: value})


def test_a_window_holds_a_key() -> None:
    with pytest.raises(DefinitionError, match="a window is of 1 key or more; -3 was given"):
        program_of("smollm2-135m-instruct", window=-3)

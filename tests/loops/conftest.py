"""The small Whisper on each backend."""

from __future__ import annotations

from typing import Any

import pytest

from ..speech import BACKENDS, model_on


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(backend: str) -> Any:
    return model_on(backend)

"""What all tests share: the marker of those that compare with the reference library."""

from __future__ import annotations

import importlib.util
import os

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("reference") and importlib.util.find_spec("transformers") is None:
        if os.environ.get("NEST_TEST_REFERENCE") == "1":
            pytest.fail("NEST_TEST_REFERENCE=1, and transformers is not installed")
        pytest.skip("transformers is not installed")

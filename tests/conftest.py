"""What all tests share: the marker of those that compare with the reference library, and how XLA compiles.

XLA's code for the CPU is made without LLVM's optimizations: the tests compile thousands of tiny programs and run each a
few times. NEST_TEST_OPTIMIZED=1 compiles as users do.
"""

from __future__ import annotations

import importlib.util
import os

import pytest
from hypothesis import HealthCheck, settings

# How long a machine takes is no fault of a test.
settings.register_profile("nest", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("nest")

if os.environ.get("NEST_TEST_OPTIMIZED") != "1":
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("reference") and importlib.util.find_spec("transformers") is None:
        if os.environ.get("NEST_TEST_REFERENCE") == "1":
            pytest.fail("NEST_TEST_REFERENCE=1, and transformers is not installed")
        pytest.skip("transformers is not installed")

"""How kernels are launched: whether one may start while the one ahead of it still runs.

On chips that have programmatic dependent launch a kernel is started early and waits for the end of the one ahead
itself, in `wait`, after it has asked for what does not depend on that: weights. `PDL` is false elsewhere.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["launch_options", "wait"]


@triton.jit
def wait(PDL: tl.constexpr):
    """Wait for all that the kernels ahead write, and let the next one start."""
    if PDL:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@cache
def _early_start() -> bool:
    """Whether the device has programmatic dependent launch: compute capability 9.0 and up."""
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)


def launch_options(pdl: bool | None) -> dict[str, Any]:
    """Options of a launch for kernels with a PDL switch; by the device if left out."""
    early = _early_start() if pdl is None else pdl
    return {"PDL": True, "launch_pdl": True} if early else {"PDL": False}

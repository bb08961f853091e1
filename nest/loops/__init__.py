"""Loops over a model's entries, written once in the layer API and traced with the model.

They are functions whose first argument is the root block. A loaded model offers those that fit its entries as entries
of their own, so that a whole decode is one call, on the device where the backend can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nest.layers.block import Block
from nest.loops.greedy import greedy

__all__ = ["greedy", "loops_for"]


def loops_for(root: type[Block]) -> dict[str, Callable[..., Any]]:
    """The loops that a definition's entries admit: `greedy` where there are `prefill` and `step` over a `Vocab`."""
    entries = {n for n in dir(root) if getattr(getattr(root, n), "_nest_entry", False)}
    fits = {"prefill", "step"} <= entries and "Vocab" in root._fields().kinds
    return {"greedy": greedy} if fits and not hasattr(root, "greedy") else {}

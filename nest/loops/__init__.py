"""Loops over a model's entries, written once in the layer API and traced with the model.

They are functions whose first argument is the root block. A loaded model offers those that fit its entries as entries
of their own, so that a whole decode is one call, on the device where the backend can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nest.layers.block import Block
from nest.loops.branch import prefill_top, step_top, step_top_timed
from nest.loops.greedy import greedy
from nest.loops.hear import hear
from nest.loops.proceed import proceed, proceed_drawn, proceed_of_top
from nest.loops.sample import sample, sample_top
from nest.loops.timed import greedy_timed, sample_timed

__all__ = [
    "greedy",
    "greedy_timed",
    "hear",
    "loops_for",
    "prefill_top",
    "proceed",
    "proceed_drawn",
    "proceed_of_top",
    "sample",
    "sample_timed",
    "sample_top",
    "step_top",
    "step_top_timed",
]

_LOOPS: dict[str, Callable[..., Any]] = {
    "greedy": greedy,
    "sample": sample,
    "sample_top": sample_top,
}
_TEXT_LOOPS: dict[str, Callable[..., Any]] = {
    "proceed": proceed,
    "proceed_drawn": proceed_drawn,
    "proceed_of_top": proceed_of_top,
}
_SPEECH_LOOPS: dict[str, Callable[..., Any]] = {
    "hear": hear,
    "greedy_timed": greedy_timed,
    "sample_timed": sample_timed,
    "prefill_top": prefill_top,
    "step_top": step_top,
    "step_top_timed": step_top_timed,
}


def loops_for(root: type[Block]) -> dict[str, Callable[..., Any]]:
    """The loops that a definition's entries admit.

    All go over `prefill` and `step` with a `Vocab`. With `listen` among the entries there are `hear` and, for text with
    times, those that end in `_timed`; without it, texts may be of any length, and there are those that proceed.
    """
    entries = {n for n in dir(root) if getattr(getattr(root, n), "_nest_entry", False)}
    generics = root._fields().kinds.keys()
    if not ({"prefill", "step"} <= entries and "Vocab" in generics):
        return {}
    speech = "listen" in entries and {"Mels", "Frames"} <= generics
    fitting = _LOOPS | (_SPEECH_LOOPS if speech else {} if "listen" in entries else _TEXT_LOOPS)
    return {n: loop for n, loop in fitting.items() if not hasattr(root, n)}

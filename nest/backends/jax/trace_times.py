"""Tracing, lowering and compiling, which jax times itself, as stretches of the call that they are in."""

from __future__ import annotations

from functools import cache
from typing import Any

from jax import monitoring

__all__ = ["note_compilations"]

_NAMES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile or find compiled",
}


@cache
def note_compilations() -> None:
    """Have jax's times noted, once a process."""
    monitoring.register_event_duration_secs_listener(_note)


def _note(event: str, duration_secs: float, **kwargs: Any) -> None:
    if event in _NAMES:
        from nest._trace_times import recorder

        recorder().known(_NAMES[event], duration_secs)

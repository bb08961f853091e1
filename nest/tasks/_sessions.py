"""What a task asks a session for."""

from __future__ import annotations

from typing import Any

__all__ = ["session_options"]


def session_options(model: Any, plan: str) -> dict[str, Any]:
    """Of a session that decodes again and again: on CUDA, torch records its calls and loops."""
    device = getattr(model, "device", None)
    graphs = {"graphs": True} if getattr(device, "type", None) == "cuda" else {}
    return graphs if plan == "exact" else {**graphs, "plan": plan}

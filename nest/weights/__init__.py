"""Weights: fetched by pin and digest, mapped, and bound to a definition's parameters."""

from __future__ import annotations

from nest.weights.bind import bind, resolve
from nest.weights.checkpoint import Checkpoint, TensorView, open_checkpoint

__all__ = ["Checkpoint", "TensorView", "bind", "open_checkpoint", "resolve"]

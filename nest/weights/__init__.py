"""Weights: fetched by pin and digest, mapped, and bound to a definition's parameters."""

from __future__ import annotations

from nest.weights.bind import bind, resolve
from nest.weights.cache import cache_root
from nest.weights.checkpoint import Checkpoint, TensorView, open_checkpoint
from nest.weights.fetch import Fetched, fetch

__all__ = ["Checkpoint", "Fetched", "TensorView", "bind", "cache_root", "fetch", "open_checkpoint", "resolve"]

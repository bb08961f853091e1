"""How much memory a model needs, told from its definition before any weights are here."""

from nest.footprint.limits import Limits, limits
from nest.footprint.report import Memory, memory

__all__ = ["Limits", "Memory", "limits", "memory"]

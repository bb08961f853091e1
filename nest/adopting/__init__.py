"""Checkpoints that no entry of the zoo lists: recognised by their configuration, bound to a definition of the zoo."""

from __future__ import annotations

from nest.adopting.adoption import Adopted, adopt, adopted_entry

__all__ = ["Adopted", "adopt", "adopted_entry"]

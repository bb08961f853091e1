"""Samples as people see and hear them: the input, this project's output, the reference library's beside it."""

from __future__ import annotations

from nest.catalog.samples._media import shared_media
from nest.catalog.samples._show import Shown, show

__all__ = ["Shown", "shared_media", "show"]

"""What is damaged in a recording, in a command's own words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nest.tasks.audio import DamagedAudioWarning

__all__ = ["damage_told"]


@contextmanager
def damage_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with each warning about damaged audio; the others are shown as they were."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, DamagedAudioWarning):
                tell(f"note: {message}")
            else:
                shown(message, category, *rest, **more)

        warnings.simplefilter("always", DamagedAudioWarning)
        warnings.showwarning = show
        yield

"""Where somebody outside nest wrote what is being run."""

from __future__ import annotations

from pathlib import Path
from types import FrameType

__all__ = ["caller_line", "is_framework"]

_NEST = str(Path(__file__).parent.parent)


def caller_line(frame: FrameType | None) -> str:
    """`folder/file.py:line` of the first frame outside nest, which is where somebody wrote something."""
    while frame is not None and is_framework(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return "?"
    return f"{'/'.join(Path(frame.f_code.co_filename).parts[-2:])}:{frame.f_lineno}"


def is_framework(filename: str) -> bool:
    return filename.startswith(_NEST) and not filename.startswith(str(Path(_NEST) / "_zoo"))

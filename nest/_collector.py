"""Python's garbage collector, held while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["held", "released"]


@contextmanager
def held() -> Iterator[None]:
    """No collections inside, if there were any before.

    Imports and elaboration make many objects and leave hardly any garbage, but each new object brings the next full
    collection nearer, and with a framework loaded one takes a tenth of a second.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def released() -> Iterator[None]:
    """Inside `held`, where work takes long and makes little that stays, such as a download."""
    was = gc.isenabled()
    gc.enable()
    try:
        yield
    finally:
        if not was:
            gc.disable()

"""Pictures through an entry of a model, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest.backends.installed import compiles_shapes
from nest.errors import InputError
from nest.ir.dim import Dim
from nest.tasks._sessions import Sessions, plan_option
from nest.tasks.image import ImageSource, is_one, load
from nest.tasks.pixels import PixelSettings
from nest.tasks.ragged import power_of_two

__all__ = ["BATCH", "ImageEncoder", "listed"]

BATCH = 8
"""Pictures that are computed together where nothing else is asked for."""


def listed(pictures: ImageSource | Sequence[ImageSource]) -> list[ImageSource]:
    """One picture or several as a list.

    Raises:
        InputError: there is none.
    """
    found = [pictures] if is_one(pictures) else list(pictures)
    if not found:
        raise InputError("No picture was given: pass one, or a list of at least one.")
    return found


class ImageEncoder:
    """An entry that takes pixels, over pictures of any sizes; threads may share it.

    Args:
        model: of `nest.load`. settings: how its checkpoint wants pictures; they are fitted to the model's own size.
        plan: of its session.
    """

    def __init__(self, model: Any, settings: PixelSettings, *, plan: str = "exact") -> None:
        self.model = model
        self._sessions = Sessions(model, **plan_option(plan))
        generics = model.program.root.generics
        sides = [generics.get(side) for side in ("Height", "Width")]
        height, width = (int(side) for side in sides if isinstance(side, Dim))
        self.settings = settings.to(height, width)

    def pixels(self, picture: ImageSource) -> NDArray[np.float32]:
        """What the model sees of one picture: float32 [3, height, width]."""
        return self.settings(load(picture))

    def run(self, name: str, *inputs: Any) -> NDArray[np.float32]:
        """A result of an entry, as float32 on the host."""
        with self._sessions.lend() as session:
            result = session.numpy(session.run_entry(name, list(inputs)))
        return np.asarray(result, dtype=np.float32)

    def rows(self, name: str, pictures: Sequence[ImageSource], batch: int) -> NDArray[np.float32]:
        """The rows that an entry gives for pictures, `batch` of them at a time, in their order.

        Raises:
            InputError: one cannot be read; it is named by its place where there are several.
        """
        found = []
        few_shapes = compiles_shapes(getattr(self.model, "backend", None))
        for part in self._parts(pictures, batch):
            pixels = np.stack(part)
            if few_shapes:
                empty = power_of_two(len(part), batch) - len(part)
                pixels = np.pad(pixels, [(0, empty), (0, 0), (0, 0), (0, 0)])
            found.append(self.run(name, pixels)[: len(part)])
        return np.concatenate(found)

    def _parts(self, pictures: Sequence[ImageSource], batch: int) -> Iterator[list[NDArray[np.float32]]]:
        if batch < 1:
            raise InputError(f"batch_size is at least 1; came {batch}.")
        for start in range(0, len(pictures), batch):
            yield [
                self._placed(picture, place, len(pictures))
                for place, picture in enumerate(pictures[start : start + batch], start)
            ]

    def _placed(self, picture: ImageSource, place: int, count: int) -> NDArray[np.float32]:
        try:
            return self.pixels(picture)
        except InputError as error:
            if count == 1:
                raise
            raise InputError(f"Picture {place + 1} of {count}: {error}") from error

"""Where a text ends by what it says: stop strings in a text that grows."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["StopSearch"]


class StopSearch:
    """Looks for the first of some strings in text that comes in pieces, and holds back what could be its beginning.

    The first is the one that ends first, so the answer does not depend on how the text was cut into pieces; of two that
    end together, the longer.

    Attributes:
        found: the string that was found, or None.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = sorted(set(stops), key=len, reverse=True)
        self._held = ""
        self.found: str | None = None

    def push(self, text: str) -> str:
        """Return what can be shown now that `text` has come; nothing once a string was found."""
        if self.found is not None:
            return ""
        self._held += text
        hits = [(at + len(stop), stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if hits:
            end, self.found = min(hits, key=lambda hit: hit[0])
            shown, self._held = self._held[: end - len(self.found)], ""
            return shown
        keep = self._open()
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def finish(self) -> str:
        """Return what was held back and turned out to be mere text."""
        shown, self._held = self._held, ""
        return shown

    def _open(self) -> int:
        """How many last characters are the beginning of a stop string; the most that are."""
        longest = min(len(self._held), max((len(stop) - 1 for stop in self._stops), default=0))
        return next(
            (
                n
                for n in range(longest, 0, -1)
                if any(stop.startswith(self._held[-n:]) for stop in self._stops)
            ),
            0,
        )

"""The reference library beside the oracle: its own rows, and how far others are from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nest.verify._measure import Found, common, outputs, token_row
from nest.verify.compare import Difference, compare, worst
from nest.verify.limits import Limit
from nest.verify.records import replay
from nest.verify.rows import Row, measured
from nest.verify.setting import Setting

__all__ = ["PublishedResults"]


class PublishedResults:
    """The reference library's results on the same rows, each alone."""

    def __init__(self, setting: Setting, library: Any) -> None:
        self.setting = setting
        self.library = library
        self.found: list[Found] = []
        self.tokens: list[list[int]] = []
        for row, records in enumerate(setting.records):
            session = library.new_session()
            known = [r for r in records if r.entry in session.entries]
            self.kept = [i for i, r in enumerate(records) if r.entry in session.entries]
            self.found.append(list(replay(setting.program, session, [known])))
            if setting.decoding is not None:
                self.tokens.append(session.greedy(setting.decoding.rows([row])))

    def rows(self) -> Iterator[Row]:
        """The library's own distance from the oracle: told, and bound by nothing."""
        setting = self.setting
        place = common(setting, self.library.name, "exact", "f32", 1)
        merged: dict[str, list[Difference]] = {}
        for records, found in zip(setting.records, self.found, strict=True):
            known = [records[i] for i in self.kept]
            for output, _, differences in outputs(setting, found, [known]):
                merged.setdefault(output, []).extend(differences)
        for output, differences in merged.items():
            yield measured(place, output, worst(differences), Limit())
        if self.tokens:
            yield token_row(place, "tokens, generate", self.tokens, setting.tokens, 0.0)

    def against(
        self, batch: Sequence[int], found: Found, output: tuple[str, int]
    ) -> tuple[float | None, float | None]:
        """max|Δ| of a backend's results to the library's, and of the library's to the oracle's."""
        name, index = output
        beside, own = [], []
        for place, position in enumerate(self.kept):
            for at, row in enumerate(batch):
                record = self.setting.records[row][position]
                if record.entry != name:
                    continue
                theirs = self.found[row][place][0][index]
                beside.append(compare(found[position][at][index], theirs).largest)
                own.append(compare(theirs, record.results[index]).largest)
        return (max(beside), max(own)) if beside else (None, None)

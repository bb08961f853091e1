"""A text that grows: tokens in, what can be shown out, and why it ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from nest.tasks._writing import LONGEST, Said, Writer
from nest.tasks.stops import StopSearch
from nest.tasks.text_tokens import TextDecoder

__all__ = ["Finish", "Generation", "TextRow", "TextRules", "advance"]

Finish = Literal["stop", "stop string", "length"]


@dataclass(frozen=True)
class TextRules:
    """What a checkpoint says of its texts.

    Attributes:
        ends: ids that end a text.
        positions: how many tokens the model can hold, the prompt among them.
        max_tokens: how many a text has at most, where the caller does not say.
    """

    ends: tuple[int, ...]
    positions: int
    max_tokens: int = 256


@dataclass(frozen=True)
class Generation:
    """What a model said.

    Attributes:
        text: without the prompt, without control tokens, and cut before a stop string.
        tokens: what it was decoded from, without the token that ended it; of a text that was cut, also the tokens that
            the stop string is in.
        finish: `"stop"`, a token that ends texts came; `"stop string"`, a string of the caller's; `"length"`, there
            were as many tokens as were asked for or as there is room for.
        prompt_tokens: how many tokens the prompt has.
        log_probability: the sum over the tokens, and over the end where one came, under the model's own distribution:
            temperature, filters and penalty have no part in it.
    """

    text: str
    tokens: tuple[int, ...]
    finish: Finish
    prompt_tokens: int
    log_probability: float

    def __str__(self) -> str:
        return self.text


class TextRow:
    """One text in the making; `finish` says why it has ended, None while it goes on."""

    def __init__(
        self,
        decoder: TextDecoder,
        ends: Collection[int],
        stops: Sequence[str],
        prompt_tokens: int,
        limit: int,
    ) -> None:
        self.limit = limit
        self.finish: Finish | None = None
        self._decoder = decoder
        self._ends = frozenset(ends)
        self._search = StopSearch(stops)
        self._prompt_tokens = prompt_tokens
        self._tokens: list[int] = []
        self._shown: list[str] = []
        self._score = 0.0

    def take(self, said: Said) -> str:
        """Return what can be shown now that these tokens have come. What comes after the end is left aside."""
        text = ""
        for token, score in said:
            if self.finish is not None:
                break
            self._score += score
            if token in self._ends:
                self.finish = "stop"
                break
            self._tokens.append(token)
            text += self._search.push(self._decoder.push(token))
            if self._search.found is not None:
                self.finish = "stop string"
            elif len(self._tokens) == self.limit:
                self.finish = "length"
        if self.finish is not None:
            text += self._rest()
        self._shown.append(text)
        return text

    def _rest(self) -> str:
        if self._search.found is not None:
            return ""
        return self._search.push(self._decoder.finish()) + self._search.finish()

    def result(self) -> Generation:
        """What was said; the row has ended."""
        if self.finish is None:
            raise ValueError("this text has not ended")
        return Generation(
            "".join(self._shown), tuple(self._tokens), self.finish, self._prompt_tokens, self._score
        )


def advance(writer: Writer, rows: Sequence[TextRow], count: int = LONGEST) -> list[str]:
    """Write up to `count` more tokens of each row that goes on; what can be shown of each, in order.

    No row is written past its own limit, since there may be no slots.
    """
    left = [row.limit for row, going in zip(rows, writer.running, strict=True) if going]
    texts = [
        row.take(said)
        for row, said in zip(rows, writer.write(min(count, min(left) - writer.written)), strict=True)
    ]
    for index, row in enumerate(rows):
        writer.running[index] &= row.finish is None
    return texts

"""Masked tokens: a text with blanks in, what may stand there out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from nest._timing import timed
from nest.backends.installed import compiles_shapes
from nest.errors import InputError
from nest.tasks._sessions import plan_option
from nest.tasks._side_by_side import Calls, budget_of
from nest.tasks.ragged import PaddedBatch, batches, power_of_two
from nest.tasks.text import EncodedText, TextTokenizer, checked_texts

__all__ = ["Choice", "Filled", "MaskFiller"]

BATCH_SIZE = 16


@dataclass(frozen=True)
class Choice:
    """What may stand in a mask's place: the token, its id and probability, and the text with it; other masks stay."""

    token: str
    id: int
    probability: float
    text: str


@dataclass(frozen=True)
class Filled:
    """A text's masks.

    Attributes:
        text: with the likeliest token in place of each mask, chosen by itself.
        masks: for each mask, in the order of the text, its likeliest tokens in falling order.
    """

    text: str
    masks: tuple[tuple[Choice, ...], ...]


class MaskFiller:
    """A fill-mask pipeline over one model's weights; threads may share it.

    Args:
        model: a loaded model with the entry `mask_logits_at`.
        tokenizer: the checkpoint's, with its mask token.
        plan: of its sessions.
    """

    def __init__(self, model: Any, tokenizer: TextTokenizer, *, plan: str = "exact") -> None:
        self.model = model
        self.tokenizer = tokenizer
        self._calls = Calls(model, **plan_option(plan))

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a text is an iterable of texts too
        self, texts: str, *, top: int = ..., batch_size: int = ..., budget: int | None = ...
    ) -> Filled: ...

    @overload
    def __call__(
        self, texts: Iterable[str], *, top: int = ..., batch_size: int = ..., budget: int | None = ...
    ) -> list[Filled]: ...

    @timed("fill")
    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        top: int = 5,
        batch_size: int = BATCH_SIZE,
        budget: int | None = None,
    ) -> Filled | list[Filled]:
        """Return what may stand where each text has the mask token, as `tokenizer.mask` spells it.

        Args:
            texts: one text, or several.
            top: how many tokens for each mask.
            batch_size: at most so many texts in a call.
            budget: at most so many tokens in a call, padding counted; what the device is fastest with if left out.

        Raises:
            InputError: no text, a text without a mask or whose mask lies beyond `tokenizer.max_tokens`, or a number
                below 1.

        Warns:
            TruncatedTextWarning: some texts are longer than `tokenizer.max_tokens`.
        """
        given = checked_texts(texts)
        budget = budget_of(self.model) if budget is None else budget
        if min(top, batch_size, budget) < 1:
            raise InputError(
                f"top, batch_size and budget are 1 or more; {top}, {batch_size} and {budget} came."
            )
        encoded = self.tokenizer(given)
        places = [self._places(i, text, e) for i, (text, e) in enumerate(zip(given, encoded, strict=True))]
        found: list[Filled | None] = [None] * len(given)
        few_shapes = compiles_shapes(getattr(self.model, "backend", None))
        options: dict[str, Any] = {"batch_size": batch_size, "budget": budget, "few_shapes": few_shapes}

        def fill(session: Any, batch: PaddedBatch) -> None:
            at = _places_array([places[row] for row in batch.rows], len(batch.lengths), few_shapes)
            made = session.run_entry("mask_logits_at", [batch.tokens, at, batch.lengths])
            for row, of_row in zip(batch.rows, np.asarray(session.numpy(made)), strict=False):
                found[row] = self._filled(given[row], encoded[row], places[row], of_row, top)

        longest = self.tokenizer.max_tokens
        self._calls.each(list(batches([e.ids for e in encoded], longest=longest, **options)), fill)
        filled = [f for f in found if f is not None]
        return filled[0] if isinstance(texts, str) else filled

    def _places(self, index: int, text: str, encoded: EncodedText) -> list[int]:
        places = [i for i, token in enumerate(encoded.ids) if token == self.tokenizer.mask_id]
        if not places:
            mask = self.tokenizer.mask or ""
            why = (
                f"its first {self.tokenizer.max_tokens} tokens, all that the model reads, have no '{mask}'"
                if mask in text
                else f"it has no '{mask}': write it where a word is to be found"
            )
            raise InputError(f"texts[{index}] has nothing to fill; {why}.")
        return places

    def _filled(
        self, text: str, encoded: EncodedText, places: Sequence[int], logits: NDArray[Any], top: int
    ) -> Filled:
        spans = [encoded.spans[place] for place in places]
        masks = []
        for span, row in zip(spans, logits, strict=False):
            ids, probabilities = likeliest(row, top)
            masks.append(
                tuple(
                    Choice(self.tokenizer.token(i), i, p, self._put(text, [(span, i)]))
                    for i, p in zip(ids, probabilities, strict=True)
                )
            )
        best = [(span, choices[0].id) for span, choices in zip(spans, masks, strict=True)]
        return Filled(self._put(text, best), tuple(masks))

    def _put(self, text: str, chosen: Sequence[tuple[tuple[int, int], int]]) -> str:
        """The text with tokens in place of spans."""
        for (start, end), token in reversed(chosen):
            piece, joined = self.tokenizer.piece(token)
            before = text[:start]
            if joined:
                # It brings its own space, or goes on with the word before it.
                before = before.rstrip(" ")
                piece = piece if before else piece.lstrip(" ")
            text = before + piece + text[end:]
        return text

    def __repr__(self) -> str:
        name = getattr(getattr(self.model, "program", None), "name", type(self.model).__name__)
        return (
            f"<{type(self).__name__} of {name} on {getattr(self.model, 'backend', 'a backend of its own')}>"
        )


def likeliest(logits: NDArray[Any], top: int) -> tuple[list[int], list[float]]:
    """The ids of the `top` largest logits in falling order, equal ones by id, and their probabilities among all."""
    exact = np.asarray(logits, np.float64)
    weights = np.exp(exact - exact.max())
    ids = np.argsort(-exact, kind="stable")[:top]
    return ids.tolist(), (weights[ids] / weights.sum()).tolist()


def _places_array(places: Sequence[Sequence[int]], rows: int, few_shapes: bool) -> NDArray[np.int32]:
    """Int32 [rows, M]; 0 where a row has fewer masks than others."""
    most = max(map(len, places))
    made = np.zeros((rows, power_of_two(most, 1 << 30) if few_shapes else most), np.int32)
    for row, own in enumerate(places):
        made[row, : len(own)] = own
    return made

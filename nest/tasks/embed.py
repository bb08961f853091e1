"""Sentence embedding: texts in, a vector for each out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest._timing import timed
from nest.backends.installed import compiles_shapes
from nest.errors import InputError
from nest.tasks._sessions import plan_option
from nest.tasks._side_by_side import Calls, budget_of
from nest.tasks.ragged import PaddedBatch, batches
from nest.tasks.text import TextTokenizer, checked_texts

__all__ = ["Embedder"]

Vectors = NDArray[np.float32]

BATCH_SIZE = 32


class Embedder:
    """A sentence-embedding pipeline over one model's weights; threads may share it.

    Args:
        model: a loaded model with the entry `embed`.
        tokenizer: the checkpoint's.
        prompts: texts that the checkpoint wants in front of some inputs, by name, such as `"query"`.
        plan: of its sessions.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: TextTokenizer,
        *,
        prompts: Mapping[str, str] | None = None,
        plan: str = "exact",
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.prompts = dict(prompts or {})
        self._calls = Calls(model, **plan_option(plan))

    @timed("embed")
    def __call__(
        self,
        texts: str | Iterable[str],
        *,
        prompt: str | None = None,
        batch_size: int = BATCH_SIZE,
        budget: int | None = None,
    ) -> Vectors:
        """Return the vector of each text: float32 [N, D] in their order, or [D] for one text that is no list.

        Texts are sorted by length and run in batches, which changes no vector beyond rounding.

        Args:
            texts: any length and language; an empty one has a vector too.
            prompt: the name of one of `prompts`, put in front of each.
            batch_size: at most so many texts in a call.
            budget: at most so many tokens in a call, padding counted; what the device is fastest with if left out.

        Raises:
            InputError: something that is no text, an unknown prompt, or a size below 1.

        Warns:
            TruncatedTextWarning: some texts are longer than `tokenizer.max_tokens`.
        """
        budget = budget_of(self.model) if budget is None else budget
        if min(batch_size, budget) < 1:
            raise InputError(f"batch_size and budget are 1 or more; {batch_size} and {budget} came.")
        front = self._prompt(prompt)
        ids = [e.ids for e in self.tokenizer([front + text for text in checked_texts(texts)])]
        few_shapes = compiles_shapes(getattr(self.model, "backend", None))
        longest = self.tokenizer.max_tokens
        parts = list(
            batches(ids, batch_size=batch_size, budget=budget, longest=longest, few_shapes=few_shapes)
        )
        vectors = np.empty((len(ids), self.size), np.float32)
        for part, made in zip(parts, self._calls.each(parts, _embedded), strict=True):
            vectors[list(part.rows)] = made[: len(part.rows)]
        return vectors[0] if isinstance(texts, str) else vectors

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
        return int(self.model.program.entries["embed"].signature.results[0].shape[-1])

    def similarity(
        self, a: str | Iterable[str] | Vectors, b: str | Iterable[str] | Vectors | None = None
    ) -> Vectors:
        """Return the cosine of each of `a` to each of `b`, float32 [N, M]; of `a` to itself if `b` is left out.

        Args:
            a, b: texts, or vectors [N, D] or [D] that were made before.
        """
        first = self._directions(a)
        return first @ (first if b is None else self._directions(b)).T

    def _directions(self, given: Any) -> Vectors:
        made = given if isinstance(given, np.ndarray) and given.dtype.kind == "f" else self(given)
        vectors = np.atleast_2d(np.asarray(made, np.float32))
        if vectors.ndim != 2 or vectors.shape[1] != self.size:
            raise InputError(
                f"Expected texts, or vectors of {self.size} numbers; an array {list(made.shape)} came."
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        directions: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))
        return directions

    def _prompt(self, name: str | None) -> str:
        if name is None:
            return ""
        if name not in self.prompts:
            known = ", ".join(self.prompts) or "none: the checkpoint was trained without"
            raise InputError(f"There is no prompt '{name}'; prompts of this model: {known}.")
        return self.prompts[name]

    def __repr__(self) -> str:
        name = getattr(getattr(self.model, "program", None), "name", type(self.model).__name__)
        return (
            f"<{type(self).__name__} of {name} on {getattr(self.model, 'backend', 'a backend of its own')}>"
        )


def _embedded(session: Any, batch: PaddedBatch) -> Vectors:
    """The vectors of a batch; rows that only fill it up have some too."""
    return np.asarray(session.numpy(session.run_entry("embed", [batch.tokens, batch.lengths])), np.float32)

"""Rows of tokens that grow: a prompt each, then some tokens at a time, by a loop of the session or by its steps.

Both choose by the same rules: what `nest.loops.proceed` says in ops is said here in numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nest.errors import NestError
from nest.tasks._rows import NO_TOKEN, log_probabilities
from nest.tasks.sampling import draw, penalised
from nest.tasks.wishes import Wishes

__all__ = ["LONGEST", "Said", "TextSession", "Writer"]

LONGEST = 32
"""How many tokens one call of a loop gives at most: its shapes are those of this number, whatever is asked for."""

_ENDS = 8
"""Ids that end a row are given so many at a time, that one more is no new shape."""

Said = list[tuple[int, float]]
"""Tokens of a row, each with its log-probability under the model's own distribution."""


class TextSession(Protocol):
    """The entries of a decoder, over the state of one session; the loops of `nest.loops` where `whole_decodes`."""

    def prefill(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> Any:
        """Fill the caches from `tokens` [Batch, S]; return the logits [Batch, Vocab] after each row."""

    def step(self, token: NDArray[np.int32], pos: NDArray[np.int32]) -> Any:
        """Put `token` [Batch, 1] at `pos` [Batch]; return the logits [Batch, Vocab] after it."""

    def numpy(self, x: Any) -> NDArray[Any]:
        """Return the tensor `x` as an array."""


class Writer:
    """The rows of one session, from their prompts on.

    A row ends with a token of `ends`, which counts as said, or where the caller clears it in `running`; from there on
    it says nothing. What a call does beyond a row's end lies in slots that nothing reads.

    Attributes:
        running: Bool [Batch]: rows that go on.
        written: how many tokens each running row has said.
    """

    def __init__(
        self,
        session: TextSession,
        prompts: Sequence[Sequence[int]],
        ends: Sequence[int],
        wishes: Wishes,
        chance: NDArray[np.float32],
    ) -> None:
        """Take a session whose caches hold each prompt and as many tokens as there are numbers in `chance` [N, Batch].

        The prompts, none of them empty, are read by the first call of `write`.
        """
        self.session: Any = session
        self.prompts = [list(prompt) for prompt in prompts]
        self.wishes = wishes
        self.chance = chance
        self.running = np.ones(len(self.prompts), bool)
        self.written = 0
        room = -(-max(len(ends), 1) // _ENDS) * _ENDS
        self._ends = np.array([*ends, *[-1] * (room - len(ends))], np.int32)
        self._token = np.zeros(len(self.prompts), np.int32)
        self._pos = np.array([len(prompt) for prompt in self.prompts], np.int32)
        self._seen: NDArray[np.float32] | None = None

    def write(self, count: int) -> list[Said]:
        """Return up to `count` more tokens of each row; none of a row that has ended.

        Raises:
            NestError: the model returned NaN or infinite logits.
        """
        count = min(count, LONGEST, len(self.chance) - self.written)
        before = self.running.copy()
        if self.written == 0:
            columns = [self._chosen(self._read())]
        elif getattr(self.session, "whole_decodes", False) and hasattr(self.session, self.wishes.entry):
            columns = self._by_loop(count)
        else:
            columns = self._by_steps(count)
        return self._taken(columns, before)

    def _read(self) -> NDArray[np.float32]:
        tokens = np.zeros((len(self.prompts), max(map(len, self.prompts))), np.int32)
        for row, prompt in enumerate(self.prompts):
            tokens[row, : len(prompt)] = prompt
        return self._host(self.session.prefill(tokens, self._pos))

    def _by_steps(self, count: int) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        columns = []
        for _ in range(count):
            logits = self._host(self.session.step(self._token[:, None], self._pos))
            self._pos += self.running.astype(np.int32)
            columns.append(self._chosen(logits))
            if not self.running.any():
                break
        return columns

    def _chosen(self, logits: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The next token of each row, and its log-probability; rows that it ends are no longer running."""
        wishes, uniforms = self.wishes, self.chance[self.written]
        self._finite(logits.max(axis=-1))
        scores = logits
        if wishes.repetition_penalty != 1:
            scores = penalised(logits, self._marks(logits.shape[-1]), wishes.repetition_penalty)
        if wishes.temperature == 0:
            chosen = scores.argmax(axis=-1).astype(np.int32)
        else:
            drawn = [
                draw(row, float(u), wishes.temperature, wishes.top_k, wishes.top_p, wishes.min_p)
                for row, u in zip(scores, uniforms, strict=True)
            ]
            chosen = np.array(drawn, np.int32)
        self._token = np.where(self.running, chosen, self._token)
        logs = np.where(self.running, log_probabilities(logits, chosen), 0.0)
        self.written += 1
        self._mark(self._token[:, None])
        self.running &= ~np.isin(chosen, self._ends)
        return chosen, logs

    def _by_loop(self, count: int) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        session, wishes, rows = self.session, self.wishes, len(self.prompts)
        given: dict[str, Any] = {"count": np.int32(count), "ends": self._ends}
        if wishes.entry == "proceed":
            given["out"] = session.constant(("out", rows), lambda: np.zeros((rows, LONGEST), np.int32))
        else:
            given |= self._drawing(count)
        results = getattr(session, wishes.entry)(self._token, self._pos, ~self.running, **given)
        ids, logs = (session.numpy(result)[:, :count] for result in results)
        ended = np.isin(ids, self._ends)
        self._finite(logs.sum(axis=1))
        said = np.where(ended.any(1), ended.argmax(1) + 1, count) * self.running
        self._pos += said.astype(np.int32)
        self._token = np.where(said > 0, ids[np.arange(rows), np.maximum(said - 1, 0)], self._token)
        self.written += count
        self.running &= ~ended.any(1)
        self._mark(ids)
        return [(ids[:, at], logs[:, at].astype(np.float64)) for at in range(count)]

    def _drawing(self, count: int) -> dict[str, Any]:
        """What the loops that draw take beside a token, a slot and an end."""
        wishes, rows = self.wishes, len(self.prompts)
        uniforms = np.zeros((LONGEST, rows), np.float32)
        uniforms[:count] = self.chance[self.written : self.written + count]
        values = {
            "temperature": wishes.temperature,
            "floor": wishes.min_p,
            "penalty": wishes.repetition_penalty,
        }
        given: dict[str, Any] = {name: np.full(rows, value, np.float32) for name, value in values.items()}
        given |= {"uniforms": uniforms, "seen": self._marks(self._vocabulary)}
        if wishes.entry == "proceed_of_top":
            given["most"] = np.full(rows, min(wishes.top_k, self._vocabulary), np.int32)
            given["mass"] = np.full(rows, wishes.top_p, np.float32)
        return given

    @property
    def _vocabulary(self) -> int:
        return int(self.session.program.root.generics["Vocab"])

    def _marks(self, vocabulary: int) -> NDArray[np.float32]:
        """Float32 [Batch, Vocab]: 1 where a row has had the id."""
        if self._seen is None:
            self._seen = np.zeros((len(self.prompts), vocabulary), np.float32)
            for row, prompt in enumerate(self.prompts):
                self._seen[row, prompt] = 1
        return self._seen

    def _mark(self, ids: NDArray[np.int32]) -> None:
        if self._seen is not None:
            # What stands after a row's end marks ids that it never asks about again.
            np.put_along_axis(self._seen, np.maximum(ids, 0), np.float32(1), axis=1)

    def _finite(self, values: NDArray[np.float32]) -> None:
        """Refuse NaN or infinity in the value of a running row, which comes of its logits."""
        for row in np.flatnonzero(self.running & ~np.isfinite(values)):
            raise NestError(
                f"The model's logits are NaN or infinite in row {row}, so no token can be chosen. {NO_TOKEN}"
            )

    def _host(self, logits: Any) -> NDArray[np.float32]:
        return np.asarray(self.session.numpy(logits), np.float32)

    def _taken(
        self, columns: Sequence[tuple[NDArray[np.int32], NDArray[np.float64]]], before: NDArray[np.bool_]
    ) -> list[Said]:
        """What each row said, up to and with its end."""
        ids = np.stack([column[0] for column in columns], axis=1)
        logs = np.stack([column[1] for column in columns], axis=1)
        said: list[Said] = []
        for row, going in enumerate(before):
            ended = np.flatnonzero(np.isin(ids[row], self._ends))
            count = (int(ended[0]) + 1 if len(ended) else ids.shape[1]) if going else 0
            said.append(list(zip(ids[row, :count].tolist(), logs[row, :count].tolist(), strict=True)))
        return said

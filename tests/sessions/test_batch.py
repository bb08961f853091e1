"""Rows of a batch are what they are alone: every entry, prompts of unequal lengths, positions of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest

from ..speech import SMALL, mel_of, padded, tokens_of, weights

PROMPTS = [[1, 2], [4, 5, 6, 7], [9], [12, 1, 3]]
ROWS = len(PROMPTS)
MEL = mel_of(ROWS)


@pytest.fixture
def together(model: Any) -> Any:
    session = model.new_session(Batch=ROWS)
    session.listen(MEL)
    return session


def alone(model: Any, row: int) -> Any:
    session = model.new_session()
    session.listen(MEL[row : row + 1])
    return session


def close(session: Any, got: Any, wants: list[Any]) -> None:
    """Equal within what the order of sums makes of these wild weights; another row would differ by 1."""
    np.testing.assert_allclose(
        session.numpy(got), np.concatenate([session.numpy(w) for w in wants]), atol=5e-3
    )


def test_entries_without_states(model: Any, together: Any) -> None:
    tokens = tokens_of(ROWS, 5)
    encoded = together.encode(MEL)
    states, rows = together.numpy(encoded), range(ROWS)
    close(together, encoded, [model.encode(MEL[i : i + 1]) for i in rows])
    wants = [model.decode(tokens[i : i + 1], states[i : i + 1]) for i in rows]
    close(together, model.decode(tokens, states), wants)


def test_entries_with_states(model: Any, together: Any) -> None:
    tokens, lengths = padded(PROMPTS)
    singles = [alone(model, row) for row in range(ROWS)]
    close(together, together.listen(MEL), [s.listen(MEL[i : i + 1]) for i, s in enumerate(singles)])
    wants = [s.prefill([prompt]) for s, prompt in zip(singles, PROMPTS, strict=True)]
    close(together, together.prefill(tokens, lengths), wants)
    for step in range(3):
        wants = [s.step([[row + step]], len(PROMPTS[row]) + step) for row, s in enumerate(singles)]
        got = together.step([[row + step] for row in range(ROWS)], lengths + step)
        close(together, got, wants)
    spoken = tokens_of(ROWS, 6)
    close(together, together.align(spoken), [s.align(spoken[i : i + 1]) for i, s in enumerate(singles)])


def test_a_default_session_may_have_rows(backend: str) -> None:
    several = nest.load("whisper-tiny", backend=backend, weights=weights(), Batch=2, **SMALL)
    several.listen(MEL[:2])
    session = several.new_session()
    assert session.symbols["Batch"] == 2
    session.listen(MEL[:2])
    want = session.numpy(session.prefill(tokens_of(2, 4)))
    np.testing.assert_allclose(session.numpy(several.prefill(tokens_of(2, 4))), want, atol=1e-6)

"""Whisper at a tiny size on jax and nnx: every entry, cached and not, one row and several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .conftest import TINY, mel_of, tokens_of

CLOSE = 2e-5


def worst(got: Any, want: Any) -> float:
    """max|got - want| of max|want|."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape
    return float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize("rows", [1, 3])
def test_entries_without_states(model: Any, oracle: Any, rows: int) -> None:
    mel, tokens = mel_of(rows), tokens_of(rows, 7)
    audio = oracle.encode(mel)
    assert worst(model.encode(mel), audio) <= CLOSE
    short = audio[:, :6].astype(np.float32)
    for states in (audio.astype(np.float32), short):
        got, want = model.decode(tokens, states), oracle.decode(tokens, states)
        assert worst(got, want) <= CLOSE
        assert (np.asarray(got).argmax(-1) == want.argmax(-1)).all()


@pytest.mark.parametrize("rows", [1, 3])
def test_entries_with_states(model: Any, oracle: Any, rows: int) -> None:
    mel, tokens = mel_of(rows, 1), tokens_of(rows, 12, 1)
    ours, theirs = model.new_session(Batch=rows), oracle.new_session(Batch=rows)
    assert worst(ours.listen(mel), theirs.listen(mel)) <= CLOSE
    assert worst(ours.prefill(tokens[:, :4]), theirs.prefill(tokens[:, :4])) <= CLOSE
    for at in range(4, 12):
        token, pos = tokens[:, at : at + 1], np.full(rows, at, np.int32)
        got, want = ours.step(token, pos), theirs.step(token, pos)
        assert worst(got, want) <= CLOSE, at
        assert (ours.numpy(got).argmax(-1) == want.argmax(-1)).all()
    assert worst(ours.align(tokens), theirs.align(tokens)) <= CLOSE


def test_cached_is_uncached(model: Any) -> None:
    mel, tokens = mel_of(2, 2), tokens_of(2, TINY["MaxTokens"], 2)
    session = model.new_session(Batch=2)
    whole = np.asarray(model.decode(tokens, session.listen(mel)))
    assert worst(session.prefill(tokens[:, :3]), whole[:, 2]) <= CLOSE
    for at in range(3, TINY["MaxTokens"]):
        logits = session.step(tokens[:, at : at + 1], np.full(2, at))
        assert worst(logits, whole[:, at]) <= CLOSE, at


def test_a_batch_is_its_rows(model: Any) -> None:
    mel, tokens = mel_of(3, 3), tokens_of(3, 6, 3)
    together = model.new_session(Batch=3)
    together.listen(mel)
    batch = [
        np.asarray(together.prefill(tokens[:, :5])),
        np.asarray(together.step(tokens[:, 5:], np.full(3, 5))),
    ]
    for row in range(3):
        alone = model.new_session(Batch=1)
        alone.listen(mel[row : row + 1])
        one = slice(row, row + 1)
        assert worst(alone.prefill(tokens[one, :5]), batch[0][one]) <= CLOSE
        assert worst(alone.step(tokens[one, 5:], [5]), batch[1][one]) <= CLOSE


def test_rows_of_different_lengths(model: Any, oracle: Any) -> None:
    """Right-padded rows: what is beyond a row's length changes nothing, in the prompt and in later steps."""
    mel, tokens, lengths = mel_of(3, 4), tokens_of(3, 6, 4), np.array([6, 2, 4], np.int32)
    session = model.new_session(Batch=3)
    session.listen(mel)
    first = np.asarray(session.prefill(tokens, lengths))
    then = np.asarray(session.step(tokens[:, :1], lengths))
    for row, length in enumerate(lengths):
        alone = oracle.new_session(Batch=1)
        alone.listen(mel[row : row + 1])
        assert worst(first[row : row + 1], alone.prefill(tokens[row : row + 1, :length])) <= CLOSE
        assert worst(then[row : row + 1], alone.step(tokens[row : row + 1, :1], [length])) <= CLOSE


@pytest.mark.parametrize("count", [1, 7, 8, 9, 17, 19])
def test_a_prompt_of_any_length_is_padded_without_a_trace(model: Any, oracle: Any, count: int) -> None:
    mel, tokens = mel_of(1, 5), tokens_of(1, count, 5)
    ours, theirs = model.new_session(), oracle.new_session()
    ours.listen(mel)
    theirs.listen(mel)
    assert worst(ours.prefill(tokens), theirs.prefill(tokens)) <= CLOSE
    if count < TINY["MaxTokens"]:
        assert worst(ours.step([[3]], [count]), theirs.step([[3]], [count])) <= CLOSE


@pytest.mark.parametrize(("dtype", "limit"), [("f16", 1e-2), ("bf16", 1e-1)])
def test_half_precision(make: Any, oracle: Any, backend: str, dtype: str, limit: float) -> None:
    model = make(backend, dtype=dtype)
    mel, tokens = mel_of(2, 6), tokens_of(2, 5, 6)
    ours, theirs = model.new_session(Batch=2), oracle.new_session(Batch=2)
    states = ours.listen(mel)
    assert str(states.dtype) == {"f16": "float16", "bf16": "bfloat16"}[dtype]
    assert worst(ours.numpy(states), theirs.listen(mel)) <= limit
    assert worst(ours.numpy(ours.prefill(tokens)), theirs.prefill(tokens)) <= limit
    got = ours.numpy(ours.step([[1], [2]], 5))
    assert np.isfinite(got).all()
    assert worst(got, theirs.step([[1], [2]], 5)) <= limit

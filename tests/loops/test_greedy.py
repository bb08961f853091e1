"""A whole decode as one call: the tokens of the stepwise decode, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError

SMALL = {
    "Mels": 5, "Frames": 30, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 2, "DecoderLayers": 3, "Vocab": 17,
    "MaxTokens": 24,
}  # fmt: skip
END = 3


@pytest.fixture(scope="module", params=["torch", "reference"])
def model(request: pytest.FixtureRequest) -> Any:
    lively = nest.load("whisper-tiny", backend="reference", weights=None, seed=7, **SMALL).interpreter.params
    rng = np.random.default_rng(1)
    # Weights under which the next token depends on all before it, so that rows differ and some end early.
    weights = {p: (a * 12 if a.ndim > 1 else a + 0.2 * rng.standard_normal(a.shape)) for p, a in lively.items()}
    weights = {p: np.asarray(a, np.float32) for p, a in weights.items()}
    return nest.load("whisper-tiny", backend=request.param, weights=weights, **SMALL)


def stepwise(
    model: Any, mel: Any, prompt: list[int], n: int, bias: Any, first: Any, end: int
) -> list[int]:
    """One row, one step at a time, until the end or n tokens."""
    session = model.new_session()
    session.listen(mel)
    logits = session.numpy(session.prefill([prompt]))[0] + bias + first
    tokens: list[int] = []
    while len(tokens) < n and (token := int(logits.argmax())) != end:
        tokens.append(token)
        if len(tokens) < n:
            logits = session.numpy(session.step([[token]], len(prompt) + len(tokens) - 1))[0] + bias
    return tokens


def test_a_batch_is_decoded_as_each_row_is_alone(model: Any) -> None:
    rng = np.random.default_rng(2)
    prompts = [[1, 2], [4, 5, 6, 7], [9], [2, 1], [11, 12, 13]]
    rows, n = len(prompts), 18
    mel = rng.standard_normal((rows, 5, 30)).astype(np.float32)
    bias = np.zeros(17, np.float32)
    bias[[8, 10]] = -np.inf
    first = np.zeros(17, np.float32)
    first[5] = -np.inf

    def alone(end: int) -> list[list[int]]:
        return [stepwise(model, mel[i : i + 1], prompts[i], n, bias, first, end) for i in range(rows)]

    # An id that the rows reach at different times, so that some have ended while others go on.
    endless = alone(-1)
    end = max(range(17), key=lambda t: len({row.index(t) for row in endless if t in row}))
    expected = alone(end)
    assert len({len(e) for e in expected}) > 2
    session = model.new_session(Batch=rows)
    session.listen(mel)
    padded = np.zeros((rows, 4), np.int32)
    for i, prompt in enumerate(prompts):
        padded[i, : len(prompt)] = prompt
    lengths = [len(p) for p in prompts]
    ids, counts, _ = session.greedy(padded, np.zeros((rows, n), np.int32), end, bias, first, lengths)
    ids, counts = session.numpy(ids), session.numpy(counts)
    assert [ids[i, : counts[i]].tolist() for i in range(rows)] == expected
    for i in range(rows):
        assert (ids[i, counts[i] :] == end).all()
        assert not {8, 10} & set(ids[i].tolist())


def test_a_single_token(model: Any) -> None:
    session = model.new_session()
    session.listen(np.zeros((1, 5, 30), np.float32))
    ids, counts, _ = session.greedy([[1, 2]], [[0]], END)
    first = int(session.numpy(session.prefill([[1, 2]])).argmax())
    assert session.numpy(ids).tolist() == [[first]]
    assert session.numpy(counts).tolist() == [int(first != END)]


def test_what_does_not_fit_the_caches_is_refused(model: Any) -> None:
    session = model.new_session(Capacity=8)
    with pytest.raises(CallError, match=r"requires S\+N-1 <= Capacity, and here Capacity = 8, N = 8, S = 2"):
        session.greedy([[1, 2]], np.zeros((1, 8), np.int32), END)


def test_the_fast_plan_shares_the_weights_and_keeps_the_tokens() -> None:
    model = nest.load("whisper-tiny", backend="torch", weights=None, seed=7, **SMALL)
    out = np.zeros((1, 9), np.int32)
    ids = []
    for plan in ("exact", "fast"):
        session = model.new_session(plan=plan)
        assert session.model.token_embedding.data_ptr() == model.token_embedding.data_ptr()
        session.listen(np.ones((1, 5, 30), np.float32))
        ids.append(session.numpy(session.greedy([[1, 2]], out, -1)[0]).tolist())
    assert ids[0] == ids[1]
    with pytest.raises(CallError, match="There is no plan 'quick'; nest has exact, fast"):
        model.new_session(plan="quick")
    with pytest.raises(CallError, match="graphs=True records CUDA graphs, and whisper-tiny is on 'cpu'"):
        model.new_session(graphs=True)

"""Decoding by one call, beside decoding step by step, over real sessions of every backend."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nest.errors import InputError, NestError
from nest.tasks import _rows
from nest.tasks.decode import Decoded, decode
from nest.tasks.rules import GenerationRules
from nest.tasks.sampling import draw, uniforms

from ..speech import BACKENDS, CAPACITY, VOCAB, mel_of, model_on, padded

END = 12
RULES = GenerationRules(
    start=1, end=END, prompt=(1, 2), no_timestamps=2, first_timestamp=VOCAB, positions=CAPACITY, max_tokens=14,
    suppress=(8, 10), begin_suppress=(5, END),
)  # fmt: skip
PROMPTS = [[1, 2], [4, 9, 6, 7], [9]]
TOKENS, LENGTHS = padded(PROMPTS)


class Steps:
    """A session without its loops."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.numpy, self.prefill, self.step = session.numpy, session.prefill, session.step


@pytest.fixture(params=BACKENDS)
def session(request: pytest.FixtureRequest) -> Any:
    made = model_on(request.param).new_session(Batch=3)
    made.listen(mel_of(3))
    return made


def calls_of(session: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is called on sessions of its kind from here on."""
    calls: Counter[str] = Counter()
    original = type(session).call

    def counted(self: Any, name: str, *rest: Any) -> Any:
        calls[name] += 1
        return original(self, name, *rest)

    monkeypatch.setattr(type(session), "call", counted)
    return calls


def same(got: list[Decoded], want: list[Decoded]) -> None:
    assert [row.tokens for row in got] == [row.tokens for row in want]
    np.testing.assert_allclose([r.log_probability for r in got], [r.log_probability for r in want], rtol=2e-3)


@pytest.mark.parametrize(
    ("options", "entry"),
    [
        ({}, "greedy"),
        ({"temperature": 1.0, "seed": 4}, "sample"),
        ({"temperature": [0.0, 0.6, 1.5], "most": 6, "mass": 0.9, "seed": [1, 2, 3]}, "sample_top"),
    ],
)
def test_one_call_gives_what_steps_give(
    session: Any, options: dict[str, Any], entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = decode(Steps(session), TOKENS, RULES, lengths=LENGTHS, **options)
    calls = calls_of(session, monkeypatch)
    got = decode(session, TOKENS, RULES, lengths=LENGTHS, **options)
    assert calls == {entry: 1}
    same(got, want)
    assert len({row.tokens for row in got}) == 3


TIMED = replace(RULES, end=7, no_timestamps=9, first_timestamp=10, suppress=(2,), begin_suppress=())


@pytest.mark.parametrize(
    ("options", "entry"),
    [({}, "greedy_timed"), ({"temperature": [0.0, 0.7, 1.5], "seed": [4, 5, 6]}, "sample_timed")],
)
def test_one_call_with_times_gives_what_steps_give(
    session: Any, options: dict[str, Any], entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"lengths": LENGTHS, "timed": True, **options}
    want = decode(Steps(session), TOKENS, TIMED, **options)
    calls = calls_of(session, monkeypatch)
    got = decode(session, TOKENS, TIMED, **options)
    assert calls == {entry: 1}
    same(got, want)
    assert len({row.tokens for row in got}) == 3
    assert all(row.tokens[0] >= TIMED.first_timestamp for row in got)
    assert any(token < TIMED.end for row in got for token in row.tokens)


def test_a_row_of_a_batch_is_drawn_as_by_itself(session: Any) -> None:
    together = decode(session, TOKENS, RULES, lengths=LENGTHS, temperature=1.0, seed=[7, 8, 9])
    for row, (seed, prompt) in enumerate(zip((7, 8, 9), PROMPTS, strict=True)):
        alone = decode(
            session.fork(rows=[row]), np.array([prompt], np.int32), RULES, temperature=1.0, seed=seed
        )
        # A single seed is that of a first row.
        listed = decode(
            session.fork(rows=[row]), np.array([prompt], np.int32), RULES, temperature=1.0, seed=[seed]
        )
        same(listed, [together[row]])
        same(alone, listed)


def test_biases_become_native_once_a_session(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = _rows.bias
    monkeypatch.setattr(_rows, "bias", lambda rules, size: (made.append(size), original(rules, size))[1])
    for _ in range(3):
        decode(session, TOKENS, RULES)
    assert made == [VOCAB]
    decode(session.fork(), TOKENS, RULES)
    assert made == [VOCAB]
    decode(session, TOKENS, replace(RULES, suppress=(3,)))
    assert made == [VOCAB, VOCAB]


def test_a_constant_is_given_to_calls_as_it_is() -> None:
    for backend in ("torch", "onnx"):
        session = model_on(backend).new_session()
        native = session.constant("bias", lambda: np.zeros(VOCAB, np.float32))
        arrays = session.arrays if backend == "torch" else session.runtime.arrays
        assert arrays.native(native, "f32") is native
    import jax

    for backend in ("jax", "nnx"):
        native = model_on(backend).new_session().constant("bias", lambda: np.zeros(VOCAB, np.float32))
        assert isinstance(native, jax.Array)


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_bad_logits_are_told(session: Any, steps: bool, temperature: float) -> None:
    mel = mel_of(3)
    mel[1, 2, 3] = np.nan
    session.listen(mel)
    message = "best logit is nan" if steps else "logits are NaN or infinite in row 1"
    with pytest.raises(NestError, match=f"{message}.*, so no token can be chosen. Its weights are damaged"):
        decode(Steps(session) if steps else session, TOKENS, RULES, temperature=temperature)


def test_large_caches_are_stepped_on_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    from nest.backends.onnx import session as sessions

    session = model_on("onnx").new_session(Batch=3)
    session.listen(mel_of(3))
    want = decode(session, TOKENS, RULES)
    caches = sum(a.nbytes for path, a in session.state_dict().items() if ".self_" in path)
    monkeypatch.setattr(sessions, "_LOOP_BYTES", caches // 3)
    assert session.whole_decodes
    monkeypatch.setattr(sessions, "_LOOP_BYTES", caches // 3 - 1)
    assert not session.whole_decodes
    calls = calls_of(session, monkeypatch)
    same(decode(session, TOKENS, RULES), want)
    assert calls["step"] > 1
    assert "greedy" not in calls


def test_twice_as_large_ones_are_not_by_the_fast_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loops carry what was written, half of the slots on average."""
    from nest.backends.onnx import session as sessions

    session = model_on("onnx").new_session(Batch=3, plan="fast")
    caches = sum(a.nbytes for path, a in session.state_dict().items() if ".self_" in path)
    monkeypatch.setattr(sessions, "_LOOP_BYTES", caches // 6)
    assert session.whole_decodes
    monkeypatch.setattr(sessions, "_LOOP_BYTES", caches // 6 - 1)
    assert not session.whole_decodes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.1}, r"temperature=\[-0.1"),
        ({"temperature": [0, 1, np.nan]}, "expected numbers from 0"),
        ({"temperature": 1.0, "most": -1}, "most=-1, mass=1.0: expected a count from 0"),
        ({"temperature": 1.0, "mass": 0.0}, "mass=0.0: expected a count from 0, and a probability over 0"),
        ({"temperature": 1.0, "seed": [1, 2]}, "2 seeds were given for 3 rows"),
        ({"temperature": 1.0, "seed": -4}, "The seed -4 is negative"),
        ({"max_tokens": 0}, "is no number of tokens"),
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    session = model_on("reference").new_session(Batch=3)
    with pytest.raises(InputError, match=message):
        decode(session, TOKENS, RULES, **options)


def test_uniform_numbers() -> None:
    numbers = uniforms(5, 50, 3)
    assert numbers.shape == (50, 3)
    assert numbers.dtype == np.float32
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
    np.testing.assert_array_equal(uniforms(5, 20, 2), numbers[:20, :2])
    np.testing.assert_array_equal(uniforms([8, 5], 50, 2)[:, 1], numbers[:, 0])
    assert len(np.unique(numbers)) == 150
    # What a seed gives may never change: transcripts would.
    np.testing.assert_allclose(uniforms(0, 2, 2), PINNED)


PINNED = [[0.8506242036819458, 0.5221570730209351], [0.6369616389274597, 0.8897387385368347]]


@pytest.mark.parametrize(("u", "token"), [(0.0, 0), (0.49, 0), (0.51, 2), (0.99, 2)])
def test_a_number_finds_its_token(u: float, token: int) -> None:
    scores = np.array([2.0, -np.inf, 2.0, -50.0], np.float32)
    assert draw(scores, u, 1.0) == token
    assert draw(scores, u, 1.0, most=2) == token
    assert draw(scores, u, 1.0, most=1) == 0
    assert draw(scores, u, 0.0) == 0
    assert draw(scores, u, 1.0, mass=0.3) == 0

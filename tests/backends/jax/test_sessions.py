"""Sessions on jax and nnx: donation, poison, copies, compilations, threads."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from nest.backends.jax.buckets import Padding
from nest.errors import CallError
from nest.layers import Block, Capacity, DType, Fill, Int32, Tensor, elaborate, entry

from .conftest import TINY, mel_of, tokens_of


class Continued(Block):
    T: DType

    @entry
    def go(
        self,
        tokens: Int32[Tensor, "Batch S"],
        out: Int32[Tensor, "Batch N"],
        lengths: Int32[Tensor, "Batch"] = Fill("S"),
    ) -> Int32[Tensor, "Batch N"]:
        self.require(tokens.shape[1] + out.shape[1] - 1 <= Capacity)
        return out + lengths.reshape(lengths.shape[0], 1)


def ready(model: Any, rows: int = 1) -> Any:
    session = model.new_session(Batch=rows)
    session.listen(mel_of(rows))
    return session


def test_a_call_writes_in_place(model: Any) -> None:
    session = ready(model)
    before = dict(session._states)
    session.prefill(tokens_of(1, 3))
    written = {n for n, array in before.items() if array.is_deleted()}
    assert written == {n for n in before if ".self_" in n}
    assert all(session._states[n] is before[n] for n in before if ".cross_" in n)


def test_an_entry_that_only_reads_gives_nothing_away(model: Any) -> None:
    session = ready(model)
    before = dict(session._states)
    session.align(tokens_of(1, 4))
    assert all(session._states[n] is array and not array.is_deleted() for n, array in before.items())


def test_a_failed_call_poisons_its_session_and_no_other(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session, other = ready(model), ready(model)
    compiled = session._engine.compiled("step")

    def failing(params: Any, kept: Any, written: Any, *arguments: Any) -> Any:
        compiled.run(params, kept, written, *arguments)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory\nmore")

    monkeypatch.setitem(session._engine._compiled, "step", replace(compiled, run=failing))
    with pytest.raises(jax.errors.JaxRuntimeError, match="out of memory"):
        session.step([[1]], [0])
    monkeypatch.undo()
    with pytest.raises(CallError) as error:
        session.step([[1]], [0])
    assert str(error.value) == (
        "The states of this session of whisper-tiny are lost: a call of 'step' failed after they were given to it "
        "(JaxRuntimeError: RESOURCE_EXHAUSTED: out of memory). Take a new session: model.new_session(Batch=1)."
    )
    other.step([[1]], [0])
    # What was not given away is still there, and so is what needs no state.
    session.align(tokens_of(1, 2))
    session.encode(mel_of(1))


def test_an_interrupted_call_poisons_too(model: Any) -> None:
    """As when an interrupt comes between the call and the keeping of its results."""
    session = ready(model)
    for array in session._states.values():
        array.delete()
    with pytest.raises(CallError, match="a call was interrupted after they were given to it"):
        session.step([[1]], [0])


def test_a_refused_call_leaves_the_session_as_it_was(model: Any) -> None:
    session = ready(model)
    want = np.asarray(ready(model).prefill(tokens_of(1, 3)))
    with pytest.raises(CallError, match="argument 'token' is"):
        session.step([[1, 2]], [0])
    with pytest.raises(CallError, match="requires S <= Capacity"):
        session.prefill(tokens_of(1, TINY["MaxTokens"] + 1))
    np.testing.assert_array_equal(np.asarray(session.prefill(tokens_of(1, 3))), want)


def test_looking_at_the_states_copies_them(model: Any) -> None:
    session = ready(model)
    session.prefill(tokens_of(1, 4))
    seen = session.state
    values = {n: np.array(x) for n, x in seen.items()}
    after = np.asarray(session.step([[3]], [4]))
    for name, array in seen.items():
        np.testing.assert_array_equal(np.asarray(array), values[name])
    session.state = seen
    np.testing.assert_array_equal(np.asarray(session.step([[3]], [4])), after)
    # Setting copied them as well, so the same ones serve again.
    session.state = seen
    np.testing.assert_array_equal(np.asarray(session.step([[3]], [4])), after)


def test_setting_other_states_is_refused_in_full(model: Any) -> None:
    session = ready(model)
    given = session.state
    given["decoder_layers.0.self_k"] = given["decoder_layers.0.self_k"][:, :, :5]
    given["decoder_layers.9.self_k"] = given.pop("decoder_layers.1.self_k")
    with pytest.raises(CallError) as error:
        session.state = given
    for part in (
        "'decoder_layers.1.self_k' is missing",
        "'decoder_layers.9.self_k' is no state",
        "'decoder_layers.0.self_k' is (1, 3, 5, 8) float32, not (1, 3, 19, 8) float32",
    ):
        assert part in str(error.value)


def test_compilations_are_counted_and_few(make: Any, backend: str) -> None:
    model = make(backend, fresh=True)
    assert model.compilations == {}
    for count in (1, 2, 3, 5, 8):
        session = ready(model)
        session.prefill(tokens_of(1, count))
        for at in range(count, count + 3):
            session.step([[1]], [at])
    assert model.compilations == {"listen": 1, "prefill": 1, "step": 1}
    session.prefill(tokens_of(1, 9))
    session.prefill(tokens_of(1, 18))
    # From 17 on a power of two would be more than the 19 positions: the bucket ends there.
    assert model.compilations["prefill"] == 3
    ready(model, rows=2)
    assert model.compilations["listen"] == 2


@pytest.mark.parametrize(
    ("size", "capacity", "bucket"),
    [(1, 19, 8), (8, 19, 8), (9, 19, 16), (16, 19, 16), (17, 19, 19), (19, 19, 19), (3, 5, 5), (9, 11, 11)],
)
def test_buckets(make: Any, size: int, capacity: int, bucket: int) -> None:
    padding = Padding(make("jax").program.entries["prefill"], TINY)
    assert padding.symbols == ("S",)
    assert padding.bucket("S", {**TINY, "S": size, "Batch": 1, "Capacity": capacity}) == bucket


@pytest.mark.parametrize(
    ("size", "count", "bucket"), [(1, 5, 8), (3, 14, 6), (5, 14, 6), (6, 14, 6), (9, 4, 16)]
)
def test_buckets_under_a_rule_of_two_symbols(size: int, count: int, bucket: int) -> None:
    program = elaborate(Continued, T="f32")
    padding = Padding(program.entries["go"], {})
    assert padding.symbols == ("S",)
    tokens, room = np.zeros((2, size), np.int32), np.zeros((2, count), np.int32)
    padded, unchanged, _ = padding([tokens, room, np.full(2, size)], {"Batch": 2, "Capacity": 19})
    assert padded.shape == (2, bucket)
    assert unchanged.shape == room.shape


def test_a_symbol_of_the_result_is_not_padded(make: Any) -> None:
    for name in ("align", "decode", "encode", "step"):
        assert Padding(make("jax").program.entries[name], TINY).symbols == ()


def test_arguments_are_numpy_or_native_and_of_any_integer_width(model: Any) -> None:
    tokens = tokens_of(1, 3)
    want = np.asarray(ready(model).prefill(tokens))
    for given in (
        tokens.astype(np.int64),
        tokens.astype(np.uint8),
        jax.numpy.asarray(tokens),
        tokens.tolist(),
    ):
        np.testing.assert_array_equal(np.asarray(ready(model).prefill(given)), want)
    with pytest.raises(CallError, match="does not fit Int32"):
        ready(model).prefill(np.array([[2**40]]))


def test_the_caller_may_change_its_arrays_at_once(model: Any) -> None:
    mel = mel_of(1)
    want = np.asarray(model.encode(mel))
    given = mel.copy()
    got = model.encode(given)
    given[:] = np.nan
    np.testing.assert_array_equal(np.asarray(got), want)


def test_a_smaller_capacity(model: Any, oracle: Any) -> None:
    session, exact = model.new_session(Capacity=6), oracle.new_session(Capacity=6)
    for s in (session, exact):
        s.listen(mel_of(1))
    np.testing.assert_allclose(session.prefill(tokens_of(1, 5)), exact.prefill(tokens_of(1, 5)), atol=1e-4)
    np.testing.assert_allclose(session.step([[1]], [5]), exact.step([[1]], [5]), atol=1e-4)
    with pytest.raises(CallError, match="requires S <= Capacity, and here Capacity = 6, S = 7"):
        session.prefill(tokens_of(1, 7))


def test_threads_share_weights_and_no_states(model: Any) -> None:
    prompts = [tokens_of(1, 4, seed) for seed in range(16)]
    alone = [np.asarray(_decoded(model, prompt)) for prompt in prompts]
    found: dict[int, Any] = {}

    def work(index: int) -> None:
        found[index] = np.asarray(_decoded(model, prompts[index]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, want in enumerate(alone):
        np.testing.assert_array_equal(found[index], want)


def _decoded(model: Any, prompt: Any) -> Any:
    session = ready(model)
    session.prefill(prompt)
    for at in range(4, 9):
        logits = session.step(prompt[:, :1], [at])
    return logits


def test_the_model_s_own_entries_use_a_default_session(model: Any) -> None:
    tokens = tokens_of(1, 3)
    session = ready(model)
    model.listen(mel_of(1))
    np.testing.assert_array_equal(np.asarray(model.prefill(tokens)), np.asarray(session.prefill(tokens)))
    got = model.run_entry("step", [[[2]], 3])
    np.testing.assert_array_equal(np.asarray(got), np.asarray(session.step(token=[[2]], pos=[3])))


def test_an_unknown_entry_is_named(model: Any) -> None:
    with pytest.raises(CallError, match="whisper-tiny has no entry 'stepp'"):
        model.run_entry("stepp", [])
    with pytest.raises(AttributeError, match="stepp"):
        model.stepp  # noqa: B018

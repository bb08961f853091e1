"""States of a session cut short, copied, put in another order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nest.errors import CallError

from ..speech import CAPACITY, SMALL, heard, mel_of, model_on, tokens_of

SELF, CROSS = "decoder_layers.1.self_k", "decoder_layers.1.cross_k"


def step(session: Any, tokens: Any, pos: Any) -> Any:
    return session.numpy(session.step(np.asarray(tokens)[:, None], pos))


def test_truncating_is_as_if_no_more_had_been_heard(model: Any) -> None:
    tokens = tokens_of(2, 7)
    session, short = heard(model, 2), heard(model, 2)
    session.prefill(tokens[:, :6])
    step(session, tokens[:, 6], 6)
    session.truncate(4)
    short.prefill(tokens[:, :4])
    short.truncate(4)
    for path, want in short.state_dict().items():
        np.testing.assert_allclose(session.state_dict()[path], want, atol=1e-5, err_msg=path)
    assert not session.state_dict()[SELF][:, :, 4:].any()
    assert session.state_dict()[SELF][:, :, :4].all()
    np.testing.assert_allclose(step(session, [3, 5], 4), step(short, [3, 5], 4), atol=1e-4)


def test_each_row_is_cut_at_its_own_position(model: Any) -> None:
    session = heard(model, 3)
    session.prefill(tokens_of(3, 6))
    before = session.state_dict()
    session.truncate([0, 6, 2])
    after = session.state_dict()
    for path, old in before.items():
        for row, kept in enumerate([0, 6, 2]):
            if ".self_" in path:
                np.testing.assert_array_equal(after[path][row, :, :kept], old[row, :, :kept])
                assert not after[path][row, :, kept:].any()
            else:
                np.testing.assert_array_equal(after[path][row], old[row])


def test_a_forgotten_slot_cannot_spoil_a_row(model: Any) -> None:
    """A NaN in a slot that no query sees would reach its row all the same: 0 * NaN is NaN."""
    session = heard(model)
    session.prefill(tokens_of(1, 5))
    want = step(session, [1], 3)
    states = session.state_dict()
    states[SELF][:, :, 5:] = np.nan
    session.load_state_dict(states)
    session.truncate(3)
    np.testing.assert_allclose(step(session, [1], 3), want, atol=1e-5)


@pytest.mark.parametrize(
    ("pos", "came"),
    [
        (-1, "from 0 to Capacity = 24; -1 came"),
        ([0, 25], r"from 0 to Capacity = 24; \[0, 25\] came"),
        ([1, 2, 3], r"as integers; int64 of shape \[3\] came"),
        (1.0, r"as integers; float64 of shape \[\] came"),
    ],
)
def test_positions_that_there_are_not_are_refused(model: Any, pos: Any, came: str) -> None:
    session = heard(model, 2)
    session.prefill(tokens_of(2, 3))
    before = session.state_dict()
    with pytest.raises(CallError, match=rf"takes one position, or one for each of 2 rows, {came}"):
        session.truncate(pos)
    np.testing.assert_array_equal(session.state_dict()[SELF], before[SELF])
    session.truncate(CAPACITY)
    np.testing.assert_array_equal(session.state_dict()[SELF], before[SELF])


def test_a_fork_goes_its_own_way(model: Any) -> None:
    session, same = heard(model, 2), heard(model, 2)
    for s in (session, same):
        s.prefill(tokens_of(2, 4))
    fork = session.fork()
    assert fork.symbols == session.symbols
    assert type(fork) is type(session)
    step(session, [1, 2], 4)
    want = step(same, [7, 8], 4)
    np.testing.assert_allclose(step(fork, [7, 8], 4), want, atol=1e-5)
    fork.listen(mel_of(2, 9))
    np.testing.assert_array_equal(session.state_dict()[CROSS], same.state_dict()[CROSS])


@pytest.mark.parametrize("rows", [[2, 0, 0, 1], [1], np.array([1, 1, 1])])
def test_a_fork_takes_rows(model: Any, rows: Any) -> None:
    """One prompt for several continuations, and what remains when rows are done."""
    session = heard(model, 3)
    session.prefill(tokens_of(3, 4))
    fork = session.fork(rows=rows)
    assert fork.symbols == {"Batch": len(rows), "Capacity": CAPACITY}
    for path, state in session.state_dict().items():
        np.testing.assert_array_equal(fork.state_dict()[path], state[np.asarray(rows)])
    alone = step(session, [5, 5, 5], 4)
    np.testing.assert_allclose(step(fork, [5] * len(rows), 4), alone[np.asarray(rows)], atol=1e-4)


def test_rows_are_put_in_another_order_in_place(model: Any) -> None:
    session = heard(model, 3)
    session.prefill(tokens_of(3, 4))
    before = session.state_dict()
    session.reorder([2, 2, 0])
    for path, state in session.state_dict().items():
        np.testing.assert_array_equal(state, before[path][[2, 2, 0]])


def test_what_rows_share_may_stay(model: Any) -> None:
    session = heard(model, 3)
    session.prefill(tokens_of(3, 4))
    before = session.state_dict()
    session.reorder([1, 2, 0], slots_only=True)
    after = session.state_dict()
    np.testing.assert_array_equal(after[SELF], before[SELF][[1, 2, 0]])
    np.testing.assert_array_equal(after[CROSS], before[CROSS])


@pytest.mark.parametrize("rows", [[0, 1, 2], [1, 0, 0], [2, 1, 1]])
def test_some_rows_stay_and_some_move(model: Any, rows: list[int]) -> None:
    session = heard(model, 3)
    session.prefill(tokens_of(3, 4))
    before = session.state_dict()
    session.reorder(rows)
    for path, state in session.state_dict().items():
        np.testing.assert_array_equal(state, before[path][rows])


def test_a_session_takes_rows_of_another_as_a_fork_would(model: Any) -> None:
    one, several = heard(model, 2), heard(model, 3, 8)
    several.prefill(tokens_of(3, 4, 5))
    one.prefill(tokens_of(2, 4))
    before = one.state_dict()
    several.take_from(one, [1, 0, 1])
    for path, state in several.state_dict().items():
        np.testing.assert_array_equal(state, before[path][[1, 0, 1]])
    want = step(one.fork([1, 0, 1]), [5, 6, 7], 4)
    np.testing.assert_allclose(step(several, [5, 6, 7], 4), want, atol=1e-5)
    for path, state in one.state_dict().items():
        np.testing.assert_array_equal(state, before[path])


def test_rows_of_a_session_that_does_not_fit_are_refused(model: Any) -> None:
    session = heard(model, 3)
    with pytest.raises(CallError, match="Rows of this session of whisper-tiny are integers from 0 to 1"):
        session.take_from(heard(model, 2), [0, 1, 2])
    with pytest.raises(CallError, match=r"for each of this session's 3, and 2 were given. fork\(rows"):
        session.take_from(heard(model, 2), [0, 1])
    with pytest.raises(
        CallError, match=r"of the same model and Capacity: .*Capacity=9> came to .*Capacity=24>"
    ):
        session.take_from(heard(model, 1, Capacity=9), [0, 0, 0])


@pytest.mark.parametrize("rows", [[], [3], [-1, 0], [[0, 1]], [0.0, 1.0]])
def test_rows_that_there_are_not_are_refused(model: Any, rows: Any) -> None:
    session = heard(model, 3)
    for change in (session.fork, session.reorder):
        with pytest.raises(CallError, match="Rows of this session of whisper-tiny are integers from 0 to 2"):
            change(rows)


def test_reordering_does_not_change_how_many_rows_there_are(model: Any) -> None:
    with pytest.raises(CallError, match=r"for each of this session's 3, and 2 were given. fork\(rows"):
        heard(model, 3).reorder([0, 1])


def test_looking_at_states_copies_them(model: Any) -> None:
    session = heard(model)
    session.prefill(tokens_of(1, 4))
    seen = session.state_dict()
    kept = {path: state.copy() for path, state in seen.items()}
    want = step(session, [3], 4)
    for path, state in seen.items():
        np.testing.assert_array_equal(state, kept[path])
        state[...] = 7
    given = {path: state.copy() for path, state in kept.items()}
    session.load_state_dict(given)
    np.testing.assert_array_equal(step(session, [3], 4), want)
    for path, state in given.items():
        np.testing.assert_array_equal(state, kept[path])


def test_states_that_do_not_fit_are_refused_in_full(model: Any) -> None:
    session = heard(model)
    before, given = session.state_dict(), session.state_dict()
    given[SELF] = given[SELF][:, :, :5]
    given[CROSS] = given[CROSS].astype(np.int32)
    given["decoder_layers.9.self_k"] = given.pop("decoder_layers.0.self_k")
    with pytest.raises(CallError) as error:
        session.load_state_dict(given)
    for part in (
        "These are not the states of a session of whisper-tiny with Batch = 1, Capacity = 24: ",
        "'decoder_layers.0.self_k' is missing",
        "'decoder_layers.9.self_k' is no state",
        f"'{SELF}' must be f32 [1, 3, 24, 4], and is float32 [1, 3, 5, 4]",
        f"'{CROSS}' must be f32 [1, 3, 15, 4], and is int32 [1, 3, 15, 4]",
    ):
        assert part in str(error.value)
    np.testing.assert_array_equal(session.state_dict()[SELF], before[SELF])


def test_recorded_memory_stays_where_it_is() -> None:
    """On torch, CUDA graphs hold the addresses of states."""
    session = heard(model_on("torch"), 2)
    places = {path: tensor.data_ptr() for path, tensor in session._live().items()}
    session.truncate([1, 0])
    session.reorder([1, 0])
    session.take_from(heard(model_on("torch"), 1), [0, 0])
    session.load_state_dict(session.state_dict())
    assert {path: tensor.data_ptr() for path, tensor in session._live().items()} == places
    assert len(places) == 4 * SMALL["DecoderLayers"]


def test_on_jax_changes_of_states_compile_once() -> None:
    from nest.backends.jax import session_states

    session = heard(model_on("jax"), 2)
    session.truncate(5)
    session.reorder([1, 0])
    sizes = session_states._zeroed._cache_size(), session_states._taken._cache_size()
    for pos in (0, 3, [1, 2]):
        session.truncate(pos)
        session.reorder([0, 0])
    assert (session_states._zeroed._cache_size(), session_states._taken._cache_size()) == sizes

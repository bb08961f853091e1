"""A model with a default session: it goes when its user lets go, and it is copied or says why not."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import nest
from nest.backends.installed import BACKENDS as INSTALLED
from nest.errors import CallError

SMALL = {
    "D": 8,
    "Heads": 2,
    "Inner": 8,
    "EncoderLayers": 1,
    "DecoderLayers": 1,
    "Vocab": 20,
    "Frames": 8,
    "Mels": 4,
}
BACKENDS = ["reference", "torch", "onnx", "jax", "nnx"]
MEL = np.zeros((1, 4, 8), "f4")


def small(backend: str, **options: Any) -> Any:
    if not INSTALLED[backend].installed:
        pytest.skip(f"{backend} is not installed")
    return nest.load("whisper-tiny.en", backend=backend, weights=None, **{**SMALL, **options})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_whose_default_session_was_used_is_freed(backend: str) -> None:
    model = small(backend)
    model.listen(MEL)
    model.prefill([[1, 2]])
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_models_have_two_default_sessions(backend: str) -> None:
    one, other = small(backend), small(backend)
    one.listen(MEL)
    logits = np.asarray(one.prefill([[1, 2]]))
    other.listen(MEL + 1)
    other.prefill([[3, 4]])
    one.step([[1]], 2)
    np.testing.assert_array_equal(np.asarray(one.prefill([[1, 2]])), logits)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_is_copied_by_fork_alone(backend: str, copied: Any) -> None:
    session = small(backend).new_session()
    with pytest.raises(
        CallError, match=r"cannot be pickled or copied so; fork\(\) copies it, and save\(path\)"
    ):
        copied(session)


@pytest.mark.parametrize("backend", BACKENDS)
def test_entries_are_listed(backend: str) -> None:
    session = small(backend).new_session()
    assert {"encode", "step", "fork", "truncate"} <= set(dir(session))


@pytest.mark.parametrize("backend", ["torch", "jax", "nnx"])
def test_copies_keep_what_was_given_by_hand(backend: str) -> None:
    heads = ((0, 1),)
    model = small(backend, alignment_heads=heads)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.program.root.statics["alignment_heads"] == heads


def test_a_reference_model_is_copied_and_not_pickled() -> None:
    model = small("reference")
    other = copy.deepcopy(model)
    np.testing.assert_array_equal(other.encode(MEL), model.encode(MEL))
    own, copied = model.interpreter.params, other.interpreter.params
    assert all(not np.shares_memory(own[path], copied[path]) for path in own)
    with pytest.raises(CallError, match=r"cannot be pickled; load whisper-tiny.en again"):
        pickle.dumps(model)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("batch", [0, -1, True, "2", 1.0, None])
def test_rows_are_a_positive_integer_when_the_model_is_loaded(backend: str, batch: object) -> None:
    with pytest.raises(CallError, match="Batch is a positive integer, and "):
        small(backend, Batch=batch)


@pytest.mark.parametrize("backend", ["reference", "torch", "jax", "nnx"])
def test_states_that_memory_does_not_hold_say_their_size(backend: str) -> None:
    model = small(backend)
    with pytest.raises(
        CallError, match=r"Batch=1000000000000, Capacity=448 take \d+\.\d GB, and could not be"
    ):
        model.new_session(Batch=10**12)


def test_sizes_may_be_of_numpy() -> None:
    model = small("reference", D=np.int64(8), Batch=np.int32(2))
    assert model.new_session().symbols["Batch"] == 2
    assert model.new_session(Batch=np.int64(3)).symbols["Batch"] == 3

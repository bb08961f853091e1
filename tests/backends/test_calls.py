"""What a call of an entry is told when an argument is wrong, and what is accepted; the same on every backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError, DefinitionError

SMALL = {
    "Mels": 5, "Frames": 30, "D": 12, "Heads": 3, "Inner": 16, "EncoderLayers": 2, "DecoderLayers": 3, "Vocab": 40,
    "MaxTokens": 9,
}  # fmt: skip
BACKENDS = ["torch", "onnx", "jax", "nnx", "reference"]


@pytest.fixture(scope="module", params=BACKENDS)
def model(request: pytest.FixtureRequest) -> Any:
    return nest.load("whisper-tiny", backend=request.param, weights=None, seed=3, **SMALL)


def told(call: Callable[[], Any]) -> str:
    with pytest.raises(CallError) as caught:
        call()
    return str(caught.value)


def mel(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape or (1, 5, 30), np.float32)


def test_wrong_rank(model: Any) -> None:
    assert told(lambda: model.encode(mel(5, 30))) == (
        "whisper-tiny.encode: argument 'mel' is T[B, Mels, Frames], but it has rank 2 (shape [5, 30]), not 3."
    )


def test_wrong_axis(model: Any) -> None:
    assert told(lambda: model.encode(mel(1, 6, 30))) == (
        "whisper-tiny.encode: argument 'mel' is T[B, Mels, Frames], but axis 1 must be Mels = 5, "
        "and is 6 in [1, 6, 30]."
    )


def test_wrong_kind(model: Any) -> None:
    message = told(lambda: model.encode(np.zeros((1, 5, 30), np.int32)))
    assert message.endswith("argument 'mel' is T[B, Mels, Frames], but it holds int values, not float.")
    message = told(lambda: model.decode(np.zeros((1, 3), np.float32), np.zeros((1, 15, 12), np.float32)))
    assert message.endswith("argument 'tokens' is i32[B, S], but it holds float values, not int.")


def test_symbols_that_two_arguments_share(model: Any) -> None:
    message = told(lambda: model.decode([[1, 2]], np.zeros((2, 15, 12), np.float32)))
    assert message.endswith(
        "argument 'audio' is T[B, A, D], but axis 0 must be B = 1, and is 2 in [2, 15, 12]."
    )


def test_rules(model: Any) -> None:
    message = told(lambda: model.decode([list(range(10))], np.zeros((1, 15, 12), np.float32)))
    assert message == "whisper-tiny.decode requires S <= MaxTokens, and here MaxTokens = 9, S = 10."


def test_capacity(model: Any) -> None:
    session = model.new_session(Capacity=4)
    assert "requires S <= Capacity, and here Capacity = 4, S = 5." in told(
        lambda: session.prefill([[1, 2, 3, 4, 5]])
    )
    assert "requires Capacity <= MaxTokens" in told(lambda: model.new_session(Capacity=10))


def test_batch_names_the_session(model: Any) -> None:
    message = told(lambda: model.listen(mel(3, 5, 30)))
    assert "axis 0 must be Batch = 1, and is 3 in [3, 5, 30]." in message
    assert "take a session of that size: model.new_session(Batch=3)." in message


def test_session_symbols(model: Any) -> None:
    assert "Batch is a positive integer, and -1 was given" in told(lambda: model.new_session(Batch=-1))
    assert "has no 'Bach'; it takes Batch" in told(lambda: model.new_session(Bach=2))


def test_missing_unknown_and_doubled_arguments(model: Any) -> None:
    assert "whisper-tiny.decode needs 'audio': decode<B, S, A>(" in told(lambda: model.decode([[1]]))
    assert "has no argument 'mell' (did you mean 'mel'?)" in told(lambda: model.encode(mell=mel()))
    assert "argument 'mel' is given twice" in told(lambda: model.encode(mel(), mel=mel()))
    assert "takes 1 arguments, and 2 were given" in told(lambda: model.encode(mel(), mel()))


def test_unknown_entry(model: Any) -> None:
    assert "has no entry 'encoder' (did you mean 'encode'?); its entries: encode, decode" in told(
        lambda: model.run_entry("encoder", [mel()])
    )


def test_what_is_no_array_of_numbers(model: Any) -> None:
    message = told(lambda: model.decode([[1, 2], [3]], np.zeros((1, 15, 12), np.float32)))
    assert "argument 'tokens' is i32[B, S], but it cannot be read as an array of numbers" in message


def test_integers_of_any_width_where_they_fit(model: Any) -> None:
    audio = np.zeros((1, 15, 12), np.float32)
    expected = np.asarray(model.new_session().numpy(model.decode([[1, 2]], audio)))
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        got = model.new_session().numpy(model.decode(np.array([[1, 2]], dtype), audio))
        np.testing.assert_array_equal(got, expected)
    message = told(lambda: model.decode(np.array([[1, 2**31]], np.int64), audio))
    assert message.endswith(
        "argument 'tokens' is i32[B, S], but it has the value 2147483648, which does not fit Int32."
    )
    assert "has the value -2147483649" in told(lambda: model.decode(np.array([[-(2**31) - 1]]), audio))


def test_positional_keyword_and_by_name_are_the_same(model: Any) -> None:
    numpy = model.new_session().numpy
    x = np.random.default_rng(0).standard_normal((2, 5, 30)).astype(np.float32)
    first = numpy(model.encode(x))
    np.testing.assert_array_equal(first, numpy(model.encode(mel=x)))
    np.testing.assert_array_equal(first, numpy(model.run_entry("encode", [x])))
    np.testing.assert_array_equal(first, numpy(model.new_session().run_entry("encode", [x])))


def test_arrays_that_numpy_lays_out_otherwise(model: Any) -> None:
    numpy = model.new_session().numpy
    x = np.random.default_rng(0).standard_normal((1, 5, 30)).astype(np.float32)
    expected = numpy(model.encode(x))
    frozen = x.copy()
    frozen.setflags(write=False)
    for other in (x.astype(">f4"), np.asfortranarray(x), x[:, ::-1][:, ::-1], frozen, x.astype(np.float64)):
        np.testing.assert_array_equal(numpy(model.encode(other)), expected)


def test_a_scalar_position_stands_for_every_row(model: Any) -> None:
    session = model.new_session(Batch=2)
    session.listen(mel(2, 5, 30))
    session.prefill([[1, 2], [3, 4]])
    first = session.numpy(session.step([[5], [6]], 2)).copy()
    np.testing.assert_array_equal(first, session.numpy(session.step([[5], [6]], [2, 2])))
    np.testing.assert_array_equal(first, session.numpy(session.step([[5], [6]], np.int64(2))))


def test_empty_batches_and_prefixes(model: Any) -> None:
    numpy = model.new_session().numpy
    assert numpy(model.encode(mel(0, 5, 30))).shape == (0, 15, 12)
    assert numpy(model.decode(np.zeros((1, 0), np.int32), np.zeros((1, 15, 12), np.float32))).shape == (
        1,
        0,
        40,
    )


def test_load_options() -> None:
    assert "There is no backend 'tourch'; nest has" in told(
        lambda: nest.load("whisper-tiny", backend="tourch")
    )
    assert "contradict each other" in told(
        lambda: nest.load("whisper-tiny", weights=None, dtype="f32", T="f16")
    )
    with pytest.raises(DefinitionError, match=r"has no generic 'Mles' \(did you mean 'Mels'\?\)"):
        nest.load("whisper-tiny", weights=None, Mles=5)
    with pytest.raises(DefinitionError, match="requires D%Heads == 0, which is false here"):
        nest.load("whisper-tiny", weights=None, **{**SMALL, "Heads": 5})
    with pytest.raises(DefinitionError, match="'f33' is not an element type"):
        nest.load("whisper-tiny", weights=None, dtype="f33")


def test_random_weights_depend_on_the_seed_alone() -> None:
    one, same, other = (
        nest.load("whisper-tiny", backend="torch", weights=None, seed=s, **SMALL) for s in (1, 1, 2)
    )
    for name, value in one.state_dict().items():
        assert bool((value == same.state_dict()[name]).all()), name
    assert not bool((one.token_embedding == other.token_embedding).all())
    deeper = nest.load("whisper-tiny", backend="torch", weights=None, seed=1, **{**SMALL, "DecoderLayers": 5})
    assert bool((deeper.decoder_layers[1].mlp.fc1.weight == one.decoder_layers[1].mlp.fc1.weight).all())


def test_indices_out_of_range_are_named(model: Any) -> None:
    session = model.new_session()
    session.listen(mel())
    message = told(lambda: session.prefill([[1, 40]]))
    assert message.endswith("argument 'tokens' is i32[Batch, S], but it has the value 40, and names rows of a table: "
                            "0 to 39.")  # fmt: skip
    assert "it has the value -1, and names rows of a table" in told(lambda: session.prefill([[-1, 2]]))
    message = told(lambda: session.step([[1]], 9))
    assert "argument 'pos' is i32[Batch], but it has the value 9, and names" in message
    short = model.new_session(Capacity=4)
    message = told(lambda: short.step([[1]], 4))
    assert "names slots of a cache: 0 to 3." in message
    message = told(lambda: session.prefill([[1, 2]], lengths=[3]))
    assert (
        "argument 'lengths' is i32[Batch], but it has the value 3, and names places of an axis: 1 to 2."
        in message
    )


def test_a_prompt_of_no_tokens(model: Any) -> None:
    session = model.new_session()
    session.listen(mel())
    before = session.prefill([[1, 2]])
    message = told(lambda: session.prefill(np.zeros((1, 0), np.int32)))
    assert "argument 'lengths' is i32[Batch], but it has the value 0, and names " in message
    np.testing.assert_array_equal(session.prefill([[1, 2]]), before)  # nothing ran, and the session goes on


def test_a_tensor_that_gives_no_array(model: Any) -> None:
    class Tensor:
        shape = (1, 5, 30)

        def __array__(self, *_: object, **__: object) -> np.ndarray[Any, Any]:
            raise RuntimeError("It is on another device.")

    message = told(lambda: model.encode(Tensor()))
    assert "it cannot be read as an array of numbers (It is on another device.)." in message

"""A call that breaks off while it writes: its session says so, and no other is touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.errors import CallError

from ..speech import heard, mel_of, model_on, tokens_of

Break = Callable[[Any], None]


@pytest.fixture(params=["torch", "reference"])
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Break, Break]:
    """A model, what makes its `step` fail, and what mends it. Tests of jax and onnx make their runtimes fail."""
    model = model_on(request.param)

    def failing(*_: Any, **__: Any) -> None:
        raise MemoryError("no room\nand more")

    def spoil(error: Any) -> None:
        if request.param == "torch":
            monkeypatch.setitem(model.nest_methods, "step", error or failing)
        else:
            monkeypatch.setattr(model.interpreter, "run", error or failing)

    return model, spoil, lambda _: monkeypatch.undo()


def test_a_failed_call_breaks_its_session_and_no_other(broken: Any, tmp_path: Path) -> None:
    model, spoil, mend = broken
    session, other = heard(model), heard(model)
    for s in (session, other):
        s.prefill(tokens_of(1, 3))
    whole = session.state_dict()
    spoil(None)
    with pytest.raises(MemoryError, match="no room"):
        session.step([[1]], 3)
    mend(None)
    assert session.broken
    message = (
        r"^The states of this session of whisper-tiny are lost: 'step' failed while it wrote them \(MemoryError: no "
        r"room\)\. Take a new session: model\.new_session\(Batch=1\)\.$"
    )
    for use in (
        lambda: session.step([[1]], 3),
        lambda: session.prefill([[1]]),
        lambda: session.truncate(0),
        lambda: session.reorder([0]),
        lambda: other.take_from(session, [0]),
        session.fork,
        session.state_dict,
        lambda: session.save(tmp_path / "s"),
    ):
        with pytest.raises(CallError, match=message):
            use()
    assert not list(tmp_path.iterdir())
    # What it did not write is still there, and so is what needs no state.
    session.align(tokens_of(1, 2))
    session.encode(mel_of(1))
    want = other.numpy(other.step([[1]], 3))
    session.load_state_dict(whole)
    np.testing.assert_array_equal(session.numpy(session.step([[1]], 3)), want)


def test_whole_states_of_another_session_mend_lost_ones() -> None:
    session, other = heard(model_on("onnx")), heard(model_on("onnx"))
    session._lost.update(dict.fromkeys(session.state_dict(), "for a reason"))
    assert session.broken
    session.take_from(other, [0])
    assert not session.broken


def test_an_interrupt_breaks_too(broken: Any) -> None:
    model, spoil, mend = broken
    session = heard(model)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    spoil(interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.step([[1]], 0)
    mend(None)
    with pytest.raises(CallError, match=r"failed while it wrote them \(KeyboardInterrupt\)"):
        session.step([[1]], 0)


def test_a_refused_call_breaks_nothing(model: Any) -> None:
    session = heard(model)
    session.prefill(tokens_of(1, 3))
    with pytest.raises(CallError, match="argument 'token' is"):
        session.step([[1, 2]], 3)
    with pytest.raises(CallError, match="no entry 'stepp'"):
        session.run_entry("stepp", [])
    assert not session.broken
    session.step([[1]], 3)


def test_the_default_session_is_emptied(broken: Any) -> None:
    model, spoil, mend = broken
    model.listen(mel_of(1))
    want = heard(model)
    spoil(None)
    with pytest.raises(MemoryError) as error:
        model.step([[1]], 0)
    assert error.value.__notes__ == ["The model's default session has been emptied."]
    mend(None)
    model.listen(mel_of(1))
    for session in (want, model):
        session.prefill(tokens_of(1, 3))
    np.testing.assert_array_equal(np.asarray(model.step([[1]], 3)), np.asarray(want.step([[1]], 3)))

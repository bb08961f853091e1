"""Sessions on a CUDA device with recorded graphs: states change under the graphs, threads record and replay."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..speech import heard, mel_of, model_on, tokens_of


@pytest.fixture(scope="module")
def model() -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return model_on("torch", device="cuda")


def recorded(model: Any, rows: int = 1, seed: int = 2) -> Any:
    session = model.new_session(Batch=rows, graphs=True)
    session.listen(mel_of(rows, seed))
    return session


def step(session: Any, tokens: Any, pos: Any) -> Any:
    return session.numpy(session.step(np.asarray(tokens)[:, None], pos))


def test_states_change_under_recorded_graphs(model: Any, tmp_path: Path) -> None:
    session, plain = recorded(model, 3), heard(model, 3)
    for s in (session, plain):
        s.prefill(tokens_of(3, 5))
        s.step([[1]] * 3, 5)  # recorded by now
        s.truncate([2, 5, 6])
        s.reorder([2, 0, 0])
    np.testing.assert_allclose(step(session, [3, 4, 5], 6), step(plain, [3, 4, 5], 6), atol=1e-3)
    session.save(tmp_path / "s")
    want = step(session, [1, 1, 1], 7)
    step(session, [9, 9, 9], 7)
    session.restore(tmp_path / "s")
    np.testing.assert_array_equal(step(session, [1, 1, 1], 7), want)
    fork = session.fork(rows=[1, 1])
    assert fork.graphs is not None
    np.testing.assert_allclose(step(fork, [1, 1], 7), want[[1, 1]], atol=1e-3)


def test_threads_record_and_replay_at_once(model: Any) -> None:
    def decoded(index: int) -> list[list[int]]:
        session = recorded(model, seed=index)
        out = np.zeros((1, 8 + index % 3), np.int32)
        rows = []
        for turn in range(4):
            ids, _, _ = session.greedy(tokens_of(1, 2 + turn, seed=index), out, -1)
            rows.append(session.numpy(ids)[0].tolist())
        return rows

    alone = [decoded(index) for index in range(16)]
    found: dict[int, Any] = {}

    def work(index: int) -> None:
        try:
            found[index] = decoded(index)
        except BaseException as error:
            found[index] = error

    threads = [threading.Thread(target=work, args=(index,)) for index in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[index] for index in range(16)] == alone


def test_constants_are_on_the_device(model: Any) -> None:
    session = recorded(model)
    native = session.constant("bias", lambda: np.zeros(17, np.float32))
    assert native.is_cuda
    assert session.arrays.native(native, "f32") is native

"""How often the host is asked during a whole decode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ..speech import heard, model_on

N = 20
UNIFORMS = np.random.default_rng(3).random((N, 1), dtype=np.float32)
CALLS: dict[str, Callable[[Any], Any]] = {
    "greedy": lambda s: s.greedy([[1, 2]], np.zeros((1, N), np.int32), -1),
    "sample": lambda s: s.sample([[1, 2]], UNIFORMS, -1),
    "sample_top": lambda s: s.sample_top([[1, 2]], UNIFORMS, -1, most=6),
}


@pytest.mark.parametrize("loop", CALLS)
def test_on_onnx_a_whole_decode_is_one_run(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime as ort

    session = heard(model_on("onnx"))
    runs: list[str] = []
    for name in ("run", "run_with_iobinding"):
        original = getattr(ort.InferenceSession, name)
        monkeypatch.setattr(
            ort.InferenceSession, name, lambda *a, f=original, n=name, **k: (runs.append(n), f(*a, **k))[1]
        )
    _, counts, _ = CALLS[loop](session)
    assert runs == ["run_with_iobinding"]
    assert counts.tolist() == [N]


@pytest.mark.parametrize("backend", ["jax", "nnx"])
@pytest.mark.parametrize("loop", CALLS)
def test_on_jax_a_whole_decode_is_one_compiled_call(
    loop: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    session = heard(model_on(backend))
    calls: Counter[str] = Counter()
    engine = session._engine
    compiled = engine.compiled(loop)

    def counted(*arguments: Any) -> Any:
        calls[loop] += 1
        return compiled.run(*arguments)

    CALLS[loop](session)
    monkeypatch.setitem(engine._compiled, loop, replace(compiled, run=counted))
    # Between giving the arguments and asking for the ids, nothing comes back from the device.
    with jax.transfer_guard_device_to_host("disallow"):
        ids, _, _ = CALLS[loop](session)
    assert calls == {loop: 1}
    assert session.numpy(ids).shape == (1, N)


class Chunked:
    """As CUDA graphs run a loop: eight trips between two looks, whatever the condition says meanwhile."""

    def __init__(self, state: Any) -> None:
        self.state = state
        self.looks = 0

    def entry(self, name: str, method: Callable[..., Any], arguments: Any) -> Any:
        return method(*arguments, self.state)

    def __call__(self, condition: Any, body: Any, carry: Any, most: int) -> Any:
        while True:
            self.looks += 1
            if not condition(*carry):
                return carry
            for _ in range(8):
                carry = body(*carry)


@pytest.mark.parametrize("end", [-1, 12])
@pytest.mark.parametrize("loop", CALLS)
def test_running_past_the_end_changes_nothing(loop: str, end: int) -> None:
    session, chunked = heard(model_on("torch"), 2), heard(model_on("torch"), 2)
    chunked.state.runner = Chunked(chunked.state)
    more = np.zeros((2, N), np.int32) if loop == "greedy" else np.repeat(UNIFORMS, 2, axis=1)
    for rows in ([[1, 2], [4, 9]], [[1, 2], [7, 0]]):
        want, got = (s.run_entry(loop, [rows, more, end]) for s in (session, chunked))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert chunked.state.runner.looks <= 2 * (1 + -(-(N - 1) // 8))


@pytest.mark.parametrize("loop", CALLS)
def test_on_cuda_the_host_looks_every_eight_tokens(loop: str) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    model = model_on("torch", device="cuda")
    plain = heard(model)
    session = model.new_session(graphs=True)
    session.load_state_dict(plain.state_dict())
    want = [plain.numpy(x) for x in CALLS[loop](plain)]
    for _ in range(2):
        session.graphs.looks = 0
        got = [session.numpy(x) for x in CALLS[loop](session)]
        assert session.graphs.looks == -(-N // 8)
        assert got[0].tolist() == want[0].tolist()
        assert got[1].tolist() == want[1].tolist()

"""tiny.en with its real weights on ONNX Runtime: the golden, the shared clips' texts, a whole decode in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import nest
from nest.tasks import pipeline

pytestmark = pytest.mark.weights

ROOT = Path(__file__).parents[3]
TEXTS = {
    "librivox_0870": "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his "
    "power to do for them.",
    "librivox_0920": "Had he married a more amiable woman, he might have been made still more respectable than he was.",
    "librivox_0930": "He might even have been made amiable himself.",
}
JFK = (
    "and so my fellow americans ask not what your country can do for you ask what you can do for your country"
)


@pytest.fixture(scope="module")
def model() -> Any:
    return nest.load("whisper-tiny.en", backend="onnx")


@pytest.fixture(scope="module")
def golden() -> Any:
    with np.load(ROOT / "tests" / "data" / "golden_jfk_tiny_en.npz") as arrays:
        return dict(arrays)


def test_the_golden(model: Any, golden: Any) -> None:
    states = model.encode(golden["mel"].reshape(1, 80, 3000))
    assert np.abs(states - golden["enc"].reshape(states.shape)).max() <= 1e-4
    logits = model.decode(golden["dec_ids"].reshape(1, -1), states)[0]
    assert np.abs(logits[:4] - golden["logits"].reshape(-1, logits.shape[1])[:4]).max() <= 1e-4
    np.testing.assert_array_equal(logits.argmax(-1), golden["logits_top1"].reshape(-1))


@pytest.mark.parametrize("clip", [*TEXTS, "jfk"])
def test_the_clips_are_read_right(model: Any, clip: str) -> None:
    text = pipeline(model)(ROOT / "assets" / "audio" / f"{clip}.wav").text
    if clip == "jfk":  # by its words: its punctuation is within 0.078 logits
        assert "".join(c for c in text.lower() if c.isalpha() or c == " ") == JFK
    else:
        assert text == TEXTS[clip]


def test_a_whole_decode_is_the_stepwise_one(model: Any, golden: Any) -> None:
    session = model.new_session()
    session.listen(golden["mel"].reshape(1, 80, 3000))
    prompt, end, most = [50257, 50362], 50256, 40
    bias = np.zeros(51864, np.float32)
    logits = session.prefill([prompt])
    expected: list[int] = []
    while (token := int(logits.argmax())) != end and len(expected) < most:
        expected.append(token)
        logits = session.step([[token]], len(prompt) + len(expected) - 1)
    out = np.zeros((1, most), np.int32)
    ids, counts, _ = session.greedy([prompt], out, end, bias, bias)
    assert ids[0, : counts[0]].tolist() == expected


def test_the_weights_of_all_entries_are_one_set(model: Any) -> None:
    places: dict[str, set[Any]] = {}
    for name in ("encode", "decode", "listen", "prefill", "step"):
        for value in model.graph(name).graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                tensor = value.const_value
                places.setdefault(value.name, set()).add((tensor.location, tensor.offset, tensor.length))
    assert len(places) == 167
    assert all(len(p) == 1 for p in places.values())
    assert sum(next(iter(p))[2] for p in places.values()) == 37_760_256 * 4

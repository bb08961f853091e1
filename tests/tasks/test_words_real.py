"""Times of words with published weights, beside the reference implementation's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nest
from nest.tasks import Word

pytestmark = pytest.mark.weights

AUDIO = Path(__file__).parents[2] / "assets" / "audio"
BACKENDS = ("torch", "onnx", "jax", "nnx")

# What `find_alignment` and `merge_punctuations` of openai-whisper 20250625 give for jfk.wav on these weights and the
# tokens of this text: word, start, end, probability.
WHISPER = [
    (" And", 0.0, 0.74, 0.71), (" so", 0.74, 1.06, 0.97), (" my", 1.06, 1.46, 0.54), (" fellow", 1.46, 1.76, 1.0),
    (" Americans", 1.76, 2.26, 0.86), (" ask", 2.26, 3.88, 0.67), (" not", 3.88, 4.56, 0.83),
    (" what", 4.56, 5.7, 0.91), (" your", 5.7, 6.02, 0.99), (" country", 6.02, 6.36, 1.0), (" can", 6.36, 6.76, 0.99),
    (" do", 6.76, 7.02, 1.0), (" for", 7.02, 7.26, 0.99), (" you,", 7.26, 8.26, 0.99), (" ask", 8.32, 8.66, 0.96),
    (" what", 8.66, 8.94, 0.99), (" you", 8.94, 9.28, 0.99), (" can", 9.28, 9.5, 1.0), (" do", 9.5, 9.72, 1.0),
    (" for", 9.72, 9.92, 1.0), (" your", 9.92, 10.22, 0.99), (" country.", 10.22, 10.48, 1.0),
]  # fmt: skip


def words_of(task: Any, clip: str) -> tuple[Word, ...]:
    made = task(AUDIO / f"{clip}.wav", word_timestamps=True)
    (segment,) = made.segments
    assert "".join(word.text for word in segment.words) == segment.text
    assert all(0 <= word.start < word.end <= made.duration for word in segment.words)
    assert all(0 < word.probability <= 1 for word in segment.words)
    return tuple(segment.words)


@pytest.mark.parametrize("backend", BACKENDS)
def test_words_are_those_of_the_reference_implementation(backend: str) -> None:
    task = nest.pipeline("whisper-tiny.en", backend=backend)
    made = words_of(task, "jfk")
    assert [word.text for word in made] == [text for text, *_ in WHISPER]
    for word, (_, start, end, probability) in zip(made, WHISPER, strict=True):
        assert word.start == pytest.approx(start, abs=0.03)
        assert word.end == pytest.approx(end, abs=0.03)
        assert word.probability == pytest.approx(probability, abs=0.02)
    for clip in ("librivox_0870", "librivox_0920", "librivox_0930"):
        words_of(task, clip)

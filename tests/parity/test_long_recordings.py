"""The long recording, by tiny.en's real weights: its text and times, and the reference library's long form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.tasks import audio

pytestmark = pytest.mark.weights

CLIPS = Path(__file__).parents[2] / "assets" / "audio"
ORDER = ("jfk", "librivox_0870", "librivox_0920", "librivox_0930")
ONCE = (
    " And so, my fellow Americans ask not what your country can do for you, ask what you can do for your country.",
    " And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power to do for "
    "them.",
    " Had he married a more amiable woman, he might have been made still more respectable than he was.",
    " He might even have been made amiable himself.",
)


@pytest.fixture(scope="module")
def clips() -> list[np.ndarray]:
    return [audio.load(CLIPS / f"{name}.wav") for name in ORDER]


@pytest.fixture(scope="module")
def recording(clips: list[np.ndarray]) -> np.ndarray:
    """The four clips twice, with half a second of silence between: 58.4 s."""
    silence = np.zeros(8000, np.float32)
    return np.concatenate([part for clip in clips * 2 for part in (clip, silence)])[:-8000]


@pytest.fixture(scope="module")
def begins(clips: list[np.ndarray]) -> list[float]:
    """When each clip begins in the recording, in seconds."""
    lengths = [len(clip) / 16000 + 0.5 for clip in clips * 2]
    return [sum(lengths[:index]) for index in range(len(lengths))]


@pytest.mark.parametrize("backend", ["onnx", "torch", "jax", "nnx"])
def test_the_long_recording(backend: str, recording: np.ndarray, begins: list[float]) -> None:
    made = nest.pipeline("whisper-tiny.en", backend=backend)(recording)
    assert [segment.text for segment in made.segments] == [*ONCE, *ONCE]
    assert made.duration == pytest.approx(len(recording) / 16000)
    edges = [time for segment in made.segments for time in (segment.start, segment.end)]
    assert edges == sorted(edges)
    assert all(segment.start < segment.end <= made.duration for segment in made.segments)
    # tiny.en hears whole seconds; the silence between is half of one.
    assert np.abs([s.start - b for s, b in zip(made.segments, begins, strict=True)]).max() < 1.0


def test_words_of_the_long_recording(recording: np.ndarray, begins: list[float]) -> None:
    made = nest.pipeline("whisper-tiny.en", backend="onnx")(recording, word_timestamps=True, vad=True)
    assert all("".join(word.text for word in s.words) == s.text for s in made.segments)
    words = [word for segment in made.segments for word in segment.words]
    edges = [edge for word in words for edge in (word.start, word.end)]
    assert edges == sorted(edges)
    assert edges[-1] <= made.duration
    # Said twice, the same time after their clip begins.
    for said in (" fellow", " Dashwood", " amiable"):
        places = [word.start for word in words if word.text.strip(".,") == said]
        half = len(places) // 2
        assert half
        later = np.subtract(places[half:], places[:half])
        assert later == pytest.approx([begins[4]] * half, abs=0.2)


@pytest.mark.parametrize("backend", ["onnx", "torch", "jax", "nnx"])
def test_the_long_recording_as_a_batch(backend: str, recording: np.ndarray, begins: list[float]) -> None:
    task = nest.pipeline("whisper-tiny.en", backend=backend)
    made = task(recording, batch_size=2, vad=True, word_timestamps=backend == "onnx")
    assert _words(made.text) == _words("".join([*ONCE, *ONCE]))
    edges = [time for segment in made.segments for time in (segment.start, segment.end)]
    assert edges == sorted(edges)
    assert all(segment.start < segment.end <= made.duration for segment in made.segments)
    assert np.abs([s.start - b for s, b in zip(made.segments, begins, strict=True)]).max() < 1.0
    if backend == "onnx":
        said = [word.start for segment in made.segments for word in segment.words if word.text == " fellow"]
        assert np.diff(said) == pytest.approx([begins[4]], abs=0.2)


def _words(text: str) -> list[str]:
    """Commas are close calls, which the first sentence of a window decides anew."""
    return text.replace(",", "").split()


@pytest.mark.reference
def test_the_text_is_that_of_the_library_s_long_form(
    recording: np.ndarray, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from transformers import GenerationConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    folder = tmp_path_factory.mktemp("published")
    model = nest.load("whisper-tiny.en", backend="torch")
    nest.save(model, folder, "hf")
    task = nest.pipeline(model)
    rules = task.rules
    library: Any = WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="sdpa").eval()
    library.generation_config = GenerationConfig(
        eos_token_id=rules.end,
        bos_token_id=rules.end,
        pad_token_id=rules.end,
        decoder_start_token_id=rules.start,
        suppress_tokens=list(rules.suppress),
        begin_suppress_tokens=list(rules.begin_suppress),
        no_timestamps_token_id=rules.no_timestamps,
        prev_sot_token_id=rules.start_of_previous,
        max_initial_timestamp_index=50,
        max_length=448,
        is_multilingual=False,
    )
    features = WhisperFeatureExtractor()(
        recording,
        sampling_rate=16000,
        return_tensors="pt",
        truncation=False,
        padding="longest",
        return_attention_mask=True,
    )
    (ids,) = library.generate(
        features.input_features, attention_mask=features.attention_mask, return_timestamps=True
    )
    text = task.tokenizer.decode(int(token) for token in ids if token < rules.end)
    assert text.strip() == task(recording).text

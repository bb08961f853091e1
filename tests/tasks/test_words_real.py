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


@pytest.mark.reference
def test_words_begin_where_transformers_has_them() -> None:
    """Its time of a token is where that token ends: it leaves out the row in which the first one is chosen."""
    import torch
    from transformers import GenerationConfig

    from nest.bench.whisper_parity import CASES, arrays_of, find, reference_model
    from nest.tasks.audio import load
    from nest.tasks.mel import log_mel

    task = nest.pipeline("whisper-tiny.en", backend="torch")
    rules = task.rules
    library = reference_model(find("whisper-tiny.en"), arrays_of(CASES[0]))
    library.set_attn_implementation("eager")
    make: Any = GenerationConfig
    library.generation_config = make(
        alignment_heads=[list(pair) for pair in rules.alignment_heads], median_filter_width=7,
        suppress_tokens=list(rules.suppress), begin_suppress_tokens=list(rules.begin_suppress),
        no_timestamps_token_id=rules.no_timestamps, decoder_start_token_id=rules.start, eos_token_id=rules.end,
        pad_token_id=rules.end, is_multilingual=False, max_length=rules.positions, return_timestamps=False,
        forced_decoder_ids=None,
    )  # fmt: skip
    samples = load(AUDIO / "jfk.wav", target=16000)
    heard = torch.zeros(1, 3000, dtype=torch.long)
    heard[:, : len(samples) // 160] = 1
    made = library.generate(
        torch.from_numpy(log_mel(samples, task.mel)),
        attention_mask=heard,
        return_token_timestamps=True,
        return_dict_in_generate=True,
    )
    tokens, times = made["sequences"][0].tolist(), made["token_timestamps"][0].tolist()
    starts = {}
    text = ""
    for token, before in zip(tokens[2:], times[1:], strict=False):
        if token < rules.end:
            starts[len(text)] = before
            text += task.tokenizer.decode([token])
    words = words_of(task, "jfk")
    assert text == "".join(word.text for word in words)
    at = len(words[0].text) + len(words[1].text)
    for word in words[2:]:
        assert word.start == pytest.approx(starts[at], abs=0.15), word
        at += len(word.text)


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

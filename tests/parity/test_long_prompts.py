"""An initial prompt of 500 words, by tiny.en's real weights: its end counts, and no backend stumbles over it."""

from __future__ import annotations

from pathlib import Path

import pytest

import nest

pytestmark = pytest.mark.weights

CLIP = Path(__file__).parents[2] / "assets" / "audio" / "librivox_0930.wav"
PHRASE = "the river said that this old man had been there with his three friends from other towns before they went home"
WORDS = PHRASE.split(" ")
PROMPT = " ".join(WORDS[number * 8 % len(WORDS)] for number in range(500))


@pytest.mark.parametrize(
    ("backend", "timed"), [("onnx", True), ("torch", True), ("jax", True), ("nnx", True), ("onnx", False)]
)
def test_a_prompt_of_500_words_is_cut_to_its_end(backend: str, timed: bool) -> None:
    speech = nest.pipeline("whisper-tiny.en", backend=backend)
    ids = speech.tokenizer.encode(f" {PROMPT}")
    kept = ids[-(speech.rules.positions // 2 - 1) :]
    cut = speech.tokenizer.decode(kept).strip()
    assert (len(ids), len(kept), speech.tokenizer.encode(f" {cut}")) == (500, 223, kept)
    made, same = (
        speech(CLIP, initial_prompt=text, timestamps=timed, temperature=0) for text in (PROMPT, cut)
    )
    assert made == same
    # The prompt is heard: its style has neither capitals nor full stops.
    assert made.text == "he might even have been made amiable himself"

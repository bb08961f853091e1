"""tiny.en with its real weights: the golden, cached against uncached decoding, batches, sessions."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest

pytestmark = pytest.mark.weights

ROOT = Path(__file__).parents[2]
AUDIO = ROOT / "assets" / "audio"
TEXTS = {
    "jfk": "And so my fellow Americans ask not what your country can do for you, ask what you can do for your "
    "country.",
    "librivox_0870": "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his "
    "power to do for them.",
    "librivox_0920": "Had he married a more amiable woman, he might have been made still more respectable than he was.",
    "librivox_0930": "He might even have been made amiable himself.",
}


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    """The reference library's f32 results on jfk.wav: mel, encoder states, ids, logits."""
    with np.load(ROOT / "tests" / "data" / "golden_jfk_tiny_en.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def model() -> Any:
    return nest.load("whisper-tiny.en", backend="torch")


def test_the_golden_encoder_states(model: Any, golden: dict[str, Any]) -> None:
    states = model.encode(golden["mel"][None]).detach().numpy()
    assert np.abs(states[0] - golden["enc"]).max() <= 1e-4


def test_the_golden_logits(model: Any, golden: dict[str, Any]) -> None:
    logits = model.decode(golden["dec_ids"][None], golden["enc"][None]).detach().numpy()[0]
    assert np.abs(logits[:4] - golden["logits"]).max() <= 1e-4
    assert np.abs(logits.max(-1) - golden["logits_max"]).max() <= 1e-4
    assert (logits.argmax(-1) == golden["logits_top1"]).all()


@pytest.mark.parametrize("clip", TEXTS)
def test_the_shipped_clips_are_transcribed(model: Any, clip: str) -> None:
    assert nest.pipeline(model)(AUDIO / f"{clip}.wav").text == TEXTS[clip]


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_cached_and_uncached_tokens_are_identical(backend: str, golden: dict[str, Any]) -> None:
    session = nest.load("whisper-tiny.en", backend=backend).new_session()
    steps = 12 if backend == "reference" else 24
    states = session.numpy(session.listen(golden["mel"][None]))
    cached = [50257, 50362]
    logits = session.numpy(session.prefill([cached]))
    for _ in range(steps):
        cached.append(int(logits[0].argmax()))
        logits = session.numpy(session.step([[cached[-1]]], len(cached) - 1))
    uncached = [50257, 50362]
    for _ in range(steps):
        uncached.append(int(session.numpy(session.decode([uncached], states))[0, -1].argmax()))
    assert cached == uncached


def test_rows_of_a_batch_are_as_they_are_alone(model: Any, golden: dict[str, Any]) -> None:
    """Two rows with prompts of unequal length, right-padded, at positions of their own."""
    quiet = np.full_like(golden["mel"], golden["mel"].min())
    prompts = [[50257, 50362], [50257, 50362, 843, 523]]
    alone = []
    for mel, prompt in zip((golden["mel"], quiet), prompts, strict=True):
        session = model.new_session()
        session.listen(mel[None])
        first = session.numpy(session.prefill([prompt]))
        alone.append((first, session.numpy(session.step([[616]], len(prompt)))))
    batch = model.new_session(Batch=2)
    batch.listen(np.stack([golden["mel"], quiet]))
    padded = [prompts[0] + [0, 0], prompts[1]]
    first = batch.numpy(batch.prefill(padded, lengths=[2, 4]))
    second = batch.numpy(batch.step([[616], [616]], [2, 4]))
    for row in range(2):
        np.testing.assert_allclose(first[row], alone[row][0][0], atol=2e-4)
        np.testing.assert_allclose(second[row], alone[row][1][0], atol=2e-4)


def test_sessions_share_no_caches_between_threads(model: Any, golden: dict[str, Any]) -> None:
    quiet = np.full_like(golden["mel"], golden["mel"].min())
    mels = [golden["mel"], quiet] * 4

    def decode(mel: Any) -> list[int]:
        session = model.new_session()
        session.listen(mel[None])
        tokens = [50257, 50362]
        logits = session.numpy(session.prefill([tokens]))
        for _ in range(5):
            tokens.append(int(logits[0].argmax()))
            logits = session.numpy(session.step([[tokens[-1]]], len(tokens) - 1))
        return tokens

    expected = [decode(mel) for mel in mels[:2]] * 4
    results: dict[int, list[int]] = {}
    threads = [
        threading.Thread(target=lambda i=i, mel=mel: results.update({i: decode(mel)}))
        for i, mel in enumerate(mels)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[i] for i in range(len(mels))] == expected
    assert expected[0] != expected[1]


def test_alignment_weights_are_distributions_that_move_forward(model: Any, golden: dict[str, Any]) -> None:
    session = model.new_session()
    session.listen(golden["mel"][None])
    weights = session.numpy(session.align([golden["dec_ids"]]))
    assert weights.shape == (1, 8, len(golden["dec_ids"]), 1500)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    # Words are spoken in order: the audio that each is heard in, within the 5.5 s * 100 frames of speech.
    heard = weights[0].mean(0)[1:26, :550].argmax(-1)
    assert np.corrcoef(np.arange(25), heard)[0, 1] > 0.95


@pytest.mark.reference
def test_alignment_weights_are_the_reference_library_s(model: Any, golden: dict[str, Any]) -> None:
    import torch

    from nest.bench.whisper_parity import CASES, arrays_of, find, reference_model

    library = reference_model(find("whisper-tiny.en"), arrays_of(CASES[0]))
    library.set_attn_implementation("eager")
    session = model.new_session()
    states = session.numpy(session.listen(golden["mel"][None]))
    with torch.no_grad():
        theirs = library(
            encoder_outputs=(torch.from_numpy(states),),
            decoder_input_ids=torch.from_numpy(golden["dec_ids"][None]).long(),
            output_attentions=True,
        ).cross_attentions
    heads = model.entry.manifest.generation.alignment_heads
    expected = np.stack([theirs[layer][0, head].numpy() for layer, head in heads])
    np.testing.assert_allclose(session.numpy(session.align([golden["dec_ids"]]))[0], expected, atol=1e-5)


def test_a_copy_and_a_pickle_transcribe_alike(model: Any) -> None:
    copied, pickled = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for other in (copied, pickled):
        assert list(other.state_dict()) == list(model.state_dict())
        assert nest.pipeline(other)(AUDIO / "librivox_0930.wav").text == TEXTS["librivox_0930"]


def test_half_precision_keeps_the_text_and_has_no_nan(golden: dict[str, Any]) -> None:
    model = nest.load("whisper-tiny.en", backend="torch", dtype="bf16")
    states = model.encode(golden["mel"][None])
    assert str(states.dtype) == "torch.bfloat16"
    assert bool(states.isfinite().all())
    assert nest.pipeline(model)(AUDIO / "librivox_0870.wav").text.startswith(
        "And Mr. John Dashwood had then leisure"
    )

"""The tasks beside the reference library: its feature extractor, and its generation with random weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nest.tasks.decode import greedy, language_probabilities
from nest.tasks.mel import MelSettings, log_mel, mel_filters
from nest.tasks.rules import GenerationRules, prompt_ids

from .scripted import END, ENGLISH, GERMAN, NO_TIMES, START, TRANSCRIBE, TRANSLATE

pytestmark = pytest.mark.reference

AUDIO = {
    "noise": (480000, 0.1),
    "almost a window": (479990, 1.0),
    "quiet": (90001, 1e-4),
    "a tenth of a second": (1600, 0.1),
    "one sample": (1, 0.5),
}


@pytest.mark.parametrize("bins", [80, 128])
def test_filters(bins: int) -> None:
    from transformers import WhisperFeatureExtractor

    expected = WhisperFeatureExtractor(feature_size=bins).mel_filters
    np.testing.assert_allclose(mel_filters(MelSettings(bins=bins)), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bins", [80, 128])
@pytest.mark.parametrize("kind", [*AUDIO, "speech", "silence"])
def test_spectrograms(bins: int, kind: str, golden: dict[str, np.ndarray]) -> None:
    from transformers import WhisperFeatureExtractor

    audio = {"speech": golden["audio"], "silence": np.zeros(9999, dtype=np.float32)}.get(kind)
    if audio is None:
        samples, scale = AUDIO[kind]
        audio = (np.random.default_rng(7).standard_normal(samples) * scale).astype(np.float32)
    extractor = WhisperFeatureExtractor(feature_size=bins)
    expected = extractor(audio, sampling_rate=16000, return_tensors="np").input_features
    result = log_mel(audio, MelSettings(bins=bins))
    assert result.shape == expected.shape
    # The library transforms in f32, whose rounding differs between processors and shows at the quietest bins.
    distance = np.abs(result - expected)
    assert distance.max() < 1e-4
    assert (distance > 2e-5).sum() <= 3


class ReferenceSession:
    """A session over the reference library's model that keeps tokens instead of caches."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def listen(self, mel: np.ndarray) -> None:
        import torch

        self.states = self.model.model.encoder(torch.from_numpy(mel)).last_hidden_state

    def prefill(self, tokens: np.ndarray) -> Any:
        import torch

        self.tokens = tokens
        ids = torch.from_numpy(tokens).long()
        states = self.model.model.decoder(input_ids=ids, encoder_hidden_states=self.states, use_cache=False)
        return self.model.proj_out(states.last_hidden_state[:, -1])

    def step(self, token: np.ndarray, pos: np.ndarray) -> Any:
        assert (pos == self.tokens.shape[1]).all()
        return self.prefill(np.concatenate([self.tokens, token], axis=1))

    def numpy(self, x: Any) -> np.ndarray:
        return x.detach().numpy()


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices this small only lose by being shared among threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> Any:
    """A small multilingual Whisper with random weights, large enough in scale that its tokens vary."""
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    sizes = {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_source_positions": 50,
        "max_target_positions": 40,
        "num_mel_bins": 8,
        "d_model": 24,
        "vocab_size": 300,
        "init_std": 0.5,
    }
    special = {"pad_token_id": END, "bos_token_id": END, "eos_token_id": END, "decoder_start_token_id": START}
    model = WhisperForConditionalGeneration(WhisperConfig(**sizes, **special)).eval()
    return model.requires_grad_(False)


@pytest.fixture(scope="module")
def random_rules() -> GenerationRules:
    # Times, which random weights emit as well, would make the reference library seek in the audio.
    suppress = [*np.random.default_rng(1).choice(250, 90, replace=False).tolist(), *range(START, 300)]
    return GenerationRules(
        start=START,
        end=END,
        prompt=(START, NO_TIMES),
        no_timestamps=NO_TIMES,
        first_timestamp=NO_TIMES + 1,
        positions=40,
        max_tokens=30,
        suppress=tuple(suppress),
        begin_suppress=(1, END),
        languages={"en": ENGLISH, "de": GERMAN},
        tasks={"transcribe": TRANSCRIBE, "translate": TRANSLATE},
    )


def configure(model: Any, rules: GenerationRules) -> None:
    """Give the reference library the same rules."""
    from transformers import GenerationConfig

    languages = {
        "lang_to_id": {f"<|{code}|>": token for code, token in rules.languages.items()},
        "task_to_id": dict(rules.tasks),
    }
    model.generation_config = GenerationConfig(
        eos_token_id=rules.end,
        pad_token_id=rules.end,
        decoder_start_token_id=rules.start,
        suppress_tokens=list(rules.suppress),
        begin_suppress_tokens=list(rules.begin_suppress),
        no_timestamps_token_id=rules.no_timestamps,
        is_multilingual=rules.multilingual,
        max_new_tokens=rules.max_tokens,
        **(languages if rules.multilingual else {}),
    )


def mels(rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, 8, 100)).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("language", "task"), [("en", "transcribe"), ("de", "transcribe"), ("de", "translate")]
)
def test_tokens_of_a_batch(
    model: Any, random_rules: GenerationRules, seed: int, language: str, task: str
) -> None:
    import torch

    configure(model, random_rules)
    mel = mels(3, seed)
    wanted = model.generate(torch.from_numpy(mel), language=language, task=task)
    session = ReferenceSession(model)
    session.listen(mel)
    prompt = np.array([prompt_ids(random_rules, language, task)] * 3, dtype=np.int32)
    rows = greedy(session, prompt, random_rules)
    assert [list(row) for row in rows] == [[int(t) for t in row if t != END] for row in wanted]
    assert len({token for row in rows for token in row}) > 5


@pytest.fixture(scope="module")
def weights(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same model as a checkpoint."""
    from safetensors.torch import save_file

    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    save_file({n: t for n, t in model.state_dict().items() if n != "proj_out.weight"}, path)
    return path


@pytest.mark.parametrize("backend", ["torch", "jax", "nnx", "onnx", "reference"])
def test_whole_decodes_give_the_tokens_of_the_library(
    model: Any, weights: Any, random_rules: GenerationRules, backend: str
) -> None:
    import torch

    import nest

    sizes = {
        "Mels": 8, "Frames": 100, "D": 24, "Heads": 2, "Inner": 48, "EncoderLayers": 2, "DecoderLayers": 2,
        "Vocab": 300, "MaxTokens": 40,
    }  # fmt: skip
    session = nest.load("whisper-tiny", backend=backend, weights=weights, **sizes).new_session(Batch=3)
    configure(model, random_rules)
    assert session.whole_decodes
    for seed, language, task in ((0, "en", "transcribe"), (1, "de", "translate"), (2, "de", "transcribe")):
        mel = mels(3, seed)
        wanted = model.generate(torch.from_numpy(mel), language=language, task=task)
        session.listen(mel)
        prompt = np.array([prompt_ids(random_rules, language, task)] * 3, dtype=np.int32)
        rows = greedy(session, prompt, random_rules)
        assert [list(row) for row in rows] == [[int(t) for t in row if t != END] for row in wanted]


def test_tokens_of_an_english_model(model: Any, random_rules: GenerationRules) -> None:
    import torch

    english = replace(random_rules, languages={}, tasks={})
    configure(model, english)
    mel = mels(1, 9)
    wanted = model.generate(torch.from_numpy(mel))
    session = ReferenceSession(model)
    session.listen(mel)
    (row,) = greedy(session, np.array([english.prompt], dtype=np.int32), english)
    assert list(row) == [int(token) for token in wanted[0] if token != END]


def test_the_detected_language(model: Any, random_rules: GenerationRules) -> None:
    import torch

    configure(model, random_rules)
    mel = mels(6, 3)
    wanted = model.detect_language(torch.from_numpy(mel))
    session = ReferenceSession(model)
    session.listen(mel)
    likely = language_probabilities(session, random_rules, rows=6)
    assert [random_rules.languages[next(iter(row))] for row in likely] == wanted.tolist()
    assert len(set(wanted.tolist())) == 2

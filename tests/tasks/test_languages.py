"""Languages of recordings, with scripted sessions: where they are detected, and what of them is known afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nest.errors import InputError
from nest.registry import find
from nest.tasks._settings import generation_rules
from nest.tasks.languages import NAMES, language_code
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import MULTILINGUAL, TRANSLATING, GenerationRules
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Transcriber

from .scripted import (
    END,
    ENGLISH,
    FIRST_TIME,
    GERMAN,
    NO_TIMES,
    START,
    TRANSCRIBE,
    TRANSLATE,
    ScriptedModel,
    ScriptedSession,
    tokens_of,
)

PREVIOUS = 254
MEL = MelSettings(bins=4, rate=1000, n_fft=40, hop=10, window_seconds=2.0)
RULES = GenerationRules(
    start=START, end=END, prompt=(START, ENGLISH, TRANSCRIBE, NO_TIMES), no_timestamps=NO_TIMES,
    first_timestamp=FIRST_TIME, positions=80, max_tokens=40, start_of_previous=PREVIOUS,
    languages={"en": ENGLISH, "de": GERMAN}, tasks={"transcribe": TRANSCRIBE, "translate": TRANSLATE},
)  # fmt: skip
VOCABULARY = FIRST_TIME + 101
SURE = 1 / (1 + np.exp(-10))
"""Of a scripted token among two."""


def seconds(count: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, round(count * MEL.rate)).astype(np.float32)


def scripted(*scripts: tuple[int, ...]) -> ScriptedSession:
    return ScriptedSession(*([script] for script in scripts), vocabulary=VOCABULARY)


def said(text: str, start: float, end: float) -> tuple[int, ...]:
    return (FIRST_TIME + round(start / 0.02), *tokens_of(text), FIRST_TIME + round(end / 0.02))


def transcriber(
    session: ScriptedSession, tokenizer: Tokenizer, rules: GenerationRules = RULES
) -> Transcriber:
    return Transcriber(ScriptedModel(session), tokenizer, rules, MEL)


@pytest.mark.parametrize("timed", [True, False])
def test_a_language_is_detected_where_there_is_something_to_hear(tokenizer: Tokenizer, timed: bool) -> None:
    text = said(" ja", 0, 1) if timed else tokens_of(" ja")
    session = scripted((GERMAN,), text)
    audio = np.concatenate([np.zeros(6000, np.float32), seconds(1)])
    made = transcriber(session, tokenizer)(audio, timestamps=timed)
    assert (made.text, made.language) == ("ja", "de")
    assert made.language_probabilities == pytest.approx({"de": SURE, "en": 1 - SURE})
    assert list(made.language_probabilities) == ["de", "en"]
    assert made.language_probability == pytest.approx(SURE)
    # Heard once, for its language and for its text.
    np.testing.assert_array_equal(session.mels, [log_mel(audio[6000:], MEL)])


def test_where_somebody_speaks_decides_and_not_what_comes_before(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nest.tasks import transcript_stream, voice

    class Voice:
        """Hears who is louder than the noise."""

        rest = np.zeros(0, np.float32)

        def hear(self, samples: np.ndarray) -> np.ndarray:
            held = np.concatenate([self.rest, samples])
            whole = len(held) // voice.CHUNK * voice.CHUNK
            self.rest = held[whole:]
            return np.abs(held[:whole].reshape(-1, voice.CHUNK)).max(axis=1)

        def finish(self) -> np.ndarray:
            return np.zeros(1, np.float32)

    class Detector:
        def start(self) -> Voice:
            return Voice()

    monkeypatch.setattr(transcript_stream, "detector", Detector)
    mel = replace(MEL, rate=16000, n_fft=400, hop=160, window_seconds=6.0)
    random = np.random.default_rng(0)
    audio = random.uniform(-0.1, 0.1, 16000 * 12).astype(np.float32)
    audio[16000 * 6 : 16000 * 7] *= 8
    session = scripted((GERMAN,), said(" ja", 0.3, 1.3))
    made = Transcriber(ScriptedModel(session), tokenizer, RULES, mel)(audio, vad=True)
    assert (made.text, made.language) == ("ja", "de")
    # From 0.3 s before the first loud chunk to 0.3 s after the last one.
    first, last = 16000 * 6 // voice.CHUNK * voice.CHUNK, -(-16000 * 7 // voice.CHUNK) * voice.CHUNK
    np.testing.assert_array_equal(session.mels, [log_mel(audio[first - 4800 : last + 4800], mel)])
    found = Transcriber(ScriptedModel(scripted((GERMAN,))), tokenizer, RULES, mel).detect_language(
        audio, vad=True
    )
    assert list(found) == ["de", "en"]


def test_a_language_that_is_given_is_not_detected(tokenizer: Tokenizer) -> None:
    session = scripted(said(" ja", 0, 1))
    made = transcriber(session, tokenizer)(seconds(1), timestamps=True, language="German")
    assert (made.language, made.language_probabilities, made.language_probability) == ("de", None, None)
    assert [prompt.tolist() for prompt in session.prompts] == [[[START, GERMAN, TRANSCRIBE]]]


@pytest.mark.parametrize("languages", [{}, {"en": ENGLISH}])
def test_the_only_language_of_a_model_is_not_detected(
    tokenizer: Tokenizer, languages: dict[str, int]
) -> None:
    rules = replace(RULES, languages=languages, prompt=(START, NO_TIMES))
    session = scripted(said(" yes", 0, 1))
    made = transcriber(session, tokenizer, rules)(seconds(1), timestamps=True)
    assert (made.text, made.language, made.language_probabilities) == ("yes", "en", None)
    with pytest.raises(
        InputError, match=r"one language only, English, and tells none apart\. Use a multiling"
    ):
        transcriber(scripted(), tokenizer, rules).detect_language(seconds(1))


def test_the_language_of_silence_is_not_known(tokenizer: Tokenizer) -> None:
    made = transcriber(scripted(), tokenizer)(np.zeros(7000, np.float32))
    assert (made.text, made.language, made.language_probabilities) == ("", None, None)
    made = transcriber(scripted(), tokenizer)(np.zeros(7000, np.float32), language="de")
    assert (made.text, made.language) == ("", "de")


def test_channels_have_languages_of_their_own(tokenizer: Tokenizer) -> None:
    session = scripted((GERMAN,), said(" ja", 0, 0.4), (ENGLISH,), said(" yes", 0.5, 1))
    audio = np.stack([np.zeros(1000, np.float32), seconds(1), seconds(1, seed=1)])
    stream = transcriber(session, tokenizer).stream(audio, channels="split", timestamps=True)
    assert (stream.language, stream.language_probabilities) == (None, None)
    assert (next(stream).text, stream.language) == (" ja", "de")
    assert (next(stream).text, stream.language) == (" yes", "en")
    assert stream.language_probabilities == pytest.approx({"en": SURE, "de": 1 - SURE})
    made = stream.result
    assert [(s.channel, s.language, s.text) for s in made.segments] == [(1, "de", " ja"), (2, "en", " yes")]
    assert made.language == "de"
    assert made.language_probability == pytest.approx(SURE)


def test_a_language_can_be_asked_for_alone(tokenizer: Tokenizer) -> None:
    session = scripted((GERMAN,), (ENGLISH,))
    made = transcriber(session, tokenizer)
    audio = seconds(9)
    assert made.detect_language(audio, start=4.0) == pytest.approx({"de": SURE, "en": 1 - SURE})
    assert list(made.detect_language(audio, duration=1.5)) == ["en", "de"]
    np.testing.assert_array_equal(session.mels[0], log_mel(audio[4000:6000], MEL))
    np.testing.assert_array_equal(session.mels[1], log_mel(audio[:1500], MEL))
    for silent, message in ((np.zeros(9000), "nothing to hear in"), (seconds(0.05), "too short for a word")):
        with pytest.raises(InputError, match=message):
            made.detect_language(silent)
    with pytest.raises(InputError, match="vad=True is for models at 16000 samples a second"):
        made.detect_language(audio, vad=True)


def test_one_recording_knows_nothing_of_the_one_before(tokenizer: Tokenizer) -> None:
    session = scripted((GERMAN,), said(" ja", 0, 1), (ENGLISH,), said(" yes", 0, 1), said(" oh", 0, 1))
    made = transcriber(session, tokenizer)
    found = [made(seconds(1, seed), timestamps=True) for seed in range(2)]
    found.append(made(seconds(1), timestamps=True, language="de", task="translate"))
    assert [(one.text, one.language) for one in found] == [("ja", "de"), ("yes", "en"), ("oh", "de")]
    assert [prompt[0].tolist() for prompt in session.prompts] == [
        [START], [START, GERMAN, TRANSCRIBE], [START], [START, ENGLISH, TRANSCRIBE], [START, GERMAN, TRANSLATE],
    ]  # fmt: skip


@pytest.mark.parametrize("timed", [True, False])
def test_an_initial_prompt_stands_before_language_and_task(tokenizer: Tokenizer, timed: bool) -> None:
    rest = () if timed else (NO_TIMES,)

    class Padded(ScriptedSession):
        def prefill(self, tokens: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
            return super().prefill(tokens if lengths is None else tokens[:, : int(lengths[0])])

    session = Padded([said(" a", 0, 2)], [said(" b", 0, 1)], vocabulary=VOCABULARY)
    wishes: dict[str, Any] = {"language": "de", "initial_prompt": " names "}
    Transcriber(ScriptedModel(session), tokenizer, RULES, MEL)(
        seconds(3), timestamps=timed, condition_on_previous_text=False, **wishes
    )
    prompt = (START, GERMAN, TRANSCRIBE, *rest)
    assert [tuple(p[0].tolist()) for p in session.prompts] == [
        (PREVIOUS, *tokenizer.encode(" names"), *prompt), prompt,
    ]  # fmt: skip


def test_models_that_are_named_instead_are_there() -> None:
    for name in MULTILINGUAL.split(" or "):
        assert len(generation_rules(find(name)).languages) > 90
    for name in TRANSLATING.split(" or "):
        assert "translate" in generation_rules(find(name)).tasks


@pytest.mark.reference
def test_names_are_those_of_the_library() -> None:
    from transformers.models.whisper.tokenization_whisper import LANGUAGES, TO_LANGUAGE_CODE

    assert {name: language_code(name) for name in TO_LANGUAGE_CODE} == TO_LANGUAGE_CODE
    assert NAMES.keys() == LANGUAGES.keys()

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nest.errors import InputError
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Segment, Transcriber, Transcript

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

# A window of 2000 samples keeps the spectrograms small.
MEL = MelSettings(bins=4, rate=1000, n_fft=40, hop=10, window_seconds=2.0)


def seconds(count: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, round(count * MEL.rate)).astype(np.float32)


@pytest.fixture
def multilingual(rules: GenerationRules) -> GenerationRules:
    return replace(
        rules,
        languages={"en": ENGLISH, "de": GERMAN},
        tasks={"transcribe": TRANSCRIBE, "translate": TRANSLATE},
    )


def test_one_window(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    session = ScriptedSession([tokens_of(" Hello")])
    audio = seconds(1.5)
    transcript = Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(audio)
    assert transcript == Transcript(
        text="Hello",
        tokens=tokens_of(" Hello"),
        language="en",
        duration=1.5,
        segments=(Segment(0.0, 1.5, " Hello", tokens_of(" Hello")),),
    )
    np.testing.assert_array_equal(session.mels, [log_mel(audio, MEL)])
    np.testing.assert_array_equal(session.prompts, [[[START, NO_TIMES]]])


def test_windows_follow_one_another(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    session = ScriptedSession([tokens_of(" one")], [tokens_of(" two")], [tokens_of(" go!")])
    audio = seconds(5)
    transcript = Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(audio, timestamps=False)
    assert transcript.text == "one two go!"
    assert transcript.tokens == tokens_of(" one two go!")
    assert [(part.start, part.end) for part in transcript.segments] == [(0, 2), (2, 4), (4, 5)]
    cuts = [audio[:2000], audio[2000:4000], audio[4000:]]
    np.testing.assert_array_equal(session.mels, [log_mel(cut, MEL) for cut in cuts])


@pytest.mark.parametrize(("length", "windows"), [(0.101, 1), (2.0, 1), (2.1, 1), (2.101, 2)])
def test_a_remainder_too_short_for_a_word_is_left_out(
    tokenizer: Tokenizer, rules: GenerationRules, length: float, windows: int
) -> None:
    session = ScriptedSession([tokens_of("a")], [tokens_of("b")])
    transcript = Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(seconds(length), timestamps=False)
    assert transcript.text == "ab"[:windows]
    assert transcript.duration == pytest.approx(length)


@pytest.mark.parametrize("length", [0.001, 0.1])
def test_a_recording_too_short_for_a_word_is_refused(
    tokenizer: Tokenizer, rules: GenerationRules, length: float
) -> None:
    session = ScriptedSession([tokens_of("you")])
    with pytest.raises(InputError, match=rf"The recording is {length} s long .* too short for a word"):
        Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(seconds(length))
    assert session.mels == []


@pytest.mark.parametrize("count", ["3", 2.5, 0, -1, True])
def test_max_tokens_is_a_positive_integer(
    tokenizer: Tokenizer, rules: GenerationRules, count: object
) -> None:
    session = ScriptedSession([tokens_of("a")])
    with pytest.raises(InputError, match=rf"max_tokens={count!r} is no number of tokens"):
        Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(seconds(1), max_tokens=count)


def test_a_transcriber_says_what_it_is(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    made = Transcriber(ScriptedModel(ScriptedSession()), tokenizer, rules, MEL)
    assert repr(made) == "<Transcriber of ScriptedModel on a backend of its own>"


def test_audio_of_another_rate_is_converted(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    session = ScriptedSession([tokens_of("a")])
    transcript = Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(seconds(1), rate=4000)
    assert transcript.duration == 0.25


def test_a_character_cut_off_by_a_window_leaves_the_next_one_whole(
    tokenizer: Tokenizer, rules: GenerationRules
) -> None:
    session = ScriptedSession([tokens_of("aé")[:-1]], [tokens_of("é")])
    assert (
        Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(seconds(4), timestamps=False).text == "aé"
    )


def test_times_that_the_model_emits_are_no_text(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    session = ScriptedSession([(FIRST_TIME, *tokens_of("a"), FIRST_TIME + 9)])
    transcript = Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(seconds(1))
    assert transcript.text == "a"
    assert transcript.tokens == tokens_of("a")


def test_the_language_is_detected_in_the_first_window(
    tokenizer: Tokenizer, multilingual: GenerationRules
) -> None:
    session = ScriptedSession([(GERMAN,)], [tokens_of("ja")], [tokens_of("nein")])
    transcript = Transcriber(ScriptedModel(session), tokenizer, multilingual, MEL)(
        seconds(4), timestamps=False
    )
    assert (transcript.text, transcript.language) == ("janein", "de")
    prompts = [[[START]], *[[[START, GERMAN, TRANSCRIBE, NO_TIMES]]] * 2]
    assert [prompt.tolist() for prompt in session.prompts] == prompts


def test_two_languages_one_after_another(tokenizer: Tokenizer, multilingual: GenerationRules) -> None:
    """Through one session: nothing of the first is left."""
    session = ScriptedSession(
        [(GERMAN,)], [tokens_of("ja")], [(ENGLISH,)], [tokens_of("yes")], [tokens_of("da")]
    )
    transcriber = Transcriber(ScriptedModel(session), tokenizer, multilingual, MEL)
    made = [transcriber(seconds(1)), transcriber(seconds(1)), transcriber(seconds(1), language="de")]
    assert [(each.text, each.language) for each in made] == [("ja", "de"), ("yes", "en"), ("da", "de")]
    assert [prompt[0].tolist() for prompt in session.prompts[1::2]] == [
        [START, language, TRANSCRIBE, NO_TIMES] for language in (GERMAN, ENGLISH)
    ]


def test_a_given_language_and_task_are_used(tokenizer: Tokenizer, multilingual: GenerationRules) -> None:
    session = ScriptedSession([tokens_of("yes")])
    transcriber = Transcriber(ScriptedModel(session), tokenizer, multilingual, MEL)
    assert transcriber(seconds(1), language="de", task="translate").language == "de"
    assert session.prompts[0].tolist() == [[START, GERMAN, TRANSLATE, NO_TIMES]]


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"language": "xx"}, "The language 'xx' is none of this model's"),
        ({"task": "sing"}, "The task 'sing' is unknown"),
        ({"max_tokens": 0}, "is no number of tokens"),
        ({"initial_prompt": "a\udcff"}, "initial_prompt has half of a surrogate pair"),
        ({"vad": "no"}, "vad='no': expected True or False"),
        ({"timestamps": 0}, "timestamps=0: expected True or False"),
    ],
)
def test_a_wish_that_cannot_be_met_is_refused_before_any_work(
    tokenizer: Tokenizer, multilingual: GenerationRules, wish: dict[str, object], message: str
) -> None:
    model = ScriptedModel()
    with pytest.raises(InputError, match=message):
        Transcriber(model, tokenizer, multilingual, MEL)("no such file", **wish)
    assert model.batches == []


def test_max_tokens_is_for_each_window(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    session = ScriptedSession([tokens_of("abc")], [tokens_of("def")])
    transcriber = Transcriber(ScriptedModel(session), tokenizer, rules, MEL)
    assert transcriber(seconds(3), max_tokens=2, timestamps=False).text == "abde"


def test_a_session_is_used_again(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    model = ScriptedModel(ScriptedSession([tokens_of("a")], [tokens_of("b")]))
    transcriber = Transcriber(model, tokenizer, rules, MEL)
    assert [transcriber(seconds(1)).text, transcriber(seconds(1)).text] == ["a", "b"]
    assert model.batches == [1]


def test_sessions_are_of_the_plan(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    class Model(ScriptedModel):
        def new_session(self, *, Batch: int, **options: Any) -> ScriptedSession:
            asked.append(options)
            return super().new_session(Batch=Batch)

    asked: list[dict[str, Any]] = []
    each: list[dict[str, Any]] = [{}, {"plan": "fast"}]
    for options in each:
        model = Model(ScriptedSession([tokens_of("a")]))
        assert Transcriber(model, tokenizer, rules, MEL, **options)(seconds(1)).text == "a"
    assert asked == [{}, {"plan": "fast"}]


def test_on_cuda_sessions_record_graphs(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    class OnDevice(ScriptedModel):
        device = SimpleNamespace(type="cuda")

        def new_session(self, *, Batch: int, graphs: bool = False) -> ScriptedSession:
            assert graphs
            return super().new_session(Batch=Batch)

    model = OnDevice(ScriptedSession([tokens_of("a")]))
    assert Transcriber(model, tokenizer, rules, MEL)(seconds(1)).text == "a"


def test_a_session_that_failed_is_not_used_again(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    model = ScriptedModel(ScriptedSession(), ScriptedSession([tokens_of("a")]))
    transcriber = Transcriber(model, tokenizer, rules, MEL)
    with pytest.raises(IndexError):
        transcriber(seconds(1))
    assert transcriber(seconds(1)).text == "a"


def test_threads_do_not_share_a_session(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    meeting = threading.Barrier(4, timeout=10)

    class Waiting(ScriptedSession):
        def listen(self, mel: np.ndarray) -> None:
            meeting.wait()  # passes only when all four calls are under way at once
            super().listen(mel)

    model = ScriptedModel(*[Waiting([tokens_of(letter)]) for letter in "abcd"])
    transcriber = Transcriber(model, tokenizer, rules, MEL)
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(transcriber(seconds(1)).text)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts) == ["a", "b", "c", "d"]


def test_a_silent_model_gives_no_text(tokenizer: Tokenizer, rules: GenerationRules) -> None:
    session = ScriptedSession([(END,)])
    free = replace(rules, begin_suppress=())
    transcript = Transcriber(ScriptedModel(session), tokenizer, free, MEL)(seconds(1))
    assert (transcript.text, transcript.tokens) == ("", ())

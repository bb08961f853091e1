"""Recordings longer than a window, of scripted sessions: where windows begin, what they are told, what is believed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from nest.errors import CallError, InputError
from nest.tasks._attempts import compression_ratio
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Transcriber, Transcript

from .scripted import END, FIRST_TIME, NO_TIMES, START, ScriptedModel, ScriptedSession, tokens_of

PREVIOUS, NO_SPEECH = 254, 255  # bytes that no test says
MEL = MelSettings(bins=4, rate=1000, n_fft=40, hop=10, window_seconds=2.0)
RULES = GenerationRules(
    start=START, end=END, prompt=(START, NO_TIMES), no_timestamps=NO_TIMES, first_timestamp=FIRST_TIME, positions=80,
    max_tokens=40, start_of_previous=PREVIOUS, no_speech=NO_SPEECH,
)  # fmt: skip


def at(seconds: float) -> tuple[int]:
    return (FIRST_TIME + round(seconds / 0.02),)


def said(*parts: float | str) -> tuple[int, ...]:
    return tuple(
        token for part in parts for token in (tokens_of(part) if isinstance(part, str) else at(part))
    )


@dataclass
class Script:
    """What a window says: how far the scripted token is ahead of all others, and the probability of no speech."""

    tokens: tuple[int, ...]
    ahead: float = 10.0
    silence: float | None = None


class Speaker(ScriptedSession):
    """A scripted session that doubts: each prefill takes the next script, but those that end with the start token."""

    def __init__(self, *scripts: Script | tuple[int, ...]) -> None:
        self.left = [s if isinstance(s, Script) else Script(s) for s in scripts]
        super().__init__(vocabulary=FIRST_TIME + 101)

    def prefill(self, tokens: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
        count = tokens.shape[1] if lengths is None else int(lengths[0])
        self.now = self.left.pop(0)
        self.scripts = [[self.now.tokens]]
        super().prefill(tokens[:, :count])
        return self.logits()

    def logits(self) -> np.ndarray:
        logits = super().logits()
        logits[logits == 10] = self.now.ahead
        if self.now.silence is not None:
            others = np.log(np.exp(np.delete(logits[0].astype(float), NO_SPEECH)).sum())
            logits[0, NO_SPEECH] = others + np.log(self.now.silence / (1 - self.now.silence))
        return logits


def seconds(count: float) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, round(count * MEL.rate)).astype(np.float32)


def heard(
    tokenizer: Tokenizer, session: Speaker, audio: np.ndarray, rules: GenerationRules = RULES, **wishes: Any
) -> Transcript:
    return Transcriber(ScriptedModel(session), tokenizer, rules, MEL)(audio, **wishes)


def times(made: Transcript) -> list[tuple[float, float, str]]:
    return [(round(s.start, 3), round(s.end, 3), s.text) for s in made.segments]


def test_a_window_begins_where_the_last_text_ended(tokenizer: Tokenizer) -> None:
    session = Speaker(
        said(0.0, " one", 0.8, 0.8, " two", 1.5, 1.6, " th"),
        said(0.1, " three", 1.0, 1.0, " four", 1.9),
        said(0.0, " five"),
    )
    audio = seconds(4.4)
    made = heard(tokenizer, session, audio)
    assert made.text == "one two three four five"
    assert times(made) == [
        (0.0, 0.8, " one"), (0.8, 1.5, " two"), (1.6, 2.5, " three"), (2.5, 3.4, " four"), (3.5, 4.4, " five"),
    ]  # fmt: skip
    windows = [audio[:2000], audio[1500:3500], audio[3500:]]
    np.testing.assert_array_equal(session.mels, [log_mel(window, MEL) for window in windows])
    assert made.duration == pytest.approx(4.4)
    assert made.tokens == tokens_of(" one two three four five")


def test_what_was_said_is_told_to_the_next_window(tokenizer: Tokenizer) -> None:
    first, second = said(0.0, " a", 1.0, 1.0, " b", 2.0), said(0.0, " c", 2.0)
    session = Speaker(first, second, said(0.0, " d", 0.5))
    heard(tokenizer, session, seconds(4.5))
    assert [prompt[0].tolist() for prompt in session.prompts] == [
        [START], [PREVIOUS, *first, START], [PREVIOUS, *first, *second, START],
    ]  # fmt: skip


def test_no_more_is_told_than_half_of_the_decoder_holds(tokenizer: Tokenizer) -> None:
    first, second = said(0.0, " aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 2.0), said(0.0, " bbbbbbbbb", 2.0)
    session = Speaker(first, second, said(0.0, " c", 1.0))
    heard(tokenizer, session, seconds(5), compression_ratio_threshold=None)
    assert session.prompts[2][0].tolist() == [PREVIOUS, *(first + second)[-39:], START]


def test_nothing_is_told_where_that_is_not_wanted(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 2.0), said(0.0, " b", 1.0))
    heard(tokenizer, session, seconds(3), condition_on_previous_text=False)
    assert [prompt[0].tolist() for prompt in session.prompts] == [[START], [START]]


def test_an_initial_prompt_is_told_to_the_first_window(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 2.0), said(0.0, " b", 1.0))
    heard(tokenizer, session, seconds(3), initial_prompt=" names ", condition_on_previous_text=False)
    prompt = [PREVIOUS, *tokenizer.encode(" names"), START]
    assert [prompt[0].tolist() for prompt in session.prompts] == [prompt, [START]]


def test_an_initial_prompt_of_500_words_is_cut_to_its_end(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 2.0), said(0.0, " b", 1.0))
    assert heard(tokenizer, session, seconds(3), initial_prompt="word " * 499 + "last").text == "a b"
    told = session.prompts[0][0].tolist()
    assert len(told) == 41
    assert tokenizer.decode(told).endswith("word last")


def test_a_text_that_repeats_itself_is_decoded_again(tokenizer: Tokenizer) -> None:
    loop = " no no no no no no no no no no no no"
    assert compression_ratio(loop) > 2.4
    session = Speaker(said(0.0, loop, 1.0), Script(said(0.0, " yes", 2.0), ahead=40), said(0.0, " b", 1.0))
    made = heard(tokenizer, session, seconds(3))
    assert made.text == "yes b"
    assert [segment.temperature for segment in made.segments] == [0.2, 0.0]


def test_an_unlikely_text_is_decoded_again_and_again_and_is_no_context(tokenizer: Tokenizer) -> None:
    doubtful = Script(said(0.0, " what was that", 2.0), ahead=4.75)
    attempts = 6
    session = Speaker(doubtful, Script((), silence=0.1), *[doubtful] * (attempts - 1), said(0.0, " b", 1.0))
    made = heard(tokenizer, session, seconds(3))
    assert made.segments[0].temperature == 1.0
    assert made.segments[0].mean_log_probability is not None
    assert made.segments[0].mean_log_probability < -1
    assert session.prompts[-1][0].tolist() == [START]
    assert not session.left


def test_an_unlikely_text_where_nobody_speaks_is_none(tokenizer: Tokenizer) -> None:
    session = Speaker(
        Script(said(0.0, " what was that", 2.0), ahead=4.75), Script((), silence=0.7), said(0.0, " b", 1.0)
    )  # fmt: skip
    assert times(heard(tokenizer, session, seconds(3))) == [(2.0, 3.0, " b")]
    assert not session.left


@pytest.mark.parametrize(
    "wish", [{"no_speech_threshold": None}, {"no_speech_threshold": 0.8}, {"log_probability_threshold": None}]
)
def test_thresholds_can_be_set(tokenizer: Tokenizer, wish: dict[str, Any]) -> None:
    doubtful = Script(said(0.0, " what was that", 2.0), ahead=4.75)
    asks = wish.get("no_speech_threshold") is not None
    session = Speaker(doubtful, *([Script((), silence=0.7)] if asks else []), said(0.0, " b", 1.0))
    assert heard(tokenizer, session, seconds(3), temperature=0, **wish).text == "what was that b"


def test_digital_silence_is_not_listened_to(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 1.0))
    audio = np.concatenate([np.zeros(6000, np.float32), seconds(1.0)])
    assert times(heard(tokenizer, session, audio)) == [(6.0, 7.0, " a")]
    assert heard(tokenizer, Speaker(), np.zeros(7000, np.float32)).text == ""


def test_times_end_where_the_recording_does(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 2.0), said(0.0, " b", 1.8), said())
    assert times(heard(tokenizer, session, seconds(3))) == [(0.0, 2.0, " a"), (2.0, 3.0, " b")]
    session = Speaker(said(0.0, " a", 2.0), said(0.0, " b", 0.4, 0.7, " made up", 0.9))
    assert times(heard(tokenizer, session, seconds(2.5)))[1:] == [(2.0, 2.4, " b")]


def test_a_short_rest_after_the_last_text_is_no_window(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 1.0, 1.0, " b", 1.5, 1.5), said(0.0, " c", 0.9, 0.9))
    assert heard(tokenizer, session, seconds(3.1)).text == "a b c"
    assert not session.left
    # Where a text was begun in it, it is one.
    session = Speaker(said(0.0, " a", 1.5, 1.5), said(0.0, " b", 0.9, 0.9, " c"), said(0.0, " c", 0.6))
    assert heard(tokenizer, session, seconds(3.1)).text == "a b c"


def test_speech_after_the_last_text_of_a_window_is_not_passed_over(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nest.tasks._recording_windows import RecordingWindows

    asked: list[tuple[int, int]] = []

    def speaks(self: RecordingWindows, first: int, last: int) -> bool:
        asked.append((first, last))
        return len(asked) == 1

    monkeypatch.setattr(RecordingWindows, "speaks", speaks)
    session = Speaker(said(0.1, " a", 0.8), said(0.0, " b", 1.2), said(0.0, " c", 0.2))
    made = heard(tokenizer, session, seconds(3.0))
    assert times(made) == [(0.1, 0.8, " a"), (0.8, 2.0, " b"), (2.8, 3.0, " c")]
    assert asked == [(1300, 2000), (1700, 2000), (700, 200)]


def test_a_window_that_says_nothing_is_passed(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0), said(0.0, " b", 1.0))
    assert times(heard(tokenizer, session, seconds(3))) == [(2.0, 3.0, " b")]


def test_a_short_recording_has_times_where_they_are_wanted(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.1, " a", 0.6, 0.7, " b", 1.2))
    assert times(heard(tokenizer, session, seconds(1.5), timestamps=True)) == [
        (0.1, 0.6, " a"),
        (0.7, 1.2, " b"),
    ]


def test_a_part_of_a_recording_keeps_its_times(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 2.0), said(0.0, " b", 0.5))
    audio = seconds(9)
    made = heard(tokenizer, session, audio, start=4.0, duration=2.5)
    assert times(made) == [(4.0, 6.0, " a"), (6.0, 6.5, " b")]
    assert made.duration == pytest.approx(2.5)
    np.testing.assert_array_equal(session.mels[0], log_mel(audio[4000:6000], MEL))


def test_channels_are_heard_one_after_another(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.2, " left", 1.0), said(0.1, " right", 1.0))
    left, right = seconds(1.5), seconds(1.5)[::-1].copy()
    made = heard(tokenizer, session, np.stack([left, right]), channels="split", timestamps=True)
    assert [(s.start, s.channel, s.text) for s in made.segments] == [
        (pytest.approx(0.1), 1, " right"), (pytest.approx(0.2), 0, " left"),
    ]  # fmt: skip
    np.testing.assert_array_equal(session.mels, [log_mel(left, MEL), log_mel(right, MEL)])
    assert made.text == "right left"


def test_segments_come_as_they_are_decoded(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 1.0, 1.0, " b", 2.0), said(0.0, " c", 1.0))
    stream = Transcriber(ScriptedModel(session), tokenizer, RULES, MEL).stream(seconds(3))
    assert (stream.position, stream.seconds) == (0.0, 3.0)
    assert next(stream).text == " a"
    assert (stream.position, stream.language) == (2.0, "en")
    assert len(session.mels) == 1
    assert [segment.text for segment in stream] == [" b", " c"]
    assert stream.position == 3.0
    assert stream.result.text == "a b c"


def test_a_stream_that_was_closed_has_no_result(tokenizer: Tokenizer) -> None:
    session = Speaker(said(0.0, " a", 2.0))
    with Transcriber(ScriptedModel(session), tokenizer, RULES, MEL).stream(seconds(3)) as stream:
        next(stream)
    with pytest.raises(ValueError, match="closed before"):
        _ = stream.result


def test_hours_are_heard_in_bounded_memory(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hours, of which no more than a window and a block are held at any time."""
    from nest.tasks import _recording_windows

    class Endless(Speaker):
        def prefill(self, tokens: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
            self.left = [Script(said(0.0, " a", 2.0))]
            self.mels, self.prompts, self.fed = [], [], []
            return super().prefill(tokens, lengths)

    def blocks(self: Any, channel: int | None = None) -> Iterator[np.ndarray]:
        for _ in range(240):
            yield block

    block = seconds(30)
    held: list[int] = []
    original = _recording_windows.RecordingWindows._hold

    def measured(self: Any, count: int) -> None:
        original(self, count)
        held.append(len(self._held))

    monkeypatch.setattr(_recording_windows.RecordingWindows, "_hold", measured)
    made = Transcriber(ScriptedModel(Endless()), tokenizer, RULES, MEL)
    stream = made.stream(seconds(3))
    stream._audio.read = blocks.__get__(stream._audio)  # type: ignore[method-assign]
    assert stream.result.duration == pytest.approx(7200)
    assert len(stream.result.segments) == 3600
    assert max(held) <= 32001


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"temperature": -1}, "temperature=-1: expected a number from 0"),
        ({"temperature": []}, r"temperature=\[\]"),
        ({"temperature": "hot"}, "temperature='hot'"),
        ({"compression_ratio_threshold": "x"}, "compression_ratio_threshold='x' is no threshold"),
        ({"seed": -3}, "seed=-3 is no seed"),
        ({"initial_prompt": 3}, "initial_prompt=3 is no text"),
    ],
)
def test_wishes_that_mean_nothing(tokenizer: Tokenizer, wish: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        heard(tokenizer, Speaker(), seconds(3), **wish)


def test_a_wish_that_there_is_not(tokenizer: Tokenizer) -> None:
    for name, message in (
        ("colour", r"takes no option 'colour'; it takes rate, start, .*, word_timestamps, .*, best_of\."),
        ("beams", r"takes no option 'beams' \(did you mean 'beam_size'\?\); it takes rate"),
        ("sampling_rate", r"takes no option 'sampling_rate' \(here it is 'rate'\); it takes rate"),
        ("langage", r"'langage' \(did you mean 'language'\?\)"),
    ):
        with pytest.raises(CallError, match=message) as said:
            heard(tokenizer, Speaker(), seconds(3), **{name: 3})
        assert "Wishes" not in str(said.value)


def test_a_model_that_takes_no_previous_text_says_so(tokenizer: Tokenizer) -> None:
    plain = replace(RULES, start_of_previous=None)
    with pytest.raises(InputError, match="takes no initial_prompt"):
        heard(tokenizer, Speaker(), seconds(3), plain, initial_prompt="names")
    session = Speaker(said(0.0, " a", 2.0), said(0.0, " b", 1.0))
    assert heard(tokenizer, session, seconds(3), plain).text == "a b"

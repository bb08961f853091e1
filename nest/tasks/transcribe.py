"""Speech to text: a recording in, what it says out."""

from __future__ import annotations

from typing import Any, Protocol

from nest._timing import timed
from nest.errors import InputError
from nest.tasks import audio as audio_files
from nest.tasks._branches import Branches
from nest.tasks._sessions import Sessions, session_options
from nest.tasks._sized_sessions import SizedSessions
from nest.tasks._speech_wishes import SpeechWishes, speech_wishes
from nest.tasks._spoken_language import only_language
from nest.tasks.audio import AudioSource, Channels
from nest.tasks.decode import SpeechSession, language_probabilities
from nest.tasks.languages import language_name
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import MULTILINGUAL, GenerationRules, provisional_prompt_ids, token_budget
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcript import Segment, Transcript
from nest.tasks.transcript_stream import TranscriptStream, refuse_short, windows_over
from nest.tasks.voice import RATE
from nest.tasks.words import Word, refuse_unaligned

__all__ = ["Segment", "SpeechModel", "Transcriber", "Transcript", "TranscriptStream", "Word"]


class SpeechModel(Protocol):
    """A loaded model whose sessions transcribe."""

    def new_session(self, *, Batch: int, **options: Any) -> SpeechSession:
        """Return a session of `Batch` rows over the model's weights."""


class Transcriber:
    """A speech-to-text pipeline over one model's weights; threads may share it.

    A recording no longer than the model's window is one segment. In a longer one the model says when each segment
    begins and ends, and the next window begins where the last segment ends; what was said before is its context.
    """

    def __init__(
        self,
        model: SpeechModel,
        tokenizer: Tokenizer,
        rules: GenerationRules,
        mel: MelSettings,
        *,
        plan: str = "exact",
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.rules = rules
        self.mel = mel
        self.plan = plan
        self.sessions = Sessions(model, Batch=1, **session_options(model, plan))
        self.batches = SizedSessions(model, rules.positions, plan)
        self.branches = Branches()

    @timed("transcribe")
    def __call__(
        self,
        audio: AudioSource,
        *,
        rate: int | None = None,
        start: float = 0.0,
        duration: float | None = None,
        channels: Channels = "mix",
        **wishes: Any,
    ) -> Transcript:
        """Return what `audio` says.

        Args:
            audio: a path, bytes, a binary file object, or an array of samples; see `nest.tasks.audio.load`.
            rate: samples a second of an array, 16000 if left out.
            start, duration: which part of it, in seconds; up to its end if left out. Times stay those of the whole.
            channels: `"mix"`, or `"split"` to hear each by itself.
            **wishes: see `stream`.

        Raises:
            InputError: audio that cannot be read or is no longer than 0.1 s; a language, a task or times of words that
                the model does not have; a wish that is out of range.
            CallError: a wish that there is not.
        """
        options = {"rate": rate, "start": start, "duration": duration, "channels": channels}
        return self.stream(audio, **options, **wishes).result  # type: ignore[arg-type]

    def stream(
        self,
        audio: AudioSource,
        *,
        rate: int | None = None,
        start: float = 0.0,
        duration: float | None = None,
        channels: Channels = "mix",
        language: str | None = None,
        task: str = "transcribe",
        max_tokens: int | None = None,
        word_timestamps: bool = False,
        timestamps: bool | None = None,
        vad: bool = False,
        batch_size: int | None = None,
        **more: Any,
    ) -> TranscriptStream:
        """Return the segments of what `audio` says, each as soon as it is decoded, in memory that does not grow.

        Args:
            audio, rate, start, duration, channels: as in a call.
            language: a code such as `"en"`, or a name such as `"English"`. A multilingual model detects it if left out,
                in the first window that is not digital silence, or, with `vad`, in which somebody speaks; where
                channels are split, in each by itself.
            task: `"transcribe"`, or `"translate"` into English.
            max_tokens: at most so many tokens for each window, half of the decoder's positions if left out.
            word_timestamps: whether segments have words with times; the model hears each window's text once more.
            timestamps: whether the model says when segments begin and end; if left out, where a recording is longer
                than its window. If False, such a one is cut at every window, where a word may be lost or doubled.
            vad: whether Silero's detector of voice activity, a file of 2 MB that is fetched once, finds where somebody
                speaks: windows then begin there and end at pauses of 2 s, and silence, noise and music have no text.
            batch_size: decode up to so many windows at a time, in more memory: a recording longer than a window is
                cut at its silences beforehand, and each window knows `initial_prompt` alone, and nothing of what was
                said before it. One after another if left out or 1; then a window begins where the text of the one
                before it ends.
            **more: `initial_prompt`: a text as if said before, for names and style; its last tokens count, as many as
                fill half of the decoder's positions. `temperature`: one, or several, 0 to 1 by 0.2; without times the
                first counts. At 0 each token is the most likely, or with `beam_size` so many prefixes are gone on with
                at a time, and with `patience`, 1, until `beam_size` times as many texts have ended. Over 0 a text is
                drawn, by `seed`, 0; or `best_of` texts. Of several the one of the highest mean log-probability is
                taken, or with `length_penalty`, 0 to 1, the one whose log-probability is highest after division by
                ((5 + tokens) / 6) ** length_penalty.
                For decoding with times: `condition_on_previous_text`: True. Temperatures are tried one after another
                until the text is believed. It is believed unless it is more than
                `compression_ratio_threshold` times as long as its compressed form, 2.4, or the mean log-probability of
                its tokens is under `log_probability_threshold`, -1; where it is, and the model's probability of no
                speech over `no_speech_threshold`, 0.6, there is no text.

        Raises:
            InputError: as in a call. About what is in the file, while it is read.
            CallError: as in a call.
        """
        wishes = speech_wishes(
            language=language,
            task=task,
            max_tokens=max_tokens,
            word_timestamps=word_timestamps,
            timestamps=timestamps,
            vad=vad,
            batch_size=batch_size,
            **more,
        )
        self._refuse_early(wishes)
        opened = audio_files.stream(
            audio, rate, target=self.mel.rate, start=start, duration=duration, channels=channels
        )
        return TranscriptStream(self, opened, wishes, split=channels == "split")

    def detect_language(
        self,
        audio: AudioSource,
        *,
        rate: int | None = None,
        start: float = 0.0,
        duration: float | None = None,
        vad: bool = False,
    ) -> dict[str, float]:
        """Return how likely `audio` is in each of the model's languages, by their codes, the likeliest first.

        The probabilities sum to 1. What is heard is the first window that is not digital silence, or, with `vad`, in
        which somebody speaks: 30 s at most, so that `start` says where to listen in a longer recording.

        Args:
            audio, rate, start, duration, vad: as in `stream`.

        Raises:
            InputError: the model has one language only; audio that cannot be read, is no longer than 0.1 s, or in which
                there is nothing to hear.
        """
        if (only := only_language(self.rules)) is not None:
            raise InputError(
                f"This model has one language only, {language_name(only)}, and tells none apart. "
                f"Use a multilingual one, such as {MULTILINGUAL}."
            )
        self._refuse_vad(vad)
        opened = audio_files.stream(audio, rate, target=self.mel.rate, start=start, duration=duration)
        with opened:
            windows = windows_over(opened.read(None), self.mel, vad=vad)
            refuse_short(windows.left(), self.mel.rate)
            window = windows.speech()
        if not len(window):
            raise InputError("There is nothing to hear in the recording, so no language to detect.")
        with self.sessions.lend() as session:
            session.listen(log_mel(window, self.mel))
            (found,) = language_probabilities(session, self.rules)
        return found

    def _refuse_early(self, wishes: SpeechWishes) -> None:
        """Raise what a later call would, before the work begins."""
        prompt = provisional_prompt_ids(self.rules, wishes.language, wishes.task)
        token_budget(self.rules, len(prompt), wishes.max_tokens)
        self._refuse_vad(wishes.vad)
        if wishes.word_timestamps:
            refuse_unaligned(self.rules)
        if wishes.initial_prompt and self.rules.start_of_previous is None:
            raise InputError(
                "This model takes no initial_prompt: its entry names no generation.start_of_previous."
            )

    def _refuse_vad(self, vad: bool) -> None:
        if vad and self.mel.rate != RATE:
            raise InputError(
                f"vad=True is for models at {RATE} samples a second; this one has {self.mel.rate}."
            )

    def __repr__(self) -> str:
        name = getattr(getattr(self.model, "program", None), "name", type(self.model).__name__)
        return (
            f"<{type(self).__name__} of {name} on {getattr(self.model, 'backend', 'a backend of its own')}>"
        )

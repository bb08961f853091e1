"""Speech: a spectrogram to encoder states, and the decoder's first steps."""

from __future__ import annotations

from collections.abc import Callable

from nest.tasks.snippets.job import Arrays, Call, Decode, Job, Loss
from nest.tasks.snippets.subject import Subject
from nest.tasks.snippets.task import AUDIO

__all__ = ["speech"]


def speech(subject: Subject) -> Job:
    """Transcription, by entries of a Whisper."""
    manifest = subject.entry.manifest
    generation, settings = manifest.generation, manifest.preprocess
    assert generation is not None
    assert settings is not None
    mels = subject.size("Mels")
    prompt = list(generation.prompt)

    def inputs(arrays: Arrays) -> list[str]:
        shape = f"[1, {mels}, {subject.size('Frames')}]"
        return [
            f'speech = load("{AUDIO}")[: 30 * 16000]  # 30 s at 16 kHz, the window',
            f"mel = {arrays.of(f'log_mel(speech, MelSettings(bins={mels}))')}  # {shape}",
            f"# {_prompt(subject)}",
            f"prompt = {prompt}",
        ]

    def decode(arrays: Arrays) -> Decode:
        logits = subject.shape("step", Batch=1)
        ids, length = arrays.ids("[prompt]"), arrays.ids("[len(prompt)]")
        session = [
            "session.listen(mel)",
            f"logits = session.prefill([prompt])  # {logits}",
            "token = int(logits.argmax())",
            f"logits = session.step([[token]], [len(prompt)])  # {logits}",
        ]
        pure = [
            "_, caches = listen(params, caches, mel)",
            f"tokens = {ids}",
            f"lengths = {length}",
            f"logits, caches = prefill(params, caches, tokens, lengths)  # {logits}",
            "token = logits.argmax(-1, keepdims=True).astype(jnp.int32)",
            f"logits, caches = step(params, caches, token, lengths)  # {logits}",
        ]
        return Decode(session, pure, "Batch=1")

    encode = Call("states", "encode", {"mel": "mel"}, {"B": 1})

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        said = f"[[*prompt, *text, {generation.end_of_text}]]"
        taught = Call("logits", "decode", {"tokens": "target[:, :-1]", "audio": call(encode)})
        return Loss(
            [
                'text = nest.pipeline(model).tokenizer.encode(" Good morning.")',
                f"target = {arrays.ids(said)}",
            ],
            ["mel", "target"],
            [f"logits = {call(taught)}"],
            "target[:, 1:]",
            rows=False,
        )

    return Job(
        ["from nest.tasks.audio import load", "from nest.tasks.mel import MelSettings, log_mel"],
        inputs,
        [encode],
        loss,
        decode=decode,
    )


def _prompt(subject: Subject) -> str:
    """What the ids of the prompt say."""
    generation = subject.entry.manifest.generation
    assert generation is not None
    spoken = {token: code for code, token in generation.languages.items()}
    words: dict[int | None, str] = {
        generation.start_of_transcript: "start",
        generation.transcribe: "transcribe",
        generation.no_timestamps: "no timestamps",
        **{token: f"language {code}" for token, code in spoken.items()},
    }
    return ", ".join(words.get(token, str(token)) for token in generation.prompt)

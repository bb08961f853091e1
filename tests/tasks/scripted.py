"""A small byte-level vocabulary, and sessions whose most likely tokens are written down beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

# A vocabulary of the 256 bytes, in the order of their letters, and two merges; then control tokens.
END, START, ENGLISH, GERMAN, TRANSLATE, TRANSCRIBE, NO_TIMES, FIRST_TIME = range(258, 266)
CONTROL = {
    END: "<|endoftext|>",
    START: "<|startoftranscript|>",
    ENGLISH: "<|en|>",
    GERMAN: "<|de|>",
    TRANSLATE: "<|translate|>",
    TRANSCRIBE: "<|transcribe|>",
    NO_TIMES: "<|notimestamps|>",
}
PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
LETTERS = [chr(b) for b in PRINTED] + [chr(256 + i) for i in range(256 - len(PRINTED))]
BYTES = PRINTED + [b for b in range(256) if b not in PRINTED]


def tokenizer_tables() -> dict[str, Any]:
    vocab = {letter: token for token, letter in enumerate([*LETTERS, "he", "Ġhe"])}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "normalizer": None,
        "added_tokens": [{"id": token, "content": name, **flags} for token, name in CONTROL.items()],
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {"type": "BPE", "vocab": vocab, "merges": ["h e", "Ġ he"]},
    }


def token_of(byte: int) -> int:
    return BYTES.index(byte)


def tokens_of(text: str) -> tuple[int, ...]:
    return tuple(token_of(byte) for byte in text.encode())


class ScriptedSession:
    """A session whose most likely tokens are given: for each call of `prefill`, the rows that follow it.

    It records what it was called with, and refuses a step that does not continue the last call.
    """

    def __init__(self, *scripts: list[tuple[int, ...]], vocabulary: int = 300) -> None:
        self.scripts = list(scripts)
        self.vocabulary = vocabulary
        self.mels: list[np.ndarray] = []
        self.prompts: list[np.ndarray] = []
        self.fed: list[np.ndarray] = []
        self.script: list[tuple[int, ...]] = []
        self.position = 0

    def listen(self, mel: np.ndarray) -> None:
        self.mels.append(mel)

    def prefill(self, tokens: np.ndarray) -> np.ndarray:
        if tokens.dtype != np.int32 or tokens.ndim != 2:
            raise TypeError((tokens.dtype, tokens.shape))
        self.prompts.append(tokens)
        self.script = self.scripts.pop(0)
        self.position, self.begin = tokens.shape[1], tokens.shape[1]
        return self.logits()

    def step(self, token: np.ndarray, pos: np.ndarray) -> np.ndarray:
        rows = len(self.script)
        if (
            token.dtype != np.int32
            or pos.dtype != np.int32
            or token.shape != (rows, 1)
            or pos.shape != (rows,)
        ):
            raise TypeError((token.dtype, pos.dtype, token.shape, pos.shape))
        if (pos != self.position).any():
            raise ValueError((pos, self.position))
        self.fed.append(token[:, 0])
        self.position += 1
        return self.logits()

    def logits(self) -> np.ndarray:
        """Rank the scripted token first, and after it tokens 7, 8 and 9."""
        logits = np.zeros((len(self.script), self.vocabulary), dtype=np.float32)
        logits[:, [7, 8, 9]] = [3, 2, 1]
        for row, tokens in enumerate(self.script):
            at = self.position - self.begin
            logits[row, tokens[at] if at < len(tokens) else END] = 10
        return logits

    def numpy(self, x: np.ndarray) -> np.ndarray:
        return x


class ScriptedModel:
    """A model that hands out the sessions it was given, one after another."""

    def __init__(self, *sessions: ScriptedSession) -> None:
        self.sessions = list(sessions)
        self.batches: list[int] = []

    def new_session(self, *, Batch: int) -> ScriptedSession:
        self.batches.append(Batch)
        return self.sessions.pop(0)

"""Texts to token ids for encoders, by a checkpoint's own `tokenizer.json`, and what may be put in a mask's place."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nest._optional import need
from nest._timing import timed
from nest.errors import InputError, ManifestError, WeightsError

__all__ = ["EncodedText", "TextTokenizer", "TruncatedTextWarning", "checked_texts", "refuse_halves"]


class TruncatedTextWarning(UserWarning):
    """A text is longer than the model reads, and its end was left out."""


@dataclass(frozen=True)
class EncodedText:
    """A text as ids with the special tokens around, and the (start, end) of each token in the text's characters."""

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


class TextTokenizer:
    """The tokenizer of a text encoder. Special tokens that are spelled in a text are these tokens.

    Args:
        path: a `tokenizer.json`; how it would truncate and pad is not followed.
        max_tokens: the most ids of a text, special tokens counted.
        mask: how the mask token is spelled, if the model has one.

    Raises:
        MissingDependencyError: `tokenizers` is not installed (extra `text`).
        WeightsError: the file is no tokenizer.
        ManifestError: the vocabulary has no such mask token.
    """

    def __init__(self, path: Path, *, max_tokens: int, mask: str | None = None) -> None:
        tokenizers = need("tokenizers", extra="text", purpose="turn text into token ids")
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain ones
            raise WeightsError(
                f"The tokenizer '{path}' cannot be read ({error}). Expected a tokenizer.json; fetch the file again."
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.max_tokens = max_tokens
        self.mask = mask
        self.mask_id: int | None = None if mask is None else self._tokenizer.token_to_id(mask)
        if mask is not None and self.mask_id is None:
            raise ManifestError(
                f"tokenizer.mask is '{mask}', which is no token of '{path.name}'. Write it as the checkpoint's "
                f"special_tokens_map.json has it."
            )

    @timed("tokenise")
    def __call__(self, texts: Sequence[str]) -> list[EncodedText]:
        """The ids of each text, no more than `max_tokens`.

        Warns:
            TruncatedTextWarning: some texts are longer. Their end is left out; a special token there stays.
        """
        made = self._tokenizer.encode_batch_fast(list(texts)) if self.mask is None else None
        if made is None:  # spans are of use for masks alone, and cost time
            made = self._tokenizer.encode_batch(list(texts))
        longer = [len(e.ids) for e in made if len(e.ids) > self.max_tokens]
        if longer:
            warnings.warn(
                _truncated(len(longer), len(made), max(longer), self.max_tokens), TruncatedTextWarning, 3
            )
        return [self._cut(e) for e in made]

    def _cut(self, encoding: Any) -> EncodedText:
        ids, spans = tuple(encoding.ids), tuple(encoding.offsets)
        if len(ids) > self.max_tokens:
            after = self._after
            kept = self.max_tokens - after
            ids, spans = ids[:kept] + ids[len(ids) - after :], spans[:kept] + spans[len(spans) - after :]
        return EncodedText(ids, spans)

    @cached_property
    def _after(self) -> int:
        """How many special tokens follow a text."""
        plain = self._tokenizer.encode("a", add_special_tokens=False).ids
        whole = self._tokenizer.encode("a").ids
        last = max(i for i in range(len(whole)) if whole[i : i + len(plain)] == plain)
        return len(whole) - last - len(plain)

    def token(self, index: int) -> str:
        """How the vocabulary spells an id; ids that it has no token for are `<7>`."""
        return self._tokenizer.id_to_token(index) or f"<{index}>"

    def piece(self, index: int) -> tuple[str, bool]:
        """The text of a token, and whether it goes on with the word before it or brings its own space."""
        prefix = getattr(self._tokenizer.model, "continuing_subword_prefix", None)
        token = self.token(index)
        if prefix and token.startswith(prefix):
            return token[len(prefix) :], True
        text = self._tokenizer.decode([index], skip_special_tokens=False)
        return (text, False) if prefix else (text, True)


def checked_texts(texts: Any) -> list[str]:
    """One text or several as a list.

    Raises:
        InputError: something else came, or text that is not Unicode.
    """
    given = [texts] if isinstance(texts, str) else texts
    if isinstance(given, bytes) or not hasattr(given, "__iter__"):
        raise InputError(f"Expected a text, or several in a list; a {type(texts).__name__} came.")
    found = list(given)
    for index, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(f"texts[{index}] is of type {type(text).__name__}; expected str.")
        refuse_halves(text, f"texts[{index}]")
    return found


def refuse_halves(text: str, name: str) -> None:
    """Raise `InputError` where `text`, which messages call `name`, is not Unicode: no tokenizer reads it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} has half of a surrogate pair, U+{ord(text[error.start]):04X}, at character {error.start}: it "
            "was decoded wrongly somewhere. Replace it, or decode the text anew."
        ) from error


def _truncated(longer: int, count: int, most: int, limit: int) -> str:
    which = "The text is" if count == 1 else f"{longer} of {count} texts {'is' if longer == 1 else 'are'}"
    return (
        f"{which} longer than the {limit} tokens that the model reads ({'' if longer == 1 else 'up to '}{most}); "
        f"what comes after them is left out."
    )

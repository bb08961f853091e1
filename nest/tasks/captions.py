"""Texts that go with pictures as token ids, by a checkpoint's own `tokenizer.json`."""

from __future__ import annotations

import string
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nest._optional import need
from nest._timing import timed
from nest.errors import WeightsError
from nest.tasks.text import TruncatedTextWarning

__all__ = ["CaptionTokenizer", "canonical"]


class CaptionTokenizer:
    """The tokenizer of a text encoder that was trained with pictures.

    Args:
        path: a `tokenizer.json`; its special tokens, cutting and filling are not followed.
        max_tokens: the most ids of a text, those of `begin` and `end` counted.
        begin, end: what stands around each text, where there is such a token.
        pad: what fills a text up to `max_tokens`; nothing does where it is None.
        canonical: take capitals and punctuation away first.

    Raises:
        MissingDependencyError: `tokenizers` is not installed (extra `vision`).
        WeightsError: the file is no tokenizer.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_tokens: int,
        begin: int | None = None,
        end: int | None = None,
        pad: int | None = None,
        canonical: bool = False,
    ) -> None:
        tokenizers = need("tokenizers", extra="vision", purpose="turn text into token ids")
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain ones
            raise WeightsError(
                f"The tokenizer '{path}' cannot be read ({error}). Expected a tokenizer.json; fetch the file again."
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.max_tokens = max_tokens
        self.pad = pad
        self.canonical = canonical
        self._before = [] if begin is None else [begin]
        self._after = [] if end is None else [end]

    @timed("tokenise")
    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text.

        Warns:
            TruncatedTextWarning: some texts are longer than `max_tokens`; their end is left out, the end token stays.
        """
        given = [canonical(text) for text in texts] if self.canonical else list(texts)
        plain = [e.ids for e in self._tokenizer.encode_batch(given, add_special_tokens=False)]
        room = self.max_tokens - len(self._before) - len(self._after)
        longer = sum(len(ids) > room for ids in plain)
        if longer:
            warnings.warn(
                f"{longer} of {len(plain)} texts {'is' if longer == 1 else 'are'} longer than the {self.max_tokens} "
                f"tokens that the model reads; what comes after them is left out.",
                TruncatedTextWarning,
                stacklevel=3,
            )
        return [self._filled([*self._before, *ids[:room], *self._after]) for ids in plain]

    def _filled(self, ids: list[int]) -> list[int]:
        return ids if self.pad is None else ids + [self.pad] * (self.max_tokens - len(ids))


_PUNCTUATION = str.maketrans("", "", string.punctuation)


def canonical(text: str) -> str:
    """A text in lower case, without ASCII punctuation, its words one space apart."""
    return " ".join(text.lower().translate(_PUNCTUATION).split())

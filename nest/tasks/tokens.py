"""Text to token ids and back, by a checkpoint's own byte-level `tokenizer.json`."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from nest._optional import need
from nest._timing import timed
from nest.errors import WeightsError

__all__ = ["TIMESTAMP_SECONDS", "Tokenizer", "byte_of_letter"]

TIMESTAMP_SECONDS = 0.02


class Tokenizer:
    """The byte-level tokenizer of a Whisper checkpoint.

    Ids from `end` on are no text: control tokens, and from `first_timestamp` on times in steps of 0.02 s.
    A `tokenizer.json` need not list the latter; their names follow from their ids.
    """

    def __init__(self, path: Path, *, end: int, first_timestamp: int) -> None:
        """Read `path`.

        Args:
            path: a `tokenizer.json` whose decoder is byte-level.
            end: the id of `<|endoftext|>`.
            first_timestamp: the id of `<|0.00|>`.

        Raises:
            WeightsError: the file is not such a tokenizer.
        """
        tables = _read(path)
        self.path = path
        self.end = end
        self.first_timestamp = first_timestamp
        self._control: dict[int, str] = {entry["id"]: entry["content"] for entry in tables["added_tokens"]}
        self._names: dict[int, str] = {token: name for name, token in tables["model"]["vocab"].items()}

    @timed("tokenise")
    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`. The spelling of a control token, as `<|endoftext|>`, is mere text.

        Raises:
            MissingDependencyError: `tokenizers` is not installed (extra `audio`).
        """
        ids: list[int] = self._encoder.encode(text, add_special_tokens=False).ids
        return ids

    @cached_property
    def _encoder(self) -> Any:
        # Merges take a fifth of a second to load, and decoding does without them. Added tokens are left out,
        # so that no text is read as one.
        tokenizers = need("tokenizers", extra="audio", purpose="turn text into token ids")
        text_only = {**_read(self.path), "added_tokens": [], "post_processor": None}
        return tokenizers.Tokenizer.from_str(json.dumps(text_only))

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Return the text of `ids`.

        Bytes that form no character, as where `ids` ends within one, are dropped. With `skip_special=False`,
        control tokens and times are spelled out in the text, as in `<|0.00|>`.
        """
        return "".join(text for text, _ in self.pieces(ids, skip_special=skip_special))

    @timed("detokenise")
    def pieces(self, ids: Iterable[int], *, skip_special: bool = True) -> list[tuple[str, tuple[int, ...]]]:
        """Cut `ids` into the shortest runs that hold whole characters.

        Returns:
            (text, its ids) of each run. The texts joined are `decode(ids)`; a last run within a character has
            the text of its whole characters, maybe none.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        runs: list[tuple[str, tuple[int, ...]]] = []
        text, pending = "", []
        for token in ids:
            if token >= self.end:
                if skip_special:
                    continue
                # A control token ends whatever character was open.
                text += decoder.decode(b"", final=True) + self.name(token)
                decoder.reset()
            else:
                text += decoder.decode(self.token_bytes(token))
            pending.append(token)
            if not decoder.getstate()[0]:
                runs.append((text, tuple(pending)))
                text, pending = "", []
        return [*runs, (text, tuple(pending))] if pending else runs

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of the text token `token`, which need not be whole characters.

        Raises:
            ValueError: `token` is no text token of this tokenizer.
        """
        name = self._names.get(token) if token < self.end else None
        if name is None:
            raise ValueError(f"{token} is not a text token: those are 0 to {self.end - 1}.")
        table = byte_of_letter()
        return bytes(table[letter] for letter in name)

    def name(self, token: int) -> str:
        """Return how the control token or time `token` is spelled, as in `<|en|>` or `<|0.02|>`."""
        if token >= self.first_timestamp:
            return f"<|{(token - self.first_timestamp) * TIMESTAMP_SECONDS:.2f}|>"
        return self._control.get(token, f"<|{token}|>")


def _read(path: Path) -> dict[str, Any]:
    """Return the tables of `path`, those that are used here being as they should."""
    try:
        tables: dict[str, Any] = json.loads(path.read_bytes())
        kinds = tables["model"]["type"], tables["decoder"]["type"]
        _ = (
            tables["model"]["vocab"].items(),
            [(entry["id"], entry["content"]) for entry in tables["added_tokens"]],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(
            f"The tokenizer '{path}' cannot be read ({type(error).__name__}: {error}). Expected a "
            "tokenizer.json with a byte-level vocabulary; fetch the file again."
        ) from error
    if kinds != ("BPE", "ByteLevel"):
        raise WeightsError(
            f"The tokenizer '{path}' has a model of type {kinds[0]} and a decoder of type {kinds[1]}; "
            "expected BPE and ByteLevel."
        )
    return tables


@cache
def byte_of_letter() -> dict[str, int]:
    """Return the byte that each letter of a byte-level vocabulary stands for.

    Bytes that print in Latin-1 stand for themselves; the others, in order, are the letters from U+0100 on.
    """
    printed = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in set(printed)]
    return {chr(byte): byte for byte in printed} | {chr(256 + i): byte for i, byte in enumerate(hidden)}

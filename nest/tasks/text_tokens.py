"""Text to token ids and back for decoders, by a checkpoint's own `tokenizer.json`, whole or as the ids come.

Every token stands for some bytes: in a byte-level vocabulary each of its letters is one (GPT-2, Llama 3, Qwen), in a
SentencePiece-like one a "▁" is a space, and `<0xE2>` a byte that no other token has (Llama 2, Mistral, Phi-3). So one
decoder of UTF-8 that is fed bytes gives whole characters of both.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nest._optional import need
from nest._timing import timed
from nest.errors import WeightsError
from nest.tasks.text import refuse_halves
from nest.tasks.tokens import byte_of_letter

__all__ = ["DecoderTokenizer", "TextDecoder"]

Spelling = Callable[[str], bytes]


class DecoderTokenizer:
    """The tokenizer of a text checkpoint.

    Attributes:
        path: its file.
        size: how many ids it knows, those of added tokens among them.
    """

    def __init__(self, path: Path) -> None:
        """Read `path`.

        Raises:
            WeightsError: it is no `tokenizer.json`, or its decoder is neither byte-level nor SentencePiece-like.
            MissingDependencyError: `tokenizers` is not installed (extra `text`).
        """
        tokenizers = need("tokenizers", extra="text", purpose="turn text into token ids")
        self.path = path
        try:
            text = path.read_bytes().decode("utf-8")
            self._tokenizer = tokenizers.Tokenizer.from_str(text)
            tables = json.loads(text)
        except Exception as error:  # the library raises plain Exception
            raise WeightsError(
                f"The tokenizer '{path}' cannot be read ({type(error).__name__}: {error}). Expected a tokenizer.json; "
                "fetch the file again."
            ) from error
        # What a file says of cutting and filling is for encoders' batches.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._spelling, self._strips = _spelling(tables, path)
        added = self._tokenizer.get_added_tokens_decoder()
        self._special = {token for token, entry in added.items() if entry.special}
        self._added = {token: entry.content for token, entry in added.items()}
        self.size = self._tokenizer.get_vocab_size(with_added_tokens=True)

    @timed("tokenise")
    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the ids of `text`. Control tokens that are spelled in it, as `<|im_end|>`, are read as such.

        Args:
            text: any text.
            special: put what the checkpoint puts around every text, such as a first token, around this one.

        Raises:
            InputError: half of a surrogate pair is in it.
        """
        refuse_halves(text, "The prompt")
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=special).ids
        return ids

    def decode(self, ids: Iterable[int], *, skip_special: bool = True, start: bool = True) -> str:
        """Return the text of `ids`; see `decoder`."""
        decoder = self.decoder(skip_special=skip_special, start=start)
        return "".join([*map(decoder.push, ids), decoder.finish()])

    def decoder(self, *, skip_special: bool = True, start: bool = True) -> TextDecoder:
        """Return a decoder that is given ids one by one.

        Args:
            skip_special: leave control tokens out of the text.
            start: the ids begin a text: a SentencePiece-like vocabulary puts a space before it, which is left out.
        """
        return TextDecoder(self, skip_special, start and self._strips)

    def token_bytes(self, token: int, *, skip_special: bool = True) -> bytes:
        """Return the bytes that `token` stands for; none for an id that the vocabulary does not have."""
        if token in self._added:
            return b"" if skip_special and token in self._special else self._added[token].encode()
        name = self._tokenizer.id_to_token(token)
        return b"" if name is None else self._spelling(name)


class TextDecoder:
    """Ids to text as they come: each push gives the characters that are whole by then."""

    def __init__(self, tokenizer: DecoderTokenizer, skip_special: bool, strips: bool) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._strips = strips
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    @timed("detokenise")
    def push(self, token: int) -> str:
        """Return what `token` completes; bytes that can belong to no character give U+FFFD."""
        return self._stripped(
            self._utf8.decode(self._tokenizer.token_bytes(token, skip_special=self._skip_special))
        )

    def finish(self) -> str:
        """Return what is left: U+FFFD where the ids ended within a character."""
        return self._stripped(self._utf8.decode(b"", final=True))

    def _stripped(self, text: str) -> str:
        if not (self._strips and text):
            return text
        self._strips = False
        return text.removeprefix(" ")


def _spelling(tables: dict[str, Any], path: Path) -> tuple[Spelling, bool]:
    """The bytes of a token by its name, and whether a space before the text is left out."""
    decoder = tables.get("decoder") or {}
    steps = decoder.get("decoders") or [decoder]
    kinds = [step.get("type") for step in steps]
    if "ByteLevel" in kinds:
        return _by_letters, False
    if "Metaspace" in kinds:
        scheme = steps[kinds.index("Metaspace")].get("prepend_scheme", "always")
        return _by_pieces, scheme != "never"
    spaces = [s for s in steps if s.get("type") == "Replace" and s.get("content") == " "]
    if spaces and spaces[0].get("pattern") == {"String": "▁"}:
        return _by_pieces, any(s.get("type") == "Strip" and s.get("start") for s in steps)
    raise WeightsError(
        f"The tokenizer '{path}' has a decoder of type {', '.join(map(str, kinds))}; expected ByteLevel, or the "
        "Replace, ByteFallback and Strip (or Metaspace) of a SentencePiece vocabulary."
    )


def _by_letters(name: str) -> bytes:
    table = byte_of_letter()
    # As the library does: a name with a letter that stands for no byte is its own text.
    return (
        bytes(table[letter] for letter in name) if all(letter in table for letter in name) else name.encode()
    )


def _by_pieces(name: str) -> bytes:
    if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
        try:
            return bytes([int(name[3:5], 16)])
        except ValueError:
            pass
    return name.replace("▁", " ").encode()

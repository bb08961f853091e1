"""Two small vocabularies for text: one byte-level, one as SentencePiece makes them; and a chat template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nest.tasks.text_tokens import DecoderTokenizer

from .scripted import LETTERS

END, TURN, MARK = 258, 259, 260
"""Ends a text; begins a turn of a chat; is no control token, but one that was added."""

TEMPLATE = (
    "{%- for message in messages %}\n"
    "  {%- if message['role'] == 'tool' %}{{ raise_exception('No tools here.') }}{% endif %}\n"
    "{{- '<|turn|>' + message['role'] + '\n' + message['content'] | trim + eos_token + '\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}{{- '<|turn|>assistant\n' }}{% endif %}"
)


def _added(token: int, content: str, *, special: bool = True) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return {"id": token, "content": content, **flags}


def byte_level() -> dict[str, Any]:
    """256 bytes, `he` and ` he`, two control tokens and `<mark>`."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "normalizer": None,
        "added_tokens": [
            _added(END, "<|end|>"), _added(TURN, "<|turn|>"), _added(MARK, "<mark>", special=False)
        ],
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "vocab": {letter: token for token, letter in enumerate([*LETTERS, "he", "Ġhe"])},
            "merges": ["h e", "Ġ he"],
        },
    }  # fmt: skip


def pieces() -> dict[str, Any]:
    """`<unk>`, `<s>`, `</s>`, 256 bytes and some pieces; a first token `<s>`, a space before every text."""
    words = ["▁", "a", "b", "▁a", "▁b", "ab", "▁ab", "é"]
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": 3 + byte for byte in range(256)}
    vocab |= {word: 259 + at for at, word in enumerate(words)}
    special = {"id": "<s>", "ids": [1], "tokens": ["<s>"]}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(0, "<unk>"), _added(1, "<s>"), _added(2, "</s>")],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<s>": special},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": vocab,
            "merges": ["▁ a", "▁ b", "a b", "▁ ab"],
        },
    }


def tokenizer_of(tables: dict[str, Any], folder: Path) -> DecoderTokenizer:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(tables), encoding="utf-8")
    return DecoderTokenizer(path)

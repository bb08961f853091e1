"""Make the published tokenizer.json and tokenizer_config.json of a byte-pair vocabulary in a GGUF file.

A GGUF file holds the vocabulary, the merges and the chat template; how text is cut before the merges it only names.
So each name that nest knows stands for the settings that the publisher's files have, and with them the files come
out to the byte.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nest.errors import WeightsError
from nest.weights._files import atomic
from nest.weights._gguf_file import GGUFFile, read_gguf_file

__all__ = ["convert_tokenizer", "convert_tokenizer_config"]

_TOKENS, _KINDS, _MERGES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"
_CONTROL = 3
_ROLES = {"bos": "bos_token_id", "eos": "eos_token_id", "pad": "padding_token_id", "unk": "unknown_token_id"}


def convert_tokenizer(source: Path, target: Path) -> None:
    """Write the vocabulary of the model file `source` as a `tokenizer.json`, whole or not at all.

    Raises:
        WeightsError: the file is damaged, or its vocabulary is not of a kind that nest knows.
    """
    file = _read(source)
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {token: index for index, token in enumerate(file.arrays[_TOKENS])},
        "merges": file.arrays[_MERGES],
    }
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, **_token(text)} for index, text in _control(file)],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, _byte_level(space=False)],
        },
        "post_processor": None,
        "decoder": _byte_level(space=True),
        "model": model,
    }
    with atomic(target) as out:
        out.write(json.dumps(content, indent=2, ensure_ascii=False).encode())


def convert_tokenizer_config(source: Path, target: Path) -> None:
    """Write the control tokens and the chat template of `source` as a `tokenizer_config.json`.

    Raises:
        WeightsError: as `convert_tokenizer`, or the file has no chat template.
    """
    file = _read(source)
    bos, eos, pad, unk = (_role(file, role, source) for role in _ROLES)
    template, most = (file.settings.get(k) for k in ("tokenizer.chat_template", "llama.context_length"))
    if not isinstance(template, str) or type(most) is not int:
        raise _error(source, "it has no chat template, or no context length")
    content = {
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(index): dict(sorted(_token(text).items())) for index, text in _control(file)
        },
        "additional_special_tokens": [bos, eos],
        "bos_token": bos,
        "chat_template": template,
        "clean_up_tokenization_spaces": False,
        "eos_token": eos,
        "model_max_length": most,
        "pad_token": pad,
        "tokenizer_class": "GPT2Tokenizer",
        "unk_token": unk,
        "vocab_size": len(file.arrays[_TOKENS]),
    }
    with atomic(target) as out:
        out.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def _read(source: Path) -> GGUFFile:
    file = read_gguf_file(source, arrays=(_TOKENS, _KINDS, _MERGES))
    kind = tuple(file.settings.get(f"tokenizer.ggml.{key}") for key in ("model", "pre"))
    if kind != ("gpt2", "smollm"):
        raise _error(source, f"expected byte pairs cut as 'smollm'; they are {kind!r:.80}")
    for key in (_TOKENS, _KINDS, _MERGES):
        if key not in file.arrays:
            raise _error(source, f"it has no list '{key}'")
    tokens = file.arrays[_TOKENS]
    if not all(isinstance(text, str) for text in (*tokens, *file.arrays[_MERGES])):
        raise _error(source, "its tokens and merges are not all texts")
    if len(set(tokens)) != len(tokens) or len(file.arrays[_KINDS]) != len(tokens):
        raise _error(source, f"a token stands twice, or there is not one '{_KINDS}' for each")
    return file


def _control(file: GGUFFile) -> list[tuple[int, str]]:
    kinds = enumerate(zip(file.arrays[_TOKENS], file.arrays[_KINDS], strict=True))
    return [(index, text) for index, (text, kind) in kinds if kind == _CONTROL]


def _role(file: GGUFFile, role: str, source: Path) -> str:
    index, tokens = file.settings.get(f"tokenizer.ggml.{_ROLES[role]}"), file.arrays[_TOKENS]
    if type(index) is not int or not 0 <= index < len(tokens):
        raise _error(source, f"'{_ROLES[role]}' is {index!r:.80}, which is no token")
    return str(tokens[index])


def _token(text: str) -> dict[str, Any]:
    """A control token: found in a text as it stands, before anything is cut."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"content": text, **flags, "special": True}


def _byte_level(*, space: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True, "use_regex": True}


def _error(source: Path, fault: str) -> WeightsError:
    return WeightsError(f"{source} cannot be converted to a tokenizer: {fault}.")

"""The vocabulary of a GGUF file as the published tokenizer files."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from nest.errors import WeightsError
from nest.weights.converters import converter

from . import gguf_files as gguf

TOKENS = ["<|end|>", "<|user|>", "a", "b", "ab", "Ġ", "Ġab"]
MERGES = ["a b", "Ġ ab"]


def texts(*values: str) -> bytes:
    return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(gguf.text, values))


def numbers(*values: int) -> bytes:
    return struct.pack(f"<IIQ{len(values)}i", 9, 5, len(values), *values)


SETTINGS: dict[str, Any] = {
    "llama.context_length": 64,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": texts(*TOKENS),
    "tokenizer.ggml.token_type": numbers(3, 3, 1, 1, 1, 1, 1),
    "tokenizer.ggml.merges": texts(*MERGES),
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 0,
    "tokenizer.ggml.padding_token_id": 0,
    "tokenizer.ggml.unknown_token_id": 0,
    "tokenizer.chat_template": "{{ messages }}",
}


def made(folder: Path, name: str, **changed: Any) -> Any:
    source, target = folder / "model.gguf", folder / "made.json"
    settings = {key: value for key, value in {**SETTINGS, **changed}.items() if value is not None}
    source.write_bytes(gguf.content(settings, {}))
    converter(name)(source, target)
    return json.loads(target.read_bytes())


def test_the_vocabulary_cuts_texts(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    content = made(tmp_path, "gguf-tokenizer")
    assert content["model"]["vocab"] == {token: index for index, token in enumerate(TOKENS)}
    assert content["model"]["merges"] == MERGES
    found = tokenizers.Tokenizer.from_file(str(tmp_path / "made.json"))
    assert found.encode("ab<|end|>a ab").ids == [4, 0, 2, 6]
    assert found.decode([4, 0, 2, 6]) == "aba ab"


def test_the_configuration(tmp_path: Path) -> None:
    content = made(tmp_path, "gguf-tokenizer-config")
    assert content["chat_template"] == "{{ messages }}"
    assert content["model_max_length"] == 64
    assert (content["bos_token"], content["eos_token"]) == ("<|user|>", "<|end|>")
    assert content["added_tokens_decoder"].keys() == {"0", "1"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"tokenizer.ggml.model": "llama"},
            "expected byte pairs cut as 'smollm'; they are ('llama', 'smollm')",
        ),
        ({"tokenizer.ggml.pre": None}, "they are ('gpt2', None)"),
        ({"tokenizer.ggml.merges": None}, "it has no list 'tokenizer.ggml.merges'"),
        ({"tokenizer.ggml.tokens": 7}, "it has no list 'tokenizer.ggml.tokens'"),
        ({"tokenizer.ggml.merges": numbers(1, 2)}, "its tokens and merges are not all texts"),
        ({"tokenizer.ggml.tokens": texts(*TOKENS[:-1], "a")}, "a token stands twice"),
        ({"tokenizer.ggml.token_type": numbers(1)}, "there is not one 'tokenizer.ggml.token_type' for each"),
        ({"tokenizer.ggml.eos_token_id": 7}, "'eos_token_id' is 7, which is no token"),
        ({"tokenizer.ggml.bos_token_id": "1"}, "'bos_token_id' is '1', which is no token"),
        ({"tokenizer.chat_template": None}, "it has no chat template, or no context length"),
    ],
)
def test_another_vocabulary(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(WeightsError) as caught:
        made(tmp_path, "gguf-tokenizer-config", **changed)
    assert f"{tmp_path / 'model.gguf'} cannot be converted to a tokenizer: " in str(caught.value)
    assert words in str(caught.value)
    assert not (tmp_path / "made.json").exists()


def test_an_array_of_arrays(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"'tokenizer\.ggml\.merges' is an array of the type 9"):
        made(tmp_path, "gguf-tokenizer", **{"tokenizer.ggml.merges": struct.pack("<IIQ", 9, 9, 1)})

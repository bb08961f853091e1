"""GGUF files of a small Llama: written here, converted, damaged and forged."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.errors import WeightsError
from nest.weights import open_checkpoint
from nest.weights._gguf_file import read_gguf_file
from nest.weights.converters import converter
from nest.weights.gguf import convert_llama

from . import gguf_files as gguf


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return gguf.write_llama(tmp_path / "model.gguf")


def converted(path: Path) -> dict[str, np.ndarray]:
    target = path.with_name("model.safetensors")
    convert_llama(path, target)
    return {name: view.array() for name, view in open_checkpoint(target).items()}


def rewritten(path: Path, tensors: dict[str, Any] | None = None, **settings: Any) -> Path:
    path.write_bytes(
        gguf.content(
            {**gguf.llama_settings(), **settings}, gguf.llama_tensors() if tensors is None else tensors
        )
    )
    return path


def test_settings_and_tensors(source: Path) -> None:
    file = read_gguf_file(source)
    assert file.settings == {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.rope.dimension_count": 16,
        "llama.rope.freq_base": 10000.0,
    }
    assert {tensor.type.name for tensor in file.tensors.values()} == {"F32", "F16", "Q4_0", "Q4_1", "Q8_0"}
    for name, tensor in gguf.llama_tensors().items():
        found = file.tensors[name].array()
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, tensor.values)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("alignment", [32, 64])
def test_versions_and_alignments(tmp_path: Path, version: int, alignment: int) -> None:
    path = tmp_path / "model.gguf"
    settings = {"general.alignment": alignment, "x": 1}
    tensors = {"a": gguf.stored(np.arange(3.0), 0), "b": gguf.stored(np.zeros((2, 32)), 2)}
    path.write_bytes(gguf.content(settings, tensors, version=version, alignment=alignment))
    for name, tensor in read_gguf_file(path).tensors.items():
        np.testing.assert_array_equal(tensor.array(), tensors[name].values)


def test_every_tensor_has_its_published_name(source: Path) -> None:
    found = converted(source)
    assert len(found) == 2 * 9 + 2
    assert "lm_head.weight" not in found  # tied to the embedding
    tensors = gguf.llama_tensors()
    for ours, theirs in {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "model.layers.1.input_layernorm.weight": "blk.1.attn_norm.weight",
        "model.layers.1.post_attention_layernorm.weight": "blk.1.ffn_norm.weight",
        "model.layers.0.self_attn.v_proj.weight": "blk.0.attn_v.weight",
        "model.layers.0.self_attn.o_proj.weight": "blk.0.attn_output.weight",
        "model.layers.0.mlp.gate_proj.weight": "blk.0.ffn_gate.weight",
        "model.layers.0.mlp.up_proj.weight": "blk.0.ffn_up.weight",
        "model.layers.1.mlp.down_proj.weight": "blk.1.ffn_down.weight",
    }.items():
        assert found[ours].dtype == np.float32
        np.testing.assert_array_equal(found[ours], tensors[theirs].values)


@pytest.mark.parametrize(("part", "letter", "heads"), [("attn_q", "q", 4), ("attn_k", "k", 2)])
def test_rows_of_queries_and_keys_are_put_in_order(source: Path, part: str, letter: str, heads: int) -> None:
    rows = converted(source)[f"model.layers.1.self_attn.{letter}_proj.weight"]
    theirs = gguf.llama_tensors()[f"blk.1.{part}.weight"].values
    size = 16
    for head in range(heads):
        for pair in range(size // 2):
            # What the file turns as (2p, 2p + 1), the checkpoint turns as (p, p + half).
            np.testing.assert_array_equal(rows[head * size + pair], theirs[head * size + 2 * pair])
            np.testing.assert_array_equal(
                rows[head * size + pair + size // 2], theirs[head * size + 2 * pair + 1]
            )


def test_a_head_of_its_own(source: Path) -> None:
    head = gguf.stored(np.zeros((gguf.VOCAB, gguf.D)), 3, seed=99)
    found = converted(rewritten(source, {**gguf.llama_tensors(), "output.weight": head}))
    np.testing.assert_array_equal(found["lm_head.weight"], head.values)


def test_entries_may_declare_it() -> None:
    assert converter("gguf-llama") is convert_llama


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"general.architecture": "phi3"}, "expected the architecture llama; it is 'phi3'"),
        ({"llama.block_count": 3}, "it lacks 9 tensors, such as 'blk.2.attn_k.weight'"),
        ({"llama.block_count": 1}, "no place for: ['blk.1.attn_k.weight', "),
        ({"llama.block_count": 0}, "expected a count as 'llama.block_count'; it is 0"),
        ({"llama.block_count": 10**9}, "expected a count as 'llama.block_count'; it is 1000000000"),
        ({"llama.attention.head_count": 0}, "expected a count as 'llama.attention.head_count'; it is 0"),
        ({"llama.attention.head_count": "4"}, "expected a count as 'llama.attention.head_count'; it is '4'"),
        ({"llama.attention.head_count": 5}, "'blk.0.attn_q.weight' has the shape [64, 64]: no 5 heads of an"),
        ({"llama.attention.head_count": 64}, "has the shape [64, 64]: no 64 heads of an even size"),
        ({"llama.rope.dimension_count": 8}, "expected all 16 dimensions of a head to be turned; it turns 8"),
    ],
)
def test_a_file_of_another_model(source: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(WeightsError) as caught:
        converted(rewritten(source, **settings))
    assert f"{source} cannot be converted to a Llama checkpoint: " in str(caught.value)
    assert words in str(caught.value)
    assert not source.with_name("model.safetensors").exists()


def test_tensors_of_another_model(source: Path) -> None:
    tensors = gguf.llama_tensors()
    with pytest.raises(WeightsError, match=r"no place for: \['rope_freqs\.weight'\]"):
        converted(rewritten(source, {**tensors, "rope_freqs.weight": tensors["output_norm.weight"]}))
    del tensors["blk.1.ffn_up.weight"]
    with pytest.raises(WeightsError, match=r"it lacks 1 tensors, such as 'blk\.1\.ffn_up\.weight'"):
        converted(rewritten(source, tensors))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_values_that_are_no_numbers(source: Path, number: float) -> None:
    tensors = {**gguf.llama_tensors(), "output_norm.weight": gguf.stored(np.full(gguf.D, number), 0)}
    with pytest.raises(WeightsError, match=r"'output_norm\.weight' has values that are not finite"):
        converted(rewritten(source, tensors))
    assert not source.with_name("model.safetensors").exists()


HEAD = b"GGUF" + struct.pack("<I", 3)


def _tensor(name: str = "a", shape: tuple[int, ...] = (1,), kind: int = 0, offset: int = 0) -> bytes:
    return gguf.text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "it is empty"),
        (b"GGU", "at byte 0, it is truncated: its first four bytes takes 4 bytes; 3 are left"),
        (b"GGML0000", "at byte 0, it does not start with 'GGUF'"),
        (b"GGUF" + struct.pack("<I", 1), "at byte 4, its version is 1; nest reads 2 and 3"),
        (
            HEAD + struct.pack("<QQ", 1 << 40, 0),
            "it states 1099511627776 tensors (at most 100000 are accepted)",
        ),
        (HEAD + struct.pack("<QQ", 0, 100_001), "it states 100001 settings (at most 100000 are accepted)"),
        (
            HEAD + struct.pack("<QQQ", 0, 1, 1 << 60),
            "a setting's name has 1152921504606846976 bytes (at most",
        ),
        (HEAD + struct.pack("<QQ", 0, 1) + gguf.text(b"\xff"), "a setting's name is not UTF-8 text"),
        (HEAD + struct.pack("<QQ", 0, 1) + gguf.setting("k", struct.pack("<I", 99)), "'k' has the type 99"),
        (
            HEAD + struct.pack("<QQ", 0, 1) + gguf.setting("k", struct.pack("<IQ", 8, 1 << 21)),
            "'k' has 2097152 bytes (at most 1048576 are accepted)",
        ),
        (
            HEAD + struct.pack("<QQ", 0, 1) + gguf.setting("k", struct.pack("<IIQ", 9, 4, 1 << 62)),
            "it is truncated: the array 'k' takes 18446744073709551616 bytes; 0 are left",
        ),
        (
            HEAD + struct.pack("<QQ", 0, 1) + gguf.setting("k", struct.pack("<IIQ", 9, 8, 1 << 63)),
            "it is truncated: a text of 'k' takes 8 bytes; 0 are left",
        ),
        (
            HEAD + struct.pack("<QQ", 0, 1) + gguf.setting("k", struct.pack("<IIQ", 9, 9, 1)),
            "'k' is an array of the type 9; nest reads arrays of numbers and texts",
        ),
        (HEAD + struct.pack("<QQ", 0, 2) + 2 * gguf.setting("k", 1), "the setting 'k' stands twice"),
        (
            HEAD + struct.pack("<QQ", 0, 1) + gguf.setting("general.alignment", 0),
            "'general.alignment' is 0",
        ),
        (
            HEAD + struct.pack("<QQ", 0, 1) + gguf.setting("general.alignment", "x"),
            "'general.alignment' is 'x'",
        ),
        (HEAD + struct.pack("<QQ", 1, 0) + _tensor(shape=(1,) * 5), "tensor 'a' has 5 axes (at most 4 are"),
        (
            HEAD + struct.pack("<QQ", 1, 0) + _tensor(kind=12),
            "tensor 'a' has the type number 12; nest reads F32, F16, Q4_0, Q4_1, Q8_0",
        ),
        (
            HEAD + struct.pack("<QQ", 1, 0) + _tensor(shape=(33, 2), kind=2),
            "tensor 'a', Q4_0[2, 33], has rows that are no whole blocks of 32",
        ),
        (HEAD + struct.pack("<QQ", 1, 0) + _tensor(shape=(), kind=8), "no whole blocks of 32"),
        (
            HEAD + struct.pack("<QQ", 1, 0) + _tensor(shape=(1 << 62,) * 4),
            "it is truncated: tensor 'a' ends at byte",
        ),
        (
            HEAD + struct.pack("<QQ", 1, 0) + _tensor(offset=1 << 63),
            "it is truncated: tensor 'a' ends at byte 9223372036854775876; the file has",
        ),
        (
            HEAD + struct.pack("<QQ", 2, 0) + _tensor(shape=(8,)) + _tensor("b", (8,), 0, 16) + bytes(96),
            "tensor 'b' overlaps the one before it",
        ),
        (
            HEAD + struct.pack("<QQ", 2, 0) + _tensor() + _tensor(offset=32) + bytes(96),
            "the tensor 'a' stands twice",
        ),
    ],
)
def test_a_forged_file(tmp_path: Path, raw: bytes, words: str) -> None:
    path = tmp_path / "forged.gguf"
    path.write_bytes(raw)
    with pytest.raises(WeightsError) as caught:
        read_gguf_file(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"x\.gguf cannot be read: No such file"):
        read_gguf_file(tmp_path / "x.gguf")


def test_a_truncated_file(source: Path) -> None:
    whole = source.read_bytes()
    for keep in range(0, len(whole) - 32, 997):
        source.write_bytes(whole[:keep])
        with pytest.raises(WeightsError, match=r"is not a GGUF file"):
            read_gguf_file(source)

"""Write small GGUF files for tests, as the format's description says."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HEADS, KV_HEADS, LAYERS, D, INNER, VOCAB = 4, 2, 2, 64, 96, 7
"""Of the small Llama: heads of 16 dimensions."""


@dataclass(frozen=True)
class Stored:
    """A tensor as it lies in a file, and the f32 values that it stands for, worked out one by one."""

    shape: tuple[int, ...]
    kind: int
    data: bytes
    values: np.ndarray


def stored(values: np.ndarray, kind: int, seed: int = 0) -> Stored:
    """Store `values` as F32 or F16; for block types, random blocks of that shape."""
    if kind == 0:
        return Stored(values.shape, kind, values.astype("<f4").tobytes(), values.astype(np.float32))
    if kind == 1:
        half = values.astype("<f2")
        return Stored(values.shape, kind, half.tobytes(), half.astype(np.float32))
    rng = np.random.default_rng(seed)
    pairs = [_block(kind, rng) for _ in range(values.size // 32)]
    decoded = np.array([value for _, numbers in pairs for value in numbers], np.float32)
    return Stored(values.shape, kind, b"".join(data for data, _ in pairs), decoded.reshape(values.shape))


def _block(kind: int, rng: np.random.Generator) -> tuple[bytes, list[np.float32]]:
    scale, offset = (np.float16(number) for number in rng.normal(size=2))
    d, m = np.float32(scale), np.float32(offset)
    if kind == 8:
        numbers = rng.integers(-128, 128, 32)
        return struct.pack("<e32b", scale, *numbers), [np.float32(q) * d for q in numbers]
    numbers = rng.integers(0, 16, 32)
    packed = bytes(int(numbers[i]) | int(numbers[i + 16]) << 4 for i in range(16))
    if kind == 2:
        return struct.pack("<e", scale) + packed, [np.float32(q - 8) * d for q in numbers]
    return struct.pack("<ee", scale, offset) + packed, [np.float32(q) * d + m for q in numbers]


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def setting(key: str, value: Any) -> bytes:
    if isinstance(value, bytes):  # ready-made: type and value
        return text(key) + value
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", 6, value)
    return text(key) + struct.pack("<II", 4, value)


def content(
    settings: Mapping[str, Any], tensors: Mapping[str, Stored], *, version: int = 3, alignment: int = 32
) -> bytes:
    """The bytes of a file."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(settings))
    head += b"".join(setting(key, value) for key, value in settings.items())
    data = b""
    for name, tensor in tensors.items():
        data += bytes(-len(data) % alignment)
        shape = tensor.shape[::-1]
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, tensor.kind, len(data))
        data += tensor.data
    return head + bytes(-len(head) % alignment) + data


def llama_settings() -> dict[str, Any]:
    return {
        "general.architecture": "llama",
        "llama.block_count": LAYERS,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.rope.dimension_count": D // HEADS,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.tokens": struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        "tokenizer.ggml.scores": struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3),
    }


def llama_tensors() -> dict[str, Stored]:
    """Every tensor of the small Llama, of every type that is read."""
    rng = np.random.default_rng(0)
    made: dict[str, Stored] = {}

    def add(name: str, kind: int, *shape: int) -> None:
        made[f"{name}.weight"] = stored(rng.normal(size=shape), kind, seed=len(made))

    add("token_embd", 8, VOCAB, D)
    for index in range(LAYERS):
        layer = f"blk.{index}"
        for norm in ("attn_norm", "ffn_norm"):
            add(f"{layer}.{norm}", 0, D)
        add(f"{layer}.attn_q", 3, D, D)
        add(f"{layer}.attn_k", 2, KV_HEADS * D // HEADS, D)
        add(f"{layer}.attn_v", 1, KV_HEADS * D // HEADS, D)
        add(f"{layer}.attn_output", 3, D, D)
        add(f"{layer}.ffn_gate", 3, INNER, D)
        add(f"{layer}.ffn_up", 2, INNER, D)
        add(f"{layer}.ffn_down", 8, D, INNER)
    add("output_norm", 0, D)
    return made


def write_llama(path: Path, **more: Any) -> Path:
    path.write_bytes(content({**llama_settings(), **more}, llama_tensors()))
    return path

"""Damaged files, by the thousand: an error that says so, or tensors; no other error, and no large allocation."""

from __future__ import annotations

import os
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from nest.errors import WeightsError
from nest.weights import open_checkpoint
from nest.weights.ct2 import convert_whisper
from nest.weights.gguf import convert_llama

from .gguf_files import write_llama
from .test_ct2 import _whisper, _write

ROUNDS = int(os.environ.get("NEST_FUZZ_ROUNDS", "250"))
MOST = 4 << 20
"""Bytes that a reader may take for a file of some tens of kilobytes."""

Read = Callable[[Path], object]


def _ct2(folder: Path) -> tuple[Path, Read]:
    return _write(folder / "model.bin", _whisper(layers=1)), lambda path: convert_whisper(
        path, folder / "made"
    )


def _gguf(folder: Path) -> tuple[Path, Read]:
    return write_llama(folder / "model.gguf"), lambda path: convert_llama(path, folder / "made")


def _safetensors(folder: Path) -> tuple[Path, Read]:
    source = folder / "model.safetensors"
    convert_llama(write_llama(folder / "model.gguf"), source)
    return source, lambda path: [view.array() for view in open_checkpoint(path).values()]


def _error_of(read: Read, source: Path) -> Exception | None:
    try:
        read(source)
    except Exception as error:
        return error
    return None


EXTREMES = [0, 1, 0x7F, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]


def damaged(whole: bytes, rng: random.Random) -> bytes:
    """One to four wounds: a byte, a number of any width, a piece cut out or doubled, the end cut off."""
    content = bytearray(whole)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if not content:
            break
        # Mostly near the start: what is there says how the rest is read.
        at = rng.randrange(min(len(content), rng.choice([32, 512, 4096, len(content)])))
        match rng.randrange(5):
            case 0:
                content[at] = rng.randrange(256)
            case 1:
                form = rng.choice(["<B", "<H", "<I", "<Q"])
                number = rng.choice(EXTREMES) & ((1 << 8 * struct.calcsize(form)) - 1)
                content[at : at + struct.calcsize(form)] = struct.pack(form, number)
            case 2:
                del content[at : at + rng.choice([1, 4, 8, 64])]
            case 3:
                content[at:at] = content[at : at + rng.choice([1, 8, 256])]
            case 4 if rng.random() < 0.2:
                del content[at:]
    return bytes(content)


@pytest.mark.parametrize("make", [_ct2, _gguf, _safetensors], ids=["ctranslate2", "gguf", "safetensors"])
def test_no_damage_is_read_as_something_else(
    make: Callable[[Path], tuple[Path, Read]], tmp_path: Path
) -> None:
    source, read = make(tmp_path)
    whole, rng = source.read_bytes(), random.Random(ROUNDS)
    read(source)  # whole, so that the modules which reading needs are loaded before memory is counted
    refused = 0
    tracemalloc.start()
    try:
        for number in range(ROUNDS):
            source.write_bytes(damaged(whole, rng))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            error = _error_of(read, source)
            peak = tracemalloc.get_traced_memory()[1] - before
            assert error is None or isinstance(error, WeightsError), f"round {number}: {error!r}"
            assert error is None or str(source) in str(error), f"round {number}: {error}"
            assert peak < MOST, f"round {number}: {peak} bytes"
            refused += error is not None
    finally:
        tracemalloc.stop()
    assert refused > ROUNDS // 4

"""Committed lists of a checkpoint's tensors: read, checked, written, and true for the whisper entries."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from nest.errors import ManifestError
from nest.ir.parammap import STORED_DTYPES, TensorSpec
from nest.registry import find
from nest.registry.tensors import TensorList, read_tensors, write_tensors

REVISION = "0" * 40
GOOD = {
    "repo": "a/b",
    "revision": REVISION,
    "source": "header",
    "note": "The header.",
    "tensors": {"w": "f32[2, 3]", "scalar": "bf16[]"},
}


def put(folder: Path, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    (folder / "tensors.json").write_text(text, encoding="utf-8")


def test_a_list(tmp_path: Path) -> None:
    put(tmp_path, GOOD)
    listed = read_tensors(tmp_path, "x")
    assert listed is not None
    assert listed.specs == {"w": TensorSpec((2, 3), "f32"), "scalar": TensorSpec((), "bf16")}


def test_there_need_be_none(tmp_path: Path) -> None:
    assert read_tensors(tmp_path, "x") is None


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (
            {"tensors": {"w": "f32[2,3]"}},
            7,
            "'tensors.w': expected a dtype and a shape, 'f32[384, 80, 3]'; came 'f32[2,3]'",
        ),
        (
            {"tensors": {"w": f"f32[{'9' * 5000}]"}},
            7,
            "'tensors.w': expected a dtype and a shape, 'f32[384, 80, 3]'; came 'f32[9999",
        ),
        ({"tensors": {"w": "float[2]"}}, 7, "came 'float[2]'"),
        ({"tensors": {"w": "f32[2, ]"}}, 7, "came 'f32[2, ]'"),
        ({"tensors": {}}, 6, "'tensors': dictionary should have at least 1 item"),
        ({"source": "guess"}, 4, "'source': input should be 'header' or 'derived'"),
        ({"revision": "main"}, 3, "'revision': expected the 40 hexadecimal digits of a commit"),
        ({"sauce": 1}, 8, "'sauce': unknown key. Did you mean 'source'?"),
    ],
)
def test_a_fault(tmp_path: Path, change: dict[str, Any], line: int, words: str) -> None:
    put(tmp_path, GOOD | change)
    with pytest.raises(ManifestError) as caught:
        read_tensors(tmp_path, "x")
    text = str(caught.value)
    assert words in text
    if "sauce" not in change:
        assert f"tensors.json:{line}, " in text


@pytest.mark.parametrize("content", ["[1", "[]", '{"repo": "a/b", "repo": "c/d"}'])
def test_no_such_object(tmp_path: Path, content: str) -> None:
    put(tmp_path, content)
    with pytest.raises(ManifestError, match=r"tensors\.json"):
        read_tensors(tmp_path, "x")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    specs = {"b": TensorSpec((), "i64"), "a": TensorSpec((1, 2), "f16")}
    file = write_tensors(tmp_path, "a/b", REVISION, specs, note="The header.")
    listed = read_tensors(tmp_path, "x")
    assert listed is not None
    assert (listed.specs, listed.source, listed.revision) == (specs, "header", REVISION)
    assert list(listed.tensors) == ["a", "b"]
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def published(name: str) -> tuple[TensorList, int]:
    """An entry's list, and the size of the file that it is of."""
    entry = find(name)
    listed, weights = read_tensors(entry.directory, name), entry.manifest.weights
    if listed is None or weights is None or weights.files[0].size is None:
        raise AssertionError(name)
    assert (listed.repo, listed.revision) == (weights.repo, weights.revision)
    return listed, weights.files[0].size


def data_bytes(listed: TensorList) -> int:
    return sum(math.prod(spec.shape) * STORED_DTYPES[spec.dtype] for spec in listed.specs.values())


def test_the_list_of_tiny_en_fills_its_file() -> None:
    listed, size = published("whisper-tiny.en")
    assert listed.source == "header"
    assert len(listed.tensors) == 167
    # What is left is the header: its length, 167 names, dtypes, shapes and offsets.
    assert 8 + 167 * 60 < size - data_bytes(listed) < 8 + 167 * 160


def test_the_derived_list_of_tiny_has_the_size_of_the_pinned_file() -> None:
    derived, size = published("whisper-tiny")
    header, other = published("whisper-tiny.en")
    assert derived.source == "derived"
    differing = [name for name, spec in derived.specs.items() if header.specs.get(name) != spec]
    assert differing == ["model.decoder.embed_tokens.weight"]
    assert derived.specs.keys() == header.specs.keys()
    # One token more is one row more, and nothing else: the two headers have the same length.
    assert size - other == 1536 == data_bytes(derived) - data_bytes(header)

"""Damaged files of an entry: an error in nest's words, or an entry; never anything else, and no other entry is lost."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nest.errors import ManifestError
from nest.registry import cards, find, zoo_directory
from nest.registry.parity import read_parity
from nest.registry.tensors import read_tensors

FILES = ("nest.toml", "bindings.json", "samples.json", "tensors.json", "parity.json")
SNIPPETS = [
    b"",
    b"[",
    b"]",
    b"{",
    b'"',
    b'"""',
    b"'''",
    b"\\",
    b"\n[x]\n",
    b"\xff",
    b"\x00",
    b"=",
    b"3",
    b"-1",
    b"nan",
    b"{}",
]

damage = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(SNIPPETS)), min_size=1, max_size=4
)


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "whisper-copy"
    shutil.copytree(zoo_directory() / "whisper-tiny", folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / "nest.toml").read_text("utf-8").replace('name = "whisper-tiny"', 'name = "whisper-copy"')
    (folder / "nest.toml").write_text(text, "utf-8")
    monkeypatch.setenv("NEST_ZOO", str(tmp_path))
    return folder


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=st.sampled_from(FILES), changes=damage)
def test_damage_is_an_error_in_words(entry: Path, file: str, changes: list[tuple[float, int, bytes]]) -> None:
    whole = (entry / file).read_bytes()
    raw = whole
    for where, length, put in changes:
        at = int(where * len(raw))
        raw = raw[:at] + put + raw[at + length :]
    (entry / file).write_bytes(raw)
    try:
        names = {card.name for card in cards()[0]}
        assert {"whisper-tiny", "whisper-tiny.en"} <= names
        for read in (lambda: find(entry), lambda: read_tensors(entry, "x"), lambda: read_parity(entry, "x")):
            with contextlib.suppress(ManifestError):
                read()
    finally:
        (entry / file).write_bytes(whole)


DEEP = {
    "nest.toml": [
        b"a = " + b"[" * 20_000,
        b"a = " + b"[" * 20_000 + b"]" * 20_000,
        b"a = " + b"{a=" * 20_000,
    ],
    "bindings.json": [b"[" * 20_000, b'{"a":' * 20_000, b'{"a": {"op": "cast", "of": ' * 20_000],
    "samples.json": [b"[" * 20_000, b'{"a":' * 20_000],
    "tensors.json": [b"[" * 20_000, b'{"a":' * 20_000],
    "parity.json": [b"[" * 20_000, b'{"a":' * 20_000],
}


READERS: dict[str, Callable[[Path], object]] = {
    "tensors.json": lambda entry: read_tensors(entry, "x"),
    "parity.json": lambda entry: read_parity(entry, "x"),
}


@pytest.mark.parametrize(("file", "raw"), [(file, raw) for file, raws in DEEP.items() for raw in raws])
def test_nesting_without_end(entry: Path, file: str, raw: bytes) -> None:
    (entry / file).write_bytes(raw)
    assert "whisper-tiny.en" in {card.name for card in cards()[0]}
    with pytest.raises(ManifestError, match=file):
        READERS.get(file, lambda entry: find(entry))(entry)


def test_bindings_nested_as_deep_as_json_goes(entry: Path) -> None:
    deep = '{"op": "cast", "dtype": "f32", "of": ' * 400 + '"w"' + "}" * 400
    (entry / "bindings.json").write_text(f'{{"a": {deep}}}', "utf-8")
    assert find(entry).bindings.rules[0].path == "a"

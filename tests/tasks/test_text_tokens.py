"""Ids to text as they come, beside the library that the vocabularies are written for."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.errors import WeightsError
from nest.tasks.text_tokens import DecoderTokenizer

from .vocabularies import END, MARK, byte_level, pieces, tokenizer_of

FORMS: dict[str, Callable[[], dict[str, Any]]] = {"byte-level": byte_level, "pieces": pieces}


@pytest.fixture(scope="module", params=FORMS)
def tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DecoderTokenizer:
    return tokenizer_of(FORMS[request.param](), tmp_path_factory.mktemp("text"))


@given(text=st.text())
def test_a_text_comes_back(tokenizer: DecoderTokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(ids=st.lists(st.integers(0, 275), max_size=12))
def test_any_ids_are_the_library_s_text_and_come_in_whole_characters(
    tokenizer: DecoderTokenizer, ids: list[int]
) -> None:
    decoder = tokenizer.decoder()
    shown = [decoder.push(token) for token in ids]
    text = "".join([*shown, decoder.finish()])
    assert text == tokenizer.decode(ids)
    content = b"".join(tokenizer.token_bytes(token) for token in ids)
    # Each piece is what the bytes so far say for certain.
    for count in range(len(ids) + 1):
        so_far = b"".join(tokenizer.token_bytes(token) for token in ids[:count])
        plain = codecs.getincrementaldecoder("utf-8")("replace").decode(so_far)
        assert "".join(shown[:count]) in (plain, plain.removeprefix(" "))
    theirs = tokenizer._tokenizer.decode(ids, skip_special_tokens=True)
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        # Of bytes that form no character the library makes one U+FFFD each or one a run, by the vocabulary.
        assert "�" in text
        assert "�" in theirs
    else:
        assert text == theirs


def test_what_begins_every_text_is_added_and_a_file_s_truncation_is_not_followed(tmp_path: Path) -> None:
    assert tokenizer_of(byte_level(), tmp_path).encode("abcdefgh") == list(
        tokenizer_of(byte_level(), tmp_path).encode("abcdefgh", special=False)
    )
    assert len(tokenizer_of(byte_level(), tmp_path).encode("abcdefgh")) == 8
    like_llama = tokenizer_of(pieces(), tmp_path)
    assert like_llama.encode("a") == [1, 262]
    assert like_llama.encode("a", special=False) == [262]


def test_control_tokens_are_left_out_and_added_ones_are_not(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(byte_level(), tmp_path)
    ids = tokenizer.encode("a<|end|><mark>")
    assert ids[1:] == [END, MARK]
    assert tokenizer.decode(ids) == "a<mark>"
    assert tokenizer.decode(ids, skip_special=False) == "a<|end|><mark>"
    assert tokenizer.decode([*ids, 299, 100_000]) == "a<mark>"


def test_only_the_beginning_of_a_text_loses_its_space(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(pieces(), tmp_path)
    ids = tokenizer.encode("a a", special=False)
    assert tokenizer.decode(ids) == "a a"
    assert tokenizer.decode(ids, start=False) == " a a"
    decoder = tokenizer.decoder()
    assert [decoder.push(259), decoder.push(259), decoder.push(260)] == ["", " ", "a"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}, "a decoder of type WordPiece; expected"),
        ({"decoder": None}, "a decoder of type None; expected"),
        ({"model": {"type": "BPE"}}, "cannot be read"),
    ],
)  # fmt: skip
def test_other_files_are_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=words):
        tokenizer_of({**byte_level(), **change}, tmp_path)
    (tmp_path / "no.json").write_bytes(b"\xff{")
    with pytest.raises(WeightsError, match=r"no\.json' cannot be read"):
        DecoderTokenizer(tmp_path / "no.json")

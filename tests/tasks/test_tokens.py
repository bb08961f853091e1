from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.errors import MissingDependencyError, WeightsError
from nest.tasks.tokens import Tokenizer

from .scripted import END, ENGLISH, FIRST_TIME, START, token_of, tokenizer_tables, tokens_of

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
HE, SPACE_HE = 256, 257


@given(TEXTS)
def test_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(TEXTS)
def test_the_spelling_of_a_control_token_is_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text + "<|endoftext|>")
    assert max(ids) < END
    assert tokenizer.decode(ids) == text + "<|endoftext|>"


def test_merges_are_applied(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("he he") == [HE, SPACE_HE]


@given(st.lists(st.integers(0, END - 1), max_size=40))
def test_pieces_are_whole_characters_and_lose_nothing(tokenizer: Tokenizer, ids: list[int]) -> None:
    pieces = tokenizer.pieces(ids)
    assert [token for _, run in pieces for token in run] == ids
    assert "".join(text for text, _ in pieces) == tokenizer.decode(ids)
    whole = b"".join(tokenizer.token_bytes(token) for token in ids)
    assert tokenizer.decode(ids) == whole.decode("utf-8", errors="ignore")


@given(TEXTS)
def test_each_piece_of_a_text_is_one_token_run(tokenizer: Tokenizer, text: str) -> None:
    pieces = tokenizer.pieces(tokens_of(text))
    assert [piece for piece, _ in pieces] == list(text)
    assert [len(run) for _, run in pieces] == [len(letter.encode()) for letter in text]


def test_a_character_that_is_cut_off_is_dropped(tokenizer: Tokenizer) -> None:
    ids = tokens_of("né日")[:-1]
    assert tokenizer.decode(ids) == "né"
    assert tokenizer.pieces(ids)[-1] == ("", ids[-2:])


def test_bytes_that_form_no_character_are_dropped(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode([token_of(0xFF), *tokens_of("a"), token_of(0xE6), *tokens_of("b")]) == "ab"


def test_control_tokens_and_times_are_no_text(tokenizer: Tokenizer) -> None:
    ids = [START, ENGLISH, FIRST_TIME, *tokens_of("hi"), FIRST_TIME + 51, END]
    assert tokenizer.decode(ids) == "hi"
    assert tokenizer.pieces(ids) == [("h", tokens_of("h")), ("i", tokens_of("i"))]


def test_control_tokens_and_times_can_be_spelled(tokenizer: Tokenizer) -> None:
    ids = [START, ENGLISH, FIRST_TIME, *tokens_of("hi"), FIRST_TIME + 51, FIRST_TIME + 1500, END]
    spelled = "<|startoftranscript|><|en|><|0.00|>hi<|1.02|><|30.00|><|endoftext|>"
    assert tokenizer.decode(ids, skip_special=False) == spelled


def test_a_control_token_ends_an_open_character(tokenizer: Tokenizer) -> None:
    first, second, third = tokens_of("日")
    assert tokenizer.decode([first, second, END, third], skip_special=False) == "<|endoftext|>"


@pytest.mark.parametrize("token", [-1, END, FIRST_TIME])
def test_only_text_tokens_have_bytes(tokenizer: Tokenizer, token: int) -> None:
    with pytest.raises(ValueError, match=rf"^{token} is not a text token: those are 0 to {END - 1}"):
        tokenizer.token_bytes(token)


def test_decoding_needs_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_tables()), encoding="utf-8")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    tokenizer = Tokenizer(path, end=END, first_timestamp=FIRST_TIME)
    assert tokenizer.decode(tokens_of("text")) == "text"
    with pytest.raises(MissingDependencyError, match=r"pip install 'nest-zoo\[audio\]'"):
        tokenizer.encode("text")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": {"type": "BPE"}}'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(WeightsError, match=r"The tokenizer '.*tokenizer\.json' cannot be read \(\w+"):
        Tokenizer(path, end=END, first_timestamp=FIRST_TIME)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="FileNotFoundError"):
        Tokenizer(tmp_path / "tokenizer.json", end=END, first_timestamp=FIRST_TIME)


def test_another_kind_of_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tables = tokenizer_tables()
    tables["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    path.write_text(json.dumps(tables), encoding="utf-8")
    with pytest.raises(
        WeightsError, match="model of type BPE and a decoder of type WordPiece; expected BPE and"
    ):
        Tokenizer(path, end=END, first_timestamp=FIRST_TIME)

"""Sentence embedding over a scripted model, and over a small one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.errors import InputError
from nest.tasks import Embedder, TruncatedTextWarning

from .encoders import SIZE, Scripted, tokenizer

TEXTS = ["the cat sat", "", "a", "the cat sat on the mat .", "dogs", "\u202eÇat\x00 😀"]


@pytest.mark.parametrize("backend", ["scripted", "jax"])
def test_vectors_come_in_the_order_of_the_texts(tmp_path: Path, backend: str) -> None:
    model = Scripted(backend)
    embed = Embedder(model, tokenizer(tmp_path))
    vectors = embed(TEXTS, batch_size=2)
    assert vectors.shape == (6, SIZE)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        alone = embed(text)
        assert alone.shape == (SIZE,)
        np.testing.assert_allclose(vector, alone, rtol=1e-6)
    assert (vectors[:, 0] * 100).round().tolist() == [5, 2, 3, 9, 4, 4]


def test_none_is_no_text(tmp_path: Path) -> None:
    assert Embedder(Scripted(), tokenizer(tmp_path))([]).shape == (0, SIZE)


def test_a_session_is_lent_again_and_has_the_plan(tmp_path: Path) -> None:
    model = Scripted()
    embed = Embedder(model, tokenizer(tmp_path), plan="fast")
    embed("a")
    embed("cat")
    assert model.sessions == [{"plan": "fast"}]


def test_shapes_are_padded_only_where_each_is_compiled(tmp_path: Path) -> None:
    plain, compiled = Scripted(), Scripted("jax")
    Embedder(plain, tokenizer(tmp_path))(TEXTS[:3])
    Embedder(compiled, tokenizer(tmp_path))(TEXTS[:3])
    assert plain.shapes == [(3, 5)]
    assert compiled.shapes == [(4, 8)]


def test_a_long_text_is_cut_before_its_last_special_token_and_that_is_said(tmp_path: Path) -> None:
    embed = Embedder(Scripted(), tokenizer(tmp_path, max_tokens=6))
    with pytest.warns(TruncatedTextWarning) as said:
        vectors = embed(["the cat sat on the mat .", "a"])
    assert str(said[0].message) == (
        "1 of 2 texts is longer than the 6 tokens that the model reads (9); what comes after them is left out."
    )
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(vectors[0], embed("the cat sat on"))


def test_prompts_go_in_front(tmp_path: Path) -> None:
    embed = Embedder(Scripted(), tokenizer(tmp_path), prompts={"query": "the cat "})
    np.testing.assert_array_equal(embed("sat", prompt="query"), embed("the cat sat"))
    with pytest.raises(InputError, match=r"There is no prompt 'passage'; prompts of this model: query\."):
        embed("sat", prompt="passage")


def test_similarity_is_the_cosine_of_texts_or_vectors(tmp_path: Path) -> None:
    embed = Embedder(Scripted(), tokenizer(tmp_path))
    vectors = embed(TEXTS)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    right = vectors.astype(np.float64) @ vectors.T / lengths / lengths[:, None]
    np.testing.assert_allclose(embed.similarity(TEXTS), right, atol=1e-6)
    np.testing.assert_allclose(embed.similarity(vectors, TEXTS[:2]), right[:, :2], atol=1e-6)
    np.testing.assert_allclose(embed.similarity("a", vectors[0]), right[2:3, :1], atol=1e-6)
    with pytest.raises(InputError, match=r"vectors of 6 numbers; an array \[2, 5\] came"):
        embed.similarity(np.zeros((2, 5), np.float32))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (b"cat", "Expected a text, or several in a list; a bytes came."),
        (7, "Expected a text, or several in a list; a int came."),
        (["a", None], "texts[1] is of type NoneType; expected str."),
        (["a\ud83d"], "texts[0] has half of a surrogate pair, U+D83D, at character 1"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, texts: Any, words: str) -> None:
    model = Scripted()
    with pytest.raises(InputError) as error:
        Embedder(model, tokenizer(tmp_path))(texts)
    assert words in str(error.value)
    assert model.shapes == []


def test_sizes_below_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="batch_size and budget are 1 or more; 0 and 512 came"):
        Embedder(Scripted(), tokenizer(tmp_path))("a", batch_size=0)

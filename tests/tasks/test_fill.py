"""Masked tokens over a scripted model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nest.errors import InputError, ManifestError, WeightsError
from nest.tasks import MaskFiller, TruncatedTextWarning
from nest.tasks.fill import likeliest
from nest.tasks.text import TextTokenizer

from .encoders import Scripted, tokenizer


@pytest.fixture
def fill(tmp_path: Path) -> MaskFiller:
    return MaskFiller(Scripted(), tokenizer(tmp_path, mask="[MASK]"))


def test_the_likeliest_tokens_of_a_mask(fill: MaskFiller) -> None:
    made = fill("The cat [MASK] on.", top=3)
    (choices,) = made.masks
    assert [c.token for c in choices] == ["dog", "##s", "[PAD]"]
    assert [c.id for c in choices] == [7, 12, 0]
    total = np.exp(3.0) + np.exp(2.0) + 13
    assert choices[0].probability == pytest.approx(np.exp(3.0) / total)
    assert made.text == "The cat dog on."
    assert choices[1].text == "The cats on."  # the rest of a word goes on with the word


def test_each_mask_is_filled_by_itself_and_the_others_stay(fill: MaskFiller) -> None:
    made = fill("A [MASK] sat [MASK] the mat.", top=1)
    filled = [choices[0].text for choices in made.masks]
    assert filled == ["A cat sat [MASK] the mat.", "A [MASK] sat on the mat."]
    assert made.text == "A cat sat on the mat."


@pytest.mark.parametrize("backend", ["scripted", "jax"])
def test_texts_of_unequal_length_and_number_of_masks(tmp_path: Path, backend: str) -> None:
    model = Scripted(backend)
    fill = MaskFiller(model, tokenizer(tmp_path, mask="[MASK]"))
    texts = ["a [MASK]", "[MASK]", "the cat [MASK] on the [MASK] [MASK]", "a cat sat on the [MASK]"]
    made = fill(texts, batch_size=3)
    assert [f.text for f in made] == [fill(text).text for text in texts]
    assert [len(f.masks) for f in made] == [1, 1, 3, 1]
    assert made[3].text == "a cat sat on the mat"


def test_a_text_without_a_mask_is_refused(fill: MaskFiller) -> None:
    with pytest.raises(InputError) as error:
        fill(["a [MASK]", "a cat"])
    assert str(error.value) == (
        "texts[1] has nothing to fill; it has no '[MASK]': write it where a word is to be found."
    )


def test_a_mask_that_was_cut_off_is_said(tmp_path: Path) -> None:
    fill = MaskFiller(Scripted(), tokenizer(tmp_path, mask="[MASK]", max_tokens=4))
    with (
        pytest.warns(TruncatedTextWarning, match=r"^The text is longer than the 4 tokens"),
        pytest.raises(InputError, match=r"its first 4 tokens, all that the model reads, have no '\[MASK\]'"),
    ):
        fill("the cat sat on the [MASK]")


def test_numbers_below_one_are_refused(fill: MaskFiller) -> None:
    with pytest.raises(InputError, match="top, batch_size and budget are 1 or more; 0, 16 and 512 came"):
        fill("a [MASK]", top=0)


def test_a_mask_that_the_vocabulary_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ManifestError, match=r"tokenizer\.mask is '<mask>', which is no token of 'tokenizer\.json'"
    ):
        tokenizer(tmp_path, mask="<mask>")


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}", "utf-8")
    with pytest.raises(WeightsError, match=r"tokenizer\.json' cannot be read"):
        TextTokenizer(path, max_tokens=8)


def test_equal_logits_are_in_the_order_of_ids() -> None:
    ids, probabilities = likeliest(np.array([1.0, 3.0, 3.0, -np.inf]), 4)
    assert ids == [1, 2, 0, 3]
    assert sum(probabilities) == pytest.approx(1.0)
    assert probabilities[3] == 0.0

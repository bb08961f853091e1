"""Texts as they are compared: by example, and equal to the reference implementation's on texts that are drawn."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from importlib import import_module

import pytest

from nest.evaluating import _english, _numbers
from nest.evaluating.normalize import NORMALIZERS, basic, english, normalizer_of, split


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mr. Dashwood, and Dr. No!", "mister dashwood and doctor no"),
        ("I'm sure he'd been there; it's gone, they can't.", "i am sure he had been there it has gone they can not"),
        ("Hmm, [music] the um (laughs) colour", "the color"),
        ("Ten thousand dollars", "$10000"),
        ("nineteen seventy six", "1976"),
        ("the twenty first of two thousand and nineteen", "the 21st of 2019"),
        ("three point one four percent", "3.14%"),
        ("double oh seven", "007"),
        ("two and a half million", "2500000"),
        ("two dollars and seven cents", "$2.07"),
        ("minus five, or plus six", "-5 or +6"),
        ("one of the ones", "one of the ones"),
        ("1,000,000 people at 7pm", "1000000 people at 7 pm"),
        ("the 1960s and sixties", "the 1960s and 60s"),
        ("naïve Œuvre, straße", "naive oeuvre strasse"),
        ("50 % of it. Or 5%", "50 of it or 5%"),
        ("(all of it)", ""),
    ],
)  # fmt: skip
def test_english(text: str, expected: str) -> None:
    assert english(text) == expected


def test_other_languages_keep_their_letters() -> None:
    assert basic("«Ça va?» [rires] Très   bien.") == "ça va très bien"
    assert split("今日は、いい天気。") == "今 日 は い い 天 気"


@pytest.mark.parametrize(
    ("language", "name"),
    [("en", "english"), ("fr", "basic"), ("ja", "split"), ("yue", "split"), ("ko", "basic")],
)
def test_which_one_is_for_a_language(language: str, name: str) -> None:
    assert normalizer_of(language) == name
    assert name in NORMALIZERS


_MORE = """a half and a half and point 7 12 0 $5 £3.50 ¢7 $0.50 1960s 3rd 2. 0.5 . 1 1,000 5% % per cent colour mr. Dr
    st can't won't he's they've 's y'all um uh (laughs) [music] <x> naïve Œuvre straße 10. -5 +5 € $ a1 b52 7pm 1st 1 st
    'em ma'am i'ma x.y 100% one-two twenty-one ½ ² ٣"""


def _drawn(count: int) -> list[str]:
    """Texts of number words, figures, contractions and marks, which meet in every order; and of any characters."""
    chance = random.Random(0)
    words = [
        *sorted(_numbers._WORDS),
        *_MORE,
        *list(_english._american())[:200],
        *_english._TITLES,
        *_english._INFORMAL,
    ]
    ranges = [(32, 127), (160, 0x250), (0x300, 0x3000), (0x3040, 0x3100), (0xE00, 0xE80)]
    texts = []
    for _ in range(count):
        if chance.random() < 0.1:
            texts.append("".join(chr(chance.randrange(*chance.choice(ranges))) for _ in range(20)))
        else:
            between = chance.choice([" ", " ", " ", ", ", "-"])
            texts.append(between.join(chance.choice(words) for _ in range(chance.randint(1, 9))))
    return texts


def _references() -> tuple[Callable[[str], str], Callable[[str], str], Callable[[str], str]]:
    """The reference library's normalisers; it does not ship the table of spellings."""
    try:
        module = import_module("transformers.models.whisper.english_normalizer")
    except ImportError:
        if os.environ.get("NEST_TEST_REFERENCE"):
            raise
        pytest.skip("transformers is not installed")
    return (
        module.EnglishTextNormalizer(_english._american()),
        module.BasicTextNormalizer(),
        module.BasicTextNormalizer(split_letters=True),
    )


@pytest.mark.reference
def test_equal_to_the_reference() -> None:
    theirs, plain, letters = _references()
    for text in _drawn(5000):
        # Spaces at the ends are no part of a comparison of words.
        assert english(text) == " ".join(theirs(text).split()), text
        assert basic(text) == " ".join(plain(text).split()), text
    for text in ("今日は、いい天気。", "你好，世界！", "สวัสดีครับ", "a b c"):
        assert split(text) == " ".join(letters(text).split())

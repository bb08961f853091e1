"""Tokens into words, on made-up pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.tasks._word_groups import Group, words


def of(*texts: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(text, (0,)) for text in texts]


@pytest.mark.parametrize(
    ("language", "pieces", "expected"),
    [
        ("en", [" And", " so", ","], [" And", " so,"]),
        ("en", [" am", "iable", " don", "'t", "."], [" amiable", " don't."]),
        ("en", [' "', "Hi", '"', " U", ".", "S", "."], [' "Hi"', " U.S."]),
        ("en", [" a", " -", " b"], [" a", " - b"]),
        ("en", ["...", " And", " (", "b", ").", " ..."], ["... And", " (b). ..."]),
        ("en", [" a", " ("], [" a ("]),
        ("fr", [" Quoi", " ?", " «", " Oui", " »"], [" Quoi ?", " « Oui »"]),
        (
            "zh",
            ["「", "你", "好", "」", "，", "用", "iP", "hone", "吗"],
            ["「你", "好」，", "用", "iPhone", "吗"],
        ),
        ("de", ["「", "你", "好"], ["「你好"]),
        ("en", ["", " a", "", " b", ""], [" a", " b"]),
        ("en", [" ", " a", " "], ["  a "]),
        ("en", ["..."], ["..."]),
        ("en", [], []),
    ],
)
def test_words(language: str, pieces: list[str], expected: list[str]) -> None:
    assert [group.text for group in words(of(*pieces), language)] == expected


def test_what_is_spoken_lies_between_marks() -> None:
    found = words([(' "', (1, 2)), ("Hi", (3,)), (" there", (4, 5)), (".", (6,)), ('"', (7,))], "en")
    assert found == [Group(' "Hi', 3, 2, 0), Group(' there."', 4, 0, 2)]
    # A mark within a word is spoken over.
    assert words(of(" U", ".", "S", "."), "en") == [Group(" U.S.", 4, 0, 1)]
    assert words(of(" -"), "en") == [Group(" -", 1)]


PIECES = st.lists(st.text(st.sampled_from(" ab1.,「」(\"'-好é"), max_size=4), max_size=12)


@given(PIECES, st.sampled_from(["en", "zh"]))
def test_nothing_is_lost(pieces: list[str], language: str) -> None:
    found = words(of(*pieces), language)
    assert "".join(group.text for group in found) == "".join(pieces)
    assert sum(group.tokens for group in found) == len(pieces)
    assert all(group.before + group.after < group.tokens for group in found)

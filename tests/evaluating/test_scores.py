"""Counts of edits: what they add up to, and where texts differ."""

from __future__ import annotations

from nest.evaluating.scores import Counts, compared, edits


def test_counts() -> None:
    words, characters = compared("the cat sat on it now", "a cat sat it now all")
    assert words == Counts(hits=4, substitutions=1, deletions=1, insertions=1)
    assert (words.errors, words.length, words.rate) == (3, 6, 0.5)
    assert characters.length == len("the cat sat on it now")
    assert compared("the cat", "")[0] == Counts(deletions=2)
    assert words + Counts(hits=1, insertions=2) == Counts(5, 1, 1, 3)


def test_where_texts_differ() -> None:
    assert edits("one two three one two three", "one two three too two") == [("one", "too"), ("three", "")]
    assert edits("a b", "a b c") == [("", "c")]
    assert edits("a b", "a b") == []

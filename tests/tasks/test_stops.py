"""Stop strings in a text that grows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nest.tasks.stops import StopSearch

LETTERS = st.text("ab", max_size=12)
STOPS = st.lists(st.text("ab", min_size=1, max_size=4), max_size=3)


def cut(text: str, stops: list[str]) -> tuple[str, str | None]:
    """By its meaning: the shortest beginning that ends with a stop string, without it."""
    for end in range(len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            longest = max(ending, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(pieces=st.lists(LETTERS, max_size=6), stops=STOPS)
def test_a_text_is_cut_the_same_however_it_comes(pieces: list[str], stops: list[str]) -> None:
    search = StopSearch(stops)
    shown = [search.push(piece) for piece in pieces]
    assert ("".join(shown) + search.finish(), search.found) == cut("".join(pieces), stops)


@given(pieces=st.lists(LETTERS, max_size=6), stops=STOPS)
def test_no_more_is_held_back_than_may_be_the_beginning_of_one(pieces: list[str], stops: list[str]) -> None:
    search = StopSearch(stops)
    come, shown = "", ""
    for piece in pieces:
        come += piece
        shown += search.push(piece)
        if search.found is None:
            held = come.removeprefix(shown)
            assert held == "" or any(stop.startswith(held) and stop != held for stop in stops)

"""What may be asked of a text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from nest.errors import CallError, InputError
from nest.tasks.wishes import Wishes, wishes_of


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_tokens": 0}, "max_tokens=0 is no integer from 1"),
        ({"max_tokens": True}, "max_tokens=True is no integer from 1"),
        ({"temperature": -1}, "temperature=-1: expected a number from 0"),
        ({"temperature": float("nan")}, "temperature=nan: expected a number from 0"),
        ({"temperature": "hot"}, "temperature='hot' is no number"),
        ({"top_k": 1.5}, "top_k=1.5 is no integer from 0"),
        ({"top_p": 0}, "top_p=0: expected a probability over 0 and up to 1"),
        ({"min_p": 1.1}, "min_p=1.1: expected a share from 0 to 1"),
        ({"repetition_penalty": 0}, "repetition_penalty=0: expected a number over 0, 1 for none"),
        ({"seed": -1}, "seed=-1 is no integer from 0"),
        ({"seed": [1, "2"]}, "seed='2' is no integer from 0"),
        ({"stop": ""}, "stop='' is no string that a text could end with"),
        ({"stop": ["a", 3]}, "stop=3 is no string"),
        ({"stop_tokens": [-2]}, "stop_tokens=-2 is no integer from 0"),
        ({"stop_tokens": [2**31]}, "stop_tokens=2147483648 is no id of a token"),
        ({"stop_tokens": 5}, "stop_tokens=5: expected ids in a list"),
        ({"stop": 3}, "stop=3: expected a text, or several in a list"),
        ({"seed": None}, "seed=None: expected an integer from 0"),
        ({"seed": 1.5}, "seed=1.5: expected an integer from 0"),
    ],
)
def test_what_means_nothing_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        wishes_of(settings)  # type: ignore[arg-type]


def test_an_unknown_argument_is_named_with_its_neighbour() -> None:
    with pytest.raises(
        CallError, match=r"argument 'max_token' \(did you mean 'max_tokens'\?\); it takes max_tok"
    ):
        wishes_of({"max_token": 3})  # type: ignore[typeddict-unknown-key]


def test_one_stop_string_is_one() -> None:
    assert wishes_of({"stop": "END"}) == wishes_of({"stop": ["END"]}) == Wishes(stop=("END",))


@pytest.mark.parametrize(
    ("settings", "entry"),
    [
        ({}, "proceed"),
        ({"top_k": 5}, "proceed"),
        ({"repetition_penalty": 1.1}, "proceed_drawn"),
        ({"repetition_penalty": 1.1, "top_p": 0.5}, "proceed_drawn"),
        ({"temperature": 0.5, "min_p": 0.1}, "proceed_drawn"),
        ({"temperature": 0.5, "top_k": 5}, "proceed_of_top"),
        ({"temperature": 0.5, "top_p": 0.9}, "proceed_of_top"),
    ],
)
def test_the_cheapest_loop_that_can_is_taken(settings: dict[str, Any], entry: str) -> None:
    assert wishes_of(settings).entry == entry  # type: ignore[arg-type]

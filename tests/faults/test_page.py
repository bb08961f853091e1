"""The page has a row for every fault, and none besides."""

from __future__ import annotations

import pytest

from . import report


@pytest.mark.skipif(report.WRITING, reason="the page is being written")
def test_the_rows_are_those_of_the_tests() -> None:
    assert report.page_faults() == list(report.ROWS)


@pytest.mark.skipif(report.WRITING, reason="the page is being written")
def test_a_row_that_is_not_on_the_page_is_an_error() -> None:
    with pytest.raises(AssertionError, match=r"docs/reliability\.md is not current; found now:\n\| the Hub"):
        report.check(report.Row(report.ROWS[0], 0, "something else", "nothing", "fetches it"))


def test_what_differs_by_machine_is_left_out() -> None:
    message = (
        "nest: error: http://127.0.0.1:5 cannot be reached ([Errno 111] Connection (refused)); the transfer broke off "
        f"5 times in a row (received 5 bytes, expected 10); 5 of 10. /home/me/x, {'a' * 64}\n"
    )
    assert report.plain(message, {"/home/me": "~"}) == (
        "http://cdn.example cannot be reached (why); the transfer broke off 5 times in a row (why); 5 of 10. ~/x, "
        "aaaaaaaa…"
    )

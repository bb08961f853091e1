"""The index in a real browser: filters, orders, views, and addresses that keep them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nest.registry import cards

Open = Callable[..., Any]
CARDS = [card for card in cards()[0] if card.trusted]
SPEECH = {card.name for card in CARDS if card.task == "transcription"}


def shown(page: Any) -> list[str]:
    """Names of the models that can be seen, in order."""
    names: list[str] = page.eval_on_selector_all(
        "#nest-cards [data-name], #nest-table [data-name]",
        "items => items.filter(i => i.checkVisibility()).map(i => i.dataset.name)",
    )
    return names


def test_everything_is_there_at_first(open_page: Open) -> None:
    page = open_page("models/")
    assert sorted(shown(page)) == sorted(card.name for card in CARDS)
    assert page.locator("#nest-count").inner_text() == f"{len(CARDS)} models"


def test_a_filter_stays_in_the_address_and_in_the_history(open_page: Open) -> None:
    page = open_page("models/")
    page.get_by_label("Task").select_option("transcription")
    assert set(shown(page)) == SPEECH
    assert page.url.endswith("?task=transcription")
    page.get_by_role("link", name="Whisper tiny.en", exact=True).click()
    page.wait_for_url("**/whisper-tiny.en/")
    page.go_back()
    page.wait_for_url("**/?task=transcription")
    page.wait_for_function(f"document.querySelector('#nest-count').textContent.startsWith('{len(SPEECH)} ')")
    assert set(shown(page)) == SPEECH
    assert page.get_by_label("Task").input_value() == "transcription"


def test_filters_work_together_and_can_be_left(open_page: Open) -> None:
    page = open_page("models/?task=transcription&size=100MB")
    assert shown(page) == []
    assert page.locator("#nest-none").is_visible()
    page.get_by_role("button", name="Show all").click()
    assert len(shown(page)) == len(CARDS)
    page.get_by_label("Download").select_option("500MB")
    page.get_by_label("Family").select_option("whisper")
    small = {card.name for card in CARDS if card.family == "whisper" and (card.size or 10**12) <= 500e6}
    assert set(shown(page)) == small


def test_words_are_found_in_names_titles_and_tags(open_page: Open) -> None:
    page = open_page("models/")
    page.get_by_label("Find").fill("whisper tiny.en")
    assert shown(page) == ["whisper-tiny.en"]
    page.get_by_label("Find").fill("no such model")
    assert page.locator("#nest-count").inner_text() == "0 models"


@pytest.mark.parametrize(("column", "key"), [("Download", "size"), ("Model", "name")])
def test_a_column_sorts_both_ways(open_page: Open, column: str, key: str) -> None:
    page = open_page("models/?view=table")
    button = page.locator("#nest-table").get_by_role("button", name=column)
    heading = page.get_by_role("columnheader", name=column)
    known = {card.name: getattr(card, key) for card in CARDS}
    button.click()
    up = [known[name] for name in shown(page)]
    assert up == sorted(up)
    assert heading.get_attribute("aria-sort") == "ascending"
    assert page.url.endswith(f"view=table&sort={key}") or page.url.endswith(f"sort={key}&view=table")
    button.press("Enter")
    down = [known[name] for name in shown(page)]
    assert down == sorted(down, reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    button.click()
    assert heading.get_attribute("aria-sort") == "none"


def test_an_old_link_to_what_is_gone_says_so(open_page: Open) -> None:
    page = open_page("models/?family=gone&sort=nonsense")
    assert shown(page) == []
    assert page.get_by_label("Family").input_value() == "gone"


def test_without_scripts_the_cards_are_there(open_page: Open) -> None:
    page = open_page("models/", java_script_enabled=False)
    assert page.locator(".nest-card").count() == len(CARDS)
    assert not page.locator("#nest-controls").is_visible()


def test_a_link_with_words_does_not_open_the_site_s_own_search(open_page: Open) -> None:
    page = open_page("models/?find=pictures")
    assert page.get_by_label("Find").input_value() == "pictures"
    assert len(shown(page)) == sum(
        "picture" in (card.task or "").replace("image", "picture") for card in CARDS
    )
    assert not page.locator("#__search").is_checked()


@pytest.mark.parametrize(
    ("words", "found"), [("subtitles", "whisper-tiny"), ("embedding", "all-MiniLM-L6-v2")]
)
def test_other_words_for_a_task_find_it(open_page: Open, words: str, found: str) -> None:
    page = open_page("models/")
    page.get_by_label("Find").fill(words)
    assert found in shown(page)


def test_every_model_is_in_the_navigation(site: Path) -> None:
    for card in CARDS:
        html = (site / "models" / card.name / "index.html").read_text(encoding="utf-8")
        start = html.index('class="md-sidebar md-sidebar--primary"')
        assert card.title in html[start : html.index('class="md-content"')].replace("&#39;", "'"), card.name


@pytest.mark.parametrize("sort", ["__proto__", "constructor", "place", "-words"])
def test_an_order_that_is_none_is_left_out(open_page: Open, sort: str) -> None:
    page = open_page(f"models/?sort={sort}&find=tinyllama&view=table")
    assert shown(page) == ["tinyllama-1.1b-chat"]


def test_a_size_that_is_none_matches_nothing(open_page: Open) -> None:
    assert shown(open_page("models/?size=abc")) == []

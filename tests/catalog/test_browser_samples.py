"""Samples in a browser: a recording is played, and its words light up while they are said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

PAGE = "models/whisper-tiny.en/"
Open = Callable[..., Any]


@pytest.fixture
def page(open_page: Open) -> Any:
    return open_page(PAGE)


def first(page: Any) -> Any:
    return page.locator(".nest-sample").first


def test_a_word_that_is_chosen_is_played_and_lit(page: Any) -> None:
    sample = first(page)
    sample.locator(".nest-words").get_by_text("Americans", exact=True).click()
    page.wait_for_function(
        "() => { const a = document.querySelector('audio'); return !a.paused && a.currentTime >= 1.76; }"
    )
    lit = sample.locator(".nest-words [aria-current]")
    # Whatever is lit is what is said now.
    page.wait_for_function(
        """() => {
          const now = document.querySelector("audio").currentTime;
          const lit = document.querySelector(".nest-words [aria-current]");
          return lit && lit.dataset.start <= now && now < lit.dataset.end;
        }"""
    )
    assert lit.count() == 1
    page.wait_for_function(
        "() => document.querySelector('.nest-words [aria-current]')?.textContent === 'ask'"
    )


def test_the_player_alone_lights_words(page: Any) -> None:
    page.evaluate("() => document.querySelector('audio').play()")
    page.wait_for_function(
        "() => document.querySelector('.nest-words [aria-current]')?.textContent === 'And'"
    )
    page.wait_for_function("() => document.querySelector('.nest-words [aria-current]')?.textContent === 'so'")
    assert page.locator(".nest-words [aria-current]").count() == 1


def test_words_are_one_stop_of_the_keyboard(page: Any) -> None:
    sample = first(page)
    assert sample.locator("[data-start][tabindex='0']").count() == 1
    sample.locator("[data-start]").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.textContent") == "your"
    assert sample.locator("[data-start][tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('audio').currentTime >= 9.92")
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.textContent") == "And"


def test_one_recording_at_a_time(page: Any) -> None:
    page.locator(".nest-sample").nth(0).locator("[data-start]").first.click()
    page.wait_for_function("() => !document.querySelector('audio').paused")
    page.locator(".nest-sample").nth(1).locator("[data-start]").first.click()
    page.wait_for_function(
        "() => { const [a, b] = document.querySelectorAll('audio'); return a.paused && !b.paused; }"
    )


def test_recordings_wait_until_they_are_wanted(open_page: Open) -> None:
    asked: list[str] = []
    page = open_page("models/")
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page.url + "whisper-tiny.en/")
    page.wait_for_load_state("networkidle")
    assert any(url.endswith("samples.js") for url in asked)
    assert not [url for url in asked if url.endswith(".wav")]


def test_without_scripts_there_is_a_transcript_and_a_player(open_page: Open) -> None:
    page = open_page(PAGE, java_script_enabled=False)
    sample = first(page)
    assert sample.locator(".nest-words").inner_text().startswith("And so my fellow Americans")
    assert sample.locator("audio[controls]").count() == 1
    assert sample.locator("[role=button]").count() == 0


def test_a_picture_is_shown_in_its_place(open_page: Open) -> None:
    page = open_page("models/resnet-18/")
    picture = page.locator(".nest-picture")
    picture.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('.nest-picture').naturalWidth === 600")
    box = picture.bounding_box()
    assert box["width"] / box["height"] == pytest.approx(1.5, abs=0.02)


@pytest.mark.parametrize(
    "name", ["whisper-tiny.en", "all-MiniLM-L6-v2", "smollm2-135m-instruct", "clip-vit-base-patch32"]
)
def test_samples_fit_a_phone(open_page: Open, name: str) -> None:
    page = open_page(f"models/{name}/", width=390)
    assert page.locator(".nest-sample").count()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

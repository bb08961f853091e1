"""The diagram in a real browser: boxes open and close by mouse and keyboard, entries change, and it stays readable."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from nest.catalog.diagram.geometry import Drawn, drawn
from nest.catalog.diagram.views import View, Views
from nest.loading import program_of
from nest.registry import find

Open = Callable[..., Any]
LIVE = ".nest-diagram-box--live"


def live(open_page: Open, name: str, **options: Any) -> Any:
    """An entry's page with its diagram at work."""
    page = open_page(f"models/{name}/#diagram", **options)
    page.wait_for_selector(LIVE)
    return page


@cache
def view(name: str, entry: str) -> View:
    program = program_of(find(name))
    return Views(program).of(program.entries[entry])


def places(drawing: Drawn, x: float = 8, y: float = 8) -> list[tuple[float, float, float, float]]:
    """Every rectangle of a drawing, from the corner of the picture, in the order of its elements."""
    found = [(r.x + x, r.y + y, r.width, r.height) for r in drawing.types]
    inner = x != 8
    for index, rect in enumerate(drawing.boxes):
        if inner and drawing.view.graph.boxes[index].kind == "result":
            continue
        found.append((rect.x + x, rect.y + y, rect.width, rect.height))
        if index in drawing.insides:
            inside = drawing.insides[index]
            found += places(inside, rect.x + x + (rect.width - inside.width) / 2, rect.y + y + 28)
    return found


SEEN = """() => {
    const svg = document.querySelector('.nest-diagram');
    const closed = '.nest-box:not(.nest-box--open) > .nest-hit > rect';
    const rects = [...svg.querySelectorAll(`.nest-type > rect, .nest-box > rect, ${closed}`)];
    return rects.map((r) => r.getBBox()).map((box, i) => {
        const at = rects[i].getCTM(), own = svg.getCTM();
        return [at.e - own.e + box.x, at.f - own.f + box.y, box.width, box.height];
    });
}"""


@pytest.mark.parametrize("opened", [0, 1, 9])
def test_the_script_draws_what_the_page_was_drawn_by(open_page: Open, opened: int) -> None:
    page = live(open_page, "whisper-tiny")
    page.click("[data-entry=decode]")
    page.click("[data-do=close]")
    for _ in range(opened):
        page.click("[data-do=open]")
    paths = set(page.eval_on_selector_all("[aria-expanded=true]", "all => all.map((b) => b.dataset.path)"))
    expected = places(drawn(view("whisper-tiny", "decode"), paths))
    seen = page.evaluate(SEEN)
    assert len(seen) == len(expected)
    for one, other in zip(seen, expected, strict=True):
        assert one == pytest.approx(other, abs=0.3)


def test_the_script_takes_over_without_a_jump(open_page: Open) -> None:
    page = open_page("models/whisper-tiny/")
    assert page.locator(LIVE).count() == 0  # it waits until somebody comes near
    before = [page.locator(part).bounding_box() for part in (".nest-diagram-bar", "svg.nest-diagram")]
    page.locator("#diagram").scroll_into_view_if_needed()
    page.wait_for_selector(LIVE)
    after = [page.locator(part).bounding_box() for part in (".nest-diagram-bar", "svg.nest-diagram")]
    assert [(b["width"], b["height"]) for b in before] == [(b["width"], b["height"]) for b in after]


def test_a_box_opens_by_mouse_and_by_keyboard_and_keeps_its_place(open_page: Open) -> None:
    page = live(open_page, "whisper-tiny")
    layers = page.get_by_role("button", name="encoder_layers × 4, EncoderLayer")
    assert layers.get_attribute("aria-expanded") == "false"
    layers.click()
    assert layers.get_attribute("aria-expanded") == "true"
    attend = page.get_by_role("button", name="self_attn.attend, Attention")
    attend.focus()
    before = attend.bounding_box()
    page.keyboard.press("Enter")
    assert attend.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "self_attn.attend, Attention"
    assert attend.bounding_box()["y"] == pytest.approx(before["y"], abs=2)
    assert page.locator(".nest-diagram .nest-name", has_text=re.compile("^attention$")).count() == 1
    page.keyboard.press("Space")
    assert attend.get_attribute("aria-expanded") == "false"
    layers.click(position={"x": 20, "y": 10})
    assert page.get_by_role("button", name="self_attn.attend, Attention").count() == 0


def test_edges_have_the_types_of_the_entry_inside_too(open_page: Open) -> None:
    page = live(open_page, "whisper-tiny")
    page.click("[data-entry=step]")
    page.get_by_role("button", name=re.compile("decoder_layers.step")).click()
    types = page.locator(".nest-box--open .nest-type text").all_text_contents()
    assert "T[Batch, Heads, Capacity, D//Heads]" in types
    assert "pos: i32[Batch]" in types


def test_entries_are_chosen_and_each_is_a_picture_without_scripts(open_page: Open) -> None:
    page = live(open_page, "whisper-tiny")
    page.get_by_role("link", name="align").click()
    assert page.locator("[data-entry=align]").get_attribute("aria-current") == "true"
    assert page.locator("svg.nest-diagram").get_attribute("aria-label") == "Diagram of align of whisper-tiny"
    still = open_page("models/whisper-tiny/", java_script_enabled=False)
    assert still.locator("svg.nest-diagram .nest-box").count() == 9
    still.get_by_role("link", name="align").click()
    assert still.url.endswith("diagram-align.svg")


def test_a_name_leads_to_its_class(open_page: Open) -> None:
    page = live(open_page, "whisper-tiny")
    page.get_by_role("link", name="Source of EncoderLayer").click()
    page.wait_for_selector("pre #source-EncoderLayer")
    target = page.locator("#source-EncoderLayer")
    assert target.inner_text().startswith("class EncoderLayer")
    assert 0 < target.bounding_box()["y"] < 900
    page = open_page("models/whisper-tiny/#layers-LayerNorm")
    page.wait_for_selector("pre #layers-LayerNorm")
    page = open_page("models/whisper-tiny/#blocks")
    page.wait_for_selector("pre a")
    page.locator("pre a", has_text="DecoderLayer").first.click()
    page.wait_for_selector("pre #source-DecoderLayer")
    page = open_page("models/whisper-tiny/#source")
    page.wait_for_selector("pre #source-Model")
    still = open_page("models/whisper-tiny/#source-Mlp", java_script_enabled=False)
    still.locator("summary", has_text="model.py").click() if not still.locator(
        "#source-Mlp"
    ).is_visible() else None
    still.get_by_role("link", name="definition.txt").click()
    assert "class Mlp(Block):" in still.content()


@pytest.mark.parametrize("name", ["whisper-tiny", "resnet-50", "clip-vit-base-patch32"])
def test_a_phone_scrolls_the_figure_and_not_the_page(open_page: Open, name: str) -> None:
    page = live(open_page, name, width=390, height=844)
    for _ in range(2):
        page.click("[data-do=open]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(open_page: Open, dark: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = live(open_page, "whisper-tiny", dark=dark)
    page.click("[data-entry=step]")
    page.click("[data-do=open]")
    found = Axe().run(page, context=".nest-diagram-box").response["violations"]
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []
    assert _poor_contrasts(page) == []


CONTRASTS = """() => {
    // axe does not look at text in pictures: every text of this one against what it lies on, and that on the page.
    const parse = (c) => { const n = c.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
    const over = (a, b) => a.slice(0, 3).map((v, i) => v * a[3] + b[i] * (1 - a[3]));
    const light = (c) => c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const page = parse(getComputedStyle(document.body).backgroundColor);
    return [...document.querySelectorAll('.nest-diagram text')].map((text) => {
        const grounds = [];
        for (let g = text.closest('g'); g; g = g.parentElement.closest('g')) {
            const rect = g.querySelector(':scope > rect');
            if (rect) grounds.unshift(getComputedStyle(rect).fill);
        }
        const ground = grounds.filter((g) => g !== 'none').map(parse).reduce((below, g) => over(g, below), page);
        const ink = light(over(parse(getComputedStyle(text).fill), ground)), paper = light(ground);
        const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        return [text.textContent, Math.round(ratio * 100) / 100];
    });
}"""


def _poor_contrasts(page: Any) -> list[Any]:
    found = page.evaluate(CONTRASTS)
    assert len(found) > 30
    return [pair for pair in found if pair[1] < 4.5]


def test_the_whole_screen_and_back(open_page: Open) -> None:
    page = live(open_page, "whisper-tiny")
    page.click("[data-do=fill]")
    page.wait_for_function("document.fullscreenElement !== null")
    assert page.locator(".nest-diagram-box").bounding_box()["width"] == 1280
    page.click("[data-do=fill]")
    page.wait_for_function("document.fullscreenElement === null")

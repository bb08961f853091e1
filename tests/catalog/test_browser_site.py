"""Every kind of page in a real browser: search, schemes, phones, weight, and what screen readers meet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nest.registry import cards

Open = Callable[..., Any]
KINDS = [
    "",
    "models/",
    "models/?view=table",
    "models/whisper-tiny.en/",
    "models/smollm2-135m-instruct/",
    "models/all-MiniLM-L6-v2/",
    "models/clip-vit-base-patch32/",
    "guides/fine-tuning/",
    "numerics/",
]
"""One page of each kind."""

MOST = 400_000
"""Bytes of a page before its media."""

SHIFTS = """new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput) sum += e.value })
    .observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 300);
})"""


def pages(site: Path) -> list[str]:
    """The address of every page of the site."""
    files = (file.parent.relative_to(site) for file in site.rglob("index.html"))
    return sorted("" if file == Path() else f"{file.as_posix()}/" for file in files)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", KINDS)
def test_no_serious_violation_of_accessibility(open_page: Open, path: str, dark: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(path, dark=dark)
    page.wait_for_timeout(400)  # colours fade in
    page.locator(".md-content details").evaluate_all("folds => folds.forEach(fold => fold.open = true)")
    found = Axe().run(page).response["violations"]
    said = [
        f"{fault['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
    assert said == []


def test_no_page_is_wider_than_a_phone(site: Path, open_page: Open) -> None:
    page = open_page("", width=390, height=844)
    root = page.url
    wide = []
    for path in pages(site):
        page.goto(root + path, wait_until="load")
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 390:
            wide.append((path, width))
    assert wide == []


@pytest.mark.parametrize("path", KINDS)
def test_weight_and_calm(open_page: Open, path: str) -> None:
    page = open_page("assets/nest.svg")
    answers: list[Any] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(page.url.removesuffix("assets/nest.svg") + path, wait_until="networkidle")
    assert page.evaluate(SHIFTS) < 0.02
    sizes = {answer.url: int(answer.header_value("content-length") or 0) for answer in answers}
    assert sizes
    assert sum(sizes.values()) < MOST, sizes


def test_the_search_waits_and_then_finds(open_page: Open) -> None:
    page = open_page("")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(300)
    assert not any("search" in url for url in asked)
    page.keyboard.press("/")
    page.keyboard.type("whisper large v3 turbo", delay=5)
    result = page.locator(".md-search-result__item a").first
    result.wait_for()
    assert any(url.endswith("search_index.json") for url in asked)
    result.click()
    page.wait_for_url("**/models/**")


def test_the_scheme_is_the_reader_s_and_can_be_changed(open_page: Open) -> None:
    page = open_page("", dark=True)
    assert page.locator("body").get_attribute("data-md-color-scheme") == "slate"
    page.locator("label[title=Light]").click()
    assert page.locator("body").get_attribute("data-md-color-scheme") == "default"
    page.get_by_role("link", name="All models").first.click()
    page.wait_for_url("**/models/")
    assert page.locator("body").get_attribute("data-md-color-scheme") == "default"


def test_tabs_of_backends_are_switched(open_page: Open) -> None:
    page = open_page("models/whisper-tiny.en/")
    use = page.locator(".tabbed-set").first
    use.get_by_text("nnx", exact=True).first.click()
    assert 'backend="nnx"' in use.locator(".tabbed-block:visible").first.inner_text()


def test_a_tensor_is_found(open_page: Open) -> None:
    page = open_page("models/whisper-tiny.en/")
    page.get_by_label("Find a parameter or tensor").fill("decoder_layers.3 q_proj weight")
    rows = page.locator("#nest-bindings tbody tr")
    rows.first.wait_for()
    assert rows.count() == 2
    assert "model.decoder.layers.3.self_attn.q_proj.weight" in rows.first.inner_text()
    page.get_by_label("Find a parameter or tensor").fill("no such tensor")
    page.wait_for_function("document.querySelectorAll('#nest-bindings tbody tr').length === 0")
    assert page.locator("#nest-bindings [role=status]").inner_text().startswith("0 of 167")


def test_everything_is_reached_by_the_keyboard(open_page: Open) -> None:
    page = open_page("models/")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.name || document.activeElement.textContent.trim()"))
    assert {"find", "task", "family", "licence", "size", "backend", "Whisper tiny.en"} <= reached


def test_every_entry_has_its_page(site: Path) -> None:
    names = {card.name for card in cards()[0] if card.trusted}
    assert {f"models/{name}/" for name in names} <= set(pages(site))


def test_bars_of_the_chart_are_as_long_as_their_figures(open_page: Open) -> None:
    page = open_page("models/whisper-tiny.en/")
    bars = page.locator(".nest-chart .nest-bar--nest")
    widths = bars.evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    said = bars.evaluate_all("bars => bars.map(bar => parseFloat(bar.style.width))")
    assert len(widths) > 3
    assert all(width > 1 for width in widths)
    by_share = [width for _, width in sorted(zip(said, widths, strict=True))]
    assert by_share[-1] > 2 * by_share[0]
    colour = bars.first.evaluate("bar => getComputedStyle(bar).backgroundColor")
    assert colour != "rgba(0, 0, 0, 0)"

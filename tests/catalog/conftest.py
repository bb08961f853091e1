"""Fixtures of the catalog's tests: the built site, and a browser on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .browser import CHROMIUM, Watch, need, served, shared_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of the built site."""
    need(browser=False)
    base = tmp_path_factory.getbasetemp()
    return shared_site(base if worker_id == "master" else base.parent)


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address of the served site, below a path prefix."""
    with served(site) as url:
        yield url


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A running browser."""
    need(browser=True)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(address: str, chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page of the site by its address below the root, in a context of its own; `width=390` is a phone.

    At the end, no page may have written an error to the console or asked another machine for anything.
    """
    watch, contexts = Watch(), []

    def opened(
        path: str = "", *, width: int = 1280, height: int = 900, dark: bool = False, **options: Any
    ) -> Any:
        scheme = "dark" if dark else "light"
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        watch.over(page)
        page.goto(address + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    watch.check()

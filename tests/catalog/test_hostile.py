"""Texts of an entry that would be markup: on the page they are text."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from nest.catalog import build
from nest.registry import zoo, zoo_directory

from .browser import build_site, need

TITLE = '<script>alert("title")</script> & more'
SUMMARY = 'Says "hello" & <b>bold</b>.'


@pytest.fixture
def hostile_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "zoo"
    shutil.copytree(zoo_directory() / "resnet-18", folder / "resnet-18")
    manifest = folder / "resnet-18" / "nest.toml"
    text = manifest.read_text("utf-8")
    text = re.sub(r"^title = .*$", lambda _: f"title = '{TITLE}'", text, flags=re.MULTILINE)
    text = re.sub(r"^summary = .*$", lambda _: f"summary = '{SUMMARY}'", text, flags=re.MULTILINE)
    text = text.replace("[links]\n", "[links]\nhomepage = 'javascript:alert(1)'\n")
    manifest.write_text(text, "utf-8")
    monkeypatch.setattr(zoo, "zoo_directory", lambda: folder)
    monkeypatch.setenv("NEST_ZOO", "")
    return folder


def test_texts_of_a_manifest_are_no_markup(hostile_zoo: Path, tmp_path: Path) -> None:
    build(tmp_path / "out")
    for page in (tmp_path / "out" / "resnet-18" / "index.md", tmp_path / "out" / "index.md"):
        text = page.read_text("utf-8")
        assert '<script>alert("title")' not in text
        assert "<b>bold" not in text
        assert 'href="javascript:' not in text


def test_an_entry_that_is_not_valid_ends_mkdocs_with_its_message(tmp_path: Path) -> None:
    need(browser=False)
    docs = tmp_path / "site" / "docs" / "models"
    docs.mkdir(parents=True)
    (docs / "mine.txt").write_text("mine")
    with pytest.raises(AssertionError, match=r"no catalog was written there") as caught:
        build_site(tmp_path / "site", docs=False)
    assert "Traceback" not in str(caught.value)

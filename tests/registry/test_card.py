"""Headings, read from the tables that they are in."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from nest.registry import cards, zoo_directory
from nest.registry.card import _heading_tables, read_card

WANTED = ("model", "weights", "task")


@pytest.mark.parametrize(
    "file", sorted(zoo_directory().glob("*/nest.toml")), ids=lambda file: file.parent.name
)
def test_the_tables_are_those_of_the_whole_file(file: Path) -> None:
    text = file.read_text("utf-8")
    whole = tomllib.loads(text)
    whole["weights"].pop("mirror", None)
    found = _heading_tables(text)
    assert {name: found[name] for name in WANTED} == {name: whole[name] for name in WANTED}
    assert "generation" not in found


@pytest.mark.parametrize(
    "text",
    [
        'model.name = "dotted"\n[task]\nkind = "x"\n',
        '[ model ]\nname = "spaced"\n',
        '[model]\nname = "a"\ntags = [\n"x",\n]\n',
        '[links]\nx = """\n[generation]\n"""\n[model]\nname = "in a text"\n',
        '[model]\nname = """\n[generation]\n"""\ntitle = "after"\n',
        '[generation]\nheads = [\n[1, 2],\n[3, 4],\n]\n[model]\nname = "nested"\n',
        '[model]\nheads = [\n[1, 2],\n[3, 4],\n]\nname = "nested"\n',
    ],
)
def test_no_layout_loses_a_key(text: str) -> None:
    whole, found = tomllib.loads(text), _heading_tables(text)
    assert {name: found.get(name) for name in WANTED} == {name: whole.get(name) for name in WANTED}


def test_what_is_no_toml_is_said_of_the_whole_file() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="line 4"):
        _heading_tables("[links]\na = 1\n[model]\nname =\n")


def test_what_a_terminal_would_obey_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "nest.toml").write_text(
        '[model]\nname = "a"\ntitle = "A"\nsummary = "A."\nlicense = "MIT"\nfamily = "f"\n'
        'tags = ["fine", "\\u001b[31m"]\naliases = ["\\u0007", "b"]\n'
        '[task]\nkind = "\\u001b[2J"\n[weights]\nrepo = "\\u001b/x"\nfiles = [{name = "x", size = -5}]\n',
        "utf-8",
    )
    card = read_card(folder, trusted=False)
    assert (card.tags, card.aliases, card.task, card.repo, card.size) == (("fine",), ("b",), None, None, None)


def test_a_size_that_is_not_known_exactly() -> None:
    """From the bytes of the tensors where the files' sizes are not known."""
    by_name = {card.name: card for card in cards()[0]}
    assert by_name["llama-3.1-8b-instruct"].size == 2 * 8_030_261_248
    assert not by_name["llama-3.1-8b-instruct"].size_exact
    assert by_name["whisper-tiny.en"].size_exact

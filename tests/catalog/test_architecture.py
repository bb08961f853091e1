"""The Architecture section: every name leads somewhere, and texts are those of the program and of its files."""

from __future__ import annotations

import html
import json
import re
from functools import cache

import pytest

from nest.catalog.facts import Facts
from nest.catalog.readme import read
from nest.catalog.section import Section
from nest.catalog.sections.architecture import section
from nest.catalog.source import Sources
from nest.catalog.symbols import symbols
from nest.ir import inspect_text
from nest.registry import cards

CARDS = {card.name: card for card in cards()[0]}


@cache
def made(name: str) -> tuple[Facts, Section]:
    facts = Facts.of(CARDS[name])
    return facts, section(facts, read((facts.entry.directory / "README.md").read_text(encoding="utf-8")))


def plain(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", text))


@pytest.mark.parametrize("name", sorted(CARDS))
def test_every_link_leads_to_a_class_that_is_shown(name: str) -> None:
    _, shown = made(name)
    everywhere = shown.text + "".join(json.loads(shown.files["source.json"]).values())
    ids = re.findall(r'id="((?:source|layers)-[^"]+)"', everywhere)
    links = set(re.findall(r"#((?:source|layers)-[A-Za-z0-9_]+)", everywhere))
    links |= set(re.findall(r"#((?:source|layers)-[A-Za-z0-9_]+)", shown.files["diagram.json"].decode()))
    assert links
    assert links <= set(ids)
    assert all(
        ids.count(i) == 2 for i in ids
    )  # where it is said to be, and in the source that takes its place


@pytest.mark.parametrize("name", sorted(CARDS))
def test_every_block_of_the_program_has_its_source(name: str) -> None:
    facts, shown = made(name)
    sources = Sources(facts.entry.source, "", facts.program)
    for block in facts.program.root.distinct():
        assert sources.anchor(block.name, block.module) is not None, block.name
    assert shown.scripts == ("architecture.js",)


def test_the_source_is_the_file_and_the_blocks_are_those_of_inspect() -> None:
    facts, shown = made("whisper-tiny")
    source = json.loads(shown.files["source.json"])
    assert plain(source["definition"]) == facts.entry.source.read_text(encoding="utf-8")
    assert plain(source["layers"]).startswith("class Linear(Block):")
    assert (
        plain(source["blocks"])
        == inspect_text(facts.program).rstrip()
        == shown.files["blocks.txt"].decode().rstrip()
    )
    assert 'sub q_proj: <a href="#layers-Linear">Linear</a>' in source["blocks"]
    first = re.search(r'id="source-Attention">(.*)', source["definition"])
    assert first is not None
    assert plain(first[1]).startswith("class Attention(Block):")
    assert "`" not in source["definition"]


def test_symbols_are_explained() -> None:
    rows = {
        plain(name): (plain(value), plain(words))
        for name, value, words in symbols(made("whisper-tiny")[0].program)
    }
    assert rows["Frames"] == ("3000", "generic of the model")
    assert rows["T"] == ("f32", "element type of the weights")
    assert rows["Audio"] == ("1500", "size that the definition names: (Frames-1)//2+1")
    assert rows["Capacity"][1].endswith("448 where it is not given, and at most")
    assert rows["A"] == ("of the call", "what a call's arguments have there: decode")
    without_states = {plain(name) for name, _, _ in symbols(made("resnet-18")[0].program)}
    assert not without_states & {"Batch", "Capacity"}


def test_entries_have_their_signatures_and_first_lines() -> None:
    _, shown = made("whisper-tiny")
    text = plain(shown.text)
    assert (
        "step(token: i32[Batch, 1], pos: i32[Batch]) -> T[Batch, Vocab]One more token of each row, at slot pos"
        in text
    )

"""Lines of TOML keys."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from nest.registry._toml import KeyPath, key_lines, path_text
from nest.registry.zoo import zoo_directory

TEXT = '''\
# [not.a.table]
title = "x # no comment = 1" # a comment with "quotes"
"quoted.key" = 'lit'
dotted.name = 1
[weights]
files = [
    "a]",   # ] in a comment
    { name = "b", sha256 = "c,}" },
]
text = """
[inside] = 1
"""
[[weights.mirror]]
package = "p"
[[weights.mirror]]
package = "q"
[[weights.mirror.files]]
member = "m"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("quoted.key",), 3),
        (("dotted", "name"), 4),
        (("weights",), 5),
        (("weights", "files"), 6),
        (("weights", "files", 0), 7),
        (("weights", "files", 1), 8),
        (("weights", "files", 1, "sha256"), 8),
        (("weights", "text"), 10),
        (("weights", "mirror", 0, "package"), 14),
        (("weights", "mirror", 1, "package"), 16),
        (("weights", "mirror", 1, "files", 0, "member"), 18),
    ],
)
def test_line(path: KeyPath, line: int) -> None:
    assert key_lines(TEXT)[path] == line


def test_nothing_inside_strings_and_comments_is_a_key() -> None:
    assert not {("not",), ("not", "a", "table"), ("inside",), ("weights", "inside")} & set(key_lines(TEXT))


@pytest.mark.parametrize(
    "file", sorted(zoo_directory().glob("*/nest.toml")), ids=lambda file: file.parent.name
)
def test_every_key_of_the_zoo_has_its_line(file: Any) -> None:
    text = file.read_text(encoding="utf-8")
    lines, rows = key_lines(text), text.splitlines()
    found = dict(_leaves(tomllib.loads(text)))
    assert found
    for path, value in found.items():
        row = rows[lines[path] - 1]
        assert str(path[-1]) in row or str(value) in row


def _leaves(value: Any, path: KeyPath = ()) -> list[tuple[KeyPath, Any]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*path, key))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in _leaves(item, (*path, index))]
    return [(path, value)]


def test_path_text() -> None:
    assert path_text(("weights", "files", 1, "sha256")) == "weights.files[1].sha256"

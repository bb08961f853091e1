"""Where keys stand in a JSON file, so that an error can name a line. The text has parsed by the time this runs."""

from __future__ import annotations

import contextlib
import json
import re

from nest.registry._toml import KeyPath

__all__ = ["json_lines"]

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]]|[^\s{}\[\],:"]+')


def json_lines(text: str) -> dict[KeyPath, int]:
    """Line numbers, from 1, of every key and array element of a valid JSON text.

    Of a key that stands twice in one object, the second place: it is the one that is wrong.
    """
    scanner = _Scanner(text)
    with contextlib.suppress(RecursionError):  # nested too deeply to be an entry's: the lines so far will do
        scanner.value(())
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._tokens: list[tuple[str, int]] = []
        self._at = 0
        line, end = 1, 0
        for token in _TOKEN.finditer(text):
            line += text.count("\n", end, token.start())
            end = token.start()
            self._tokens.append((token.group(), line))

    def value(self, path: KeyPath) -> None:
        opening, _ = self._tokens[self._at]
        self._at += 1
        index = 0
        while opening in "{[" and self._tokens[self._at][0] not in "}]":
            word, line = self._tokens[self._at]
            inner = (*path, json.loads(word) if opening == "{" else index)
            self._at += opening == "{"
            index += 1
            self.lines[inner] = line
            self.value(inner)
        self._at += opening in "{["

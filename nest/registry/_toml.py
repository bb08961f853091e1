"""Where keys stand in a TOML file, so that an error can name a line.

`tomllib` gives values without positions. The file has parsed by the time this runs, so a scanner that knows
strings, comments and brackets is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["KeyPath", "key_lines", "path_text"]

KeyPath = tuple[str | int, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{},=]|[^\s\[\]{},=#"\']+',
    re.DOTALL,
)
_KEY_PART = re.compile(r'"((?:\\.|[^"\\])*)"|\'([^\']*)\'|([A-Za-z0-9_-]+)')


def path_text(path: KeyPath) -> str:
    """`weights.files[1].sha256`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def key_lines(text: str) -> dict[KeyPath, int]:
    """Line numbers, from 1, of every table, key and array element of a valid TOML text."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._tokens = list(_numbered(text))
        self._at = 0
        self._counts: dict[KeyPath, int] = {}

    def _peek(self, offset: int = 0) -> str:
        at = self._at + offset
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def _take(self) -> tuple[str, int]:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _skip_newlines(self) -> None:
        while self._peek() == "\n":
            self._at += 1

    def document(self) -> None:
        table: KeyPath = ()
        while self._at < len(self._tokens):
            if self._peek() == "\n":
                self._at += 1
            elif self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> KeyPath:
        array = self._peek(1) == "["
        _, line = self._take()
        name = ""
        while self._peek() not in ("\n", ""):
            token, _ = self._take()
            name += token if token not in ("[", "]") else ""
        path = self._inside_arrays(_key_parts(name))
        if array:
            index = self._counts.get(path, 0)
            self._counts[path] = index + 1
            self.lines.setdefault(path, line)
            path = (*path, index)
        self.lines.setdefault(path, line)
        return path

    def _inside_arrays(self, parts: KeyPath) -> KeyPath:
        """`weights.mirror.files` under `[[weights.mirror]]` means the last mirror's files."""
        path: KeyPath = ()
        for position, part in enumerate(parts):
            path = (*path, part)
            if position < len(parts) - 1 and path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _pair(self, table: KeyPath) -> None:
        name, line = self._take()
        while self._peek() not in ("=", ""):
            name += self._take()[0]
        self._at += 1
        path = (*table, *_key_parts(name))
        self.lines.setdefault(path, line)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._peek() == "[":
            self._array(path)
        elif self._peek() == "{":
            self._inline_table(path)
        else:
            self._at += 1

    def _array(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        while True:
            self._skip_newlines()
            if self._peek() in ("]", ""):
                break
            if self._peek() == ",":
                self._at += 1
                continue
            self.lines[(*path, index)] = self._tokens[self._at][1]
            self._value((*path, index))
            index += 1
        self._at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        while self._peek() not in ("}", ""):
            if self._peek() in (",", "\n"):
                self._at += 1
            else:
                self._pair(path)
        self._at += 1


def _numbered(text: str) -> Iterator[tuple[str, int]]:
    line, position = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", position, match.start())
        position = match.start()
        if not match.group().startswith("#"):
            yield match.group(), line


def _key_parts(name: str) -> KeyPath:
    return tuple(
        next(part for part in match.groups() if part is not None) for match in _KEY_PART.finditer(name)
    )

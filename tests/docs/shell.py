"""The shell blocks of a page, run in the folder of the test.

`nest` runs in this process, so that what a test has put in the zoo's place is there, and no framework is imported
again for every line; it may follow `cd`, variables, `&&` and pipes. What goes to pip is compared with the extras that
exist, and a target of `make` with the Makefile: an environment does not install itself anew. Every other line is sh's.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nest.cli import main

from .markdown import ROOT

__all__ = ["UnfulfilledError", "run"]

_ASSIGNMENT = re.compile(r"\w+=")


class UnfulfilledError(AssertionError):
    """A line of a block that did not do what it should."""


def run(code: str, folder: Path, shorter: Mapping[str, str] | None = None) -> tuple[str, int]:
    """Run the lines of a block in `folder` until one fails.

    Args:
        shorter: commands by what is run in their place.

    Returns:
        What the last line said, on both streams in the order of writing, and its exit code.
    """
    said, status = "", 0
    with contextlib.chdir(folder):
        for line in code.replace("\\\n", " ").splitlines():
            line = line.partition(" #")[0].strip()
            line = (shorter or {}).get(line, line)
            words = shlex.split(line, comments=True)
            if words and not status:
                said, status = _line(line, words)
    return said, status


def _line(line: str, words: list[str]) -> tuple[str, int]:
    match words:
        case ["pip", "install", *wanted]:
            return _pip(wanted)
        case ["make", target, *_]:
            return _make(target)
        case _ if "nest" in words:
            return _nest(line)
    return _other(line)


def _other(line: str) -> tuple[str, int]:
    """A line of sh."""
    command, environment = ["sh", "-ec", line], _environment()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.stdout + done.stderr, done.returncode


def _environment() -> dict[str, str]:
    """As of a shell in which this interpreter is `python`, and what lies here or else the checkout is installed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": f"{Path.cwd()}{os.pathsep}{ROOT}", "COLUMNS": "110"}


def _pip(wanted: list[str]) -> tuple[str, int]:
    """Whether pip could find what the page asks for: the extras exist, and the other packages are installed here."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for requirement in (w for w in wanted if not w.startswith("-")):
        name, _, rest = requirement.partition("[")
        if name in ("nest-zoo", "."):
            unknown = set(filter(None, rest.rstrip("]").split(","))) - set(extras)
            if unknown:
                raise UnfulfilledError(
                    f"pip install {requirement}: {', '.join(sorted(unknown))} is no extra of nest-zoo"
                )
        elif importlib.util.find_spec(name.replace("-", "_")) is None:
            raise UnfulfilledError(f"pip install {requirement}: the tests' environment has no '{name}'")
    return "", 0


def _make(target: str) -> tuple[str, int]:
    if not re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE):
        raise UnfulfilledError(f"make {target}: the Makefile has no such target")
    return "", 0


def _nest(line: str) -> tuple[str, int]:
    """Commands joined by `&&`, of which those of nest may read from a pipe."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|<>")
    lexer.whitespace_split = True
    tokens = list(lexer)
    said, status = "", 0
    with contextlib.chdir("."):
        for words in _split(tokens, "&&"):
            *before, last = _split(words, "|")
            piped = b""
            for words_before in before:
                command = shlex.join(words_before)
                piped = subprocess.run(
                    ["sh", "-ec", command], input=piped, stdout=subprocess.PIPE, check=True
                ).stdout
            said, status = _command(last, piped)
            if status:
                break
    return said, status


def _split(words: list[str], mark: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == mark:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _command(words: list[str], piped: bytes) -> tuple[str, int]:
    variables: dict[str, str] = {}
    while words and _ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    match words:
        case ["cd", folder]:
            os.chdir(folder)
            return "", 0
        case ["nest", *arguments]:
            with pytest.MonkeyPatch.context() as patch:
                for name, value in variables.items():
                    patch.setenv(name, value)
                patch.setenv("COLUMNS", "110")
                patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped), encoding="utf-8"))
                with _captured() as stream:
                    status = _status(arguments)
                return stream.getvalue().decode(), status
    return _other(shlex.join(words))


def _status(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


@contextlib.contextmanager
def _captured() -> Iterator[io.BytesIO]:
    """Both streams of this process, as bytes in the order of writing."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        yield raw
        stream.flush()
    stream.detach()

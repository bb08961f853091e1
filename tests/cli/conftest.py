"""Ways to run the command: in this process, and as a person does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nest.cli import main
from nest.registry import zoo_directory

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `nest ARGUMENTS` in this process."""

    def run(*arguments: str) -> Outcome:
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
        written = capsys.readouterr()
        return Outcome(code, written.out, written.err)

    return run


@pytest.fixture
def process() -> Command:
    """Run `python -m nest ARGUMENTS` in a process of its own, with the checkout's package."""

    def run(*arguments: str, module: str = "nest", **options: object) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
            check=False,
            **options,  # type: ignore[call-overload]
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


def data(command: Command, *arguments: str) -> Any:
    """What a command writes as JSON."""
    outcome = command(*arguments, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """An entry outside the zoo, with a definition of its own."""
    folder = tmp_path / "my-whisper"
    shutil.copytree(zoo_directory() / "whisper-tiny", folder)
    manifest = (folder / "nest.toml").read_text(encoding="utf-8")
    (folder / "nest.toml").write_text(
        manifest.replace('name = "whisper-tiny"', 'name = "my-whisper"'), "utf-8"
    )
    return folder

"""Nothing of an entry outside the installed zoo runs unasked, and the refusal shows what would."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import nest
from nest.errors import ManifestError
from nest.registry import find, zoo
from nest.registry._trust import imported_modules, what_would_run

from .conftest import Make

RAN = "raise RuntimeError('it ran')\n"


def test_the_refusal_shows_what_would_run(make: Make) -> None:
    folder = make(model=f"import os\nfrom nest.layers import Block\n{RAN}")
    with pytest.raises(ManifestError) as caught:
        find(folder).definition()
    text = str(caught.value)
    assert f"would run a Python file: {folder / 'model.py'} (class Model; 3 lines, sha256 " in text
    assert "it imports os and nest.layers)" in text
    assert text.endswith("pass trust_source=True (--trust-source on the command line) to allow it.")


@pytest.mark.parametrize("use", [nest.load, nest.pipeline])
def test_load_and_pipeline_run_it_only_when_trusted(make: Make, use: object) -> None:
    folder = make(model=RAN, more='[task]\nkind = "transcription"\n')
    with pytest.raises(ManifestError, match="is not of the installed zoo"):
        use(folder, backend="reference", weights=None)  # type: ignore[operator]
    with pytest.raises(nest.NestError, match="RuntimeError: it ran"):
        use(folder, backend="reference", weights=None, trust_source=True)  # type: ignore[operator]


def test_a_file_that_the_installed_zoo_shares_is_trusted(make: Make) -> None:
    entry = find(make(('"model.py"', '"@whisper-tiny/model.py"')))
    assert entry.trusted
    assert entry.definition() is find("whisper-tiny").definition()


def test_a_file_that_another_folder_shares_is_not(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(('name = "whisper-tiny"', 'name = "entry"'), model=RAN)
    monkeypatch.setenv("NEST_ZOO", str(folder.parent))
    user = folder.parent / "user"
    user.mkdir()
    text = (folder / "nest.toml").read_text("utf-8").replace('name = "entry"', 'name = "user"')
    text = text.replace('"model.py"', '"@entry/model.py"').replace(
        '"bindings.json"', '"@entry/bindings.json"'
    )
    (user / "nest.toml").write_text(text, encoding="utf-8")
    entry = find("user")
    assert not entry.trusted
    with pytest.raises(ManifestError, match=f"would run a Python file: {folder / 'model.py'}"):
        entry.definition()


def test_a_link_into_the_installed_zoo_is_that_entry(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(zoo.zoo_directory() / "whisper-tiny")
    assert find(tmp_path / "link").trusted


def test_a_link_out_of_a_folder_is_not_trusted(tmp_path: Path, make: Make) -> None:
    outside = make(model=RAN).rename(tmp_path / "outside")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "entry").symlink_to(outside)
    assert not find(tmp_path / "mine" / "entry").trusted


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"", "1 lines, sha256 e3b0c44298fc...; it imports nothing)"),
        (b"def f(:\n", "it is not valid Python"),
        (b"import a.b, c\nif c:\n    from .d import e\n", "it imports a.b, c and .d"),
    ],
)
def test_what_is_said_of_a_file(tmp_path: Path, source: bytes, words: str) -> None:
    (tmp_path / "model.py").write_bytes(source)
    assert words in what_would_run(tmp_path / "model.py", "Model")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    text = what_would_run(tmp_path / "model.py", "Model")
    assert text == f"{tmp_path / 'model.py'} (which cannot be read: No such file or directory)"


def test_imports_within_functions_are_seen() -> None:
    tree = ast.parse("from __future__ import annotations\ndef f():\n    import socket\n")
    assert imported_modules(tree) == ["socket"]

"""The folder that `nest catalog build` writes: whole, never older than its entries, and nobody else's files touched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nest.catalog import build
from nest.cli import main
from nest.errors import InputError
from nest.registry import cards, zoo, zoo_directory

NAMES = sorted(card.name for card in cards()[0])


@pytest.fixture
def small_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zoo of two entries that a test may change."""
    folder = tmp_path / "zoo"
    for name in ("resnet-18", "whisper-tiny"):
        shutil.copytree(zoo_directory() / name, folder / name)
    monkeypatch.setattr(zoo, "zoo_directory", lambda: folder)
    monkeypatch.setenv("NEST_ZOO", "")
    return folder


def test_every_entry_has_a_page_and_is_in_the_index(tmp_path: Path) -> None:
    report = build(tmp_path / "models")
    assert sorted(report.written) == NAMES
    for name in NAMES:
        assert (tmp_path / "models" / name / "index.md").is_file()
    listed = json.loads((tmp_path / "models" / "catalog.json").read_text())
    assert sorted(record["name"] for record in listed) == NAMES
    assert all(record["parameters"] > 0 for record in listed)


def test_a_second_build_writes_nothing(small_zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "models"
    build(out)
    times = {file: file.stat().st_mtime_ns for file in out.rglob("*") if file.name != ".catalog.json"}
    assert build(out).written == ()
    assert {file: file.stat().st_mtime_ns for file in times} == times


def test_a_changed_entry_is_written_again_and_one_that_is_gone_is_removed(
    small_zoo: Path, tmp_path: Path
) -> None:
    out = tmp_path / "models"
    build(out)
    readme = small_zoo / "resnet-18" / "README.md"
    readme.write_text(readme.read_text().replace("# ResNet-18", "# ResNet-18\n\nA sentence of today.", 1))
    assert build(out).written == ("resnet-18",)
    assert "A sentence of today." in (out / "resnet-18" / "index.md").read_text()
    shutil.rmtree(small_zoo / "resnet-18")
    assert build(out).removed == ("resnet-18",)
    assert not (out / "resnet-18").exists()
    assert "resnet-18" not in (out / "index.md").read_text()


def test_a_page_that_somebody_deleted_comes_back(small_zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "models"
    build(out)
    (out / "resnet-18" / "index.md").unlink()
    assert build(out).written == ("resnet-18",)


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty, and no catalog was written there"):
        build(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("stamp", ["", "[]", "{", '{"a": "b"}', "[" * 100_000])
def test_a_damaged_stamp_is_named(tmp_path: Path, stamp: str) -> None:
    (tmp_path / ".catalog.json").write_text(stamp)
    with pytest.raises(InputError, match=r"\.catalog\.json cannot be read as what a build wrote"):
        build(tmp_path)


@pytest.mark.parametrize("name", ["../elsewhere", "..", ".", "/tmp"])
def test_a_stamp_deletes_nothing_outside(small_zoo: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "a" / "models"
    out.mkdir(parents=True)
    (tmp_path / "a" / "elsewhere").mkdir()
    (tmp_path / "a" / "mine.txt").write_text("mine")
    stamp = {name: {"digest": "0", "files": ["../mine.txt", str(tmp_path / "a" / "mine.txt")]}}
    (out / ".catalog.json").write_text(json.dumps(stamp))
    assert build(out).removed == ()
    assert (tmp_path / "a" / "elsewhere").is_dir()
    assert (tmp_path / "a" / "mine.txt").is_file()
    assert (out / "index.md").is_file()


def test_a_build_that_was_stopped_is_gone_on_with(small_zoo: Path, tmp_path: Path) -> None:
    def stop(name: str, number: int, total: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "out", progress=stop)
    report = build(tmp_path / "out")
    assert (report.kept, report.written) == (("resnet-18",), ("whisper-tiny",))


@pytest.mark.parametrize("gone", ["resnet-18/bindings.json", "assets/catalog.css", "catalog.json"])
def test_what_somebody_deleted_comes_back(small_zoo: Path, tmp_path: Path, gone: str) -> None:
    out = tmp_path / "models"
    build(out)
    (out / gone).unlink()
    build(out)
    assert (out / gone).is_file()


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "README.md cannot be read"), (b"\xff\xfe", "README.md is not UTF-8 text")],
)
def test_a_readme_that_cannot_be_read_is_named(
    small_zoo: Path, tmp_path: Path, text: bytes | None, said: str
) -> None:
    readme = small_zoo / "resnet-18" / "README.md"
    readme.unlink()
    if text is not None:
        readme.write_bytes(text)
    with pytest.raises(InputError, match=said):
        build(tmp_path / "out")


@pytest.mark.parametrize("text", ["", "# A title", "```python\n## Use\n", "words alone"])
def test_a_readme_without_sections_has_a_page_all_the_same(
    small_zoo: Path, tmp_path: Path, text: str
) -> None:
    (small_zoo / "resnet-18" / "README.md").write_text(text)
    assert "resnet-18" in build(tmp_path / "out").written


def test_entries_elsewhere_and_their_faults_are_not_of_this_catalog(
    small_zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine" / "broken").mkdir(parents=True)
    (tmp_path / "mine" / "broken" / "nest.toml").write_text("[model")
    monkeypatch.setenv("NEST_ZOO", str(tmp_path / "mine"))
    assert build(tmp_path / "out").written == ("resnet-18", "whisper-tiny")


@pytest.mark.parametrize("where", ["file/sub", "dangling"])
def test_a_place_that_cannot_be_written_is_one_sentence(small_zoo: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "none" / "there")
    with pytest.raises(InputError, match=f"The catalog cannot be written: .*{where}"):
        build(tmp_path / where)


def test_the_command(small_zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "build", "--out", str(tmp_path / "out")]) == 0
    assert "pages of 2 entries, 2 written, 0 as they were" in capsys.readouterr().out
    assert main(["catalog", "build", "--out", str(tmp_path / "out"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["written"] == []
    assert sorted(facts["kept"]) == ["resnet-18", "whisper-tiny"]


def test_a_file_in_the_way_is_one_line(
    small_zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("")
    assert main(["catalog", "build", "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("nest: error: ")
    assert "out" in said
    assert said.count("\n") == 1

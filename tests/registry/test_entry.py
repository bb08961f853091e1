"""Entries: found by name and by folder; definitions run once, and only where that is allowed."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest

from nest.errors import DefinitionError, ManifestError, UnknownEntryError
from nest.registry import entries, find, zoo

from .conftest import CARD, Make


def test_the_zoo() -> None:
    assert {"whisper-tiny", "whisper-tiny.en"} <= {entry.name for entry in entries()}


def test_an_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(
        UnknownEntryError, match=r"No entry is named 'wisper-tiny'\. Did you mean 'whisper-tiny'"
    ):
        find("wisper-tiny")


def test_a_name_like_no_other_lists_what_there_is() -> None:
    with pytest.raises(
        UnknownEntryError, match=r"No entry is named 'zzz'\. The zoo has \d+ entries, which 'nest list' shows"
    ):
        find("zzz")


def test_a_plain_word_is_never_a_folder(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make().parent)
    with pytest.raises(UnknownEntryError, match=r"There is a folder of that name here: write '\./entry'"):
        find("entry")
    assert find("./entry").name == "whisper-tiny"


@pytest.mark.parametrize(("path", "words"), [("./nowhere", "is not a directory"), (".", "has no nest.toml")])
def test_a_folder_that_is_no_entry(
    path: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownEntryError) as caught:
        find(path)
    assert words in str(caught.value)


def test_an_entry_of_the_zoo_has_the_name_of_its_folder(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make()
    monkeypatch.setattr(zoo, "zoo_directory", lambda: tmp_path)
    with pytest.raises(
        ManifestError, match=r"'model\.name': expected the name of its folder, 'entry'; came 'whis"
    ):
        find("entry")


def test_samples(make: Make) -> None:
    sample = {"kind": "transcription", "audio": "a.wav", "text": "Hello.", "reference_text": "Hello."}
    assert find(make(samples=sample)).samples[0].text == "Hello."
    assert len(find(make(samples=[sample, sample])).samples) == 2


def test_an_entry_without_samples(make: Make) -> None:
    assert find(make()).samples == []


class TestDefinition:
    def test_outside_the_zoo_it_runs_only_when_trusted(self, make: Make) -> None:
        folder = make(model="raise RuntimeError('it ran')\n")
        with pytest.raises(ManifestError) as caught:
            find(folder).definition()
        text = str(caught.value)
        assert f"would run a Python file: {folder / 'model.py'}" in text
        assert "trust_source=True" in text

    def test_the_class(self, make: Make) -> None:
        root = find(make()).definition(trust_source=True)
        assert root.__name__ == "Model"
        assert inspect.getsource(root) == "class Model:\n    pass\n"

    def test_it_runs_once(self, make: Make) -> None:
        folder = make()
        assert find(folder).definition(trust_source=True) is find(folder).definition(trust_source=True)

    def test_an_edited_file_runs_again(self, make: Make) -> None:
        folder = make()
        first = find(folder).definition(trust_source=True)
        (folder / "model.py").write_text("class Model:\n    x = 1\n", encoding="utf-8")
        second = find(folder).definition(trust_source=True)
        assert second is not first
        assert second.x == 1

    def test_a_dataclass_in_it_works(self, make: Make) -> None:
        text = (
            "from __future__ import annotations\nimport dataclasses\n"
            "@dataclasses.dataclass\nclass Model:\n    n: int = 3\n"
        )
        root = find(make(model=text)).definition(trust_source=True)
        assert dataclasses.is_dataclass(root)

    def test_nothing_is_written_beside_it(self, make: Make) -> None:
        folder = make()
        before = sorted(folder.iterdir())
        find(folder).definition(trust_source=True)
        assert sorted(folder.iterdir()) == before

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            (
                "class Modle:\n    pass\n",
                "has no class 'Model', which source.root of the entry names. Its classes: Modle. Did",
            ),
            ("Model = 3\n", "Its classes: none."),
            ("def __getattr__(name):\n    raise ValueError\n", "Its classes: none."),
            ("class Model:\n  pass\n x\n", "model.py:3 is not valid Python"),
            ("raise SystemExit(7)\n", "model.py:1 failed while the definition was run: SystemExit: 7"),
            ("x = 1\n\ny = z\n", "model.py:3 failed while the definition was run: NameError: name 'z'"),
            (
                "import nonesuch_package\n",
                "model.py:1 failed while the definition was run: ModuleNotFoundError",
            ),
        ],
    )
    def test_a_broken_file(self, make: Make, model: str, words: str) -> None:
        with pytest.raises(DefinitionError) as caught:
            find(make(model=model)).definition(trust_source=True)
        assert words in str(caught.value)

    def test_a_missing_file(self, make: Make) -> None:
        folder = make()
        (folder / "model.py").unlink()
        with pytest.raises(DefinitionError, match=r"model\.py cannot be read: No such file"):
            find(folder).definition(trust_source=True)

    def test_another_entrys_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, path in (("one", "model.py"), ("two", "@one/model.py")):
            (tmp_path / name).mkdir()
            text = CARD.replace('"whisper-tiny"', f'"{name}"').replace('"model.py"', f'"{path}"')
            text = text.replace('"bindings.json"', '"@one/bindings.json"')
            (tmp_path / name / "nest.toml").write_text(text, encoding="utf-8")
        (tmp_path / "one" / "model.py").write_text("class Model:\n    pass\n", encoding="utf-8")
        (tmp_path / "one" / "bindings.json").write_text('{"a": "b"}', encoding="utf-8")
        monkeypatch.setattr(zoo, "zoo_directory", lambda: tmp_path)
        assert find("two").source == tmp_path / "one" / "model.py"
        assert find("two").definition() is find("one").definition()
        assert find("two").bindings == find("one").bindings

    def test_another_entry_that_is_not_there(self, make: Make) -> None:
        folder = make(
            ('"model.py"', '"@whisper-tinny/model.py"'), ('"bindings.json"', '"@whisper-tinny/bindings.json"')
        )
        with pytest.raises(ManifestError) as caught:
            find(folder)
        text = str(caught.value)
        assert (
            "nest.toml:11, 'source.path': no entry is named 'whisper-tinny'. Did you mean 'whisper-" in text
        )
        assert "nest.toml:23, 'weights.bindings': no entry is named 'whisper-tinny'." in text

"""Every way to name an entry: its name, an alias, the Hub repository, a folder, the folders of NEST_ZOO."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nest.errors import ManifestError, UnknownEntryError
from nest.registry import BrokenEntryWarning, cards, entries, find, locate, names, search_path, zoo
from nest.registry.card import Card
from nest.registry.hub_id import hub_id, pinned_by

from .conftest import CARD

ROOT = Path(__file__).parents[2]


def add(folder: Path, name: str, *, repo: str = "someone/other", more: str = "") -> Path:
    """An entry of that name in a folder of entries."""
    entry = folder / name
    entry.mkdir(parents=True)
    text = CARD.replace('name = "whisper-tiny"', f'name = "{name}"{more}').replace(
        '"openai/whisper-tiny"', f'"{repo}"'
    )
    (entry / "nest.toml").write_text(text, encoding="utf-8")
    (entry / "model.py").write_text("class Model:\n    pass\n", encoding="utf-8")
    (entry / "bindings.json").write_text('{"a": "b"}', encoding="utf-8")
    return entry


def zoo_names() -> set[str]:
    """The folders of the zoo itself."""
    return {file.parent.name for file in zoo.zoo_directory().glob("*/nest.toml")}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of entries that NEST_ZOO names."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv("NEST_ZOO", str(folder))
    return folder


class TestNames:
    def test_the_case_of_letters_does_not_matter(self, mine: Path) -> None:
        add(mine, "Mixed-Case", more='\naliases = ["Short"]')
        for name in ("Mixed-Case", "mixed-case", "MIXED-CASE", "short"):
            assert find(name).name == "Mixed-Case"

    def test_of_names_that_differ_in_case_the_exact_one(self, mine: Path) -> None:
        add(mine, "twin")
        add(mine, "Twin")
        assert (find("twin").name, find("Twin").name) == ("twin", "Twin")
        with pytest.raises(UnknownEntryError, match="No entry is named 'TWIN'"):
            find("TWIN")

    @pytest.mark.parametrize("name", ["n" * 5000, "./" + "n" * 5000, "./a\0b", "~nosuchuser/entry"])
    def test_what_no_system_can_open(self, name: str) -> None:
        with pytest.raises(UnknownEntryError) as caught:
            find(name)
        assert len(str(caught.value)) < 500
        assert name[:12] in str(caught.value)

    def test_a_loop_of_links(self, tmp_path: Path) -> None:
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(UnknownEntryError, match=r"loop' (cannot be opened|is not a directory)"):
            find(tmp_path / "loop")

    def test_an_alias(self) -> None:
        assert find("tiny.en") is find("whisper-tiny.en")
        assert find("tiny").name == "whisper-tiny"

    def test_a_misspelt_alias_is_suggested(self, mine: Path) -> None:
        add(mine, "big-one", more='\naliases = ["quick"]')
        with pytest.raises(UnknownEntryError, match=r"No entry is named 'qiuck'\. Did you mean 'quick'\?"):
            find("qiuck")

    def test_an_alias_of_two_entries(self, mine: Path) -> None:
        add(mine, "one", more='\naliases = ["quick"]')
        add(mine, "two", more='\naliases = ["quick"]')
        with pytest.raises(UnknownEntryError, match="'quick' is an alias of one and two: give one of these"):
            find("quick")

    def test_a_name_comes_before_an_alias(self, mine: Path) -> None:
        add(mine, "quick")
        add(mine, "other", more='\naliases = ["quick"]')
        assert find("quick").name == "quick"

    def test_an_alias_of_the_installed_zoo_comes_before_one_of_another_folder(self, mine: Path) -> None:
        add(mine, "impostor", more='\naliases = ["tiny.en"]')
        assert find("tiny.en").name == "whisper-tiny.en"

    def test_a_checkpoint_that_is_no_entry_can_be_adopted(self, tmp_path: Path) -> None:
        (tmp_path / "tuned").mkdir()
        (tmp_path / "tuned" / "config.json").write_text("{}")
        with pytest.raises(
            UnknownEntryError, match=r"a config\.json and no nest\.toml\. `nest adopt .*tuned`"
        ):
            find(tmp_path / "tuned")


class TestHubIds:
    @pytest.mark.parametrize(
        "text",
        [
            "openai/whisper-tiny.en",
            "OpenAI/Whisper-tiny.en",
            "https://huggingface.co/openai/whisper-tiny.en",
            "https://huggingface.co/openai/whisper-tiny.en/tree/main",
        ],
    )
    def test_a_repository_finds_its_entry(self, text: str) -> None:
        assert find(text) is find("whisper-tiny.en")

    @pytest.mark.parametrize(
        ("text", "repo"),
        [
            ("openai/whisper-tiny", "openai/whisper-tiny"),
            ("https://huggingface.co/a/b?x=1", "a/b"),
            ("./openai/whisper", None),
            ("../whisper", None),
            ("/openai/whisper", None),
            ("a/b/c", None),
            ("whisper", None),
            ("https://example.org/a/b", None),
        ],
    )
    def test_what_looks_like_a_repository(self, text: str, repo: str | None) -> None:
        assert hub_id(text) == repo

    def test_an_unknown_repository_says_what_can_be_done(self) -> None:
        with pytest.raises(UnknownEntryError) as caught:
            find("openai/whisper-tyny")
        text = str(caught.value)
        assert text.startswith(
            "No entry pins the Hub repository 'openai/whisper-tyny', and there is no folder of that path. "
            "Nearest: 'openai/whisper-tiny' (entry whisper-tiny), "
        )
        for part in ("'nest list' shows", "'nest adopt ", "recognises it"):
            assert part in text

    def test_a_repository_comes_before_a_folder_of_its_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = add(tmp_path / "openai", "whisper-tiny")
        monkeypatch.chdir(tmp_path)
        assert find("openai/whisper-tiny").directory == zoo.zoo_directory() / "whisper-tiny"
        assert find("./openai/whisper-tiny").directory == folder

    def test_a_folder_whose_path_looks_like_a_repository(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = add(tmp_path / "models", "mine")
        monkeypatch.chdir(tmp_path)
        assert find("models/mine").directory == folder
        with pytest.raises(UnknownEntryError, match=r"'models/mine/\.\.' has no nest\.toml"):
            find("models/mine/..")

    def test_of_several_entries_the_one_called_like_the_repository(self) -> None:
        def card(name: str, *, trusted: bool = False) -> Card:
            texts = dict.fromkeys(("title", "summary", "license", "family"), "x")
            return Card(
                name,
                Path(name),
                trusted,
                **texts,
                task=None,
                also=(),
                tags=(),
                aliases=(),
                repo="a/b",
                size=1,
                size_exact=True,
            )

        assert pinned_by("a/b", [card("c"), card("b")]) == card("b")
        assert pinned_by("a/b", [card("b"), card("c", trusted=True)]) == card("c", trusted=True)
        assert pinned_by("a/c", [card("c")]) is None
        with pytest.raises(UnknownEntryError, match="'a/b' is the repository of c and d: give one of these"):
            pinned_by("a/b", [card("c"), card("d")])


class TestSearchPath:
    def test_the_installed_zoo_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NEST_ZOO", raising=False)
        assert search_path() == [zoo.zoo_directory()]

    def test_folders_in_their_order(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        add(first, "both", repo="first/both")
        add(second, "both", repo="second/both")
        add(second, "only")
        monkeypatch.setenv("NEST_ZOO", f"{first}{os.pathsep}{second}{os.pathsep}")
        assert find("both").directory == first / "both"
        assert find("only").directory == second / "only"
        assert {"both", "only", "whisper-tiny"} <= set(names())
        assert [card.repo for card in cards()[0] if card.name == "both"] == ["first/both"]

    def test_the_installed_zoo_comes_first(self, mine: Path) -> None:
        folder = add(mine, "whisper-tiny")
        assert find("whisper-tiny").directory == zoo.zoo_directory() / "whisper-tiny"
        assert find(folder).directory == folder

    def test_a_repository_of_another_folder(self, mine: Path) -> None:
        add(mine, "my-model", repo="me/my-model")
        assert find("me/my-model").name == "my-model"

    def test_its_entries_are_listed_and_not_trusted(self, mine: Path) -> None:
        add(mine, "my-model")
        found = {entry.name: entry for entry in entries()}
        assert found["whisper-tiny"].trusted
        assert not found["my-model"].trusted
        with pytest.raises(ManifestError, match="'my-model' is not of the installed zoo"):
            found["my-model"].definition()

    def test_a_folder_must_have_the_name_of_its_entry(self, mine: Path) -> None:
        folder = add(mine, "my-model").rename(mine / "renamed")
        with pytest.raises(
            ManifestError,
            match=r"nest\.toml:2, 'model\.name': expected the name of its folder, 'renamed'; came 'my-",
        ):
            find("renamed")
        assert find(folder).name == "my-model"

    @pytest.mark.parametrize("inside", [False, True])
    def test_a_folder_that_is_none(
        self, inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = add(tmp_path, "an-entry") if inside else tmp_path / "nowhere"
        monkeypatch.setenv("NEST_ZOO", str(path))
        words = (
            f"which is an entry; it takes folders of entries: {tmp_path}" if inside else "is not a directory"
        )
        assert words in cards()[1][0]
        with pytest.warns(BrokenEntryWarning, match="NEST_ZOO names"):
            entries()

    def test_locate_reads_nothing(self, mine: Path) -> None:
        (mine / "broken").mkdir()
        (mine / "broken" / "nest.toml").write_text("[", encoding="utf-8")
        assert locate("broken").folder == mine / "broken"
        assert not locate("broken").trusted
        assert locate("whisper-tiny").trusted


class TestBrokenEntries:
    @pytest.fixture
    def broken(self, mine: Path) -> Path:
        add(mine, "good")
        folder = add(mine, "bad")
        file = folder / "nest.toml"
        file.write_text(file.read_text("utf-8").replace('title = "', 'titel = "'), encoding="utf-8")
        return folder

    def test_the_others_are_found_and_it_is_named(self, broken: Path) -> None:
        with pytest.warns(BrokenEntryWarning) as caught:
            found = entries()
        assert {"good", *zoo_names()} == {entry.name for entry in found}
        (warning,) = caught
        text = str(warning.message)
        assert text.startswith("'bad' was left out. Entry 'bad' is not valid: 2 faults.")
        assert "'model.titel': unknown key. Did you mean 'title'?" in text
        assert warning.filename == __file__

    def test_the_others_are_found_by_alias_and_repository(self, broken: Path) -> None:
        assert find("tiny").name == "whisper-tiny"
        assert find("openai/whisper-tiny").name == "whisper-tiny"

    def test_cards_name_it(self, broken: Path) -> None:
        found, faults = cards()
        assert [card.name for card in found] == sorted(["good", *zoo_names()])
        assert faults == [f"{broken / 'nest.toml'}, 'model.title': expected one line of text"]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"[model\n", "is not valid TOML: "),
            (b"\xff", "is not UTF-8 text"),
            (b"model = 3\n", "'model': expected a table"),
            (b'[model]\nname = "other"\ntitle = "\\u001b[2J"\n', "'model.title': expected one line of text"),
            (CARD.encode(), "'model.name': expected the name of its folder; came 'whisper-tiny'"),
        ],
    )
    def test_what_is_wrong_with_a_heading(self, mine: Path, content: bytes, words: str) -> None:
        file = mine / "bad" / "nest.toml"
        file.parent.mkdir()
        file.write_bytes(content)
        (fault,) = cards()[1]
        assert words in fault

    def test_a_manifest_that_cannot_be_read(self, mine: Path) -> None:
        (mine / "bad" / "nest.toml").mkdir(parents=True)
        (fault,) = cards()[1]
        assert fault == f"{mine / 'bad' / 'nest.toml'} cannot be read: Is a directory"

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no pipes with names")
    def test_a_pipe_is_not_waited_for(self, mine: Path) -> None:
        (mine / "bad").mkdir()
        os.mkfifo(mine / "bad" / "nest.toml")
        (fault,) = cards()[1]
        assert fault == f"{mine / 'bad' / 'nest.toml'} cannot be read: It is no plain file"
        folder = add(mine, "good")
        os.mkfifo(folder / "samples.json")
        with pytest.raises(ManifestError, match=r"samples\.json: cannot be read: It is no plain file"):
            find("good")

    def test_a_file_that_nobody_wrote(self, mine: Path) -> None:
        file = add(mine, "bad") / "nest.toml"
        with file.open("r+b") as sparse:
            sparse.truncate(1 << 40)
        (fault,) = cards()[1]
        assert fault.endswith("cannot be read: It has 1099511627776 bytes; at most 32000000 are read")
        with pytest.raises(ManifestError, match="It has 1099511627776 bytes; at most 32000000 are read"):
            find("bad")

    def test_a_folder_whose_name_is_too_long(self, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        add(mine, "good")
        monkeypatch.setenv("NEST_ZOO", f"{'a' * 5000}{os.pathsep}{mine}")
        found, faults = cards()
        assert "good" in {card.name for card in found}
        (fault,) = faults
        assert fault.endswith("aaa..., which is not a directory.")
        assert len(fault) < 300


def test_cards_say_what_the_manifests_say() -> None:
    for card in cards()[0]:
        manifest = find(card.name).manifest
        model, weights = manifest.model, manifest.weights
        assert weights is not None
        sizes = [spec.size for spec in weights.files if spec.required]
        assert (card.title, card.summary, card.license) == (model.title, model.summary, model.license)
        assert (card.family, card.tags, card.aliases) == (
            model.family,
            tuple(model.tags),
            tuple(model.aliases),
        )
        assert card.repo == weights.repo
        assert card.task == (manifest.task.kind if manifest.task else None)
        assert card.size_exact == (None not in sizes)
        if card.size_exact:
            assert card.size == sum(size or 0 for size in sizes)
        assert card.size is not None
        assert card.size > 1e7
        assert card.folder == find(card.name).directory


@pytest.mark.parametrize(
    ("files", "size"),
    [
        ('["a"]', None),
        ('[{ name = "a", size = 3 }, { name = "b", size = 4 }]', 7),
        ('[{ name = "a", size = 3 }, { name = "b", size = 4, required = false }]', 3),
        ('[{ name = "a", size = 3 }, "b"]', 3),  # of a small file, and said not to be exact
        ('[{ name = "a", size = 3 }, "b.safetensors"]', None),
    ],
)
def test_the_size_of_a_card_is_that_of_a_load(mine: Path, files: str, size: int | None) -> None:
    file = add(mine, "sized") / "nest.toml"
    file.write_text(file.read_text("utf-8").replace('["model.safetensors"]', files), encoding="utf-8")
    assert {card.name: card.size for card in cards()[0]}["sized"] == size


def test_finding_by_heading_loads_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); from nest.registry import cards, locate; cards(); "
        "locate('tiny'); print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if name not in sys.stdlib_module_names} == {"nest"}

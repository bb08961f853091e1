"""`lint`: the contract of an entry's folder; each breach of it is found, and nothing of the entry runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nest.checking import SECTIONS, lint
from nest.registry import names, zoo_directory

from .conftest import Copy


def faults(copy: Copy) -> list[tuple[str, str]]:
    """(part, text) of everything that lint finds; paths inside the folder without the folder."""
    prefix = f"{copy.folder}/"
    return [(finding.part, str(finding).removeprefix(prefix)) for finding in lint(copy.folder).faults]


@pytest.mark.parametrize("name", names())
def test_the_entries_of_the_zoo_have_no_fault(name: str) -> None:
    report = lint(name)
    assert report.faults == []
    assert {"files", "manifest", "tensors", "readme", "text"} <= {finding.part for finding in report.findings}


def test_a_good_copy_has_none_and_is_not_run(copy: Copy) -> None:
    assert faults(copy) == []
    copy.edit("model.py", "class Mlp", "raise SystemExit('it ran')\n\n\nclass Mlp")
    assert faults(copy)[0][1].endswith(
        "a definition holds imports, constants, functions and classes; this runs on import"
    )


def test_a_manifest_with_faults_leaves_the_texts(copy: Copy) -> None:
    copy.edit("nest.toml", "title = ", "titel = ")
    copy.edit("README.md", "\n", " \n")
    found = dict(faults(copy))
    assert "'model.titel': unknown key" in found["manifest"]
    assert found["text"] == "README.md:1: spaces at the end of the line"


class TestFiles:
    @pytest.mark.parametrize("name", ["README.md", "tensors.json", "samples.json", "model.py"])
    def test_a_file_that_is_missing(self, copy: Copy, name: str) -> None:
        (copy.folder / name).unlink()
        assert ("files", f"'{name}' is missing") in faults(copy)

    @pytest.mark.parametrize("name", ["notes.txt", ".DS_Store", "extra/model.py", "model.safetensors"])
    def test_a_file_that_has_no_business_there(self, copy: Copy, name: str) -> None:
        (copy.folder / name).parent.mkdir(exist_ok=True)
        (copy.folder / name).write_text("x\n")
        assert any(text.startswith(f"'{name}' is not part of an entry: ") for _, text in faults(copy))

    def test_a_folder_in_the_place_of_a_text(self, copy: Copy) -> None:
        (copy.folder / "model.py").unlink()
        (copy.folder / "model.py").mkdir()
        assert ("files", "'model.py' is missing") in faults(copy)

    def test_a_recording_of_a_sample_may_lie_there(self, copy: Copy) -> None:
        copy.edit("samples.json", "jfk.wav", "clips/mine.wav")
        (copy.folder / "clips").mkdir()
        (copy.folder / "clips" / "mine.wav").write_bytes(b"RIFF")
        (copy.folder / "__pycache__").mkdir()
        (copy.folder / "__pycache__" / "model.pyc").write_bytes(b"")
        assert faults(copy) == []


MANIFEST_FAULTS: dict[str, tuple[str, str, str]] = {
    "no digest": (
        ', sha256 = "7ebd0e69e78190ffe1438491fa05cc1f5c1aa3a4c4db3bc1723adbb551ea2395"',
        "",
        "'model.safetensors' has no sha256: a load could not tell other bytes",
    ),
    "a digest and none": (
        "ffdccec4f3211f4c63310f2b7098f309fe70f3952cedc5e4d11e43f5b2379b98",
        'ffdccec4f3211f4c63310f2b7098f309fe70f3952cedc5e4d11e43f5b2379b98", no_digest = "unknown',
        "'config.json' has a sha256, and no_digest says why there is none",
    ),
    "no size": ("size = 2480466, ", "", "'tokenizer.json' has no size"),
    "a name alone": (
        '{ name = "tokenizer.json", size = 2480466, sha256 = "27fc476bfe7f17299480be2273fc0608e4d5a99aba2ab5dec53'
        '74b4482d1a566" }',
        '"tokenizer.json"',
        "'tokenizer.json' has no sha256 and no size",
    ),
    "no check": ("[check]\nB = 1\n", "", "[check] is missing: the numbers of a call that nest check binds"),
    "no task": ('[task]\nkind = "transcription"\n', "", "[task] is missing: what the model is for"),
    "another link": (
        "https://huggingface.co/openai/whisper-tiny",
        "https://huggingface.co/openai/whisper",
        "links.huggingface: expected https://huggingface.co/openai/whisper-tiny; came https://huggingface.co/openai/w",
    ),
    "no sentence": ("to them.", "to them", "model.summary: expected a sentence that ends with a full stop"),
    "the title": ("Whisper tiny", "my-whisper", "model.title: expected the name as people write it"),
    "a licence in small letters": ("Apache-2.0", "apache-2.0", "came 'apache-2.0'. SPDX spells it Apache-2.0."),
    "a licence misspelt": ("Apache-2.0", "Apache-2", "came 'Apache-2'. Did you mean 'Apache-2.0'?"),
    "a licence in words": ("Apache-2.0", "Apache 2", "model.license: expected an SPDX identifier, such as Apache-2.0"),
    "a tag in words": ('"audio"', '"Audio files"', "model.tags: expected lowercase words joined by '-'; came 'A"),
    "a tag twice": ('"audio"', '"multilingual"', "model.tags: one of them stands twice"),
    "another name": ('name = "my-whisper"', 'name = "whisper"', "model.name: expected the name of its folder, 'my-"),
    "a taken alias": ("\n[links]", 'aliases = ["tiny"]\n\n[links]', "model.aliases: 'tiny' means whisper-tiny already"),
    "a generic with a dash": ("B = 1", "B = 1\n'the-rows' = 1", "'the-rows' is spelled like no generic"),
    "equal tiny sizes": ("Inner = 40", "Inner = 24", "[tiny]: D and Inner are both 24, so that a swap of the two"),
    "a licence of a package": (
        "\n[generation]\n",
        '\n[[weights.mirror]]\npackage = "p==1"\nsize = 1\nlicense = "GPL"\nsha256 = "' + "0" * 64 + '"\nfiles = '
        '[{ replaces = "config.json", member = "m", size = 1, sha256 = "' + "0" * 64 + '" }]\n\n[generation]\n',
        "weights.mirror: license of p==1: expected an SPDX identifier",
    ),
    "a converter": (
        "\n[generation]\n",
        '\n[[weights.mirror]]\npackage = "p==1"\nsize = 1\nlicense = "MIT"\nsha256 = "' + "0" * 64 + '"\nfiles = '
        '[{ replaces = "config.json", member = "m", size = 1, converter = "gguf", sha256 = "' + "0" * 64 + '" }]\n'
        "\n[generation]\n",
        "weights.mirror: 'gguf' is no converter; there are: ctranslate2-whisper,",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", MANIFEST_FAULTS)
def test_what_a_manifest_lacks(copy: Copy, fault: str) -> None:
    old, new, words = MANIFEST_FAULTS[fault]
    copy.edit("nest.toml", old, new)
    found = [text for part, text in faults(copy) if part == "manifest"]
    assert any(words in text for text in found), found


def test_no_tags(copy: Copy) -> None:
    text = (copy.folder / "nest.toml").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("tags = ")]
    (copy.folder / "nest.toml").write_text("\n".join(lines) + "\n", "utf-8")
    assert (
        "manifest",
        "nest.toml: model.tags: expected at least one: nest list is searched by them",
    ) in faults(copy)


SOURCE_FAULTS: dict[str, tuple[str, str, str]] = {
    "another import": (
        "from nest.layers import",
        "import os\nfrom nest.layers import",
        "it imports os; a definition is",
    ),
    "an import of nest's own": (
        "from nest.layers import",
        "from nest.ir import Dim\nfrom nest.layers import",
        "nest.ir",
    ),
    "an import in a method": (
        "        self.fc1 =",
        "        from pathlib import Path\n        self.fc1 =",
        "pathlib",
    ),
    "open": (
        "        self.fc1 =",
        "        open('x')\n        self.fc1 =",
        "'open' has no place in a definition",
    ),
    "exec": (
        "        self.fc1 =",
        "        exec('x')\n        self.fc1 =",
        "'exec' has no place in a definition",
    ),
    "behind the layers": (
        "        self.fc1 =",
        "        self.__class__\n        self.fc1 =",
        "'.__class__' reaches behind",
    ),
    "a loop on import": ("\nclass Mlp", "\nfor i in range(3):\n    i\n\n\nclass Mlp", "this runs on import"),
    "a class unexplained": (
        '    """Two linear layers around the error-function GELU: the tanh form would shift the encoder by 5.7e-2.'
        '"""\n',
        "",
        "class Mlp has no docstring",
    ),
    "an entry unexplained": (
        '        """Encoder states of a window of log-mel frames."""\n',
        "",
        "the entry 'encode' has no docstring",
    ),
    "a generic": (
        "    Inner: Dim\n",
        "    inner_size: Dim\n",
        "the generic 'inner_size' is not in capitals, such as 'H",
    ),
    "the root": (
        "class Model(Block)",
        "class Whisper(Block)",
        "no class 'Model', which source.root names; its classes: ",
    ),
    "the main entry": (
        "    @entry\n    def encode",
        "    def encode",
        "'encode', source.entry, is no @entry of Model; its",
    ),
    "not Python": ("class Mlp(Block):", "class Mlp(Block:", "not Python: "),
}


@pytest.mark.parametrize("fault", SOURCE_FAULTS)
def test_what_a_definition_must_not_do(copy: Copy, fault: str) -> None:
    old, new, words = SOURCE_FAULTS[fault]
    copy.edit("model.py", old, new)
    found = [text for part, text in faults(copy) if part == "definition"]
    assert len(found) == 1, found
    assert words in found[0]
    assert found[0].startswith("model.py:") or fault == "the root"


def test_a_definition_without_a_docstring(copy: Copy) -> None:
    text = (copy.folder / "model.py").read_text("utf-8")
    (copy.folder / "model.py").write_text(text[text.index("from __future__") :], "utf-8")
    assert ("definition", "model.py:1: no docstring: say what the architecture is, with its paper") in faults(
        copy
    )


README_FAULTS: dict[str, tuple[Callable[[str], str], str]] = {
    "no title": (
        lambda text: text.replace("# Whisper tiny\n", "", 1),
        "it does not begin with a title, '# Name'",
    ),
    **{
        f"no section {section}": (
            lambda text, section=section: text.replace(f"## {section}\n", "", 1),  # type: ignore[misc]
            f"the section '## {section}' is missing",
        )
        for section in SECTIONS
    },
    "another order": (
        lambda text: (
            text.replace("## Use\n", "## X\n")
            .replace("## Numerics\n", "## Use\n")
            .replace("## X\n", "## Numerics\n")
        ),
        "its sections are not in the order Use, Architecture, Numerics, Provenance",
    ),
    "a heading within a snippet": (
        lambda text: text.replace("## Provenance\n", "```\n## Provenance\n```\n"),
        "the section '## Provenance' is missing",
    ),
}


@pytest.mark.parametrize("fault", README_FAULTS)
def test_a_readme_has_its_sections(copy: Copy, fault: str) -> None:
    change, words = README_FAULTS[fault]
    readme = copy.folder / "README.md"
    readme.write_text(change(readme.read_text("utf-8")), "utf-8")
    assert faults(copy) == [("readme", f"README.md: {words}")]


def test_the_list_of_tensors(copy: Copy) -> None:
    copy.edit_json("tensors.json", lambda all_: all_.update(revision="0" * 40))
    copy.edit_json(
        "tensors.json", lambda all_: all_.update(tensors=dict(sorted(all_["tensors"].items(), reverse=True)))
    )
    assert [part for part, _ in faults(copy)] == ["tensors", "tensors"]
    first, second = (text for _, text in faults(copy))
    assert first.startswith("tensors.json is of openai/whisper-tiny at 00000")
    assert (
        second == "tensors.json: the tensors are not in alphabetical order, so that a change is hard to see"
    )
    (copy.folder / "tensors.json").write_text("[]\n")
    assert [part for part, _ in faults(copy)] == ["tensors"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"# A\r\n", "README.md: lines end with a carriage return; use a line feed alone"),
        (b"# A", "README.md: it does not end with one line feed"),
        (b"# A\n\n", "README.md: it does not end with one line feed"),
        (b"# A\n\tb\n", "README.md:2: a tab; indent with spaces"),
        (b"# A  \n", "README.md:1: spaces at the end of the line"),
        (b"# \xff\n", "README.md: not UTF-8 text: invalid start byte at byte 2"),
        (b"# A\nsee /home/me/model\n", "README.md:2: '/home/...' is a folder of one machine"),
    ],
)
def test_how_texts_are_kept(copy: Copy, raw: bytes, words: str) -> None:
    (copy.folder / "README.md").write_bytes(raw)
    assert ("text", words) in faults(copy)


def test_a_long_line_of_python(copy: Copy) -> None:
    copy.edit("model.py", "\n\nclass Mlp", f"\n\nLONG = {'1' * 120}\n\n\nclass Mlp")
    assert [text.partition(": ")[2] for _, text in faults(copy)] == [
        "the line has 127 characters; at most 120"
    ]


def test_a_definition_that_python_cannot_parse(copy: Copy) -> None:
    copy.edit("model.py", "\n\nclass Mlp", f"\n\nDEEP = {'+'.join('1' * 20_000)}\n\n\nclass Mlp")
    assert any("model.py: not Python: " in text for part, text in faults(copy) if part == "definition")


def test_lint_finds_entries_like_everything_else(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEST_ZOO", str(copy.folder.parent))
    assert lint("my-whisper").folder == copy.folder
    assert lint("openai/whisper-tiny").folder == zoo_directory() / "whisper-tiny"
    assert lint(Path(copy.folder)).name == "my-whisper"

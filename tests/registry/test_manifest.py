"""Manifests: the card's tables as they are, and every fault at once with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest.errors import ManifestError
from nest.registry import find

from .conftest import Make

DIGEST = "0" * 64


def _fault(folder: Path) -> str:
    with pytest.raises(ManifestError) as caught:
        find(folder)
    return str(caught.value)


def test_the_card_loads(make: Make) -> None:
    manifest = find(make()).manifest
    assert manifest.model.name == "whisper-tiny"
    assert manifest.generics == {"D": 384, "T": "f32"}
    assert manifest.weights is not None
    assert [(file.name, file.sha256, file.required) for file in manifest.weights.files] == [
        ("model.safetensors", None, True)
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('title = "', 'titel = "', 3, "'model.titel': unknown key. Did you mean 'title'?"),
        ("[links]", "[linkz]", 8, "'linkz': unknown key. Did you mean 'links'?"),
        ('family = "whisper"\n', "", 1, "'model.family': missing; it is required"),
        (
            "D = 384",
            "D = 3.5",
            15,
            "'generics.D': expected an integer or an element type such as 'f32'; came 3.5",
        ),
        ("B = 1", 'B = "one"', 18, "'check.B': input should be a valid integer; came 'one'"),
        (
            "169d4a4341b33bc18d8881c4b69c2e104e1cc0af",
            "main",
            21,
            "'weights.revision': expected the 40 hexadecimal digits of a commit; came 'main'. A branch or a "
            "tag can be moved to other files",
        ),
        ('"openai/whisper-tiny"\nrev', '"whisper"\nrev', 20, "'weights.repo': string should match pattern"),
        ('["model.safetensors"]', "[]", 22, "'weights.files': list should have at least 1 item"),
        ('"model.py"', '"../model.py"', 11, "'source.path': expected a path inside its folder"),
        ('"model.py"', '"/etc/model.py"', 11, "'source.path': expected a path inside its folder"),
        ('"model.py"', '"@whisper-tiny"', 11, "expected '@entry/path', a file of another entry"),
        ('"model.py"', '"@whisper-tiny/../x.py"', 11, "expected a path inside its folder"),
        ('"bindings.json"', '"..\\\\x.json"', 23, "'weights.bindings': expected a path inside its folder"),
        ('name = "whisper-tiny"', 'name = "Whisper Tiny"', 2, "'model.name': expected letters, digits"),
        (
            '["model.safetensors"]',
            '[{ name = "m", sha256 = "ABC" }]',
            22,
            "'weights.files[0].sha256': expected the 64 lowercase hexadecimal digits of a sha256; came 'ABC'",
        ),
    ],
)
def test_one_fault(make: Make, old: str, new: str, line: int, words: str) -> None:
    folder = make((old, new))
    text = _fault(folder)
    assert words in text
    assert f"{folder / 'nest.toml'}:{line}, " in text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            '[tokenizer]\nfile = "t.json"\n',
            "'tokenizer.file': 't.json' is not one of weights.files (model.safet",
        ),
        (
            '[chat]\nfile = "c.jinja"\n',
            "'chat.file': 'c.jinja' is not one of weights.files (model.safetensors)",
        ),
        ("[chat]\n", "'chat': expected either the 'file' that has the template, or the 'template' itself"),
        (
            '[chat]\nfile = "model.safetensors"\ntemplate = "{{ x }}"\n',
            "'chat': expected either the 'file' that has the template, or the 'template' itself",
        ),
        ("[tiny]\nE = 1\n", "'tiny.E': 'E' is not one of the generics (D, T)"),
        (
            f'[[weights.mirror]]\npackage = "p"\nsha256 = "{DIGEST}"\nsize = 1\nlicense = "M"\nfiles = []\n',
            "'weights.mirror[0].package': expected one version of one package, 'name==1.2.3'; came 'p'",
        ),
        (
            f'[[weights.mirror]]\npackage = "p==1"\nsha256 = "{DIGEST}"\nsize = 1\nlicense = "MIT"\n'
            f'files = [{{ replaces = "x", member = "m", sha256 = "{DIGEST}", size = 1 }}]\n',
            "'weights.mirror[0].files[0].replaces': 'x' is not one of weights.files (model.safetensors)",
        ),
        (
            "[generation]\nprompt = [1, -2]\nend_of_text = 3\n",
            "'generation.prompt[1]': input should be greater",
        ),
        ("[broken\n", "not valid TOML"),
        ("[tolerance]\nlogits = 0\n", "'tolerance.logits.max': input should be greater than 0; came 0"),
        ("[tolerance]\nlogits = true\n", "'tolerance.logits': input should be a valid dictionary"),
        ('[tolerance]\nlogits = { max = 1.0, on = "x" }\n', "'tolerance.logits.on': unknown key."),
        ('[task]\nkind = "a\\nb"\n', "'task.kind': expected one line of printable text; came 'a\\nb'"),
    ],
)
def test_a_fault_of_another_table(make: Make, more: str, words: str) -> None:
    assert words in _fault(make(more=more))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        (
            '["model.safetensors"]',
            '["a", "b",\n "a"]',
            23,
            "'weights.files[2].name': 'a' is listed twice",
        ),
        (
            'tags = ["aut',
            'aliases = ["tiny", "tiny"]\ntags = ["aut',
            7,
            "'model.aliases[1]': 'tiny' stands for this entry already",
        ),
        (
            'tags = ["aut',
            'aliases = ["whisper-tiny"]\ntags = ["aut',
            7,
            "'model.aliases[0]': 'whisper-tiny' stands for this entry already",
        ),
        (
            'tags = ["aut',
            'aliases = ["Turbo!"]\ntags = ["aut',
            7,
            "'model.aliases[0]': expected letters, digits",
        ),
        (
            'D = 384\nT = "f32"\n',
            "Vocab = 100\n[generation]\nprompt = [99, 100]\nend_of_text = 7\nlanguages = { en = 200 }\n",
            17,
            "'generation.prompt[1]': expected a token of Vocab = 100; came 100",
        ),
        (
            'summary = "A speech',
            'summary = "\\u001b[2J speech',
            4,
            "'model.summary': expected one line of printable text; came '\\x1b[2J speech",
        ),
    ],
)
def test_a_fault_between_keys(make: Make, old: str, new: str, line: int, words: str) -> None:
    folder = make((old, new))
    text = _fault(folder)
    assert words in text
    assert f"{folder / 'nest.toml'}:{line}, " in text


def test_a_replaced_file_stands_once_in_a_mirror(make: Make) -> None:
    member = f'{{ replaces = "model.safetensors", member = "m", sha256 = "{DIGEST}", size = 1 }}'
    more = (
        f'[[weights.mirror]]\npackage = "p==1"\nsha256 = "{DIGEST}"\nsize = 1\nlicense = "MIT"\n'
        f"files = [{member}, {member}]\n"
    )
    assert "files[1].replaces': 'model.safetensors' is replaced twice" in _fault(make(more=more))


def test_a_tolerance_is_a_number_or_a_table(make: Make) -> None:
    more = '[tolerance]\nencoder = 1e-4\nlogits = { max = 2, input = "noise" }\n'
    tolerance = find(make(more=more)).manifest.tolerance
    assert (tolerance["encoder"].max, tolerance["encoder"].input) == (1e-4, None)
    assert (tolerance["logits"].max, tolerance["logits"].input) == (2.0, "noise")


def test_faults_of_the_bindings_are_said_beside_those_of_the_manifest(make: Make) -> None:
    folder = make(('title = "', 'titel = "'), bindings='{\n "a": "b",\n "c": 3,\n "a": "d"\n}')
    text = _fault(folder)
    assert "'model.titel': unknown key" in text
    assert f"{folder / 'bindings.json'}:4, 'a': the key stands twice in one object" in text
    assert f"{folder / 'bindings.json'}:3, 'c': expected a tensor name or an operation" in text


def test_a_fault_of_a_sample_has_its_line(make: Make) -> None:
    folder = make(samples='[\n {"kind": "x"},\n {\n  "kind": "x",\n  "text": 3\n }\n]')
    assert f"{folder / 'samples.json'}:5, '[1].text': " in _fault(folder)


@pytest.mark.parametrize("name", ["a\\u0000b", "a\\nb", "\\u001b[2J", "a\\u009bb"])
def test_a_file_name_that_no_list_can_hold(make: Make, name: str) -> None:
    text = _fault(make(('["model.safetensors"]', f'["{name}"]')))
    assert (
        "'weights.files[0].name': expected a path inside its folder, with '/' and without '..'; came '"
        in text
    )
    assert text.isprintable()  # whatever the name would do to a terminal


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("window_seconds", "nan"),
        ("window_seconds", "inf"),
        ("window_seconds", "0"),
        ("window_seconds", "1e308"),
        ("hop", "0"),
        ("n_fft", "1"),
        ("rate", "0"),
        ("mels", "-80"),
    ],
)
def test_a_recording_that_cannot_be(make: Make, key: str, value: str) -> None:
    assert f"'preprocess.{key}': input should be " in _fault(make(more=f"[preprocess]\n{key} = {value}\n"))


@pytest.mark.parametrize("content", ["null", "3", "[null]"])
def test_samples_that_are_none(make: Make, content: str) -> None:
    assert "samples.json" in _fault(make(samples=content))


def test_a_folder_in_place_of_the_samples(make: Make) -> None:
    folder = make()
    (folder / "samples.json").mkdir()
    assert f"{folder / 'samples.json'}: cannot be read: Is a directory" in _fault(folder)


def test_a_mark_of_byte_order(make: Make) -> None:
    folder = make()
    text = (folder / "nest.toml").read_text("utf-8")
    (folder / "nest.toml").write_text("\ufeff" + text, "utf-8")
    assert "nest.toml:1: it begins with a byte order mark; save it as UTF-8 without one" in _fault(folder)


def test_all_faults_are_one_error(make: Make) -> None:
    folder = make(
        ('title = "', 'titel = "'),
        ("169d4a4341b33bc18d8881c4b69c2e104e1cc0af", "v1.0"),
        samples=[{"kind": "transcription", "audoi": "x.wav"}, {"text": 3}],
    )
    text = _fault(folder)
    assert text.startswith("Entry 'entry' is not valid: 6 faults.")
    for part in ("model.titel", "model.title", "weights.revision", "[0].audoi", "[1].kind", "[1].text"):
        assert f"'{part}'" in text
    assert "Did you mean 'audio'?" in text


def test_a_file_that_is_not_text(make: Make) -> None:
    folder = make()
    (folder / "nest.toml").write_bytes(b"\xff\xfe")
    assert "nest.toml: not UTF-8 text: invalid start byte at byte 0" in _fault(folder)


def test_an_unknown_key_of_another_kind_lists_what_is_known(make: Make) -> None:
    text = _fault(make(more="[task]\nkind = 'x'\nzzz = 1\n"))
    assert "'task.zzz': unknown key. Known here: also, generics, kind." in text


@pytest.mark.parametrize("name", ["whisper-tiny", "whisper-tiny.en"])
def test_the_decode_facts_of_the_whisper_entries(name: str) -> None:
    manifest = find(name).manifest
    generation, vocabulary = manifest.generation, manifest.generics["Vocab"]
    assert generation is not None
    assert isinstance(vocabulary, int)
    # The last of the 1501 timestamps is the last token; the specials stand in the order of the vocabulary.
    assert generation.first_timestamp == vocabulary - 1501
    assert generation.no_timestamps == generation.first_timestamp - 1
    assert generation.start_of_transcript == generation.end_of_text + 1
    assert generation.begin_suppress == [220, generation.end_of_text]
    assert generation.suppress == sorted(set(generation.suppress))
    assert len(generation.suppress) == (90 if name.endswith(".en") else 88)
    assert {generation.start_of_transcript, generation.start_of_previous, generation.no_speech} <= {
        *generation.suppress
    }
    assert generation.end_of_text not in generation.suppress
    assert generation.prompt[0] == generation.start_of_transcript
    assert generation.prompt[-1] == generation.no_timestamps
    heads = [tuple(pair) for pair in generation.alignment_heads]
    assert len(set(heads)) == len(heads)
    assert max(layer for layer, _ in heads) < 4
    assert max(head for _, head in heads) < 6


def test_the_languages_of_whisper_tiny() -> None:
    generation = find("whisper-tiny").manifest.generation
    assert generation is not None
    assert sorted(generation.languages.values()) == list(range(50259, 50259 + 99))
    assert [generation.languages[code] for code in ("en", "zh", "de", "su")] == [50259, 50260, 50261, 50357]
    assert (generation.translate, generation.transcribe) == (50358, 50359)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("9" * 5000, "not valid TOML: a number has too many digits"),
        (
            "0x" + "f" * 9000,
            "'model.title': input should be a valid string; came a number of very many digits",
        ),
    ],
)
def test_a_number_of_too_many_digits(make: Make, number: str, words: str) -> None:
    folder = make(('title = "Whisper tiny"', f"title = {number}"))
    with pytest.raises(ManifestError) as caught:
        find(folder).manifest  # noqa: B018
    assert words in str(caught.value)


def test_samples_with_a_number_of_too_many_digits(make: Make) -> None:
    folder = make()
    (folder / "samples.json").write_text(f'{{"audio": {"9" * 5000}}}')
    with pytest.raises(ManifestError, match=r"samples\.json: not valid JSON: a number has too many digits"):
        find(folder).samples  # noqa: B018


def test_generics_may_be_static_fields(make: Make) -> None:
    given = "D = 384\nrope_theta = 1e4\nqkv_bias = true\nrope_scaling = [8.0, [1, 4]]"
    generics = find(make(("D = 384", given))).generics
    assert generics["rope_theta"] == 10000.0
    assert generics["qkv_bias"] is True
    assert generics["rope_scaling"] == (8.0, (1, 4))


def test_a_static_field_is_finite(make: Make) -> None:
    assert "generics.rope_theta" in _fault(make(("D = 384", "D = 384\nrope_theta = inf")))

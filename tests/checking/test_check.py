"""`check`: what is right is said to be, and each thing that can be wrong turns it red, in words that help."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nest.checking import Checkpoints, Report, check
from nest.errors import UnknownEntryError
from nest.registry import zoo_directory

from .conftest import Copy

OFFLINE = Checkpoints(offline=True)


def run(copy: Copy, **options: Any) -> Report:
    return check(copy.folder, **{"trust_source": True, "checkpoints": OFFLINE, **options})


def said(report: Report, part: str, level: str) -> list[str]:
    return [str(finding) for finding in report.findings if (finding.part, finding.level) == (part, level)]


@pytest.mark.parametrize("name", ["whisper-tiny", "tiny.en"])
def test_the_entries_of_the_zoo_have_no_fault(name: str) -> None:
    report = check(name, checkpoints=OFFLINE)
    assert report.faults == []
    assert [finding.part for finding in report.findings if finding.level == "ok"] == [
        "manifest",
        "definition",
        "bindings",
        "samples",
        "parity",
        "bench",
        "readme",
    ]
    (traced,) = said(report, "definition", "ok")
    assert traced == "traced symbolically and bound: encode, decode, listen, prefill, step, align"
    (unseen,) = said(report, "bindings", "note")
    assert unseen.startswith(
        "checkpoint not seen: the network was not asked. Checked against the entry's tensors"
    )
    assert ("(header: " if name == "tiny.en" else "(derived: ") in unseen
    assert said(report, "bindings", "ok") == ["167 parameters, 167 tensors of tensors.json, one to one"]


def test_the_bytes_of_the_tensors_are_counted(copy: Copy) -> None:
    copy.edit("nest.toml", "\nfiles = [", "\ntensor_bytes = 1000\nfiles = [")
    assert said(run(copy), "bindings", "fault") == [
        "weights.tensor_bytes is 1000, and the checkpoint's tensors take 151042560"
    ]


def test_an_unknown_entry_is_an_error() -> None:
    with pytest.raises(UnknownEntryError):
        check("whisper-tinny")


def test_a_copy_is_right_too(copy: Copy) -> None:
    assert run(copy).faults == []


def test_a_manifest_with_faults_ends_the_check(copy: Copy) -> None:
    copy.edit("nest.toml", "title = ", "titel = ")
    report = run(copy)
    assert [finding.part for finding in report.findings] == ["manifest"]
    assert "'model.titel': unknown key. Did you mean 'title'?" in report.findings[0].message
    assert (report.name, report.folder) == ("my-whisper", copy.folder)


class TestTrust:
    def test_nothing_runs_unasked_and_the_rest_is_checked(self, copy: Copy) -> None:
        (copy.folder / "model.py").write_text("raise SystemExit('it ran')\n")
        report = run(copy, trust_source=False)
        assert report.faults == []
        (note,) = said(report, "definition", "note")
        assert note.startswith("not run, and so the bindings were not checked. Entry 'my-whisper' is not of")
        assert f"{copy.folder / 'model.py'} (class Model; 1 lines" in note
        assert [finding.part for finding in report.findings] == [
            "manifest",
            "definition",
            "samples",
            "parity",
            "bench",
            "readme",
        ]

    def test_a_definition_of_the_zoo_needs_none(self, copy: Copy) -> None:
        copy.edit("nest.toml", 'path = "model.py"', 'path = "@whisper-tiny/model.py"')
        report = run(copy, trust_source=False)
        assert report.faults == []
        assert said(report, "bindings", "ok")


DEFINITION_FAULTS: dict[str, tuple[str, str, str, str]] = {
    "main entry": (
        "nest.toml",
        'entry = "encode"',
        'entry = "encoder"',
        "source.entry is 'encoder'; the definition's entries are encode, decode,",
    ),
    "symbol": (
        "nest.toml",
        "B = 1\n",
        "B = 1\nBatches = 1\n",
        "check.Batches: no entry of the definition has",
    ),
    "rule": (
        "nest.toml",
        "B = 1\n",
        "B = 1\nS = 449\n",
        "entry 'decode': 'S <= MaxTokens' does not hold for S = 449",
    ),
    "extent": (
        "nest.toml",
        "B = 1\n",
        "B = 0\n",
        "entry 'encode': argument 'mel', T[B, Mels, Frames], has the shape",
    ),
    "generic": ("nest.toml", "Heads = 6\n", "Heads = 5\n", "requires D%Heads == 0"),
    "missing generic": ("nest.toml", "Inner = 1536\n", "", "'Inner' is not one of the generics"),
    "unknown generic": ("nest.toml", "Heads = 6\n", "Heads = 6\nRopes = 1\n", "has no generic 'Ropes'"),
    "a generic that is called like an argument": (
        "nest.toml",
        "Heads = 6\n",
        "Heads = 6\nname = 1\nloops = 1\nroot = 1\n",
        "has no generic 'name'",
    ),
    "no block": (
        "nest.toml",
        'root = "Model"',
        'root = "Tensor"',
        "'Tensor', which source.root of 'my-whisper' names, is no",
    ),
    "tiny": ("nest.toml", "Heads = 3\n", "Heads = 5\n", "with the generics of [tiny]: "),
    "not Python": ("model.py", "class Mlp(Block):", "class Mlp(Block:", "model.py:"),
    "a shape": ("model.py", "gelu(self.fc1(x))", "gelu(x)", "Mlp"),
    "an entry that is not the main one": (
        "model.py",
        "x = layer.step(x, pos)",
        "x = layer.step(pos, x)",
        "step",
    ),
}


@pytest.mark.parametrize("fault", DEFINITION_FAULTS)
def test_a_fault_of_the_definition(copy: Copy, fault: str) -> None:
    file, old, new, words = DEFINITION_FAULTS[fault]
    copy.edit(file, old, new)
    report = run(copy)
    assert words in " ".join(finding.message for finding in report.faults)
    assert {finding.part for finding in report.faults} <= {"definition", "manifest"}


BINDING_FAULTS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "a parameter without a binding": (
        "bindings.json",
        lambda all_: all_["bindings"].pop("conv1_bias"),
        "parameter 'conv1_bias' (f32[384]): no binding",
    ),
    "a binding of nothing": (
        "bindings.json",
        lambda all_: all_["bindings"].update({"conv3_bias": "model.encoder.conv1.bias"}),
        "binding 'conv3_bias': the definition has no such parameter",
    ),
    "a tensor that is not there": (
        "bindings.json",
        lambda all_: all_["bindings"].update({"conv1_bias": "model.encoder.conv1.bais"}),
        "the checkpoint has no tensor 'model.encoder.conv1.bais'; nearest: model.encoder.conv1.bias",
    ),
    "a tensor that nothing uses": (
        "tensors.json",
        lambda all_: all_["tensors"].update({"model.extra": "f32[1]"}),
        "tensor 'model.extra' (f32[1]): nothing uses it",
    ),
    "a wrong shape": (
        "tensors.json",
        lambda all_: all_["tensors"].update({"model.decoder.layers.0.fc1.weight": "f32[384, 1536]"}),
        "has the shape [384, 1536] (the transpose matches)",
    ),
    "a list of another commit": (
        "tensors.json",
        lambda all_: all_.update(revision="0" * 40),
        "it is of openai/whisper-tiny at 0000000000000000000000000000000000000000; the entry pins openai/whis",
    ),
    "a list that is none": ("tensors.json", lambda all_: all_.clear(), "'tensors': missing; it is required"),
}


@pytest.mark.parametrize("fault", BINDING_FAULTS)
def test_a_fault_of_the_bindings(copy: Copy, fault: str) -> None:
    file, change, words = BINDING_FAULTS[fault]
    copy.edit_json(file, change)
    report = run(copy)
    assert words in " ".join(finding.message for finding in report.faults)
    assert {finding.part for finding in report.faults} == {"bindings"}


def test_without_header_and_list_the_bindings_are_not_checked(copy: Copy) -> None:
    (copy.folder / "tensors.json").unlink()
    report = run(copy)
    assert said(report, "bindings", "fault") == [
        "not checked: the network was not asked; and the entry has no tensors.json"
    ]


def test_an_entry_without_weights(copy: Copy) -> None:
    text = (copy.folder / "nest.toml").read_text("utf-8")
    start, end = text.index("[weights]"), text.index("[generation]")
    tokenizer = '[tokenizer]\nfile = "tokenizer.json"\n'
    (copy.folder / "nest.toml").write_text((text[:start] + text[end:]).replace(tokenizer, ""), "utf-8")
    report = run(copy)
    assert report.faults == []
    assert said(report, "bindings", "note") == [
        "no checkpoint: nest.toml has no [weights], so the model has random weights only"
    ]


def test_weights_without_a_checkpoint(copy: Copy) -> None:
    copy.edit("nest.toml", 'name = "model.safetensors"', 'name = "model.bin"')
    assert said(run(copy), "bindings", "fault") == [
        "weights.files names no .safetensors file, so there is nothing to bind"
    ]


SAMPLE_FAULTS: dict[str, tuple[Any, str]] = {
    "none": ([], "no sample: what the model is for, with the reference's output"),
    "another kind": (
        {"kind": "chat", "note": "x"},
        "a sample's kind is 'chat'; task.kind is 'transcription'",
    ),
    "a recording that is not there": (
        {"kind": "transcription", "audio": "a.wav", "note": "x"},
        "'a.wav' is neither in the entry's folder nor a recording that ships with nest",
    ),
    "a recording elsewhere": (
        {"kind": "transcription", "audio": "../jfk.wav", "note": "x"},
        "'../jfk.wav' is neither in",
    ),
    "nothing to compare with": (
        {"kind": "transcription", "audio": "jfk.wav"},
        "a sample has neither an output nor a note that says why not",
    ),
}


@pytest.mark.parametrize("fault", SAMPLE_FAULTS)
def test_a_fault_of_the_samples(copy: Copy, fault: str) -> None:
    content, words = SAMPLE_FAULTS[fault]
    (copy.folder / "samples.json").write_text(json.dumps(content), "utf-8")
    report = run(copy, trust_source=False)
    (found,) = said(report, "samples", "fault")
    assert found == f"{copy.folder / 'samples.json'}: {words}" or found.startswith(
        f"{copy.folder / 'samples.json'}: {words}"
    )


def test_a_sample_that_describes_a_public_recording(copy: Copy) -> None:
    sample = {"kind": "transcription", "audio": "a public dataset, clean/validation[0]", "text": "Hello."}
    (copy.folder / "samples.json").write_text(json.dumps(sample), "utf-8")
    assert said(run(copy, trust_source=False), "samples", "ok") == ["1, of which 1 with a measured output"]


README_FAULTS: dict[str, tuple[str | None, str]] = {
    "missing": (None, ": cannot be read: No such file or directory"),
    "no snippet": ("# A model\n", ": no snippet of Python (a block fenced with ```python)"),
    "not Python": (
        "# A\n\n```python\nimport nest\nx = = 1\n```\n",
        ":5: the snippet is not Python: invalid syntax",
    ),
    "another model's": (
        '```python\nnest.load("whisper-tiny")\n```\n',
        ": no snippet uses this entry: none loads 'my-whisper'",
    ),
}


@pytest.mark.parametrize("fault", README_FAULTS)
def test_a_fault_of_the_readme(copy: Copy, fault: str) -> None:
    text, words = README_FAULTS[fault]
    readme = copy.folder / "README.md"
    if text is None:
        readme.unlink()
    else:
        readme.write_text(text, "utf-8")
    assert f"{readme}{words}" in said(run(copy, trust_source=False), "readme", "fault")


def test_a_report_as_data() -> None:
    facts = check("whisper-tiny", checkpoints=OFFLINE).facts()
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["name"], facts["ok"]) == ("whisper-tiny", True)
    assert facts["folder"] == str(zoo_directory() / "whisper-tiny")
    assert facts["findings"][1] == {
        "part": "definition",
        "level": "ok",
        "message": "traced symbolically and bound: encode, decode, listen, prefill, step, align",
    }


def test_a_finding_as_data_has_its_place(copy: Copy) -> None:
    (copy.folder / "README.md").write_text("```python\n(\n```\n", "utf-8")
    found = [one for one in run(copy, trust_source=False).facts()["findings"] if one["part"] == "readme"]
    assert (found[0]["file"], found[0]["line"]) == (str(copy.folder / "README.md"), 2)
    assert Path(found[0]["file"]).is_file()


class TestMeasured:
    def test_numbers_of_another_definition_are_a_note(self, copy: Copy) -> None:
        # The copy's program has another name than that of the entry whose numbers were copied with it.
        report = run(copy)
        assert report.faults == []
        (note,) = said(report, "parity", "note")
        assert note.startswith("tiny configuration, random weights, 20")
        assert note.endswith(": of another definition or other weights; pages say 'not measured'")

    def test_a_bad_file_is_a_fault_with_its_key(self, copy: Copy) -> None:
        copy.edit_json("parity.json", lambda runs: runs[0].update(weights="borrowed"))
        (fault,) = said(run(copy), "parity", "fault")
        assert f"{copy.folder / 'parity.json'}:" in fault
        assert "'[0].weights': input should be 'real' or 'random'; came 'borrowed'" in fault

    def test_a_definition_that_may_not_run_is_compared_with_nothing(self, copy: Copy) -> None:
        report = run(copy, trust_source=False)
        assert said(report, "parity", "note") == []
        assert said(report, "parity", "ok") == ["1 run"]

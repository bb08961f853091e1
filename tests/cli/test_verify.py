"""`nest verify` and `nest diff`: what they write and what they exit with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nest.errors import FetchError
from nest.verify import Row, Setting
from nest.verify.limits import Limit

from .conftest import Command

TINY = ("whisper-tiny", "--tiny", "--backend", "torch", "--plan", "exact", "--batch", "2", "--no-library")


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The oracle's results go to a folder of the tests' own."""
    monkeypatch.setenv("NEST_CACHE", str(tmp_path_factory.getbasetemp() / "nest-cache"))


def test_a_table_of_what_is_within_its_bounds(command: Command) -> None:
    outcome = command("verify", *TINY)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "**whisper-tiny**, tiny, random weights, drawn input"
    assert lines[2].startswith("| output | backend | plan | dtype | batch | max diff | of the largest |")
    assert any(
        line.startswith("| step | torch | exact | f32 | 2 | ") and line.endswith(" | ok |") for line in lines
    )
    assert lines[-1] == "11 rows, all within their bounds."


def test_json_for_the_catalog(command: Command) -> None:
    outcome = command("verify", *TINY, "--json")
    assert outcome.code == 0
    facts = json.loads(outcome.out)
    assert facts["conditions"]["cpus"] >= 1
    assert facts["unmeasured"] == {}
    (encode,) = [r for r in facts["rows"] if r["output"] == "encode"]
    assert encode["status"] == "ok"
    assert 0 < encode["relative"] < 2e-6


def test_over_its_bound_is_code_1(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nest.verify.setting.limit_of", lambda *_, **__: Limit(1e-12))
    outcome = command("verify", *TINY)
    assert outcome.code == 1
    assert "**failed**: over 1.0e-12 of the largest" in outcome.out
    assert outcome.out.splitlines()[-1].startswith("6 of 11 rows failed: encode on torch, decode on torch, ")


def test_a_type_that_a_backend_does_not_compute_in_is_left_out(command: Command) -> None:
    arguments = [a if a != "torch" else "onnx" for a in TINY]
    outcome = command("verify", *arguments, "--dtype", "bf16")
    assert outcome.code == 0
    assert "| load | onnx |  | bf16 |" in outcome.out
    assert "left out: whisper-tiny: the onnx backend does not compute in bf16" in outcome.out


def test_weights_that_cannot_be_had(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: Any, **__: Any) -> Any:
        raise FetchError("no network")

    monkeypatch.setattr("nest.verify.setting.fetch", fetch)
    outcome = command("verify", "whisper-tiny")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", "nest: error: no network\n")
    outcome = command("verify", "whisper-tiny", "whisper-tiny.en", "--json")
    assert outcome.code == 1
    assert json.loads(outcome.out)["unmeasured"] == {
        "whisper-tiny": "no network",
        "whisper-tiny.en": "no network",
    }
    assert outcome.err == "nest: error: whisper-tiny: no network\nnest: error: whisper-tiny.en: no network\n"


def test_real_weights_at_another_size_are_refused(command: Command) -> None:
    outcome = command("verify", "whisper-tiny", "--tiny", "--weights", "real")
    assert outcome.code == 1
    assert outcome.err == (
        "nest: error: The weights of 'whisper-tiny' fit its own size alone; at another, weights are random.\n"
    )


def test_the_entry_s_own_types_are_measured(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def matrix(setting: Setting, **options: Any) -> Iterator[Row]:
        asked.append(options)
        return iter(())

    monkeypatch.setattr("nest.cli._verify.matrix", matrix)
    assert command("verify", "whisper-tiny", "--tiny").code == 0
    assert asked == [{"backends": [], "plans": [], "dtypes": ["f32"], "library": True}]


def test_diff_says_that_all_agrees(command: Command) -> None:
    outcome = command("diff", "whisper-tiny", "--tiny", "--backend", "torch", "--entry", "encode")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("encode: 37 values agree, up to ")


def test_diff_names_the_block_and_the_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from nest.backends.jax.rules import RULES

    right = RULES["gelu"]
    monkeypatch.setitem(RULES, "gelu", lambda x, **attrs: right(x, approximate=True))
    arguments = ("diff", "whisper-tiny", "--tiny", "--backend", "jax", "--entry", "decode")
    outcome = command(*arguments)
    assert outcome.code == 1
    first, second, third = outcome.out.splitlines()
    assert first.startswith("decode: diverges first in decoder_layers.0.mlp: argument 0 of fc2.forward is ")
    assert " values before it agree, up to " in second
    assert third.startswith("  the first wrong operation is gelu, whisper-tiny/model.py:")
    assert third.endswith(": return self.fc2(gelu(self.fc1(x)))")
    (facts,) = json.loads(command(*arguments, "--json").out)
    assert facts["block"] == "decoder_layers.0.mlp"


def test_diff_needs_a_backend(command: Command) -> None:
    outcome = command("diff", "whisper-tiny")
    assert outcome.code == 2
    assert "--backend" in outcome.err
    assert (
        "There is no value for --against 'tourch'. Did you mean 'torch'?"
        in command("diff", "whisper-tiny", "--backend", "jax", "--against", "tourch").err
    )


def test_another_folder_s_definition_is_asked_for(command: Command, stranger: Path) -> None:
    outcome = command("verify", str(stranger), "--tiny")
    assert outcome.code == 1
    assert "--trust-source" in outcome.err


def test_rows_are_kept_beside_the_entry(command: Command, stranger: Path) -> None:
    (stranger / "parity.json").unlink(missing_ok=True)
    outcome = command("verify", str(stranger), *TINY[1:], "--trust-source", "--save")
    assert (outcome.code, outcome.err) == (0, f"nest: {stranger / 'parity.json'}\n")
    (run,) = json.loads((stranger / "parity.json").read_text("utf-8"))
    assert (run["configuration"], run["weights"]) == ("tiny", "random")
    assert {row["backend"] for row in run["rows"]} == {"oracle", "torch"}
    assert run["conditions"]["cpus"] >= 1


def test_a_size_that_no_page_shows_is_not_kept(command: Command, stranger: Path) -> None:
    before = (stranger / "parity.json").read_bytes()
    outcome = command("verify", str(stranger), *TINY[1:], "-D", "DecoderLayers=3", "--trust-source", "--save")
    assert outcome.code == 1
    assert "this is 'tiny DecoderLayers=3'. Leave -D and --quantize out." in outcome.err
    assert (stranger / "parity.json").read_bytes() == before


def test_quantized_weights_have_a_bound_of_their_own(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (*TINY, "-D", "D=48", "--quantize", "encoder=int8,decoder=int8")
    outcome = command("verify", *arguments)
    assert outcome.code == 0
    assert [line.partition(",")[0] for line in outcome.err.splitlines()] == [
        "encoder: 12 matrices in int8",
        "decoder: 40 matrices in int8",
    ]
    assert outcome.out.startswith("**whisper-tiny**, tiny D=48 encoder=int8,decoder=int8, random weights")
    monkeypatch.setattr("nest.verify.limits.QUANTIZED", {"int8": 1e-5})
    outcome = command("verify", *arguments)
    assert outcome.code == 1
    assert "**failed**: over 1.0e-05 of the largest" in outcome.out


def test_a_part_that_there_is_not_is_refused_before_anything_is_measured(command: Command) -> None:
    outcome = command("verify", *TINY, "-D", "D=48", "--quantize", "all=int8")
    assert outcome.code == 1
    assert (
        "names the part 'all', which whisper-tiny does not have; its parts: encoder, decoder" in outcome.err
    )
    assert outcome.out == ""

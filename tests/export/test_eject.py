"""Ejected source: one file that needs no nest, computes what the model computes, and reads like a person's."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError
from nest.export.source import eject
from nest.registry import find, zoo_directory

from .conftest import ROOT, tiny_generics

BACKENDS = ("torch", "nnx")
ENTRIES = ("whisper-tiny", "whisper-tiny.en")

SCRIPTS = {
    "torch": """
import numpy as np, torch
import model as file

with np.load("given.npz") as arrays:
    mel, ids = (torch.from_numpy(arrays[n]) for n in ("mel", "ids"))
model = file.load("weights.safetensors")
with torch.no_grad():
    full = model.decode(ids, model.encode(mel))
    state = model.new_state(2, 17, torch.float32, torch.device("cpu"))
    model.listen(mel, state)
    first = model.prefill(ids[:, :4], torch.tensor([4, 4]), state)
    steps = [model.step(ids[:, i : i + 1], torch.tensor([i, i]), state) for i in range(4, 7)]
np.savez("got.npz", full=full.numpy(), first=first.numpy(), steps=np.stack([s.numpy() for s in steps]))
""",
    "nnx": """
import jax, numpy as np
from flax import nnx
import model as file

with np.load("given.npz") as arrays:
    mel, ids = arrays["mel"], arrays["ids"]
model = file.load("weights.safetensors")
full = nnx.jit(lambda m, mel, ids: m.decode(ids, m.encode(mel)))(model, mel, ids)
state = model.new_state(2, 17)
model.listen(mel, state)
first = model.prefill(ids[:, :4], np.array([4, 4]), state)
steps = [model.step(ids[:, i : i + 1], np.array([i, i]), state) for i in range(4, 7)]
np.savez("got.npz", full=full, first=first, steps=np.stack(steps))
""",
}


@pytest.fixture(scope="module", params=[(b, e) for b in BACKENDS for e in ENTRIES], ids="-".join)
def source(request: pytest.FixtureRequest) -> str:
    backend, entry = request.param
    return eject(entry, backend)


def test_it_imports_no_nest_and_little_else(source: str) -> None:
    modules = {
        (n.module if isinstance(n, ast.ImportFrom) else n.names[0].name) or ""
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Import | ast.ImportFrom)
    }
    foreign = {m.partition(".")[0] for m in modules} - sys.stdlib_module_names
    assert foreign in ({"torch", "safetensors"}, {"jax", "flax", "safetensors"})


def test_it_is_one_file_of_at_most_450_lines(source: str) -> None:
    assert len(source.splitlines()) <= 450


def test_the_formatter_and_the_linter_have_nothing_to_say(source: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(source)
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["format", "--check", "--config", str(ROOT / "pyproject.toml")], ["check", "--isolated"]):
        done = subprocess.run(
            [*ruff, *command, "model.py"], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_comes_first_and_says_where_its_numbers_are_from(source: str) -> None:
    tree = ast.parse(source)
    first = next(n for n in tree.body if not isinstance(n, ast.Expr | ast.Import | ast.ImportFrom))
    assert isinstance(first, ast.ClassDef)
    assert first.name == "Config"
    assert re.fullmatch(
        r"The sizes of openai/whisper-tiny(\.en)? at commit [0-9a-f]{40}\.", ast.get_docstring(first) or ""
    )
    fields = {
        n.target.id: ast.unparse(n.value) for n in first.body if isinstance(n, ast.AnnAssign) and n.value
    }  # type: ignore[union-attr]
    assert (fields["D"], fields["Mels"], fields["Frames"]) == ("384", "80", "3000")


def test_the_definition_s_docstrings_are_kept(source: str) -> None:
    definition = ast.parse((zoo_directory() / "whisper-tiny" / "model.py").read_text())
    written = ast.parse(source)
    documented = (ast.ClassDef, ast.FunctionDef)
    kept = {ast.get_docstring(n) for n in ast.walk(written) if isinstance(n, documented)}
    made = {n.name for n in ast.walk(written) if isinstance(n, documented)}
    wanted = {n.name: ast.get_docstring(n) for n in ast.walk(definition) if isinstance(n, documented)}
    lost = [n for n, doc in wanted.items() if doc and n in made and doc not in kept]
    assert lost == []
    assert (ast.get_docstring(definition) or "") in (ast.get_docstring(written) or "")


def test_there_is_a_shape_beside_each_reshape(source: str) -> None:
    lines = source.splitlines()
    classes = next(i for i, line in enumerate(lines) if line.startswith("class Attention"))
    moves = [
        i
        for i in range(classes, len(lines))
        if re.search(r"\.(reshape|transpose|permute|swapaxes)\(", lines[i])
    ]
    assert len(moves) >= 8
    assert [lines[i] for i in moves if not re.search(r"# .*\[.+\]", lines[i] + lines[i - 1])] == []


@pytest.mark.parametrize("names", ["published", "own"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_it_computes_what_the_model_computes(
    backend: str, names: str, tiny: Callable[..., Any], tmp_path: Path, stranger: Callable[..., str]
) -> None:
    (tmp_path / "model.py").write_text(eject("whisper-tiny", backend, **tiny_generics()))
    nest.save(tiny("reference"), tmp_path / "saved", "hf" if names == "published" else "safetensors")
    shutil.copy(tmp_path / "saved" / "model.safetensors", tmp_path / "weights.safetensors")
    rng = np.random.default_rng(6)
    mel = rng.standard_normal((2, 10, 26)).astype(np.float32)
    ids = rng.integers(0, 97, (2, 7)).astype(np.int32)
    np.savez(tmp_path / "given.npz", mel=mel, ids=ids)
    (tmp_path / "script.py").write_text(SCRIPTS[backend])
    stranger(tmp_path / "script.py")
    model = tiny(backend)
    session = model.new_session(Batch=2)
    full = session.numpy(model.decode(ids, model.encode(mel)))
    session.listen(mel)
    first = session.numpy(session.prefill(ids[:, :4]))
    steps = np.stack([session.numpy(session.step(ids[:, i : i + 1], [i, i])) for i in range(4, 7)])
    with np.load(tmp_path / "got.npz") as got:
        for name, want in (("full", full), ("first", first), ("steps", steps)):
            if backend == "torch":
                np.testing.assert_array_equal(got[name], want, err_msg=name)
            else:
                np.testing.assert_allclose(got[name], want, atol=2e-6 * np.abs(want).max(), err_msg=name)


@pytest.mark.weights
def test_it_runs_as_a_program(tmp_path: Path, stranger: Callable[..., str]) -> None:
    from nest.weights import fetch

    (tmp_path / "model.py").write_text(eject("whisper-tiny.en", "torch"))
    weights = fetch(find("whisper-tiny.en"), ["model.safetensors"]).files["model.safetensors"]
    model = nest.load("whisper-tiny.en", backend="torch")
    session = model.new_session()
    session.listen(np.zeros((1, 80, 3000), np.float32))
    token = int(session.numpy(session.prefill([[50257, 50362]])).argmax())
    assert stranger(tmp_path / "model.py", str(weights)) == f"the next token: {token}\n"


def test_other_sizes_are_said_to_be_asked_for() -> None:
    source = eject("whisper-tiny", D=192, Heads=3)
    assert '"""Sizes of a model of the family whisper, as they were asked for."""' in source
    assert "    D: int = 192\n" in source


def test_bindings_that_transform_leave_the_file_its_own_names(tmp_path: Path) -> None:
    folder = tmp_path / "turned"
    shutil.copytree(zoo_directory() / "whisper-tiny", folder)
    manifest = (folder / "nest.toml").read_text(encoding="utf-8")
    (folder / "nest.toml").write_text(manifest.replace('name = "whisper-tiny"', 'name = "turned"'))
    bindings = json.loads((folder / "bindings.json").read_text())
    bindings["bindings"]["encoder_layers.{i}.mlp.fc1.weight"] = {
        "op": "transpose", "of": "model.encoder.layers.{i}.fc1.weight", "perm": [1, 0],
    }  # fmt: skip
    (folder / "bindings.json").write_text(json.dumps(bindings))
    source = eject(str(folder), trust_source=True)
    assert "NAMES" not in source
    assert "published(" not in source
    assert "import re\n" not in source


def test_comments_of_the_definition_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "told"
    shutil.copytree(zoo_directory() / "whisper-tiny", folder)
    manifest = (folder / "nest.toml").read_text(encoding="utf-8")
    (folder / "nest.toml").write_text(manifest.replace('name = "whisper-tiny"', 'name = "told"'))
    text = (folder / "model.py").read_text(encoding="utf-8")
    for before, after in (
        ("class Mlp(Block):", "# Above a class.\nclass Mlp(Block):"),
        ("    Mels: Dim\n", "    Mels: Dim  # bins of the spectrogram\n"),
        ("        self.fc1 = Linear", "        # Above a member.\n        self.fc1 = Linear"),
        (
            "        return self.fc2(gelu(self.fc1(x)))",
            "        # Above a return.\n        return self.fc2(gelu(self.fc1(x)))",
        ),
        ("    def attend_causal(", "    # Above a method.\n    def attend_causal("),
        (
            "        x = x.permute(0, 2, 1) +",
            "        # Above a statement.\n        x = x.permute(0, 2, 1) +",
        ),
        (
            "        for layer in self.encoder_layers:",
            "        # Above a loop.\n        for layer in self.encoder_layers:  # at its head",
        ),
        ("            x = layer(x)\n", "            # Inside a loop.\n            x = layer(x)\n"),
    ):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    (folder / "model.py").write_text(text)
    for backend in BACKENDS:
        source = eject(str(folder), backend, trust_source=True)
        lines = [line.strip() for line in source.splitlines()]
        for comment, below in (
            ("# Above a class.", "class Mlp("),
            ("# bins of the spectrogram", "Mels: int = 80"),
            ("# Above a member.", "self.fc1 = "),
            ("# Above a return.", "return self.fc2("),
            ("# Above a method.", "def attend_causal("),
            ("# Above a statement.", "x = x."),
            ("# Above a loop.", "# at its head"),
            ("# at its head", "for layer in self.encoder_layers:"),
            ("# Inside a loop.", "x = layer(x)"),
        ):
            assert lines.count(comment) == 1, comment
            assert lines[lines.index(comment) + 1].startswith(below), comment


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(
        CallError, match="Source is ejected for torch and nnx; backend='torhc' was given"
    ) as error:
        eject("whisper-tiny", "torhc")
    assert "'torch'" in str(error.value)

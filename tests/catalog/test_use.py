"""What the pages say about using a model is run: every kind of snippet, on every backend, and the commands.

A snippet runs on a small copy of its entry with random weights, its text made from that copy; of entries whose texts
differ by names and sizes alone, one. Three run on the published weights too.
"""

from __future__ import annotations

import ast
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import nest
from nest.backends.installed import BACKENDS as KNOWN
from nest.catalog.facts import Facts
from nest.catalog.readme import read
from nest.catalog.sections import use
from nest.cli import main
from nest.registry import Entry, cards, entries, find
from nest.tasks.snippets import BACKENDS, Subject, commands, installs, leaving, model_code, task_code

from .small_zoo import small_copy, working_folder
from .snippets import run

NAMES = [entry.name for entry in entries()]


COMPILED = ("jax", "nnx")
"""Backends whose programs take seconds to compile: there, what the text does not show makes no other group."""


def likeness(entry: Entry, backend: str) -> tuple[object, ...]:
    """What decides an entry's snippets, names and numbers aside."""
    m = entry.manifest
    filled = m.tokenizer is not None and m.tokenizer.pad is not None
    text = (entry.source, m.task, m.chat is None, filled)
    return text if backend in COMPILED else (*text, m.source.root, entry.generics.get("T"))


@cache
def groups(backend: str = "") -> dict[str, list[str]]:
    """The entries whose snippets are alike, by the first of them."""
    found: dict[str, list[str]] = {}
    first: dict[str, str] = {}
    for entry in entries():
        name = first.setdefault(repr(likeness(entry, backend)), entry.name)
        found.setdefault(name, []).append(entry.name)
    return found


def plain(text: str, name: str) -> str:
    """A text without the entry's name, with 0 for every number, no matter how many ids and which mask token."""
    text = re.sub(r"^# start.*\nprompt = \[.*\]$", "prompt", text, flags=re.MULTILINE)
    return re.sub(r"\d+(\.\d+)?", "0", text.replace(name, "NAME").replace("<mask>", "[MASK]"))


def texts(subject: Subject) -> Iterator[tuple[str, str]]:
    """All the Python of an entry, by backend; of the task, by none."""
    yield "", task_code(subject)
    for backend in BACKENDS:
        yield backend, model_code(subject, backend)


def test_a_promise_of_another_shape_is_noticed() -> None:
    start = "import numpy as np\nx, y = np.zeros((2, 3)), 0"
    assert run(f"{start}  # [2, 3]")[1] == 1
    assert run(f"{start}  # of all, [2, S]\nfor _ in range(2):\n    z = x + 1  # [2, S]")[1] == 3
    for wrong in ("[2, 4]", "[2, 3, 1]", "[S, S]"):
        with pytest.raises(AssertionError, match="line 2 promises"):
            run(f"{start}  # {wrong}")
    with pytest.raises(AssertionError, match="of nothing that is assigned"):
        run(f"{start}\nprint(x)  # [2, 3]")


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_has_snippets_that_are_those_of_its_group(name: str) -> None:
    subject = Subject(find(name))
    for backend, mine in texts(subject):
        leader = next(leader for leader, members in groups(backend).items() if name in members)
        theirs = dict(texts(Subject(find(leader))))[backend]
        assert f'"{name}"' in mine
        assert plain(mine, name) == plain(theirs, leader)
        called = {
            node.func.attr
            for node in ast.walk(ast.parse(mine))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value) == "model"
        }
        known = {
            *subject.program.entries,
            "function",
            "new_session",
            "new_states",
            "parameters",
            "state_dict",
        }
        assert called <= known
    assert commands(subject)
    assert all(name in command for command, _ in [*commands(subject), *leaving(subject)])


@pytest.mark.parametrize(("name", "backend"), [(name, one) for one in BACKENDS for name in groups(one)])
def test_the_model_on_a_backend(
    name: str, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject(small_copy(name, tmp_path, monkeypatch))
    names, looked = run(model_code(subject, backend))
    assert looked >= 2
    assert names["model"].backend == backend
    assert names["model"].entry.name == name


@pytest.mark.parametrize("name", groups())
def test_the_task_and_its_commands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subject = Subject(small_copy(name, tmp_path, monkeypatch))
    run(task_code(subject))
    assert capsys.readouterr().out.strip()
    for command, _ in [*commands(subject), *leaving(subject)]:
        program, *arguments = shlex.split(command)
        assert program == "nest"
        monkeypatch.setattr("sys.stdin", io.StringIO("Hello.\n"))
        assert main(arguments) == 0, capsys.readouterr().err
    assert (tmp_path / "work" / f"{name}-onnx" / "io.json").is_file()
    assert "nn.Module" in (tmp_path / "work" / "model.py").read_text("utf-8")


def test_what_is_installed_are_extras_of_the_distribution() -> None:
    for name in NAMES:
        for backend in BACKENDS:
            extras = installs(Subject(find(name)), backend).split(",")
            assert extras[0] == KNOWN[backend].extra
            assert set(extras) <= {"torch", "jax", "onnx", "audio", "text", "vision"}
            assert len(extras) == 2


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_readme_once_and_each_backend(name: str) -> None:
    facts = next(Facts.of(card) for card in cards()[0] if card.name == name)
    readme = read((facts.entry.directory / "README.md").read_text("utf-8"))
    made = use.section(facts, readme)
    task, model = use.divided(readme.section("Use"))
    assert f"{task}\n\n{model}".split() == readme.section("Use").split()
    assert "nest.pipeline(" in task
    assert "nest.load(" not in task
    assert made.text.count(task) == 1
    assert model in made.text
    for backend in BACKENDS:
        assert f'=== "{backend}"' in made.text
        assert f"pip install '.[{installs(Subject(facts.entry), backend)}]'" in made.text
    assert set(re.findall(r"`model\.(\w+)\(\.\.\.\)`", made.text)) <= set(facts.program.entries)
    lines = [line for line in made.text.splitlines() if line.startswith(f"nest run {name}")]
    assert len(lines) == len(set(lines))


def test_a_readme_is_divided_before_the_paragraph_that_leads_to_the_model() -> None:
    task = "Words.\n\n```python\nnest.pipeline('x')\n```\n\n```sh\nnest run x\n```"
    model = "The model itself.\n\n```python\nnest.load('x')\n```\n\nMore."
    assert use.divided(f"{task}\n\n{model}") == (task, model)
    assert use.divided(f"{task}\n\n{model[19:]}") == (task, model[19:])
    assert use.divided(model) == ("", model)
    assert use.divided(task) == (task, "")


MIRRORED = [e.name for e in entries() if e.manifest.weights is not None and e.manifest.weights.mirror]


def test_what_pages_say_is_run_with_published_weights_is() -> None:
    assert set(MIRRORED) == {"whisper-tiny.en", "all-MiniLM-L6-v2", "smollm2-135m-instruct"}
    for entry in entries():
        said = "on torch and onnx with the weights of the pinned mirror" in use.executed(Subject(entry))
        assert said == (entry.name in MIRRORED)


@pytest.fixture
def large_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for what is too large to be kept after a test."""
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.weights
@pytest.mark.parametrize("backend", ["torch", "onnx"])
@pytest.mark.parametrize("name", MIRRORED)
def test_the_model_with_published_weights(
    name: str,
    backend: str,
    large_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    working_folder(large_folder, monkeypatch)
    names, _ = run(model_code(Subject(find(name)), backend))
    if name == "whisper-tiny.en":
        assert nest.pipeline(names["model"]).tokenizer.decode([names["token"]]) == " And"
        assert names["states"].shape == (1, 1500, 384)
    elif name == "all-MiniLM-L6-v2":
        cosines = names["cosines"]
        assert min(cosines[0, 1], cosines[2, 3]) > max(map(max, cosines[:2, 2:]))
    else:
        assert capsys.readouterr().out == "The capital of France is Paris.\n"

"""`nest adopt`, and the entry that it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nest.checking import Checkpoints, check, lint
from nest.registry import find

from .conftest import Command
from .library import CASES, change_config


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    CASES["bert"].save(tmp_path / "tuned")
    return tmp_path / "tuned"


def test_it_says_what_it_recognised_and_how_to_use_it(command: Command, tuned: Path) -> None:
    done = command("adopt", str(tuned))
    assert (done.code, done.err) == (0, "")
    assert "family 'bert', the definition of 'all-MiniLM-L6-v2'" in " ".join(done.out.split())
    assert "D = 24, Heads = 4, Inner = 40, Layers = 2" in " ".join(done.out.split())
    folder = done.out.split('nest.load("')[1].split('"')[0]
    assert find(folder).name == "tuned"


def test_as_data(command: Command, tuned: Path) -> None:
    done = command("adopt", str(tuned), "--json", "--no-weights")
    facts = json.loads(done.out)
    assert (facts["name"], facts["family"], facts["generics"]["Positions"]) == ("tuned", "bert", 20)


def test_what_is_refused_is_one_paragraph_and_code_1(command: Command, tuned: Path) -> None:
    change_config(tuned, position_embedding_type="relative_key")
    done = command("adopt", str(tuned))
    assert (done.code, done.out) == (1, "")
    assert "'position_embedding_type' is \"relative_key\", and the definition computes with" in done.err


def test_a_written_entry_passes_the_check_and_lacks_what_a_person_knows(
    command: Command, tuned: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "zoo" / "my-bert"
    assert command("adopt", str(tuned), "--write", str(folder)).code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "nest.toml", "samples.json", "tensors.json",
    ]  # fmt: skip
    assert find(folder).name == "my-bert"
    assert [str(fault) for fault in check(folder, checkpoints=Checkpoints(offline=True)).faults] == []
    faults = lint(folder).faults
    written = [fault for fault in faults if "still to be written" in fault.message]
    assert {fault.file.name for fault in written if fault.file} == {"README.md", "samples.json"}
    others = [fault.message for fault in faults if fault not in written]
    # The folder of one machine, said twice, and a task, which a bare encoder does not have by itself.
    assert len(others) == 3, others
    again = command("adopt", str(tuned), "--write", str(folder))
    assert again.code == 1
    assert "is there already, and nothing is overwritten" in again.err

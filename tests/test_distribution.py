"""The wheel: what is in it, that it works by itself, and what happens beside another package named nest."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.parser import Parser
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import nest
from nest import _command, _env

ROOT = Path(__file__).parents[1]
RUN = "import sys, _nest_zoo_command; sys.exit(_nest_zoo_command.main())"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip` builds it, from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def site(wheel: Path, tmp_path: Path) -> Path:
    """A folder that the wheel is installed into."""
    folder = tmp_path / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def nest_command(tmp_path: Path) -> Run:
    """Run the installed command, with folders put before everything else on the path."""

    def run(*arguments: str, path: list[Path]) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
        command = [sys.executable, "-c", RUN, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def install_another(folder: Path, record: str = "nest/__init__.py,,\nnest/server.py,,\n") -> None:
    """Another distribution's package named `nest`, over what is there."""
    (folder / "nest").mkdir(parents=True, exist_ok=True)
    (folder / "nest" / "server.py").write_text("")
    if "nest/__init__.py" in record:
        (folder / "nest" / "__init__.py").write_text("raise SystemExit('the other package ran')\n")
    (folder / "nest_simulator-3.8.dist-info").mkdir()
    (folder / "nest_simulator-3.8.dist-info" / "METADATA").write_text("Name: nest-simulator\nVersion: 3.8\n")
    (folder / "nest_simulator-3.8.dist-info" / "RECORD").write_text(record)


def test_the_wheel_holds_package_zoo_and_recordings(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "nest").rglob("*.py")} - {"nest/_command.py"}
    zoo = {
        f"nest/_zoo/{p.relative_to(ROOT / 'zoo')}"
        for p in (ROOT / "zoo").rglob("*")
        if p.is_file() and p.suffix != ".pyc"
    }
    clips = {f"nest/_assets/{path.name}" for path in (ROOT / "assets" / "audio").glob("*.wav")}
    assert len(clips) == 4
    pictures = {f"nest/_assets/{path.name}" for path in (ROOT / "assets" / "images").glob("*.jpg")}
    assert pictures
    assert sources | zoo | clips | pictures | {"nest/py.typed", "_nest_zoo_command.py"} <= names
    assert {name.split("/")[0] for name in names} == {
        "nest",
        "_nest_zoo_command.py",
        f"nest_zoo-{nest.__version__}.dist-info",
    }


def test_the_wheel_says_what_it_needs(wheel: Path) -> None:
    information = f"nest_zoo-{nest.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"{information}/METADATA").decode())
        scripts = archive.read(f"{information}/entry_points.txt").decode()
        licence = archive.read(f"{information}/licenses/LICENSE").decode()
    extras = set(metadata.get_all("Provides-Extra") or ())
    assert {"torch", "jax", "onnx", "onnx-gpu", "audio", "transcribe", "docs", "test"} <= extras
    needed = [text for text in metadata.get_all("Requires-Dist") or () if "extra ==" not in text]
    assert sorted(text.split(">=")[0] for text in needed) == [
        "filelock",
        "huggingface-hub",
        "numpy",
        "pydantic",
    ]
    assert "nest = _nest_zoo_command:main" in scripts
    assert "nest-zoo = _nest_zoo_command:main" in scripts
    assert "Apache License" in licence


def test_the_installed_command_works_by_itself(site: Path, nest_command: Run) -> None:
    outcome = nest_command("list", path=[site])
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "whisper-tiny.en" in outcome.stdout
    shown = nest_command("show", "whisper-tiny.en", "--json", path=[site]).stdout
    assert str(site / "nest" / "_zoo" / "whisper-tiny.en") in shown


def test_a_package_that_hides_nest_is_named_and_not_run(
    site: Path, tmp_path: Path, nest_command: Run
) -> None:
    install_another(tmp_path / "simulator")
    outcome = nest_command("list", path=[tmp_path / "simulator", site])
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == (
        f"nest: error: Another package named 'nest' is in the place of nest-zoo's: Python finds "
        f"{tmp_path / 'simulator' / 'nest' / '__init__.py'}, which nest-simulator installed. Install nest-zoo in an "
        f"environment of its own (python -m venv), or take the other's folder off PYTHONPATH.\n"
    )


def test_a_distribution_in_the_same_folder_is_named(site: Path, nest_command: Run) -> None:
    install_another(site, record="nest/server.py,,\n")
    outcome = nest_command("pull", "whisper-tiny.en", path=[site])
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr == (
        f"nest: error: nest_simulator 3.8 and nest-zoo both install a package named 'nest' into {site}, so files of "
        f"one have replaced the other's. Only one of them can be used there: install nest-zoo in an environment of "
        f"its own (python -m venv), or uninstall both and then install the one you need.\n"
    )


def test_a_package_that_took_the_folder_over_is_named_and_not_run(site: Path, nest_command: Run) -> None:
    install_another(site)
    outcome = nest_command("list", path=[site])
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith(
        f"nest: error: Another package named 'nest' is in the place of nest-zoo's: Python finds "
        f"{site / 'nest' / '__init__.py'}, which nest-simulator installed. "
    )


def test_a_folder_without_a_package_is_not_ours_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ModuleSpec("nest", None, is_package=True)
    folder.submodule_search_locations = ["/elsewhere/nest"]
    monkeypatch.setattr(_command, "find_spec", lambda name: folder)
    assert _command.main() == 1
    assert "in the place of nest-zoo's: Python finds /elsewhere/nest" in capsys.readouterr().err


def test_overlapping_reads_each_kind_of_record(tmp_path: Path) -> None:
    def distribution(folder: str, file: str, content: str) -> None:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text(content)

    assert _env.overlapping(tmp_path) == []
    distribution("nest_zoo-0.1.0.dist-info", "RECORD", "nest/__init__.py,,\n")
    distribution("nested-1.0.dist-info", "RECORD", "nested/__init__.py,,\nbirds/nest/__init__.py,,\n")
    distribution("old-2.1-py3.11.egg-info", "top_level.txt", "eggs\nnest\n")
    distribution("other-3.dist-info", "RECORD", "bin/other,,\nnest/other.py,,\n")
    distribution("eggs-1-py3.11.egg-info", "top_level.txt", "nestling\n")
    distribution("empty-1.dist-info", "METADATA", "")
    assert _env.overlapping(tmp_path) == ["old 2.1", "other 3"]


def test_the_checkout_is_alone() -> None:
    assert _env.overlapping() == []
    _env.check_environment()


def test_a_command_without_its_package_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_command, "find_spec", lambda name: None)
    assert _command.main() == 1
    assert capsys.readouterr().err == (
        "nest: error: The package 'nest' is not installed, though its command is. Install it with: "
        "pip install nest-zoo\n"
    )

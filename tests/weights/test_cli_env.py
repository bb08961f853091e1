"""`nest env`: what it tells of this machine, and the clashes that it knows."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import nest
from nest.cli import _machine

from .conftest import Command


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frameworks' own answers are asked for in one test."""
    monkeypatch.setattr(_machine, "_DEVICES", {"numpy": lambda: ["cpu (2 threads)"]})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What `importlib.metadata` finds."""
    found: dict[str, str] = {}
    monkeypatch.setattr(_machine, "_version", found.get)
    monkeypatch.setattr(_machine, "overlapping", list)
    monkeypatch.setattr(_machine.shutil, "which", lambda _: None)
    return found


def test_as_json(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site.toml"
    site.write_text('sources = ["directory"]\nlicenses = ["MIT"]\n[[mirror]]\ndirectory = "/mnt/models"\n')
    monkeypatch.setenv("NEST_CONFIG", str(site))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:password@proxy.example")
    monkeypatch.setenv("HF_ENDPOINT", "https://me:password@hub.example")
    outcome = command("env", "--json")
    facts = json.loads(outcome.out)
    assert (outcome.code, facts["nest"]) == (0, nest.__version__)
    assert facts["packages"]["numpy"] == np.__version__
    assert facts["devices"] == {"numpy": ["cpu (2 threads)"]}
    assert facts["paths"]["nest_cache"] == str(tmp_path / "nest-cache")
    assert facts["paths"]["user_config"] == str(site)
    assert facts["paths"]["machine_config"] == f"{tmp_path / 'machine' / 'config.toml'} (not there)"
    assert facts["rules"]["sources"] == ["directory"]
    assert facts["rules"]["forbidden"]["hub"] == str(site)
    assert facts["rules"]["mirrors"] == ["/mnt/models"]
    assert facts["rules"]["licenses"] == [["MIT"]]
    assert facts["settings"] == {"NEST_CACHE": str(tmp_path / "nest-cache"), "NEST_CONFIG": str(site)} | {
        "HF_ENDPOINT": "https://hub.example",
        "HF_TOKEN": "set",
        "HTTPS_PROXY": "set",
    }
    assert "secret" not in outcome.out
    assert "password" not in outcome.out


def test_as_text(command: Command, installed: dict[str, str]) -> None:
    installed.update(numpy="2.4.6", torch="2.13.0", onnxruntime="1.32.0")
    text = command("env").out
    for fact in (
        f"nest        {nest.__version__}\n",
        "\nPackages\n  numpy",
        "torch            2.13.0\n",
        "jax              -\n",
        "\nDevices\n  numpy  cpu (2 threads)\n",
        "sources         directory, url, hub, package-index\n",
        "require_hashes  no\n",
        "\nClashes\n  none",
    ):
        assert fact in text


def test_what_a_framework_answers() -> None:
    pytest.importorskip("onnxruntime")
    assert "CPUExecutionProvider" in _machine._onnx_providers()


def test_a_framework_that_does_not_start(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[str]:
        raise ImportError("libcudart.so.12: cannot open shared object file")

    installed["torch"] = "2.13.0"
    monkeypatch.setattr(_machine, "_DEVICES", {"torch": broken})
    assert _machine.devices() == {
        "torch": "does not start: ImportError: libcudart.so.12: cannot open shared object file"
    }


class TestClashes:
    def test_none(self, installed: dict[str, str]) -> None:
        installed.update(
            {"onnxruntime-gpu": "1.32.0", "jax": "0.10.2", "jaxlib": "0.10.1", "torch": "2.13.0"}
        )
        assert _machine.clashes() == []
        assert _machine.packages()["onnxruntime-gpu"] == "1.32.0"
        assert "onnxruntime" not in _machine.packages()

    def test_two_onnx_runtimes(self, installed: dict[str, str]) -> None:
        installed.update({"onnxruntime": "1.32.0", "onnxruntime-gpu": "1.31.0"})
        (clash,) = _machine.clashes()
        assert clash.startswith(
            "onnxruntime and onnxruntime-gpu are all installed, and put their files into one"
        )
        assert clash.endswith("(pip uninstall onnxruntime onnxruntime-gpu), then install the one you need.")

    @pytest.mark.parametrize(("jaxlib", "words"), [("0.9.0", "jaxlib 0.9.0"), (None, "no jaxlib")])
    def test_jax_and_jaxlib(self, installed: dict[str, str], jaxlib: str | None, words: str) -> None:
        installed["jax"] = "0.10.2"
        if jaxlib:
            installed["jaxlib"] = jaxlib
        (clash,) = _machine.clashes()
        assert clash.startswith(f"jax 0.10.2 is installed with {words}. Install both of one version")

    def test_another_nest(self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_machine, "overlapping", lambda: ["nest 2.0"])
        (clash,) = _machine.clashes()
        assert clash.startswith("nest 2.0 also installs a package named 'nest' here")

    def test_a_gpu_that_torch_does_not_see(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        installed["torch"] = "2.13.0+cpu"
        monkeypatch.setattr(_machine.shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(_machine, "_asked", lambda _: ["False"])
        (clash,) = _machine.clashes()
        assert "NVIDIA driver, and torch 2.13.0+cpu sees no GPU" in clash
        monkeypatch.setattr(_machine, "_asked", lambda _: ["True"])
        assert _machine.clashes() == []


def test_versions_are_those_of_the_distributions() -> None:
    assert _machine._version("numpy") == metadata.version("numpy")
    assert _machine._version("no-such-distribution") is None

"""What a page's reader has at hand before the first line, and what is looked at after the last one."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.registry import find, zoo_directory

from ..tasks.recordings import contained
from ..zoo.small import byte_level_tokenizer, small_entry
from ..zoo.test_readme_decoders import END, SMALL, TEMPLATE
from . import shell
from .markdown import ROOT
from .reader import Reader

__all__ = ["AFTER", "ELSEWHERE", "LIGHT", "SHORTER", "prepare"]

ELSEWHERE = {
    "docs/guides/fine-tuning.md": "tests/parity/test_fine_tuning.py",
    "docs/guides/fine-tuning-on-a-mesh.md": "tests/backends/jax/sharded.py",
    "docs/guides/offline-and-company-networks.md": "tests/weights/test_guide.py",
}
"""Pages whose blocks need more than a reader: two frameworks beside a library, eight devices, several machines. Each of
these tests takes the page's blocks from `markdown.blocks`, and holds that none is left over."""

_LESS = "--tiny --backend onnx --plan exact --batch 1 --no-library"
_LAYERS = "-D EncoderLayers=1 -D DecoderLayers=1"
_SMALL = f"{_LESS} {_LAYERS}"
SHORTER = {
    "nest verify whisper-tiny --tiny": f"nest verify whisper-tiny {_SMALL}",
    "nest diff whisper-tiny --tiny --backend torch": f"nest diff whisper-tiny --tiny {_LAYERS} --backend torch",
    "nest diff whisper-tiny --tiny --backend jax": f"nest diff whisper-tiny --tiny {_LAYERS} --backend jax",
    "nest verify whisper-tiny.en --backend onnx": f"nest verify whisper-tiny.en {_SMALL}",
    "nest verify whisper-tiny --tiny --dtype bf16 --dtype f16": f"nest verify whisper-tiny {_SMALL} --dtype f16",
    "nest verify whisper-tiny.en --dtype f16 --backend onnx": f"nest verify whisper-tiny.en {_SMALL} --dtype f16",
    "python -m nest verify whisper-tiny --tiny --backend tally": (
        "python -m nest verify whisper-tiny --tiny --backend tally --no-library"
    ),
    "nest bench whisper-tiny.en": (
        "nest bench whisper-tiny.en --backend onnx --plan exact --rounds 1 --no-library --threads 1 --peers none"
    ),
    "nest verify zoo/my-model --tiny --trust-source": f"nest verify zoo/my-model {_LESS} --trust-source",
}
"""Commands that measure for minutes, and what is run of each: less of the same."""


def prepare(page: str, folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """Make the reader's folder, and what else the page needs; gives the names that the reader has already."""
    folder.mkdir()
    (folder / "assets").symlink_to(ROOT / "assets")
    # The content decides what a sound file is, not its name.
    shutil.copy(ROOT / "assets" / "audio" / "jfk.wav", folder / "talk.mp3")
    return BEFORE[page](folder, patch) if page in BEFORE else {}


def _small_decoder(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    files = {
        "tokenizer.json": byte_level_tokenizer(END, {"<|end|>": END}),
        "tokenizer_config.json": {"chat_template": TEMPLATE, "eos_token": "<|end|>"},
    }
    hidden = folder.parent / "zoo-of-small-ones"
    small_entry("smollm2-135m-instruct", SMALL, files, hidden, patch, facts={"end_of_text": END})
    (folder / "notes.txt").write_text("Bread rises overnight. Salt slows it down.\n", "utf-8")
    return {}


def _spectrogram(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """The README's `mel`, and a checkpoint of somebody's."""
    from nest.tasks import audio
    from nest.tasks.mel import log_mel

    _fine_tune(folder)
    speech = audio.resample(audio.load(folder / "talk.mp3"), 16000, 48000)
    (folder / "film.mp4").write_bytes(contained(speech, 48000, "mp4", "aac", picture=True))
    return {"mel": log_mel(audio.load(folder / "talk.mp3"))}


def _fine_tune(folder: Path) -> Path:
    """A small Whisper as its publisher would have saved it, and where adopting it keeps things."""
    small = nest.load("whisper-tiny", backend="reference", weights=None, **find("whisper-tiny").manifest.tiny)
    nest.save(small, folder / "my-fine-tune", format="hf")
    return folder / "my-fine-tune"


def _variant(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """The fine-tune, and one whose configuration says something else."""
    patch.setenv("NEST_CACHE", str(folder.parent / "nest-cache"))
    other = shutil.copytree(_fine_tune(folder), folder / "somebody-s-variant")
    facts = json.loads((other / "config.json").read_text("utf-8"))
    (other / "config.json").write_text(json.dumps({**facts, "foo": 3, "scale_embedding": True}), "utf-8")
    return {}


def _checkpoint(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """The fine-tune, and a checkpoint of a family that nobody knows."""
    from safetensors.numpy import save_file

    _fine_tune(folder)
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"embed.weight": (1000, 64)}
    for layer in ("layers.0", "layers.1"):
        for name, rows, columns in (("up", 128, 64), ("down", 64, 128)):
            shapes |= {f"{layer}.{name}.weight": (rows, columns), f"{layer}.{name}.bias": (rows,)}
        shapes |= {f"{layer}.norm.weight": (64,), f"{layer}.norm.bias": (64,)}
    shapes |= {"final_norm.weight": (64,), "final_norm.bias": (64,)}
    (folder / "checkpoint").mkdir()
    drawn = {f"transformer.{n}": rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    save_file(drawn, folder / "checkpoint" / "model.safetensors")
    (folder / "checkpoint" / "config.json").write_text('{"model_type": "plain-mlp"}', "utf-8")
    return {}


def _stranger(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """An entry that is not of the installed zoo."""
    assert shell.run("nest new ./somebody-s-entry", folder)[1] == 0
    return {}


def _lecture(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """A film that says the four recordings and the first again, a second and a half of silence between: 44.44 s."""
    from nest.tasks import audio

    names = ("jfk", "librivox_0870", "librivox_0920", "librivox_0930", "jfk")
    heard = [audio.load(ROOT / "assets" / "audio" / f"{name}.wav") for name in names]
    parts = [part for samples in heard for part in (samples, np.zeros(24000, np.float32))]
    sound = audio.resample(np.concatenate(parts[:-1]), 16000, 48000)
    (folder / "film.mp4").write_bytes(contained(sound, 48000, "mp4", "aac", picture=True))
    return {}


def _an_entry(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """A copy of an entry of the zoo, which may be written to."""
    shutil.copytree(zoo_directory() / "all-MiniLM-L6-v2", folder / "all-MiniLM-L6-v2")
    return {}


def _checkout(folder: Path, patch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """A copy of what is changed when something is added to nest itself; it comes before the checkout's own."""
    unused = shutil.ignore_patterns("__pycache__")
    for part in ("nest", "tests/backends"):
        shutil.copytree(ROOT / part, folder / part, ignore=unused)
    for file in ("pyproject.toml", "tests/__init__.py", "tests/conftest.py"):
        shutil.copy(ROOT / file, folder / file)
    (folder / "zoo").symlink_to(ROOT / "zoo")
    patch.setenv("NEST_CACHE", str(folder.parent / "nest-cache"))
    return {}


Before = Callable[[Path, pytest.MonkeyPatch], Mapping[str, Any]]
BEFORE: dict[str, Before] = {
    "README.md": _spectrogram,
    "docs/entry-schema.md": _an_entry,
    "docs/guides/add-a-backend.md": _checkout,
    "docs/guides/add-an-entry.md": _checkpoint,
    "docs/guides/add-an-op.md": _checkout,
    "docs/guides/adopt-a-checkpoint.md": _variant,
    "docs/guides/generate-text.md": _small_decoder,
    "docs/guides/long-audio.md": _lecture,
    "docs/security.md": _stranger,
}
LIGHT = frozenset(
    f"docs/guides/{name}.md"
    for name in ("add-a-backend", "add-an-entry", "add-an-op", "adopt-a-checkpoint", "generate-text")
)
"""Pages that run on small random weights; all others take published ones."""


def _readme(reader: Reader) -> None:
    names = reader.names
    assert tuple(names["states"].shape) == (1, 1500, 384)
    assert tuple(names["logits"].shape) == (1, 51864)
    assert tuple(names["vectors"].shape) == (2, 384)
    assert "class Mlp(nn.Module):" in reader.said
    assert tuple(names["model"](np.ones((3, 8), np.float32)).shape) == (3, 8)


def _entry_is_right(reader: Reader) -> None:
    assert reader.names["logits"].shape == (1, 3, 1000)


def _cached_entries(reader: Reader) -> None:
    heard = nest.pipeline(reader.names["model"])(reader.folder / "assets" / "audio" / "jfk.wav")
    assert reader.names["text_ids"].tolist()[:5] == list(heard.tokens)[:5]


def _long(reader: Reader) -> None:
    spoken = reader.names["transcript"].text
    for words in ("Mr. John Dashwood", "more amiable woman", "made amiable himself"):
        assert words in spoken
    assert spoken.count("what you can do for your country") == 2
    times = [time for word in reader.names["words"] for time in (word.start, word.end)]
    assert times == sorted(times)
    assert 43 < times[-1] <= reader.names["transcript"].duration
    assert len(list((reader.folder / "texts").iterdir())) == 6


def _export(reader: Reader) -> None:
    assert (reader.folder / "out" / "hf" / "config.json").is_file()
    assert (reader.folder / "out" / "onnx" / "run.py").is_file()
    assert "class Model" in ast.unparse(ast.parse(reader.names["source"]))


def _generate(reader: Reader) -> None:
    assert reader.names["tale"].prompt_tokens > 0
    assert reader.names["made"].finish in ("stop", "length")


AFTER: dict[str, Callable[[Reader], None]] = {
    "README.md": _readme,
    "docs/guides/add-an-entry.md": _entry_is_right,
    "docs/guides/cached-entries.md": _cached_entries,
    "docs/guides/export-and-eject.md": _export,
    "docs/guides/generate-text.md": _generate,
    "docs/guides/long-audio.md": _long,
}

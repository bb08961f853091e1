"""Every entry of the zoo at a small size: what is smaller, and the files beside its weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from nest.registry import Entry, find

from ..tasks.encoders import WORDS, word_pieces
from ..zoo.small import byte_level_tokenizer, small_entry

__all__ = ["small_copy", "working_folder"]

ASSETS = Path(__file__).parents[2] / "assets"
END = 299

SPEECH = {"D": 24, "Heads": 3, "Inner": 40, "EncoderLayers": 1, "DecoderLayers": 1}
DECODER = {"D": 24, "Heads": 6, "KvHeads": 3, "HeadDim": 4, "Inner": 40, "Layers": 1, "Vocab": END + 1}
GPT2 = {"D": 24, "Heads": 3, "Inner": 40, "Layers": 1, "Vocab": END + 1}
ENCODER = {"D": 24, "Inner": 40, "Layers": 2}
VISION = {"D": 24, "Heads": 4, "Inner": 40, "Layers": 1}
TOWERS = {
    "VisionD": 24, "VisionHeads": 4, "VisionInner": 40, "VisionLayers": 1,
    "TextD": 20, "TextHeads": 2, "TextInner": 30, "TextLayers": 1,
}  # fmt: skip

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
CLASSES = {"config.json": {"id2label": {str(i): f"class {i}" for i in range(1000)}}}
SPECIAL = {
    "roberta-base": (50265, {"<s>": 0, "<pad>": 1, "</s>": 2, "<mask>": 50264}),
    "modernbert-base": (50368, {"[CLS]": 50281, "[SEP]": 50282, "[MASK]": 50284}),
    "clip-vit-base-patch32": (49406, {"<|startoftext|>": 49406, "<|endoftext|>": 49407}),
    "siglip-base-patch16-224": (32000, {}),
}
"""How many tokens a byte-level vocabulary has, and its control tokens; others have word pieces."""


def small_copy(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """Put the small copy of an entry in the zoo's place for the rest of a test, in a `working_folder`."""
    working_folder(folder, monkeypatch)
    generics, files, facts = _configuration(find(name))
    return small_entry(name, generics, files, folder, monkeypatch, facts=facts)


def working_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in `folder/work`, which has a recording `talk.mp3` and a picture `photo.jpg`."""
    work = folder / "work"
    work.mkdir()
    shutil.copy(ASSETS / "audio" / "jfk.wav", work / "talk.mp3")  # the content decides, not the name
    shutil.copy(ASSETS / "images" / "coffee.jpg", work / "photo.jpg")
    monkeypatch.chdir(work)


def _configuration(entry: Entry) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Generics, files, and other facts of the manifest."""
    manifest = entry.manifest
    kind = manifest.task.kind if manifest.task else ""
    if kind == "transcription":
        assert manifest.generation is not None
        heads = {"alignment_heads": [[0, 1]]} if manifest.generation.alignment_heads else {}
        return SPEECH, {"tokenizer.json": byte_level_tokenizer(50257)}, heads
    if kind == "text-generation":
        return _decoder(entry)
    if kind in ("sentence-embedding", "fill-mask"):
        return ENCODER, {"tokenizer.json": _vocabulary(entry.name)}, {}
    if kind == "image-text-matching":
        joint = {"Joint": 14} if "Joint" in entry.generics else {}
        return {**TOWERS, **joint}, {"tokenizer.json": _vocabulary(entry.name)}, {}
    files = CLASSES if kind == "image-classification" else {}
    if "Stem" in entry.generics:
        return {key: manifest.tiny[key] for key in ("Stem", "Features", "widths", "depths")}, files, {}
    return VISION, files, {}


def _decoder(entry: Entry) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    manifest = entry.manifest
    assert manifest.generation is not None
    files: dict[str, Any] = {"tokenizer.json": byte_level_tokenizer(END, {"<|end|>": END})}
    if manifest.chat is not None:
        files["tokenizer_config.json"] = {"chat_template": TEMPLATE, "eos_token": "<|end|>"}
    ends = {"end_of_text": END, **({"stop": []} if manifest.generation.stop else {})}
    return DECODER if "KvHeads" in entry.generics else GPT2, files, ends


def _vocabulary(name: str) -> dict[str, Any]:
    return byte_level_tokenizer(*SPECIAL[name]) if name in SPECIAL else word_pieces(WORDS)

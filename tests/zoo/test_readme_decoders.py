"""The snippets of the decoders' READMEs: SmolLM2 135M's on real weights, the others' on small random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nest.registry import find

from .small import byte_level_tokenizer, python_of, run, small_entry

END = 299
SMALL = {"D": 24, "Heads": 6, "KvHeads": 3, "HeadDim": 4, "Inner": 40, "Layers": 1, "Vocab": END + 1}
GPT2 = {"D": 24, "Heads": 3, "Inner": 40, "Layers": 1, "Vocab": END + 1}
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
NAMES = [
    "smollm2-360m-instruct", "smollm2-1.7b-instruct", "tinyllama-1.1b-chat", "mistral-7b-instruct-v0.3",
    "llama-3.1-8b-instruct", "qwen2.5-0.5b-instruct", "qwen3-0.6b", "qwen3-4b", "qwen3-8b", "phi-3-mini-4k-instruct",
    "gpt2",
]  # fmt: skip


@pytest.mark.weights
def test_the_snippets_of_smollm2_135m(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(python_of("smollm2-135m-instruct"))
    assert capsys.readouterr().out == "The capital of France is Paris.\n" * 2
    assert names["logits"].shape == (1, 49152)


@pytest.mark.parametrize("name", NAMES)
def test_the_snippets_on_small_random_weights(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = python_of(name)
    generation = find(name).manifest.generation
    assert generation is not None
    files: dict[str, Any] = {"tokenizer.json": byte_level_tokenizer(END, {"<|end|>": END})}
    if name != "gpt2":
        files["tokenizer_config.json"] = {"chat_template": TEMPLATE, "eos_token": "<|end|>"}
    ends = {"end_of_text": END, **({"stop": []} if generation.stop else {})}
    small_entry(name, GPT2 if name == "gpt2" else SMALL, files, tmp_path, monkeypatch, facts=ends)
    names = run(sources)
    assert capsys.readouterr().out.strip()
    assert names["write"].model.entry.name == name

"""The whole job of an adopted checkpoint: its tables are those that its repository's files give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import AdoptionError

from ..tasks.encoders import WORDS, word_pieces
from ..zoo.small import byte_level_tokenizer
from .library import CASES

Files = dict[str, Any]


def adopted(kind: str, folder: Path, files: Files, **changed: Any) -> Any:
    """A small checkpoint with other files beside it, adopted."""
    CASES[kind].save(folder, **changed)
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return nest.adopt(folder, backend="reference", progress=False)


def test_a_decoder_generates_and_chats(tmp_path: Path) -> None:
    files: Files = {
        "tokenizer.json": byte_level_tokenizer(290, {"<end>": 290, "<stop>": 291}),
        "generation_config.json": {"eos_token_id": [290, 291]},
        "chat_template.jinja": "{% for m in messages %}{{ m.content }}{% endfor %}",
    }
    model = adopted("qwen2", tmp_path / "tuned", files, vocab_size=300)
    manifest = model.entry.manifest
    assert manifest.generation is not None
    assert (manifest.generation.end_of_text, manifest.generation.stop) == (290, [291])
    assert manifest.chat is not None
    generate = nest.pipeline(model)
    assert isinstance(generate("ab", max_tokens=3).text, str)
    with pytest.raises(
        AdoptionError, match=r"'vocab_size' of config.json is 83, and its other files have the token 290"
    ):
        adopted("qwen2", tmp_path / "other", files)


def test_a_speech_model_transcribes(tmp_path: Path) -> None:
    names = ["endoftext", "startoftranscript", "en", "de", "translate", "transcribe", "startofprev", "nospeech",
             "notimestamps", "0.00"]  # fmt: skip
    special = {f"<|{name}|>": 300 + position for position, name in enumerate(names)}
    files: Files = {
        "tokenizer.json": byte_level_tokenizer(300, special),
        "generation_config.json": {
            "language": "de",
            "suppress_tokens": [5, 6],
            "alignment_heads": [[1, 0], [2, 3]],
        },
        "preprocessor_config.json": {"feature_size": 8, "chunk_length": 0.2},
    }
    model = adopted("whisper", tmp_path / "tuned", files, vocab_size=330)
    generation = model.entry.manifest.generation
    assert (generation.prompt, generation.suppress) == ([301, 303, 305, 308], [5, 6])
    assert generation.alignment_heads == [[1, 0], [2, 3]]
    transcript = nest.pipeline(model)(np.zeros(8000, np.float32))
    assert isinstance(transcript.text, str)
    files["preprocessor_config.json"]["feature_size"] = 9
    with pytest.raises(
        AdoptionError, match=r"'feature_size' of preprocessor_config.json is 9, and 'num_mel_bins'"
    ):
        adopted("whisper", tmp_path / "other", files, vocab_size=330)


def test_words_are_filled_in_and_sentences_embedded(tmp_path: Path) -> None:
    tokenizer = word_pieces(WORDS)
    fill = nest.pipeline(adopted("bert-words", tmp_path / "words", {"tokenizer.json": tokenizer}))
    assert len(fill("i [MASK] .", top=2).masks[0]) == 2
    modules = [{"type": "sentence_transformers.models." + kind, "path": path}
               for kind, path in (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
               ]  # fmt: skip
    files: Files = {
        "tokenizer.json": tokenizer,
        "modules.json": modules,
        "1_Pooling/config.json": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
        "sentence_bert_config.json": {"max_seq_length": 7, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": "i ", "document": ""}},
    }
    model = adopted("bert", tmp_path / "sentences", files)
    assert model.entry.manifest.tokenizer.max_tokens == 7
    headed = adopted("bert-words", tmp_path / "headed", files)
    assert (headed.entry.manifest.source.root, headed.entry.manifest.source.entry) == (
        "SentenceEncoder",
        "embed",
    )
    assert model.entry.manifest.embedding.prompts == {"query": "i "}
    vectors = nest.pipeline(model)(["i", "i . i"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    files["config_sentence_transformers.json"]["default_prompt_name"] = "query"
    with pytest.raises(AdoptionError, match="'default_prompt_name' is \"query\""):
        adopted("bert", tmp_path / "prompted", files)


def test_pictures_are_classified(tmp_path: Path) -> None:
    files: Files = {
        "preprocessor_config.json": {
            "do_resize": True, "size": {"height": 20, "width": 20}, "resample": 3, "do_rescale": True,
            "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.4, 0.5, 0.6],
            "image_std": [0.5, 0.5, 0.5],
        },
    }  # fmt: skip
    model = adopted("vit", tmp_path / "tuned", files, id2label={0: "cat", 1: "dog", 2: "fork"})
    table = model.entry.manifest.preprocess
    assert (table.resize, table.resample, table.mean) == ([20, 20], "bicubic", [0.4, 0.5, 0.6])
    image = np.zeros((31, 42, 3), np.uint8)
    found = nest.pipeline(model)(image)
    assert {one.label for one in found} == {"cat", "dog", "fork"}


def test_a_model_whose_files_say_too_little_has_no_pipeline(tmp_path: Path) -> None:
    model = adopted("llama", tmp_path / "tuned", {})
    with pytest.raises(nest.errors.ManifestError, match="it has no \\[task\\] table"):
        nest.pipeline(model)

"""Checkpoints that no entry lists: adopted and equal to the reference library, or refused with the key named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nest
from nest.errors import AdoptionError, BindingError

from .library import CASES, change_config, difference

CLOSE = 2e-5


GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "a Llama with a head of its own": ("llama", {}),
    "a Llama tied, of wide heads and Llama 3.1's positions": (
        "llama",
        {
            "tie_word_embeddings": True,
            "head_dim": 10,
            "rms_norm_eps": 1e-3,
            "rope_parameters": {
                "rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
            },
        },
    ),
    "a Mistral with a window": ("mistral", {"rms_norm_eps": 1e-2}),
    "a Qwen 2 with a window in every layer": (
        "qwen2", {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0},
    ),
    "a Qwen 3 of heads of their own size": ("qwen3", {"tie_word_embeddings": True}),
    "a bare BERT": ("bert", {"layer_norm_eps": 1e-3}),
    "a BERT that fills in words": ("bert-words", {}),
    "a RoBERTa with another padding": ("roberta", {"pad_token_id": 3}),
    "a ModernBERT of another rhythm": ("modernbert", {"layer_types": [
        "full_attention", "sliding_attention", "full_attention", "sliding_attention"]}),
    "a ViT": ("vit", {"hidden_act": "quick_gelu", "num_labels": 5}),
    "a Whisper": ("whisper", {}),
}  # fmt: skip


@pytest.mark.parametrize("what", GOOD)
def test_a_fine_tune_is_adopted_and_computes_what_the_reference_library_does(
    what: str, tmp_path: Path
) -> None:
    case, changed = CASES[GOOD[what][0]], GOOD[what][1]
    model = case.save(tmp_path / "tuned", **changed)
    assert difference(case, model, tmp_path / "tuned") < CLOSE


BAD: list[tuple[str, dict[str, Any], tuple[str, ...], str]] = [
    ("llama", {"foo": 3}, (), "'foo' = 3 is no key of this family, so it may change what is computed."),
    (
        "llama",
        {"hidden_act": "relu"},
        (),
        '\'hidden_act\' is "relu", and the definition computes with "silu" or',
    ),
    ("llama", {"mlp_bias": True}, (), "'mlp_bias' is true, and the definition computes with false"),
    (
        "llama",
        {"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 10000.0}},
        (),
        "'rope_parameters' is of the type \"yarn\", and the definition has 'default' and 'llama3'",
    ),
    ("llama", {"architectures": ["LlamaForSequenceClassification"]}, (), '"LlamaForSequenceClassification"'),
    ("llama", {"quantization_config": {"bits": 4}}, (), "'quantization_config' is {\"bits\": 4}, and"),
    ("llama", {"model_type": "lama"}, (), "'model_type' is \"lama\"; the families that nest adopts are"),
    ("llama", {"head_dim": "ten"}, (), "'head_dim' is \"ten\", and a whole number of at least 1 is expected"),
    ("llama", {"num_hidden_layers": 10**9}, (), "Layers = 1000000000, and its files have 21 tensors"),
    ("llama", {"rms_norm_eps": 10**400}, (), "and a number is expected"),
    (
        "llama",
        {"rope_parameters": {"rope_theta": float("inf")}},
        (),
        "'rope_parameters.rope_theta' is Infinity, and a positive number is expected",
    ),
    ("llama", {"head_dim": 7}, (), "the definition of 'llama' has no such sizes"),
    ("bert", {"is_decoder": True}, (), "'is_decoder' is true, and the definition computes with false"),
    ("whisper", {"decoder_ffn_dim": 48}, (), "'decoder_ffn_dim' is 48, and 'encoder_ffn_dim' is 40"),
    ("whisper", {"hidden_size": 32}, (), "'hidden_size' is 32, and 'd_model', which means the same, is 24"),
    ("whisper", {}, ("d_model",), "encoder_positions"),  # absent: 384, which the tensors do not have
]


@pytest.mark.parametrize(("kind", "values", "drop", "said"), BAD)
def test_what_the_definition_does_not_compute_is_refused_by_name(
    kind: str, values: dict[str, Any], drop: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    CASES[kind].save(tmp_path / "tuned")
    change_config(tmp_path / "tuned", drop=drop, **values)
    with pytest.raises((AdoptionError, BindingError)) as refused:
        nest.adopt(tmp_path / "tuned", backend="reference", progress=False)
    assert said in str(refused.value)


def test_every_fault_of_a_configuration_is_said_at_once(tmp_path: Path) -> None:
    CASES["llama"].save(tmp_path / "tuned")
    change_config(tmp_path / "tuned", foo=1, mlp_bias=True, hiden_size=3)
    with pytest.raises(AdoptionError) as refused:
        nest.adopt(tmp_path / "tuned")
    message = str(refused.value)
    assert message.count("\n") == 3
    assert (
        "'hiden_size' = 3 is no key of this family, so it may change what is computed. Did you mean"
        in message
    )


def test_an_absent_key_means_what_it_means_to_the_reference_library(tmp_path: Path) -> None:
    case = CASES["llama"]
    model = case.save(tmp_path / "tuned", rms_norm_eps=1e-6, tie_word_embeddings=False)
    config = change_config(
        tmp_path / "tuned",
        drop=("rms_norm_eps", "tie_word_embeddings", "head_dim", "rope_parameters", "hidden_act"),
    )
    assert "rms_norm_eps" not in config
    assert difference(case, model, tmp_path / "tuned") < CLOSE


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "has no config.json, which says what model it is."),
        (
            {"adapter_config.json": "{}"},
            "It is an adapter, which changes another model: merge the two first.",
        ),
        ({"config.json": "{"}, "config.json is not valid JSON"),
        ({"config.json": "[]"}, "config.json holds no object."),
        ({"config.json": "{}"}, "it has no 'model_type'"),
    ],
)
def test_a_folder_that_is_no_checkpoint_is_said(files: dict[str, str], said: str, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    with pytest.raises(AdoptionError) as refused:
        nest.adopt(folder)
    assert said in str(refused.value)


def test_weights_that_nest_does_not_read_are_named(tmp_path: Path) -> None:
    CASES["llama"].save(tmp_path / "tuned")
    (tmp_path / "tuned" / "model.safetensors").rename(tmp_path / "tuned" / "pytorch_model.bin")
    with pytest.raises(AdoptionError, match=r"It has pytorch_model\.bin, which nest does not read"):
        nest.adopt(tmp_path / "tuned")


def test_shards_are_read_through_their_index_and_an_absent_one_is_named(tmp_path: Path) -> None:
    case = CASES["llama"]
    model = case.save(tmp_path / "tuned")
    model.save_pretrained(tmp_path / "cut", max_shard_size="20KB")
    shards = sorted(path.name for path in (tmp_path / "cut").glob("*.safetensors"))
    assert len(shards) > 1
    assert difference(case, model, tmp_path / "cut") < CLOSE
    (tmp_path / "cut" / shards[0]).unlink()
    with pytest.raises(AdoptionError, match=f"names {shards[0]}, which is not there"):
        nest.adopt(tmp_path / "cut")


def test_python_of_a_repository_is_not_run_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CASES["llama"].save(tmp_path / "tuned")
    (tmp_path / "tuned" / "modeling.py").write_text("raise SystemExit", "utf-8")
    change_config(tmp_path / "tuned", auto_map={"AutoModelForCausalLM": "modeling.Model"})
    nest.adopt(tmp_path / "tuned", backend="reference", progress=True)
    assert "Its config.json names Python of its own (auto_map). None of it is run" in capsys.readouterr().err


def test_the_entry_is_kept_and_pins_what_was_seen(tmp_path: Path) -> None:
    CASES["llama"].save(tmp_path / "tuned")
    entry = nest.adopt(tmp_path / "tuned", backend="reference", progress=False).entry
    assert entry.directory.parent == tmp_path / "nest-cache" / "adopted"
    assert (
        nest.adopt(tmp_path / "tuned", backend="reference", progress=False).entry.directory == entry.directory
    )
    weights = tmp_path / "tuned" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(nest.errors.DigestError, match=r"is not the pinned 'model.safetensors'"):
        nest.load(entry, backend="reference")


def test_a_bert_with_a_head_around_it_has_other_names(tmp_path: Path) -> None:
    """Tensors `bert.*`, and a pooler that nothing needs."""
    case = CASES["bert"]
    model = case.save(tmp_path / "tuned")
    tensors = {f"bert.{name}": value for name, value in model.state_dict().items()}
    from safetensors.torch import save_file

    save_file(tensors, tmp_path / "tuned" / "model.safetensors", {"format": "pt"})
    assert difference(case, model, tmp_path / "tuned") < CLOSE


def test_a_sentence_encoder_pools_as_its_files_say(tmp_path: Path) -> None:
    case = CASES["bert"]
    case.save(tmp_path / "tuned")
    write = {
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 24, "pooling_mode_cls_token": True,
                                  "pooling_mode_mean_tokens": False},
    }  # fmt: skip
    (tmp_path / "tuned" / "1_Pooling").mkdir()
    for name, content in write.items():
        (tmp_path / "tuned" / name).write_text(json.dumps(content), "utf-8")
    entry = nest.adopt(tmp_path / "tuned", backend="reference", progress=False).entry
    assert (entry.manifest.source.root, entry.generics["pooling"], entry.generics["normalize"]) == (
        "SentenceEncoder", "cls", False,
    )  # fmt: skip
    (tmp_path / "tuned" / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_max_tokens": true}', "utf-8"
    )
    with pytest.raises(AdoptionError, match="'pooling_mode_max_tokens' is true"):
        nest.adopt(tmp_path / "tuned")

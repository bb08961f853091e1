"""Whatever a configuration says, the outcome is one of two: equal to the reference library, or refused by name.

Each example takes a small checkpoint of a family, sets some keys of its `config.json` to other values and leaves
others out, lets the reference library build a model of that and write its weights, and adopts the folder.
`NEST_TEST_ADOPTIONS` is the number of examples for each family: a few in CI, some hundreds before a release.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nest.adopting.family import families
from nest.errors import AdoptionError

from .library import CASES, difference, filled, torch, transformers

EXAMPLES = int(os.environ.get("NEST_TEST_ADOPTIONS", "12"))

SIZES = {
    "hidden_size", "d_model", "num_hidden_layers", "encoder_layers", "decoder_layers", "vocab_size", "image_size",
    "patch_size", "num_mel_bins", "n_embd", "n_layer", "max_source_positions", "intermediate_size", "encoder_ffn_dim",
    "decoder_ffn_dim",
}  # fmt: skip
"""Keys that are never left out: their defaults are the sizes of published models."""

ROPE = [
    {"rope_type": "default", "rope_theta": 300.0},
    {"type": "default"},
    {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0},
    {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "yarn", "factor": 2.0, "rope_theta": 10000.0, "original_max_position_embeddings": 8},
    {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0, "rope_theta": 90.0,
     "original_max_position_embeddings": 16},
    {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0},
    {"full_attention": {"rope_type": "default", "rope_theta": 40.0},
     "sliding_attention": {"rope_type": "default", "rope_theta": 90.0}},
    {"full_attention": {"rope_type": "default", "rope_theta": 40.0}},
]  # fmt: skip
KINDS = ["full_attention", "sliding_attention"]
POOLS: dict[str, list[Any]] = {
    "hidden_size": [36, 48], "d_model": [36], "num_hidden_layers": [1, 3], "encoder_layers": [1],
    "decoder_layers": [1, 2],
    "num_attention_heads": [2, 3, 6], "num_key_value_heads": [1, 2, 3, 4, None], "encoder_attention_heads": [2],
    "decoder_attention_heads": [3], "head_dim": [6, 7, 8, None], "vocab_size": [84, 90],
    "image_size": [20, 25, 22, [20, 10], [20, 20]],
    "patch_size": [5, 4, [5, 5], [5, 4]], "num_mel_bins": [9], "max_source_positions": [11],
    "max_target_positions": [24],
    "max_position_embeddings": [64, 32], "intermediate_size": [32], "encoder_ffn_dim": [32], "decoder_ffn_dim": [32],
    "type_vocab_size": [1, 4], "num_channels": [1, 4], "sliding_window": [2, 5, 4096, None],
    "max_window_layers": [0, 1, 2],
    "layer_types": [
        None, *([one, other] for one in KINDS for other in KINDS), [KINDS[0]] + [KINDS[1]] * 3, [KINDS[1]] * 4,
    ],
    "local_attention": [2, 5, 6], "global_attn_every_n_layers": [1, 2, 4], "pad_token_id": [0, 1, 3, None],
    "hidden_act": ["relu", "gelu_new", "silu", "swish", "quick_gelu", "gelu_pytorch_tanh", "gelu"],
    "hidden_activation": ["gelu", "silu"], "activation_function": ["relu", "gelu"],
    "rope_parameters": ROPE, "rope_scaling": ROPE, "rope_theta": [300.0, 90], "partial_rotary_factor": [0.5, 1.0],
    "global_rope_theta": [50.0], "local_rope_theta": [50.0], "rms_norm_eps": [0.1, 1e-3], "layer_norm_eps": [0.1, 1e-3],
    "n_embd": [32], "n_layer": [1], "n_head": [2, 3], "n_positions": [40], "n_inner": [20, None],
    "norm_eps": [0.1], "mlp_ratio": [1, 3], "num_labels": [3], "id2label": [{"0": "a", "1": "b", "2": "c"}],
    "layer_norm_epsilon": [0.1], "tie_word_embeddings": [True, False],
}  # fmt: skip
"""Other values of keys that need particular ones; those of the others follow from what the key holds by default."""

FOREIGN = {
    "foo": 3,
    "qk_layernorm": True,
    "embedding_size": 12,
    "attention_multiplier": 0.3,
    "rope_interleaved": True,
}


def other_values(key: str, default: Any) -> list[Any]:
    """Values that a key may be set to."""
    if key in POOLS:
        return POOLS[key]
    if isinstance(default, bool):
        return [True, False]
    if isinstance(default, int | float):
        return [default + 1, default * 2]
    if isinstance(default, str):
        return ["relu", "mean", "tanh"]
    return [None, 3, True, "relu"]


def keys_of(kind: str) -> dict[str, Any]:
    """Every key of the library's configuration class and of the family's table, with its default."""
    model_class = getattr(transformers, CASES[kind].architecture)
    known = {one.name: one.default for one in fields(model_class.config_class)}
    table = families()[model_class.config_class.model_type].keys
    extra = {name: rule.default for name, rule in table.items() if name in POOLS or name not in known}
    reserved = ("architectures", "model_type", "transformers_version", "dtype", "torch_dtype", "attn_implementation",
                "_attn_implementation", "_attn_implementation_autoset", "experts_implementation", "auto_map",
                "per_layer_config", "quantization_config", "torchscript", "return_dict",
                "tie_encoder_decoder")  # fmt: skip
    return {name: default for name, default in {**extra, **known}.items() if name not in reserved}


@st.composite
def changes(draw: st.DrawFn, kind: str) -> tuple[dict[str, Any], list[str]]:
    """Keys set to other values, and keys left out."""
    keys = keys_of(kind)
    chosen = draw(st.lists(st.sampled_from(sorted(keys)), min_size=1, max_size=3, unique=True))
    values = {key: draw(st.sampled_from(other_values(key, keys[key]))) for key in chosen}
    if draw(st.integers(0, 9)) == 0:
        name = draw(st.sampled_from(sorted(FOREIGN)))
        values[name] = FOREIGN[name]
    droppable = sorted(set(CASES[kind].config) | {"rope_parameters", "hidden_act", "head_dim", "layer_types"})
    dropped = draw(
        st.lists(st.sampled_from([key for key in droppable if key not in SIZES]), max_size=2, unique=True)
    )
    return values, [key for key in dropped if key not in values]


def library_model(kind: str, folder: Path, values: dict[str, Any], dropped: list[str]) -> Any:
    """The library's model of a changed configuration, whose weights are written; None where the library refuses it."""
    case = CASES[kind]
    case.save(folder)
    config = {**json.loads((folder / "config.json").read_text("utf-8")), **values}
    text = json.dumps({key: value for key, value in config.items() if key not in dropped})
    (folder / "config.json").write_text(text, "utf-8")
    try:
        read = transformers.AutoConfig.from_pretrained(folder)
        model = filled(getattr(transformers, case.architecture)(read), 1)
        with torch.no_grad():
            case.theirs(model)
        model.save_pretrained(folder)
    except Exception:  # whatever it says: it computes nothing of this, so there is nothing to be equal to
        return None
    finally:
        (folder / "config.json").write_text(text, "utf-8")
    return model


def outcome(kind: str, place: Path, values: dict[str, Any], dropped: list[str]) -> str | None:
    """`adopted` or `refused`, each held to what it promises; None where the library itself refuses."""
    folder = place / "varied"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(place / "nest-cache", ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's, about the values
        model = library_model(kind, folder, values, dropped)
    if model is None:
        return None
    refusal, far = None, 0.0
    try:
        far = difference(CASES[kind], model, folder)
    except AdoptionError as error:
        refusal = str(error)
    assert far < 2e-5, (values, dropped)
    if refusal is None:
        return "adopted"
    assert any(f"'{key}" in refusal or f"{key} =" in refusal for key in (*values, *dropped)), refusal
    return "refused"


@pytest.mark.parametrize("kind", CASES)
def test_adopted_and_equal_or_refused_by_name(kind: str, tmp_path: Path) -> None:
    count = {"adopted": 0, "refused": 0}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize="NEST_TEST_ADOPTIONS" not in os.environ,
        database=None,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )
    @given(changes(kind))
    def one_of_two(change: tuple[dict[str, Any], list[str]]) -> None:
        found = outcome(kind, tmp_path, *change)
        assume(found is not None)
        count[str(found)] += 1

    one_of_two()
    print(kind, count)
    assert count["adopted"], "no example was adopted, so nothing was compared"


@pytest.mark.skipif("NEST_TEST_ADOPTIONS" not in os.environ, reason="every key of every family takes minutes")
@pytest.mark.parametrize("kind", CASES)
def test_every_key_by_itself(kind: str, tmp_path: Path) -> None:
    count = {"adopted": 0, "refused": 0, "None": 0}
    for key, default in keys_of(kind).items():
        for value in other_values(key, default):
            count[str(outcome(kind, tmp_path, {key: value}, []))] += 1
    print(kind, count)
    assert count["adopted"]
    assert count["refused"]

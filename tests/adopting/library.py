"""Small checkpoints that the reference library writes, and what it computes of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

transformers.logging.disable_progress_bar()

Array = np.ndarray[Any, Any]
TOKENS = np.arange(18).reshape(2, 9) * 7 % 79 + 4


@dataclass(frozen=True)
class Case:
    """One kind of checkpoint.

    Args:
        architecture: the reference library's class.
        config: of a small model, as keyword arguments of its configuration's class.
        theirs: the result by the library's model.
        ours: the same by the adopted model.
    """

    architecture: str
    config: Mapping[str, Any]
    theirs: Callable[[Any], Any]
    ours: Callable[[Any], Any]

    def save(self, folder: Path, *, seed: int = 0, **changed: Any) -> Any:
        """Write a checkpoint with random weights, and return the library's model.

        Args:
            folder: where. seed: of the weights.
            changed: other values of the configuration.
        """
        model_class = getattr(transformers, self.architecture)
        model = filled(model_class(model_class.config_class(**{**self.config, **changed})), seed)
        model.save_pretrained(folder)
        return model


def filled(model: Any, seed: int) -> Any:
    """The model with weights that make a mistake show: none is zero, and every bias and norm has its own."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(0.0, 0.2, generator=generator)
            if "norm" in name.lower() and name.endswith("weight"):
                parameter.add_(1.0)
    return model.eval()


def change_config(folder: Path, *, drop: tuple[str, ...] = (), **values: Any) -> dict[str, Any]:
    """Edit `config.json` as a person would; returns what it holds now."""
    file = folder / "config.json"
    config = {**json.loads(file.read_text("utf-8")), **values}
    config = {key: value for key, value in config.items() if key not in drop}
    file.write_text(json.dumps(config), "utf-8")
    return config


def difference(case: Case, model: Any, folder: Path, **options: Any) -> float:
    """max|adopted - reference| / max|reference|."""
    adopted = nest.adopt(folder, backend="reference", progress=False, **options)
    with torch.no_grad():
        wanted = case.theirs(model).numpy()
    came = np.asarray(case.ours(adopted))
    assert came.shape == wanted.shape
    return float(np.abs(came - wanted).max() / np.abs(wanted).max())


def _spectrogram(config: Mapping[str, Any]) -> Array:
    shape = (2, config["num_mel_bins"], 2 * config["max_source_positions"])
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def _logits(model: Any) -> Any:
    return model(torch.from_numpy(TOKENS)).logits


_LLAMA = {
    "vocab_size": 83, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_BERT = {
    "vocab_size": 83, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 20, "type_vocab_size": 3,
}  # fmt: skip
_WHISPER = {
    "vocab_size": 83, "d_model": 24, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "encoder_layers": 2,
    "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_source_positions": 10,
    "max_target_positions": 20, "num_mel_bins": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 3,
}  # fmt: skip


def _whisper_theirs(model: Any) -> Any:
    mel = torch.from_numpy(_spectrogram(model.config.to_dict()))
    return model(input_features=mel, decoder_input_ids=torch.from_numpy(TOKENS)).logits


def _whisper_ours(model: Any) -> Any:
    sizes = model.entry.generics
    mel = _spectrogram({"num_mel_bins": sizes["Mels"], "max_source_positions": sizes["Frames"] // 2})
    return model.decode(TOKENS, model.encode(mel))


_ROBERTA = {**_BERT, "pad_token_id": 1, "max_position_embeddings": 24}
_GPT2 = {
    "vocab_size": 83, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 32, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_MODERNBERT = {
    "vocab_size": 83, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 4, "num_attention_heads": 3,
    "max_position_embeddings": 20, "local_attention": 4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "cls_token_id": 1, "sep_token_id": 2,
}  # fmt: skip
_DINO = {
    "hidden_size": 24, "mlp_ratio": 2, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 20,
    "patch_size": 5, "num_channels": 3,
}  # fmt: skip
_VIT = {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 20,
    "patch_size": 5, "num_channels": 3, "id2label": {n: f"class {n}" for n in range(7)},
}  # fmt: skip


def _decoder(architecture: str, **more: Any) -> Case:
    return Case(architecture, {**_LLAMA, **more}, _logits, lambda model: model.forward(TOKENS))


def _pixels(channels: int, height: int, width: int) -> Array:
    return np.random.default_rng(2).normal(size=(2, channels, height, width)).astype(np.float32)


def _pictures(model: Any) -> Array:
    sizes = model.entry.generics
    return _pixels(sizes["Channels"], sizes["Height"], sizes["Width"])


def _dino_theirs(model: Any) -> Any:
    side = model.config.image_size
    height, width = side if isinstance(side, list | tuple) else (side, side)
    return model(torch.from_numpy(_pixels(model.config.num_channels, height, width))).last_hidden_state


def _vit_theirs(model: Any) -> Any:
    side = model.config.image_size
    height, width = side if isinstance(side, list | tuple) else (side, side)
    return model(torch.from_numpy(_pixels(model.config.num_channels, height, width))).logits


def _states(model: Any) -> Any:
    return model(torch.from_numpy(TOKENS)).last_hidden_state


CASES = {
    "llama": _decoder("LlamaForCausalLM"),
    "mistral": _decoder("MistralForCausalLM", sliding_window=4),
    "qwen2": _decoder("Qwen2ForCausalLM"),
    "qwen3": _decoder("Qwen3ForCausalLM", head_dim=10),
    "phi3": _decoder("Phi3ForCausalLM"),
    "gpt2": Case("GPT2LMHeadModel", _GPT2, _logits, lambda model: model.forward(TOKENS)),
    "bert": Case("BertModel", _BERT, _states, lambda model: model.encode(TOKENS)),
    "bert-words": Case("BertForMaskedLM", _BERT, _logits, lambda model: model.mask_logits(TOKENS)),
    "roberta": Case("RobertaForMaskedLM", _ROBERTA, _logits, lambda model: model.mask_logits(TOKENS)),
    "modernbert": Case(
        "ModernBertForMaskedLM", _MODERNBERT, _logits, lambda model: model.mask_logits(TOKENS)
    ),
    "vit": Case(
        "ViTForImageClassification", _VIT, _vit_theirs, lambda model: model.forward(_pictures(model))
    ),
    "dinov2": Case("Dinov2Model", _DINO, _dino_theirs, lambda model: model.forward(_pictures(model))),
    "whisper": Case("WhisperForConditionalGeneration", _WHISPER, _whisper_theirs, _whisper_ours),
}
"""By kind: a `model_type`, and what is built on it where there are several."""

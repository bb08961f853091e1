"""transformers' OLMo 2 behind nest's entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._renaming import filled, renamed
from nest.verify.library._shared import sizes_of
from nest.verify.library.decoder import DecoderLibrary

__all__ = ["build", "config_of"]

_NAMES = {
    "attention_norm": "post_attention_layernorm",
    "mlp_norm": "post_feedforward_layernorm",
    "attention": "self_attn",
}
_OUTER = {"token_embedding": "model.embed_tokens.weight", "head": "lm_head.weight"}


def build(entry: Entry, program: Program, params: Mapping[str, np.ndarray[Any, Any]]) -> DecoderLibrary:
    """The library's model over these parameters, in f32."""
    from transformers import Olmo2ForCausalLM

    config = config_of(sizes_of(program), program.root.statics)
    return DecoderLibrary(filled(Olmo2ForCausalLM(config), params, _library_name))


def config_of(sizes: Mapping[str, int], statics: Mapping[str, Any]) -> Any:
    """The library's configuration of a definition's sizes."""
    from transformers import Olmo2Config

    last = sizes["Vocab"] - 1  # the library's own ids would lie outside a small vocabulary
    make: Any = Olmo2Config
    return make(
        vocab_size=sizes["Vocab"],
        hidden_size=sizes["D"],
        intermediate_size=sizes["Inner"],
        num_hidden_layers=sizes["Layers"],
        num_attention_heads=sizes["Heads"],
        num_key_value_heads=sizes["KvHeads"],
        head_dim=sizes["HeadDim"],
        max_position_embeddings=sizes["MaxTokens"],
        rms_norm_eps=statics["eps"],
        rope_parameters={"rope_type": "default", "rope_theta": statics["rope_theta"]},
        bos_token_id=last,
        eos_token_id=last,
        pad_token_id=last,
    )


def _library_name(path: str) -> str:
    return _OUTER.get(path) or f"model.{renamed(path, _NAMES)}"

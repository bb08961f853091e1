"""transformers' Gemma 2 behind nest's entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._renaming import renamed
from nest.verify.library._shared import load_tensors, sizes_of
from nest.verify.library.decoder import DecoderLibrary

__all__ = ["build"]

_NAMES = {
    "attention_norm": "input_layernorm",
    "attention_out_norm": "post_attention_layernorm",
    "mlp_norm": "pre_feedforward_layernorm",
    "mlp_out_norm": "post_feedforward_layernorm",
    "attention": "self_attn",
    "token_embedding": "embed_tokens.weight",
}


def build(entry: Entry, program: Program, params: Mapping[str, np.ndarray[Any, Any]]) -> DecoderLibrary:
    """The library's model over these parameters, in f32."""
    from transformers import Gemma2Config, Gemma2ForCausalLM

    sizes, facts = sizes_of(program), program.root.statics
    last = sizes["Vocab"] - 1
    make: Any = Gemma2Config
    config = make(
        vocab_size=sizes["Vocab"],
        hidden_size=sizes["D"],
        intermediate_size=sizes["Inner"],
        num_hidden_layers=sizes["Layers"],
        num_attention_heads=sizes["Heads"],
        num_key_value_heads=sizes["KvHeads"],
        head_dim=sizes["HeadDim"],
        max_position_embeddings=sizes["MaxTokens"],
        rms_norm_eps=facts["eps"],
        query_pre_attn_scalar=int(facts["scalar"]),
        sliding_window=facts["window"],
        attn_logit_softcapping=facts["scores_cap"],
        final_logit_softcapping=facts["logits_cap"],
        rope_parameters={"rope_type": "default", "rope_theta": facts["rope_theta"]},
        bos_token_id=last,
        eos_token_id=last,
        pad_token_id=last,
        attn_implementation="eager",  # the others leave the cap of scores out
    )
    tensors = {f"model.{renamed(path, _NAMES)}": array for path, array in params.items()}
    return DecoderLibrary(load_tensors(lambda: Gemma2ForCausalLM(config), tensors, absent=["lm_head.weight"]))

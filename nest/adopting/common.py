"""Keys that the reference library writes into the `config.json` of any family."""

from __future__ import annotations

from collections.abc import Mapping

from nest.adopting.keys import IDLE, Key, Only

__all__ = ["COMMON", "TEXT", "idle"]


def idle(*names: str) -> dict[str, Key]:
    """These keys, with any value."""
    return dict.fromkeys(names, IDLE)


_ABOUT = (
    "_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "model_type", "architectures", "auto_map",
    "dtype", "torch_dtype", "unsloth_version", "unsloth_fixed", "finetuning_task", "task_specific_params",
    "tokenizer_class", "prefix",
)  # fmt: skip
_RUNNING = (
    "output_attentions", "output_hidden_states", "output_scores", "return_dict", "return_dict_in_generate",
    "torchscript", "attn_implementation", "_attn_implementation", "_attn_implementation_autoset",
    "experts_implementation", "gradient_checkpointing", "chunk_size_feed_forward", "use_cache", "tf_legacy_loss",
    "use_bfloat16",
)  # fmt: skip
_LABELS = ("id2label", "label2id", "num_labels", "problem_type")
_DECODING = (
    "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty",
    "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "remove_invalid_values", "max_new_tokens",
    "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty", "suppress_tokens",
    "begin_suppress_tokens", "forced_decoder_ids",
)  # fmt: skip

COMMON: Mapping[str, Key] = {
    # Who wrote the file, how the library ran, labels of classes, defaults of decoding: none is part of the network.
    **idle(*_ABOUT, *_RUNNING, *_LABELS, *_DECODING),
    "is_encoder_decoder": Only(False),
    "is_decoder": Only(False),
    "add_cross_attention": Only(False),
    "cross_attention_hidden_size": Only(None),
    "tie_encoder_decoder": Only(False),
    "tie_last_hidden_states": Only(None),
    "pruned_heads": Only({}),
    "per_layer_config": Only(None),
    "quantization_config": Only(None),
}
"""Keys of every family."""

TEXT: Mapping[str, Key] = idle(
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id"
)
"""Ids of special tokens, which the network does not know of; tasks read them."""

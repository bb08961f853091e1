"""A reference library's own greedy generation."""

from __future__ import annotations

from typing import Any

from nest.verify.tokens import Decoding

__all__ = ["greedy"]


def greedy(model: Any, decoding: Decoding, *, prompt: str, **given: Any) -> list[int]:
    """The tokens that `generate` adds to the one prompt, before the end.

    Args:
        prompt: the name of the argument that takes the prompt.
        **given: other arguments of `generate`, such as an encoder's outputs.
    """
    import torch
    from transformers import GenerationConfig, GenerationMixin, LogitsProcessorList

    (ids,) = decoding.prompts
    first = torch.from_numpy(decoding.bias + decoding.first_bias)
    always = torch.from_numpy(decoding.bias)

    def biased(seen: Any, scores: Any) -> Any:
        return scores + (first if seen.shape[1] == len(ids) else always)

    end = decoding.end if decoding.end >= 0 else None
    make: Any = GenerationConfig
    config = make(
        max_new_tokens=decoding.count, do_sample=False, eos_token_id=end, pad_token_id=end or 0, bos_token_id=0,
        decoder_start_token_id=ids[0],
    )  # fmt: skip
    with torch.no_grad():
        made = GenerationMixin.generate(
            model,
            generation_config=config,
            logits_processor=LogitsProcessorList([biased]),
            **{prompt: torch.tensor([ids]), **given},
        )
    found: list[int] = made[0, len(ids) :].tolist()
    return found[: found.index(decoding.end)] if decoding.end in found else found

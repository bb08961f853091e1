"""transformers' BERT and RoBERTa behind nest's entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._shared import StatelessLibrary, load_parameters, sizes_of

__all__ = ["build"]

Array = np.ndarray[Any, Any]
_TIED = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "lm_head.decoder.weight",
         "lm_head.decoder.bias")  # fmt: skip


def build(entry: Entry, program: Program, params: Mapping[str, Array]) -> StatelessLibrary:
    """The library's model over these parameters, in f32."""
    statics = program.root.statics
    first = int(statics["first_position"])
    model = load_parameters(
        _maker(entry, sizes_of(program), statics["eps"], first), entry, params, rename=_renamed, absent=_TIED
    )
    entries = _Entries(model, first, statics)
    every: dict[str, Callable[..., Any]] = {
        "encode": entries.encode,
        "embed": entries.embed,
        "mask_logits": entries.mask_logits,
        "mask_logits_at": entries.mask_logits_at,
        "pool": entries.pool,
        "next_sentence": entries.next_sentence,
    }
    return StatelessLibrary({name: every[name] for name in program.entries}, model)


class _Entries:
    """The entries of `zoo/all-MiniLM-L6-v2/model.py` by the library's modules."""

    def __init__(self, model: Any, first: int, statics: Mapping[str, Any]) -> None:
        self.model = model
        self.body = getattr(model, "bert", getattr(model, "roberta", model))
        self.first = first
        self.statics = statics

    def encode(self, tokens: Any, lengths: Any, types: Any) -> Any:
        return self._run(tokens, lengths, types).last_hidden_state

    def embed(self, tokens: Any, lengths: Any, types: Any) -> Any:
        import torch

        x = self.encode(tokens, lengths, types)
        counted = _counted(tokens, lengths)[..., None].to(x.dtype)
        mean = self.statics["pooling"] == "mean"
        x = (x * counted).sum(1) / counted.sum(1) if mean else x[:, 0]
        return torch.nn.functional.normalize(x, dim=1) if self.statics["normalize"] else x

    def mask_logits(self, tokens: Any, lengths: Any, types: Any) -> Any:
        x = self.encode(tokens, lengths, types)
        return self.model.lm_head(x) if hasattr(self.model, "lm_head") else self.model.cls.predictions(x)

    def mask_logits_at(self, tokens: Any, places: Any, lengths: Any, types: Any) -> Any:
        logits = self.mask_logits(tokens, lengths, types)
        return logits.gather(1, places[..., None].expand(-1, -1, logits.shape[-1]))

    def pool(self, tokens: Any, lengths: Any, types: Any) -> Any:
        return self._run(tokens, lengths, types).pooler_output

    def next_sentence(self, tokens: Any, lengths: Any, types: Any) -> Any:
        return self.model.cls.seq_relationship(self.pool(tokens, lengths, types))

    def _run(self, tokens: Any, lengths: Any, types: Any) -> Any:
        import torch

        positions = torch.arange(tokens.shape[1])[None] + self.first
        return self.body(
            input_ids=tokens,
            attention_mask=_counted(tokens, lengths).long(),
            token_type_ids=types,
            position_ids=positions,
        )


def _counted(tokens: Any, lengths: Any) -> Any:
    import torch

    return torch.arange(tokens.shape[1])[None] < lengths[:, None]


def _renamed(name: str) -> str:
    """The library's name of a tensor; checkpoints of 2018 call a norm's gain gamma and its bias beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _maker(entry: Entry, sizes: Mapping[str, int], eps: float, first: int) -> Callable[[], Any]:
    import transformers as t

    roberta = first > 0
    make: Any = t.RobertaConfig if roberta else t.BertConfig
    config = make(
        vocab_size=sizes["Vocab"],
        hidden_size=sizes["D"],
        num_hidden_layers=sizes["Layers"],
        num_attention_heads=sizes["Heads"],
        intermediate_size=sizes["Inner"],
        max_position_embeddings=sizes["Positions"],
        type_vocab_size=sizes["Types"],
        layer_norm_eps=eps,
        pad_token_id=max(0, first - 1),
    )
    root = entry.manifest.source.root
    if root == "PreTraining":
        return lambda: t.BertForPreTraining(config)
    if root == "MaskedLM":
        return lambda: (t.RobertaForMaskedLM if roberta else t.BertForMaskedLM)(config)
    plain: Any = t.RobertaModel if roberta else t.BertModel
    return lambda: plain(config, add_pooling_layer=False)

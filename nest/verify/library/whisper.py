"""transformers' Whisper behind nest's entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nest.ir.dim import Dim
from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._generate import greedy
from nest.verify.tokens import Decoding

__all__ = ["WhisperLibrary", "build", "transformers_model"]

Array = np.ndarray[Any, Any]


class WhisperLibrary:
    """The library's model; a session of it keeps tokens in place of caches."""

    name = "transformers"

    def __init__(self, model: Any, heads: Sequence[tuple[int, int]]) -> None:
        self.model = model
        self.heads = heads

    def new_session(self) -> WhisperSession:
        """One row, of any number of calls."""
        return WhisperSession(self.model, self.heads)


class WhisperSession:
    """The entries of `zoo/whisper-tiny/model.py` by the library's modules, a row at a time."""

    def __init__(self, model: Any, heads: Sequence[tuple[int, int]]) -> None:
        import torch

        self.torch = torch
        self.model = model
        self.heads = heads
        self.states: Any = None
        self.tokens: list[int] = []
        self._entries: dict[str, Callable[..., Any]] = {
            "encode": self._encode,
            "decode": self._decode,
            "listen": self._listen,
            "prefill": self._prefill,
            "step": self._step,
            "align": self._align,
        }
        self.entries = frozenset(self._entries)

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry with its arguments in order."""
        with self.torch.no_grad():
            return self._entries[name](*map(np.asarray, inputs))

    def numpy(self, value: Any) -> Array:
        """A result on the host."""
        array: Array = value.numpy()
        return array

    def greedy(self, decoding: Decoding) -> list[int]:
        """The library's `generate`, after `listen`; the tokens of the first prompt's row before the end."""
        from transformers.modeling_outputs import BaseModelOutput

        states = BaseModelOutput(last_hidden_state=self.states)
        return greedy(self.model, decoding, prompt="decoder_input_ids", encoder_outputs=states)

    def _encode(self, mel: Array) -> Any:
        return self.model.model.encoder(self.torch.from_numpy(mel)).last_hidden_state

    def _decode(self, tokens: Array, audio: Array) -> Any:
        return self._logits(tokens, self.torch.from_numpy(audio))

    def _listen(self, mel: Array) -> Any:
        self.states = self._encode(mel)
        return self.states

    def _prefill(self, tokens: Array, lengths: Array) -> Any:
        self.tokens = tokens[0, : int(lengths[0])].tolist()
        return self._logits(np.array([self.tokens]), self.states)[:, -1]

    def _step(self, token: Array, pos: Array) -> Any:
        self.tokens = [*self.tokens[: int(pos[0])], int(token[0, 0])]
        return self._logits(np.array([self.tokens]), self.states)[:, -1]

    def _align(self, tokens: Array) -> Any:
        ids = self.torch.from_numpy(tokens).long()
        kept = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")
        made = self.model.model.decoder(
            input_ids=ids, encoder_hidden_states=self.states, output_attentions=True, use_cache=False
        ).cross_attentions
        self.model.set_attn_implementation(kept)
        return self.torch.stack([made[layer][:, head] for layer, head in self.heads], 1)

    def _logits(self, tokens: Array, states: Any) -> Any:
        ids = self.torch.from_numpy(np.asarray(tokens)).long()
        made = self.model.model.decoder(input_ids=ids, encoder_hidden_states=states, use_cache=False)
        return self.model.proj_out(made.last_hidden_state)


def build(entry: Entry, program: Program, params: Mapping[str, Array]) -> WhisperLibrary:
    """The library's model over these parameters, in f32."""
    sizes = {n: int(d) for n, d in program.root.generics.items() if isinstance(d, Dim)}
    named = program.root.statics.get("alignment_heads") or ()
    half = sizes["DecoderLayers"] // 2
    upper = [(layer, head) for layer in range(half, sizes["DecoderLayers"]) for head in range(sizes["Heads"])]
    heads = sorted(map(tuple, named), key=lambda pair: pair[0]) if named else upper
    return WhisperLibrary(transformers_model(entry, params, sizes), heads)


def transformers_model(entry: Entry, params: Mapping[str, Array], sizes: Mapping[str, int]) -> Any:
    """transformers' Whisper with these parameters and sizes, in f32, ready to run."""
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    last = sizes["Vocab"] - 1
    config = WhisperConfig(
        vocab_size=sizes["Vocab"],
        num_mel_bins=sizes["Mels"],
        d_model=sizes["D"],
        encoder_layers=sizes["EncoderLayers"],
        decoder_layers=sizes["DecoderLayers"],
        encoder_attention_heads=sizes["Heads"],
        decoder_attention_heads=sizes["Heads"],
        encoder_ffn_dim=sizes["Inner"],
        decoder_ffn_dim=sizes["Inner"],
        max_source_positions=(sizes["Frames"] - 1) // 2 + 1,
        max_target_positions=sizes["MaxTokens"],
        pad_token_id=last,
        bos_token_id=last,
        eos_token_id=last,
        decoder_start_token_id=last,
        begin_suppress_tokens=None,
    )
    with torch.device("meta"):
        model: Any = WhisperForConditionalGeneration(config)
    state = {_library_name(entry, path): torch.from_numpy(np.array(a)) for path, a in params.items()}
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    if unexpected or set(missing) - {"proj_out.weight"}:
        raise RuntimeError(f"The reference library's names differ: {missing}, {unexpected}")
    model.tie_weights()
    return model.eval()


def _library_name(entry: Entry, path: str) -> str:
    """What the checkpoint, and so the library, calls a parameter."""
    for rule in entry.bindings.rules:
        indices = rule.match(path)
        if indices is not None:
            return str(next(iter(rule.expression(indices, {}).sources())))
    raise KeyError(path)

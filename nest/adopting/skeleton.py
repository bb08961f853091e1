"""A small definition that elaborates, where an author's is to be."""

from __future__ import annotations

from typing import Any

__all__ = ["GENERICS", "TINY", "skeleton"]

GENERICS: dict[str, Any] = {"Vocab": 1000, "D": 64, "Inner": 128, "Layers": 2, "T": "f32"}
TINY: dict[str, Any] = {"Vocab": 29, "D": 12, "Inner": 20, "Layers": 2}

_TEXT = '''"""{name}: the paper, its authors, year and number.

The network below only shows the form: an embedding, layers that share a class, a head. docs/architecture.md and
nest/layers/README.md say what there is to write with; zoo/smollm2-135m-instruct/model.py has caches.
"""

from __future__ import annotations

from nest.layers import (
    Block,
    Dim,
    DType,
    Float,
    Int32,
    LayerNorm,
    Linear,
    Param,
    Tensor,
    block_array,
    entry,
    gelu,
    linear,
    take,
)


class Layer(Block):
    """A pre-norm feed-forward layer; attention goes here too."""

    D: Dim
    Inner: Dim
    T: DType

    def build(self) -> None:
        self.norm = LayerNorm(self.D, self.T)
        self.up = Linear(self.D, self.Inner, self.T)
        self.down = Linear(self.Inner, self.D, self.T)

    def forward(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return x + self.down(gelu(self.up(self.norm(x))))


class Model(Block):
    """The whole network."""

    Vocab: Dim
    D: Dim
    Inner: Dim
    Layers: Dim
    T: DType

    def build(self) -> None:
        self.token_embedding = Param("Vocab D", self.T)
        self.layers = block_array(self.Layers, lambda i: Layer(self.D, self.Inner, self.T))
        self.norm = LayerNorm(self.D, self.T)

    @entry
    def forward(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S Vocab"]:
        """Logits at every position."""
        x = take(self.token_embedding, tokens)
        for layer in self.layers:
            x = layer(x)
        return linear(self.norm(x), self.token_embedding)
'''


def skeleton(name: str) -> str:
    """The text of a `model.py`."""
    return _TEXT.replace("{name}", name)

"""BERT: a transformer encoder over token, position and segment embeddings, and what is built on its states.

Devlin et al., 2018, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", arXiv
1810.04805. RoBERTa (Liu et al., 2019, arXiv 1907.11692) and sentence encoders (Reimers and Gurevych, 2019, arXiv
1908.10084) are this definition with other generics, and a root for what each of them is for.
"""

from __future__ import annotations

from nest.layers import (
    Block,
    Dim,
    DType,
    Fill,
    Float,
    Float32,
    Int32,
    LayerNorm,
    Linear,
    Param,
    Static,
    Tensor,
    attention,
    block_array,
    cast,
    entry,
    gelu,
    iota,
    linear,
    maximum,
    merge_heads,
    slice,
    split_heads,
    sqrt,
    sum,
    take,
    take_along,
    tanh,
    where,
)


class Attention(Block):
    """Multi-head self-attention without a direction: every token sees every other of its text."""

    D: Dim
    Heads: Dim
    T: DType

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.query = Linear(self.D, self.D, self.T)
        self.key = Linear(self.D, self.D, self.T)
        self.value = Linear(self.D, self.D, self.T)
        self.output = Linear(self.D, self.D, self.T)

    def forward(self, x: Float[Tensor, "B S D"], lengths: Int32[Tensor, "B"]) -> Float[Tensor, "B S D"]:
        q = split_heads(self.query(x), self.Heads)
        k = split_heads(self.key(x), self.Heads)
        v = split_heads(self.value(x), self.Heads)
        # Keys at and beyond a row's length are padding.
        return self.output(merge_heads(attention(q, k, v, kv_len=lengths)))


class Mlp(Block):
    """Two linear layers around the error-function GELU."""

    D: Dim
    Inner: Dim
    T: DType

    def build(self) -> None:
        self.up = Linear(self.D, self.Inner, self.T)
        self.down = Linear(self.Inner, self.D, self.T)

    def forward(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return self.down(gelu(self.up(x)))


class EncoderLayer(Block):
    """A post-norm layer: each sum is normalized, and the stream itself with it."""

    D: Dim
    Heads: Dim
    Inner: Dim
    T: DType
    eps: Static[float]

    def build(self) -> None:
        self.attention = Attention(self.D, self.Heads, self.T)
        self.attention_norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.mlp = Mlp(self.D, self.Inner, self.T)
        self.mlp_norm = LayerNorm(self.D, self.T, eps=self.eps)

    def forward(self, x: Float[Tensor, "B S D"], lengths: Int32[Tensor, "B"]) -> Float[Tensor, "B S D"]:
        x = self.attention_norm(x + self.attention(x, lengths))
        return self.mlp_norm(x + self.mlp(x))


class Encoder(Block):
    """The encoder alone. Rows are padded at the end, and `lengths` says how many tokens of each count."""

    Vocab: Dim
    Positions: Dim
    Types: Dim
    D: Dim
    Heads: Dim
    Inner: Dim
    Layers: Dim
    T: DType
    eps: Static[float] = 1e-12
    first_position: Static[int] = 0

    def build(self) -> None:
        self.word_embeddings = Param("Vocab D", self.T)
        # RoBERTa's positions begin after its padding token's id, so that the first rows of its table are never read.
        self.position_embeddings = Param("Positions D", self.T)
        self.type_embeddings = Param("Types D", self.T)
        self.embedding_norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.layers = block_array(
            self.Layers, lambda i: EncoderLayer(self.D, self.Heads, self.Inner, self.T, self.eps)
        )

    @entry
    def encode(
        self,
        tokens: Int32[Tensor, "B S"],
        lengths: Int32[Tensor, "B"] = Fill("S"),
        types: Int32[Tensor, "B S"] = Fill("0"),
    ) -> Float[Tensor, "B S D"]:
        """The last layer's state of every token; `types` is 0 in a first text and 1 in a second one."""
        S = tokens.shape[1]
        self.require(S + self.first_position <= self.Positions)
        positions = slice(self.position_embeddings, 0, self.first_position, S + self.first_position)
        x = take(self.word_embeddings, tokens) + take(self.type_embeddings, types) + positions
        x = self.embedding_norm(x)
        for layer in self.layers:
            x = layer(x, lengths)
        return x


class SentenceEncoder(Encoder):
    """An encoder whose texts become vectors, by the mean of a text's states or by the state of its first token."""

    pooling: Static[str] = "mean"
    normalize: Static[bool] = True

    @entry
    def embed(
        self,
        tokens: Int32[Tensor, "B S"],
        lengths: Int32[Tensor, "B"] = Fill("S"),
        types: Int32[Tensor, "B S"] = Fill("0"),
    ) -> Float32[Tensor, "B D"]:
        """A vector for each text, in f32 whatever T is; of length 1 where the checkpoint normalizes."""
        B, S = tokens.shape
        x = cast(self.encode(tokens, lengths, types), "f32")
        if self.pooling == "mean":
            counted = iota(S).reshape(1, S, 1) < lengths.reshape(B, 1, 1)
            x = sum(where(counted, x, 0.0), 1) / cast(lengths.reshape(B, 1), "f32")
        else:
            x = slice(x, 1, 0, 1).reshape(B, self.D)
        if self.normalize:
            x = x / maximum(sqrt(sum(x * x, 1, keepdims=True)), 1e-12)
        return x


class MaskedLM(Encoder):
    """An encoder that tells what stands where a token is masked; its output matrix is the token embedding."""

    def build(self) -> None:
        super().build()
        self.head = Linear(self.D, self.D, self.T)
        self.head_norm = LayerNorm(self.D, self.T, eps=self.eps)
        self.head_bias = Param("Vocab", self.T, init="zeros")

    @entry
    def mask_logits(
        self,
        tokens: Int32[Tensor, "B S"],
        lengths: Int32[Tensor, "B"] = Fill("S"),
        types: Int32[Tensor, "B S"] = Fill("0"),
    ) -> Float[Tensor, "B S Vocab"]:
        """Logits of what stands at every place."""
        return self.predict(self.encode(tokens, lengths, types))

    @entry
    def mask_logits_at(
        self,
        tokens: Int32[Tensor, "B S"],
        places: Int32[Tensor, "B M"],
        lengths: Int32[Tensor, "B"] = Fill("S"),
        types: Int32[Tensor, "B S"] = Fill("0"),
    ) -> Float[Tensor, "B M Vocab"]:
        """Logits at some places of each row alone: the head is a large part of the work."""
        B, M = places.shape
        x = self.encode(tokens, lengths, types)
        return self.predict(take_along(x, places.reshape(B, M, 1), axis=1))

    def predict(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N Vocab"]:
        return linear(self.head_norm(gelu(self.head(x))), self.word_embeddings, self.head_bias)


class PreTraining(MaskedLM):
    """BERT as it was trained: masked tokens, and whether a second text follows the first."""

    def build(self) -> None:
        super().build()
        self.pooler = Linear(self.D, self.D, self.T)
        self.follows = Linear(self.D, 2, self.T)

    @entry
    def pool(
        self,
        tokens: Int32[Tensor, "B S"],
        lengths: Int32[Tensor, "B"] = Fill("S"),
        types: Int32[Tensor, "B S"] = Fill("0"),
    ) -> Float[Tensor, "B D"]:
        """One state for the whole input, made of its first token's, which is where classifiers begin."""
        first = slice(self.encode(tokens, lengths, types), 1, 0, 1)
        return tanh(self.pooler(first)).reshape(tokens.shape[0], self.D)

    @entry
    def next_sentence(
        self,
        tokens: Int32[Tensor, "B S"],
        lengths: Int32[Tensor, "B"] = Fill("S"),
        types: Int32[Tensor, "B S"] = Fill("0"),
    ) -> Float[Tensor, "B 2"]:
        """Logits of: the second text follows the first; it is from elsewhere."""
        return self.follows(self.pool(tokens, lengths, types))

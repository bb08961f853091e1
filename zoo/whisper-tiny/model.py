"""Whisper: a convolutional stem and transformer encoder over log-mel frames, and a decoder that attends to it.

Radford et al., 2022, "Robust Speech Recognition via Large-Scale Weak Supervision", arXiv 2212.04356. Every size of
the family is this definition with other generics.
"""

from __future__ import annotations

from nest.layers import (
    Block,
    Capacity,
    Dim,
    DType,
    Fill,
    Float,
    Float32,
    Int32,
    LayerNorm,
    Linear,
    Param,
    State,
    Static,
    Tensor,
    attention,
    block_array,
    cast,
    concat,
    constant,
    conv,
    einsum,
    entry,
    gelu,
    linear,
    merge_heads,
    slice,
    softmax,
    split_heads,
    take,
    take_along,
)


class Attention(Block):
    """Multi-head attention over keys and values that the caller holds. Keys carry no bias."""

    D: Dim
    Heads: Dim
    T: DType

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.q_proj = Linear(self.D, self.D, self.T)
        # A bias would add the same to a query's score of every key, which softmax cancels.
        self.k_proj = Linear(self.D, self.D, self.T, bias=False)
        self.v_proj = Linear(self.D, self.D, self.T)
        self.out_proj = Linear(self.D, self.D, self.T)

    def keys(self, source: Float[Tensor, "B N D"]) -> Float[Tensor, "B Heads N D//Heads"]:
        return split_heads(self.k_proj(source), self.Heads)

    def values(self, source: Float[Tensor, "B N D"]) -> Float[Tensor, "B Heads N D//Heads"]:
        return split_heads(self.v_proj(source), self.Heads)

    def queries(self, x: Float[Tensor, "B Q D"]) -> Float[Tensor, "B Heads Q D//Heads"]:
        return split_heads(self.q_proj(x), self.Heads)

    def attend(
        self,
        x: Float[Tensor, "B Q D"],
        keys: Float[Tensor, "B Heads K D//Heads"],
        values: Float[Tensor, "B Heads K D//Heads"],
    ) -> Float[Tensor, "B Q D"]:
        """Every query sees every key."""
        return self.out_proj(merge_heads(attention(self.queries(x), keys, values)))

    def attend_causal(
        self,
        x: Float[Tensor, "B Q D"],
        keys: Float[Tensor, "B Heads K D//Heads"],
        values: Float[Tensor, "B Heads K D//Heads"],
    ) -> Float[Tensor, "B Q D"]:
        """Query i sees keys 0 to i."""
        return self.out_proj(merge_heads(attention(self.queries(x), keys, values, causal=True)))

    def attend_cached(
        self,
        x: Float[Tensor, "B Q D"],
        keys: Float[Tensor, "B Heads K D//Heads"],
        values: Float[Tensor, "B Heads K D//Heads"],
        pos: Int32[Tensor, "B"],
    ) -> Float[Tensor, "B Q D"]:
        """Query i, at slot pos + i of its row, sees the keys of slots 0 to pos + i."""
        return self.out_proj(merge_heads(attention(self.queries(x), keys, values, pos, causal=True)))


class Mlp(Block):
    """Two linear layers around the error-function GELU: the tanh form would shift the encoder by 5.7e-2."""

    D: Dim
    Inner: Dim
    T: DType

    def build(self) -> None:
        self.fc1 = Linear(self.D, self.Inner, self.T)
        self.fc2 = Linear(self.Inner, self.D, self.T)

    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return self.fc2(gelu(self.fc1(x)))


class EncoderLayer(Block):
    """A pre-norm transformer layer; it attends to the padding of a short clip too."""

    D: Dim
    Heads: Dim
    Inner: Dim
    T: DType

    def build(self) -> None:
        self.self_attn_layer_norm = LayerNorm(self.D, self.T)
        self.self_attn = Attention(self.D, self.Heads, self.T)
        self.final_layer_norm = LayerNorm(self.D, self.T)
        self.mlp = Mlp(self.D, self.Inner, self.T)

    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        h = self.self_attn_layer_norm(x)
        x = x + self.self_attn.attend(h, self.self_attn.keys(h), self.self_attn.values(h))
        return x + self.mlp(self.final_layer_norm(x))


class DecoderLayer(Block):
    """A pre-norm layer with causal self-attention and cross-attention to the encoder's states."""

    D: Dim
    Heads: Dim
    Inner: Dim
    Audio: Dim
    T: DType

    def build(self) -> None:
        self.self_attn_layer_norm = LayerNorm(self.D, self.T)
        self.self_attn = Attention(self.D, self.Heads, self.T)
        self.encoder_attn_layer_norm = LayerNorm(self.D, self.T)
        self.encoder_attn = Attention(self.D, self.Heads, self.T)
        self.final_layer_norm = LayerNorm(self.D, self.T)
        self.mlp = Mlp(self.D, self.Inner, self.T)
        self.self_k = State("Batch Heads Capacity D//Heads", self.T, write_axis=2)
        self.self_v = State("Batch Heads Capacity D//Heads", self.T, write_axis=2)
        # Of a window, computed once: every step reads them.
        self.cross_k = State("Batch Heads Audio D//Heads", self.T)
        self.cross_v = State("Batch Heads Audio D//Heads", self.T)

    def forward(self, x: Float[Tensor, "B S D"], audio: Float[Tensor, "B A D"]) -> Float[Tensor, "B S D"]:
        """Without caches: the whole prefix against the encoder's states."""
        x = self.attend_prefix(x)
        return self.attend_audio(x, self.encoder_attn.keys(audio), self.encoder_attn.values(audio))

    def listen(self, audio: Float[Tensor, "Batch Audio D"]) -> Float[Tensor, "Batch Audio D"]:
        """Keep the keys and values of the encoder's states."""
        self.cross_k.assign(self.encoder_attn.keys(audio))
        self.cross_v.assign(self.encoder_attn.values(audio))
        return audio

    def prefill(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        """The prompt, from slot 0."""
        h = self.self_attn_layer_norm(x)
        k = self.self_attn.keys(h)
        v = self.self_attn.values(h)
        # What a shorter row's padding writes is overwritten by its own tokens before any query sees it.
        self.self_k.update(k, 0)
        self.self_v.update(v, 0)
        x = x + self.self_attn.attend_causal(h, k, v)
        return self.attend_audio(x, self.cross_k.read(), self.cross_v.read())

    def step(self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"]) -> Float[Tensor, "Batch 1 D"]:
        """One token of each row, at its own slot."""
        h = self.self_attn_layer_norm(x)
        k = self.self_k.update(self.self_attn.keys(h), pos)
        v = self.self_v.update(self.self_attn.values(h), pos)
        x = x + self.self_attn.attend_cached(h, k, v, pos)
        return self.attend_audio(x, self.cross_k.read(), self.cross_v.read())

    def attend_heard(self, x: Float[Tensor, "Batch S D"]) -> Float[Tensor, "Batch S D"]:
        """A whole prefix against the audio that was listened to; the self-attention caches stay as they are."""
        return self.attend_audio(x, self.cross_k.read(), self.cross_v.read())

    def attend_prefix(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        h = self.self_attn_layer_norm(x)
        return x + self.self_attn.attend_causal(h, self.self_attn.keys(h), self.self_attn.values(h))

    def attend_audio(
        self,
        x: Float[Tensor, "B S D"],
        keys: Float[Tensor, "B Heads A D//Heads"],
        values: Float[Tensor, "B Heads A D//Heads"],
    ) -> Float[Tensor, "B S D"]:
        x = x + self.encoder_attn.attend(self.encoder_attn_layer_norm(x), keys, values)
        return x + self.mlp(self.final_layer_norm(x))

    def cross_weights(self, x: Float[Tensor, "Batch S D"]) -> Float32[Tensor, "Batch Heads S Audio"]:
        """How much each head's query attends to each encoder state, after the layer's self-attention."""
        queries = self.encoder_attn.queries(self.encoder_attn_layer_norm(x))
        scores = einsum("bhqe,bhke->bhqk", queries, self.cross_k.read())
        return softmax(cast(scores, "f32") * int(self.D // self.Heads) ** -0.5)


class Model(Block):
    """The whole network; the output head is tied to the token embedding."""

    Mels: Dim
    Frames: Dim
    D: Dim
    Heads: Dim
    Inner: Dim
    EncoderLayers: Dim
    DecoderLayers: Dim
    Vocab: Dim
    MaxTokens: Dim
    T: DType
    alignment_heads: Static[tuple[tuple[int, int], ...]] = ()

    def build(self) -> None:
        self.require(Capacity <= self.MaxTokens)
        self.heads_of = self.aligned()
        self.Aligned = len([head for heads in self.heads_of for head in heads])
        self.Audio = (self.Frames - 1) // 2 + 1
        self.conv1_weight = Param("D Mels 3", self.T, init="fan_in")
        self.conv1_bias = Param("D", self.T, init="zeros")
        self.conv2_weight = Param("D D 3", self.T, init="fan_in")
        self.conv2_bias = Param("D", self.T, init="zeros")
        # Sinusoids, which checkpoints store: computed anew they would differ in their last bits.
        self.encoder_positions = Param("(Frames-1)//2+1 D", self.T)
        self.encoder_layers = block_array(
            self.EncoderLayers, lambda i: EncoderLayer(self.D, self.Heads, self.Inner, self.T)
        )
        self.encoder_norm = LayerNorm(self.D, self.T)
        self.token_embedding = Param("Vocab D", self.T)
        self.decoder_positions = Param("MaxTokens D", self.T)
        self.decoder_layers = block_array(
            self.DecoderLayers, lambda i: DecoderLayer(self.D, self.Heads, self.Inner, self.Audio, self.T)
        )
        self.decoder_norm = LayerNorm(self.D, self.T)

    @entry
    def encode(self, mel: Float[Tensor, "B Mels Frames"]) -> Float[Tensor, "B (Frames-1)//2+1 D"]:
        """Encoder states of a window of log-mel frames."""
        x = gelu(conv(mel, self.conv1_weight, self.conv1_bias, padding=1))
        # Two frames of 10 ms become one state of 20 ms, the unit of timestamps.
        x = gelu(conv(x, self.conv2_weight, self.conv2_bias, padding=1, stride=2))
        x = x.permute(0, 2, 1) + self.encoder_positions
        # No mask: the model was trained to hear the silence that a short clip is padded with.
        for layer in self.encoder_layers:
            x = layer(x)
        return self.encoder_norm(x)

    @entry
    def decode(
        self, tokens: Int32[Tensor, "B S"], audio: Float[Tensor, "B A D"]
    ) -> Float[Tensor, "B S Vocab"]:
        """Logits at every position of a prefix, without caches; the audio may be shorter than a window."""
        x = self.embed_prefix(tokens)
        for layer in self.decoder_layers:
            x = layer(x, audio)
        return self.logits(x)

    @entry
    def listen(self, mel: Float[Tensor, "Batch Mels Frames"]) -> Float[Tensor, "Batch (Frames-1)//2+1 D"]:
        """Encode, and fill every decoder layer's cross-attention keys and values; gives the encoder states."""
        audio = self.encode(mel)
        for layer in self.decoder_layers:
            layer.listen(audio)
        return audio

    @entry
    def prefill(
        self, tokens: Int32[Tensor, "Batch S"], lengths: Int32[Tensor, "Batch"] = Fill("S")
    ) -> Float[Tensor, "Batch Vocab"]:
        """Put a prompt into the self-attention caches from slot 0; logits after the last token of each row."""
        B, S = tokens.shape
        self.require(S <= Capacity)
        x = self.embed_prefix(tokens)
        for layer in self.decoder_layers:
            x = layer.prefill(x)
        # The head is most of the decoder's work, so only for the position whose logits are asked for.
        last = take_along(x, (lengths - 1).reshape(B, 1, 1), axis=1)
        return self.logits(last).reshape(B, self.Vocab)

    @entry
    def step(
        self, token: Int32[Tensor, "Batch 1"], pos: Int32[Tensor, "Batch"]
    ) -> Float[Tensor, "Batch Vocab"]:
        """One more token of each row, at slot `pos`; logits after it."""
        B = token.shape[0]
        x = take(self.token_embedding, token) + take(self.decoder_positions, pos.reshape(B, 1))
        for layer in self.decoder_layers:
            x = layer.step(x, pos)
        return self.logits(x).reshape(B, self.Vocab)

    @entry
    def align(self, tokens: Int32[Tensor, "Batch S"]) -> Float32[Tensor, "Batch Aligned S Audio"]:
        """Cross-attention weights of the alignment heads over the audio that was listened to, for word times.

        The tokens are teacher-forced and the caches are left alone; heads come in the order of their layers.
        """
        x = self.embed_prefix(tokens)
        weights = []
        for layer, heads in zip(self.decoder_layers, self.heads_of, strict=True):
            x = layer.attend_prefix(x)
            if heads:
                weights.append(take(layer.cross_weights(x), constant(heads, "i32"), axis=1))
            x = layer.attend_heard(x)
        return concat(weights, axis=1)

    def aligned(self) -> tuple[tuple[int, ...], ...]:
        """The alignment heads of each decoder layer; all heads of the upper half where none are named."""
        layers, heads = int(self.DecoderLayers), int(self.Heads)
        if not self.alignment_heads:
            return tuple(tuple(range(heads)) if layer >= layers // 2 else () for layer in range(layers))
        return tuple(
            tuple(head for at, head in self.alignment_heads if at == layer) for layer in range(layers)
        )

    def embed_prefix(self, tokens: Int32[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        S = tokens.shape[1]
        self.require(S <= self.MaxTokens)
        return take(self.token_embedding, tokens) + slice(self.decoder_positions, 0, 0, S)

    def logits(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S Vocab"]:
        return linear(self.decoder_norm(x), self.token_embedding)

"""ResNet: convolutions whose layers add to what they were given, and a linear head on the mean over the picture.

He et al., 2015, "Deep Residual Learning for Image Recognition", arXiv 1512.03385. The strided convolution of a
bottleneck is its 3 by 3 one, as in later trainings (often called v1.5), not the first as in the paper.
"""

from __future__ import annotations

from nest.layers import (
    BatchNorm,
    Block,
    Conv2d,
    Dim,
    DType,
    Float,
    Linear,
    Static,
    Tensor,
    entry,
    max_pool,
    mean,
    relu,
)


class ConvNorm(Block):
    """A convolution without bias that keeps the size, strides aside, and the norm after it."""

    In: Dim
    Out: Dim
    T: DType
    kernel: Static[int]
    stride: Static[int] = 1

    def build(self) -> None:
        self.conv = Conv2d(
            self.In,
            self.Out,
            self.T,
            kernel=self.kernel,
            stride=self.stride,
            padding=self.kernel // 2,
            bias=False,
        )
        self.norm = BatchNorm(self.Out, self.T)

    def forward(self, x: Float[Tensor, "B In H W"]) -> Float[Tensor, "B Out (H-1)//stride+1 (W-1)//stride+1"]:
        return self.norm(self.conv(x))


class Layer(Block):
    """Two convolutions, or a bottleneck of three, beside a shortcut: the input, projected where its type changes."""

    In: Dim
    Out: Dim
    T: DType
    stride: Static[int]
    bottleneck: Static[bool]

    def build(self) -> None:
        if self.bottleneck:
            self.require(self.Out % 4 == 0)
            narrow = self.Out // 4
            self.conv1 = ConvNorm(self.In, narrow, self.T, kernel=1)
            self.conv2 = ConvNorm(narrow, narrow, self.T, kernel=3, stride=self.stride)
            self.conv3 = ConvNorm(narrow, self.Out, self.T, kernel=1)
        else:
            self.conv1 = ConvNorm(self.In, self.Out, self.T, kernel=3, stride=self.stride)
            self.conv2 = ConvNorm(self.Out, self.Out, self.T, kernel=3)
        self.projects = self.stride > 1 or int(self.In) != int(self.Out)
        if self.projects:
            self.shortcut = ConvNorm(self.In, self.Out, self.T, kernel=1, stride=self.stride)
        else:
            self.require(self.In == self.Out)

    def forward(self, x: Float[Tensor, "B In H W"]) -> Float[Tensor, "B Out (H-1)//stride+1 (W-1)//stride+1"]:
        y = self.conv2(relu(self.conv1(x)))
        if self.bottleneck:
            y = self.conv3(relu(y))
        return relu(y + (self.shortcut(x) if self.projects else x))


class Stage(Block):
    """Layers at one resolution; the first of them may halve it."""

    In: Dim
    Out: Dim
    T: DType
    depth: Static[int]
    stride: Static[int]
    bottleneck: Static[bool]

    def build(self) -> None:
        self.layers = [
            Layer(self.Out if i else self.In, self.Out, self.T, 1 if i else self.stride, self.bottleneck)
            for i in range(self.depth)
        ]

    def forward(self, x: Float[Tensor, "B In H W"]) -> Float[Tensor, "B Out (H-1)//stride+1 (W-1)//stride+1"]:
        for layer in self.layers:
            x = layer(x)
        return x


class Model(Block):
    """The whole network: a stem that divides the size by four, stages of which all but the first halve it, a head."""

    Height: Dim
    Width: Dim
    Channels: Dim
    Stem: Dim
    Features: Dim
    Classes: Dim
    T: DType
    widths: Static[tuple[int, ...]]
    depths: Static[tuple[int, ...]]
    bottleneck: Static[bool]

    def build(self) -> None:
        self.stem = ConvNorm(self.Channels, self.Stem, self.T, kernel=7, stride=2)
        outs = [*self.widths[:-1], self.Features]
        self.require(self.Features == self.widths[-1])
        self.stages = [
            Stage(into, out, self.T, depth, 2 if i else 1, self.bottleneck)
            for i, (into, out, depth) in enumerate(zip([self.Stem, *outs], outs, self.depths, strict=False))
        ]
        self.classifier = Linear(self.Features, self.Classes, self.T)

    @entry
    def forward(self, pixels: Float[Tensor, "B Channels Height Width"]) -> Float[Tensor, "B Classes"]:
        """Logits of each picture's classes."""
        return self.classifier(self.pooled(pixels))

    @entry
    def embed_image(self, pixels: Float[Tensor, "B Channels Height Width"]) -> Float[Tensor, "B Features"]:
        """A vector for each picture: the mean of its features, which the head classifies."""
        return self.pooled(pixels)

    def pooled(self, pixels: Float[Tensor, "B Channels Height Width"]) -> Float[Tensor, "B Features"]:
        x = max_pool(relu(self.stem(pixels)), kernel=3, stride=2, padding=1)
        for stage in self.stages:
            x = stage(x)
        return mean(x, (2, 3))

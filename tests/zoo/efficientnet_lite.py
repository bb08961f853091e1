"""EfficientNet-Lite0: inverted bottlenecks without gates, and ReLU6, made for quantizing.

Tan and Le, 2019, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", arXiv 1905.11946; the Lite
variant is Google's, 2020. It is here and not in the zoo because its weights are published as a pickle alone, which the
product does not read.
"""

from __future__ import annotations

from nest.layers import (
    BatchNorm,
    Block,
    Dim,
    DType,
    Float,
    Linear,
    Param,
    Static,
    Tensor,
    conv,
    entry,
    mean,
    minimum,
    pad,
    relu,
)

STAGES = (
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)  # fmt: skip
"""Of each: layers, kernel, stride of the first, how often it widens, channels that come out."""


class ConvNorm(Block):
    """A convolution and its norm. Of an odd number of zeros around a picture, the larger half lies behind it."""

    In: Dim
    Out: Dim
    T: DType
    kernel: Static[int]
    stride: Static[int] = 1
    depthwise: Static[bool] = False

    def build(self) -> None:
        self.Each = 1 if self.depthwise else self.In
        self.weight = Param("Out Each kernel kernel", self.T, init="fan_in")
        self.norm = BatchNorm(self.Out, self.T, eps=1e-3)

    def forward(
        self, x: Float[Tensor, "B In H W"]
    ) -> Float[Tensor, "B Out (H-stride)//stride+1 (W-stride)//stride+1"]:
        # Every picture here is a whole number of strides.
        zeros = self.kernel - self.stride
        for axis in (2, 3):
            x = pad(x, axis, zeros // 2, zeros - zeros // 2)
        return self.norm(conv(x, self.weight, stride=self.stride, groups=self.In if self.depthwise else 1))


class Layer(Block):
    """Widen, convolve each channel by itself, narrow; the input is added where it fits."""

    In: Dim
    Out: Dim
    T: DType
    kernel: Static[int]
    stride: Static[int]
    widen: Static[int]

    def build(self) -> None:
        wide = self.In * self.widen
        if self.widen > 1:
            self.expand = ConvNorm(self.In, wide, self.T, kernel=1)
        self.depthwise = ConvNorm(wide, wide, self.T, kernel=self.kernel, stride=self.stride, depthwise=True)
        self.project = ConvNorm(wide, self.Out, self.T, kernel=1)
        self.adds = self.stride == 1 and int(self.In) == int(self.Out)
        if self.adds:
            self.require(self.In == self.Out)

    def forward(
        self, x: Float[Tensor, "B In H W"]
    ) -> Float[Tensor, "B Out (H-stride)//stride+1 (W-stride)//stride+1"]:
        y = relu6(self.expand(x)) if self.widen > 1 else x
        y = self.project(relu6(self.depthwise(y)))
        return x + y if self.adds else y


def relu6(x: Tensor) -> Tensor:
    return minimum(relu(x), 6.0)


class Model(Block):
    """The whole network."""

    Height: Dim
    Width: Dim
    Classes: Dim
    T: DType
    stem: Static[int] = 32
    features: Static[int] = 1280
    stages: Static[tuple[tuple[int, int, int, int, int], ...]] = STAGES

    def build(self) -> None:
        self.require(self.Height % 32 == 0)
        self.require(self.Width % 32 == 0)
        self.first = ConvNorm(3, self.stem, self.T, kernel=3, stride=2)
        layers, width = [], self.stem
        for count, kernel, stride, widen, out in self.stages:
            for i in range(count):
                layers.append(Layer(width, out, self.T, kernel, 1 if i else stride, widen))
                width = out
        self.layers = layers
        self.last = ConvNorm(width, self.features, self.T, kernel=1)
        self.classifier = Linear(self.features, self.Classes, self.T)

    @entry
    def forward(self, pixels: Float[Tensor, "B 3 Height Width"]) -> Float[Tensor, "B Classes"]:
        """Logits of each picture's classes; levels are (x - 127) / 128."""
        x = relu6(self.first(pixels))
        for layer in self.layers:
            x = layer(x)
        return self.classifier(mean(relu6(self.last(x)), (2, 3)))

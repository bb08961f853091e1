"""The ladder sees mistakes in the definitions of the vision families, on every backend."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from nest.verify import Setting, setting_of

from .mistakes import Mistakes, is_seen

VIT: Mistakes = {
    "tanh GELU": ("activation=self.activation", 'activation="gelu_tanh"'),
    "epsilon": ("self.norm = LayerNorm(self.D, self.T, eps=self.eps)",
                "self.norm = LayerNorm(self.D, self.T, eps=1e-3)"),
    "no last norm": ("return self.norm(x)", "return x"),
    "no positions": ("axis=1) + self.positions()", "axis=1)"),
    "rows for columns": ("PatchPositions(self.Grid, rows, columns", "PatchPositions(self.Grid, columns, rows"),
    "mask not heeded": ('"bool"), mask]', '"bool"), mask | full((B, self.Patches), True, "bool")]'),
    "class token not seen": ("full((B, 1), True", "full((B, 1), False"),
    "another token": ("mask), 1, 0, 1)", "mask), 1, 1, 2)"),
}  # fmt: skip
DINO: Mistakes = {
    "scales swapped": ("mask) * self.scale1", "mask) * self.scale2"),
    "sum scaled": ("x = x + self.attention(self.norm1(x), mask) * self.scale1",
                   "x = (x + self.attention(self.norm1(x), mask)) * self.scale1"),
    "wrong norm": ("self.mlp(self.norm2(x))", "self.mlp(self.norm1(x))"),
}  # fmt: skip
BASIC: Mistakes = {
    "sum after the activation": ("relu(y + (self.shortcut(x) if self.projects else x))",
                                 "relu(y) + (self.shortcut(x) if self.projects else x)"),
    "no activation between": ("self.conv2(relu(self.conv1(x)))", "self.conv2(self.conv1(x))"),
    "stem not activated": ("max_pool(relu(self.stem(pixels))", "max_pool(self.stem(pixels)"),
    "epsilon": ("BatchNorm(self.Out, self.T)", "BatchNorm(self.Out, self.T, eps=1e-3)"),
    "largest in place of the mean": ("mean(x, (2, 3))", "mean(max_pool(x, kernel=2, stride=1), (2, 3))"),
}  # fmt: skip
BOTTLENECK: Mistakes = {
    "stride in the first convolution": (
        "self.conv1 = ConvNorm(self.In, narrow, self.T, kernel=1)\n"
        "            self.conv2 = ConvNorm(narrow, narrow, self.T, kernel=3, stride=self.stride)",
        "self.conv1 = ConvNorm(self.In, narrow, self.T, kernel=1, stride=self.stride)\n"
        "            self.conv2 = ConvNorm(narrow, narrow, self.T, kernel=3)"),
    "last convolution activated": ("y = self.conv3(relu(y))", "y = relu(self.conv3(relu(y)))"),
}  # fmt: skip
CLIP: Mistakes = {
    "exact GELU": ("activation=self.activation", 'activation="gelu"'),
    "text sees what follows": ("layer.causal(x)", 'layer(x, full((B, S), True, "bool"))'),
    "first token": ("(lengths - 1).reshape", "(lengths * 0).reshape"),
    "no norm before the layers": ("self.pre_norm(concat(", "(concat("),
    "no last norm": ("self.post_norm(slice", "(slice"),
    "scale not a logarithm": ("* exp(self.logit_scale)", "* self.logit_scale"),
    "over pictures": ("texts), axis=1)", "texts), axis=0)"),
    "length not one": ("cast(wide * rsqrt(sum(wide * wide, 1, keepdims=True)), self.T)", "x"),
}  # fmt: skip
SIGLIP: Mistakes = {
    "exact GELU": ("self.eps, activation=self.activation", 'self.eps, activation="gelu"'),
    "pool without its sum": ("found + self.mlp(self.norm(found))", "self.mlp(self.norm(found))"),
    "pool sees what is masked": ("attention(q, k, v, mask=mask.reshape(B, 1, 1, N))", "attention(q, k, v)"),
    "first place of a text": ("slice(x, 1, S - 1, S)", "slice(x, 1, 0, 1)"),
    "no bias": (" + self.logit_bias", ""),
    "softmax": ("sigmoid(self.logits(images, texts))",
                "exp(self.logits(images, texts)) / sum(exp(self.logits(images, texts)), 1, keepdims=True)"),
}  # fmt: skip
EVERY = {
    "vit-base-patch16-224": VIT,
    "dinov2-base": DINO,
    "resnet-18": BASIC,
    "resnet-50": BOTTLENECK,
    "clip-vit-base-patch32": CLIP,
    "siglip-base-patch16-224": SIGLIP,
}


@cache
def tiny(name: str, folder: Path) -> Setting:
    return setting_of(name, tiny=True, folder=folder)


@pytest.mark.parametrize("backend", ["torch", "onnx", "jax", "nnx"])
@pytest.mark.parametrize(("entry", "name"), [(entry, name) for entry in EVERY for name in EVERY[entry]])
def test_a_mistake_turns_the_ladder_red(
    entry: str, name: str, backend: str, oracle_folder: Path, tmp_path: Path
) -> None:
    assert is_seen(tiny(entry, oracle_folder), EVERY[entry][name], backend, tmp_path)

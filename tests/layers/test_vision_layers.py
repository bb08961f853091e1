"""The standard layers of vision models against PyTorch's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import DefinitionError
from nest.layers import (
    BatchNorm,
    Block,
    CubicResize,
    Dim,
    DType,
    Float,
    Float32,
    PatchEmbedding,
    PatchPositions,
    Tensor,
    activate,
    elaborate,
    entry,
)

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(0)


def draw(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def run(block: type[Block], name: str, inputs: list[Any], weights: Any = None, **generics: Any) -> Any:
    """An entry on the reference backend in f64."""
    model = nest.load(block, backend="reference", precision="f64", weights=weights, **generics)
    return np.asarray(model.run_entry(name, inputs), np.float64)


class Resized(Block):
    Old: Dim
    New: Dim

    def build(self) -> None:
        self.resize = CubicResize(self.Old, self.New)

    @entry
    def forward(self, x: Float32[Tensor, "Old N D"]) -> Float32[Tensor, "New N D"]:
        return self.resize(x)


@pytest.mark.parametrize(("old", "new"), [(37, 16), (5, 12), (7, 7), (2, 9), (9, 2), (1, 4)])
def test_cubic_resizing_is_torch_s(old: int, new: int) -> None:
    x = draw(old, 3, 2)
    wanted = F.interpolate(
        torch.from_numpy(x).double().permute(2, 0, 1)[None],
        size=(new, 3),
        mode="bicubic",
        align_corners=False,
    )
    found = run(Resized, "forward", [x], Old=old, New=new)
    np.testing.assert_allclose(found, wanted[0].permute(1, 2, 0).numpy(), atol=1e-6)


class Positions(Block):
    Grid: Dim
    Rows: Dim
    Columns: Dim
    D: Dim
    T: DType

    def build(self) -> None:
        self.table = PatchPositions(self.Grid, self.Rows, self.Columns, self.D, self.T, prefix=2)

    @entry
    def forward(self, x: Float[Tensor, "D"]) -> Float[Tensor, "Rows*Columns+2 D"]:
        return self.table() + x


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (5, 8), (3, 5), (7, 4)])
def test_positions_are_interpolated_over_both_sides_and_others_left_alone(rows: int, columns: int) -> None:
    table = draw(27, 3)
    found = run(
        Positions,
        "forward",
        [np.zeros(3, np.float32)],
        {"table.weight": table},
        Grid=5,
        Rows=rows,
        Columns=columns,
        D=3,
    )
    grid = torch.from_numpy(table[2:]).double().reshape(1, 5, 5, 3).permute(0, 3, 1, 2)
    wanted = F.interpolate(grid, size=(rows, columns), mode="bicubic", align_corners=False)
    np.testing.assert_array_equal(found[:2], table[:2])
    np.testing.assert_allclose(found[2:], wanted.permute(0, 2, 3, 1).reshape(-1, 3).numpy(), atol=1e-6)
    if rows == columns == 5:
        np.testing.assert_array_equal(found, table)


class Patches(Block):
    Height: Dim
    Width: Dim
    T: DType

    def build(self) -> None:
        self.embed = PatchEmbedding(self.Height, self.Width, 2, 3, 4, self.T)

    @entry
    def forward(self, x: Float[Tensor, "B 2 Height Width"]) -> Float[Tensor, "B Height//3*(Width//3) 4"]:
        return self.embed(x)


def test_patches_are_a_convolution_s() -> None:
    x, weight, bias = draw(2, 2, 6, 9), draw(4, 2, 3, 3), draw(4)
    found = run(Patches, "forward", [x], {"embed.weight": weight, "embed.bias": bias}, Height=6, Width=9)
    given = [torch.from_numpy(a).double() for a in (x, weight, bias)]
    np.testing.assert_allclose(
        found, F.conv2d(*given, stride=3).flatten(2).transpose(1, 2).numpy(), atol=1e-6
    )


def test_a_picture_that_is_no_whole_number_of_patches_is_refused() -> None:
    with pytest.raises(DefinitionError, match="Width"):
        elaborate(Patches, Height=6, Width=10)


class Normed(Block):
    C: Dim
    T: DType

    def build(self) -> None:
        self.norm = BatchNorm(self.C, self.T, eps=1e-3)

    @entry
    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        return activate(self.norm(x), "quick_gelu")


def test_batch_norm_has_stored_statistics() -> None:
    x = draw(2, 3, 4, 5)
    stored = {"weight": draw(3), "bias": draw(3), "running_mean": draw(3), "running_var": draw(3) ** 2}
    found = run(Normed, "forward", [x], {f"norm.{n}": a for n, a in stored.items()}, C=3)
    t = {n: torch.from_numpy(a).double() for n, a in stored.items()}
    y = F.batch_norm(
        torch.from_numpy(x).double(), t["running_mean"], t["running_var"], t["weight"], t["bias"], eps=1e-3
    )
    np.testing.assert_allclose(found, (y * torch.sigmoid(1.702 * y)).numpy(), atol=1e-6)


def test_statistics_are_not_trained() -> None:
    model = nest.load(Normed, backend="torch", weights=None, C=3)
    assert {n for n, _ in model.named_parameters()} == {"norm.weight", "norm.bias"}
    assert {n for n, _ in model.named_buffers()} == {"norm.running_mean", "norm.running_var"}


def test_an_activation_that_there_is_not() -> None:
    class Odd(Block):
        T: DType

        @entry
        def forward(self, x: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
            return activate(x, "swish")

    with pytest.raises(DefinitionError, match=r"quick_gelu.*'swish'"):
        elaborate(Odd, T="f32")

"""Fusing on definitions that only look like the patterns: they give what the exact plan gives, fused or not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import nest
from nest.backends.torch.module import TorchModel
from nest.ir.plan import plan
from nest.layers import Block, Dim, DType, Embedding, Float, Int32, LayerNorm, Linear, Tensor, entry
from nest.layers.ops import cast, maximum, peak, silu, slice, take

IDS, POS = np.array([3, -1, 7], np.int32), np.array([2, 0, 1], np.int32)
X = np.random.default_rng(0).standard_normal((3, 2, 8)).astype(np.float32)


class LookUps(Block):
    """Rows of tables, clamped or not, for each row or for all."""

    D: Dim
    Vocab: Dim
    T: DType

    def build(self) -> None:
        self.words = Embedding(self.Vocab, self.D, self.T)
        self.places = Embedding(self.Vocab, self.D, self.T)

    @entry
    def both_clamped(self, ids: Int32[Tensor, "B"], pos: Int32[Tensor, "B"]) -> Float[Tensor, "B 1 D"]:
        B = ids.shape[0]
        first = take(self.words.weight, maximum(ids, 0).reshape(B, 1))
        return first + take(self.places.weight, maximum(pos, 0).reshape(B, 1))

    @entry
    def one_place_for_all(self, ids: Int32[Tensor, "B"], pos: Int32[Tensor, "1"]) -> Float[Tensor, "B 1 D"]:
        B = ids.shape[0]
        return take(self.words.weight, maximum(ids, 0).reshape(B, 1)) + take(
            self.places.weight, pos.reshape(1, 1)
        )


class Heads(Block):
    """Largest products of rows that are one, two or rounded."""

    D: Dim
    Vocab: Dim
    T: DType

    def build(self) -> None:
        self.norm = LayerNorm(self.D, self.T)
        self.head = Linear(self.D, self.Vocab, self.T, bias=False)

    @entry
    def of_two_rows(self, x: Float[Tensor, "B 2 D"]) -> Int32[Tensor, "2*B"]:
        B = x.shape[0]
        return peak(cast(self.head(self.norm(x)).reshape(2 * B, self.Vocab), "f32"))[0]

    @entry
    def rounded(self, x: Float[Tensor, "B 1 D"]) -> Int32[Tensor, "B"]:
        B = x.shape[0]
        rounded = cast(cast(self.head(self.norm(x)), "f16"), "f32")
        return peak(rounded.reshape(B, self.Vocab))[0]


class Halves(Block):
    """Gated pairs of halves in either order, and a norm that two products read."""

    D: Dim
    T: DType

    def build(self) -> None:
        self.norm = LayerNorm(self.D, self.T)
        self.up = Linear(self.D, 2 * self.D, self.T)
        self.down = Linear(self.D, self.D, self.T)

    @entry
    def first_acted(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        y = self.up(self.norm(x))
        return slice(y, 2, self.D, 2 * self.D) * silu(slice(y, 2, 0, self.D))

    @entry
    def second_acted(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        y = self.up(self.norm(x))
        return slice(y, 2, 0, self.D) * silu(slice(y, 2, self.D, 2 * self.D))

    @entry
    def shared(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        h = self.norm(x)
        return h + self.down(h)


CALLS: list[tuple[type[Block], str, list[Any]]] = [
    (LookUps, "both_clamped", [IDS, POS]),
    (LookUps, "one_place_for_all", [IDS, POS[:1]]),
    (Heads, "of_two_rows", [X]),
    (Heads, "rounded", [X[:, :1]]),
    (Halves, "first_acted", [X]),
    (Halves, "second_acted", [X]),
    (Halves, "shared", [X]),
]


def loaded(block: type[Block]) -> Any:
    sizes = {"D": 8} | ({} if block is Halves else {"Vocab": 8})
    return nest.load(block, backend="torch", weights=None, seed=1, dtype="f32", **sizes)


@pytest.mark.parametrize(("block", "name", "given"), CALLS, ids=[name for _, name, _ in CALLS])
def test_what_it_gives_is_what_exact_gives(
    block: type[Block], name: str, given: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TorchModel, "_changes", lambda self: ("pack", "fuse"))
    model = loaded(block)
    exact, fast = (model.new_session(plan=p).run_entry(name, given) for p in ("exact", "fast"))
    np.testing.assert_allclose(fast.detach().numpy(), exact.detach().numpy(), rtol=1e-5, atol=1e-6)


def ops(block: type[Block], name: str) -> Counter[str]:
    program = plan(loaded(block).program, "fast", changes=("pack", "fuse")).program
    return Counter(n.op for n in program.entries[name].nodes)


def test_what_only_looks_alike_is_left() -> None:
    assert ops(LookUps, "one_place_for_all")["add"] == 1
    assert ops(Heads, "of_two_rows")["peak_of_linear"] == 0
    assert ops(Heads, "rounded")["peak_of_linear"] == 0
    assert ops(Halves, "second_acted")["mul"] == 1
    assert ops(Halves, "shared")["layer_norm"] == 1


def test_what_is_alike_is_fused() -> None:
    assert ops(LookUps, "both_clamped").keys() == {"param", "maximum", "embed_tokens"}
    assert ops(Halves, "first_acted").keys() == {"param", "norm_linear"}

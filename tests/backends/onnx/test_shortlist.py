"""The largest of a head's products by a short list: always that of the full product, whatever the input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.backends.onnx import graph
from nest.backends.onnx.quantized import MOST, OFFSET, STEPS, quantized
from nest.backends.onnx.rules import shortlist
from nest.backends.onnx.runtime import Runtime
from nest.layers import Block, Dim, Float32, Int32, Param, Tensor, entry, linear
from nest.layers.ops import peak, take

ROWS, WIDTH = 900, 48
RNG = np.random.default_rng(3)
HEAD = (RNG.normal(0, 0.05, (ROWS, WIDTH)) * RNG.lognormal(0, 0.6, WIDTH)).astype(np.float32)
# Near twins, more of them than a list holds: which is largest is decided far behind the eighth bit.
HEAD[500:560] = HEAD[500] + RNG.normal(0, 1e-6, (60, WIDTH)).astype(np.float32)
HEAD[700:703] = HEAD[700]
HEAD[800] = 0


class Head(Block):
    """A head whose likeliest row is asked for, and some rows of it."""

    Vocab: Dim
    D: Dim

    def build(self) -> None:
        self.head = Param("Vocab D", "f32")

    @entry
    def likeliest(
        self, x: Float32[Tensor, "B D"], bias: Float32[Tensor, "Vocab"], some: Int32[Tensor, "N"]
    ) -> tuple[Int32[Tensor, "B"], Float32[Tensor, "B"], Float32[Tensor, "B"], Float32[Tensor, "B N"]]:
        products = linear(x, self.head)
        return *peak(products, bias), take(products, some, axis=1)

    @entry
    def own(
        self, x: Float32[Tensor, "B 1 D"], bias: Float32[Tensor, "B Vocab"]
    ) -> tuple[Int32[Tensor, "B"], Float32[Tensor, "B"], Float32[Tensor, "B"]]:
        return peak(linear(x, self.head).reshape(x.shape[0], self.head.shape[0]), bias)


@pytest.fixture(autouse=True)
def _drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same inputs whichever tests came before."""
    monkeypatch.setattr(f"{__name__}.RNG", np.random.default_rng(7))


@pytest.fixture(scope="module")
def session() -> Any:
    model = nest.load(Head, Vocab=ROWS, D=WIDTH, backend="onnx", weights={"head": HEAD})
    return model.new_session(plan="fast")


def right(found: Any, x: Any, bias: Any) -> None:
    place, largest, mass = found[:3]
    y = x.astype(np.float64) @ HEAD.T.astype(np.float64) + bias
    single = x @ HEAD.T + bias
    for row, at in enumerate(place):
        # As large as any, but for what a sum in f32 rounds off.
        assert y[row, at] >= y[row].max() - 4e-6 * np.abs(x[row]).max()
        assert abs(largest[row] - single[row, at]) <= 1e-5 * max(1, abs(single[row, at]))
    np.testing.assert_allclose(mass, np.exp(y - y.max(1, keepdims=True)).sum(1), rtol=0.05)


def inputs(kind: str) -> Any:
    x = RNG.normal(0, 1, WIDTH)
    toward = HEAD[RNG.integers(0, ROWS)] / np.linalg.norm(HEAD, axis=1).mean()
    made = {
        "sure": 40 * toward + x,
        "flat": 0.01 * x,
        "one large element": np.where(np.arange(WIDTH) == RNG.integers(0, WIDTH), 300 * x, x),
        "twins": 30 * HEAD[500] / np.linalg.norm(HEAD[500]),
        "zero": 0 * x,
    }[kind]
    return made.astype(np.float32)[None]


@pytest.mark.parametrize("kind", ["sure", "flat", "one large element", "twins", "zero"])
def test_it_is_the_largest_of_all(session: Any, kind: str) -> None:
    some = np.array([3, 899, 500], np.int32)
    for _ in range(400):
        x = inputs(kind)
        bias = np.where(RNG.random(ROWS) < RNG.choice([0, 0.5, 0.99]), -np.inf, 0).astype(np.float32)
        bias[RNG.integers(0, ROWS)] = 0
        found = session.likeliest(x, bias, some)
        right(found, x, bias)
        np.testing.assert_allclose(found[3], x @ HEAD[some].T, rtol=2e-5, atol=1e-4)


def test_the_first_of_equal_rows(session: Any) -> None:
    x = (50 * HEAD[700] / np.linalg.norm(HEAD[700]))[None]
    bias = np.full(ROWS, -np.inf, np.float32)
    bias[[701, 700, 702, 5]] = 0
    assert session.likeliest(x, bias, np.array([0], np.int32))[0] == [700]


def test_rows_with_a_bias_of_their_own(session: Any) -> None:
    for rows in (1, 3):
        x = np.concatenate([inputs("sure") for _ in range(rows)])[:, None]
        bias = np.where(RNG.random((rows, ROWS)) < 0.3, -np.inf, 0).astype(np.float32)
        right(session.own(x, bias), x[:, 0], bias)


def test_numbers_that_are_none_are_seen(session: Any) -> None:
    mass = session.own(np.full((1, 1, WIDTH), np.nan, np.float32), np.zeros((1, ROWS), np.float32))[2]
    assert np.isnan(mass).all()


def test_no_product_is_further_off_than_the_bound() -> None:
    parts = quantized(HEAD)
    kept = parts["values"].T.astype(np.float64) * parts["scales"][:, None]
    np.testing.assert_allclose(parts["offsets"], kept.sum(1) * OFFSET, rtol=1e-5)
    for kind in ("sure", "flat", "one large element", "twins"):
        for _ in range(100):
            x = inputs(kind)[0].astype(np.float64)
            even = x * parts["columns"]
            step = np.abs(even).max() / STEPS
            taken = np.rint(even / step) * step
            off = np.abs(kept @ taken - HEAD.astype(np.float64) @ x)
            lost, length = parts["lengths"]
            bound = lost * np.linalg.norm(even) + length * np.linalg.norm(even - taken)
            assert (off <= bound * (1 + 1e-6)).all()


def test_pairs_of_products_fit_16_bits() -> None:
    """Beyond them, the runtime's sums of u8 times i8 saturate on processors with AVX2 and without VNNI."""
    assert 2 * (OFFSET + STEPS) * MOST < 2**15
    assert OFFSET >= STEPS
    assert np.abs(quantized(HEAD)["values"].astype(int)).max() <= MOST


@pytest.mark.parametrize(("rows", "width"), [(1, 1), (8, 1), (17, 2), (32, 4), (33, 4), (34, 1)])
def test_heads_about_as_long_as_the_list(rows: int, width: int) -> None:
    alike(RNG.normal(0, 1, (rows, width)), RNG.normal(0, 1, (3, width)))


@pytest.mark.parametrize("value", [0, 1e-44, 1e-25, 1e10, 1e30, 1e38, np.inf, -np.inf, np.nan])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_weights_of_any_size(value: float) -> None:
    x = RNG.normal(0, 1, (2, WIDTH))
    for where in ((77, 5), 77, (slice(None), 5), slice(None)):
        head = HEAD.copy()
        head[where] = value
        alike(head, x)


@pytest.mark.parametrize("value", [1e-44, 1e-30, 1e20, 1e30, np.inf, np.nan])
def test_inputs_of_any_size(value: float) -> None:
    alike(HEAD, np.where(np.arange(WIDTH) == 3, value, RNG.normal(0, 1, (2, WIDTH))))
    alike(HEAD, RNG.normal(0, 1, (2, WIDTH)) * value)


def test_the_sum_of_products_that_are_weighed_far_too_large() -> None:
    """Of thousands, a hundredth is more than exp can take."""
    for _ in range(20):
        sizes = np.exp(RNG.normal(0, 3, (300, 1))) * np.exp(RNG.normal(0, 3, 12))
        alike(RNG.normal(0, 1, (300, 12)) * sizes, RNG.normal(0, 1, (4, 12)))


def test_no_rows(session: Any) -> None:
    found = session.likeliest(
        np.zeros((0, WIDTH), np.float32), np.zeros(ROWS, np.float32), np.zeros(1, np.int32)
    )
    assert [len(f) for f in found] == [0, 0, 0, 0]


def test_nothing_is_allowed(session: Any) -> None:
    found = session.own(inputs("sure")[:, None], np.full((1, ROWS), -np.inf, np.float32))
    assert found[1] == -np.inf
    assert np.isnan(found[2])


def alike(head: Any, x: Any) -> None:
    """The fast plan gives what the exact one does."""
    model = nest.load(
        Head, Vocab=head.shape[0], D=head.shape[1], backend="onnx", weights={"head": head.astype(np.float32)}
    )
    given = x.astype(np.float32)[:, None], np.zeros((len(x), head.shape[0]), np.float32)
    exact, fast = (model.new_session(plan=plan).own(*given) for plan in ("exact", "fast"))
    if not np.isfinite(exact[1]).all():
        assert not np.isfinite(fast[2]).all()
        return
    np.testing.assert_array_equal(fast[0], exact[0])
    np.testing.assert_allclose(fast[1], exact[1], rtol=1e-3)
    np.testing.assert_allclose(fast[2], exact[2], rtol=0.05)


def test_most_is_decided_by_the_list(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the full product taken away, sure inputs still have their result, and twins have none."""
    monkeypatch.setattr(shortlist, "_products", _nothing)
    monkeypatch.setattr(session.runtime.cache, "get", lambda key: None)
    monkeypatch.setattr(session.runtime.cache, "put", lambda *given: None)
    runtime = session.runtime
    cut = Runtime(runtime.program, runtime.weights, runtime.options, runtime.plan)
    cut.cache = runtime.cache
    run = cut.entry("own").session.run
    bias = np.zeros((1, ROWS), np.float32)

    def place(x: Any) -> int:
        return int(run(None, {"x": x[:, None], "bias": bias})[0][0])

    sure = [inputs("sure") for _ in range(200)]
    listed = [place(x) == int((x @ HEAD.T).argmax()) for x in sure]
    assert np.mean(listed) > 0.9
    assert place(inputs("twins")) == 0


def _nothing(low: Any, x: Any, head: Any) -> Any:
    """Zeros for every product."""
    products = low.op("MatMul", x, low.op("Transpose", head, perm=(1, 0)))
    zeros = low.op("Mul", products, low.constant(0, "f32"))
    return graph.Tensor((x.shape[0], head.shape[0]), x.dtype, zeros)

"""Rules as a set: none is missing, types stay, half precision accumulates wider, nothing warns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nest.backends.reference.rules import RULES
from nest.layers import ops

COMPOSED = {"stack"}  # written over other ops
OF_PASSES = {"quantized_linear"}  # in no definition
INTERPRETED = {"while_loop"}  # the interpreter's own


def test_every_op_has_a_rule_and_every_rule_an_op() -> None:
    assert set(ops.__all__) - COMPOSED - INTERPRETED == set(RULES) - OF_PASSES


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape) + len(shape)).normal(size=shape)


X = _random(2, 4, 3)
CHANNELS = _random(4)
LAST = _random(3)
POSITIVE = np.abs(X) + 0.5

UNARY = ["neg", "abs", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "relu"]

# op -> how to call its rule on floats of a dtype, given a converter to that dtype.
CALLS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    **{
        op: (lambda f, op=op: RULES[op](f(POSITIVE)))
        for op in UNARY
    },
    **{
        op: (lambda f, op=op: RULES[op](f(POSITIVE), f(np.abs(LAST))))
        for op in ["add", "sub", "mul", "div", "power", "maximum", "minimum"]
    },
    "gelu": lambda f: RULES["gelu"](f(X), approximate=False),
    "where": lambda f: RULES["where"](X > 0, f(X), 0.1),
    "reshape": lambda f: RULES["reshape"](f(X), shape=(4, 6)),
    "permute": lambda f: RULES["permute"](f(X), axes=(2, 0, 1)),
    "concat": lambda f: RULES["concat"](f(X), f(X), axis=1),
    "slice": lambda f: RULES["slice"](f(X), axis=1, start=1, stop=3, step=1),
    "pad": lambda f: RULES["pad"](f(X), axis=2, before=1, after=2, value=0.5),
    "broadcast_to": lambda f: RULES["broadcast_to"](f(X), shape=(5, 2, 4, 3)),
    "take": lambda f: RULES["take"](f(X), np.array([[2, 0]], np.int32), axis=2),
    "take_along": lambda f: RULES["take_along"](f(X), np.zeros((2, 1, 3), np.int32), axis=1),
    "scatter_set": lambda f: RULES["scatter_set"](f(X), np.ones((2, 1, 3), np.int32), f(X[:, :1]), axis=1),
    "linear": lambda f: RULES["linear"](f(X), f(_random(5, 3)), f(_random(5))),
    "quantized_linear": lambda f: RULES["quantized_linear"](
        f(X), np.ones((3, 5), np.int8), np.ones(5, np.float32), f(_random(5))
    ),
    "expert_linear": lambda f: RULES["expert_linear"](f(X[0]), f(_random(2, 5, 3)), np.array([1, 0, 1, 1])),
    "einsum": lambda f: RULES["einsum"](f(X), f(X), equation="bci,bdi->bcd"),
    "conv": lambda f: RULES["conv"](
        f(X), f(_random(6, 2, 2)), f(_random(6)), stride=(1,), padding=(1,), groups=2
    ),
    "max_pool": lambda f: RULES["max_pool"](f(X[None]), kernel=2, stride=1, padding=1),
    "layer_norm": lambda f: RULES["layer_norm"](f(X), f(LAST), f(LAST), eps=1e-5),
    "rms_norm": lambda f: RULES["rms_norm"](f(X), f(LAST), eps=1e-5),
    "group_norm": lambda f: RULES["group_norm"](f(X), f(CHANNELS), f(CHANNELS), groups=2, eps=1e-5),
    "batch_norm": lambda f: RULES["batch_norm"](f(X), *(f(np.abs(CHANNELS)) for _ in range(4)), eps=1e-5),
    **{
        op: (lambda f, op=op: RULES[op](f(X), axes=(0, 2), keepdims=False))
        for op in ("sum", "mean", "max", "min", "logsumexp")
    },
    "softmax": lambda f: RULES["softmax"](f(X), axis=1),
    "cumsum": lambda f: RULES["cumsum"](f(X), axis=1),
    "top_k": lambda f: RULES["top_k"](f(X), k=2)[0],
    "peak": lambda f: RULES["peak"](f(X), f(X))[2],
    "attention": lambda f: RULES["attention"](
        f(_random(1, 2, 3, 4)), f(_random(1, 2, 5, 4)), f(_random(1, 2, 5, 6)), None, None, None, None, None,
        causal=True, window=None, scale=None, softcap=None,
    ),
    "rope": lambda f: RULES["rope"](
        f(_random(1, 2, 3, 6)), np.array([4]), f(np.array([1.0, 0.25])), layout="half", scale=1.0
    ),
}  # fmt: skip
FREE = {  # no float comes in, or bools or integers come out
    "any", "argmax", "cast", "constant", "equal", "floordiv", "full", "iota", "less", "less_equal",
    "logical_and", "logical_not", "logical_or", "mod",
}  # fmt: skip


def test_the_table_of_calls_is_complete() -> None:
    assert set(CALLS) | FREE == set(RULES)
    assert not set(CALLS) & FREE


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("op", list(CALLS))
def test_a_rule_keeps_the_type_and_computes_the_same_in_each(op: str, dtype: Any) -> None:
    result = CALLS[op](lambda x: np.asarray(x, dtype))
    assert isinstance(result, np.ndarray)
    assert result.dtype == dtype
    rounded = CALLS[op](lambda x: np.asarray(x, dtype).astype(np.float64))
    limit = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 0.0}[dtype]
    assert np.abs(result - rounded).max() <= limit * max(1.0, np.abs(rounded).max())


@pytest.mark.parametrize("op", [*CALLS])
def test_rules_leave_their_inputs_alone(op: str) -> None:
    given: list[Any] = []

    def frozen(x: Any) -> Any:
        array = np.array(x, np.float64)
        array.flags.writeable = False
        given.append(array)
        return array

    CALLS[op](frozen)
    assert given


@pytest.mark.parametrize(
    ("op", "x", "expected"),
    [
        ("log", [0.0, -1.0], [-np.inf, np.nan]),
        ("sqrt", [-1.0, np.inf], [np.nan, np.inf]),
        ("rsqrt", [0.0, np.inf], [np.inf, 0.0]),
        ("exp", [1e4, -1e4], [np.inf, 0.0]),
        ("sigmoid", [1e4, -1e4, np.nan], [1.0, 0.0, np.nan]),
        ("erf", [np.inf, -np.inf, np.nan], [1.0, -1.0, np.nan]),
        ("silu", [1e4, -1e4], [1e4, 0.0]),
    ],
)
def test_infinities_and_nan_pass_without_a_warning(op: str, x: list[float], expected: list[float]) -> None:
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(RULES[op](np.array(x, dtype)), np.array(expected, dtype))


@pytest.mark.parametrize("op", ["sum", "mean", "cumsum", "linear", "einsum"])
def test_half_precision_accumulates_in_single(op: str) -> None:
    """4096 ones and thousandths: half precision would stop counting at 2048."""
    x = np.full((1, 4096), 1.0009765625, np.float16)
    calls: dict[str, Callable[[], Any]] = {
        "sum": lambda: RULES["sum"](x, axes=(1,), keepdims=False),
        "mean": lambda: RULES["mean"](x, axes=(1,), keepdims=False) * 4096.0,
        "cumsum": lambda: RULES["cumsum"](x, axis=1)[:, -1],
        "linear": lambda: RULES["linear"](x, np.ones_like(x), None)[:, 0],
        "einsum": lambda: RULES["einsum"](x, equation="bi->b"),
    }
    np.testing.assert_array_equal(calls[op](), [np.float16(4096 * 1.0009765625)])


def test_results_of_rank_0_are_arrays() -> None:
    x = np.array([3.0, 1.0], np.float32)
    for result in (
        RULES["sum"](x, axes=(0,), keepdims=False),
        RULES["argmax"](x, axis=0),
        RULES["neg"](x[0]),
    ):
        assert isinstance(result, np.ndarray)
        assert result.shape == ()

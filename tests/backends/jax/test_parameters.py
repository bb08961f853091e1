"""How parameters are kept and drawn: `param_dtype` beside `dtype`, and `rngs` in place of weights."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nest.backends.generated import load_generated
from nest.backends.jax.nnx.source import nnx_module
from nest.errors import CallError
from nest.ir.inventory import parameters
from nest.layers import elaborate
from nest.loading import load

from .conftest import TINY, mel_of, tokens_of
from .test_nnx_model import Layers

# One layer each, as compiling costs more than computing.
SMALL = {**TINY, "EncoderLayers": 1, "DecoderLayers": 1}


def values(model: Any) -> dict[str, Any]:
    if hasattr(model, "params"):
        return dict(model.params)
    return {".".join(map(str, p)): v.get_raw_value() for p, v in nnx.to_flat_state(nnx.state(model))}


def same(one: Any, other: Any) -> None:
    one, other = (values(m) if hasattr(m, "program") else m for m in (one, other))
    assert one.keys() == other.keys()
    for path, x in one.items():
        np.testing.assert_array_equal(np.asarray(x, np.float32), np.asarray(other[path], np.float32), path)


@pytest.fixture(scope="module")
def halves() -> Callable[..., Any]:
    """The small model in bf16, and with its parameters kept in f32."""
    made: dict[Any, Any] = {}

    def model(backend: str, kept: str | None) -> Any:
        if (backend, kept) not in made:
            options: dict[str, Any] = {} if kept is None else {"param_dtype": kept}
            made[backend, kept] = load(
                "whisper-tiny", backend=backend, weights=None, dtype="bf16", **options, **SMALL
            )
        return made[backend, kept]

    return model


@pytest.mark.parametrize("backend", ["nnx", "jax"])
def test_parameters_are_kept_in_one_type_and_computed_in_another(
    backend: str, halves: Callable[..., Any]
) -> None:
    model, rounded = halves(backend, "f32"), halves(backend, None)
    assert {x.dtype for x in values(model).values()} == {jnp.dtype("float32")}
    assert {x.dtype for x in values(rounded).values()} == {jnp.dtype("bfloat16")}
    audio = model.encode(mel_of(2))
    assert audio.dtype == jnp.bfloat16
    np.testing.assert_array_equal(audio.astype("f4"), rounded.encode(mel_of(2)).astype("f4"))
    logits = [m.decode(tokens_of(2, 4), audio).astype("f4") for m in (model, rounded)]
    np.testing.assert_array_equal(*logits)


def test_a_small_step_is_not_lost_to_rounding(halves: Callable[..., Any]) -> None:
    model = nnx.clone(halves("nnx", "f32"))
    audio = model.encode(mel_of(1))

    def loss(model: Any) -> Any:
        return -jax.nn.log_softmax(model.decode(tokens_of(1, 4), audio).astype("f4"))[..., 3].mean()

    gradients = nnx.jit(nnx.grad(loss))(model)
    assert {x.dtype for x in values(gradients).values()} == {jnp.dtype("float32")}
    before = values(model)
    nnx.update(model, jax.tree.map(lambda p, g: p - 1e-4 * g, nnx.state(model, nnx.Param), gradients))
    norm = "decoder_norm.weight"  # ones, beside which a bf16 sees no step of 1e-4
    moved = np.abs(values(model)[norm] - before[norm])
    assert 0 < moved.max() < 1e-3
    assert (before[norm].astype("bfloat16") == values(model)[norm].astype("bfloat16")).all()


def test_blocks_alone_compute_in_the_program_s_type(halves: Callable[..., Any]) -> None:
    model, rounded = (halves("nnx", kept) for kept in ("f32", None))
    x = jnp.asarray(np.random.default_rng(0).standard_normal((1, 6, SMALL["D"])), jnp.bfloat16)
    results = [m.encoder_layers[0](x) for m in (model, rounded)]
    assert results[0].dtype == jnp.bfloat16
    np.testing.assert_array_equal(*(r.astype("f4") for r in results))
    assert "self.token_embedding[...].astype(self.T)" in model.source
    assert "astype(self.T)" not in rounded.source


@pytest.mark.parametrize("backend", ["nnx", "jax"])
def test_every_layer_takes_parameters_of_another_type(backend: str) -> None:
    rng = np.random.default_rng(0)
    weights = {
        n: 1.0 + 0.3 * rng.standard_normal(s.shape).astype(np.float32)
        for n, s in parameters(elaborate(Layers, C=4, T="bf16")).items()
    }
    rounded, model = (
        load(Layers, backend=backend, weights=weights, C=4, T="bf16", **options)
        for options in ({}, {"param_dtype": "f32"})
    )
    results = [m.embed(np.arange(10).reshape(2, 5)) for m in (model, rounded)]
    assert results[0].dtype == jnp.bfloat16
    np.testing.assert_array_equal(*(r.astype("f4") for r in results))


@pytest.mark.parametrize("backend", ["nnx", "jax"])
def test_a_pickled_model_keeps_them_so(backend: str, halves: Callable[..., Any]) -> None:
    model = halves(backend, "f32")
    again = pickle.loads(pickle.dumps(model))
    assert {x.dtype for x in values(again).values()} == {jnp.dtype("float32")}
    same(again, model)
    np.testing.assert_array_equal(again.encode(mel_of(2)).astype("f4"), model.encode(mel_of(2)).astype("f4"))


def test_a_type_that_is_no_float_is_refused() -> None:
    with pytest.raises(CallError) as error:
        load("whisper-tiny", backend="nnx", weights=None, param_dtype="i8", **SMALL)
    assert str(error.value) == (
        "param_dtype='i8' is no float type; parameters are kept in 'f32', 'f16' or 'bf16'."
    )
    with pytest.raises(CallError, match=r"param_dtype= belongs to jax and nnx, and the backend is torch\."):
        load("whisper-tiny", backend="torch", weights=None, param_dtype="f32", **SMALL)


def test_rngs_draw_as_the_module_s_constructor_does() -> None:
    model = load("whisper-tiny", backend="nnx", weights=None, rngs=nnx.Rngs(3), **SMALL)
    made = nnx_module(model.program)
    own = getattr(load_generated(made.text, "alone"), made.root)(**made.arguments(jnp), rngs=nnx.Rngs(3))
    for path, x in values(own).items():
        np.testing.assert_allclose(values(model)[path], x, atol=1e-6, err_msg=path)
    assert float(jnp.std(model.token_embedding[...])) == pytest.approx(0.02, rel=0.1)


def test_rngs_go_on_from_model_to_model() -> None:
    rngs = nnx.Rngs(0)
    first, second = (load("whisper-tiny", weights=None, rngs=rngs, **SMALL) for _ in range(2))
    assert first.backend == "nnx"  # which alone takes them
    path = "token_embedding"
    assert np.abs(values(first)[path] - values(second)[path]).max() > 0.01
    same(first, load("whisper-tiny", backend="nnx", weights=None, rngs=nnx.Rngs(0), **SMALL))


def test_what_jax_alone_takes_chooses_it() -> None:
    assert load("whisper-tiny", weights=None, param_dtype="f32", **SMALL).backend == "jax"


def test_rngs_draw_in_the_type_that_is_kept() -> None:
    options: dict[str, Any] = {"backend": "nnx", "weights": None, "dtype": "bf16", **SMALL}
    kept = values(load("whisper-tiny", rngs=nnx.Rngs(1), param_dtype="f32", **options))["token_embedding"]
    rounded = values(load("whisper-tiny", rngs=nnx.Rngs(1), **options))["token_embedding"]
    assert (kept.dtype, rounded.dtype) == (jnp.float32, jnp.bfloat16)
    assert (kept != rounded).any()
    np.testing.assert_array_equal(kept.astype("bfloat16").astype("f4"), rounded.astype("f4"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rngs": 0}, "rngs= is an nnx.Rngs, such as nnx.Rngs(0), and 0 was given."),
        (
            {"rngs": nnx.Rngs(0), "seed": 3},
            "rngs= draws random weights, so it goes with weights=None and without a seed; seed= says otherwise.",
        ),
        (
            {"rngs": nnx.Rngs(0), "weights": "pinned"},
            "rngs= draws random weights, so it goes with weights=None and without a seed; weights= says otherwise.",
        ),
        ({"rngs": nnx.Rngs(0), "backend": "jax"}, "rngs= belongs to nnx, and the backend is jax."),
    ],
)
def test_what_goes_with_rngs(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CallError) as error:
        load("whisper-tiny", **{"backend": "nnx", "weights": None, **options}, **SMALL)
    assert str(error.value) == message

"""The jax front: pure functions over a pytree, export, placement, the compile cache."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nest.backends.jax import compile_cache
from nest.backends.jax.model import build
from nest.errors import CallError
from nest.ir.inventory import parameters
from nest.layers import Block, DType, Float, Tensor, entry
from nest.loading import load

from .conftest import TINY, mel_of, tokens_of


def test_parameters_are_a_flat_pytree_by_definition_path(make: Any) -> None:
    model = make("jax")
    specs = parameters(model.program)
    assert list(model.params) == list(specs)
    assert all(model.params[n].shape == spec.shape for n, spec in specs.items())
    assert len(jax.tree.leaves(model.params)) == len(specs)


def test_an_entry_as_a_pure_function(make: Any, oracle: Any) -> None:
    model = make("jax")
    encode = jax.jit(model.function("encode"))
    np.testing.assert_allclose(encode(model.params, mel_of(2)), oracle.encode(mel_of(2)), atol=1e-4)
    states = model.new_states(Batch=2)
    _, states = jax.jit(model.function("listen"))(model.params, states, mel_of(2))
    tokens = tokens_of(2, 3)
    logits, after = jax.jit(model.function("prefill"))(model.params, states, tokens, np.array([3, 3]))
    session = model.new_session(Batch=2)
    session.listen(mel_of(2))
    np.testing.assert_allclose(logits, session.prefill(tokens), atol=1e-5)
    assert after.keys() == states.keys() == session.state.keys()
    assert not any(x.is_deleted() for x in states.values())


def test_gradients_reach_every_parameter_that_an_entry_uses(make: Any) -> None:
    model = make("jax")
    audio = model.encode(mel_of(1))
    decode = model.function("decode")

    def loss(params: Any, audio: Any) -> Any:
        logits = decode(params, tokens_of(1, 5), audio)
        return -jax.nn.log_softmax(logits)[..., 3].mean()

    by_params, by_audio = jax.jit(jax.grad(loss, argnums=(0, 1)))(model.params, audio)
    for path, gradient in by_params.items():
        used = path.startswith(("decoder", "token_embedding"))
        assert bool((gradient != 0).any()) == used, path
        assert bool(jnp.isfinite(gradient).all()), path
    assert bool((by_audio != 0).any())


def test_a_vmapped_entry_is_its_rows(make: Any) -> None:
    model = make("jax")
    encode = model.function("encode")
    mels = np.stack([mel_of(1, 0), mel_of(1, 1)])
    together = jax.vmap(encode, (None, 0))(model.params, mels)
    np.testing.assert_allclose(together[1], model.encode(mels[1]), atol=1e-5)


def test_an_unknown_function_is_named(make: Any) -> None:
    with pytest.raises(CallError, match=r"whisper-tiny has no entry 'encod' \(did you mean 'encode'\?\)"):
        make("jax").function("encod")


def test_the_exact_plan_asks_for_the_highest_precision(make: Any) -> None:
    model = make("jax")
    text = str(jax.make_jaxpr(model.function("encode"))(model.params, mel_of(1)))
    products = [
        line for line in text.splitlines() if "dot_general[" in line or "conv_general_dilated[" in line
    ]
    assert products
    assert text.count("Precision.HIGHEST") >= len(products)
    assert "precision=None" not in text


@pytest.mark.parametrize("backend", ["jax", "nnx"])
def test_export_has_symbolic_generics(make: Any, backend: str) -> None:
    model = make(backend)
    params = dict(make("jax").params)
    exported = model.export("decode", platforms=("cpu", "cuda"))
    assert exported.platforms == ("cpu", "cuda")
    B, S, A = (exported.in_avals[-2].shape + exported.in_avals[-1].shape[1:2])[:3]
    assert [str(d) for d in (B, S, A)] == ["B", "S", "A"]
    again = jax.export.deserialize(exported.serialize())
    audio = np.asarray(model.encode(mel_of(2)))
    for count, frames in ((3, 11), (5, 4)):
        tokens = tokens_of(2, count)
        (logits,), written = again.call(params, {}, {}, tokens, audio[:, :frames])
        assert written == {}
        np.testing.assert_allclose(logits, model.decode(tokens, audio[:, :frames]), atol=2e-5)
    with pytest.raises(ValueError, match="S"):
        again.call(params, {}, {}, tokens_of(2, TINY["MaxTokens"] + 1), audio)


@pytest.mark.parametrize("backend", ["jax", "nnx"])
def test_export_of_a_cached_entry(make: Any, backend: str) -> None:
    model, params = make(backend), dict(make("jax").params)
    session = model.new_session(Batch=2, Capacity=9)
    session.listen(mel_of(2))
    states = session.state
    exported = model.export("prefill", Batch=2, Capacity=9)
    written = {n: x for n, x in states.items() if ".self_" in n}
    kept = {n: x for n, x in states.items() if n not in written}
    tokens = tokens_of(2, 4)
    (logits,), after = exported.call(params, kept, written, tokens, np.array([4, 4], np.int32))
    np.testing.assert_allclose(logits, session.prefill(tokens), atol=2e-5)
    assert after.keys() == written.keys()


def test_weights_in_another_type_are_put_in_the_program_s(weights: Any, oracle: Any) -> None:
    half = {n: x.astype(np.float16) for n, x in weights.items()}
    model = load("whisper-tiny", backend="jax", weights=half, **TINY)
    assert {str(x.dtype) for x in model.params.values()} == {"float32"}
    np.testing.assert_allclose(model.encode(mel_of(1)), oracle.encode(mel_of(1)), atol=0.05)


def test_the_model_keeps_its_own_copy_of_the_weights(weights: Any) -> None:
    given = {n: x.copy() for n, x in weights.items()}
    model = load("whisper-tiny", backend="jax", weights=given, **TINY)
    want = np.asarray(model.encode(mel_of(1)))
    for x in given.values():
        x[...] = np.nan
    np.testing.assert_array_equal(np.asarray(model.encode(mel_of(1))), want)


def test_a_device_that_is_not_there_is_named(make: Any) -> None:
    with pytest.raises(CallError, match="jax has no device 'tpu' here; it has cpu"):
        build(make("jax").program, {}, device="tpu")


class Double(Block):
    T: DType

    @entry
    def go(self, x: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
        return x * 2.0


@pytest.mark.parametrize("backend", ["jax", "nnx"])
def test_double_precision_is_refused_in_words(backend: str) -> None:
    with pytest.raises(CallError) as error:
        load(Double, backend=backend, weights=None, dtype="f64").go(np.ones(3))
    assert "'f64' was asked for" in str(error.value)
    assert "backend='reference' with precision='f64'" in str(error.value)


@pytest.mark.parametrize("backend", ["jax", "nnx"])
def test_a_model_without_parameters(backend: str) -> None:
    np.testing.assert_array_equal(load(Double, backend=backend, weights=None).go([1.0, 2.0]), [2.0, 4.0])


def test_the_compile_cache_is_nest_s_own_unless_jax_was_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("NEST_CACHE", str(tmp_path))
    assert compile_cache.use_compile_cache() is None
    assert jax.config.jax_compilation_cache_dir == before
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        folder = compile_cache.use_compile_cache()
        assert folder is not None
        assert folder.parent == tmp_path / "xla"
        assert jax.config.jax_compilation_cache_dir == str(folder)
        jax.config.update("jax_compilation_cache_dir", None)
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("NEST_CACHE", str(tmp_path / "file"))
        assert compile_cache.use_compile_cache() is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_compiled_code_outlives_the_process(tmp_path: Path) -> None:
    """A second process finds what the first compiled. Jax keeps only what took a second, so that is set to 0."""
    import os
    import subprocess
    import sys

    code = """
import jax
from jax._src import monitoring
hits = []
def listen(event, **kwargs):
    if event.endswith("/cache_hits"):
        hits.append(event)
monitoring.register_event_listener(listen)
import numpy as np
from nest.layers import Block, DType, Float, Tensor, entry, exp
from nest.loading import load
class Root(Block):
    T: DType
    @entry
    def go(self, x: Float[Tensor, "N"]) -> Float[Tensor, "N"]:
        return exp(x) * 2.0
load(Root, backend="jax", weights=None).go(np.ones(7))
print(len(hits))
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION")},
        "NEST_CACHE": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "PYTHONPATH": str(Path(compile_cache.__file__).parents[3]),
    }

    def hits() -> int:
        run = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
        )
        return int(run.stdout)

    assert hits() == 0
    assert hits() >= 1


def test_a_model_of_an_entry_is_pickled_and_copied(make: Any) -> None:
    model = make("jax")
    want = np.asarray(model.encode(mel_of(1)))
    again = pickle.loads(pickle.dumps(model))
    assert again.entry.name == "whisper-tiny"
    np.testing.assert_array_equal(np.asarray(again.encode(mel_of(1))), want)
    before = model.compilations
    other = copy.deepcopy(model)
    other.params["conv1_bias"] += 1.0
    assert np.abs(np.asarray(other.encode(mel_of(1))) - want).max() > 1e-3
    np.testing.assert_array_equal(np.asarray(model.encode(mel_of(1))), want)
    assert model.compilations == before


@pytest.mark.parametrize("backend", ["jax", "nnx"])
def test_a_model_of_a_class_is_not_pickled(backend: str) -> None:
    with pytest.raises(CallError, match="Double was built from a class and cannot be pickled; save its"):
        pickle.dumps(load(Double, backend=backend, weights=None))

"""The nnx front: a real module that splits, merges, trains, copies and prints."""

from __future__ import annotations

import ast
import copy
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from nest.backends.generated import load_generated
from nest.backends.jax.nnx.helpers import HELPERS
from nest.backends.jax.nnx.layers import LAYERS
from nest.backends.jax.nnx.source import nnx_module
from nest.errors import CallError
from nest.ir.inventory import parameters
from nest.layers import (
    Block,
    Buffer,
    Dim,
    DType,
    Embedding,
    Float,
    GroupNorm,
    Int32,
    Linear,
    RMSNorm,
    State,
    Tensor,
    batch_norm,
    elaborate,
    entry,
    full,
    relu,
    while_loop,
)
from nest.loading import load

from .conftest import TINY, mel_of, tokens_of


@pytest.fixture
def module(make: Any) -> Any:
    """A module of the test's own to change: the same class and compiled code, a copy of the weights."""
    return nnx.clone(make("nnx"))


def paths_of(state: Any) -> dict[str, tuple[int, ...]]:
    return {".".join(map(str, path)): v.get_raw_value().shape for path, v in nnx.to_flat_state(state)}


def test_it_is_a_module_whose_state_has_definition_paths_and_shapes(module: Any) -> None:
    assert isinstance(module, nnx.Module)
    want = {path: spec.shape for path, spec in parameters(module.program).items()}
    assert paths_of(nnx.state(module)) == want
    assert paths_of(nnx.state(module, nnx.Param)) == want
    assert isinstance(module.decoder_layers, nnx.List)


def test_split_and_merge(module: Any) -> None:
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    assert not jax.tree.leaves(rest)
    again = nnx.merge(graph, params, rest)
    assert type(again) is type(module)
    np.testing.assert_array_equal(np.asarray(again.encode(mel_of(1))), np.asarray(module.encode(mel_of(1))))


def test_nnx_jit_traces_entries_in_place(module: Any) -> None:
    before = module.compilations
    encoded = nnx.jit(lambda m, mel: m.encode(mel))(module, jnp.asarray(mel_of(2)))
    assert module.compilations == before
    np.testing.assert_allclose(encoded, module.encode(mel_of(2)), atol=1e-5)


def test_entries_are_checked_inside_a_transformation_too(module: Any) -> None:
    with pytest.raises(CallError, match=r"argument 'mel' is .* axis 1 must be Mels = 5, and is 4"):
        nnx.jit(lambda m, mel: m.encode(mel))(module, jnp.zeros((1, 4, 22)))


def loss_of(model: Any, tokens: Any, audio: Any) -> Any:
    return -jax.nn.log_softmax(model.decode(tokens, audio))[..., 3].mean()


def test_gradients_equal_those_of_the_jax_front(module: Any, make: Any) -> None:
    plain = make("jax")
    tokens, audio = tokens_of(2, 5), plain.encode(mel_of(2))
    ours = nnx.to_flat_state(nnx.jit(nnx.grad(loss_of))(module, tokens, audio))
    decode = plain.function("decode")

    def loss(params: Any) -> Any:
        return -jax.nn.log_softmax(decode(params, tokens, audio))[..., 3].mean()

    theirs = jax.grad(loss)(plain.params)
    assert {".".join(map(str, p)) for p, _ in ours} == theirs.keys()
    for path, gradient in ours:
        want = theirs[".".join(map(str, path))]
        np.testing.assert_allclose(gradient.get_raw_value(), want, atol=1e-6)


def test_grad_without_jit_and_remat(module: Any) -> None:
    tokens, audio = tokens_of(1, 4), module.encode(mel_of(1))
    plain = nnx.grad(loss_of)(module, tokens, audio)
    rematted = nnx.grad(lambda m, t, a: nnx.remat(loss_of)(m, t, a))(module, tokens, audio)
    for (_, a), (_, b) in zip(nnx.to_flat_state(plain), nnx.to_flat_state(rematted), strict=True):
        np.testing.assert_allclose(a.get_raw_value(), b.get_raw_value(), atol=1e-6)


def test_a_step_of_training_is_seen_by_entries_and_sessions(module: Any) -> None:
    tokens, audio = tokens_of(1, 5), np.asarray(module.encode(mel_of(1)))
    session = module.new_session()
    session.listen(mel_of(1))
    before = np.asarray(session.prefill(tokens))
    loss, gradients = nnx.value_and_grad(loss_of)(module, tokens, audio)
    params = nnx.state(module, nnx.Param)
    nnx.update(module, jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients))
    assert float(loss_of(module, tokens, audio)) < float(loss)
    after = np.asarray(session.prefill(tokens))
    assert np.abs(after - before).max() > 1e-3


def test_states_are_given_inside_a_transformation(module: Any) -> None:
    tokens, session = tokens_of(2, 4), module.new_session(Batch=2)
    session.listen(mel_of(2))
    state = module.new_state(Batch=2)

    @nnx.jit
    def run(model: Any, state: Any, mel: Any, tokens: Any) -> Any:
        model.listen(mel, state)
        first = model.prefill(tokens, jnp.array([4, 4]), state)
        return first, model.step(jnp.ones((2, 1), jnp.int32), jnp.array([4, 4]), state)

    first, second = run(module, state, jnp.asarray(mel_of(2)), jnp.asarray(tokens))
    np.testing.assert_allclose(first, session.prefill(tokens), atol=2e-5)
    np.testing.assert_allclose(second, session.step([[1], [1]], 4), atol=2e-5)
    for path, cache in nnx.to_flat_state(nnx.state(state)):
        # Slots beyond the five that were written hold what padding left there.
        slots = 5 if str(path[-1]).startswith("self_") else None
        want = session.state[".".join(map(str, path))][:, :, :slots]
        np.testing.assert_allclose(cache.get_raw_value()[:, :, :slots], want, atol=2e-5)


def test_states_are_needed_inside_a_transformation(module: Any) -> None:
    with pytest.raises(CallError) as error:
        nnx.jit(lambda m, t: m.step(t, jnp.array([0])))(module, jnp.array([[1]]))
    assert str(error.value) == (
        "whisper-tiny.step has states, and inside a transformation of jax they are given to it: "
        "state = model.new_state(); model.step(..., state)."
    )


def test_caches_are_variables_of_their_own_kind(module: Any) -> None:
    session = module.new_session()
    session.listen(mel_of(1))
    session.prefill(tokens_of(1, 3))
    caches = session.caches
    kinds = {type(v) for _, v in nnx.iter_graph(caches) if isinstance(v, nnx.Variable)}
    assert [k.__name__ for k in kinds] == ["Cache"]
    assert issubclass(kinds.pop(), nnx.Variable)
    assert not nnx.to_flat_state(nnx.state(caches, nnx.Param))
    given = module.step(jnp.array([[1]]), jnp.array([3]), caches)
    np.testing.assert_allclose(given, session.step([[1]], [3]), atol=2e-5)


def test_sessions_are_no_part_of_the_module(module: Any) -> None:
    leaves = len(jax.tree.leaves(nnx.state(module)))
    module.listen(mel_of(1))
    module.new_session().listen(mel_of(1))
    assert len(jax.tree.leaves(nnx.state(module))) == leaves
    assert not [n for n in vars(module) if "session" in n]


def test_copies_are_independent_and_share_compiled_code(module: Any) -> None:
    module.encode(mel_of(1))
    before = module.compilations
    for make in (copy.deepcopy, nnx.clone):
        other = make(module)
        np.testing.assert_array_equal(
            np.asarray(other.encode(mel_of(1))), np.asarray(module.encode(mel_of(1)))
        )
        other.conv1_bias[...] += 1.0
        assert np.abs(np.asarray(other.encode(mel_of(1))) - np.asarray(module.encode(mel_of(1)))).max() > 1e-3
    assert module.compilations == before


def test_a_model_of_an_entry_is_pickled(module: Any) -> None:
    again = pickle.loads(pickle.dumps(module))
    assert again.entry.name == "whisper-tiny"
    assert again.source == module.source
    np.testing.assert_array_equal(np.asarray(again.encode(mel_of(1))), np.asarray(module.encode(mel_of(1))))


def test_a_module_changed_by_hand_runs_as_it_is_now(module: Any) -> None:
    plain = np.asarray(module.encode(mel_of(1)))

    class Shifted(nnx.Module):
        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self.by = nnx.Param(jnp.float32(1.0))

        def __call__(self, x: Any) -> Any:
            return self.inner(x) + self.by[...]

    module.encoder_norm = Shifted(module.encoder_norm)
    np.testing.assert_allclose(np.asarray(module.encode(mel_of(1))), plain + 1.0, atol=1e-5)
    session = module.new_session()
    np.testing.assert_allclose(np.asarray(session.encode(mel_of(1))), plain + 1.0, atol=1e-5)


# -- source -------------------------------------------------------------------------------------------------


class Layers(Block):
    """Every standard layer, a buffer, a state, and a loop that writes it."""

    C: Dim
    T: DType

    def build(self) -> None:
        self.embedding = Embedding(11, self.C, self.T)
        self.norm = RMSNorm(self.C, self.T)
        self.group = GroupNorm(self.C, self.T, groups=2)
        self.layers = [Linear(self.C, self.C, self.T, bias=b) for b in (True, False)]
        self.mean = Buffer("C", self.T)
        self.variance = Buffer("C", self.T, init="ones")
        self.sums = State("Batch Capacity C", self.T, write_axis=1)

    @entry
    def embed(self, ids: Int32[Tensor, "B S"]) -> Float[Tensor, "B S C"]:
        x = self.norm(self.embedding(ids)).permute(0, 2, 1)
        x = batch_norm(self.group(x), self.mean, self.variance, self.variance, self.mean)
        x = x.permute(0, 2, 1)
        for layer in self.layers:
            x = relu(layer(x))
        return x

    @entry
    def count(
        self, x: Float[Tensor, "Batch 1 C"]
    ) -> tuple[Int32[Tensor, "Batch"], Float[Tensor, "Batch 1 C"]]:
        """Doubles x, at most 4 times, while it is below 20, and writes each value down."""
        pos = full((x.shape[0],), 0, "i32")
        pos, x = while_loop(self, _below, _doubled, [pos, x], max_trips=4)
        return pos, x

    @entry
    def written(self, x: Float[Tensor, "Batch 1 C"]) -> Float[Tensor, "Batch Capacity C"]:
        return self.sums.read()


def _below(block: Any, pos: Tensor, x: Tensor) -> Tensor:
    from nest.layers import max

    return max(x, (0, 1, 2)) < 20.0


def _doubled(block: Any, pos: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    block.sums.update(x, pos)
    return pos + 1, x * 2.0


@pytest.mark.parametrize("backend", ["jax", "nnx"])
def test_every_layer_and_a_loop_over_states(backend: str) -> None:
    program = elaborate(Layers, C=4, T="f32")
    rng = np.random.default_rng(0)
    weights = {
        n: 1.0 + 0.3 * rng.standard_normal(s.shape).astype(np.float32) for n, s in parameters(program).items()
    }
    exact = load(Layers, backend="reference", precision="f64", weights=weights, C=4, T="f32")
    model = load(Layers, backend=backend, weights=weights, C=4, T="f32")
    ids = rng.integers(0, 11, (2, 5))
    np.testing.assert_allclose(model.embed(ids), exact.embed(ids), atol=2e-5)
    for start, trips in ((3.0, 3), (0.1, 4), (30.0, 0)):
        x = np.full((2, 1, 4), start, np.float32)
        ours, theirs = (m.new_session(Batch=2, Capacity=6) for m in (model, exact))
        for session in (ours, theirs):
            pos, last = session.count(x)
            assert np.asarray(pos).tolist() == [trips, trips]
            np.testing.assert_allclose(last, x * 2.0**trips, rtol=1e-6)
        np.testing.assert_allclose(ours.written(x), theirs.written(x), rtol=1e-6)


def test_buffers_are_no_parameters() -> None:
    model = load(Layers, backend="nnx", weights=None, C=4, T="f32")
    trained = paths_of(nnx.state(model, nnx.Param))
    assert {"mean", "variance"}.isdisjoint(trained)
    assert paths_of(nnx.state(model)).keys() == parameters(model.program).keys()
    gradient = nnx.grad(lambda m: m.embed(jnp.array([[1, 2]])).sum())(model)
    assert paths_of(gradient).keys() == trained.keys()


def test_source_runs_without_nest() -> None:
    made = nnx_module(elaborate(Layers, C=4, T="f32"))
    modules = {n.module if isinstance(n, ast.ImportFrom) else a.name for n in ast.walk(ast.parse(made.text))
               if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}  # fmt: skip
    assert modules == {"__future__", "math", "typing", "collections.abc", "jax", "jax.numpy", "flax"}
    module = load_generated(made.text, "without_nest")
    assert not [n for n, v in vars(module).items() if str(getattr(v, "__module__", "")).startswith("nest.")]


def test_the_source_of_whisper_reads_as_the_definition(make: Any) -> None:
    text = make("nnx").source
    for line in (
        '"""whisper-tiny in Flax NNX, generated by nest from its definition."""',
        "class DecoderLayer(nnx.Module):",
        '    """A pre-norm layer with causal self-attention and cross-attention to the encoder\'s states."""',
        "        self.k_proj = Linear(D, D, T, bias=False, rngs=rngs)",
        "        k = update_cache(state.self_k, self.self_attn.keys(h), pos, axis=2)",
        "        for layer, layer_state in zip(self.decoder_layers, state.decoder_layers, strict=True):",
        "        return linear(self.decoder_norm(x), self.token_embedding[...])",
    ):
        assert line in text.splitlines(), line
    assert "nest." not in text.replace("generated by nest from", "")


def test_source_initialises_itself(make: Any) -> None:
    """The class alone, as an ejected file has it: weights from its own generator."""
    model = make("nnx")
    made = nnx_module(model.program)
    module = load_generated(made.text, "alone")
    own = getattr(module, made.root)(**made.arguments(jnp), rngs=nnx.Rngs(0))
    assert paths_of(nnx.state(own)) == paths_of(nnx.state(model))
    assert float(own.decoder_layers[1].mlp.fc1.weight[...].std()) == pytest.approx(TINY["D"] ** -0.5, rel=0.1)
    assert float(own.token_embedding[...].std()) == pytest.approx(0.02, rel=0.1)
    nnx.update(own, nnx.state(model))
    np.testing.assert_allclose(own.encode(jnp.asarray(mel_of(1))), model.encode(mel_of(1)), atol=2e-5)


def test_random_weights_are_those_of_every_backend() -> None:
    ours = load("whisper-tiny", backend="nnx", weights=None, seed=3, **TINY)
    theirs = load("whisper-tiny", backend="jax", weights=None, seed=3, **TINY)
    for path, variable in nnx.to_flat_state(nnx.state(ours)):
        np.testing.assert_array_equal(variable.get_raw_value(), theirs.params[".".join(map(str, path))])


def test_copied_text_stands_by_itself() -> None:
    """Every name in a helper's or a layer's body is its own, a builtin, another helper or an import of the file."""
    import builtins
    import inspect
    import textwrap

    known = {
        *HELPERS,
        *LAYERS,
        "jax",
        "jnp",
        "lax",
        "nnx",
        "math",
        "Any",
        "Array",
        "Callable",
        *dir(builtins),
    }
    for name, item in {**HELPERS, **LAYERS}.items():
        tree = ast.parse(textwrap.dedent(inspect.getsource(item)))
        bound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        bound |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
        bound |= {f.name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.ClassDef)}
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - {"rule"}
        assert used <= known | bound, (name, used - known - bound)

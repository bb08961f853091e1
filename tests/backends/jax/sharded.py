"""What a process with eight devices finds out about sharding; `test_sharding` starts it and reads its last line.

It is one process, since compiling is what costs.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import nest
from nest.backends.jax.parameters import placed
from nest.backends.jax.placement import placement
from nest.errors import CallError
from nest.export import save
from nest.ir.inventory import parameters
from nest.loading import load, program_of

from ...docs.markdown import blocks

GUIDE = "docs/guides/fine-tuning-on-a-mesh.md"
# Axes that four devices divide, and names that are no two alike but for the layers.
SIZES: dict[str, Any] = {
    "Mels": 5, "Frames": 22, "D": 24, "Heads": 4, "Inner": 40, "EncoderLayers": 1, "DecoderLayers": 1, "Vocab": 56,
    "MaxTokens": 19,
}  # fmt: skip
RULES = {
    "*.out_proj.weight": (None, "model"),
    "Vocab": "model",
    "Inner": "model",
    "D": "model",
    "Heads": "model",
}
MEL = np.random.default_rng(0).standard_normal((4, 5, 22)).astype(np.float32)
TOKENS = np.random.default_rng(1).integers(0, 56, (4, 6)).astype(np.int32)


def mesh_of(kind: AxisType = AxisType.Auto) -> Any:
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(kind,) * 2)


def loss_of(model: Any, mel: Any, tokens: Any) -> Any:
    logits = model.decode(tokens[:, :-1], model.encode(mel))
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@nnx.jit
def train(model: Any, optimizer: Any, mel: Any, tokens: Any) -> Any:
    loss, gradients = nnx.value_and_grad(loss_of)(model, mel, tokens)
    optimizer.update(model, gradients)
    return loss


def distance(one: Any, other: Any) -> float:
    return float(np.abs(np.asarray(one) - np.asarray(other)).max())


def specs(model: Any) -> dict[str, str]:
    return {path: str(tuple(x.sharding.spec)) for path, x in values(model)}


def values(model: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(model, "params"):
        yield from model.params.items()
    else:
        for path, v in nnx.to_flat_state(nnx.state(model)):
            yield ".".join(map(str, path)), v.get_raw_value()


def largest_share(model: Any) -> float:
    """How much of the parameters' bytes the fullest device holds."""
    held: dict[Any, int] = {}
    for _, x in values(model):
        for shard in x.addressable_shards:
            held[shard.device] = held.get(shard.device, 0) + shard.data.nbytes
    return max(held.values()) / sum(x.nbytes for _, x in values(model))


def facts(weights: str) -> dict[str, Any]:
    """What differs between a model on one device and the same model on the mesh."""
    found: dict[str, Any] = {"devices": jax.device_count()}
    plain = load("whisper-tiny", backend="nnx", weights=weights, **SIZES)
    states = plain.encode(MEL)
    session = plain.new_session(Batch=4)
    session.listen(MEL)
    cached = [session.prefill(TOKENS), session.step(np.ones((4, 1), np.int32), 6)]
    mesh = mesh_of()
    for backend in ("nnx", "jax"):
        with jax.set_mesh(mesh):
            spread = load("whisper-tiny", backend=backend, weights=weights, sharding=RULES, **SIZES)
            found[f"{backend} specs"] = specs(spread)
            found[f"{backend} axes"] = {path: list(axes) for path, axes in spread.axes.items()}
            found[f"{backend} share"] = largest_share(spread)
            found[f"{backend} encode"] = distance(spread.encode(MEL), states)
        # The mesh is the arrays' own, inside `set_mesh` and outside.
        found[f"{backend} outside"] = distance(spread.encode(MEL), states)
    with jax.set_mesh(mesh):
        rows = spread.new_session(Batch=4)
        before = rows.state["decoder_layers.0.self_k"].sharding.spec
        rows.listen(jax.device_put(MEL, NamedSharding(mesh, P("data"))))
        again = [rows.prefill(TOKENS), rows.step(np.ones((4, 1), np.int32), 6)]
        found["cached"] = max(map(distance, again, cached))
        after = rows.state["decoder_layers.0.self_k"].sharding.spec
        found["caches"] = [str(tuple(before)), str(tuple(after))]
    alone = nnx.Optimizer(plain, optax.adamw(1e-2), wrt=nnx.Param)
    losses = [float(train(plain, alone, jnp.asarray(MEL), jnp.asarray(TOKENS))) for _ in range(2)]
    for eager in (True, False):
        with nnx.use_eager_sharding(eager):
            found[f"eager {eager}"] = training(losses, mesh, weights)
    found |= by_other_rules(mesh, weights)
    found |= reading(mesh)
    found |= drawn(mesh)
    found["explicit"] = refused(weights)
    found["guide"] = guide()
    return found


def training(want: list[float], mesh: Any, weights: str) -> dict[str, Any]:
    """Two steps of AdamW, rows over `data`, and what is saved afterwards."""
    with jax.set_mesh(mesh):
        model = load("whisper-tiny", backend="nnx", weights=weights, sharding=RULES, **SIZES)
        optimizer = nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)
        rows = [jax.device_put(x, NamedSharding(mesh, P("data"))) for x in (MEL, TOKENS)]
        got = [float(train(model, optimizer, *rows)) for _ in range(2)]
        average = optimizer.opt_state[0].mu["decoder_layers"][0]["mlp"]["fc1"]["weight"]
        found = {
            "losses": distance(got, want),
            "average": str(tuple(average.get_raw_value().sharding.spec)),
            "metadata": str(model.decoder_layers[0].mlp.fc1.weight.out_sharding),
            "eager": model.token_embedding.eager_sharding,
            "flax's specs": str(nnx.get_partition_spec(nnx.state(model))["token_embedding"].get_raw_value()),
            "trained specs": specs(model),
        }
        graph, state = nnx.split(nnx.clone(model))
        merged = nnx.merge(graph, state)
    with tempfile.TemporaryDirectory() as folder:
        save(merged, folder, "safetensors")
        again = load("whisper-tiny", backend="jax", weights=folder, **SIZES)
    found["saved"] = max(distance(again.params[path], x) for path, x in values(model))
    return found


def by_other_rules(mesh: Any, weights: str) -> dict[str, Any]:
    """Without rules, by Flax's rules, and along the longest axis."""
    with jax.set_mesh(mesh):
        whole = load("whisper-tiny", backend="nnx", weights=weights, **SIZES)
        found: dict[str, Any] = {
            "whole": sorted(set(specs(whole).values())),
            "whole share": largest_share(whole),
        }
        with nnx.logical_axis_rules([("Inner", "model"), ("Elsewhere", "data")]):
            ruled = load("whisper-tiny", backend="nnx", weights=weights, **SIZES)
        longest = load("whisper-tiny", backend="nnx", weights=weights, sharding=("data", "model"), **SIZES)
    found["flax"] = {p: s for p, s in specs(ruled).items() if p.startswith("encoder_layers.0.mlp")}
    found["longest"] = {p: s for p, s in specs(longest).items() if p in ("token_embedding", "conv1_weight")}
    found["longest share"] = largest_share(longest)
    found["longest encode"] = distance(longest.encode(MEL), whole.encode(MEL))
    return found


def drawn(mesh: Any) -> dict[str, Any]:
    """Random parameters, which a mesh does not change."""
    plain = load("whisper-tiny", backend="nnx", weights=None, rngs=nnx.Rngs(3), **SIZES)
    with jax.set_mesh(mesh):
        spread = load("whisper-tiny", backend="nnx", weights=None, rngs=nnx.Rngs(3), sharding=RULES, **SIZES)
    pairs = zip(values(plain), values(spread), strict=True)
    return {"drawn": max(distance(a, b) for (_, a), (_, b) in pairs), "drawn specs": specs(spread)}


class Read:
    """An array on disk, which writes down what is read of it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.parts: list[int] = []

    def __getitem__(self, part: Any) -> Any:
        values = np.zeros(self.shape, np.float32)[part]
        self.parts.append(values.size)
        return values


def reading(mesh: Any) -> dict[str, Any]:
    """The largest part of a parameter that is read at once, and how much is read of it in all, in its own sizes."""
    program = program_of("whisper-tiny", **SIZES)
    found = {}
    for name, rules in (("spread", ("data", "model")), ("whole", {"Vocab": "model"})):
        files = {path: Read(spec.shape) for path, spec in parameters(program).items()}
        with jax.set_mesh(mesh):
            placed(program, files, placement(program, rules=rules))
        fc1 = files["encoder_layers.0.mlp.fc1.weight"]
        size = int(np.prod(fc1.shape))
        found[f"reads, {name}"] = [max(fc1.parts) / size, sum(fc1.parts) / size]
    return found


def guide() -> list[str]:
    """The python of the guide runs, with a small model in place of the one that it names."""
    names: dict[str, Any] = {}
    kept, nest.load = nest.load, partial(load, weights=None, **SIZES)
    try:
        for block in blocks(GUIDE):
            code = block.code.replace("(4, 80, 3000)", "(4, 5, 22)").replace("50256", "55")
            exec(compile(code, block.place, "exec"), names)
    finally:
        nest.load = kept
    model, caches = names["model"], names["model"].new_session(Batch=4).state
    return [
        str(model.decoder_layers[0].self_attn.out_proj.weight.out_sharding),
        str(model.decoder_layers[0].self_attn.q_proj.bias.out_sharding),
        str(tuple(caches["decoder_layers.0.self_k"].sharding.spec)),
        str(bool(jnp.isfinite(names["loss"]))),
    ]


def refused(weights: str) -> str:
    with jax.set_mesh(mesh_of(AxisType.Explicit)):
        try:
            load("whisper-tiny", backend="nnx", weights=weights, sharding="model", **SIZES)
        except CallError as error:
            return str(error)
    return ""


if __name__ == "__main__":
    warnings.simplefilter("error")
    print(json.dumps(facts(sys.argv[1])))

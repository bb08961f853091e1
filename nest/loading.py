"""`nest.load`: from a name to a model."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, SupportsIndex, cast

from nest._collector import held
from nest._optional import need, need_installed
from nest._timing import stretch, timed
from nest.backends._symbols import positive
from nest.backends.installed import BACKENDS as KNOWN
from nest.backends.installed import ORDER, first_installed
from nest.backends.installed import backend as known_backend
from nest.errors import BindingError, CallError, DefinitionError
from nest.ir.inventory import parameters
from nest.ir.passes.caches import keep_states
from nest.ir.passes.quantize import quantize as quantize_program
from nest.ir.program import Program
from nest.layers import Block
from nest.layers.entry import elaborate_with
from nest.loops import loops_for
from nest.registry import Entry, find

__all__ = ["BACKENDS", "build_model", "chosen_backend", "load", "program_of"]

BACKENDS = tuple(KNOWN)
_SESSION = ("Batch", "Capacity")

Pinned = Literal["pinned"]


@timed("load")
def load(
    name: str | os.PathLike[str] | Entry | type[Block],
    *,
    backend: str | None = None,
    weights: Pinned | str | os.PathLike[str] | Mapping[str, Any] | None = "pinned",
    seed: int = 0,
    dtype: str | None = None,
    quantize: str | Mapping[str, str | None] | None = None,
    caches: str | None = None,
    device: str | None = None,
    precision: str | None = None,
    param_dtype: str | None = None,
    sharding: Any = None,
    rngs: Any = None,
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
    threads: int | None = None,
    session_options: Mapping[str, Any] | None = None,
    trust_source: bool | None = None,
    local_files_only: bool = False,
    token: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    **generics: Any,
) -> Any:
    """Load a model.

    Args:
        name: an entry's name, the path of an entry's directory, an entry, or a root block's class.
        backend: `"torch"` (a `torch.nn.Module`), `"jax"`, `"nnx"` (an `nnx.Module`), `"onnx"` or `"reference"`
            (numpy). If left out, the first of onnx, torch and jax that is installed and can do what the other
            arguments ask for; the model's `backend` says which it is.
        weights: the entry's pinned weights; None for random ones drawn from `seed`; the path of a safetensors file, or
            of a folder with a `model.safetensors` or an index of shards, whose tensors are named as the entry's
            bindings have it or by definition path; or a mapping of definition paths to arrays or tensors.
        seed: of random weights.
        dtype: the generic `T`: `"f32"`, `"f16"`, `"bf16"`.
        quantize: keep the weights of products in fewer bits: `"int8"`, a scale for each output, or `"int4"`, one for
            each 32 inputs of an output; or one of these, or None, for parts of the definition, as in
            `{"encoder": "int8", "decoder": "int4"}`. The model's `quantization` says what was changed and by how much.
        caches: the element type that states, such as keys and values, are kept in between calls: `"f16"` and `"bf16"`
            take half the memory of `"f32"`; what the model computes in if left out.
        device: of torch, jax and nnx, such as `"cuda"`; torch's is the CPU if left out, jax's its default.
        precision: of the reference backend, `"f32"` or `"f64"`.
        param_dtype: of jax and nnx, the element type in which parameters are kept, while `dtype` is computed in; the
            gradients and an optimizer's averages are in it too.
        sharding: of jax and nnx, inside `jax.set_mesh`: which axes of the parameters are spread over which axes of the
            mesh, as in `{"Inner": "model"}`, `{"*.out_proj.weight": (None, "model")}` or `"model"`; each device has a
            copy of what is not named. See the guide on fine-tuning on a mesh.
        rngs: of nnx, an `nnx.Rngs` that draws random weights as the module's own constructor does, with weights=None.
        providers: of the onnx backend, execution providers of ONNX Runtime by name, or pairs of a name and its
            options, in order of preference; the CPU if left out.
        threads: of the onnx backend, for one call; as many as the process may use if left out.
        session_options: of the onnx backend, attributes and configuration entries of ONNX Runtime's sessions.
        trust_source: run the definition of an entry outside the installed zoo.
        local_files_only: use files that are here already, without any network.
        token: for gated repositories of the Hub.
        cache_dir: the Hub cache to use instead of its default.
        progress: show downloads; on a terminal if left out.
        **generics: other values for the definition's generics, and `Batch` and `Capacity` of the default session.

    Raises:
        UnknownEntryError, ManifestError, DefinitionError: the entry or its definition.
        FetchError, DigestError, WeightsError, BindingError: the weights.
        MissingDependencyError: the backend's framework is not installed, or no backend's is.
    """
    native = {"param_dtype": _dtype_name(param_dtype), "sharding": sharding, "rngs": rngs}
    native = {n: v for n, v in native.items() if v is not None}
    with held():
        runtime: dict[str, Any] = {
            "providers": providers,
            "threads": threads,
            "session_options": session_options,
        }
        runtime = {n: v for n, v in runtime.items() if v is not None}
        if backend is None:
            dtype_asked = dtype or generics.get("T")
            backend = chosen_backend(
                device=device, precision=precision, dtype=dtype_asked, native=native, **runtime
            )
        make = _backend(backend)
        dtype = _dtype_name(dtype)
        _check(weights, seed)
        entry = _entry(name)
        options: dict[str, Any] = {"device": device, "precision": precision}
        options |= _runtime_options(backend, runtime) | _native_options(backend, native, weights, seed)
        if quantize is not None and native:
            raise CallError(
                f"quantize= makes weights that are neither trained nor spread: leave {next(iter(native))}= out."
            )
        session = {n: positive(n, generics.pop(n)) for n in _SESSION if n in generics}
        if entry is not None:
            session = {n: int(v) for n, v in entry.generics.items() if n in _SESSION} | session
        program = _program(name if entry is None else entry, entry, dtype, generics, trust_source, loops=True)
        fetching = {
            "local_files_only": local_files_only,
            "token": token,
            "cache_dir": cache_dir,
            "progress": progress,
        }
        params, notes = (
            (None, ()) if rngs is not None else _parameters(program, entry, weights, seed, fetching)
        )
        if quantize is not None and params is not None:
            from nest.weights.quantizing import quantized

            with stretch("quantize"):
                program, params = quantized(program, quantize, params, entry, weights)
        if caches is not None:
            program = keep_states(program, caches)
        recipe = None
        if entry is not None:
            kept = native.get("param_dtype")
            made_with = {**generics, **_bound(program)}
            recipe = (
                _again,
                (str(entry.directory), made_with, session, trust_source, backend, kept, quantize, caches),
            )
        with stretch(f"make the {backend} model"):
            return make(program, params, entry=entry, session=session, notes=notes, recipe=recipe, **options)


def _check(weights: Any, seed: Any) -> None:
    """Refuse what no backend could make anything of, before anything is fetched."""
    if isinstance(weights, bool) or not (weights is None or isinstance(weights, str | os.PathLike | Mapping)):
        raise CallError(
            f"weights={weights!r} means nothing; pass the path of a safetensors file, a mapping of definition paths to "
            f"arrays, None for random weights, or leave it out for the pinned ones."
        )
    if (
        isinstance(seed, bool)
        or not isinstance(seed, SupportsIndex)
        or not 0 <= operator.index(seed) < 1 << 64
    ):
        raise CallError(f"seed is an integer from 0 to 2**64 - 1, and {seed!r} was given.")


def chosen_backend(
    *,
    device: str | None = None,
    precision: str | None = None,
    dtype: str | None = None,
    extras: Sequence[str] = (),
    native: Mapping[str, Any] | None = None,
    **runtime: Any,
) -> str:
    """The backend of a call that names none: the first installed that can do what the call's other arguments ask.

    Args:
        device, precision, dtype, **runtime: as `load` takes them; only what excludes a backend matters.
        native: what jax and nnx alone take.
        extras: what else the caller needs of `nest-zoo`, for the line that installs a backend.

    Raises:
        MissingDependencyError: none is installed.
    """
    if precision is not None:
        return "reference"
    if native:
        return "nnx" if "rngs" in native else "jax"
    if any(value is not None for value in runtime.values()):
        return first_installed(("onnx",), extras=extras)
    # ONNX Runtime's device is chosen by providers, and its CPU has no kernels for bf16.
    elsewhere = device not in (None, "cpu") or dtype == "bf16"
    return first_installed([n for n in ORDER if n != "onnx"] if elsewhere else ORDER, extras=extras)


def build_model(program: Program, params: Mapping[str, Any], backend: str) -> Any:
    """The model of a program, which need be no entry's, over parameters by definition path; for tools."""
    return _backend(backend)(
        program, params, entry=None, session={}, notes=(), recipe=None, device=None, precision=None
    )


def program_of(
    name: str | os.PathLike[str] | Entry, /, *, trust_source: bool | None = None, **generics: Any
) -> Program:
    """The typed program of an entry, without weights: its generics bound, other values given by keyword."""
    entry = _entry(name)
    return _program(name, entry, None, {n: v for n, v in generics.items() if n not in _SESSION}, trust_source)


@timed("read the entry")
def _entry(name: str | os.PathLike[str] | Entry | type[Block]) -> Entry | None:
    if isinstance(name, Entry):
        return name
    if isinstance(name, str | os.PathLike):
        return find(os.fspath(name))
    if isinstance(name, type) and issubclass(name, Block):
        return None
    raise CallError(f"nest.load takes an entry's name or directory, or a block's class; got {name!r}.")


@timed("elaborate")
def _program(
    name: Any,
    entry: Entry | None,
    dtype: str | None,
    generics: dict[str, Any],
    trust_source: bool | None,
    *,
    loops: bool = False,
) -> Program:
    given = dict(generics)
    if dtype is not None:
        if given.get("T", dtype) != dtype:
            raise CallError(f"dtype='{dtype}' and T='{given['T']}' contradict each other; give one of them.")
        given["T"] = dtype
    if entry is None:
        root = cast(type[Block], name)
        if "T" in root._fields().kinds:
            given.setdefault("T", "f32")
        return elaborate_with(root, given, loops=loops_for(root) if loops else None)
    root = cast(type[Block], entry.definition(trust_source=trust_source))
    own: dict[str, Any] = {n: v for n, v in entry.generics.items() if n not in _SESSION}
    if not issubclass(root, Block):
        raise DefinitionError(
            f"{entry.source}: '{root.__name__}', which source.root of '{entry.name}' names, is no Block: derive it "
            f"from nest.layers.Block."
        )
    heads = entry.manifest.generation.alignment_heads if entry.manifest.generation else None
    if heads and "alignment_heads" in root._fields().kinds and not _resized(given, own):
        own["alignment_heads"] = tuple(tuple(pair) for pair in heads)
    return elaborate_with(root, {**own, **given}, name=entry.name, loops=loops_for(root) if loops else None)


_DTYPE_NAMES = {"float64": "f64", "double": "f64", "float32": "f32", "float": "f32", "float16": "f16", "half": "f16",
                "bfloat16": "bf16", "fp32": "f32", "fp16": "f16"}  # fmt: skip


def _dtype_name(dtype: Any) -> str | None:
    """`"f16"` for what frameworks call it: `"float16"`, `torch.float16`, `numpy.float16`."""
    if dtype is None:
        return None
    text = getattr(dtype, "__name__", None) or str(dtype)
    plain = text.removeprefix("torch.").removeprefix("jax.numpy.")
    return _DTYPE_NAMES.get(plain, plain)


def _resized(given: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Whether the caller asks for another size, for which the checkpoint's head list means nothing."""
    return any(own.get(n) != v for n, v in given.items() if n != "T")


def _bound(program: Program) -> dict[str, Any]:
    return {n: v.value for n, v in program.root.generics.items()}


_SKELETONS = {
    "torch": "nest.backends.torch.module",
    "jax": "nest.backends.jax.model",
    "nnx": "nest.backends.jax.nnx.model",
}


def _again(
    directory: str,
    generics: dict[str, Any],
    session: dict[str, int],
    trust_source: bool | None,
    backend: str = "torch",
    param_dtype: str | None = None,
    quantize: str | Mapping[str, str | None] | None = None,
    caches: str | None = None,
) -> Any:
    """The same model without weights, for pickle and deepcopy."""
    entry = find(directory)
    program = _program(entry, entry, None, generics, trust_source, loops=True)
    if quantize is not None:
        program = quantize_program(program, quantize).program
    if caches is not None:
        program = keep_states(program, caches)
    recipe = (_again, (directory, generics, session, trust_source, backend, param_dtype, quantize, caches))
    info: dict[str, Any] = {"entry": entry, "session": session, "recipe": recipe}
    if backend == "nnx":
        info["param_dtype"] = param_dtype
    return import_module(_SKELETONS[backend]).skeleton(program, **info)


def _backend(name: Any) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise CallError(f"backend= is a name such as 'torch', and {name!r} was given.")
    known_backend(name)
    return _BUILDERS[name]


def _torch(
    program: Program, params: Mapping[str, Any], *, device: str | None, precision: str | None, **info: Any
) -> Any:
    if precision not in (None, "f32"):
        raise CallError(
            "precision= belongs to the reference backend; on torch, dtype= chooses the element type."
        )
    need("torch", extra="torch", purpose="load a model on the torch backend")
    from nest.backends.torch.module import build

    return build(program, params, device=device or "cpu", **info)


def _jax(program: Program, params: Any, *, device: str | None, precision: str | None, **info: Any) -> Any:
    _refuse_precision(precision)
    need("jax", extra="jax", purpose="load a model on the jax backend")
    from nest.backends.jax.model import build

    return build(program, params, device=device, **info)


def _nnx(program: Program, params: Any, *, device: str | None, precision: str | None, **info: Any) -> Any:
    _refuse_precision(precision)
    need("flax", extra="jax", purpose="load a model on the nnx backend")
    from nest.backends.jax.nnx.model import build

    return build(program, params, device=device, **info)


def _onnx(
    program: Program, params: Mapping[str, Any], *, device: str | None, precision: str | None, **info: Any
) -> Any:
    _refuse_precision(precision)
    if device not in (None, "cpu"):
        raise CallError(f"On the onnx backend, providers= chooses the device; device='{device}' was given.")
    need("onnxruntime", extra="onnx", purpose="load a model on the onnx backend")
    # Half a second to import, and needed only where no graph is found in the cache.
    need_installed("onnx_ir", extra="onnx", purpose="load a model on the onnx backend")
    from nest.backends.onnx.model import build

    return build(program, params, **info)


def _runtime_options(backend: str | None, given: dict[str, Any]) -> dict[str, Any]:
    if given and backend != "onnx":
        raise CallError(f"{', '.join(f'{n}=' for n in given)} belongs to the onnx backend.")
    return given


def _native_options(backend: str, given: dict[str, Any], weights: Any, seed: int) -> dict[str, Any]:
    """What jax and nnx take beside what every backend takes."""
    owners = {"param_dtype": ("jax", "nnx"), "sharding": ("jax", "nnx"), "rngs": ("nnx",)}
    for name in given:
        if backend not in owners[name]:
            raise CallError(f"{name}= belongs to {' and '.join(owners[name])}, and the backend is {backend}.")
    if "rngs" in given and (weights is not None or seed):
        other = "weights=" if weights is not None else "seed="
        raise CallError(
            f"rngs= draws random weights, so it goes with weights=None and without a seed; {other} says otherwise."
        )
    return given


def _refuse_precision(precision: str | None) -> None:
    if precision not in (None, "f32"):
        raise CallError(
            "precision= belongs to the reference backend; dtype= chooses the element type of others."
        )


def _reference(
    program: Program, params: Mapping[str, Any], *, device: str | None, precision: str | None, **info: Any
) -> Any:
    if device not in (None, "cpu"):
        raise CallError(f"The reference backend runs on the CPU; device='{device}' was asked for.")
    from nest.backends.reference.model import build

    return build(program, params, precision=precision or "f32", entry=info["entry"], session=info["session"])


_BUILDERS: dict[str, Callable[..., Any]] = {
    "torch": _torch,
    "jax": _jax,
    "nnx": _nnx,
    "onnx": _onnx,
    "reference": _reference,
}
"""Each backend's way from a program and its parameters to a model, by the names of `nest.backends.installed`."""


def _parameters(
    program: Program, entry: Entry | None, weights: Any, seed: int, fetching: dict[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    specs = parameters(program)
    if weights is None:
        from nest.weights.random import random_parameters

        return random_parameters(specs, seed), ()
    from nest.weights import bind, fetch, open_checkpoint
    from nest.weights.folder import weights_files
    from nest.weights.given import given_arrays

    if isinstance(weights, Mapping):
        return given_arrays(program.name, specs, weights), ()
    if weights != "pinned":
        checkpoint = open_checkpoint(weights_files(weights))
        if entry is None or checkpoint.keys() == specs.keys():
            # Under definition paths, as nest.save writes them with format="safetensors".
            named = {path: view.array() for path, view in checkpoint.items()}
            return given_arrays(program.name, specs, named), ()
    if entry is None:
        raise DefinitionError(
            f"{program.name} was given as a class, so there are no pinned weights and no bindings: pass weights=None "
            f"for random ones, a mapping of definition paths to arrays, or a safetensors file of them."
        )
    notes: tuple[str, ...] = ()
    if weights == "pinned":
        pinned = entry.manifest.weights.files if entry.manifest.weights else []
        names = [f.name for f in pinned if f.name.endswith(".safetensors")]
        with stretch("fetch or verify files"):
            fetched = fetch(entry, names, **fetching)
        checkpoint, notes = open_checkpoint([fetched.files[n] for n in names]), tuple(fetched.notes)
    try:
        with stretch("bind"):
            arrays = bind(specs, entry.bindings, checkpoint, source=entry.name, generics=_bound(program))
    except BindingError as error:
        if changed := _changed(program, entry):
            raise BindingError(
                f"{error}\nOther generics than the entry's were asked for ({changed}): for a model of other sizes pass "
                f"weights=None, or weights of those sizes."
            ) from None
        raise
    return arrays, notes


def _changed(program: Program, entry: Entry) -> str:
    """The generics that differ from the entry's own, but for the element type."""
    bound = _bound(program)
    return ", ".join(
        f"{n}={bound[n]}" for n, v in entry.generics.items() if n != "T" and bound.get(n, v) != v
    )

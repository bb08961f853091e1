"""How far Whisper on each backend is from the reference library and from the f64 oracle, in one run.

    python -m nest.bench.whisper_parity [--backend torch] [--json]

Weights are tiny.en's real ones, and random ones of whisper-tiny's shapes; inputs are N(0, 1) and U(-1, 1) mel and a
real recording's log-mel. The reference library is transformers, in f32 as published.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nest.ir.inventory import parameters
from nest.loading import load, program_of
from nest.registry import Entry, find
from nest.verify.library.whisper import transformers_model
from nest.weights import bind, fetch, open_checkpoint
from nest.weights.random import random_parameters

__all__ = ["CASES", "Case", "Row", "arrays_of", "lively", "measure", "reference_model", "table"]

Array = np.ndarray[Any, Any]

# The prompt, and the first words of "And so my fellow Americans".
PREFIX = {"whisper-tiny.en": [50257, 50362, 843, 523, 616], "whisper-tiny": [50258, 50259, 50359, 50363, 400]}


@dataclass(frozen=True)
class Case:
    """Which weights and which input."""

    entry: str
    weights: str  # "real" or "random"
    mel: str  # "normal", "uniform" or "audio"


CASES = tuple(
    Case(entry, weights, mel)
    for entry, weights in (("whisper-tiny.en", "real"), ("whisper-tiny", "random"))
    for mel in ("normal", "uniform", "audio")
)


@dataclass(frozen=True)
class Row:
    """One output of one backend: largest differences, and whether the argmax is equal everywhere.

    `error` is the backend's distance from the f64 oracle, `library_error` the reference library's own.
    """

    entry: str
    weights: str
    mel: str
    output: str
    backend: str
    difference: float
    error: float
    library_error: float
    scale: float
    argmax_equal: bool | None


def arrays_of(case: Case, **generics: Any) -> dict[str, Array]:
    """The case's parameters by definition path."""
    entry = find(case.entry)
    specs = parameters(program_of(entry, **generics))
    if case.weights == "random":
        return lively(random_parameters(specs, seed=1))
    fetched = fetch(entry, ["model.safetensors"])
    checkpoint = open_checkpoint([fetched.files["model.safetensors"]])
    return bind(specs, entry.bindings, checkpoint, source=entry.name, generics=entry.generics)


def lively(params: dict[str, Array]) -> dict[str, Array]:
    """Random parameters with biases that are not zero and gains that are not one."""
    rng = np.random.default_rng(2)
    for path, array in params.items():
        if path.endswith("bias"):
            params[path] = np.asarray(0.02 * rng.standard_normal(array.shape), array.dtype)
        elif path.endswith("norm.weight"):
            params[path] = np.asarray(1 + 0.1 * rng.standard_normal(array.shape), array.dtype)
    return params


def mel_of(case: Case, audio: Path | None, shape: tuple[int, int]) -> Array:
    """The case's input, [1, Mels, Frames]."""
    rng = np.random.default_rng(0)
    if case.mel == "normal":
        return rng.standard_normal((1, *shape)).astype(np.float32)
    if case.mel == "uniform":
        return rng.uniform(-1, 1, (1, *shape)).astype(np.float32)
    from nest.tasks.audio import load as load_audio
    from nest.tasks.mel import MelSettings, log_mel

    if audio is None:
        audio = _shipped_audio()
    return log_mel(load_audio(audio), MelSettings(bins=shape[0]))


def _shipped_audio() -> Path:
    """jfk.wav, where it lies in an installed package or in a checkout."""
    package = Path(__file__).parent.parent
    places = [package / "_assets", package.parent / "assets" / "audio"]
    return next(p / "jfk.wav" for p in places if (p / "jfk.wav").is_file())


def reference_model(entry: Entry, params: dict[str, Array], generics: dict[str, int] | None = None) -> Any:
    """transformers' Whisper with these parameters, in f32, ready to run; `generics` replace the entry's."""
    sizes = {**entry.generics, **(generics or {})}
    return transformers_model(entry, params, {n: int(v) for n, v in sizes.items() if isinstance(v, int)})


def measure(
    case: Case, backends: tuple[str, ...] = ("torch", "reference"), audio: Path | None = None
) -> list[Row]:
    """The rows of one case: encoder states, and logits of a five-token prefix on the library's own states."""
    import torch

    entry = find(case.entry)
    params = arrays_of(case)
    mel = mel_of(case, audio, (int(entry.generics["Mels"]), int(entry.generics["Frames"])))
    tokens = np.array([PREFIX[case.entry]], np.int32)
    library = reference_model(entry, params)
    with torch.no_grad():
        states = library.model.encoder(torch.from_numpy(mel)).last_hidden_state
        logits = library(
            encoder_outputs=(states,), decoder_input_ids=torch.from_numpy(tokens).long(), use_cache=False
        ).logits.numpy()
    states = states.numpy()
    oracle = load(entry, backend="reference", precision="f64", weights=params)
    exact = {"encoder": oracle.encode(mel), "logits": oracle.decode(tokens, states)}
    published = {"encoder": states, "logits": logits}
    rows = []
    for backend in backends:
        model = load(entry, backend=backend, weights=params)
        session = model.new_session()
        got = {
            "encoder": np.asarray(session.numpy(session.encode(mel))),
            "logits": np.asarray(session.numpy(session.decode(tokens, states))),
        }
        for output, array in got.items():
            rows.append(_row(case, output, backend, array, published[output], exact[output]))
    return rows


def _row(case: Case, output: str, backend: str, got: Array, published: Array, exact: Array) -> Row:
    equal = None if output == "encoder" else bool((got.argmax(-1) == published.argmax(-1)).all())
    return Row(
        **asdict(case),
        output=output,
        backend=backend,
        difference=float(np.abs(got - published).max()),
        error=float(np.abs(got - exact).max()),
        library_error=float(np.abs(published - exact).max()),
        scale=float(np.abs(exact).max()),
        argmax_equal=equal,
    )


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| weights | mel | output | backend | max diff to the library | max diff to f64 | the library's own to f64 "
        "| largest value | argmax |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        argmax = {None: "", True: "equal", False: "**differs**"}[r.argmax_equal]
        lines.append(
            f"| {r.entry}, {r.weights} | {r.mel} | {r.output} | {r.backend} | {r.difference:.1e} | {r.error:.1e} | "
            f"{r.library_error:.1e} | {r.scale:.3g} | {argmax} |"
        )
    return "\n".join(lines)


def _all(backends: tuple[str, ...]) -> Iterator[Row]:
    for case in CASES:
        yield from measure(case, backends)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.whisper_parity", description=__doc__)
    parser.add_argument(
        "--backend", action="append", help="a backend to measure; torch and reference if left out"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args()
    rows = list(_all(tuple(arguments.backend or ("torch", "reference"))))
    print(json.dumps([asdict(r) for r in rows], indent=1) if arguments.json else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""One configuration of one entry, ready to be measured: program, parameters, inputs, and the oracle's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nest.backends.session import session_symbols
from nest.errors import ManifestError
from nest.ir.inventory import parameters
from nest.ir.program import Program
from nest.loading import load, program_of
from nest.registry import Entry, find
from nest.verify.feed import Feed, Row, id_spaces
from nest.verify.limits import Limit, limit_of, limit_quantized
from nest.verify.oracle import Oracle
from nest.verify.records import Record, record_row
from nest.verify.script import call_order
from nest.verify.speech import Recordings, recordings_of
from nest.verify.tokens import PREFILL, Decoding, Tokens, can_decode, stepwise
from nest.verify.weights import lively_parameters
from nest.weights import bind, fetch, open_checkpoint

__all__ = ["Setting", "Weights", "pinned_parameters", "setting_of"]

Array = np.ndarray[Any, Any]
Weights = Literal["real", "random"]

_TOKENS = 24
_ROWS = 3


@dataclass
class Setting:
    """What is measured, and what it is measured against.

    Attributes:
        entry: of the zoo. program: its entries at the setting's generics. generics: the changed ones.
        configuration: `full`, `tiny`, or the changed generics as text. weights: which. input: `audio` or `drawn`.
        params: definition path -> array. feed: what the entries are called with. heard: recordings, for audio.
        rows: how many rows there are. batches: which of them are measured beside each other.
    """

    entry: Entry
    program: Program
    generics: dict[str, Any]
    configuration: str
    weights: Weights
    input: str
    params: Mapping[str, Array]
    feed: Feed
    heard: Recordings | None
    rows: int
    batches: list[tuple[int, ...]]
    oracle: Oracle
    options: dict[str, Any]

    @cached_property
    def decoding(self) -> Decoding | None:
        """What is decoded, if the program decodes."""
        if not can_decode(self.program):
            return None
        return self.heard.decoding if self.heard else _drawn_decoding(self)

    @cached_property
    def tokens(self) -> list[Tokens]:
        """What the oracle decodes, row by row."""
        if self.decoding is None:
            return []
        return [_decoded(self, row) for row in range(self.rows)]

    @cached_property
    def records(self) -> list[list[Record]]:
        """Each row's calls on the oracle. Recordings are followed by what they say."""
        if self.input == "audio" and self.decoding is not None:
            (space,) = id_spaces(self.program)
            spoken = [[*p, *t.ids] for p, t in zip(self.decoding.prompts, self.tokens, strict=True)]
            self.feed.ids[int(space)] = spoken
            self.feed.lengths = [len(p) + (3, 1, 2)[i % 3] for i, p in enumerate(self.decoding.prompts)]
        return [record_row(self.oracle, self.feed, row) for row in range(self.rows)]

    def limit(self, output: str, dtype: str) -> Limit:
        """What an output is held to. What an entry declares holds at its own size and the tiny one."""
        if quantize := self.options.get("quantize"):
            return limit_quantized(quantize)
        declared = self.entry if self.configuration in ("full", "tiny") else None
        return limit_of(declared, output, dtype, real=self.weights == "real")

    def typed(self, dtype: str) -> Program:
        """The program with another float type."""
        if dtype == "f32":
            return self.program
        trust: bool | None = self.options["trust_source"]
        return program_of(self.entry, trust_source=trust, **{**self.generics, "T": dtype})

    def load(self, backend: str, dtype: str) -> Any:
        """The same model on a backend."""
        return load(
            self.entry, backend=backend, dtype=dtype, weights=self.params, **self.generics, **self.options
        )


def setting_of(
    name: str | Entry,
    *,
    tiny: bool = False,
    weights: Weights | None = None,
    generics: Mapping[str, Any] | None = None,
    batches: Sequence[int] = (1, _ROWS),
    seed: int = 0,
    folder: Path | None = None,
    trust_source: bool | None = None,
    quantize: str | Mapping[str, str | None] | None = None,
    **fetching: Any,
) -> Setting:
    """The setting of an entry.

    Args:
        name: what `nest.registry.find` takes, or an entry.
        tiny: at the entry's tiny configuration.
        weights: the pinned ones (`"real"`, the default at the entry's own size) or lively random ones.
        generics: other values of the definition's generics.
        batches: how many rows are measured beside each other. Of recordings each is measured alone for 1.
        seed: of random weights and drawn inputs.
        folder: where the oracle's results are kept; nest's cache if None.
        quantize: keep the backends' weights in fewer bits, as `nest.load` does; the oracle's stay as they are.
        **fetching: what `nest.weights.fetch` takes.

    Raises:
        ManifestError: the entry has no tiny configuration, or real weights were asked for at another size.
    """
    entry = name if isinstance(name, Entry) else find(name)
    changed = {**(_tiny(entry) if tiny else {}), **(generics or {})}
    resized = any(entry.generics.get(n) != v for n, v in changed.items() if n != "T")
    weights = weights or ("random" if resized else "real")
    if weights == "real" and resized:
        raise ManifestError(
            f"The weights of '{entry.name}' fit its own size alone; at another, weights are random."
        )
    program = program_of(entry, trust_source=trust_source, **changed)
    params = (
        lively_parameters(program, seed)
        if weights == "random"
        else pinned_parameters(entry, program, fetching)
    )
    asked = {**entry.generics, **changed}.get("Capacity")
    sizes = {} if asked is None else {"Capacity": int(asked)}
    symbols = session_symbols(program, sizes) if program.root.has_state else {}
    heard = recordings_of(entry, _TOKENS) if weights == "real" else None
    rows = len(heard.names) if heard else max(batches)
    feed = Feed(program, symbols.get("Capacity"), seed=seed, floats={"mel": heard.mel} if heard else None)
    return Setting(
        entry=entry,
        program=program,
        generics=changed,
        configuration=" ".join(filter(None, [_configuration(tiny, generics), _scheme(quantize)])),
        weights=weights,
        input="audio" if heard else "drawn",
        params=params,
        feed=feed,
        heard=heard,
        rows=rows,
        batches=_batches(batches, rows, each=heard is not None),
        oracle=Oracle(program, params, folder=folder),
        options={"trust_source": trust_source, "quantize": quantize},
    )


def _tiny(entry: Entry) -> dict[str, Any]:
    if not entry.manifest.tiny:
        raise ManifestError(
            f"{entry.directory / 'nest.toml'}: '{entry.name}' has no [tiny] table, the generics of a small "
            f"configuration for verification."
        )
    return dict(entry.manifest.tiny)


def _configuration(tiny: bool, generics: Mapping[str, Any] | None) -> str:
    changed = ", ".join(f"{n}={v}" for n, v in (generics or {}).items())
    return " ".join(filter(None, ["tiny" if tiny else "", changed])) or "full"


def _scheme(quantize: str | Mapping[str, str | None] | None) -> str:
    """How weights are kept, for people."""
    if not isinstance(quantize, Mapping):
        return quantize or ""
    return ",".join(f"{part}={scheme}" for part, scheme in quantize.items() if scheme)


def pinned_parameters(entry: Entry, program: Program, fetching: Mapping[str, Any]) -> dict[str, Array]:
    """The checkpoint's tensors by definition path, as views of the mapped file where they can be."""
    pinned = entry.manifest.weights.files if entry.manifest.weights else []
    names = [f.name for f in pinned if f.name.endswith(".safetensors")]
    files = fetch(entry, names, **fetching).files
    bound = {n: d.value for n, d in program.root.generics.items() if d.value is not None}
    checkpoint = open_checkpoint([files[n] for n in names])
    return bind(parameters(program), entry.bindings, checkpoint, source=entry.name, generics=bound)


def _batches(sizes: Sequence[int], rows: int, *, each: bool) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for size in sizes:
        found += (
            [(row,) for row in range(rows)] if each and size == 1 else [tuple(i % rows for i in range(size))]
        )
    return found


def _drawn_decoding(setting: Setting) -> Decoding:
    """Prompts of unequal length from the feed, decoded until the caches are full or there are enough tokens.

    The mean of the oracle's logits is taken away: random weights prefer one id whatever came before, and tokens that
    never change would show nothing.
    """
    prompts = []
    for row in range(setting.rows):
        arguments = setting.feed.arguments(PREFILL, Row(row))
        ids = next(a for a in arguments.values() if a.ndim == 2)
        prompts.append(ids[0].tolist())
    count = min(_TOKENS, (setting.feed.capacity or 1) - max(map(len, prompts)) + 1)
    (space,) = (
        d
        for d in id_spaces(setting.program)
        if setting.program.entries[PREFILL].signature.results[0].shape[-1].same(d)
    )
    logits = [
        array.reshape(-1, array.shape[-1])
        for records in setting.records
        for record in records
        for array in record.results
        if array.shape[-1] == int(space)
    ]
    zero = np.zeros(int(space), np.float32)
    return Decoding(prompts, count, -np.concatenate(logits).mean(0).astype(np.float32), zero, -1)


def _decoded(setting: Setting, row: int) -> Tokens:
    session = setting.oracle.new_session(Batch=1, Capacity=setting.feed.capacity or 1)
    names = [n for n in call_order(setting.program) if setting.program.entries[n].uses_state]
    before = []
    for name in names[: names.index(PREFILL)]:
        before.append((name, list(setting.feed.arguments(name, Row(row)).values())))
    if setting.decoding is None:
        raise ValueError("there is nothing to decode")
    (found,) = stepwise(
        setting.program,
        lambda name, arguments: session.call(name, arguments)[0],
        before,
        setting.decoding.rows([row]),
    )
    return found

"""Greedy decoding in three ways, which must give one answer: stepwise with caches, whole prefixes without, one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest.ir.program import Function, Program
from nest.verify.feed import id_spaces
from nest.verify.records import Record, Session, beside
from nest.verify.script import arguments_of, call_order

__all__ = [
    "Decoding",
    "Tokens",
    "can_decode",
    "in_one_call",
    "mismatch",
    "stepwise",
    "whole_prefix",
    "without_caches",
]

Array = np.ndarray[Any, Any]
Call = Callable[[str, list[Array]], Array]

PREFILL, STEP, WHOLE = "prefill", "step", "greedy"


@dataclass(frozen=True)
class Decoding:
    """What is decoded: a prompt for each row, up to `count` tokens, biases of all and of first logits, the end's id."""

    prompts: list[list[int]]
    count: int
    bias: Array
    first_bias: Array
    end: int

    def rows(self, indices: Sequence[int]) -> Decoding:
        """The same of some rows."""
        return Decoding([self.prompts[i] for i in indices], self.count, self.bias, self.first_bias, self.end)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a row before its end, and by how much each was preferred to the next best."""

    ids: list[int]
    margins: list[float]


def can_decode(program: Program) -> bool:
    """Whether a program has `prefill` and `step` over tokens alone."""
    if not {PREFILL, STEP} <= program.entries.keys() or not id_spaces(program):
        return False
    roles = [a.role for name in (PREFILL, STEP) for a in arguments_of(program.entries[name])]
    return roles.count("ids") == 2 and set(roles) <= {"ids", "lengths", "position"}


def before_prefill(program: Program, rows: Sequence[Sequence[Record]]) -> list[tuple[str, list[Array]]]:
    """The calls that fill states which `prefill` reads, such as `listen`."""
    names = [n for n in call_order(program) if program.entries[n].uses_state]
    wanted = names[: names.index(PREFILL)]
    return [
        (calls[0].entry, beside(program, calls[0].entry, [c.arguments for c in calls]))
        for calls in zip(*rows, strict=True)
        if calls[0].entry in wanted
    ]


def stepwise(
    program: Program, call: Call, before: Sequence[tuple[str, list[Array]]], decoding: Decoding
) -> list[Tokens]:
    """Decode with caches, a call a token. Rows that have ended go on with the end, which is cut.

    Args:
        call: runs an entry and gives its first result on the host.
    """
    for name, arguments in before:
        call(name, arguments)
    lengths = np.array([len(p) for p in decoding.prompts], np.int32)
    prompts = np.zeros((len(lengths), lengths.max()), np.int32)
    for row, prompt in enumerate(decoding.prompts):
        prompts[row, : len(prompt)] = prompt
    logits = call(PREFILL, _arguments(program.entries[PREFILL], prompts, lengths, lengths))
    chosen, margins = _choose(logits, decoding.first_bias.astype(np.float64) + decoding.bias)
    columns, preferred = [chosen], [margins]
    while len(columns) < decoding.count and (np.stack(columns) != decoding.end).all(0).any():
        pos = (lengths + len(columns) - 1).astype(np.int32)
        logits = call(STEP, _arguments(program.entries[STEP], chosen[:, None], pos, lengths))
        chosen, margins = _choose(logits, decoding.bias)
        columns.append(chosen)
        preferred.append(margins)
    ids, gaps = np.stack(columns, 1), np.stack(preferred, 1)
    return [_cut(ids[row], gaps[row], decoding.end) for row in range(len(lengths))]


def _arguments(function: Function, ids: Array, pos: Array, lengths: Array) -> list[Array]:
    values = {"ids": ids, "position": pos, "lengths": lengths}
    return [values[a.role] for a in arguments_of(function)]


def _choose(logits: Array, bias: Array) -> tuple[Array, Array]:
    scores = logits.astype(np.float64) + bias
    chosen = scores.argmax(-1)
    best = np.take_along_axis(scores, chosen[:, None], -1)[:, 0]
    np.put_along_axis(scores, chosen[:, None], -np.inf, -1)
    return chosen.astype(np.int32), best - scores.max(-1)


def _cut(ids: Array, margins: Array, end: int) -> Tokens:
    ended = np.flatnonzero(ids == end)
    kept = int(ended[0]) if len(ended) else len(ids)
    # The margin of the end counts as well: it is a choice.
    return Tokens(ids[:kept].tolist(), margins[: kept + 1].tolist())


def whole_prefix(program: Program) -> str | None:
    """The entry without states that gives logits at every position of a prefix, if there is one."""
    spaces = id_spaces(program)
    for name, function in program.entries.items():
        ids = [a for a in arguments_of(function) if a.role == "ids" and a.parameter.type.rank == 2]
        result = function.signature.results[0]
        if function.uses_state or len(ids) != 1 or result.rank != 3:
            continue
        if ids[0].parameter.type.shape[1].same(result.shape[1]) and any(
            result.shape[2].same(s) for s in spaces
        ):
            return name
    return None


def without_caches(
    program: Program,
    session: Session,
    rows: Sequence[Sequence[Record]],
    decoding: Decoding,
    given: Sequence[Tokens],
) -> list[list[int]]:
    """What is chosen after each prefix of a prompt and the `given` tokens, on whole prefixes.

    Where this gives the same tokens, decoding without caches would too: each is chosen after the same ones.
    """
    name = whole_prefix(program)
    if name is None:
        raise ValueError(f"{program.name} has no entry that takes whole prefixes")
    function = program.entries[name]
    records = [next(r for r in row if r.entry == name) for row in rows]
    sequences = [
        [*p, *t.ids][: len(p) + decoding.count - 1] for p, t in zip(decoding.prompts, given, strict=True)
    ]
    longest = max(map(len, sequences))
    tokens = np.array([s + [0] * (longest - len(s)) for s in sequences], np.int32)
    arguments = beside(program, name, [r.arguments for r in records])
    for position, argument in enumerate(arguments_of(function)):
        if argument.role == "ids":
            arguments[position] = tokens
        elif argument.role == "lengths":
            arguments[position] = np.array([len(s) for s in sequences], np.int32)
    made = session.run_entry(name, arguments)
    logits = np.asarray(session.numpy(made[0] if isinstance(made, tuple) else made), np.float64)
    found = []
    for row, (prompt, sequence) in enumerate(zip(decoding.prompts, sequences, strict=True)):
        scores = logits[row, len(prompt) - 1 : len(sequence)] + decoding.bias
        scores[0] += decoding.first_bias
        ids = scores.argmax(-1).tolist()
        found.append(ids[: ids.index(decoding.end)] if decoding.end in ids else ids)
    return found


def in_one_call(
    session: Session, before: Sequence[tuple[str, list[Array]]], decoding: Decoding, parameters: Sequence[str]
) -> list[list[int]]:
    """Decode by the loop `greedy`, whose parameters have these names."""
    for name, arguments in before:
        session.run_entry(name, arguments)
    lengths = np.array([len(p) for p in decoding.prompts], np.int32)
    prompts = np.zeros((len(lengths), lengths.max()), np.int32)
    for row, prompt in enumerate(decoding.prompts):
        prompts[row, : len(prompt)] = prompt
    values = {
        "tokens": prompts,
        "lengths": lengths,
        "out": np.zeros((len(lengths), decoding.count), np.int32),
        "bias": decoding.bias,
        "first_bias": decoding.first_bias,
        "end": np.array(decoding.end, np.int32),
    }
    ids, counts, *_ = session.run_entry(WHOLE, [values[name] for name in parameters])
    host, kept = session.numpy(ids), session.numpy(counts)
    return [host[row, : kept[row]].tolist() for row in range(len(lengths))]


def mismatch(got: Sequence[Sequence[int]], want: Sequence[Tokens]) -> tuple[int, int, float] | None:
    """Row, position and the oracle's margin of the first token that differs in a row; the largest margin of them."""
    found = []
    for row, (ids, right) in enumerate(zip(got, want, strict=True)):
        if list(ids) != right.ids:
            same = next((i for i, (a, b) in enumerate(zip(ids, right.ids, strict=False)) if a != b), None)
            at = min(len(ids), len(right.ids)) if same is None else same
            found.append((row, at, right.margins[min(at, len(right.margins) - 1)]))
    return max(found, key=lambda f: f[2]) if found else None

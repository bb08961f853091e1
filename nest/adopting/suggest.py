"""Bindings proposed from names and shapes alone, of a new definition or a checkpoint with names of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from nest.adopting.names import Template, likeness, meaning, templates
from nest.ir.parammap import TensorSpec
from nest.ir.types import ParamSpec

__all__ = ["Proposal", "Suggestions", "suggest"]

Confidence = Literal["certain", "likely", "guess"]
_CLEAR = 1.0
"""By so much a proposal must be likelier than any other use of its parameter and of its tensor, to be certain."""


@dataclass(frozen=True)
class Proposal:
    """One line of a `bindings.json`: a template of definition paths, and what it is made of."""

    path: str
    value: Any
    confidence: Confidence
    params: tuple[str, ...]


@dataclass(frozen=True)
class Suggestions:
    """What was matched, and what was not on either side, as templates."""

    proposals: tuple[Proposal, ...]
    unmatched_params: tuple[str, ...]
    unmatched_tensors: tuple[str, ...]

    def bindings(self, *, certain: bool = False) -> dict[str, Any]:
        """The proposals as `bindings.json` has them; those that are certain alone, if asked."""
        return {one.path: one.value for one in self.proposals if not certain or one.confidence == "certain"}


@dataclass(frozen=True)
class _Use:
    """A way in which one tensor can be one or several parameters."""

    score: float
    params: tuple[Template, ...]
    tensor: Template
    values: tuple[Any, ...]
    turned: bool | None
    """Whether it is stored [in, out]; None where the shape does not say."""


def suggest(params: Mapping[str, ParamSpec], tensors: Mapping[str, TensorSpec]) -> Suggestions:
    """Match the parameters of a definition with the tensors of a checkpoint.

    A tensor fits a parameter as it is, transposed, reshaped by axes of one, or as a part of a projection that several
    parameters share. Where names say nothing against it, the likeliest uses are taken one after another.

    Args:
        params: by definition path.
        tensors: by name.
    """
    ours = templates(params)
    theirs = templates(tensors, deepest=max((len(one.indices[0]) for one in ours), default=0))
    uses = sorted(_uses(ours, theirs, params, tensors), key=lambda use: -use.score)
    turned = _turned(uses)
    taken: dict[str, _Use] = {}
    used: set[str] = set()
    proposals: dict[str, Proposal] = {}
    for use in uses:
        if use.tensor.text in used or any(param.text in taken for param in use.params):
            continue
        confidence = _confidence(use, uses, turned)
        used.add(use.tensor.text)
        for param, value in zip(use.params, use.values, strict=True):
            taken[param.text] = use
            settled = _settled(value, use, turned)
            proposals[param.text] = Proposal(param.text, settled, confidence, param.names)
    return Suggestions(
        tuple(proposals[param.text] for param in ours if param.text in proposals),
        tuple(param.text for param in ours if param.text not in proposals),
        tuple(tensor.text for tensor in theirs if tensor.text not in used),
    )


def _uses(
    ours: list[Template],
    theirs: list[Template],
    params: Mapping[str, ParamSpec],
    tensors: Mapping[str, TensorSpec],
) -> Iterable[_Use]:
    shapes = {one.text: _shape(one, {name: spec.shape for name, spec in params.items()}) for one in ours}
    for tensor in theirs:
        shape = _shape(tensor, {name: spec.shape for name, spec in tensors.items()})
        for param in ours:
            if param.indices != tensor.indices or (score := likeness(param.text, tensor.text)) is None:
                continue
            wanted = shapes[param.text]
            if shape is None or wanted is None:
                # Members of several sizes, such as a network's stages: each has to fit as it is.
                if all(
                    params[one].shape == tensors[its].shape
                    for one, its in zip(param.names, tensor.names, strict=True)
                ):
                    yield _Use(score, (param,), tensor, (tensor.text,), None)
            elif (fit := _fit(tensor.text, shape, wanted)) is not None:
                yield _Use(score, (param,), tensor, (fit[0],), fit[1])
        if shape is not None:
            yield from _shares(tensor, shape, ours, shapes)


def _shape(one: Template, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    found = {shapes[name] for name in one.names}
    return found.pop() if len(found) == 1 else None


def _fit(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[Any, bool | None] | None:
    """A tensor as a parameter of another shape, and whether that shows how it is stored; None where it does not fit."""
    if shape == wanted:
        square = len(shape) == 2 and shape[0] == shape[1]
        return name, None if square or len(shape) != 2 else False
    if len(shape) == 2 and shape[::-1] == wanted:
        return {"op": "transpose", "of": name, "perm": [1, 0]}, True
    if [size for size in shape if size != 1] == [size for size in wanted if size != 1]:
        return {"op": "reshape", "of": name, "shape": list(wanted)}, None
    return None


_FUSED = {"qkv": ("q", "k", "v"), "gate_up": ("gate", "up")}


def _shares(
    tensor: Template,
    shape: tuple[int, ...],
    ours: list[Template],
    shapes: Mapping[str, tuple[int, ...] | None],
) -> Iterable[_Use]:
    """A projection that is stored as one, in as many parameters of one block as its name says."""
    said = meaning(tensor.text)
    roles = _FUSED.get(said.get("projection", ""))
    if roles is None:
        return
    blocks: dict[str, dict[str, Template]] = {}
    for param in ours:
        role = meaning(param.text)
        fits = role.get("projection") in roles and role["kind"] == said["kind"] and "norm" not in role
        if fits and param.indices == tensor.indices:
            blocks.setdefault(re.sub(r"[^.]+\.[^.]+$", "", param.text), {})[role["projection"]] = param
    for found in blocks.values():
        parts = [found[role] for role in roles if role in found]
        sizes = [shapes[part.text] for part in parts]
        if len(parts) == len(roles) and (cut := _cut(tensor.text, shape, sizes)) is not None:
            values, turned = cut
            yield _Use(6.0, tuple(parts), tensor, tuple(values), turned)


def _cut(
    name: str, shape: tuple[int, ...], sizes: list[tuple[int, ...] | None]
) -> tuple[list[Any], bool | None] | None:
    """The slices of a tensor that have the wanted shapes, in their order; transposed where it is stored [in, out]."""
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or len({size[1:] for size in known}) != 1:
        return None
    total, rest = sum(size[0] for size in known), known[0][1:]
    axis = 0 if shape == (total, *rest) else 1 if shape == (*rest, total) and len(shape) == 2 else None
    if axis is None:
        return None
    values, start = [], 0
    for size in known:
        part: Any = {"op": "slice", "of": name, "axis": axis, "start": start, "stop": start + size[0]}
        values.append({"op": "transpose", "of": part, "perm": [1, 0]} if axis else part)
        start += size[0]
    return values, bool(axis) if len(shape) == 2 else None


def _turned(uses: list[_Use]) -> bool | None:
    """Whether the checkpoint stores linear layers [in, out], by those of them whose shape says it."""
    said = {use.turned for use in uses if use.turned is not None and _linear(use) and use.score > 2}
    return said.pop() if len(said) == 1 else None


def _linear(use: _Use) -> bool:
    return all("projection" in meaning(param.text) for param in use.params)


def _settled(value: Any, use: _Use, turned: bool | None) -> Any:
    """A square layer is stored as the others are."""
    if (
        use.turned is None
        and turned
        and isinstance(value, str)
        and _linear(use)
        and meaning(value)["kind"] == "weight"
    ):
        return {"op": "transpose", "of": value, "perm": [1, 0]}
    return value


def _confidence(use: _Use, uses: list[_Use], turned: bool | None) -> Confidence:
    rivals = [
        other.score
        for other in uses
        if other is not use
        and (
            other.tensor.text == use.tensor.text
            or {p.text for p in other.params} & {p.text for p in use.params}
        )
    ]
    margin = use.score - max(rivals, default=-10.0)
    if use.score >= 3.0 and margin >= _CLEAR:
        return "certain"
    return "likely" if margin > 0 and use.score > 0 else "guess"

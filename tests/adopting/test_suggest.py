"""Bindings from names and shapes alone, against those that the zoo has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nest.adopting.names import likeness, templates
from nest.adopting.suggest import suggest
from nest.ir.inventory import parameters
from nest.ir.parammap import TensorSpec
from nest.loading import program_of
from nest.registry import Bindings, Entry, find, names
from nest.registry.bindings import parse_bindings
from nest.registry.tensors import read_tensors


def entries_of_the_zoo() -> Iterator[str]:
    """One entry for each `bindings.json`: other sizes have the same names."""
    seen = set()
    for name in names():
        entry = find(name)
        weights = entry.manifest.weights
        file = entry._file(weights.bindings) if weights else None
        if file is not None and file not in seen:
            seen.add(file)
            yield name


def expression(bindings: Bindings, path: str, sizes: dict[str, Any]) -> str | None:
    """What a parameter is made of."""
    for rule in bindings.rules:
        indices = rule.match(path)
        if indices is not None:
            return str(rule.expression(indices, sizes))
    return None


def judged(entry: Entry) -> tuple[int, int, list[str]]:
    """How many templates were proposed rightly, how many there are, and what was certain and wrong."""
    program = program_of(entry)
    listed = read_tensors(entry.directory, entry.name)
    assert listed is not None
    sizes = {name: value.value for name, value in program.root.generics.items()}
    params = parameters(program)
    found = suggest(params, listed.specs)
    mine, faults = parse_bindings({"bindings": found.bindings()})
    assert not faults
    right, wrong = 0, []
    for one in found.proposals:
        same = all(expression(mine, p, sizes) == expression(entry.bindings, p, sizes) for p in one.params)
        right += same
        if not same and one.confidence == "certain":
            wrong.append(f"{one.path}: {one.value}")
    return right, len(templates(params)), wrong


def test_the_zoo_is_suggested_from_names_and_shapes() -> None:
    total = rightly = 0
    for name in entries_of_the_zoo():
        right, count, wrong = judged(find(name))
        assert wrong == [], f"{name}: certain, and wrong"
        assert right >= 0.8 * count, f"{name}: {right} of {count}"
        total, rightly = total + count, rightly + right
    print(f"{rightly} of {total} lines are right")
    assert rightly >= 0.97 * total


def test_names_that_say_nothing_are_not_certain() -> None:
    params = parameters(program_of("smollm2-135m-instruct", Layers=2))
    tensors = {f"t{n}": TensorSpec(spec.shape, "f32") for n, spec in enumerate(params.values())}
    found = suggest(params, tensors)
    assert {one.confidence for one in found.proposals} <= {"likely", "guess"}


def test_what_is_on_one_side_alone_is_listed() -> None:
    params = parameters(program_of("smollm2-135m-instruct", Layers=2, tied=False))
    tensors = {"model.norm.weight": TensorSpec((576,), "f32"), "extra.scale": TensorSpec((3,), "f32")}
    found = suggest(params, tensors)
    assert [one.path for one in found.proposals] == ["norm.weight"]
    assert "head" in found.unmatched_params
    assert found.unmatched_tensors == ("extra.scale",)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("layers.{i}.attention.q_proj.weight", "h.{i}.attn.wq.weight", True),
        ("layers.{i}.attention.q_proj.weight", "h.{i}.attn.wk.weight", False),
        ("layers.{i}.attention.q_proj.weight", "h.{i}.attn.wq.bias", False),
        ("layers.{i}.mlp_norm.weight", "model.layers.{i}.post_attention_layernorm.weight", True),
        ("layers.{i}.mlp_norm.weight", "model.layers.{i}.input_layernorm.weight", False),
        ("positions", "wpe.weight", True),
        ("token_embedding", "wpe.weight", False),
    ],
)
def test_names_that_contradict_each_other_are_no_match(one: str, other: str, alike: bool) -> None:
    assert (likeness(one, other) is not None) is alike

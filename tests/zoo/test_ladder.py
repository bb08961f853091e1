"""Every definition of the zoo at its tiny configuration, on every backend."""

from __future__ import annotations

from collections import Counter

import pytest

from nest.registry import entries, find
from nest.verify import Setting, matrix
from nest.verify.limits import PROJECT
from nest.verify.tokens import whole_prefix

from .conftest import EVERYTHING

BACKENDS = ["torch", "onnx", "jax", "nnx"]


@pytest.mark.parametrize("backend", [*BACKENDS, "reference"])
def test_every_entry_agrees_with_the_oracle(setting: Setting, backend: str) -> None:
    """Entries at batch 1 and with three unequal rows, cached against uncached, tokens in three ways, every plan."""
    # nnx plans with jax's engine, which has been measured: what is its own is the module.
    plans = ("exact",) if backend == "nnx" and not EVERYTHING else ()
    found = matrix(setting, backends=[backend], plans=plans, library=False)
    rows = [r for r in found if r.backend == backend]
    assert [r for r in rows if r.status != "ok"] == []
    seen = {r.output for r in rows}
    assert {name for name in setting.program.entries if name not in seen} == set()
    assert {r.batch for r in rows} == {1, 3}
    if setting.decoding is not None:
        assert {"tokens, cached", "tokens, one call"} <= seen


@pytest.mark.reference
def test_the_reference_library_agrees_with_the_oracle(numbered_setting: Setting) -> None:
    setting = numbered_setting
    rows = [r for r in matrix(setting, backends=["reference"]) if r.backend == "transformers"]
    assert rows, f"there is no reference library for the family '{setting.entry.manifest.model.family}'"
    for row in rows:
        assert row.status == "ok"
        assert row.relative is None or row.relative < PROJECT["f32"] / 4
    tokens = {"tokens, generate"} if setting.decoding is not None else set()
    assert {r.output for r in rows} >= {*setting.program.entries, *tokens}


def test_cached_entries_are_the_whole_prefix_s(setting: Setting) -> None:
    rows = [r for r in matrix(setting, backends=["reference"], library=False) if r.backend == "oracle"]
    assert all(r.status == "ok" for r in rows)
    if setting.decoding is not None:
        whole = whole_prefix(setting.program)
        assert {r.output for r in rows} == {f"prefill against {whole}", f"step against {whole}"}


def test_what_is_decoded_varies(setting: Setting) -> None:
    """Tokens that are equal whatever the model does would show nothing."""
    if setting.decoding is None:
        pytest.skip("it decodes nothing")
    counts = Counter(token for tokens in setting.tokens for token in tokens.ids)
    assert len(counts) > 5
    assert len({tuple(t.ids) for t in setting.tokens}) == len(setting.tokens)


@pytest.mark.parametrize("name", [e.name for e in entries()])
def test_tiny_configurations_have_pairwise_different_sizes(name: str) -> None:
    """A swap of two axes of one size goes unseen."""
    tiny, own = find(name).manifest.tiny, find(name).generics
    assert tiny.keys() <= own.keys()
    sizes = [v for n, v in tiny.items() if n[0].isupper() and isinstance(v, int)]
    if "HeadDim" not in tiny:
        towers = [n.removesuffix("Heads") for n in tiny if n.endswith("Heads") and n != "KvHeads"]
        sizes += [int(tiny[f"{tower}D"]) // int(tiny[f"{tower}Heads"]) for tower in towers]
    assert len(sizes) == len(set(sizes))
    assert all(int(v) >= 2 for n, v in tiny.items() if n.endswith("Layers"))

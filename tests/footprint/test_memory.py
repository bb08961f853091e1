"""What `nest.memory` says, against what is there when a model is loaded, and against the sizes of files."""

from __future__ import annotations

from typing import Any

import pytest

import nest
from nest.errors import CallError
from nest.footprint import limits
from nest.footprint.activations import Lives
from nest.footprint.report import Model
from nest.layers import Block, Dim, DType, Float, Linear, Tensor, elaborate, entry, gelu
from nest.loading import program_of

SMALL: dict[str, Any] = {
    "whisper-tiny.en": {
        "D": 64, "Heads": 2, "Inner": 128, "Vocab": 500, "EncoderLayers": 2, "DecoderLayers": 2, "MaxTokens": 32,
    },
    "smollm2-135m-instruct": {
        "D": 64, "Heads": 4, "KvHeads": 2, "HeadDim": 16, "Inner": 128, "Layers": 2, "Vocab": 500, "MaxTokens": 32,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_a_loaded_model_holds_so_much(name: str, dtype: str) -> None:
    model = nest.load(name, weights=None, backend="torch", dtype=dtype, **SMALL[name])
    said = nest.memory(name, batch=3, context=20, dtype=dtype, plan="fast", **SMALL[name])
    own = _storages(model.state_dict().values())
    assert sum(said.weights.values()) == pytest.approx(sum(own.values()), rel=0.01)
    assert said.dtypes == {dtype: sum(said.weights.values())}
    session = model.new_session(plan="fast", Batch=3, Capacity=20)
    kept = _storages(session._live().values())
    assert sum(said.caches.values()) == pytest.approx(sum(kept.values()), rel=0.01)
    made = {p: n for p, n in _storages(session.model.state_dict().values()).items() if p not in own}
    assert said.made == pytest.approx(sum(made.values()), rel=0.01)
    assert made


def _storages(tensors: Any) -> dict[int, int]:
    """The bytes of each storage, by where it lies."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


@pytest.mark.parametrize(("name", "dtype"), [("whisper-tiny.en", "f32"), ("whisper-large-v3", "f16")])
def test_weights_are_as_large_as_the_files_that_need_not_be_here(name: str, dtype: str) -> None:
    weights = nest.find(name).manifest.weights
    assert weights is not None
    files = sum(f.size or 0 for f in weights.files if f.name.endswith(".safetensors"))
    assert sum(nest.memory(name, dtype=dtype).weights.values()) == pytest.approx(files, rel=0.01)


class Two(Block):
    """Two products, of which the wide one in between is the largest."""

    In: Dim
    Wide: Dim
    T: DType

    def build(self) -> None:
        self.up = Linear(self.In, self.Wide, self.T)
        self.down = Linear(self.Wide, self.In, self.T)

    @entry
    def forward(self, x: Float[Tensor, "B In"]) -> Float[Tensor, "B In"]:
        wide: Tensor = gelu(self.up(x))
        result: Tensor = self.down(wide)
        return result


def test_the_fullest_moment_is_where_the_most_values_live() -> None:
    lives = Lives(elaborate(Two, In=4, Wide=100, T="f16"), "forward")
    # The argument, and before and after the gelu; the result comes when the first of these is gone.
    assert lives.peak({"B": 5, "In": 4, "Wide": 100}) == 5 * (4 + 100 + 100) * 2


def test_what_fits_fits_and_one_more_does_not() -> None:
    model = Model(program_of("whisper-tiny.en", T="f16"))
    limit = 1 << 30
    found = limits(model, limit, batch=4)
    assert found.batch > 1
    assert model.memory(found.batch).total <= limit < model.memory(found.batch + 1).total
    assert found.context == 448
    llama = Model(program_of("llama-3.1-8b-instruct"))
    length = limits(llama, 24 << 30, batch=2).context
    assert length is not None
    assert llama.memory(2, length).total <= 24 << 30 < llama.memory(2, length + 1).total


def test_nothing_fits_into_too_little() -> None:
    found = limits(Model(program_of("resnet-18")), 1000)
    assert (found.batch, found.context) == (0, None)


def test_a_context_that_the_definition_forbids_is_refused() -> None:
    with pytest.raises(CallError, match=r"448 positions at most; 449 was given"):
        nest.memory("whisper-tiny.en", context=449)

"""Element types on torch: parameters in those of their definition, and what changes them afterwards is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nest
from nest.errors import CallError
from nest.layers import Block, DType, Float, Float32, Int32, Param, Tensor, cast, entry

torch = pytest.importorskip("torch")

SMALL = {
    "D": 8,
    "Heads": 2,
    "Inner": 8,
    "EncoderLayers": 1,
    "DecoderLayers": 1,
    "Vocab": 20,
    "Frames": 8,
    "Mels": 4,
}
MEL = np.zeros((1, 4, 8), "f4")


class Scaled(Block):
    """A parameter of the root's type, and one that is f32 whatever that is."""

    T: DType

    def build(self) -> None:
        self.weight = Param("3", self.T)
        self.scale = Param("3", "f32")

    @entry
    def run(self, x: Float[Tensor, "B 3"], i: Int32[Tensor, "B"]) -> Float32[Tensor, "B 3"]:
        return cast(x * self.weight, "f32") * self.scale + cast(i, "f32").reshape(i.shape[0], 1)


def small(**options: object) -> torch.nn.Module:
    return nest.load("whisper-tiny.en", backend="torch", weights=None, **{**SMALL, **options})


def test_each_parameter_has_the_type_of_its_definition() -> None:
    model = nest.load(Scaled, backend="torch", weights=None, dtype="f16")
    assert {n: p.dtype for n, p in model.named_parameters()} == {
        "weight": torch.float16,
        "scale": torch.float32,
    }
    assert model.run(torch.ones(2, 3), [0, 1]).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "made"),
    [
        (lambda m: m.half(), "f16"),
        (lambda m: m.double(), "f64"),
        (lambda m: m.to(torch.bfloat16), "bf16"),
        (lambda m: m.to("cpu", torch.float64), "f64"),
    ],
)
def test_a_model_keeps_its_element_type(change: Callable[[torch.nn.Module], object], made: str) -> None:
    model = small()
    before = model.encode(MEL)
    message = (
        rf"whisper-tiny.en was made to compute in f32 and cannot be turned into {made}: load it so, with"
    )
    with pytest.raises(CallError, match=message):
        change(model)
    assert torch.equal(model.encode(MEL), before)


def test_what_keeps_the_type_is_as_on_any_module() -> None:
    model = small()
    assert model.float() is model
    assert model.to("cpu") is model
    assert model.to("meta").device.type == "meta"


def test_autocast_leaves_the_caches_in_their_type() -> None:
    model = small()
    plain, mixed = model.new_session(), model.new_session()
    plain.listen(MEL)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed.listen(MEL)
        logits = mixed.prefill([[1, 2]])
    assert torch.equal(logits, plain.prefill([[1, 2]]))


def test_a_session_outlives_the_inference_mode_that_it_was_made_in() -> None:
    model = small()
    with torch.inference_mode():
        model.listen(MEL)
        session = model.new_session()
    model.listen(MEL)
    session.listen(MEL)
    assert torch.equal(session.prefill([[1, 2]]), model.prefill([[1, 2]]))


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int64]
)
def test_integers_of_any_width_are_taken(dtype: torch.dtype) -> None:
    model = nest.load(Scaled, backend="torch", weights=None)
    rows = torch.arange(2).to(dtype)
    assert torch.equal(model.run(torch.ones(2, 3), rows), model.run(torch.ones(2, 3), [0, 1]))


@pytest.mark.parametrize("dtype", [torch.uint32, torch.uint64])
def test_unsigned_integers_that_int32_does_not_hold_are_refused(dtype: torch.dtype) -> None:
    model = nest.load(Scaled, backend="torch", weights=None)
    rows = torch.tensor([1, 2**32 - 1], dtype=torch.int64).to(dtype)
    with pytest.raises(CallError, match="4294967295"):
        model.run(torch.ones(2, 3), rows)


def test_a_numpy_type_that_torch_has_not() -> None:
    model = small()
    wide = np.full(MEL.shape, 0.25, np.longdouble)
    assert torch.equal(model.encode(wide), model.encode(wide.astype("f4")))


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, of nested and of quantized tensors
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda x: x.to_sparse(), "and this one is of torch.float32 and torch.sparse_coo)."),
        (lambda x: torch.nested.nested_tensor([x[0]]), "a dense, unquantized tensor is taken"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "torch.qint8"),
        (lambda x: x.to("meta"), "it cannot be read as an array of numbers (a tensor on 'meta' has none)."),
    ],
)
def test_a_tensor_that_is_no_plain_one(make: Callable[[object], object], said: str) -> None:
    with pytest.raises(CallError) as caught:
        small().encode(make(torch.zeros(1, 4, 8)))
    assert said in str(caught.value)

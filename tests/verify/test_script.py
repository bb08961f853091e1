"""The order of calls and the meaning of arguments are found from the program, for any family."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nest.ir.program import Program
from nest.layers import elaborate
from nest.loading import build_model
from nest.verify import Setting
from nest.verify.compare import compare
from nest.verify.feed import Feed, Row, id_spaces
from nest.verify.oracle import Oracle
from nest.verify.records import record_row, replay
from nest.verify.script import STEPS, arguments_of, call_order
from nest.verify.tokens import can_decode, whole_prefix
from nest.verify.weights import lively_parameters

from .models import BERT, GPT, Bert, Gpt


@pytest.fixture(scope="module")
def gpt() -> Program:
    return elaborate(Gpt, **GPT)


@pytest.fixture(scope="module")
def bert() -> Program:
    return elaborate(Bert, **BERT)


def roles(program: Program, name: str) -> dict[str, str]:
    return {a.name: a.role for a in arguments_of(program.entries[name])}


def test_whisper(tiny: Setting) -> None:
    program = tiny.program
    assert call_order(program) == ("encode", "decode", "listen", "prefill", "align", *["step"] * STEPS)
    assert roles(program, "decode") == {"tokens": "ids", "audio": "float"}
    assert roles(program, "prefill") == {"tokens": "ids", "lengths": "lengths"}
    assert roles(program, "step") == {"token": "ids", "pos": "position"}
    assert [str(s) for s in id_spaces(program)] == ["Vocab"]
    assert whole_prefix(program) == "decode"


def test_a_decoder_alone(gpt: Program) -> None:
    assert call_order(gpt) == ("forward", "prefill", *["step"] * STEPS)
    assert whole_prefix(gpt) == "forward"
    assert can_decode(gpt)


def test_an_encoder_alone(bert: Program) -> None:
    assert call_order(bert) == ("encode", "pool")
    assert roles(bert, "encode") == {"tokens": "ids", "kinds": "ids", "lengths": "lengths"}
    assert [str(s) for s in id_spaces(bert)] == ["Vocab", "2"]
    assert whole_prefix(bert) is None
    assert not can_decode(bert)


def test_rows_differ_in_length_and_do_not_depend_on_each_other(tiny: Setting) -> None:
    first = tiny.feed.arguments("prefill", Row(0))
    again = Feed(tiny.program, tiny.feed.capacity).arguments("prefill", Row(0))
    assert all((first[n] == again[n]).all() for n in first)
    lengths = [int(tiny.feed.arguments("prefill", Row(i))["lengths"][0]) for i in range(3)]
    assert len(set(lengths)) == 3
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(
            tiny.feed.arguments("encode", Row(0))["mel"], tiny.feed.arguments("encode", Row(1))["mel"]
        )


def test_results_go_on_to_where_they_fit(tiny: Setting) -> None:
    encode, decode = (next(r for r in tiny.records[0] if r.entry == n) for n in ("encode", "decode"))
    np.testing.assert_array_equal(decode.arguments["audio"], encode.results[0].astype(np.float32))


def test_steps_go_on_where_the_prompt_ends(tiny: Setting) -> None:
    for records in tiny.records:
        prompt = next(r for r in records if r.entry == "prefill").arguments
        whole = next(r for r in records if r.entry == "decode").arguments["tokens"][0]
        steps = [r.arguments for r in records if r.entry == "step"]
        length = int(prompt["lengths"][0])
        assert [int(s["pos"][0]) for s in steps] == [length + i for i in range(STEPS)]
        np.testing.assert_array_equal(prompt["tokens"][0], whole[:length])
        spoken = [int(s["token"][0, 0]) for s in steps]
        assert spoken[: len(whole) - length] == whole[length:].tolist()[: len(spoken)]


@pytest.mark.parametrize("backend", ["torch", "onnx", "jax", "nnx"])
@pytest.mark.parametrize(("root", "generics"), [(Gpt, GPT), (Bert, BERT)], ids=["gpt", "bert"])
def test_rows_beside_each_other_are_as_they_are_alone(root: Any, generics: Any, backend: str) -> None:
    program = elaborate(root, **generics)
    params = lively_parameters(program)
    oracle = Oracle(program, params, keep=False)
    capacity = 16 if program.root.has_state else None
    rows = [record_row(oracle, Feed(program, capacity), i) for i in range(3)]
    session = build_model(program, params, backend).new_session(Batch=3)
    for position, found in enumerate(replay(program, session, rows)):
        for got, records in zip(found, rows, strict=True):
            difference = compare(got[0], records[position].results[0])
            assert difference.scale > 0.1
            assert difference.relative < 2e-6

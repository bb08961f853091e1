"""Rows that grow by loops and by steps, on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nest.errors import NestError
from nest.tasks._writing import LONGEST, Said, Writer
from nest.tasks.sampling import uniforms
from nest.tasks.wishes import Wishes

from ..decoder import BACKENDS, VOCAB, decoder_on

PROMPTS = [[1, 2], [4, 90, 61, 7], [9]]
STEPS = 40
WISHES = {
    "greedy": Wishes(),
    "greedy, penalty": Wishes(repetition_penalty=1.7),
    "min-p": Wishes(temperature=0.9, min_p=0.1, repetition_penalty=1.2),
    "top": Wishes(temperature=1.2, top_k=9, top_p=0.8, min_p=0.02, repetition_penalty=0.9),
}
# So often said that rows end at different places.
ENDS = list(range(0, 300, 17))


class Steps:
    """A session without its loops."""

    def __init__(self, session: Any) -> None:
        self.numpy, self.prefill, self.step = session.numpy, session.prefill, session.step


def written(
    session: Any, wishes: Wishes, counts: list[int], rows: tuple[int, ...] = (0, 1, 2), ends: list[int] = ENDS
) -> list[Said]:
    chance = uniforms([5, 6, 7], STEPS, 3)[:, list(rows)]
    writer = Writer(session, [PROMPTS[row] for row in rows], ends, wishes, chance)
    said: list[Said] = [[] for _ in rows]
    for count in counts * STEPS:
        if not writer.running.any() or writer.written == STEPS:
            return said
        for row, more in zip(said, writer.write(count), strict=True):
            row += more
    return said


def same(got: list[Said], want: list[Said]) -> None:
    assert [[token for token, _ in row] for row in got] == [[token for token, _ in row] for row in want]
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose([s for _, s in mine], [s for _, s in theirs], rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WISHES)
def test_loops_say_what_steps_say_however_they_are_cut(name: str, backend: str) -> None:
    if backend == "nnx" and name != "greedy":
        pytest.skip("nnx compiles what jax does; the greedy loop shows that it gets there")
    reference = decoder_on("reference").new_session(Batch=3)
    want = written(Steps(reference), WISHES[name], [1])
    session = decoder_on(backend).new_session(Batch=3)
    assert session.whole_decodes
    same(written(session, WISHES[name], [LONGEST]), want)
    same(written(session, WISHES[name], [3, 1, 7]), want)
    assert len({len(row) for row in want}) == 3
    for row in want:
        assert [token for token, _ in row if token in ENDS] == ([row[-1][0]] if len(row) < STEPS else [])


@pytest.mark.parametrize("name", WISHES)
def test_a_row_is_written_as_it_would_be_alone(name: str) -> None:
    model = decoder_on("torch")
    together = written(model.new_session(Batch=3), WISHES[name], [9])
    for row in range(3):
        same(written(model.new_session(), WISHES[name], [9], rows=(row,)), [together[row]])


def test_a_row_that_the_caller_stops_says_nothing_more_and_changes_no_other() -> None:
    want = written(decoder_on("torch").new_session(Batch=3), Wishes(), [9], ends=[])
    writer = Writer(decoder_on("torch").new_session(Batch=3), PROMPTS, [], Wishes(), uniforms(0, STEPS, 3))
    first = writer.write(5)
    writer.running[1] = False
    later = [writer.write(LONGEST) for _ in range(2)]
    assert [len(row) for row in first] == [1, 1, 1]
    assert [len(row) for row in later[0]] == [LONGEST, 0, LONGEST]
    assert [len(row) for row in later[1]] == [STEPS - LONGEST - 1, 0, STEPS - LONGEST - 1]
    for row in (0, 2):
        same([first[row] + later[0][row] + later[1][row]], [want[row]])


def test_more_ends_than_one_shape_holds() -> None:
    session = decoder_on("torch").new_session(Batch=3)
    all_but_one = [token for token in range(VOCAB) if token != 7]
    said = written(session, Wishes(), [LONGEST], ends=all_but_one)
    assert [len(row) for row in said] == [1, 1, 1]


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("wishes", [Wishes(), Wishes(temperature=1.0)])
def test_bad_logits_are_told(steps: bool, wishes: Wishes) -> None:
    session = decoder_on("torch").new_session(Batch=3)
    writer = Writer(Steps(session) if steps else session, PROMPTS, [], wishes, uniforms(0, STEPS, 3))
    writer.write(1)
    states = session.state_dict()
    states["layers.1.values"][1, :, 1] = np.nan
    session.load_state_dict(states)
    with pytest.raises(NestError, match="logits are NaN or infinite in row 1, so no token can be chosen"):
        writer.write(4)

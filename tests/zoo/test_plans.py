"""Plans at every entry's own size: which matrices a pass takes is decided by sizes, which tiny configurations lack."""

from __future__ import annotations

import pytest

from nest.ir import parameters
from nest.ir.parammap import TensorSpec
from nest.ir.plan import plan
from nest.loading import program_of
from nest.registry import cards, find


@pytest.mark.parametrize("name", sorted(card.name for card in cards()[0] if card.trusted))
def test_a_plan_s_parameters_are_made_of_the_definition_s(name: str) -> None:
    program = program_of(find(name))
    given = {path: TensorSpec(spec.shape, spec.dtype) for path, spec in parameters(program).items()}
    made = plan(program, "fast")
    wanted = {path: TensorSpec(spec.shape, spec.dtype) for path, spec in parameters(made.program).items()}
    assert made.params.infer(given) == wanted

"""States in another element type than the model computes in: caches in 16 bits beside weights of 32."""

from __future__ import annotations

from nest.errors import CallError
from nest.ir.dtype import DType
from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.program import Function, Node, Operand, Program, State, Value
from nest.ir.types import TensorType

__all__ = ["TYPES", "keep_states"]

TYPES = ("f32", "f16", "bf16")
"""What states can be kept in."""


def keep_states(program: Program, kept: str) -> Program:
    """Keep the states of floats in this element type, in place: what is written is cast, and what is read cast back.

    Raises:
        CallError: there is no such type, or the program has no states of floats.
    """
    if kept not in TYPES:
        raise CallError(f"caches is one of {', '.join(TYPES)}; came {kept!r}.")
    blocks = program.root.distinct()
    if not any(s.type.dtype.kind == "float" for b in blocks for s in b.states.values()):
        raise CallError(f"{program.name} has no caches: leave caches= out.")
    dtype = DType.of(kept)
    for block in blocks:
        block.states = {name: _state(state, dtype) for name, state in block.states.items()}
    for function in program.functions():
        _rewrite(function, dtype)
    return program


def _state(state: State, dtype: DType) -> State:
    if state.type.dtype.kind != "float":
        return state
    return State(TensorType(state.type.shape, dtype), state.batch_axis, state.write_axis)


def _rewrite(function: Function, dtype: DType) -> None:
    """Cast before each write and after each read of a function."""
    nodes: list[Node] = []
    read: dict[int, Value] = {}
    for node in function.nodes:
        node.inputs = tuple(read.get(id(x), x) if isinstance(x, Value) else x for x in node.inputs)
        if node.op in ("update", "assign") and _is_float(node.inputs[0]):
            nodes.append(_cast(node.inputs[0], dtype, node))
            node.inputs = (nodes[-1].outputs[0], *node.inputs[1:])
        nodes.append(node)
        if node.op in ("read", "update") and _is_float(node.outputs[0]):
            given = node.outputs[0]
            computed = given.type.dtype
            given.type = TensorType(given.type.shape, dtype)
            nodes.append(_cast(given, computed, node))
            read[id(given)] = nodes[-1].outputs[0]
    function.nodes = nodes
    function.results = tuple(read.get(id(r), r) for r in function.results)
    # What was cast is no view of a state.
    function.views = {at: path for at, path in function.views.items() if not _is_float(function.results[at])}
    eliminate_dead_code(function)


def _is_float(x: Operand | None) -> bool:
    return isinstance(x, Value) and x.type.dtype.kind == "float"


def _cast(x: Operand | None, dtype: DType, beside: Node) -> Node:
    assert isinstance(x, Value)
    made = TensorType(x.type.shape, dtype)
    return Node("cast", (x,), {"dtype": dtype}, (made,), beside.location, beside.loops)

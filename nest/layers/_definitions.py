"""From built blocks to the definitions that a program is made of."""

from __future__ import annotations

import inspect

from nest.errors import DefinitionError
from nest.ir.program import ArrayUse, BlockDef, BlockUse, Param, State
from nest.layers._elaboration import current_elaboration
from nest.layers._resolve import resolve_type
from nest.layers.array import BlockArray
from nest.layers.block import Block
from nest.layers.members import ParamMember
from nest.layers.members import State as StateMember

__all__ = ["definition_of"]


def definition_of(block: Block) -> BlockDef:
    """The one definition of all blocks with this block's key."""
    elaboration = current_elaboration.get()
    if elaboration is None:
        raise DefinitionError("Definitions are made during an elaboration.")
    known = elaboration.definitions.get(block._key)
    if known is None:
        known = elaboration.definitions[block._key] = _define(block)
    return known


def _define(block: Block) -> BlockDef:
    cls = type(block)
    definition = BlockDef(
        name=cls.__name__,
        module=cls.__module__,
        doc=inspect.getdoc(cls) if cls.__doc__ else None,
        generics=dict(block._generics),
        statics={**block._statics, **{n: v for n, v in block._values.items() if not hasattr(v, "symbols")}},
        key=block._key,
    )
    for name, member in block._members.items():
        if isinstance(member, Block):
            definition.children[name] = _use(member)
        elif isinstance(member, BlockArray):
            definition.children[name] = ArrayUse(tuple(_use(item) for item in member.items), member.count)
        elif isinstance(member, ParamMember):
            type_ = resolve_type(block, member.shape, member.dtype, member.where)
            _refuse_session_symbols(block, name, type_.shape)
            definition.params[name] = Param(type_, member.init, member.trainable)
        else:
            definition.states[name] = _state(block, name, member)
    return definition


def _use(block: Block) -> BlockUse:
    return BlockUse(definition_of(block), dict(block._outer))


def _state(block: Block, name: str, member: StateMember) -> State:
    type_ = resolve_type(block, member.shape, member.dtype, member.where)
    for label, axis in (("batch_axis", member.batch_axis), ("write_axis", member.write_axis)):
        if axis is not None and not 0 <= axis < type_.rank:
            raise DefinitionError(
                f"{block._where}: the state '{name}' of {type(block).__name__} is {type_}, "
                f"so {label} is from 0 to {type_.rank - 1}; it is {axis}."
            )
    return State(type_, member.batch_axis, member.write_axis)


def _refuse_session_symbols(block: Block, name: str, shape: object) -> None:
    used = {s for d in shape for s in d.symbols()} & {"Batch", "Capacity"}  # type: ignore[attr-defined]
    if used:
        raise DefinitionError(
            f"{block._where}: the parameter '{name}' of {type(block).__name__} depends on {', '.join(sorted(used))}, "
            f"which belongs to a session; parameters are the same for all sessions."
        )

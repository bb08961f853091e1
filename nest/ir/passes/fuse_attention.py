"""Attention between the projections around it as one node: heads are cut, turned, kept, attended to and joined.

`attend_step` takes queries, keys and values side by side as one product makes them, writes the new keys and values into
two states, and attends causally to all slots so far; `attend_heard` takes queries alone, and attends to states that are
only read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from nest.ir.dim import Dim
from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.matching import maker, only_use, uses_in
from nest.ir.passes.rewrite import replace_value
from nest.ir.program import Function, Node, Value

__all__ = ["fuse_attention"]

Uses = dict[int, list[Node | None]]
_HEADS_FIRST = (0, 2, 1, 3)
_STATES = frozenset({"read", "update", "assign"})


@dataclass(frozen=True)
class _Heads:
    """How a value [B, H, S, E] was made of columns of a product [B, S, ...]."""

    columns: Value
    heads: Dim
    width: Dim
    norm: Node | None
    turn: Node | None


def fuse_attention(function: Function) -> int:
    """Fuse the attention of one function, in place; how many nodes were made."""
    made = 0
    for node in [n for n in function.nodes if n.op == "attention"]:
        if node not in function.nodes:
            continue
        uses = uses_in(function)
        joined = _joined(node, uses)
        if joined is None or not _is_plain(node):
            continue
        fused = _heard(node, joined, function)
        gone: tuple[Node, ...] = ()
        if fused is None and (found := _step(node, joined, uses)) is not None:
            fused, *writes = found
            gone = tuple(writes)
        if fused is None or not all(_touched_once(function, w) for w in gone):
            continue
        function.nodes[function.nodes.index(joined)] = fused
        function.nodes = [n for n in function.nodes if n not in gone]
        replace_value(function, joined.outputs[0], fused.outputs[0])
        eliminate_dead_code(function)
        made += 1
    return made


def _is_plain(node: Node) -> bool:
    """Whether every query sees all keys, or all up to itself, and nothing else has a part in it."""
    special = any(x is not None for x in node.inputs[4:])
    return not special and node.attrs["window"] is None and node.attrs["softcap"] is None


def _joined(node: Node, uses: Uses) -> Node | None:
    """The reshape that puts the heads of an attention's result side by side: [B, S, H E]."""
    turned = only_use(node.outputs[0], uses, "permute")
    if turned is None or tuple(turned.attrs["axes"]) != _HEADS_FIRST:
        return None
    joined = only_use(turned.outputs[0], uses, "reshape")
    if joined is None or joined.outputs[0].type.rank != 3:
        return None
    B, _, S, _ = node.outputs[0].type.shape
    shape = joined.outputs[0].type.shape
    return joined if shape[0].same(B) and shape[1].same(S) else None


def _heads(value: object) -> _Heads | None:
    """What a value [B, H, S, E] is made of; None where it is anything else."""
    turn = maker(value, "rope")
    value = turn.inputs[0] if turn is not None else value
    norm, turned, node = None, False, maker(value, "permute", "rms_norm")
    while node is not None:
        if node.op == "rms_norm" and norm is None and node.inputs[1] is not None:
            norm = node
        elif node.op == "permute" and not turned and tuple(node.attrs["axes"]) == _HEADS_FIRST:
            turned = True
        else:
            return None
        value = node.inputs[0]
        node = maker(value, "permute", "rms_norm")
    cut = maker(value, "reshape")
    if cut is None or not turned or cut.outputs[0].type.rank != 4:
        return None
    columns = cast(Value, cut.inputs[0])
    B, S, heads, width = cut.outputs[0].type.shape
    shape = columns.type.shape
    # What is left of the elements are the columns, whatever the symbols say.
    if len(shape) != 3 or not (shape[0].same(B) and shape[1].same(S)):
        return None
    return _Heads(columns, heads, width, norm, turn)


def _heard(node: Node, joined: Node, function: Function) -> Node | None:
    q, keys, values = _heads(node.inputs[0]), maker(node.inputs[1], "read"), maker(node.inputs[2], "read")
    if q is None or keys is None or values is None or node.attrs["causal"] or node.inputs[3] is not None:
        return None
    # What is written in between would be seen too early, or too late.
    paths = (keys.attrs["path"], values.attrs["path"])
    if any(n.op in ("update", "assign") and n.attrs["path"] in paths for n in function.nodes):
        return None
    if q.turn is not None or q.norm is not None or not q.width.same(_width(node.inputs[2])):
        return None
    inputs = (q.columns, keys.outputs[0], values.outputs[0])
    attrs = {"scale": node.attrs["scale"]}
    return Node("attend_heard", inputs, attrs, (joined.outputs[0].type,), node.location, node.loops)


def _width(x: object) -> Dim:
    return cast(Value, x).type.shape[3]


def _step(node: Node, joined: Node, uses: Uses) -> tuple[Node, Node, Node] | None:
    """The fused node, and the two writes that are part of it."""
    if not node.attrs["causal"]:
        return None
    writes = [_written(x, uses) for x in node.inputs[1:3]]
    if writes[0] is None or writes[1] is None:
        return None
    keep_k, keep_v = writes[0], writes[1]
    pos = node.inputs[3]
    if not all(_same_place(w.inputs[1], pos) for w in (keep_k, keep_v)):
        return None
    parts = [_heads(x) for x in (node.inputs[0], keep_k.inputs[0], keep_v.inputs[0])]
    if any(p is None for p in parts):
        return None
    q, k, v = cast(list[_Heads], parts)
    packed = _packed([q, k, v])
    if packed is None or not _alike(q, k, v, pos):
        return None
    turn = q.turn
    inputs = (
        packed,
        pos,
        turn.inputs[2] if turn is not None else None,
        q.norm.inputs[1] if q.norm is not None else None,
        k.norm.inputs[1] if k.norm is not None else None,
    )
    attrs: dict[str, Any] = {
        "keys": keep_k.attrs["path"],
        "values": keep_v.attrs["path"],
        "heads": q.heads,
        "kv_heads": k.heads,
        "width": q.width,
        "scale": node.attrs["scale"],
        "layout": turn.attrs["layout"] if turn is not None else None,
        "rope_scale": turn.attrs["scale"] if turn is not None else 1.0,
        "eps": q.norm.attrs["eps"] if q.norm is not None else 0.0,
    }
    fused = Node("attend_step", inputs, attrs, (joined.outputs[0].type,), node.location, node.loops)
    return fused, keep_k, keep_v


def _written(x: object, uses: Uses) -> Node | None:
    """The write of keys or values that an attention reads: the whole state, or what has just been written."""
    write = maker(x, "update")
    if write is None:
        if not isinstance(x, Value):
            return None
        found = [n for n in uses.get(id(x), []) if n is not None and n.op == "update" and n.inputs[0] is x]
        # The tokens of a prompt are all that there are, if they were written from the first slot on.
        if len(found) != 1 or uses.get(id(found[0].outputs[0])) or not _is_first(found[0].inputs[1]):
            return None
        write = found[0]
    elif len(uses[id(x)]) != 1:
        return None
    plain = write.attrs["batch_axis"] == 0 and write.attrs["axis"] == 2
    return write if plain and write.outputs[0].type.rank == 4 else None


def _touched_once(function: Function, write: Node) -> bool:
    """Whether nothing else in a function reads or writes the state that a node writes."""
    path = write.attrs["path"]
    return [n for n in function.nodes if n.op in _STATES and n.attrs["path"] == path] == [write]


def _is_first(pos: object) -> bool:
    """Whether a position is the first slot."""
    if isinstance(pos, Dim):
        return pos.value == 0
    node = maker(pos, "full")
    return _is_first(node.inputs[0]) if node is not None else isinstance(pos, int) and pos == 0


def _same_place(a: object, b: object) -> bool:
    """Whether two positions are one; none at all is the first slot."""
    return a is b or (_is_first(a) and (b is None or _is_first(b)))


def _packed(parts: list[_Heads]) -> Value | None:
    """The product whose columns are those of the queries, the keys and the values, in order."""
    cuts = [maker(p.columns, "slice") for p in parts]
    if any(c is None or c.attrs["axis"] != 2 or c.attrs["step"] != 1 for c in cuts):
        return None
    first, second, third = cast(list[Node], cuts)
    whole = cast(Value, first.inputs[0])
    in_order = (
        first.attrs["start"].value == 0
        and second.attrs["start"].same(first.attrs["stop"])
        and third.attrs["start"].same(second.attrs["stop"])
        and third.attrs["stop"].same(whole.type.shape[2])
    )
    return whole if in_order and second.inputs[0] is whole and third.inputs[0] is whole else None


def _alike(q: _Heads, k: _Heads, v: _Heads, pos: object) -> bool:
    """Whether queries and keys were turned and scaled alike, values not at all, and all have one width."""
    if v.turn is not None or v.norm is not None or not (q.width.same(k.width) and q.width.same(v.width)):
        return False
    if (
        not k.heads.same(v.heads)
        or (q.turn is None) != (k.turn is None)
        or (q.norm is None) != (k.norm is None)
    ):
        return False
    if q.norm is not None and k.norm is not None and q.norm.attrs["eps"] != k.norm.attrs["eps"]:
        return False
    if q.turn is None or k.turn is None:
        return True
    same = q.turn.attrs == k.turn.attrs and q.turn.inputs[2] is k.turn.inputs[2]
    return same and all(_same_place(t.inputs[1], pos) and _is_vector(t.inputs[1]) for t in (q.turn, k.turn))


def _is_vector(x: object) -> bool:
    """Whether it is one number for each row."""
    return isinstance(x, Value) and x.type.rank == 1

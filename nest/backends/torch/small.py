"""Small ops of a loop's body as one kernel: what counts, stops and keeps ids, of a few numbers for each row.

On a GPU each of them would be a kernel that does nothing but be launched. A program text is made for the group, and
from that a Triton kernel of one block when it is first run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from nest.ir.dim import Dim
from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.rewrite import replace_value
from nest.ir.program import Function, Node, Operand, Program, Value
from nest.ir.types import TensorType

__all__ = ["fuse_small", "kernel_text"]

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "equal": "==", "less": "<", "less_equal": "<=",
    "logical_and": "&", "logical_or": "|",
}  # fmt: skip
_CALLS = {
    "maximum": "tl.maximum",
    "minimum": "tl.minimum",
    "where": "tl.where",
    "log": "tl.log",
    "exp": "tl.exp",
}
_SAME = ("reshape", "broadcast_to")
_OPS = {
    *_INFIX,
    *_CALLS,
    *_SAME,
    "neg",
    "logical_not",
    "cast",
    "full",
    "take",
    "take_along",
    "scatter_set",
    "is_in",
}
_TYPES = {"i32": "tl.int32", "f32": "tl.float32", "bool": "tl.int1"}
_IMPORTS = (
    "import triton\nimport triton.language as tl\n\nfrom nest.backends.torch.kernels.launching import wait"
)
_WORTH = 4
"""Fewer nodes than this are left as they are."""


def fuse_small(program: Program) -> None:
    """Replace, in place, the small nodes of each loop that come after the likeliest is known by one."""
    for function in program.functions():
        for loop in [n for n in function.nodes if n.op == "while_loop"]:
            _name_memberships(loop.attrs["body"])
            _fuse(loop.attrs["body"], [_is_new(x, function) for x in loop.inputs])


def _name_memberships(body: Function) -> None:
    """Whether each row's number is one of several, `any(a[:, None] == b[None, :], 1)`, as one op: `is_in`."""
    for node in [
        n for n in body.nodes if n.op == "any" and n.attrs["axes"] == (1,) and not n.attrs["keepdims"]
    ]:
        compared = node.inputs[0].node if isinstance(node.inputs[0], Value) else None
        if compared is None or compared.op != "equal":
            continue
        sides = [x.node for x in compared.inputs if isinstance(x, Value) and x.node is not None]
        if [s.op for s in sides] != ["reshape", "reshape"]:
            continue
        a, b = (cast(Value, s.inputs[0]) for s in sides)
        shapes = [[str(d) for d in s.outputs[0].type.shape] for s in sides]
        if a.type.rank == b.type.rank == 1 and shapes == [
            [str(a.type.shape[0]), "1"],
            ["1", str(b.type.shape[0])],
        ]:
            made = Node("is_in", (a, b), {}, (node.outputs[0].type,), node.location, node.loops)
            body.nodes[body.nodes.index(node)] = made
            replace_value(body, node.outputs[0], made.outputs[0])
            eliminate_dead_code(body)


def _is_new(x: Operand | None, function: Function) -> bool:
    """Whether what a loop begins with is memory that nothing else has: it may be written where it is."""
    node = x.node if isinstance(x, Value) else None
    uses = sum(y is x for n in function.nodes for y in n.inputs) + sum(r is x for r in function.results)
    return node is not None and node.op in ("scatter_set", "add", "full") and uses == 1


def _fuse(body: Function, fresh: Sequence[bool]) -> None:
    """Replace the small nodes of a loop's body; `fresh`: which of its arguments may be written in place."""
    group = _group(body, fresh)
    inner = {id(v) for n in group for v in n.outputs}
    rest = [n for n in body.nodes if n not in group]
    # Nothing in between may need what the group makes.
    if len(group) < _WORTH or any(id(x) in inner for n in rest for x in n.inputs if isinstance(x, Value)):
        return
    outputs = [v for n in group for v in n.outputs if any(r is v for r in body.results)]
    inputs = _inputs(group, inner)
    rows = next((i for i, x in enumerate(inputs) if isinstance(x, Value) and x.type.rank == 1), None)
    if rows is None:
        return
    attrs = {"text": kernel_text(group, inputs, outputs), "rows": rows, "like": _kinds(outputs, inputs)}
    types = tuple(v.type for v in outputs)
    made = Node("small", tuple(inputs), attrs, types, group[-1].location, group[-1].loops)
    body.nodes = [*rest, made]
    for old, new in zip(outputs, made.outputs, strict=True):
        replace_value(body, old, new)


def _group(body: Function, fresh: Sequence[bool]) -> list[Node]:
    """The small nodes after the last peak, and those before it that only they need."""
    peaks = [n for n in body.nodes if n.op in ("peak", "peak_of_linear")]
    if not peaks:
        return []
    start = body.nodes.index(peaks[-1])
    group = [n for n in body.nodes[start + 1 :] if _is_small(n, body, fresh)]
    for node in reversed(body.nodes[:start]):
        users = [u for u in body.nodes for x in u.inputs if any(x is v for v in node.outputs)]
        given = any(r is v for r in body.results for v in node.outputs)
        if users and not given and node.op != "scatter_set" and all(u in group for u in users):
            group += [node] if _is_small(node, body, fresh) else []
    return [n for n in body.nodes if n in group]


def _inputs(group: Sequence[Node], inner: set[int]) -> list[Value | Dim]:
    """What a group reads from outside, each once: values, and sizes by which it counts."""
    found: list[Value | Dim] = []
    for node in group:
        for x in (*node.inputs, *_sizes(node)):
            known = any(x is y or (isinstance(x, Dim) and isinstance(y, Dim) and x.same(y)) for y in found)
            if isinstance(x, Value | Dim) and id(x) not in inner and not known:
                found.append(x)
    return found


def _sizes(node: Node) -> list[Dim]:
    """The columns of what a node reads or writes by place, or how many numbers it looks through."""
    if node.op == "is_in":
        return [cast(Value, node.inputs[1]).type.shape[0]]
    return [cast(Value, node.inputs[0]).type.shape[1]] if node.op in ("take_along", "scatter_set") else []


def _is_small(node: Node, function: Function, fresh: Sequence[bool]) -> bool:
    if node.op not in _OPS:
        return False
    if node.op == "scatter_set":
        return _in_place(node, function, fresh)
    values = [x for x in node.inputs if isinstance(x, Value)]
    if node.op == "is_in":
        values = values[:1]
    if node.op == "take":
        table, index = node.inputs
        one = isinstance(index, Value) and index.type.rank == 0
        if not (one and _is_table(table, function)):
            return False
        values = values[1:]
    if node.op == "take_along":
        values = values[1:]
        if not any(node.inputs[0] is a for a in function.arguments) or node.attrs["axis"] != 1:
            return False
    return all(_fits(v.type) for v in (*values, *node.outputs))


def _is_table(x: Operand | None, function: Function) -> bool:
    """Whether it is an argument of one axis, of a type that kernels read."""
    given = isinstance(x, Value) and any(x is a for a in function.arguments) and x.type.rank == 1
    return given and str(cast(Value, x).type.dtype.value) in ("i32", "f32")


def _fits(type_: TensorType) -> bool:
    """A number, or one or a column of one for each row."""
    small = type_.rank <= 1 or (type_.rank == 2 and str(type_.shape[1]) == "1")
    rows = type_.rank == 0 or str(type_.shape[0]) == "Batch"
    return small and rows and str(type_.dtype.value) in _TYPES


def _in_place(node: Node, function: Function, fresh: Sequence[bool]) -> bool:
    """Whether it writes one number a row into what the loop carries, and so may write it where it is."""
    out, ids, new = node.inputs
    if node.attrs["axis"] != 1 or not all(isinstance(x, Value) and _fits(x.type) for x in (ids, new)):
        return False
    at = [i for i, a in enumerate(function.arguments) if a is out]
    users = [n for n in function.nodes if any(x is out for x in n.inputs)]
    kept = (
        at and fresh[at[0]] and at[0] < len(function.results) and function.results[at[0]] is node.outputs[0]
    )
    uses = sum(r is node.outputs[0] or r is out for r in function.results)
    # Later reads are of what was there before, and would find what is written.
    before = function.nodes[: function.nodes.index(node)]
    read = all(n is node or (n.op == "take_along" and n in before) for n in users)
    return bool(kept) and uses == 1 and read


def _kinds(outputs: list[Value], inputs: list[Value | Dim]) -> list[str | int]:
    """Of each result its type, with [] where it is one number; for what is written in place, which input it is."""
    found: list[str | int] = []
    for v in outputs:
        if v.node is not None and v.node.op == "scatter_set":
            found.append(next(i for i, x in enumerate(inputs) if x is v.node.inputs[0]))
        else:
            shape = "" if v.type.rank == 0 else ":" if v.type.rank == 1 else ":1"
            found.append(f"{v.type.dtype.value}{shape}")
    return found


def kernel_text(group: list[Node], inputs: list[Value | Dim], outputs: list[Value]) -> str:
    """A Triton kernel of one block, a lane for each row: the inputs, the results, the rows and their power of two."""
    names: dict[int, str] = {}
    stored = [v for v in outputs if not (v.node is not None and v.node.op == "scatter_set")]
    head = [*(f"i{i}" for i in range(len(inputs))), *(f"o{i}" for i in range(len(stored))), "rows"]
    lines = [f"def kernel({', '.join(head)}, LANES: tl.constexpr, PDL: tl.constexpr):"]
    lines += ["wait(PDL)"]
    tables = [n.inputs[n.op == "is_in"] for n in group if n.op in ("is_in", "take")]
    lines += ["row = tl.arange(0, LANES)", "there = row < rows"]
    for i, x in enumerate(inputs):
        if isinstance(x, Value) and _fits(x.type) and x not in tables:
            lines.append(f"x{i} = tl.load(i{i} + {'row' if x.type.rank else 'row * 0'}, mask=there, other=1)")
            names[id(x)] = f"x{i}"
        elif isinstance(x, Value):
            names[id(x)] = f"i{i}"
    spelled = {str(x): f"i{i}" for i, x in enumerate(inputs) if isinstance(x, Dim)}

    def name(x: Operand | None) -> str:
        if isinstance(x, Value):
            return names[id(x)]
        return spelled[str(x)] if isinstance(x, Dim) else str(x)

    for at, node in enumerate(group):
        if node.op == "scatter_set":
            out, ids, new = (name(x) for x in node.inputs)
            (width,) = (name(size) for size in _sizes(node))
            lines.append(f"tl.store({out} + row * {width} + {ids}, {new}, mask=there)")
            names[id(node.outputs[0])] = out
            continue
        lines += _lines(f"v{at}", node, name)
        names[id(node.outputs[0])] = f"v{at}"
    for i, v in enumerate(stored):
        where = "there" if v.type.rank else "row == 0"
        type_ = str(v.type.dtype.value)
        lanes = "| (row < 0)" if type_ == "bool" else f"+ tl.zeros([LANES], {_TYPES[type_]})"
        lines.append(f"tl.store(o{i} + row, {names[id(v)]} {lanes}, mask={where})")
    body = "\n".join("    " + line for line in lines[1:])
    return f"{_IMPORTS}\n\n\n@triton.jit\n{lines[0]}\n{body}\n"


def _lines(target: str, node: Node, name: Callable[[Operand | None], str]) -> list[str]:
    if node.op != "is_in":
        return [f"{target} = {_expression(node, name)}"]
    a, b = (name(x) for x in node.inputs)
    (count,) = (name(size) for size in _sizes(node))
    return [
        f"{target} = row < 0",
        f"for at in range({count}):",
        f"    {target} = {target} | ({a} == tl.load({b} + at))",
    ]


def _expression(node: Node, name: Callable[[Operand | None], str]) -> str:
    args = [name(x) for x in node.inputs]
    if node.op in _INFIX:
        return f"{args[0]} {_INFIX[node.op]} {args[1]}"
    if node.op in _CALLS:
        return f"{_CALLS[node.op]}({', '.join(args)})"
    if node.op in _SAME:
        return args[0]
    if node.op == "neg":
        return f"-{args[0]}"
    if node.op == "logical_not":
        return f"{args[0]} == 0"
    type_ = _TYPES[str(node.outputs[0].type.dtype.value)]
    if node.op == "cast":
        return f"{args[0]}.to({type_})"
    if node.op == "full":
        return f"tl.zeros([LANES], {type_}) + {args[0] if args else node.attrs['value']}"
    if node.op == "take":
        return f"tl.load({args[0]} + {args[1]})"
    (width,) = (name(size) for size in _sizes(node))
    return f"tl.load({args[0]} + row * {width} + {args[1]}, mask=there, other=0)"

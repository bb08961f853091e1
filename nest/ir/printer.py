"""Programs as text: for people to read, and for golden files that make every change of a program visible."""

from __future__ import annotations

import hashlib
from typing import Any

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import ArrayUse, BlockDef, BlockUse, Function, Node, Operand, Program, Value, path_text

__all__ = ["block_text", "digest", "entries_text", "function_text", "inspect_text", "program_text"]


def program_text(program: Program) -> str:
    """Everything: the generics, and each block with its members and the bodies of its functions."""
    reached = {id(f) for f in program.functions()}
    lines = [f"program {program.name}", *_generics_lines(program), ""]
    for block in _ordered(program):
        lines += _block_lines(block)
        for function in _functions(block, reached):
            lines += ["", *("  " + line for line in function_text(function).splitlines())]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def digest(program: Program) -> str:
    """A hash of everything the program computes, for keys of caches."""
    return hashlib.sha256(program_text(program).encode()).hexdigest()


def inspect_text(program: Program) -> str:
    """Entries, generics, and blocks with members and signatures; no bodies."""
    lines = [f"{program.name}", "", "entries", *("  " + line for line in entries_text(program).splitlines())]
    lines += ["", "generics", *("  " + line for line in _generics_lines(program)), "", "blocks"]
    reached = {id(f) for f in program.functions()}
    for text in dict.fromkeys(block_text(block, reached) for block in _ordered(program)):
        lines += [*("  " + line if line else "" for line in text.splitlines()), ""]
    return "\n".join(lines).rstrip() + "\n"


def entries_text(program: Program) -> str:
    """One line an entry: its name and signature."""
    return "\n".join(f"{name}{function.signature}" for name, function in program.entries.items())


def block_text(block: BlockDef, reached: set[int] | None = None) -> str:
    """A block's members and the signatures of its functions."""
    lines = _block_lines(block)
    for function in _functions(block, reached):
        lines.append(f"  fn {function.name}{function.signature}")
    return "\n".join(lines)


def function_text(function: Function) -> str:
    """A function with its nodes, one a line."""
    names: dict[int, str] = {id(v): str(v.name) for v in function.arguments}
    lines = [f"fn {function.name}{function.signature}"]
    for node in function.nodes:
        lines.append("  " + _node_text(node, names))
    lines.append("  return " + ", ".join(_operand(v, names) for v in function.results))
    return "\n".join(lines)


def _generics_lines(program: Program) -> list[str]:
    width = max((len(n) for n in program.root.generics), default=0)
    lines = [f"{n:<{width}} = {v.value}" for n, v in program.root.generics.items()]
    return lines + [f"where {rule}" for rule in program.rules]


def _ordered(program: Program) -> list[BlockDef]:
    return sorted(program.root.distinct(), key=lambda b: (b is program.root, b.name))


def _functions(block: BlockDef, reached: set[int] | None) -> list[Function]:
    chosen = [f for f in block.functions.values() if reached is None or id(f) in reached]
    return sorted(chosen, key=lambda f: (f.code.co_firstlineno, str(f.signature)))


def _block_lines(block: BlockDef) -> list[str]:
    generics = ", ".join(
        f"{n}: {'Dim' if isinstance(v, Dim) else 'DType'}" for n, v in block.generics.items()
    )
    statics = "".join(
        f", {n}={v!r}" for n, v in block.statics.items() if isinstance(v, bool | int | float | str)
    )
    lines = [f"block {block.name}<{generics}{statics}>"]
    for name, param in block.params.items():
        lines.append(f"  {'param' if param.trainable else 'buffer'} {name}: {param.type}")
    for name, use in block.children.items():
        lines.append(f"  sub {name}: {_use_text(use)}")
    for name, state in block.states.items():
        written = "" if state.write_axis is None else f", written along axis {state.write_axis}"
        lines.append(f"  state {name}: {state.type}{written}")
    return lines


def _use_text(use: BlockUse | ArrayUse) -> str:
    if isinstance(use, BlockUse):
        return f"{use.block.name}<{', '.join(map(str, use.generics.values()))}>"
    kinds = list(dict.fromkeys(map(_use_text, use.items)))
    return f"[{' | '.join(kinds)}; {use.count}]"


def _node_text(node: Node, names: dict[int, str]) -> str:
    args = [_operand(x, names) for x in _given(node.inputs)]
    attrs = {
        n: v
        for n, v in node.attrs.items()
        if n not in ("path", "function") and v is not None and v is not False
    }
    options = [f"{n}={_attr(v)}" for n, v in attrs.items()]
    if node.op == "call":
        target = path_text((*node.attrs["path"], node.attrs["function"].name))
        text = f"call {target}({', '.join(args)})"
    elif "path" in node.attrs:
        text = f"{node.op} {path_text(node.attrs['path'])}" + (f"({', '.join(args)})" if args else "")
    else:
        text = f"{node.op}({', '.join([*args, *options])})"
    if not node.outputs:
        return text
    for value in node.outputs:
        names.setdefault(id(value), f"%{len(names)}")
    targets = ", ".join(f"{names[id(v)]}: {v.type}" for v in node.outputs)
    return f"{targets} = {text}"


def _operand(x: Operand | None, names: dict[int, str]) -> str:
    return names[id(x)] if isinstance(x, Value) else str(x)


def _attr(value: Any) -> str:
    if isinstance(value, Function):
        return value.name
    if isinstance(value, Dim | DType):
        return str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_attr, value)) + "]"
    return repr(value)


def _given(inputs: tuple[Operand | None, ...]) -> tuple[Operand | None, ...]:
    """The inputs without the absent ones at the end."""
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return inputs

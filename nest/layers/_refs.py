"""What `self` is while a method is traced: blocks, arrays and states seen from the function being traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nest._suggest import aside
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.dtype import i32 as int32
from nest.ir.program import Operand, Path
from nest.ir.relation import Relation
from nest.ir.types import TensorType
from nest.layers._calls import call
from nest.layers._resolve import resolve_type
from nest.layers._trace import Trace, fail, state_name
from nest.layers.annotations import method_types
from nest.layers.array import BlockArray
from nest.layers.block import Block
from nest.layers.members import ParamMember, State
from nest.layers.tensor import Tensor, as_tensor

__all__ = ["ArrayRef", "BlockRef", "Scope", "StateRef"]


class Scope:
    """How a block's generics read in the function being traced."""

    __slots__ = ("dims", "dtypes")

    def __init__(self, dims: Mapping[str, Dim], dtypes: Mapping[str, DType]) -> None:
        self.dims = dims
        self.dtypes = dtypes

    def inner(self, block: Block) -> Scope:
        """The scope of a child, whose generics its parent spelled."""
        dims = {n: v.substitute(self.dims) for n, v in block._outer.items() if isinstance(v, Dim)}
        dtypes = {n: self.dtypes.get(v.name, v) for n, v in block._outer.items() if isinstance(v, DType)}
        return Scope(dims, dtypes)

    def type(self, type_: TensorType) -> TensorType:
        return type_.substitute(self.dims, self.dtypes)


class BlockRef:
    """A block at a path below the one being traced."""

    __slots__ = ("_block", "_path", "_scope", "_trace")

    def __init__(self, trace: Trace, block: Block, path: Path, scope: Scope) -> None:
        self._trace = trace
        self._block = block
        self._path = path
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        block = self._block
        member = block._members.get(name)
        if member is not None:
            return self._member(name, member)
        if name in block._generics or name in block._values:
            return self._in_scope(block._generics.get(name, block._values.get(name)))
        if name in block._statics:
            return block._statics[name]
        method = getattr(type(block), name, None)
        if callable(method) and not isinstance(method, type):
            return _Method(self, name, method)
        if method is not None:
            return method
        known = [*block._members, *block._generics, *block._values, *block._statics, *_methods(type(block))]
        raise fail(f"{type(block).__name__} has no member '{name}'{aside(name, known)}.")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in BlockRef.__slots__:
            object.__setattr__(self, name, value)
            return
        if isinstance(self._block._members.get(name), State):
            raise fail(
                f"The state 'self.{name}' was assigned with '='.",
                hint=f"Write self.{name}.assign(value), or self.{name}.update(value, pos).",
            )
        raise fail(f"A method cannot set 'self.{name}': a block is frozen, and what changes is a State.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _Method(self, "forward", type(self._block).forward)(*args, **kwargs)

    def require(self, relation: Relation | bool) -> None:
        """See `Block.require`: inside a method, a rule that every call of the entry satisfies."""
        if isinstance(relation, bool) or relation.holds() is True:
            if not relation:
                raise fail("A required relation is false.")
            return
        if relation.holds() is False:
            raise fail(
                f"'{relation}' is required, and is false: {relation.left.value} and {relation.right.value}."
            )
        self._trace.function.signature.rules.append(relation)
        self._trace.add_fact(relation)

    def _member(self, name: str, member: ParamMember | State | Block | BlockArray[Any]) -> Any:
        path = (*self._path, name)
        if isinstance(member, Block):
            return BlockRef(self._trace, member, path, self._scope.inner(member))
        if isinstance(member, BlockArray):
            return ArrayRef(self._trace, member, path, self._scope)
        type_ = self._scope.type(resolve_type(self._block, member.shape, member.dtype))
        if isinstance(member, State):
            return StateRef(self._trace, path, type_, member)
        known = self._trace.params.get(path)
        if known is None:
            (value,) = self._trace.emit("param", (), {"path": path}, type_)
            known = self._trace.params[path] = Tensor(value)
        return known

    def _in_scope(self, value: Any) -> Any:
        if isinstance(value, Dim):
            return value.substitute(self._scope.dims)
        if isinstance(value, DType):
            return self._scope.dtypes.get(value.name, value)
        return value


class _Method:
    """A method of a referenced block: called, it becomes a call of the program, or is inlined."""

    __slots__ = ("_method", "_name", "_ref")

    def __init__(self, ref: BlockRef, name: str, method: Callable[..., Any]) -> None:
        self._ref = ref
        self._name = name
        self._method = method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        ref = self._ref
        types = method_types(self._method)
        if types.results is None:
            return self._method(ref, *args, **kwargs)
        return call(ref._trace, ref._block, ref._path, ref._scope, self._name, args, kwargs)


class ArrayRef:
    """An array of blocks; iterating it is a loop of the program."""

    __slots__ = ("_array", "_path", "_scope", "_trace")

    def __init__(self, trace: Trace, array: BlockArray[Any], path: Path, scope: Scope) -> None:
        self._trace = trace
        self._array = array
        self._path = path
        self._scope = scope

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, index: int) -> BlockRef:
        if not isinstance(index, int | Dim):
            raise fail(
                f"The array 'self.{self._path[-1]}' is indexed by {type(index).__name__}; use an integer."
            )
        position = int(index)
        count = len(self._array)
        if not -count <= position < count:
            raise fail(
                f"The array 'self.{self._path[-1]}' has {count} blocks, and index {position} was asked for."
            )
        position %= count
        item = self._array.items[position]
        return BlockRef(self._trace, item, (*self._path, position), self._scope.inner(item))

    def __iter__(self) -> Iterator[BlockRef]:
        for index in self._trace.iterate(self._path, len(self._array)):
            yield self[index]


class StateRef:
    """A state of a block, to be read, assigned or updated."""

    __slots__ = ("_member", "_path", "_trace", "type")

    def __init__(self, trace: Trace, path: Path, type_: TensorType, member: State) -> None:
        self._trace = trace
        self._path = path
        self._member = member
        self.type = type_

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.type.shape

    def read(self) -> Tensor:
        """The whole state, a view that is good until the next write."""
        self._trace.function.reads.add(self._path)
        (value,) = self._trace.emit("read", (), {"path": self._path}, self.type)
        return Tensor(value, (self._path, self._trace.versions.get(self._path, 0)))

    _read_state = read

    def assign(self, value: Tensor) -> Tensor:
        """Replace the whole state; gives `value` back, never the session's buffer."""
        tensor = as_tensor(value, "assign", "value")
        if not self._trace.same_type(tensor.type, self.type):
            raise fail(
                f"The state '{state_name(self._path)}' is assigned a value of another type.",
                ("state", self.type),
                ("value", tensor.type),
                hint=_difference(self._trace, self.type, tensor.type),
            )
        source = tensor.value()
        self._trace.write(self._path)
        self._trace.emit("assign", (source,), {"path": self._path})
        return tensor

    def update(self, value: Tensor, pos: Tensor | int) -> Tensor:
        """Write `value` at slots `pos, pos+1, ...` of each row; gives the whole buffer.

        Args:
            value: the state's shape, with any length along its write axis.
            pos: Int32[Batch], the first slot of each row; an integer stands for every row.
        """
        axis = self._member.write_axis
        name = state_name(self._path)
        if axis is None:
            raise fail(
                f"The state '{name}' has no write axis, so it cannot be updated at a position.",
                ("state", self.type),
                hint="Give it one with State(..., write_axis=...), or use assign.",
            )
        tensor = as_tensor(value, "update", "value")
        expected = (*self.type.shape[:axis], tensor.type.shape[axis : axis + 1], *self.type.shape[axis + 1 :])
        flat = tuple(d for part in expected for d in (part if isinstance(part, tuple) else (part,)))
        if not (
            tensor.type.dtype.same(self.type.dtype)
            and tensor.rank == self.type.rank
            and self._trace.same_shape(flat, tensor.shape)
        ):
            raise fail(
                f"The state '{name}' is updated with a value that fits it on no slot: all axes but "
                f"axis {axis} must be equal, and the element type too.",
                ("state", self.type),
                ("value", tensor.type),
                hint=_difference(self._trace, self.type, tensor.type, skip=axis),
            )
        source, where = tensor.value(), self._position(pos)
        self._trace.function.reads.add(self._path)
        version = self._trace.write(self._path)
        attrs = {"path": self._path, "axis": axis, "batch_axis": self._member.batch_axis}
        (result,) = self._trace.emit("update", (source, where), attrs, self.type)
        return Tensor(result, (self._path, version))

    def _position(self, pos: Tensor | int) -> Operand:
        if isinstance(pos, int):
            return pos
        tensor = as_tensor(pos, "update", "pos")
        rows = self.type.shape[self._member.batch_axis]
        if not self._trace.same_type(tensor.type, TensorType((rows,), int32)):
            raise fail(
                "update takes one position for each row.",
                ("pos", tensor.type),
                ("expected", TensorType((rows,), int32)),
            )
        return tensor.value()


def _difference(trace: Trace, expected: TensorType, got: TensorType, skip: int | None = None) -> str:
    """The first thing in which two types differ, in words."""
    if not expected.dtype.same(got.dtype):
        return f"The element types differ: {expected.dtype} and {got.dtype}; cast(x, ...) converts."
    if expected.rank != got.rank:
        return f"The ranks differ: {expected.rank} and {got.rank}."
    for axis, (a, b) in enumerate(zip(expected.shape, got.shape, strict=True)):
        if axis != skip and not trace.same(a, b):
            return f"Axis {axis} differs: {a} and {b}."
    return ""


def _methods(cls: type) -> list[str]:
    return [n for n in dir(cls) if not n.startswith("_") and callable(getattr(cls, n))]

"""Block: the unit of a definition."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable
from typing import Any, ClassVar, SupportsIndex, dataclass_transform

from nest._suggest import aside
from nest.errors import DefinitionError, NestError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.relation import Relation
from nest.layers._elaboration import Elaboration, current_elaboration
from nest.layers._statics import accepts
from nest.layers._where import caller_line
from nest.layers.annotations import Static
from nest.layers.array import BlockArray
from nest.layers.members import ParamMember, State

__all__ = ["SESSION_SYMBOLS", "Batch", "Block", "Capacity", "Generic"]

Batch = Dim.symbol("Batch")
"""Rows of a session: how many sequences its states hold."""

Capacity = Dim.symbol("Capacity")
"""Slots of a session's caches."""

SESSION_SYMBOLS: dict[str, Dim] = {"Batch": Batch, "Capacity": Capacity}

Generic = Dim | DType


def _scope(cls: type) -> dict[str, Any]:
    """The names that a class is annotated with: of its module, or of its methods where there is no module."""
    module = sys.modules.get(cls.__module__)
    if module is not None:
        return vars(module)
    functions = (v for v in vars(cls).values() if hasattr(v, "__globals__"))
    return next((f.__globals__ for f in functions), {})


class _Fields:
    """The declared fields of a block class, in order: its generics, then what is static."""

    def __init__(self, cls: type[Block]) -> None:
        self.kinds: dict[str, str] = {}
        self.written: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            if not issubclass(base, Block) or base is Block:
                continue
            scope = _scope(base)
            for name, annotation in inspect.get_annotations(base).items():
                self._add(base, name, annotation, scope)

    def _add(self, base: type[Block], name: str, annotation: Any, scope: dict[str, Any]) -> None:
        evaluated = eval(annotation, dict(scope)) if isinstance(annotation, str) else annotation
        kind = {Dim: "dim", DType: "dtype", Static: "static"}.get(evaluated)
        if kind is None:
            return
        if name in SESSION_SYMBOLS:
            raise DefinitionError(
                f"{base.__name__} declares the generic '{name}', which belongs to the session: a definition uses it "
                f"in State shapes and annotations without declaring it."
            )
        self.kinds[name] = kind
        self.written[name] = annotation
        if name in vars(base):
            self.defaults[name] = vars(base)[name]


class _BlockType(type):
    """Makes equal constructor calls of one elaboration share one frozen block."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        elaboration = current_elaboration.get()
        if elaboration is None:
            raise DefinitionError(
                f"{cls.__name__}(...) was called outside an elaboration. A block is made in another block's build, "
                f"and the root by nest.layers.elaborate({cls.__name__}, ...)."
            )
        fields: _Fields = cls._fields()  # type: ignore[attr-defined]
        bound = _bind(cls, fields, args, kwargs)
        key = (cls, *((n, _identity(v)) for n, v in bound.items()))
        try:
            known = elaboration.built.get(key)
        except TypeError:
            raise DefinitionError(
                f"{cls.__name__}: its static fields must be hashable (numbers, text, tuples); got {bound}."
            ) from None
        if known is None:
            known = elaboration.built[key] = super().__call__()
            known._elaborate(bound, elaboration, caller_line(sys._getframe(1)))
        elif not known._frozen:
            raise DefinitionError(
                f"{cls.__name__} is built inside its own build, with the same generics, which would never end: give "
                f"the inner one other sizes, or a class of its own."
            )
        return known


def _identity(value: Any) -> Any:
    """What makes two arguments the same: for a dim its spelling and its value."""
    if isinstance(value, Dim):
        return (value.key, value.value, value.text)
    return value


def _bind(cls: type, fields: _Fields, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = list(fields.kinds)
    if len(args) > len(names):
        raise DefinitionError(
            f"{cls.__name__} takes {len(names)} arguments ({', '.join(names)}), and {len(args)} were given."
        )
    bound = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in fields.kinds:
            raise DefinitionError(
                f"{cls.__name__} has no generic or static field '{name}'{aside(name, names)}; "
                f"it takes {', '.join(names) or 'none'}."
            )
        if name in bound:
            raise DefinitionError(f"{cls.__name__} got '{name}' twice.")
        bound[name] = value
    missing = [n for n in names if n not in bound and n not in fields.defaults]
    if missing:
        given = ", ".join(f"{n}={v}" for n, v in bound.items()) or "none"
        raise DefinitionError(
            f"{cls.__name__} leaves {', '.join(missing)} unbound; given: {given}. Pass a value or declare a default."
        )
    for name in (n for n in bound if fields.kinds[n] == "static"):
        if not accepts(fields.written[name], bound[name]):
            raise DefinitionError(f"{cls.__name__}: '{name}' is {fields.written[name]}; got {bound[name]!r}.")
    return {n: _coerce(cls, n, fields.kinds[n], bound.get(n, fields.defaults.get(n))) for n in names}


def _coerce(cls: type, name: str, kind: str, value: Any) -> Any:
    if kind == "static":
        return value
    if kind == "dtype":
        if isinstance(value, DType):
            return value
        if isinstance(value, str):
            return DType.of(value)
        raise DefinitionError(f"{cls.__name__}: '{name}' is an element type; got {value!r}.")
    if isinstance(value, Dim):
        return value
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        value = operator.index(value)
        if value < 0:
            raise DefinitionError(f"{cls.__name__}: '{name}' is a size and cannot be {value}.")
        return Dim.constant(value)
    raise DefinitionError(
        f"{cls.__name__}: '{name}' is a dim; got {value!r}, which is {type(value).__name__}."
    )


@dataclass_transform()
class Block(metaclass=_BlockType):
    """Base of every block of a definition.

    A subclass declares its generics and static fields as annotations (`D: Dim`, `T: DType`,
    `bias: Static[bool] = True`), makes its members in `build`, and computes in methods. A method whose result
    is annotated is a function of the program, checked once; any other is inlined where it is called.
    """

    _cached_fields: ClassVar[_Fields | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            raise DefinitionError(
                f"{cls.__name__} defines __init__; a block makes its members in build(self), with its generics bound."
            )
        cls._cached_fields = None

    @classmethod
    def _fields(cls) -> _Fields:
        if cls._cached_fields is None:
            cls._cached_fields = _Fields(cls)
        return cls._cached_fields

    def build(self) -> None:
        """Make the members: parameters, states and children. Overridden by the author."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise DefinitionError(
            f"{type(self).__name__} has no method 'forward'; call one of its methods by name."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise DefinitionError(
            f"{type(self).__name__} was called in build. Blocks compute in methods, when an entry is traced."
        )

    def require(self, relation: Relation | bool) -> None:
        """State a relation between dims that must hold.

        In `build` it is checked at once and then known to every method; in a method it becomes the entry's
        `where` rule, checked at each call.
        """
        if isinstance(relation, bool):
            relation = _decided(self, relation)
        if relation.symbols() & SESSION_SYMBOLS.keys():
            self._rules.append(relation)
            return
        if relation.holds() is False:
            values = ", ".join(f"{n} = {v.value}" for n, v in self._generics.items() if isinstance(v, Dim))
            raise DefinitionError(
                f"{type(self).__name__} requires {relation}, which is false here: {relation.values_text()} "
                f"(with {values}, bound at {self._where})."
            )
        self._facts.append(relation)

    # -- elaboration ---------------------------------------------------------------------------------------

    def _elaborate(self, bound: dict[str, Any], elaboration: Elaboration, where: str) -> None:
        """Bind the generics, run `build`, and freeze."""
        set_ = object.__setattr__
        kinds = self._fields().kinds
        set_(self, "_outer", {n: v for n, v in bound.items() if kinds[n] != "static"})
        set_(self, "_statics", {n: v for n, v in bound.items() if kinds[n] == "static"})
        set_(self, "_generics", {n: _local(n, v) for n, v in self._outer.items()})
        set_(self, "_where", where)
        set_(self, "_facts", [])
        set_(self, "_rules", [])
        set_(self, "_members", {})
        set_(self, "_values", {})
        set_(self, "_frozen", False)
        for name, value in (*self._generics.items(), *self._statics.items()):
            set_(self, name, value)
        self._build()
        self._inherit()
        set_(self, "_frozen", True)
        set_(self, "_key", elaboration.intern(self._structure()))

    def _build(self) -> None:
        from nest.layers._trace import python_error

        try:
            self.build()
        except NestError:
            raise
        except Exception as error:
            filename = type(self).build.__code__.co_filename
            raise python_error(error, filename, f"{type(self).__name__}.build") from error

    def _inherit(self) -> None:
        """What the children required is known here too, in this block's spelling."""
        known = {str(r) for r in (*self._facts, *self._rules)}
        for child in self._children():
            dims = {n: v for n, v in child._outer.items() if isinstance(v, Dim)}
            for source, target in ((child._facts, self._facts), (child._rules, self._rules)):
                for relation in source:
                    here = relation.substitute(dims)
                    if str(here) not in known:
                        known.add(str(here))
                        target.append(here)

    def _children(self) -> list[Block]:
        """The distinct blocks among the members."""
        found: dict[int, Block] = {}
        for member in self._members.values():
            items = member.items if isinstance(member, BlockArray) else (member,)
            found.update((id(item), item) for item in items if isinstance(item, Block))
        return list(found.values())

    def _structure(self) -> tuple[Any, ...]:
        """What tells one definition from another: the class, the values, and what build made of them."""
        members = tuple((n, _member_key(m)) for n, m in self._members.items())
        values = tuple(v.value for v in self._generics.values())
        return (type(self), values, tuple(self._statics.items()), members)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen:
            raise DefinitionError(
                f"{type(self).__name__}.{name} was assigned after build: a block is frozen once it is built."
            )
        if name in self._generics or (
            name in self._statics and not isinstance(value, ParamMember | State | Block | None)
        ):
            raise DefinitionError(
                f"{type(self).__name__}.{name} is a generic or static field, and build cannot assign it."
            )
        if callable(getattr(type(self), name, None)):
            raise DefinitionError(
                f"{type(self).__name__}.{name} is a method, and build cannot assign it: name one otherwise."
            )
        if isinstance(value, list) and value and all(isinstance(v, Block) for v in value):
            value = BlockArray(tuple(value), Dim.constant(len(value)))
        if isinstance(value, ParamMember | State | Block | BlockArray):
            self._members[name] = value
        elif isinstance(value, Dim | DType | int | float | str | tuple | None):
            self._values[name] = value
        else:
            raise DefinitionError(
                f"{type(self).__name__}.{name} = {type(value).__name__}: build assigns parameters, states, blocks, "
                f"lists of blocks, dims, numbers, text and tuples, so that a definition stays free of any framework."
            )
        object.__setattr__(self, name, value)

    _generics: dict[str, Generic]
    _outer: dict[str, Generic]
    _statics: dict[str, Any]
    _where: str
    _facts: list[Relation]
    _rules: list[Relation]
    _members: dict[str, ParamMember | State | Block | BlockArray[Any]]
    _values: dict[str, Any]
    _key: int
    _frozen: bool


def _local(name: str, value: Generic) -> Generic:
    """A generic inside its block: a symbol of its own name that carries the value it is bound to."""
    if isinstance(value, DType):
        return DType(name, value.value)
    if value.value is None:
        raise DefinitionError(
            f"The generic '{name}' was given '{value}', which has no value when blocks are built. "
            f"Batch and Capacity belong to the session and appear only in State shapes and annotations."
        )
    return Dim.symbol(name, value.value)


def _member_key(member: ParamMember | State | Block | BlockArray[Any]) -> Any:
    if isinstance(member, Block):
        return member._key
    if isinstance(member, BlockArray):
        return tuple(item._key for item in member.items)
    if isinstance(member, ParamMember):
        return (member.trainable, member.init, member.shape, member.dtype.name, member.dtype.value)
    return (
        "state",
        member.shape,
        member.dtype.name,
        member.dtype.value,
        member.batch_axis,
        member.write_axis,
    )


def _decided(block: Block, holds: bool) -> Relation:
    if not holds:
        raise DefinitionError(f"{block._where}: {type(block).__name__} requires what is false here.")
    return Relation(Dim.constant(0), "==", Dim.constant(0))


Method = Callable[..., Any]

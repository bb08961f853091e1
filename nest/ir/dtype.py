"""Element types, concrete (`f32`) or named by a generic of a block (`T`)."""

from __future__ import annotations

from nest.errors import DefinitionError

__all__ = ["DTYPES", "DType", "bool_", "bytes_per_element", "f16", "f32", "f64", "i32", "i64", "kind_of"]

# name -> (kind, bytes an element)
DTYPES: dict[str, tuple[str, int]] = {
    "f64": ("float", 8),
    "f32": ("float", 4),
    "f16": ("float", 2),
    "bf16": ("float", 2),
    "i64": ("int", 8),
    "i32": ("int", 4),
    "i16": ("int", 2),
    "i8": ("int", 1),
    "u8": ("int", 1),
    "bool": ("bool", 1),
}


def kind_of(name: str) -> str:
    """`"float"`, `"int"` or `"bool"` for a concrete dtype name."""
    return DTYPES[name][0]


def bytes_per_element(name: str) -> int:
    """The size of one element of a concrete dtype, in bytes."""
    return DTYPES[name][1]


class DType:
    """An element type as a definition sees it.

    `name` is what types are compared by: `T` stays apart from `f32` even where this checkpoint binds T to f32,
    because the same definition is loaded in half precision elsewhere. `value` is the concrete type.
    """

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: str) -> None:
        if value not in DTYPES:
            raise DefinitionError(f"'{value}' is not an element type; nest knows {', '.join(DTYPES)}.")
        self.name = name
        self.value = value

    @classmethod
    def of(cls, value: str | DType) -> DType:
        """A concrete dtype from its name; a DType is returned as it is."""
        return value if isinstance(value, DType) else cls(value, value)

    @property
    def kind(self) -> str:
        return DTYPES[self.value][0]

    def same(self, other: DType) -> bool:
        """Whether both are the same type in every binding of the generics."""
        return self.name == other.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DType) and (self.name, self.value) == (other.name, other.value)

    def __hash__(self) -> int:
        return hash((self.name, self.value))

    def __repr__(self) -> str:
        return self.name


f64 = DType.of("f64")
f32 = DType.of("f32")
f16 = DType.of("f16")
i64 = DType.of("i64")
i32 = DType.of("i32")
bool_ = DType.of("bool")

"""Annotations of methods: `Float[Tensor, "B N D"]`, `Int32[Tensor, "B S"]`, `Bool[...]`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_args, get_origin

from nest.errors import DefinitionError

__all__ = [
    "Bool",
    "Fill",
    "Float",
    "Float32",
    "Int32",
    "MethodTypes",
    "Static",
    "TensorAnnotation",
    "method_types",
]


@dataclass(frozen=True)
class TensorAnnotation:
    """The parsed form of `Float[Tensor, "B N D"]`; `dtype` is None for the block's own `T`."""

    dtype: str | None
    axes: tuple[str, ...]

    def __or__(self, other: object) -> TensorAnnotation:
        raise DefinitionError(
            "An argument of an annotated method is always there: write a second method for the case without it, "
            'or give it a fill, as in `lengths: Int32[Tensor, "Batch"] = Fill("S")`.'
        )


class _Annotator:
    def __init__(self, name: str, dtype: str | None) -> None:
        self.name = name
        self.dtype = dtype

    def __getitem__(self, item: tuple[Any, str]) -> TensorAnnotation:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], str)):
            raise DefinitionError(
                f'{self.name}[...] takes Tensor and the axes, as in {self.name}[Tensor, "B N D"].'
            )
        return TensorAnnotation(self.dtype, tuple(item[1].split()))


if TYPE_CHECKING:
    from typing import Annotated, TypeVar
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Float32
    from typing import Annotated as Int32

    _S = TypeVar("_S")
    Static = Annotated[_S, "static"]

    def Fill(value: str) -> Any: ...  # noqa: N802 (a class at run time)

else:
    Float = _Annotator("Float", None)
    Float32 = _Annotator("Float32", "f32")
    Int32 = _Annotator("Int32", "i32")
    Bool = _Annotator("Bool", "bool")

    class Static:
        """Marks a field of a block that is fixed when the block is made and is no dim: a flag, a name, a tuple."""

        def __class_getitem__(cls, item: object) -> type[Static]:
            return cls

    @dataclass(frozen=True)
    class Fill:
        """The default of an entry's argument: a dim that the host fills every element with.

        `lengths: Int32[Tensor, "Batch"] = Fill("S")` is a promise: places of S at and beyond a row's length change
        no result and no slot that is ever seen, so that a backend may pad S to a size it has compiled.
        """

        value: str

        @property
        def _nest_fill(self) -> str:
            return self.value


@dataclass(frozen=True)
class MethodTypes:
    """The annotations of a method; `results` is None where the method is to be inlined."""

    names: tuple[str, ...]
    parameters: tuple[TensorAnnotation | None, ...]
    fills: tuple[str | None, ...]
    results: tuple[TensorAnnotation, ...] | None
    single: bool


@lru_cache(maxsize=4096)
def method_types(method: Callable[..., Any]) -> MethodTypes:
    """Read a method's annotations.

    Raises:
        DefinitionError: an annotation cannot be evaluated, or only some of a method's tensors are annotated.
    """
    where = f"{method.__qualname__} ({method.__code__.co_filename}:{method.__code__.co_firstlineno})"
    scope = method.__globals__
    returned = _evaluate(method.__annotations__.get("return"), scope, where)
    results, single = _results(returned)
    names: list[str] = []
    parameters: list[TensorAnnotation | None] = []
    fills: list[str | None] = []
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        names.append(parameter.name)
        if results is not None and parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            raise DefinitionError(
                f"{where}: argument '{parameter.name}' is {parameter.kind.description}; the arguments of a function of "
                f"the program are plain ones, which callers give by position or by name."
            )
        annotation = (
            None if results is None else _evaluate(method.__annotations__.get(parameter.name), scope, where)
        )
        if results is not None and not isinstance(annotation, TensorAnnotation):
            raise DefinitionError(
                f"{where}: its result is annotated, so it is a function of the program, but argument "
                f"'{parameter.name}' has no tensor annotation. Annotate it, or leave the result without one to have "
                f"the method inlined."
            )
        parameters.append(annotation if isinstance(annotation, TensorAnnotation) else None)
        fills.append(getattr(parameter.default, "_nest_fill", None))
    return MethodTypes(tuple(names), tuple(parameters), tuple(fills), results, single)


def _evaluate(annotation: Any, scope: dict[str, Any], where: str) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, scope)
    except DefinitionError as error:
        raise DefinitionError(f"{where}: annotation {annotation}: {error}") from None
    except Exception as error:
        raise DefinitionError(f"{where}: annotation {annotation} cannot be evaluated: {error}") from error


def _results(returned: Any) -> tuple[tuple[TensorAnnotation, ...] | None, bool]:
    if isinstance(returned, TensorAnnotation):
        return (returned,), True
    if get_origin(returned) is tuple:
        args = get_args(returned)
        if args and all(isinstance(a, TensorAnnotation) for a in args):
            return args, False
    return None, True

"""Calling an entry: arguments checked against its signature, in the entry's own words, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from nest._suggest import aside
from nest.errors import CallError
from nest.ir.dim import Dim
from nest.ir.program import Function, Parameter, Program
from nest.ir.ranges import argument_ranges

__all__ = ["Arrays", "EntryCall"]


class Arrays(Protocol):
    """What checking needs to know of a backend's arrays."""

    def shape(self, x: Any) -> tuple[int, ...]:
        """The shape of a native or numpy array."""

    def kind(self, x: Any) -> str:
        """`"float"`, `"int"`, `"bool"`, or the dtype's own name for anything else."""

    def is_array(self, x: Any) -> bool:
        """Whether it is a native or numpy array."""

    def from_python(self, x: Any, kind: str) -> Any:
        """An array from numbers, nested lists or another framework's tensor.

        Raises:
            ValueError, TypeError, RuntimeError: it is none; says why.
        """

    def bounds(self, x: Any) -> tuple[int, int] | None:
        """The smallest and largest integer; None where it is empty or asking would wait for a device."""

    def native(self, x: Any, dtype: str) -> Any:
        """The array in the backend's own form and the entry's dtype."""

    def full(self, shape: Sequence[int], value: int, dtype: str) -> Any:
        """A native array of one value."""


class EntryCall:
    """The checks of one entry, made once and used at every call."""

    def __init__(self, program: Program, name: str, arrays: Arrays) -> None:
        function = program.entries.get(name)
        if function is None:
            known = ", ".join(program.entries)
            raise CallError(
                f"{program.name} has no entry '{name}'{aside(name, program.entries)}; its entries: {known}."
            )
        self.program = program
        self.name = name
        self.function: Function = function
        self.arrays = arrays
        self._ranges = argument_ranges(function)
        self._generics = {
            n: int(v) for n, v in program.root.generics.items() if isinstance(v, Dim) and v.value is not None
        }

    def __call__(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], session: Mapping[str, int]
    ) -> list[Any]:
        """Native arguments in order.

        Args:
            session: values of `Batch` and `Capacity`; empty for an entry that uses no state.

        Raises:
            CallError: an argument is missing, unknown, or of a rank, shape, dtype or value that the signature
                does not admit; or a rule does not hold.
        """
        given = self._given(args, kwargs)
        symbols = {**self._generics, **session}
        checked: dict[str, Any] = {}
        for parameter in self.function.signature.parameters:
            if parameter.name in given:
                array = self._array(parameter, given[parameter.name], symbols)
                self._shape(parameter, self.arrays.shape(array), symbols)
                self._kind(parameter, array)
                self._bounds(parameter, array, symbols)
                checked[parameter.name] = self.arrays.native(array, parameter.type.dtype.value)
        for parameter in self.function.signature.parameters:
            if parameter.name not in checked:
                checked[parameter.name] = self._filled(parameter, symbols)
        self._rules(symbols)
        return [checked[p.name] for p in self.function.signature.parameters]

    def _label(self) -> str:
        return f"{self.program.name}.{self.name}"

    def _signature(self) -> str:
        return f"{self.name}{self.function.signature}"

    def _given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(args, list | tuple):
            raise CallError(
                f"run_entry takes the arguments of '{self.name}' in a list, as in run_entry('{self.name}', [x]); got "
                f"{type(args).__name__}."
            )
        parameters = self.function.signature.parameters
        names = [p.name for p in parameters]
        if len(args) > len(names):
            raise CallError(
                f"{self._label()} takes {len(names)} arguments, and {len(args)} were given: {self._signature()}."
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                raise CallError(
                    f"{self._label()} has no argument '{name}'{aside(name, names)}: {self._signature()}."
                )
            if name in given:
                raise CallError(f"{self._label()}: argument '{name}' is given twice: {self._signature()}.")
            given[name] = value
        given = {n: v for n, v in given.items() if v is not None or n not in self._fillable()}
        missing = [p.name for p in parameters if p.name not in given and p.fill is None]
        if missing:
            raise CallError(
                f"{self._label()} needs {' and '.join(repr(m) for m in missing)}: {self._signature()}."
            )
        return given

    def _fillable(self) -> set[str]:
        return {p.name for p in self.function.signature.parameters if p.fill is not None}

    def _array(self, parameter: Parameter, value: Any, symbols: Mapping[str, int]) -> Any:
        kind = parameter.type.dtype.kind
        if not self.arrays.is_array(value):
            try:
                value = self.arrays.from_python(value, kind)
            except (
                ValueError,
                TypeError,
                RuntimeError,
            ) as error:  # RuntimeError: a tensor that gives no array
                raise self._wrong(parameter, f"it cannot be read as an array of numbers ({error})") from None
        # A single position stands for every row.
        if kind == "int" and parameter.type.rank == 1 and self.arrays.shape(value) == ():
            rows = parameter.type.shape[0]
            if rows.symbols() <= symbols.keys():
                value = value.reshape((1,)).repeat(rows.evaluate(symbols))
        return value

    def _shape(self, parameter: Parameter, shape: tuple[int, ...], symbols: dict[str, int]) -> None:
        expected = parameter.type.shape
        if len(shape) != len(expected):
            raise self._wrong(
                parameter, f"it has rank {len(shape)} (shape {list(shape)}), not {len(expected)}"
            )
        for dim, size in zip(expected, shape, strict=True):
            name = dim.as_symbol()
            if name is not None and name not in symbols:
                symbols[name] = size
        for axis, (dim, size) in enumerate(zip(expected, shape, strict=True)):
            want = dim.evaluate(symbols)
            if want != size:
                value = f" = {want}" if dim.symbols() else ""
                hint = self._session_hint(dim, size)
                raise self._wrong(
                    parameter, f"axis {axis} must be {dim}{value}, and is {size} in {list(shape)}", hint
                )

    def _session_hint(self, dim: Dim, size: int) -> str:
        if "Batch" in dim.symbols():
            return f" For {size} rows, take a session of that size: model.new_session(Batch={size})."
        return ""

    def _kind(self, parameter: Parameter, array: Any) -> None:
        wanted, got = parameter.type.dtype, self.arrays.kind(array)
        if got != wanted.kind:
            raise self._wrong(parameter, f"it holds {got} values, not {wanted.kind}")

    def _bounds(self, parameter: Parameter, array: Any, symbols: Mapping[str, int]) -> None:
        """Integers fit Int32, and indices are in range; what lies on a device is not waited for."""
        if parameter.type.dtype.value != "i32" or (bounds := self.arrays.bounds(array)) is None:
            return
        self._between(parameter, *bounds, symbols)

    def _between(self, parameter: Parameter, low: int, high: int, symbols: Mapping[str, int]) -> None:
        if low < -(2**31) or high >= 2**31:
            raise self._wrong(
                parameter, f"it has the value {low if low < -(2**31) else high}, which does not fit Int32"
            )
        for limit in self._ranges.get(parameter.name, []):
            if not limit.size.symbols() <= symbols.keys():
                continue
            first, last = -limit.offset, limit.size.evaluate(symbols) - 1 - limit.offset
            if low < first or high > last:
                raise self._wrong(
                    parameter,
                    f"it has the value {low if low < first else high}, and names {limit.reason}: {first} to {last}",
                )

    def _filled(self, parameter: Parameter, symbols: Mapping[str, int]) -> Any:
        shape = [d.evaluate(symbols) for d in parameter.type.shape]
        value = 0 if parameter.fill is None else parameter.fill.evaluate(symbols)
        if 0 not in shape:  # lengths = S, where S is 0
            self._between(parameter, value, value, symbols)
        return self.arrays.full(shape, value, parameter.type.dtype.value)

    def _rules(self, symbols: Mapping[str, int]) -> None:
        for rule in self.function.signature.rules:
            if rule.symbols() <= symbols.keys() and not rule.check(symbols):
                values = ", ".join(f"{s} = {symbols[s]}" for s in sorted(rule.symbols()))
                raise CallError(f"{self._label()} requires {rule}, and here {values}.")

    def _wrong(self, parameter: Parameter, problem: str, hint: str = "") -> CallError:
        return CallError(
            f"{self._label()}: argument '{parameter.name}' is {parameter.type}, but {problem}.{hint}"
        )

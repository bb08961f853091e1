"""What a snippet is about: an entry, named as a caller names it, and its program for the shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nest.ir.dim import Dim
from nest.ir.program import Program
from nest.registry import Entry

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """An entry, and what its task changes of its generics."""

    entry: Entry

    @cached_property
    def program(self) -> Program:
        """The program that the task's pipeline loads.

        Raises:
            ManifestError: the entry lies outside of the zoo, and reading its definition would run it.
        """
        from nest.loading import program_of

        return program_of(self.entry, **self.generics)

    @property
    def name(self) -> str:
        return self.entry.reference

    @property
    def kind(self) -> str:
        """Its task, such as `transcription`; empty where it has none."""
        return self.entry.manifest.task.kind if self.entry.manifest.task else ""

    @property
    def generics(self) -> Mapping[str, Any]:
        """Those that the task wants otherwise than the entry has them."""
        return self.entry.manifest.task.generics if self.entry.manifest.task else {}

    @property
    def half(self) -> bool:
        """Whether it computes in bf16, for which ONNX Runtime has no kernels on the CPU."""
        return self.entry.generics.get("T") == "bf16"

    def arguments(self, **options: Any) -> str:
        """`"NAME", backend="torch"`: the name, options that are not None, and leave to run what is not the zoo's."""
        given = {**options, **({} if self.entry.trusted else {"trust_source": True})}
        texts = (
            f"{name}={_quoted(value) if isinstance(value, str) else repr(value)}"
            for name, value in given.items()
            if value is not None
        )
        return ", ".join([_quoted(self.name), *texts])

    def load(self, backend: str) -> str:
        """`nest.load("NAME", backend="torch")`, as the task needs it."""
        dtype = "f32" if self.half and backend == "onnx" else None
        return f"nest.load({self.arguments(backend=backend, dtype=dtype, **self.generics)})"

    def shape(self, entry: str, **sizes: int) -> str:
        """The shape of an entry's first result, `[1, 1500, 384]`; a size that nothing says stays a letter."""
        values = {name: Dim.constant(size) for name, size in sizes.items()}
        result = self.program.entries[entry].signature.results[0]
        bound = [dim.substitute(values) for dim in result.shape]
        return f"[{', '.join(str(dim.value) if dim.value is not None else dim.text for dim in bound)}]"

    def note(self, entry: str, **sizes: int) -> str:
        """The shape as a comment at a line's end; nothing where the definition may not be read."""
        return f"  # {self.shape(entry, **sizes)}" if self.entry.trusted else ""

    def size(self, generic: str) -> int:
        """A generic's value."""
        return int(self.program.root.generics[generic])  # type: ignore[arg-type]

    def parameters(self, entry: str) -> tuple[str, ...]:
        """The names of an entry's arguments, in order."""
        return tuple(parameter.name for parameter in self.program.entries[entry].signature.parameters)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

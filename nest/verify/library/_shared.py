"""What the families' reference libraries share: names, loading, and entries without states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nest.ir.dim import Dim
from nest.ir.program import Program
from nest.registry import Entry

__all__ = ["StatelessLibrary", "library_name", "load_parameters", "load_tensors", "sizes_of"]

Array = np.ndarray[Any, Any]


class StatelessLibrary:
    """A library's model whose entries keep nothing between calls; it is its own session.

    Args:
        entries: by name, functions of the entry's arguments as torch tensors, integers as int64, with one row.
        model: the library's module, of which they are made.
    """

    name = "transformers"

    def __init__(self, entries: Mapping[str, Callable[..., Any]], model: Any) -> None:
        self._entries = entries
        self.model = model
        self.entries = frozenset(entries)

    def new_session(self) -> StatelessLibrary:
        """Itself."""
        return self

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry with its arguments in order."""
        import torch

        with torch.no_grad():
            given = [torch.from_numpy(np.array(x)) for x in inputs]
            return self._entries[name](*(x.long() if x.dtype == torch.int32 else x for x in given))

    def call(self, name: str, tensors: Sequence[Any]) -> Any:
        """Run an entry on tensors that lie where the model does."""
        return self._entries[name](*tensors)

    def numpy(self, value: Any) -> Array:
        """A result on the host."""
        array: Array = value.numpy()
        return array


def sizes_of(program: Program) -> dict[str, int]:
    """The values of the program's generics."""
    return {n: int(d) for n, d in program.root.generics.items() if isinstance(d, Dim)}


def library_name(entry: Entry, path: str) -> str:
    """What the checkpoint calls a parameter that is one of its tensors as it is."""
    for rule in entry.bindings.rules:
        indices = rule.match(path)
        if indices is not None:
            return str(next(iter(rule.expression(indices, {}).sources())))
    raise KeyError(path)


def load_parameters(
    make: Callable[[], Any],
    entry: Entry,
    params: Mapping[str, Array],
    *,
    rename: Callable[[str], str] = str,
    absent: Sequence[str] = (),
) -> Any:
    """A library's model over parameters that are tensors of the checkpoint as they are; see `load_tensors`.

    Args:
        rename: from a checkpoint's name to the library's.
    """
    tensors = {rename(library_name(entry, path)): array for path, array in params.items()}
    return load_tensors(make, tensors, absent=absent)


def load_tensors(make: Callable[[], Any], tensors: Mapping[str, Array], *, absent: Sequence[str] = ()) -> Any:
    """A library's model over tensors by the library's own names, in f32, ready to run.

    Args:
        make: gives the model. What no tensor stands for, such as rotary frequencies, is as it makes it.
        absent: tensors of the library's that are ties of others, or that no entry reads.
    """
    import torch

    with torch.no_grad():
        model: Any = make()
    state = {name: torch.from_numpy(np.array(array)) for name, array in tensors.items()}
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    if unexpected or set(missing) - set(absent):
        raise RuntimeError(f"The reference library's names differ: {missing}, {unexpected}")
    model.tie_weights()
    return model.eval()

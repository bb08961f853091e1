"""What a checkpoint of an entry holds: its tensors' names, shapes and types, as its bindings say it."""

from __future__ import annotations

from nest.export.portable import Portable
from nest.ir.parammap import Expr, TensorSpec
from nest.registry import Entry
from nest.registry.tensors import read_tensors
from nest.weights import stored

__all__ = ["stored_tensors"]


def stored_tensors(model: Portable, entry: Entry) -> tuple[dict[str, Expr], dict[str, TensorSpec]]:
    """The tensors of the checkpoint as expressions over the model's parameters, and what each of them is.

    Raises:
        BindingError: the bindings do not say it.
    """
    listed = read_tensors(entry.directory, entry.name)
    made = stored.stored_tensors(
        model.params,
        entry.bindings,
        source=entry.name,
        generics={n: g.value for n, g in model.program.root.generics.items() if g.value is not None},
        listed=None if listed is None else listed.specs,
    )
    return made, {name: expression.infer(model.specs) for name, expression in made.items()}

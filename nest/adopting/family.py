"""A family of models: how its configurations read as generics, and which entry of the zoo computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from nest._suggest import did_you_mean
from nest.adopting.keys import Key, Values, read_keys, shown
from nest.adopting.repository import Repository
from nest.errors import AdoptionError

__all__ = ["Family", "Form", "Refused", "families", "family_of"]

_MODULES = ("bert", "dinov2", "gpt2", "llama", "modernbert", "roberta", "vit", "whisper")


class Refused(Exception):  # noqa: N818  a verdict, which becomes an AdoptionError with the others
    """A value that the definition does not compute; the message is a sentence that names the key."""


Tables = dict[str, Any]
"""Tables of `nest.toml`, by name."""


@dataclass(frozen=True)
class Form:
    """A class of the reference library whose checkpoints an entry's definition computes.

    Args:
        like: the entry of the zoo.
        root: its root class for these, and `entry`, the method that stands for the model; those of `like` if None.
        idle: tensors that such checkpoints may have and the definition has no use for, `{i}` for an index.
        task: whether the tables of a task are `like`'s too.
    """

    like: str
    root: str | None = None
    entry: str | None = None
    idle: tuple[str, ...] = ()
    task: bool = True


@dataclass(frozen=True)
class Family:
    """One `model_type`.

    Args:
        model_type: as `config.json` names it.
        forms: what can be adopted, by the names that `architectures` has.
        keys: every key that such a configuration may have.
        generics: generics and static fields of the definition. May raise `Refused`.
        tables: tables of the task from the repository's other files. May raise `Refused`.
        rules: bindings of parameters that no entry of the zoo has in this form, as `bindings.json` has them.
        prefix: of tensors of the bare network inside a model with a head, such as `"bert."`.
        choose: the form of an architecture that has several, from the repository's files.
    """

    model_type: str
    forms: Mapping[str, Form]
    keys: Mapping[str, Key]
    generics: Callable[[Values], dict[str, Any]]
    tables: Callable[[Repository, Values], Tables]
    rules: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    choose: Callable[[Repository, Form], Form] = field(default=lambda _, form: form)

    def form(self, config: Mapping[str, Any], where: str) -> Form:
        """The form that `architectures` names.

        Raises:
            AdoptionError: it names none of them, or several.
        """
        named = config.get("architectures")
        name = named[0] if isinstance(named, list) and len(named) == 1 and isinstance(named[0], str) else None
        if name is not None and name in self.forms:
            return self.forms[name]
        came = f"'architectures' is {shown(named)}" if named else "it has no 'architectures'"
        raise AdoptionError(
            f"{where}: {came}; of the family '{self.model_type}', nest adopts {' and '.join(self.forms)}. A model with "
            f"another head on the same network computes something else."
        )

    def read(self, config: Mapping[str, Any], where: str) -> tuple[Values, dict[str, Any]]:
        """The values of a configuration, and the definition's generics and static fields.

        Raises:
            AdoptionError: every key that is unknown, or holds what the definition does not compute.
        """
        values, faults = read_keys(config, self.keys)
        generics: dict[str, Any] = {}
        if not faults:
            try:
                generics = self.generics(values)
            except Refused as refusal:
                faults.append(str(refusal))
        if faults:
            listed = "".join(f"\n  {fault}" for fault in faults)
            raise AdoptionError(
                f"{where} is not what the definition of '{self.model_type}' computes, so nothing was loaded: the "
                f"result would differ from the reference library's without a word.{listed}"
            )
        return values, generics


def families() -> dict[str, Family]:
    """Every family, by `model_type`."""
    modules = (import_module(f"nest.adopting.families.{name}") for name in _MODULES)
    return {family.model_type: family for module in modules for family in module.FAMILIES}


def family_of(config: Mapping[str, Any], where: str) -> Family:
    """The family that a configuration names.

    Raises:
        AdoptionError: it names none that is known.
    """
    known, name = families(), config.get("model_type")
    if isinstance(name, str) and name in known:
        return known[name]
    came = f"'model_type' is {shown(name)}" if name is not None else "it has no 'model_type'"
    hint = did_you_mean(name, known) if isinstance(name, str) else ""
    raise AdoptionError(
        f"{where}: {came}; the families that nest adopts are {', '.join(sorted(known))}.{hint} Another architecture "
        f"needs a definition: nest new."
    )

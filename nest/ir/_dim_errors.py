"""What a person reads when a dim cannot be what was asked for."""

from __future__ import annotations

from collections.abc import Mapping

from nest.errors import DefinitionError


def bad_name(name: str) -> DefinitionError:
    """A symbol that is no identifier."""
    return DefinitionError(f"A dim cannot be named {name!r}: use letters, digits and underscores.")


def negative(name: str, value: int) -> DefinitionError:
    """A symbol that stands for less than 0."""
    return DefinitionError(f"The dim {name} cannot be {value}: a size is 0 or more.")


def fraction(left: object, right: object) -> DefinitionError:
    """A true division."""
    return DefinitionError(
        f"{left}/{right} is not a dim: / gives a fraction. Use // for floor division, {left}//{right}."
    )


def denominator(text: str, worth: str) -> DefinitionError:
    """A division by less than 1."""
    return DefinitionError(f"The dim {text} divides by {worth}, and must divide by 1 or more.")


def unbound(text: str, name: str, env: Mapping[str, int]) -> DefinitionError:
    """A symbol without a value where one is needed."""
    known = ", ".join(f"{name} = {value}" for name, value in sorted(env.items())) or "none"
    return DefinitionError(f"The dim {text} cannot be evaluated: {name} has no value. Known values: {known}.")


def no_number(text: str, names: list[str]) -> DefinitionError:
    """A symbolic dim used as an integer."""
    lacking = f"{' and '.join(names)} {'has' if len(names) == 1 else 'have'} no value"
    return DefinitionError(
        f"The dim {text} is no integer before the call: {lacking}. Where an integer is needed, use a generic "
        f"that has a value; where a size is needed, pass the dim itself."
    )


def two_values(name: str, one: int, other: int) -> DefinitionError:
    """One symbol that stands for two numbers."""
    return DefinitionError(
        f"The symbol {name} stands for {one} and for {other} in one expression: two scopes use one name. "
        f"Give one of them another name."
    )

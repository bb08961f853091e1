"""Rotary positions in configurations: the old keys `rope_theta` and `rope_scaling`, the new `rope_parameters`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.family import Refused
from nest.adopting.keys import Anything, Key, Number, Only, Values, finite, shown

__all__ = ["ROPE", "rope_facts"]

ROPE: Mapping[str, Key] = {
    "rope_theta": Number(10000.0),
    "rope_scaling": Anything(),
    "rope_parameters": Anything(),
    "partial_rotary_factor": Only(None, 1.0, 1),
}
_LLAMA3 = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")


def rope_facts(values: Values) -> dict[str, Any]:
    """`rope_theta` and, for Llama 3.1's scaling, `rope_scaling`.

    Raises:
        Refused: another way of scaling, or a key of it that is unknown.
    """
    name, given = _given(values)
    kind = given.get("rope_type", given.get("type", "default"))
    if kind not in ("default", "llama3"):
        raise Refused(f"'{name}' is of the type {shown(kind)}, and the definition has 'default' and 'llama3'")
    known = ("rope_type", "type", "rope_theta", *(_LLAMA3 if kind == "llama3" else ()))
    for key, value in given.items():
        if key not in known and (key, value) != ("partial_rotary_factor", 1.0):
            raise Refused(
                f"'{name}.{key}' = {shown(value)} has no meaning for the type '{kind}' in the definition"
            )
    facts: dict[str, Any] = {
        "rope_theta": _number(name, "rope_theta", given.get("rope_theta", values["rope_theta"]))
    }
    if kind == "llama3":
        length = given.get("original_max_position_embeddings", values["max_position_embeddings"])
        scaling = [_number(name, key, given.get(key)) for key in _LLAMA3[:3]]
        facts["rope_scaling"] = [*scaling, _number(name, _LLAMA3[3], length)]
        if scaling[1] >= scaling[2]:
            raise Refused(
                f"'{name}.low_freq_factor' is {scaling[1]}, and less than high_freq_factor is expected"
            )
    return facts


def _given(values: Values) -> tuple[str, Mapping[str, Any]]:
    """The one of the two keys that says something, and what."""
    both = {
        name: values[name] for name in ("rope_scaling", "rope_parameters") if values[name] not in (None, {})
    }
    if len(both) > 1:
        raise Refused(
            "'rope_scaling' and 'rope_parameters' stand beside each other, and one of them is expected"
        )
    for name, given in both.items():
        if not isinstance(given, Mapping):
            raise Refused(f"'{name}' is {shown(given)}, and an object is expected")
        return name, given
    return "rope_parameters", {}


def _number(name: str, key: str, value: Any) -> float:
    number = finite(value)
    if number is None or not number > 0:
        raise Refused(f"'{name}.{key}' is {shown(value)}, and a positive number is expected")
    return number

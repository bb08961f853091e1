"""How a checkpoint calls the parameters: a short table of patterns, found from the entry's bindings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nest.ir.inventory import parameters
from nest.ir.program import Program
from nest.registry import Entry

__all__ = ["Names", "publisher_names"]

_INDEX = re.compile(r"\{\w+\}")


@dataclass(frozen=True)
class Names:
    """The table and the function that looks a name up in it, as source."""

    table: str
    function: str


_FUNCTION = '''def published(name: str) -> str:
    """What the checkpoint calls a parameter."""
    own = next((own for own in NAMES if re.match(own, name)), None)
    return name if own is None else re.sub(own, NAMES[own], name, count=1)'''


def publisher_names(entry: Entry, program: Program) -> Names | None:
    """The names of an entry's checkpoint; None where it stores a parameter otherwise than as it is."""
    rules = entry.bindings.rules
    if entry.manifest.weights is None or not all(isinstance(rule.value, str) for rule in rules):
        return None
    pairs = dict(_shortest(rule.path, rule.value) for rule in rules)
    ordered = sorted(pairs.items(), key=lambda pair: -len(pair[0]))
    table = {_pattern(own): _replacement(own, theirs) for own, theirs in ordered if own != theirs}
    found = {path: _published(table, path) for path in parameters(program)}
    wanted = {path: _bound(entry, path) for path in found}
    if found != wanted:
        return None
    lines = [
        "# What the checkpoint calls this file's parameters; the first pattern that fits is the one.",
        "NAMES = {",
        *(f'    r"{own}": r"{theirs}",' for own, theirs in table.items()),
        "}",
    ]
    return Names("\n".join(lines), _FUNCTION)


def _shortest(path: str, name: str) -> tuple[str, str]:
    """A path and a name without the parts at their ends that are alike."""
    own, theirs = path.split("."), name.split(".")
    while len(own) > 1 and len(theirs) > 1 and own[-1] == theirs[-1]:
        own, theirs = own[:-1], theirs[:-1]
    return ".".join(own), ".".join(theirs)


def _pattern(own: str) -> str:
    pieces = [re.escape(piece).replace(r"\_", "_") for piece in _INDEX.split(own)]
    return r"(\d+)".join(pieces) + r"\b"


def _replacement(own: str, theirs: str) -> str:
    for number, index in enumerate(_INDEX.findall(own), 1):
        theirs = theirs.replace(index, rf"\{number}")
    return theirs


def _published(table: dict[str, str], name: str) -> str:
    """As the ejected function does it."""
    for own, theirs in table.items():
        if re.match(own, name):
            return re.sub(own, theirs, name, count=1)
    return name


def _bound(entry: Entry, path: str) -> str:
    """What the bindings say."""
    for rule in sorted(entry.bindings.rules, key=lambda rule: rule.is_template):
        found = rule.match(path)
        if found is not None:
            expression = rule.expression(found, {})
            return str(expression)
    return path

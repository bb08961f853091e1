"""Bindings against the tensors of the checkpoint, total in both directions, without reading any weights."""

from __future__ import annotations

from nest.checking.headers import UnseenError
from nest.checking.report import Report
from nest.checking.tensors import Checkpoints, Tensors, checkpoint_files
from nest.errors import NestError
from nest.ir.inventory import parameters
from nest.ir.program import Program
from nest.registry import Entry
from nest.registry.tensors import TENSORS_FILE, TensorList, read_tensors
from nest.registry.tensors import write_tensors as write_tensors_file
from nest.weights import resolve

__all__ = ["check_bindings"]

_PART = "bindings"
_NAMED = 8
"""So many differing tensors are named; after that the number says enough."""


def check_bindings(
    entry: Entry,
    program: Program,
    report: Report,
    checkpoints: Checkpoints,
    *,
    require_headers: bool = False,
    write_tensors: bool = False,
) -> None:
    """Bind every parameter to names, shapes and dtypes, and compare the entry's list with what was seen.

    With `write_tensors`, the list is made anew from what was seen instead.
    """
    if entry.manifest.weights is None:
        report.note(_PART, "no checkpoint: nest.toml has no [weights], so the model has random weights only")
        _check_unpinned(entry, program, report)
        return
    if not checkpoint_files(entry):
        report.fault(_PART, "weights.files names no .safetensors file, so there is nothing to bind")
        return
    try:
        tensors = checkpoints.tensors(entry)
    except UnseenError as error:
        report.fault(_PART, f"not checked: {error}")
        return
    except NestError as error:
        report.fault(_PART, str(error))
        return
    if not tensors.seen:
        _say_unseen(tensors, report, require_headers=require_headers)
    if write_tensors:
        _write(entry, tensors, report)
    else:
        for fault in _list_faults(entry, tensors):
            report.fault(_PART, f"{entry.directory / TENSORS_FILE}: {fault}")
    _compare_bytes(entry, tensors, report)
    _resolve(entry, program, tensors, report)


def _check_unpinned(entry: Entry, program: Program, report: Report) -> None:
    """The bindings of an entry without weights against its own list of tensors, where it has one."""
    try:
        listed = read_tensors(entry.directory, entry.name)
    except NestError as error:
        report.fault(_PART, str(error))
        return
    if listed is not None:
        _resolve(entry, program, Tensors(listed.specs, TENSORS_FILE, seen=False, listed=listed), report)
    elif entry.bindings.rules:
        report.note(_PART, f"bindings.json is not checked: there is no {TENSORS_FILE} to bind to")


def _compare_bytes(entry: Entry, tensors: Tensors, report: Report) -> None:
    """`weights.tensor_bytes` is what the tensors take."""
    stated = entry.manifest.weights.tensor_bytes if entry.manifest.weights else None
    taken = sum(spec.nbytes for spec in tensors.specs.values())
    if stated not in (None, taken):
        report.fault(_PART, f"weights.tensor_bytes is {stated}, and the checkpoint's tensors take {taken}")


def _resolve(entry: Entry, program: Program, tensors: Tensors, report: Report) -> None:
    specs = parameters(program)
    generics = {name: value.value for name, value in program.root.generics.items()}
    known = {name: value for name, value in generics.items() if isinstance(value, int | str)}
    source = f"{entry.name}, against {tensors.where if tensors.seen else TENSORS_FILE}"
    try:
        resolve(specs, entry.bindings, tensors.specs, source=source, generics=known)
    except NestError as error:
        report.fault(_PART, str(error))
        return
    against = tensors.where if tensors.seen else TENSORS_FILE
    report.ok(_PART, f"{len(specs)} parameters, {len(tensors.specs)} tensors of {against}, one to one")


def _say_unseen(tensors: Tensors, report: Report, *, require_headers: bool) -> None:
    listed = tensors.listed
    origin = f" ({listed.source}: {listed.note})" if listed else ""
    message = f"checkpoint not seen: {tensors.where}. Checked against the entry's {TENSORS_FILE}{origin}"
    if require_headers:
        report.fault(_PART, f"{message}. --require-headers accepts the checkpoint's own header only")
    else:
        report.note(_PART, message)


def _write(entry: Entry, tensors: Tensors, report: Report) -> None:
    weights, names = entry.manifest.weights, " and ".join(spec.name for spec in checkpoint_files(entry))
    if weights is None or not tensors.seen:
        report.fault(_PART, f"{TENSORS_FILE} was not written: it is made from the checkpoint's own header")
        return
    note = f"The header of {names}."
    try:
        file = write_tensors_file(entry.directory, weights.repo, weights.revision, tensors.specs, note=note)
    except OSError as error:
        report.fault(_PART, f"{TENSORS_FILE} cannot be written: {error.strerror or error}")
        return
    report.note(_PART, f"wrote {file}")


def _list_faults(entry: Entry, tensors: Tensors) -> list[str]:
    """Where the committed list is not of this checkpoint."""
    listed, weights = tensors.listed, entry.manifest.weights
    if listed is None or weights is None:
        return []
    pinned = (weights.repo, weights.revision)
    if (listed.repo, listed.revision) != pinned:
        return [f"it is of {listed.repo} at {listed.revision}; the entry pins {' at '.join(pinned)}"]
    return _differences(listed, tensors) if tensors.seen else []


def _differences(listed: TensorList, tensors: Tensors) -> list[str]:
    ours, theirs = listed.specs, tensors.specs
    differing = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    if not differing:
        return []
    named = [
        f"'{name}': {ours.get(name, 'absent')} here, {theirs.get(name, 'absent')} there" for name in differing
    ]
    more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return [f"it is not the checkpoint's ({tensors.where}): {'; '.join(named[:_NAMED])}{more}"]

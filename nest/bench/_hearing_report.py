"""What came of `nest.bench.transcribe_cpu`: a row for each contender, as data and as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nest.bench._hearers import Heard, Turns
from nest.bench._material import RATE, Spoken
from nest.evaluating.normalize import english
from nest.evaluating.scores import Counts, compared, edits

__all__ = ["PEER", "Row", "report", "row_of"]

PEER = "faster-whisper f32"
"""Whose time the others' are divided by."""


@dataclass
class Row:
    """One contender: seconds for the long recording; words that are wrong in it, in the clips, and in those made worse.

    `busy_s` is the least that all its threads together were busy; `of_peer` the median over rounds of this round's time
    by that of `PEER` in the same round. One that failed has no numbers, and a `note`.
    """

    contender: str
    median_s: float | None = None
    least_s: float | None = None
    most_s: float | None = None
    real_time_factor: float | None = None
    busy_s: float | None = None
    of_peer: float | None = None
    load_s: float | None = None
    peak_mib: float | None = None
    long: Counts | None = None
    clips: Counts | None = None
    worse: Counts | None = None
    note: str = ""
    texts: dict[str, str] = field(default_factory=dict)


def row_of(name: str, turns: Turns, spoken: Sequence[Spoken]) -> Row:
    """A contender's row; the first of `spoken` is the long recording."""
    if name not in turns.found:
        return Row(name, note=turns.failed[name])
    found = turns.found[name]
    taken = found.seconds(0)
    counts = [compared(english(one.reference), english(found.text(n)))[0] for n, one in enumerate(spoken)]
    return Row(
        name,
        median_s=statistics.median(taken),
        least_s=min(taken),
        most_s=max(taken),
        real_time_factor=statistics.median(taken) / (len(spoken[0].samples) / RATE),
        busy_s=min(turn["busy_s"] for turn in found.turns[0]),
        of_peer=_ratio(found, turns.found.get(PEER)),
        load_s=found.ready["load_s"],
        peak_mib=found.peak_mib,
        long=counts[0],
        clips=_sum(counts[1:], spoken[1:], worse=False),
        worse=_sum(counts[1:], spoken[1:], worse=True),
        note="texts differ between rounds" if found.changed(0) else "",
        texts={one.name: found.text(n) for n, one in enumerate(spoken)},
    )


def _sum(counts: Sequence[Counts], spoken: Sequence[Spoken], *, worse: bool) -> Counts:
    return sum((one for one, of in zip(counts, spoken, strict=True) if of.worse == worse), Counts())


def _ratio(found: Heard, peer: Heard | None) -> float | None:
    if peer is None:
        return None
    pairs = zip(found.seconds(0), peer.seconds(0), strict=True)
    return statistics.median(ours / theirs for ours, theirs in pairs)


def report(rows: Sequence[Row], facts: Mapping[str, Any], long: Spoken) -> Iterator[str]:
    """Lines of Markdown: the conditions, the table, and where texts of the long recording differ from what is said."""
    environment = facts["environment"]
    versions = [f"{k} {v}" for k, v in environment.items() if k not in ("date", "processor", "cpus")]
    yield (
        f"{environment['date']}, {environment['processor']}, {facts['threads']} threads, {facts['rounds']} rounds in "
        f"turn, load average up to {facts['load_average']}; a recording of {facts['seconds']} s and "
        f"{len(facts['recordings']) - 1} others. {', '.join(versions)}."
    )
    yield ""
    yield (
        f"| | median s | least | most | real-time factor | busy s | of {PEER} | load s | peak MiB | "
        "words wrong of the clips | of the long one | of those made worse | |"
    )
    yield "|---" * 13 + "|"
    yield from (_line(row) for row in rows)
    yield ""
    for row in rows:
        if row.long is not None and row.long.errors:
            wrong = edits(english(long.reference), english(row.texts[long.name]))
            words = "; ".join(f"'{said}' is '{heard}'" for said, heard in wrong)
            yield f"{row.contender}, the long recording: {words}."


def _line(row: Row) -> str:
    numbers = [
        (row.median_s, ".2f"), (row.least_s, ".2f"), (row.most_s, ".2f"), (row.real_time_factor, ".4f"),
        (row.busy_s, ".2f"), (row.of_peer, ".2f"), (row.load_s, ".2f"), (row.peak_mib, ".0f"),
    ]  # fmt: skip
    cells = ["" if value is None else format(value, form) for value, form in numbers]
    return (
        f"| {' | '.join([row.contender, *cells, *map(_wrong, (row.clips, row.long, row.worse)), row.note])} |"
    )


def _wrong(counts: Counts | None) -> str:
    return (
        ""
        if counts is None or not counts.length
        else f"{counts.errors} of {counts.length} ({100 * counts.rate:.1f} %)"
    )

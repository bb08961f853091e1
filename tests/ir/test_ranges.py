"""Ranges of index arguments, found from what the program does with them."""

from __future__ import annotations

from nest.ir.ranges import argument_ranges
from nest.loading import program_of


def test_the_ranges_of_whisper_s_entries() -> None:
    entries = program_of("whisper-tiny").entries
    found = {
        name: {arg: [str(r.size) for r in ranges] for arg, ranges in argument_ranges(function).items()}
        for name, function in entries.items()
    }
    assert found["encode"] == {}
    assert found["decode"] == {"tokens": ["Vocab"]}
    assert found["align"] == {"tokens": ["Vocab"]}
    assert found["step"]["token"] == ["Vocab"]
    assert found["step"]["pos"][0] == "MaxTokens"
    assert len(found["step"]["pos"]) == 2  # rows of the position table, and slots of the caches

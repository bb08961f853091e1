"""`nest memory`: the table, its JSON, and sizes in both kinds of units."""

from __future__ import annotations

import pytest

from nest.cli._memory import binary_size

from .conftest import Command, data


def test_memory_is_a_table(command: Command) -> None:
    outcome = command("memory", "whisper-tiny.en", "--plan", "fast", "--limit", "1GiB")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "whisper-tiny.en on torch, plan fast, batch 1, context 448"
    assert lines[1].split() == ["weights", "144.0", "MiB", "f32"]
    assert [line for line in lines if "made by plan fast" in line]
    assert lines[-2].startswith("Within 1,024.0 MiB: batch ")
    assert lines[-1] == "Within 1,024.0 MiB: context 448 at batch 1"


def test_memory_as_json(command: Command) -> None:
    found = data(
        command, "memory", "smollm2-135m-instruct", "--batch", "2", "--context", "100", "--dtype", "bf16"
    )
    assert found["caches"] == {"layers": 30 * 2 * 2 * 3 * 100 * 64 * 2}
    assert found["total"] == sum(found["weights"].values()) + sum(found["caches"].values()) + found["peak"]
    assert "fits" not in found


@pytest.mark.parametrize(
    ("text", "size"),
    [("24GiB", 24 << 30), ("24g", 24 << 30), ("1.5GB", 1_500_000_000), ("800 MB", 800_000_000), ("12", 12)],
)
def test_sizes(text: str, size: int) -> None:
    assert binary_size(text) == size


def test_a_limit_that_is_no_size_is_wrong_usage(command: Command) -> None:
    outcome = command("memory", "whisper-tiny.en", "--limit", "much")
    assert outcome.code == 2
    assert outcome.err == (
        "nest: error: --limit takes a size such as 24GiB or 800MB; 'much' came. See: nest memory --help\n"
    )

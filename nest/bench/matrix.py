"""The parity matrix as the documentation prints it: the worst of each output over all clips.

nest verify whisper-tiny.en --dtype f32 --json > real.json
python -m nest.bench.matrix real.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["table"]

OUTPUTS = ("encode", "decode", "listen", "prefill", "step", "align")


def table(rows: Iterable[Mapping[str, Any]], measure: str) -> str:
    """Rows of `nest verify --json` as Markdown: a line for each backend, plan, type and batch.

    Args:
        rows: what was measured.
        measure: `"difference"`, max|Δ| to the f64 oracle, or `"relative"`, that of the largest value.
    """
    worst: dict[tuple[Any, ...], dict[str, float]] = {}
    tokens: dict[tuple[Any, ...], dict[str, bool]] = {}
    flips: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if row["backend"] == "oracle":
            continue
        key = (row["backend"], row["plan"], row["dtype"], row["batch"])
        worst.setdefault(key, {})
        flips[key] = flips.get(key, 0) + row.get("flips", 0)
        output = row["output"]
        if output.startswith("tokens, "):
            kind = output.removeprefix("tokens, ")
            equal = tokens.setdefault(key, {})
            equal[kind] = equal.get(kind, True) and row["tokens"] == "equal"
        elif output in OUTPUTS and row.get(measure) is not None:
            worst[key][output] = max(worst[key].get(output, 0.0), row[measure])
    lines = [
        "| backend | plan | batch | " + " | ".join(OUTPUTS) + " | argmax | tokens |",
        "|---" * (len(OUTPUTS) + 5) + "|",
    ]
    for key, found in worst.items():
        backend, plan, dtype, batch = key
        name = f"{backend}, {dtype}" if dtype != "f32" else backend
        cells = " | ".join(f"{found[o]:.1e}" if o in found else "" for o in OUTPUTS)
        same = tokens.get(key, {})
        said = ("equal" if all(same.values()) else "differ") if same else ""
        argmax = "equal" if not flips[key] else f"{flips[key]} differ"
        lines.append(f"| {name} | {plan} | {batch} | {cells} | {argmax} | {said} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.matrix")
    parser.add_argument("file", type=Path, help="what nest verify --json wrote")
    parser.add_argument("--relative", action="store_true", help="of the largest value")
    arguments = parser.parse_args()
    measured = json.loads(arguments.file.read_text(encoding="utf-8"))
    print(table(measured["rows"], "relative" if arguments.relative else "difference"))
    return 0


if __name__ == "__main__":
    sys.exit(main())

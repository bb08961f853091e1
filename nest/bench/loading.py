"""What loading costs: time and peak memory of whole processes, beside bare Python and the framework alone; and what
elaboration costs, of the smallest Whisper and of the largest.

    python -m nest.bench.loading [--entry whisper-tiny.en] [--runs 5]

Each figure is the median over processes that are started in turn, so that a change of the machine's speed meets all of
them. Peak memory is the process's maximum resident set.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec

__all__ = ["measure"]

FRAMEWORKS = {"torch": "torch", "onnx": "onnxruntime", "jax": "jax"}
"""Each backend's framework, by the name that it is imported by."""

_LOAD = (
    "import {framework}; import nest; m = nest.load({{entry!r}}, backend={backend!r}, local_files_only=True)"
)
_TOUCH = "; sum(float(p.sum()) for p in m.state_dict().values())"


def _scripts() -> dict[str, str]:
    """What each process runs, of the frameworks that are installed."""
    found = {"python": "pass", "import nest": "import nest"}
    for backend, framework in FRAMEWORKS.items():
        if find_spec(framework) is not None:
            load = _LOAD.format(framework=framework, backend=backend)
            found |= {f"import {framework}": f"import {framework}", f"{framework} and a warm load": load}
            if backend == "torch":
                found["torch, load and touch all weights"] = load + _TOUCH
    return found


LARGE = {
    "Mels": 128,
    "D": 1280,
    "Heads": 20,
    "Inner": 5120,
    "EncoderLayers": 32,
    "DecoderLayers": 32,
    "Vocab": 51866,
}
"""The shapes of whisper-large-v3."""

ELABORATE = """
import time
import nest.loading
start = time.perf_counter()
program = nest.loading.program_of("whisper-tiny", **{generics})
print(time.perf_counter() - start, len(program.entries))
"""


def _run(script: str) -> tuple[float, float]:
    """Seconds and peak MiB of a new process."""
    code = script + "; import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    # An installed package has its bytecode; a checkout that may write none would compile itself each time.
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    seconds = time.perf_counter() - start
    # Linux counts in KiB, macOS in bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return seconds, int(done.stdout.split()[-1]) / unit


def measure(entry: str, runs: int) -> dict[str, tuple[float, float]]:
    """Median seconds and peak MiB of each script, run in turn after one round that is not counted."""
    scripts = {name: text.format(entry=entry) for name, text in _scripts().items()}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in scripts}
    for round_ in range(runs + 1):
        for name, script in scripts.items():
            figures = _run(script)
            if round_:
                taken[name].append(figures)
    return {
        n: (statistics.median(s for s, _ in t), statistics.median(m for _, m in t)) for n, t in taken.items()
    }


def elaboration(runs: int) -> dict[str, float]:
    """Median seconds from an entry's name to its typed program, every entry traced, in a new process each time."""
    scripts = {
        "whisper-tiny": ELABORATE.format(generics={}),
        "whisper-large-v3 shapes": ELABORATE.format(generics=LARGE),
    }
    taken: dict[str, list[float]] = {name: [] for name in scripts}
    for round_ in range(runs + 1):
        for name, script in scripts.items():
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
            if round_:
                taken[name].append(float(done.stdout.split()[0]))
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.loading")
    parser.add_argument("--entry", default="whisper-tiny.en")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(arguments.entry, arguments.runs)
    traced = elaboration(arguments.runs)
    if arguments.json:
        processes = {n: {"seconds": s, "peak_mib": m} for n, (s, m) in figures.items()}
        print(json.dumps({"processes": processes, "elaboration_seconds": traced}, indent=1))
        return 0
    print(
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, {arguments.entry}\n"
    )
    print("| process | seconds | peak MiB |\n|---|---|---|")
    for name, (seconds, memory) in figures.items():
        print(f"| {name} | {seconds:.3f} | {memory:.0f} |")
    print("\n| elaboration | ms |\n|---|---|")
    for name, seconds in traced.items():
        print(f"| {name} | {seconds * 1e3:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

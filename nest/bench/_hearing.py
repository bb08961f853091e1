"""A process that transcribes when it is its turn; the Python of a peer can run it, since only numpy is needed.

Lines go in and out: the number of a recording comes, a line of JSON answers, with seconds of the clock and of the
processor, the text, and the most memory so far.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from time import perf_counter, process_time
from typing import Any

from nest.bench.peers.speech import Hear

__all__ = ["serve"]


def serve(load: Callable[[int], Hear], recordings: str, threads: int, packages: Sequence[str]) -> None:
    """Load, hear the first recording once so that everything is warm, say so, and then hear what is asked for.

    Args:
        load: gives what hears, by so many threads.
        recordings: a file of numpy with the samples of each, in order.
        packages: whose versions are told.
    """
    import numpy as np

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to standard error

    def say(**facts: Any) -> None:
        answers.write(json.dumps({**facts, "peak_mib": _peak_mib()}) + "\n")
        answers.flush()

    with np.load(recordings) as held:
        samples = [held[name] for name in held.files]
    begin = perf_counter()
    hear = load(threads)
    loaded = perf_counter()
    hear(samples[0])
    versions = {package: metadata.version(package) for package in packages}
    say(load_s=loaded - begin, first_s=perf_counter() - loaded, versions=versions)
    for line in sys.stdin:
        start, busy = perf_counter(), process_time()
        text = hear(samples[int(line)])
        say(seconds=perf_counter() - start, busy_s=process_time() - busy, text=text)


def _peak_mib() -> float:
    import resource

    # Linux counts in KiB, macOS in bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

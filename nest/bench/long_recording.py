"""Memory of a long recording: `nest transcribe` on the shared clips, said again and again, in a process of its own.

    python -m nest.bench.long_recording --hours 2

It needs a system that tells a process's memory in /proc. Arguments that are not its own go to `nest transcribe`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from nest.bench.whisper_parity import _shipped_audio
from nest.tasks import audio

RATE = 16000
CLIPS = ("jfk", "librivox_0870", "librivox_0920", "librivox_0930")
EARLY = 120.0
"""After so many seconds of work, what is needed once has been made."""


def write(path: Path, hours: float) -> float:
    """Write the recording as flac, and return how many seconds it lasts."""
    import soundfile

    folder, silence = _shipped_audio().parent, np.zeros(RATE // 2, np.float32)
    once = np.concatenate([part for name in CLIPS for part in (audio.load(folder / f"{name}.wav"), silence)])
    count = max(round(hours * 3600 * RATE / len(once)), 1)
    with soundfile.SoundFile(path, "w", RATE, 1, format="FLAC") as file:
        for _ in range(count):
            file.write(once)
    return count * len(once) / RATE


def most_held(process: int) -> int:
    """The most memory that a process has held, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    facts = dict(line.split(":", 1) for line in lines)
    return int(facts["VmHWM"].split()[0]) // 1024


def run(command: list[str]) -> dict[str, int]:
    """Run a command to its end: its exit code, seconds, and the most memory early and in all, in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    early = peak = 0
    while process.poll() is None:
        try:
            peak = most_held(process.pid)
        except (OSError, KeyError):  # it has ended meanwhile
            break
        early = peak if time.perf_counter() - began < EARLY else early
        time.sleep(0.5)
    code = process.wait()
    return {"code": code, "seconds": round(time.perf_counter() - began), "early": early, "peak": peak}


def main() -> int:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(
        prog="python -m nest.bench.long_recording", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--hours", type=float, default=2.0, help="how long the recording is; 2 if left out")
    args, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.flac"
        length = write(path, args.hours)
        found = run([sys.executable, "-m", "nest", "transcribe", str(path), *options])
    print(
        f"{length:.0f} s of audio in {found['seconds']} s; at most {found['early']} MiB in the first {EARLY:.0f} s, at "
        f"most {found['peak']} MiB in all"
    )
    return found["code"]


if __name__ == "__main__":
    sys.exit(main())

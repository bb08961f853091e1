"""How the memory of a long recording is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nest.bench import long_recording
from nest.tasks import audio


def test_the_recording_is_the_clips_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "recording.flac"
    length = long_recording.write(path, 0.02)
    assert length == pytest.approx(72, abs=20)
    samples = audio.load(path)
    assert len(samples) / 16000 == pytest.approx(length)
    half = len(samples) // 2
    assert (samples[:half] == samples[half:]).all()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system tells no memory in /proc")
def test_the_most_memory_is_seen() -> None:
    script = "import time; b = bytearray(200 << 20); del b; time.sleep(1.5); raise SystemExit(3)"
    found = long_recording.run([sys.executable, "-c", script])
    assert found["code"] == 3
    assert 200 <= found["early"] == found["peak"] < 1000

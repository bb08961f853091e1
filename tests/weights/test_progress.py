"""The line that a person watches, and doing several things at once."""

from __future__ import annotations

import io
import os
import threading

import pytest

from nest.weights.at_once import at_once
from nest.weights.progress import Meter, size_text, time_text


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_share_speed_and_time_left(clock: Clock) -> None:
    meter = Meter("tiny", 100_000_000, None, clock)
    assert meter.line() == "tiny  [........................]    0%  0 B of 100 MB"
    meter.report(0, came=False)
    for _ in range(5):
        clock.now += 1
        meter.report(5_000_000)
    assert meter.line() == "tiny  [######..................]   25%  25 MB of 100 MB  5 MB/s  15 s left"


def test_what_was_here_before_is_no_speed(clock: Clock) -> None:
    meter = Meter("tiny", 100, None, clock)
    meter.report(0)
    clock.now += 1
    meter.report(10)
    meter.report(50, came=False)
    assert meter.line() == "tiny  [##############..........]   60%  60 B of 100 B  10 B/s  4 s left"


def test_speed_is_of_late(clock: Clock) -> None:
    meter = Meter("tiny", None, None, clock)
    meter.report(0)
    for count in (1000, *[1] * 20):
        clock.now += 1
        meter.report(count)
    assert meter.line() == "tiny  1.02 kB  1 B/s"


def test_the_line_is_drawn_a_few_times_a_second_and_taken_away(clock: Clock) -> None:
    stream = io.StringIO()
    meter = Meter("tiny", 10, stream, clock)
    for _ in range(10):
        clock.now += 0.04
        meter.report(1)
    assert stream.getvalue().count("\r\x1b[K") == 4
    meter.close()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_is_drawn_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    meter = Meter.on_terminal("tiny", 10, wanted=None)
    meter.report(1)
    meter.close()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "an unknown size"), (0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (151_060_136, "151 MB")],
)
def test_sizes(count: int | None, text: str) -> None:
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (59.4, "59 s"), (60, "1 min 00 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")],
)
def test_times(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


class TestAtOnce:
    def test_results_are_in_order(self) -> None:
        barrier = threading.Barrier(3)

        def do(number: int) -> int:
            barrier.wait(timeout=10)  # passes only if three run at once
            return number * number

        assert at_once(do, range(6), workers=3, stop=lambda: None) == [0, 1, 4, 9, 16, 25]

    def test_one_needs_no_thread(self) -> None:
        assert at_once(lambda _: threading.current_thread(), ["x"], workers=4, stop=lambda: None) == [
            threading.main_thread()
        ]
        assert at_once(str, [], workers=4, stop=lambda: None) == []

    def test_the_first_error_stops_the_others(self) -> None:
        meter = Meter("tiny", None, None)
        gave_up = threading.Event()

        def do(name: str) -> None:
            if name == "fails":
                raise ValueError("the first")
            try:
                while True:
                    meter.report(1)
            except KeyboardInterrupt:
                gave_up.set()
                raise

        with pytest.raises(ValueError, match="the first"):
            at_once(do, ["goes on", "fails"], workers=2, stop=meter.stop)
        assert gave_up.wait(timeout=10)


def test_a_line_is_narrower_than_its_terminal(clock: Clock) -> None:
    meter = Meter("whisper-tiny.en", 150_000_000, None, clock)
    meter.report(0)
    clock.now += 1
    meter.report(12_300_000)
    whole = "whisper-tiny.en  [#.......................]    8%  12.3 MB of 150 MB  12.3 MB/s  11 s left"
    assert meter.line(len(whole) + 1) == meter.line() == whole
    assert meter.line(80) == "whisper-tiny.en    8%  12.3 MB of 150 MB  12.3 MB/s  11 s left"
    assert meter.line(20) == "whisper-tiny.en    "
    assert meter.line(0) == ""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="the platform has no pseudo-terminals")
@pytest.mark.parametrize(("term", "drawn"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_cannot_take_a_line_back(
    monkeypatch: pytest.MonkeyPatch, term: str, drawn: bool
) -> None:
    far, near = os.openpty()
    monkeypatch.setenv("TERM", term)
    with os.fdopen(near, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        meter = Meter.on_terminal("tiny", 10, wanted=None)
        meter.report(1)
        meter.close()
        os.write(near, b"END")
        seen = os.read(far, 1000)
    os.close(far)
    assert (b"tiny" in seen) == drawn


def test_without_a_standard_error_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    meter = Meter.on_terminal("tiny", 10, wanted=True)
    meter.report(1)
    meter.close()

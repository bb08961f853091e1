"""What a person sees of `nest transcribe`: the text as it is decoded, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter

from nest.cli._format import plain
from nest.cli._spoken import detected
from nest.tasks.transcript import Segment
from nest.tasks.transcript_stream import TranscriptStream

__all__ = ["Screen", "clock"]


class Screen:
    """Text on standard output, progress on standard error where that is a terminal.

    Args:
        files: whether the text is written to files as well; then standard output has it only on a terminal.
    """

    def __init__(self, *, files: bool) -> None:
        self._terminal = sys.stdout.isatty()
        self._texts = self._terminal or not files
        self._progress = sys.stderr.isatty()
        self._since = perf_counter()
        self._spoken: set[int | None] = set()

    def begin(self, label: str, number: int, count: int) -> None:
        """Say which recording is next."""
        self._since = perf_counter()
        self._spoken = set()
        if count > 1 and self._texts:
            print(("\n" if number else "") + plain(label), flush=True)

    def segment(self, segment: Segment, stream: TranscriptStream) -> None:
        """Show a segment, and how far its recording is heard; before the first, a language that was detected."""
        self._clear()
        self._language(segment.channel, stream)
        text = " ".join(plain(segment.text).split())
        if self._texts and text:
            channel = "" if segment.channel is None else f"[{segment.channel + 1}] "
            times = f"[{clock(segment.start)} - {clock(segment.end)}]  " if self._terminal else ""
            print(f"{times}{channel}{text}", flush=True)
        if self._progress:
            whole = "" if stream.seconds is None else f" of {clock(stream.seconds)}"
            speed = stream.position / max(perf_counter() - self._since, 1e-3)
            sys.stderr.write(
                f"\r{clock(stream.position)}{whole} heard, {speed:.1f} times as fast as it was said"
            )
            sys.stderr.flush()

    def _language(self, channel: int | None, stream: TranscriptStream) -> None:
        if channel in self._spoken:
            return
        self._spoken.add(channel)
        if (likely := stream.language_probabilities) is not None:
            self.note(detected(likely, channel))

    def end(self, stream: TranscriptStream, written: Sequence[str] = ()) -> None:
        """Say what it took, and which files were written."""
        self._clear()
        if self._progress:
            took = perf_counter() - self._since
            files = f"; written: {', '.join(map(plain, written))}" if written else ""
            sys.stderr.write(f"{clock(stream.position)} heard in {clock(took)}{files}\n")

    def note(self, text: str) -> None:
        """Say something beside the text."""
        self._clear()
        sys.stderr.write(f"nest: {plain(text)}\n")

    def _clear(self) -> None:
        if self._progress:
            sys.stderr.write("\r\x1b[K")


def clock(seconds: float) -> str:
    """`1:02:03.4`, without hours where there are none."""
    tenths = round(seconds * 10)
    minutes, tenths = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    front = f"{hours}:{minutes:02}" if hours else f"{minutes}"
    return f"{front}:{tenths // 10:02}.{tenths % 10}"

"""Write transcripts as people use them: plain text, subtitles (srt, vtt), tables (tsv), data (json)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nest.tasks._cues import Cue, Lines, cues, shown_text, told
from nest.tasks.transcript import Segment, Transcript

__all__ = ["WRITERS", "Cue", "Lines", "cues", "facts", "json_text", "plain_text", "srt", "tsv", "vtt"]

SCHEMA = "nest-transcript-1"
_LIKELY = 0.01
"""A language that is less likely is left out."""


def plain_text(transcript: Transcript, lines: Lines | None = None) -> str:
    """A line for each segment; lines are not broken."""
    return "".join(f"{shown_text(segment)}\n" for segment in told(transcript))


def srt(transcript: Transcript, lines: Lines | None = None) -> str:
    """SubRip."""
    blocks = [
        f"{number}\n{_clock(start, ',')} --> {_clock(end, ',')}\n"
        + "".join(f"{_plain(line)}\n" for line in shown)
        for number, (start, end, shown) in enumerate(_timed(transcript, lines), 1)
    ]
    return "\n".join(blocks)


def vtt(transcript: Transcript, lines: Lines | None = None) -> str:
    """WebVTT; see https://www.w3.org/TR/webvtt1/."""
    blocks = ["WEBVTT\n"]
    for start, end, shown in _timed(transcript, lines):
        escaped = [line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in shown]
        blocks.append(
            f"{_clock(start, '.')} --> {_clock(end, '.')}\n" + "".join(f"{line}\n" for line in escaped)
        )
    return "\n".join(blocks)


def tsv(transcript: Transcript, lines: Lines | None = None) -> str:
    """A table of start and end in milliseconds, and the text of each segment."""
    rows = [
        f"{round(s.start * 1000)}\t{round(s.end * 1000)}\t{' '.join(shown_text(s).split())}\n"
        for s in told(transcript)
    ]
    return "".join(["start\tend\ttext\n", *rows])


def json_text(transcript: Transcript, lines: Lines | None = None, **about: Any) -> str:
    """JSON of `facts`."""
    text = json.dumps(facts(transcript, **about), ensure_ascii=False, indent=2) + "\n"
    # A name of a file need not be Unicode: what is none of it becomes JSON's own escape.
    return text.encode(errors="backslashreplace").decode()


def facts(transcript: Transcript, **about: Any) -> dict[str, Any]:
    """A transcript as plain data, one schema for all.

    Keys: `schema`; what `about` says of it, such as `file` and `model`; `language`, a code; `language_probability`, and
    `language_probabilities` of those that have at least 0.01, where it was detected; `duration`, how many seconds were
    heard; `text`; `segments`, each with `id` from 0, `start` and `end` in seconds, `text`, `tokens`, `confidence` from
    0 to 1, `mean_log_probability`, `temperature`, `compression_ratio`, and, where they were asked for, `channel` from 0
    with its `language`, and `words`, each with `text`, `start`, `end` and `probability`. What is not known is null.
    """
    likely = transcript.language_probabilities
    return {
        "schema": SCHEMA,
        **about,
        "language": transcript.language,
        "language_probability": _rounded(transcript.language_probability),
        "language_probabilities": None
        if likely is None
        else {code: round(p, 4) for code, p in likely.items() if p >= _LIKELY},
        "duration": round(transcript.duration, 3),
        "text": transcript.text,
        "segments": [_segment_facts(number, segment) for number, segment in enumerate(transcript.segments)],
    }


def _segment_facts(number: int, segment: Segment) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": number,
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
        "tokens": list(segment.tokens),
        "confidence": _rounded(segment.confidence),
        "mean_log_probability": _rounded(segment.mean_log_probability),
        "temperature": segment.temperature,
        "compression_ratio": _rounded(segment.compression_ratio),
    }
    if segment.channel is not None:
        found |= {"channel": segment.channel, "language": segment.language}
    if segment.words:
        found["words"] = [
            {
                "text": w.text,
                "start": round(w.start, 3),
                "end": round(w.end, 3),
                "probability": round(w.probability, 4),
            }
            for w in segment.words
        ]
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


WRITERS: Mapping[str, Callable[..., str]] = {
    "txt": plain_text,
    "srt": srt,
    "vtt": vtt,
    "tsv": tsv,
    "json": json_text,
}
"""What writes each format: a transcript and `Lines` in, text out; `json` takes what is known of it as well."""


def _plain(line: str) -> str:
    """A line that no reader takes for times."""
    return line.replace("-->", "->")


def _timed(transcript: Transcript, lines: Lines | None) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Cues in whole milliseconds, none of them shorter than one."""
    for cue in cues(transcript, lines):
        start = round(cue.start * 1000)
        yield start, max(round(cue.end * 1000), start + 1), cue.lines


def _clock(milliseconds: int, point: str) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{rest:03}"

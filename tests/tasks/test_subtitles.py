"""What transcripts are written as."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.errors import InputError
from nest.tasks import Segment, Transcript, Word
from nest.tasks.languages import NAMES, language_code
from nest.tasks.subtitles import WRITERS, Lines, cues, facts, plain_text, srt, tsv, vtt


def transcript(*segments: Segment) -> Transcript:
    return Transcript("".join(s.text for s in segments).strip(), (), "en", 4000.0, segments)


TWO = transcript(
    Segment(
        0.0,
        2.5,
        " It was <so> & so.",
        (1, 2),
        mean_log_probability=-0.5,
        temperature=0.2,
        compression_ratio=1.1,
    ),
    Segment(3661.5, 3662.0004, " a --> b\n", (3,)),
)


def test_plain_text() -> None:
    assert plain_text(TWO) == "It was <so> & so.\na --> b\n"
    assert plain_text(transcript()) == ""


def test_srt() -> None:
    assert srt(TWO) == (
        "1\n00:00:00,000 --> 00:00:02,500\nIt was <so> & so.\n\n2\n01:01:01,500 --> 01:01:02,000\na -> b\n"
    )
    assert srt(transcript()) == ""


def test_vtt() -> None:
    assert vtt(TWO) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:02.500\nIt was &lt;so&gt; &amp; so.\n\n"
        "01:01:01.500 --> 01:01:02.000\na --&gt; b\n"
    )
    assert vtt(transcript()) == "WEBVTT\n"


def test_tsv() -> None:
    assert tsv(TWO) == "start\tend\ttext\n0\t2500\tIt was <so> & so.\n3661500\t3662000\ta --> b\n"
    tabbed = transcript(Segment(0, 1, " a\tb", ()))
    assert tsv(tabbed).splitlines()[1] == "0\t1000\ta b"


def test_json_has_one_schema() -> None:
    word = Word(" a", 0.1, 0.23456, 0.98765)
    made = transcript(*TWO.segments, Segment(1, 2, " a", (4,), (word,), channel=1))
    found = json.loads(WRITERS["json"](made, None, file="ä.mp3"))
    assert found == facts(made, file="ä.mp3")
    unreadable = WRITERS["json"](made, None, file="a\udcff.mp3").encode()
    assert json.loads(unreadable)["file"] == "a\udcff.mp3"
    assert (found["schema"], found["file"], found["language"], found["duration"]) == (
        "nest-transcript-1", "ä.mp3", "en", 4000.0,
    )  # fmt: skip
    assert found["segments"][0] == {
        "id": 0, "start": 0.0, "end": 2.5, "text": " It was <so> & so.", "tokens": [1, 2], "confidence": 0.6065,
        "mean_log_probability": -0.5, "temperature": 0.2, "compression_ratio": 1.1,
    }  # fmt: skip
    assert found["segments"][1]["confidence"] is None
    assert found["segments"][2]["words"] == [
        {"text": " a", "start": 0.1, "end": 0.235, "probability": 0.9877}
    ]
    assert found["segments"][2]["channel"] == 1
    assert "channel" not in found["segments"][0]


def test_segments_without_text_are_no_subtitles() -> None:
    made = transcript(Segment(0, 1, " ", ()), Segment(1, 2, " a", ()))
    assert [cue.lines for cue in cues(made)] == [("a",)]
    assert plain_text(made) == "a\n"


def test_channels_are_named() -> None:
    made = transcript(Segment(0, 1, " a", (), channel=0), Segment(0, 1, " b", (), channel=1))
    assert plain_text(made) == "[1] a\n[2] b\n"


SENTENCE = " Had he married a more amiable woman, he might have been made still more respectable than he was."


def test_a_detected_language_is_data() -> None:
    said = Segment(0, 1, " Oui", (), channel=1, language="fr")
    likely = {"fr": 0.912345, "de": 0.05, "en": 0.009}
    found = facts(Transcript("Oui", (), "fr", 1.0, (said,), likely))
    assert (found["language"], found["language_probability"]) == ("fr", 0.9123)
    assert found["language_probabilities"] == {"fr": 0.9123, "de": 0.05}
    assert (found["segments"][0]["channel"], found["segments"][0]["language"]) == (1, "fr")
    found = facts(transcript(said))
    assert (found["language_probability"], found["language_probabilities"]) == (None, None)


def test_lines_have_a_width() -> None:
    (cue,) = cues(transcript(Segment(0, 6, SENTENCE, ())), Lines(width=30))
    assert cue.lines == (
        "Had he married a more amiable", "woman, he might have been made", "still more respectable than he", "was.",
    )  # fmt: skip


def test_more_lines_than_a_subtitle_has_are_several_by_their_letters() -> None:
    first, second = cues(transcript(Segment(0, 8, SENTENCE, ())), Lines(width=30, count=2))
    assert (len(first.lines), len(second.lines)) == (2, 2)
    assert (first.start, second.end) == (0, 8)
    assert first.end == second.start == pytest.approx(8 * 49 / 79)


def test_more_lines_than_a_subtitle_has_are_several_by_their_words() -> None:
    spoken = SENTENCE.split()
    words = tuple(Word(f" {word}", i + 0.1, i + 0.9, 1.0) for i, word in enumerate(spoken))
    made = transcript(Segment(0, 30, SENTENCE, (), words))
    first, second = cues(made, Lines(width=30, count=2))
    count = len(" ".join(first.lines).split())
    assert (first.start, first.end) == pytest.approx((0.1, count - 0.1))
    assert (second.start, second.end) == pytest.approx((count + 0.1, len(spoken) - 0.1))


@given(
    st.lists(st.text(alphabet="ab é中-", min_size=1, max_size=40), max_size=5),
    st.integers(1, 12),
    st.one_of(st.none(), st.integers(1, 3)),
    st.booleans(),
)
def test_no_letter_is_lost_and_times_are_in_order(
    texts: list[str], width: int, count: int | None, worded: bool
) -> None:
    segments = []
    for at, text in enumerate(texts):
        pieces = re.findall(r"\s*\S+|\s+$", text) if worded else []
        words = tuple(
            Word(p, at + i / len(pieces), at + (i + 1) / len(pieces), 1.0) for i, p in enumerate(pieces)
        )
        segments.append(Segment(at, at + 1, text, (), words))
    found = cues(transcript(*segments), Lines(width=width, count=count))
    assert "".join("".join(cue.lines) for cue in found).replace(" ", "") == "".join(texts).replace(" ", "")
    assert all(len(line) <= width for cue in found for line in cue.lines)
    assert count is None or all(len(cue.lines) <= count for cue in found)
    edges = [edge for cue in found for edge in (cue.start, cue.end)]
    assert edges == sorted(edges)


def test_a_time_is_never_empty() -> None:
    made = transcript(replace(TWO.segments[0], end=0.0001))
    assert "00:00:00,000 --> 00:00:00,001" in srt(made)


@pytest.mark.parametrize("lines", [{"width": 0}, {"width": 20, "count": 0}, {"count": 2}])
def test_lines_that_leave_no_room(lines: dict[str, int]) -> None:
    with pytest.raises(InputError, match="line"):
        Lines(**lines)


def test_languages_by_name() -> None:
    assert [language_code(given) for given in ("English", " german ", "de", "Mandarin", "haitian creole")] == [
        "en", "de", "de", "zh", "ht",
    ]  # fmt: skip
    assert language_code("Klingon") == "Klingon"
    assert len(NAMES) == 100

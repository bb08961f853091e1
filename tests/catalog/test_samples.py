"""Samples as HTML: hostile texts, missing files, what nobody measured, and both sides beside each other."""

from __future__ import annotations

import struct
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nest.catalog import build
from nest.catalog.samples import shared_media, show
from nest.catalog.samples._compare import beside, differences
from nest.catalog.samples._media import picture_size
from nest.registry import Sample, entries, find

HOSTILE = "<script>alert(\"1\")</script> **a** & 'b' [x](y)\n\n# no heading\x02 `c`"
COMPUTED = {
    "date": "2031-02-03", "backend": "onnx", "nest": "9.8", "weights": "<w>", "reference": "library 1.2",
}  # fmt: skip
VOID = ("img", "br")


class Balanced(HTMLParser):
    """Fails on elements that are not closed in order; gathers text, tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Balanced:
    reader = Balanced()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def entry_of(folder: Path, *samples: dict[str, Any]) -> Any:
    return SimpleNamespace(directory=folder, samples=[Sample.model_validate(sample) for sample in samples])


def shown(*samples: dict[str, Any], name: str = "whisper-tiny") -> Balanced:
    """The section of an entry with other samples."""
    html = show(entry_of(find(name).directory, *samples)).html
    assert "\n" not in html  # a blank line would end the block of HTML, and Markdown would read on
    return parsed(html)


WORD = {"text": f" {HOSTILE}", "start": 0.5, "end": 1.0, "probability": 0.5}


@pytest.mark.parametrize(
    "sample",
    [
        {"kind": "transcription", "audio": HOSTILE, "text": HOSTILE, "reference_text": "other", "words": [WORD]},
        {"kind": "text-generation", "prompt": HOSTILE, "chat": True, "text": HOSTILE, "reference_text": HOSTILE},
        {"kind": "text-generation", "prompt": HOSTILE, "reference_text": HOSTILE, "note": HOSTILE},
        {"kind": "sentence-embedding", "texts": [HOSTILE, "b"], "matrix": [[1.0, 0.1], [0.1, 1.0]], "note": HOSTILE},
        {"kind": "sentence-embedding", "texts": [HOSTILE, "b"]},
        {"kind": "image-classification", "image": HOSTILE, "labels": [{"label": HOSTILE, "score": 0.5}]},
        {"kind": "image-classification", "image": "coffee.jpg", "about": HOSTILE},
        {"kind": "image-text-matching", "image": "coffee.jpg", "texts": [HOSTILE], "scores": [0.5]},
        {"kind": "image-text-matching", "image": "coffee.jpg", "texts": [HOSTILE]},
        {"kind": "fill-mask", "prompt": HOSTILE, "masks": [[{"token": HOSTILE, "probability": 0.5}]]},
        {"kind": "fill-mask", "prompt": HOSTILE, "computed": {**COMPUTED, "weights": HOSTILE}, "text": HOSTILE},
    ],
)  # fmt: skip
def test_texts_of_a_sample_are_text(sample: dict[str, Any]) -> None:
    found = shown(sample)
    assert not {"script", "h1", "strong", "a", "code"} & {tag for tag, _ in found.tags}
    everything = found.text + "".join(value or "" for _, given in found.tags for value in given.values())
    assert '<script>alert("1")</script>' in everything
    assert "\x02" not in everything


def test_markdown_leaves_samples_as_they_are() -> None:
    markdown = pytest.importorskip("markdown")
    sample = {
        "kind": "text-generation",
        "prompt": HOSTILE,
        "text": HOSTILE,
        "reference_text": f"{HOSTILE} more",
    }
    html = show(entry_of(Path(), sample)).html
    page = markdown.markdown(
        f"## Samples\n\n{html}\n\n*End*", extensions=["attr_list", "md_in_html", "tables"]
    )
    assert html in page
    assert page.endswith("<p><em>End</em></p>")


def test_what_nobody_measured_says_so_and_shows_its_input() -> None:
    found = shown(
        {"kind": "transcription", "audio": "jfk.wav", "note": "Not measured: no weights here."},
        {"kind": "text-generation", "prompt": "Why?", "chat": True},
        {"kind": "fill-mask", "prompt": "A [MASK].", "note": "The file is too large."},
        {
            "kind": "text-generation",
            "prompt": "Who?",
            "reference_text": "Me.",
            "note": "Not run by this project.",
        },
    )
    for text in (
        "Not measured: no weights here.",
        "Not measured: nobody has run this sample",
        "Not measured: The file is too large.",
        "Not run by this project.",
        "Why?",
        "A [MASK].",
        "The reference library's",
    ):
        assert text in found.text
    assert ("audio", {"controls": None, "preload": "none", "src": "../assets/media/jfk.wav",
                      "aria-label": "Recording jfk.wav"}) in found.tags  # fmt: skip


def test_every_sample_of_the_zoo_is_measured_or_says_why_not() -> None:
    for entry in entries():
        html = show(entry).html
        parsed(html)
        for sample in entry.samples:
            assert sample.measured == (sample.computed is not None), entry.name
            if not sample.measured:
                assert sample.note, entry.name
        assert ("nest-unmeasured" in html) == any(not sample.measured for sample in entry.samples), entry.name


def test_what_measured_a_sample_is_said_once_for_all_of_them() -> None:
    sample = {"kind": "text-generation", "prompt": "a", "text": "b", "note": "Greedy.", "computed": COMPUTED}
    once = shown(sample, {**sample, "prompt": "c"})
    for fact in ("<w>", "onnx, nest 9.8", "2031-02-03", "library 1.2", "Greedy."):
        assert once.text.count(fact) == 1
    twice = shown(sample, {**sample, "computed": {**COMPUTED, "backend": "torch"}})
    assert twice.text.count("Greedy.") == 2
    old = shown({"kind": "text-generation", "prompt": "a", "text": "b"})
    assert "was not written down" in old.text


def test_a_recording_that_is_not_here() -> None:
    found = shown({"kind": "transcription", "audio": "other/corpus, clean[0]", "text": "Hi."})
    assert "other/corpus, clean[0], which does not come with nest" in found.text
    assert "audio" not in {tag for tag, _ in found.tags}
    found = shown({"kind": "image-classification", "image": "../../secret.png"})
    assert "img" not in {tag for tag, _ in found.tags}


def test_words_carry_their_times() -> None:
    words = [
        {"text": " Ask", "start": 0.5, "end": 1.25, "probability": 0.954},
        {"text": " not.", "start": 1.5, "end": 2.0},
    ]
    later = [{**words[0], "start": 0.62}, words[1]]
    found = shown(
        {
            "kind": "transcription",
            "audio": "jfk.wav",
            "text": "Ask not.",
            "words": words,
            "reference_words": later,
        }
    )
    marks = [given for tag, given in found.tags if tag == "span"]
    assert marks == [
        {"data-start": "0.5", "data-end": "1.25", "data-sure": "0.95"},
        {"data-start": "1.5", "data-end": "2"},
    ]
    assert "Ask not." in found.text
    assert "Times of 2 words: at most 0.12 s from" in found.text


def test_words_that_differ_are_marked() -> None:
    ours, theirs, count = differences("And so, my friend.", "And so my dear friend.")
    assert ours == "And <ins>so,</ins> my friend."
    assert theirs == "And <del>so</del> my <del>dear</del> friend."
    assert count == 2
    found = parsed(beside("a b", "a c"))
    assert "1 word differs" in found.text
    assert parsed(beside("a b", "a  b")).text.startswith("Only spaces differ")


def test_equal_texts_stand_once() -> None:
    found = parsed(beside("a b", "a b"))
    assert [tag for tag, _ in found.tags] == ["p", "details", "summary", "p"]
    assert "same text, word for word" in found.text
    assert [tag for tag, _ in parsed(beside("a", "a", shown=True)).tags] == ["details", "summary", "p"]
    assert beside(None, None) == ""
    assert beside("a", None, shown=True) == ""


def test_pictures_keep_their_place_and_say_what_they_show(tmp_path: Path) -> None:
    found = shown({"kind": "image-classification", "image": "coffee.jpg", "about": "A cup."})
    (picture,) = [given for tag, given in found.tags if tag == "img"]
    assert (picture["width"], picture["height"], picture["alt"]) == ("600", "400", "A cup.")
    assert picture["src"] == "../assets/media/coffee.jpg"
    png = tmp_path / "a.png"
    png.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\x0dIHDR" + struct.pack(">II", 3, 5) + b"\x08\x02")
    assert picture_size(png) == (3, 5)
    for data in (
        b"",
        b"GIF89a",
        b"\xff\xd8",
        b"\xff\xd8\xff\xe0\x00\x04ab",
        b"\xff\xd8" + b"\xff\xe0\x00\x02" * 9,
    ):
        png.write_bytes(data)
        assert picture_size(png) is None


def test_labels_are_bars_beside_the_reference_s() -> None:
    labels = [{"label": "espresso", "score": 0.75}, {"label": "cup", "score": 0.2}]
    found = shown(
        {"kind": "image-classification", "image": "coffee.jpg", "labels": labels,
         "reference_labels": [{"label": "espresso", "score": 0.7499}]}
    )  # fmt: skip
    assert "--share: 75.0%" in [given.get("style") for _, given in found.tags]
    assert "espresso0.75000.7499" in found.text
    assert "cup0.2000–" in found.text


def test_cosines_are_shaded() -> None:
    found = shown(
        {"kind": "sentence-embedding", "texts": ["one", "two"], "matrix": [[1.0, -0.25], [-0.25, 1.0]],
         "reference_matrix": [[1.0, -0.25], [-0.2501, 1.0]]}
    )  # fmt: skip
    assert [given["style"] for tag, given in found.tags if tag == "td"] == [
        "--share: 100%", "--share: 0%", "--share: 0%", "--share: 100%",
    ]  # fmt: skip
    assert "−0.25" in found.text
    assert "All numbers differ by at most 1.0e-04 from the reference" in found.text


def test_a_cut_answer_says_so() -> None:
    sample = {"kind": "text-generation", "prompt": "a", "text": "b", "max_tokens": 7}
    assert "Cut after 7 tokens." in shown({**sample, "finish": "length"}).text
    assert "Cut" not in shown({**sample, "finish": "stop"}).text


def test_shared_media_are_there_once(tmp_path: Path) -> None:
    build(tmp_path / "models")
    there = {file.relative_to(tmp_path / "models").as_posix() for file in tmp_path.rglob("*.wav")}
    named = {f"assets/{place}" for place in shared_media(entries()) if place.endswith(".wav")}
    assert there == named
    assert "assets/media/jfk.wav" in named
    page = (tmp_path / "models" / "whisper-tiny.en" / "index.md").read_text()
    assert page.count('src="../assets/media/') == 4
    assert 'src="../assets/samples.js"' in page
    assert "samples.js" not in (tmp_path / "models" / "whisper-base" / "index.md").read_text()


def test_a_file_of_the_entry_s_own_lies_beside_its_page(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "mine.wav").write_bytes(b"RIFF")
    own = entry_of(tmp_path, {"kind": "transcription", "audio": "clips/mine.wav"})
    made = show(own)
    assert made.files == {"media/clips-mine.wav": tmp_path / "clips" / "mine.wav"}
    assert 'src="media/clips-mine.wav"' in made.html
    assert shared_media([own]) == {}

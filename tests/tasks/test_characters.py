"""Characters that are split over tokens, over segments, over words and over lines: they never come out broken.

The vocabularies are the 256 bytes, and the published one of the multilingual checkpoints.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nest.registry import FileSpec, Mirror, MirrorFile
from nest.tasks._characters import continues
from nest.tasks._cues import Lines, cues
from nest.tasks._word_groups import words
from nest.tasks.mel import MelSettings
from nest.tasks.rules import GenerationRules
from nest.tasks.timestamps import Stretch, whole_characters
from nest.tasks.tokens import Tokenizer, byte_of_letter
from nest.tasks.transcribe import Transcriber
from nest.tasks.transcript import Segment, Transcript

from .scripted import END, FIRST_TIME, NO_TIMES, START, ScriptedModel, ScriptedSession, tokens_of

RANKS = FileSpec(
    name="multilingual.tiktoken",
    sha256="b34b360dbb493e781e479794586d661700670d65564001f23024971d1f2fa126",
    size=816730,
)
MIRROR = Mirror(
    package="mlx-whisper==0.4.3",
    sha256="6b82b6597a994643a3e5496c7bc229a672e5ca308458455bfe276e76ae024489",
    size=890544,
    license="MIT",
    files=[
        MirrorFile(
            replaces=RANKS.name,
            member=f"mlx_whisper/assets/{RANKS.name}",
            sha256=str(RANKS.sha256),
            size=int(RANKS.size or 0),
        )
    ],
)
"""A wheel that the published vocabulary is a member of; nothing else of it is taken."""

CHARACTERS = [
    *"aZ9 .,the", "é", "e\u0301", "ß", "Ж", "й", "и\u0306", "ق", "قَ", "א", "אָ", "नि", "த்", "ก็", "น้ำ", "ที่", "ນ້ຳ",
    "မြ", "မ်", "日", "本", "語", "が", "か\u3099", "、", "。", "한", "国", "😀", "👍🏽", "❤\ufe0f", "🇩🇪", "🇫🇷",
    "👩\u200d👩\u200d👧", "1\ufe0f\u20e3", "\U0002000b",
]  # fmt: skip
"""Of many scripts, some of several code points."""
TEXTS = st.lists(st.sampled_from(CHARACTERS), max_size=25)
ANY = st.text(st.characters(codec="utf-8", exclude_characters="\ufffd"), max_size=30)


def _ranks() -> Path:
    from nest.weights.cache import cache_root
    from nest.weights.digests import Verifier
    from nest.weights.mirror import MirrorSource

    root = cache_root()
    source = MirrorSource(MIRROR, {RANKS.name: RANKS}, root, Verifier(root), progress=False)
    return source.local(RANKS) or source.download(RANKS, lambda count, /, *, came=True: None)


@pytest.fixture(scope="session", params=["bytes", pytest.param("multilingual", marks=pytest.mark.weights)])
def vocabulary(
    request: pytest.FixtureRequest, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Tokenizer:
    if request.param == "bytes":
        return tokenizer
    letters = {byte: letter for letter, byte in byte_of_letter().items()}
    lines = (line.split() for line in _ranks().read_text().splitlines())
    vocab = {"".join(letters[b] for b in base64.b64decode(token)): int(rank) for token, rank in lines}
    tables = {
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [],
    }
    path = tmp_path_factory.mktemp("multilingual") / "tokenizer.json"
    path.write_text(json.dumps(tables), encoding="utf-8")
    assert len(vocab) == 50257
    return Tokenizer(path, end=len(vocab), first_timestamp=len(vocab) + 107)


class Spelling:
    """Ways to spell a text with the tokens of a vocabulary: any that go on with its bytes, not the likeliest ones."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokens = {tokenizer.token_bytes(token): token for token in range(tokenizer.end)}

    def __call__(self, text: str, choose: Callable[[list[int]], int]) -> list[int]:
        content, ids = text.encode(), []
        while content:
            ends = [end for end in range(1, min(len(content), 12) + 1) if content[:end] in self.tokens]
            end = choose(ends)
            ids.append(self.tokens[content[:end]])
            content = content[end:]
        return ids


@pytest.fixture(scope="session")
def spelled(vocabulary: Tokenizer) -> Spelling:
    return Spelling(vocabulary)


def chosen(data: st.DataObject) -> Callable[[list[int]], int]:
    return lambda ends: data.draw(st.sampled_from(ends))


@given(text=st.one_of(ANY, TEXTS.map("".join)), data=st.data())
@settings(max_examples=60)
def test_a_text_comes_back_however_it_is_cut_into_tokens(
    vocabulary: Tokenizer, spelled: Spelling, text: str, data: st.DataObject
) -> None:
    ids = spelled(text, chosen(data))
    assert vocabulary.decode(ids) == text
    pieces = vocabulary.pieces(ids)
    assert "".join(piece for piece, _ in pieces) == text
    assert [token for _, run in pieces for token in run] == ids
    for piece, run in pieces:
        assert b"".join(map(vocabulary.token_bytes, run)) == piece.encode()


@given(data=st.data())
@settings(max_examples=60)
def test_tokens_at_random_give_no_replacement_character(vocabulary: Tokenizer, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, vocabulary.end - 1), max_size=30))
    text = vocabulary.decode(ids)
    content = b"".join(map(vocabulary.token_bytes, ids))
    assert text == content.decode("utf-8", errors="ignore")
    assert "\ufffd" not in text or "\ufffd".encode() in content
    shown = ""
    for upto in range(len(ids) + 1):  # as a stream: what was shown stays
        assert vocabulary.decode(ids[:upto]).startswith(shown)
        shown = vocabulary.decode(ids[:upto])


@given(characters=TEXTS, data=st.data())
@settings(max_examples=60)
def test_segments_joined_are_the_text_wherever_times_stand(
    vocabulary: Tokenizer, spelled: Spelling, characters: list[str], data: st.DataObject
) -> None:
    text = "".join(characters)
    ids = spelled(text, chosen(data))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=5)))
    edges = [0, *cuts, len(ids)]
    parts = [tuple(ids[a:b]) for a, b in pairwise(edges)]
    stretches = [Stretch(float(at), at + 1.0, part) for at, part in enumerate(parts) if part]
    found = whole_characters(stretches, vocabulary)
    texts = [vocabulary.decode(stretch.tokens) for stretch in found]
    assert "".join(texts) == text
    assert all(texts)
    assert [token for stretch in found for token in stretch.tokens] == ids
    assert set(accumulate(map(len, texts))) <= set(accumulate(map(len, characters)))
    for stretch, said in zip(found, texts, strict=True):
        assert b"".join(map(vocabulary.token_bytes, stretch.tokens)) == said.encode()


@given(characters=TEXTS, language=st.sampled_from(["zh", "ja", "th", "my", "en"]), data=st.data())
@settings(max_examples=60)
def test_words_never_cut_a_character(
    vocabulary: Tokenizer, spelled: Spelling, characters: list[str], language: str, data: st.DataObject
) -> None:
    text = "".join(characters)
    found = words(vocabulary.pieces(spelled(text, chosen(data))), language)
    assert "".join(group.text for group in found) == text
    edges = set(accumulate(map(len, characters)))
    assert set(accumulate(len(group.text) for group in found)) <= edges


@given(characters=st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=25), width=st.integers(1, 9))
def test_lines_never_cut_a_character(characters: list[str], width: int) -> None:
    text = "".join(characters)
    shown = cues(Transcript(text, (), "ja", 1.0, (Segment(0.0, 1.0, text, ()),)), Lines(width=width))
    lines = [line for cue in shown for line in cue.lines]
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert not any(continues("a", line[0]) for line in lines)
    assert all(len(line) <= width or _one(line) for line in lines)


def _one(line: str) -> bool:
    """Whether it is a single character, which has no smaller part."""
    return all(continues(line[:at], line[at]) for at in range(1, len(line)))


@pytest.mark.parametrize(
    "characters", [["か\u3099", "日"], ["👍🏽", "👩\u200d👩\u200d👧"], ["🇩🇪", "🇫🇷", "🇩🇪"], ["น้ำ", "ที่"]]
)
def test_what_is_one_character(characters: list[str]) -> None:
    text = "".join(characters)
    begins = [at for at in range(len(text)) if not continues(text[:at], text[at])]
    assert begins == [0, *accumulate(map(len, characters[:-1]))]


@pytest.mark.reference
@given(TEXTS.map("".join))
def test_characters_are_those_of_the_standard(text: str) -> None:
    regex: Any = pytest.importorskip("regex")
    clusters = [len(cluster) for cluster in regex.findall(r"\X", text)]
    begins = [at for at in range(len(text)) if not continues(text[:at], text[at])]
    assert begins == [0, *accumulate(clusters)][: len(clusters)]


RULES = GenerationRules(
    start=START, end=END, prompt=(START, NO_TIMES), no_timestamps=NO_TIMES, first_timestamp=FIRST_TIME, positions=160,
    max_tokens=80, alignment_heads=(),
)  # fmt: skip
MEL = MelSettings(bins=4, rate=1000, n_fft=40, hop=10, window_seconds=2.0)


@pytest.mark.parametrize("cut", [range(3, 8), range(4, 40, 5), ()], ids=["near", "often", "nowhere"])
def test_a_transcript_is_whole_where_times_fall_within_characters(tokenizer: Tokenizer, cut: Any) -> None:
    text = " 日本語 がです"  # all of letters: marks alone are no text
    script = list(_timed(tokens_of(text), set(cut)))
    session = ScriptedSession([tuple(script)], vocabulary=FIRST_TIME + 101)
    made = Transcriber(ScriptedModel(session), tokenizer, RULES, MEL)
    samples = np.random.default_rng(0).uniform(-1, 1, 1900).astype(np.float32)
    streamed = [segment.text for segment in made.stream(samples, timestamps=True, temperature=0)]
    assert "".join(streamed) == text
    assert all(streamed)
    assert len(streamed) > 1 or not cut


def _timed(ids: tuple[int, ...], cut: set[int]) -> Iterator[int]:
    """Tokens with a time at both ends, and two in front of each that is cut at."""
    now = 0
    yield FIRST_TIME
    for at, token in enumerate(ids):
        if at in cut:
            now += 5
            yield from (FIRST_TIME + now, FIRST_TIME + now)
        yield token
    yield FIRST_TIME + 95

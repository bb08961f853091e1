"""Recordings of every kind that people have, read whole and block by block."""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.errors import InputError, MissingDependencyError
from nest.tasks import _audio_files, _audio_readers, audio

from .recordings import RATE, contained, encoded, lag, sweep

TONE = sweep(2.0)

CONTAINED = {
    "mp3": ("mp3", "libmp3lame", 44100),
    "m4a": ("ipod", "aac", 44100),
    "aac": ("adts", "aac", 22050),
    "mp4": ("mp4", "aac", 48000),
    "mov": ("mov", "pcm_s16le", 48000),
    "mkv": ("matroska", "libopus", 48000),
    "mkv of flac": ("matroska", "flac", 16000),
    "webm": ("webm", "libopus", 48000),
    "ogg of opus": ("ogg", "libopus", 48000),
    "avi": ("avi", "mp2", 48000),
    "mpegts": ("mpegts", "aac", 48000),
}


def stereo(samples: np.ndarray) -> np.ndarray:
    return np.stack([samples, samples], axis=1)


@pytest.mark.parametrize("kind", CONTAINED)
@pytest.mark.parametrize("channels", [1, 2])
def test_a_container_gives_its_sound_at_its_time(kind: str, channels: int) -> None:
    format, codec, rate = CONTAINED[kind]
    source = sweep(2.0, rate)
    content = contained(source if channels == 1 else stereo(source), rate, format, codec)
    found = audio.load(content)
    # Encoders pad the last frame, and raw aac has no place to say what is padding.
    assert abs(len(found) - len(TONE)) <= (2 * 1024 * RATE // rate if codec == "aac" else 32 * RATE // 1000)
    assert abs(lag(found, TONE)) <= (1024 * RATE // rate + 40 if kind in ("aac", "mpegts", "avi") else 20)
    assert 0.4 < np.quantile(np.abs(found[4000:28000]), 0.95) < 0.6


@pytest.mark.parametrize("format", ["webm", "matroska"])
def test_vorbis_in_a_container(format: str) -> None:
    """FFmpeg's own encoder of it is unfinished, so that its packets come from libsndfile's."""
    import av

    file = io.BytesIO()
    content = encoded(sweep(2.0, 44100), 44100, format="OGG", subtype="VORBIS")
    with av.open(io.BytesIO(content)) as source, av.open(file, "w", format=format) as target:
        track = source.streams.audio[0]
        stream = target.add_stream_from_template(track)
        for packet in source.demux(track):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    found = audio.load(file.getvalue())
    assert abs(len(found) - len(TONE)) <= 2048
    assert abs(lag(found, TONE)) <= 20


@pytest.mark.parametrize("format", ["mp4", "matroska"])
def test_the_sound_of_a_video(format: str) -> None:
    content = contained(sweep(2.0, 48000), 48000, format, "aac", picture=True)
    assert abs(lag(audio.load(content), TONE)) <= 345  # older muxers keep the encoder's delay, 1024 samples


def test_sound_that_begins_after_the_picture_keeps_its_time() -> None:
    content = contained(sweep(1.0, 48000), 48000, "matroska", "aac", picture=True, begins=0.75)
    found = audio.load(content)
    assert not found[:11000].any()
    assert abs(lag(found, sweep(1.0), most=16000) - 12000) <= 340  # what the encoder needs to begin


@pytest.mark.parametrize("kind", ["wav", "flac", "mp3", "webm"])
def test_bytes_files_pipes_and_paths_are_one(kind: str, tmp_path: Path) -> None:
    content = {
        "wav": lambda: encoded(TONE),
        "flac": lambda: encoded(TONE, format="FLAC"),
        "mp3": lambda: contained(TONE, RATE, "mp3", "libmp3lame"),
        "webm": lambda: contained(sweep(2.0, 48000), 48000, "webm", "libopus"),
    }[kind]()
    path = tmp_path / "recording.bin"
    path.write_bytes(content)
    expected = audio.load(path)
    np.testing.assert_array_equal(audio.load(content), expected)
    np.testing.assert_array_equal(audio.load(io.BytesIO(content)), expected)
    read, write = os.pipe()
    with os.fdopen(read, "rb") as reading, os.fdopen(write, "wb") as writing:
        from threading import Thread

        thread = Thread(target=lambda: (writing.write(content), writing.close()))
        thread.start()
        np.testing.assert_array_equal(audio.load(reading), expected)
        thread.join()


def test_a_file_object_is_read_from_where_it_stands() -> None:
    file = io.BytesIO(b"before" + encoded(TONE))
    file.seek(6)
    np.testing.assert_allclose(audio.load(file), TONE, atol=1e-4)


def test_a_long_pipe_goes_to_a_temporary_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_audio_files, "IN_MEMORY", 1000)
    np.testing.assert_allclose(audio.load(io.BytesIO(encoded(TONE))), TONE, atol=1e-4)


SOURCES: dict[str, Callable[[np.ndarray, int], Any]] = {
    "array": lambda samples, rate: samples,
    "wav": lambda samples, rate: encoded(samples, rate, subtype="FLOAT"),
    "flac": lambda samples, rate: encoded(samples, rate, format="FLAC", subtype="PCM_24"),
    "mkv": lambda samples, rate: contained(samples, rate, "matroska", "flac"),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("rate", [16000, 44100])
def test_blocks_joined_are_the_recording(kind: str, rate: int) -> None:
    source = SOURCES[kind](sweep(3.3, rate), rate)
    given = rate if kind == "array" else None
    whole = audio.load(source, given)
    with audio.stream(source, given, block=1.0) as stream:
        assert stream.seconds == pytest.approx(3.3, abs=1e-3)
        blocks = list(stream)
    assert [round(len(block) / RATE, 1) for block in blocks[1:-1]] == [1.0] * (len(blocks) - 2)
    assert len(blocks) == 4
    np.testing.assert_allclose(np.concatenate(blocks), whole, atol=1e-5)
    (one,) = audio.stream(source, given)
    np.testing.assert_array_equal(one, whole)


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize(
    ("start", "duration"), [(0.5, 1.0), (1.5, None), (0.0, 0.25), (1.9, 5.0), (0.0, None)]
)
def test_a_part_of_a_recording(kind: str, start: float, duration: float | None) -> None:
    end = None if duration is None else round((start + duration) * RATE)
    expected = TONE[round(start * RATE) : end]
    source = SOURCES[kind](TONE, RATE)
    found = audio.load(source, start=start, duration=duration)
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    with audio.stream(source, start=start, duration=duration, block=0.1) as stream:
        assert stream.seconds == pytest.approx(len(expected) / RATE)
        np.testing.assert_array_equal(np.concatenate(list(stream)), found)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_part_past_the_end(kind: str) -> None:
    source = SOURCES[kind](TONE, RATE)
    with pytest.raises(InputError, match=r"start=7 is past the end of .* \(2\.00 s\)\."):
        audio.load(source, start=7)
    with pytest.raises(InputError, match=r"start=7 is past the end"):
        list(audio.stream(source, start=7))
    for start in (1e18, 1.7e308):
        with pytest.raises(InputError, match=r"is past the end of"):
            audio.load(source, start=start, duration=start)
    assert len(audio.load(source, duration=1.7e308)) == len(audio.load(source))
    with pytest.raises(InputError, match="is no time in a recording"):
        audio.load(source, start=10**400)


@pytest.mark.parametrize("kind", ["wav", "flac", "mkv"])
def test_channels_by_themselves(kind: str) -> None:
    other = sweep(2.0)[::-1].copy()
    source = SOURCES[kind](np.stack([TONE, other], axis=1), RATE)
    found = audio.load(source, channels="split")
    assert found.shape == (2, 32000)
    np.testing.assert_allclose(found, [TONE, other], atol=1e-4)
    np.testing.assert_allclose(audio.load(source), (TONE + other) / 2, atol=1e-4)
    blocks = list(audio.stream(source, channels="split", block=0.5))
    np.testing.assert_array_equal(np.concatenate(blocks, axis=1), found)


def test_one_channel_by_itself_is_one_row() -> None:
    assert audio.load(TONE, channels="split").shape == (1, 32000)
    assert audio.load(sweep(2.0, 8000), 8000, channels="split").shape == (1, 32000)


@pytest.mark.parametrize("block", [0.3, 30.0])
def test_opposite_channels_do_not_cancel(block: float) -> None:
    opposite = contained(np.stack([TONE, -TONE], axis=1), RATE, "matroska", "flac")
    np.testing.assert_allclose(audio.load(opposite), TONE, atol=1e-4)
    np.testing.assert_allclose(np.concatenate(list(audio.stream(opposite, block=block))), TONE, atol=1e-4)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"start": -1}, "start=-1 is no time"),
        ({"start": float("nan")}, "start=nan is no time"),
        ({"start": "3"}, "start='3' is no time"),
        ({"duration": 0}, "duration=0 is no length"),
        ({"duration": float("inf")}, "duration=inf is no length"),
        ({"channels": "left"}, "channels='left' is unknown; expected 'mix' or 'split'"),
    ],
)
def test_wishes_that_mean_nothing(wish: dict[str, Any], said: str) -> None:
    for read in (audio.load, audio.stream):
        with pytest.raises(InputError, match=said):
            read(TONE, **wish)


NOISE = np.random.default_rng(3).bytes(30000)


def damaged(content: bytes, tail: int, *, cut: bool = False) -> bytes:
    return content[:-tail] + (b"" if cut else NOISE[:tail])


DAMAGED = {
    "mp3 with a tail of noise": lambda t: damaged(contained(t, 44100, "mp3", "libmp3lame"), 2000),
    "flac with a tail of noise": lambda t: damaged(encoded(t, 44100, format="FLAC"), 20000),
    "flac that was cut": lambda t: damaged(encoded(t, 44100, format="FLAC"), 20000, cut=True),
    "wav that was cut": lambda t: damaged(encoded(t, 44100), 40000, cut=True),
    "webm that was cut": lambda t: damaged(contained(t, 48000, "webm", "libopus"), 8000, cut=True),
    "mkv with a tail of noise": lambda t: damaged(contained(t, 48000, "matroska", "aac"), 10000),
    "aac with a tail of noise": lambda t: damaged(contained(t, 44100, "adts", "aac"), 4000),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_tail_gives_what_is_before_it(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    rate = 48000 if "webm" in kind or "mkv" in kind else 44100
    content = DAMAGED[kind](sweep(4.0, rate))
    with pytest.warns(audio.DamagedAudioWarning, match=r"the bytes given is damaged"):
        found = audio.load(content)
    assert 2.4 * RATE < len(found) < 4.1 * RATE
    expected = sweep(4.0)[: 2 * RATE]
    aligned = lag(found[: 2 * RATE], expected)
    assert abs(aligned) <= 400
    off = np.abs(found[8000 + aligned : 30000] - expected[8000 : 30000 - aligned])
    assert np.quantile(off, 0.95) < 0.2
    with pytest.warns(audio.DamagedAudioWarning):
        assert sum(map(len, audio.stream(content, block=0.5))) == pytest.approx(len(found), abs=2)
    assert capfd.readouterr() == ("", "")


def test_a_wav_that_was_written_to_a_pipe_is_whole() -> None:
    content = bytearray(encoded(TONE))
    at = content.index(b"data") + 4
    for size in (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f"):
        content[at : at + 4] = size
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(audio.load(bytes(content)), TONE, atol=1e-4)


def test_a_video_without_sound() -> None:
    content = contained(TONE, RATE, "mp4", "aac", picture=True, sound=False)
    with pytest.raises(
        InputError, match=r"There is no audio track in the bytes given: it has video \(mpeg4\)\."
    ):
        audio.load(content)


def test_an_mp4_whose_index_is_cut_off() -> None:
    content = contained(sweep(2.0, 48000), 48000, "mp4", "aac")[:-4000]
    with pytest.raises(InputError, match=r"No audio could be decoded from the bytes given .* or incomplete"):
        audio.load(content)


def test_noise_and_pictures_are_no_recordings(capfd: pytest.CaptureFixture[str]) -> None:
    pil = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pil.new("RGB", (8, 8)).save(file, "PNG")
    for content in (NOISE, file.getvalue(), b"RIFF" + NOISE):
        with pytest.raises(InputError, match="No audio could be decoded from the bytes given"):
            audio.load(content)
    assert capfd.readouterr() == ("", "")


def test_a_playlist_opens_nothing(tmp_path: Path) -> None:
    other = tmp_path / "other.ts"
    other.write_bytes(contained(sweep(1.0, 48000), 48000, "mpegts", "aac"))
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{other}\n#EXT-X-ENDLIST\n#".encode() + b"\xff"
    with pytest.raises(InputError, match="No audio could be decoded"):
        audio.load(playlist)


def test_without_libav_a_message_says_what_it_would_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_audio_readers, "find_spec", lambda name: None)
    content = contained(sweep(1.0, 48000), 48000, "mp4", "aac")
    with pytest.raises(InputError, match=r"pip install 'nest-zoo\[transcribe\]' adds m4a, aac"):
        audio.load(content)
    assert len(audio.load(contained(TONE, 44100, "mp3", "libmp3lame"))) > 10000


def test_a_libav_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.setattr(_audio_readers, "find_spec", lambda name: object())
    with pytest.raises(MissingDependencyError, match=r"'av' is needed to read m4a.*nest-zoo\[transcribe\]"):
        audio.load(NOISE)


def test_a_stream_reads_no_further_than_it_is_asked() -> None:
    class Counting(_audio_readers.ArrayReader):
        def blocks(self, first: int) -> Any:
            for at in range(10):
                asked.append(at)
                yield self._frames[at * 1600 : (at + 1) * 1600]

    asked: list[int] = []
    stream = audio.stream(TONE, block=0.1)
    stream.reader = Counting(TONE, RATE)
    stream._blocks = stream.read()
    next(stream)
    assert asked == [0, 1]
    stream.close()
    with pytest.raises(StopIteration):
        next(stream)


def test_what_is_held_does_not_grow_with_the_recording() -> None:
    """Blocks of a file that is longer than what is held: no window before the one that is heard is kept."""
    content = encoded(np.tile(TONE, 300), format="FLAC")  # ten minutes
    tracemalloc.start()
    with audio.stream(content) as stream:
        total = sum(map(len, stream))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 300 * len(TONE)
    assert peak < len(content) + 16 * 2**20 < total * 4

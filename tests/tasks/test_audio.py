from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile

from nest.errors import InputError, MissingDependencyError
from nest.tasks import audio

SECOND = np.sin(np.arange(16000) * 2 * np.pi * 440 / 16000).astype(np.float32) * 0.5


def encoded(samples: np.ndarray, rate: int = 16000, **options: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, **{"format": "WAV", **options})
    return file.getvalue()


def test_a_clip_is_the_golden_audio(clips: Path, golden: dict[str, np.ndarray]) -> None:
    samples = audio.load(clips / "jfk.wav")
    assert samples.dtype == np.float32
    np.testing.assert_array_equal(samples, golden["audio"])


def test_path_text_bytes_view_and_file_object_are_one(clips: Path) -> None:
    path = clips / "librivox_0930.wav"
    expected = audio.load(path)
    content = path.read_bytes()
    for source in (str(path), content, bytearray(content), memoryview(content), io.BytesIO(content)):
        np.testing.assert_array_equal(audio.load(source), expected)
    with path.open("rb") as file:
        np.testing.assert_array_equal(audio.load(file), expected)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no pipes with names")
def test_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(encoded(SECOND),))
    writer.start()
    samples = audio.load(pipe)
    writer.join()
    assert len(samples) == 16000


@pytest.mark.skipif(os.name != "posix" or sys.platform == "darwin", reason="names of bytes are Linux's")
def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.wav")
    path.write_bytes(encoded(SECOND))
    assert len(audio.load(path)) == 16000


@pytest.mark.parametrize(
    ("format", "subtype", "tolerance"),
    [
        ("WAV", "PCM_16", 1e-4),
        ("WAV", "PCM_U8", 1e-2),
        ("WAV", "FLOAT", 0),
        ("FLAC", "PCM_24", 1e-6),
        ("OGG", "VORBIS", 0.1),
        ("MP3", "MPEG_LAYER_III", 0.1),
    ],
)
def test_formats(tmp_path: Path, format: str, subtype: str, tolerance: float) -> None:
    path = tmp_path / "recording.bin"  # the content decides, not the name
    path.write_bytes(encoded(SECOND, format=format, subtype=subtype))
    samples = audio.load(path)
    assert abs(len(samples) - 16000) <= 1152  # one mp3 frame
    inner = slice(2000, 12000)
    assert np.abs(samples[inner]).max() == pytest.approx(0.5, abs=max(tolerance, 1e-6))
    if format in ("WAV", "FLAC"):
        np.testing.assert_allclose(samples, SECOND, atol=tolerance)


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000, 96000])
def test_any_rate_becomes_the_target(rate: int) -> None:
    times = np.arange(rate * 2) / rate
    source = np.sin(2 * np.pi * 440 * times).astype(np.float64)
    samples = audio.load(source, rate)
    assert abs(len(samples) - 32000) <= 1
    expected = np.sin(2 * np.pi * 440 * np.arange(32000) / 16000)
    np.testing.assert_allclose(samples[1000:31000], expected[1000:31000], atol=1e-3)
    np.testing.assert_allclose(audio.load(encoded(source, rate, subtype="DOUBLE")), samples, atol=1e-6)


def test_a_stereo_file_is_mixed_without_cancelling() -> None:
    opposite = encoded(np.column_stack([SECOND, -SECOND]), subtype="FLOAT")
    np.testing.assert_array_equal(audio.load(opposite), SECOND)


def test_an_array_of_the_target_rate_is_not_resampled() -> None:
    np.testing.assert_array_equal(audio.load(SECOND), SECOND)
    np.testing.assert_array_equal(audio.load(SECOND, 8000, target=8000), SECOND)


def test_an_object_that_converts_to_an_array_is_an_array() -> None:
    class Tensor:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return SECOND

    np.testing.assert_array_equal(audio.load(Tensor()), SECOND)


@pytest.mark.parametrize("rate", [8000, 48000])
def test_one_sample_is_enough(rate: int) -> None:
    samples = audio.load(np.array([0.5], dtype=np.float32), rate)
    assert len(samples) >= 1
    assert np.isfinite(samples).all()


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"There is no file '.*nowhere\.wav'\. Check the path; the working directory"
    ):
        audio.load(tmp_path / "nowhere.wav")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a directory\. Pass the path of one audio file"):
        audio.load(tmp_path)


def test_standard_input_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "nothing").touch()
    with (
        (tmp_path / "nothing").open("rb") as file,
        pytest.raises(InputError, match=r"in the file object '.*nothing'"),
    ):
        audio.load(file)
    piped = io.BytesIO()
    piped.name = "<stdin>"  # as that of `sys.stdin.buffer`
    with pytest.raises(InputError, match="There is no audio in standard input: it is empty"):
        audio.load(piped)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_without_an_end(device: str) -> None:
    with pytest.raises(InputError, match=rf"'{device}' is a device\. Pass the path of one audio file"):
        audio.load(device)


def test_an_unreadable_file(tmp_path: Path) -> None:
    loop = tmp_path / "loop.wav"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match=r"The audio file '.*loop\.wav' cannot be read: "):
        audio.load(loop)


@pytest.mark.parametrize("name", ["notes.txt", "notes.wav", "notes.mp3", "notes.raw"])
def test_text_is_not_audio(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text("Das ist eine Seite Notizen, für später, und keine Aufnahme. " * 100, encoding="utf-8")
    with pytest.raises(
        InputError,
        match=r"No audio could be decoded from '.*' \(6200 bytes\): it holds text\. Expected a wav",
    ):
        audio.load(path)
    assert capfd.readouterr() == ("", "")


def test_text_is_not_audio_in_memory_either() -> None:
    with pytest.raises(InputError, match="No audio could be decoded from the bytes given"):
        audio.load(b"no recording" * 100)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").touch()
    with pytest.raises(InputError, match=r"'.*empty\.wav': it is empty \(0 bytes\)"):
        audio.load(tmp_path / "empty.wav")
    with pytest.raises(InputError, match=r"the bytes given: it is empty"):
        audio.load(b"")


def test_a_file_without_samples() -> None:
    with pytest.raises(InputError, match="its header is valid and it holds no samples"):
        audio.load(encoded(np.zeros(0, dtype=np.float32)))


def test_a_file_whose_samples_are_too_large() -> None:
    samples = SECOND.astype(np.float64)
    samples[77] = 1e300
    with pytest.raises(InputError, match=r"of the bytes given are too large: 1 of .* at index 77\."):
        audio.load(encoded(samples, subtype="DOUBLE"))


def test_a_file_with_nan() -> None:
    samples = SECOND.copy()
    samples[77] = np.nan
    with pytest.raises(
        InputError, match=r"of the bytes given are not all finite: 1 of 16000 .* at index 77\."
    ):
        audio.load(encoded(samples, subtype="FLOAT"))


def test_a_text_mode_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"open in text mode\. Open it with mode 'rb'"):
        audio.load(io.StringIO("text"))  # type: ignore[arg-type]


@pytest.mark.parametrize("source", [None, 3, [0.1, 0.2], {"array": 1}])
def test_another_kind_of_source(source: object) -> None:
    with pytest.raises(InputError, match=f"Audio cannot be read from a {type(source).__name__}"):
        audio.load(source)  # type: ignore[arg-type]


def test_a_rate_that_contradicts_the_file(clips: Path) -> None:
    path = clips / "librivox_0930.wav"
    assert len(audio.load(path, 16000)) == len(audio.load(path))
    with pytest.raises(InputError, match=r"rate=44100 was given for .* whose own header says 16000"):
        audio.load(path, 44100)


@pytest.mark.parametrize("rate", [0, -16000, True, 999, 10_000_001, "16000", 16000.5])
def test_a_rate_that_is_none(rate: int) -> None:
    message = rf"The sample rate rate={rate!r} is no integer from 1000 to 10000000 samples a second\."
    with pytest.raises(InputError, match=message):
        audio.load(SECOND, rate)


def test_a_header_with_a_rate_that_makes_hours_of_a_few_bytes() -> None:
    with pytest.raises(InputError, match="The sample rate of the bytes given, 8, is no integer from 1000"):
        audio.load(encoded(SECOND, 8, format="WAV"))


@pytest.mark.parametrize("module", ["soundfile", "soxr"])
def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(
        MissingDependencyError, match=rf"'{module}' is needed .*pip install 'nest-zoo\[audio\]'"
    ):
        audio.load(
            encoded(SECOND) if module == "soundfile" else SECOND, None if module == "soundfile" else 8000
        )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "The path of the audio file is empty."),
        ("a\0b", "The audio file 'a?b' cannot be read: embedded null byte."),
        ("a" * 5000, "aaa...' cannot be read: File name too long."),
    ],
)
def test_what_is_no_path(path: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        audio.load(path)
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize("how", ["requires_grad_", "bfloat16", "to_sparse"])
def test_a_tensor_that_gives_no_array(how: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"The array given cannot be read as numbers: .+[^.]\.$"):
        audio.load(getattr(torch.from_numpy(SECOND.copy()), how)())

"""Recordings that tests encode themselves, with the libraries that read them or others."""

from __future__ import annotations

import io

import numpy as np
import soundfile

RATE = 16000


def sweep(seconds: float, rate: int = RATE) -> np.ndarray:
    """A tone that rises from 200 to 2000 Hz, so that every moment sounds different: float32 [samples]."""
    times = np.arange(round(seconds * rate)) / rate
    phase = 2 * np.pi * (200 * times + 900 * times**2 / max(seconds, 1e-9))
    return (0.5 * np.sin(phase)).astype(np.float32)


def encoded(samples: np.ndarray, rate: int = RATE, **options: str) -> bytes:
    """By libsndfile: samples [n] or [n, channels]."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, **{"format": "WAV", **options})
    return file.getvalue()


def contained(
    samples: np.ndarray,
    rate: int,
    format: str,
    codec: str,
    *,
    picture: bool = False,
    sound: bool = True,
    begins: float = 0.0,
) -> bytes:
    """By FFmpeg's libraries: samples [n] or [n, channels]; `begins` is when the sound does, in seconds."""
    import av

    frames = samples[:, None] if samples.ndim == 1 else samples
    layout = {1: "mono", 2: "stereo"}[frames.shape[1]]
    file = io.BytesIO()
    with av.open(file, "w", format=format) as container:
        video = container.add_stream("mpeg4", rate=10, width=32, height=32) if picture else None
        audio = container.add_stream(codec, rate=rate, layout=layout) if sound else None
        if video is not None:
            for index in range(20):
                image = av.VideoFrame.from_ndarray(
                    np.full((32, 32, 3), index, np.uint8), format="rgb24"
                ).reformat(format="yuv420p")
                image.pts = index
                container.mux(video.encode(image))
            container.mux(video.encode(None))
        if audio is not None:
            planes = np.ascontiguousarray(frames.T, np.float32)
            frame = av.AudioFrame.from_ndarray(planes, format="fltp", layout=layout)
            frame.sample_rate = rate
            frame.pts = round(begins * rate)
            container.mux(audio.encode(frame))
            container.mux(audio.encode(None))
    return file.getvalue()


def lag(found: np.ndarray, expected: np.ndarray, most: int = 4000) -> int:
    """By how many samples `found` comes later than `expected`."""
    size = 1 << (len(found) + len(expected)).bit_length()
    spectrum = np.fft.rfft(found, size) * np.fft.rfft(expected, size).conj()
    likeness = np.fft.irfft(spectrum, size)
    best = int(np.argmax(np.concatenate([likeness[-most:], likeness[: most + 1]])))
    return best - most

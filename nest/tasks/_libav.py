"""Decode by FFmpeg's libraries: mp3, m4a, and the audio tracks of mp4, mkv and webm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from nest._optional import need
from nest.errors import InputError
from nest.tasks._audio_files import EncodedFile
from nest.tasks._audio_readers import Frames, warn_damaged
from nest.tasks._samples import MAX_CHANNELS, refuse_infinite

__all__ = ["LibavReader"]

# Playlists and scripts of the library would open other files and addresses: only containers of their own are read.
_FORMATS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dts,eac3,flac,flv,loas,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpc,mpc8,"
    "mpeg,mpegts,mxf,nut,ogg,oma,rm,tta,voc,w64,wav,wv"
)

GAP_SECONDS = 0.1
"""Timestamps that leave more than this between two frames mean silence, which is filled in; less is rounding."""
LONGEST_GAP_SECONDS = 3600.0
"""Timestamps that leave more than this are not believed."""


class LibavReader:
    """The frames of one audio track, on the time line of its file; see `Reader`.

    Times count from the beginning of the file: where the track begins after the picture, or was paused, there is
    silence.
    """

    def __init__(self, encoded: EncodedFile, closing: ExitStack) -> None:
        purpose = "read m4a, mp4, mkv, webm and other recordings that are not plain"
        self._av: Any = need("av", extra="transcribe", purpose=purpose)
        self._encoded = encoded
        self.name = encoded.name
        with self._open() as container:
            track = self._track(container)
            self.rate = int(track.rate)
            self.channels = int(track.channels)
            self._said = _said_seconds(container, track)
            length = container.duration
            self.seconds: float | None = self._said or (length / self._av.time_base if length else None)
            if track.channels > MAX_CHANNELS:
                raise InputError(
                    f"{self.name} has {track.channels} channels; at most {MAX_CHANNELS} are expected."
                )

    def _open(self) -> Any:
        self._encoded.file.seek(0)
        try:
            return self._av.open(
                self._encoded.file,
                "r",
                metadata_errors="replace",
                container_options={"format_whitelist": _FORMATS},
            )
        except (self._av.FFmpegError, ValueError) as error:
            raise InputError(
                f"No audio could be decoded from {self.name} ({self._encoded.size} bytes): it is of no form that is "
                f"known, or is damaged at its beginning, or incomplete ({getattr(error, 'strerror', None) or error}). "
                "Expected a wav, flac, mp3, ogg, m4a, mp4, mkv or webm file."
            ) from error

    def _track(self, container: Any) -> Any:
        tracks = [
            track for track in container.streams.audio if track.codec_context is not None and track.rate
        ]
        if tracks:
            best = container.streams.best("audio")
            return best if best in tracks else tracks[0]
        kinds = [
            f"{track.type} ({track.codec_context.name if track.codec_context else 'of an unknown codec'})"
            for track in container.streams
        ]
        raise InputError(
            f"There is no audio track in {self.name}: it has {', '.join(kinds) or 'no tracks at all'}."
        )

    def blocks(self, first: int) -> Iterator[Frames]:
        """See `Reader.blocks`; warns of what could not be decoded, and goes on after it."""
        # What comes before is decoded too: seeking by an estimate, as in mp3, would shift every time.
        at = 0
        for frames in self._decoded():
            if at + len(frames) > first:
                yield frames[max(first - at, 0) :]
            at += len(frames)

    def _decoded(self) -> Iterator[Frames]:
        with self._open() as container:
            line = _TimeLine(self._av, self._track(container), container, self.rate)
            count = 0
            for frames in line.frames():
                refuse_infinite(frames, self.name, count)
                yield frames
                count += len(frames)
        self._judge(count, line)

    def _judge(self, count: int, line: _TimeLine) -> None:
        seconds = count / self.rate
        short = self._said is not None and seconds < self._said - max(0.5, 0.01 * self._said)
        if count == 0:
            raise InputError(
                f"There is no audio in {self.name}: "
                + (
                    f"its {line.damaged} packets cannot be decoded."
                    if line.damaged
                    else "its track is empty."
                )
            )
        if line.damaged:
            warn_damaged(
                f"{self.name} is damaged: {line.damaged} of its packets cannot be decoded, the first at "
                f"{line.first_damage:.1f} s. The {seconds:.1f} s that can be are used."
            )
        elif short:
            warn_damaged(
                f"{self.name} is damaged or incomplete: its header says {self._said:.1f} s. The {seconds:.1f} s that "
                "are there are used."
            )


def _said_seconds(container: Any, track: Any) -> float | None:
    """How long a file says that its track is, where that is no estimate."""
    if not {"mov", "matroska", "flac", "wav"} & set(container.format.name.split(",")):
        return None
    if track.duration is not None:
        return float(track.duration * track.time_base)
    if container.duration is not None and len(container.streams) == 1:
        return float(container.duration) / 1e6
    return None


class _TimeLine:
    """Decodes a track, fills its gaps, and counts what is damaged."""

    def __init__(self, library: Any, track: Any, container: Any, rate: int) -> None:
        self.damaged = 0
        self.first_damage = 0.0
        self._av = library
        self._track = track
        self._container = container
        self._rate = rate
        self._origin = (container.start_time or 0) / library.time_base
        self._at = 0
        self._shift = 0
        self._layout: Any = None
        self._form: tuple[Any, ...] | None = None
        self._converter: Any = None

    def frames(self) -> Iterator[Frames]:
        for frame in self._raw():
            gap = self._gap(frame)
            while gap > 0:
                silence = np.zeros((min(gap, self._rate), len(self._layout.channels)), np.float32)
                self._at += len(silence)
                gap -= len(silence)
                yield silence
            for converted in self._converter.resample(frame):
                block = np.ascontiguousarray(converted.to_ndarray().T, np.float32)
                self._at += len(block)
                if len(block):
                    yield block

    def _raw(self) -> Iterator[Any]:
        """Frames as they are decoded, the converter being set for each."""
        packets = self._container.demux(self._track)
        while True:
            try:
                packet = next(packets, None)
                decoded = packet.decode() if packet is not None else None
            except self._av.FFmpegError:
                self.first_damage = self.first_damage if self.damaged else self._at / self._rate
                self.damaged += 1
                continue
            if decoded is None:
                return
            for frame in decoded:
                if frame.samples:
                    self._set(frame)
                    yield frame

    def _set(self, frame: Any) -> None:
        form = (frame.format.name, frame.layout.name, frame.sample_rate)
        if form != self._form:
            self._layout = self._layout or frame.layout
            self._converter = self._av.AudioResampler(format="fltp", layout=self._layout, rate=self._rate)
            self._form = form

    def _gap(self, frame: Any) -> int:
        """How many samples of silence come before a frame."""
        if frame.pts is None or frame.time_base is None:
            return 0
        due = round((float(frame.pts * frame.time_base) - self._origin) * self._rate)
        gap = due - self._at - self._shift
        if gap > LONGEST_GAP_SECONDS * self._rate:
            self._shift += gap
        return gap if GAP_SECONDS * self._rate < gap <= LONGEST_GAP_SECONDS * self._rate else 0

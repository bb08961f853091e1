"""Whether somebody speaks: Silero's detector, run by ONNX Runtime over a recording as it is read.

Source: Silero Team, 2021, https://github.com/snakers4/silero-vad (MIT). The file is a member of a pinned wheel, of
which nothing else is taken: the package itself would bring PyTorch.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest._optional import need
from nest.errors import FetchError
from nest.registry import FileSpec, Mirror, MirrorFile

__all__ = ["CHUNK", "RATE", "Voice", "VoiceDetector", "detector", "detector_file"]

RATE = 16000
CHUNK = 512
"""Samples of which the detector says one probability: 32 ms."""
_CONTEXT = 64

FILE = FileSpec(
    name="silero_vad.onnx",
    sha256="1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
    size=2327524,
)
MIRROR = Mirror(
    package="silero-vad==6.2.3",
    sha256="7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
    size=11317527,
    license="MIT",
    files=[
        MirrorFile(
            replaces=FILE.name,
            member=f"silero_vad/data/{FILE.name}",
            sha256=FILE.sha256 or "",
            size=FILE.size or 0,
        )
    ],
)


class VoiceDetector:
    """The network; threads may share it, as each recording has a state of its own."""

    def __init__(self, path: Path) -> None:
        runtime: Any = need("onnxruntime", extra="transcribe", purpose="tell speech from silence and noise")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # a chunk is too little to share
        self._session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def start(self) -> Voice:
        """Begin a recording."""
        return Voice(self._session)


class Voice:
    """How likely it is, in each 32 ms of a recording at 16 kHz, that somebody speaks."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._state = np.zeros((2, 1, 128), np.float32)
        self._context = np.zeros(_CONTEXT, np.float32)
        self._rest = np.zeros(0, np.float32)

    def hear(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """The probabilities of the chunks that are full with these samples, which go on from the last ones."""
        held = np.concatenate([self._rest, samples])
        count = len(held) // CHUNK
        self._rest = held[count * CHUNK :]
        return np.array([self._chunk(held[i * CHUNK : (i + 1) * CHUNK]) for i in range(count)], np.float32)

    def finish(self) -> NDArray[np.float32]:
        """The probability of what is left, as if silence followed."""
        return self.hear(np.zeros(CHUNK - len(self._rest), np.float32)) if len(self._rest) else self._rest

    def _chunk(self, chunk: NDArray[np.float32]) -> float:
        given = np.concatenate([self._context, chunk])[None]
        self._context = chunk[-_CONTEXT:]
        inputs = {"input": given, "state": self._state, "sr": np.array(RATE, np.int64)}
        found, self._state = self._session.run(None, inputs)
        return float(found[0, 0])


@cache
def detector(*, local_files_only: bool = False) -> VoiceDetector:
    """The detector, its file fetched where it is not here: see `detector_file`."""
    return VoiceDetector(detector_file(local_files_only=local_files_only))


def detector_file(*, local_files_only: bool = False) -> Path:
    """The pinned file of the detector, from nest's cache or out of its wheel (11 MB).

    Raises:
        FetchError: it is not here, and cannot be had or may not be fetched.
        DigestError: what came is not what is pinned.
    """
    from nest.errors import DigestError
    from nest.weights.cache import cache_root
    from nest.weights.digests import Verifier
    from nest.weights.hub import hub_offline
    from nest.weights.mirror import MirrorSource
    from nest.weights.site import policy
    from nest.weights.source import SourceError

    root, rules = cache_root(), policy()
    source = MirrorSource(MIRROR, {FILE.name: FILE}, root, Verifier(root), progress=False)
    try:
        if (path := source.local(FILE)) is not None:
            return path
    except DigestError:
        pass  # it is made again
    why = ""
    if local_files_only or hub_offline():
        why = "the network is not to be asked (--offline, local_files_only or HF_HUB_OFFLINE)"
    elif "package-index" not in rules.sources:
        why = f"the Python package index {rules.why_not('package-index')}"
    elif (refusal := rules.refuses_license(MIRROR.license)) is not None:
        why = f"its licence, {MIRROR.license}, is not allowed by {refusal[0]}"
    if why:
        raise FetchError(
            f"'{FILE.name}', which tells speech from silence, is not here, and {why}. Transcribe once where it may be "
            "fetched, or leave voice activity out: --no-vad, or vad=False."
        )
    try:
        return source.download(FILE, lambda count, /, *, came=True: None)
    except SourceError as error:
        raise FetchError(f"'{FILE.name}' cannot be had from {source}: {error}") from error

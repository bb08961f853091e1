"""Multilingual models with random weights beside the reference library's `generate`: languages, prompts and tokens.

How well published weights transcribe is not tested: none of a multilingual model can be had here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest

from nest.registry import find
from nest.tasks import _sequential as sequential
from nest.tasks import transcribe, transcript_stream
from nest.tasks.decode import decode, language_probabilities
from nest.tasks.rules import after_previous, prompt_ids, timed_prompt_ids
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Transcriber
from nest.tasks.transcript import Transcript

from .multilingual import FORMS, MAX_TOKENS, Heard, features, library, recording, rules, transcriber

pytestmark = pytest.mark.reference

BACKENDS = ("torch", "jax", "nnx", "onnx")
BOTH = [(FORMS[0], backend) for backend in BACKENDS] + [(FORMS[1], backend) for backend in ("torch", "onnx")]
"""The two forms differ in ids and shapes alone, which need no second compilation by XLA."""
SECONDS = 70.0
ROWS = 6


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices this small only lose by being shared among threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Pipelines:
    folder = tmp_path_factory.mktemp("tokenizers")
    return cache(lambda form, backend: transcriber(form, backend, folder))


Pipelines = Callable[[str, str], Transcriber]


@pytest.fixture(autouse=True)
def heard(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    form = request.node.callspec.params.get("form", FORMS[0])
    for module in (sequential, transcript_stream, transcribe):
        monkeypatch.setattr(module, "log_mel", Heard(form, SECONDS))
    # The library decodes what is left however short it is.
    monkeypatch.setattr(sequential, "REMAINDER_SECONDS", 0.0)


def mels(form: str, rows: int = ROWS) -> Any:
    return np.concatenate([features(form, number, SECONDS)[:, :, :3000] for number in range(rows)])


def generated(form: str, mel: Any, **options: Any) -> Any:
    """What the library makes of spectrograms, and the ids that it began each window with."""
    import torch

    model, begun = library(form), []
    forward = model.model.decoder.forward

    def seen(*given: Any, **named: Any) -> Any:
        ids = named["input_ids"]
        if ids.shape[1] > 1:
            begun.append(ids.tolist())
        return forward(*given, **named)

    model.model.decoder.forward = seen
    try:
        made = model.generate(torch.from_numpy(mel), **options)
    finally:
        del model.model.decoder.forward
    return made, begun


@pytest.mark.parametrize(
    "name", ["tiny", "base", "small", "medium", "large-v2", "large-v3", "large-v3-turbo"]
)
def test_ids_are_counted_as_the_vocabulary_does(name: str) -> None:
    """Texts, the end, the start, languages in the library's order, tasks, marks, times."""
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    said, entry = rules(f"whisper-{name}"), find(f"whisper-{name}")
    count = 100 if "v3" in name else 99
    assert said.languages == {code: 50259 + at for at, code in enumerate(list(LANGUAGES)[:count])}
    after = 50259 + count
    tasks = {"translate": after, "transcribe": after + 1}
    assert said.tasks == ({"transcribe": after + 1} if "turbo" in name else tasks)
    assert (said.end, said.start) == (50257, 50258)
    assert (said.start_of_previous, said.no_speech, said.no_timestamps) == (after + 3, after + 4, after + 5)
    assert said.first_timestamp == after + 6
    assert entry.generics["Vocab"] == said.first_timestamp + 1501


@pytest.mark.parametrize(("form", "backend"), BOTH)
def test_languages_are_as_likely_as_the_library_has_them(
    pipelines: Pipelines, form: str, backend: str
) -> None:
    import torch

    model, said = library(form), rules(form)
    heard = torch.from_numpy(mels(form))
    with torch.no_grad():
        logits = model(heard, decoder_input_ids=torch.full((ROWS, 1), said.start)).logits[:, 0].double()
    ids = list(said.languages.values())
    wanted = logits[:, ids].softmax(-1).numpy()
    assert len(ids) == (99 if form == "whisper-tiny" else 100)
    made = pipelines(form, backend)
    found = [made.detect_language(recording(number, SECONDS)) for number in range(ROWS)]
    for row, probabilities in zip(found, wanted, strict=True):
        np.testing.assert_allclose([row[code] for code in said.languages], probabilities, atol=1e-5)
    chosen = [said.languages[next(iter(row))] for row in found]
    assert chosen == model.detect_language(heard).tolist()
    assert len(set(chosen)) > 2


@pytest.mark.parametrize(
    ("language", "task", "timed"),
    [
        ("fr", "transcribe", False),
        ("ja", "translate", False),
        ("th", "translate", True),
        ("haw", "transcribe", True),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_prompts_are_those_of_the_library(form: str, language: str, task: str, timed: bool) -> None:
    import torch

    said, text = rules(form), [10, 20, 30]
    made = timed_prompt_ids if timed else prompt_ids
    wanted = made(said, language, task)
    options: dict[str, Any] = {
        "language": language,
        "task": task,
        "return_timestamps": timed,
        "max_new_tokens": 1,
    }
    mel = mels(form, 1)
    _, (begun, *_) = generated(form, mel, **options)
    assert begun == [list(wanted)]
    before = torch.tensor([said.start_of_previous, *text])
    _, (begun, *_) = generated(form, mel, prompt_ids=before, **options)
    assert begun == [list(after_previous(said, wanted, text))]


@pytest.mark.parametrize(
    ("language", "task"),
    [(None, "transcribe"), ("fr", "transcribe"), ("zh", "translate"), ("su", "translate")],
)
@pytest.mark.parametrize("form", FORMS)
def test_tokens_without_times_are_those_of_the_library(
    pipelines: Pipelines, form: str, language: str | None, task: str
) -> None:
    said = rules(form)
    wanted, begun = generated(form, mels(form), language=language, task=task)
    session = pipelines(form, "torch").model.new_session(Batch=ROWS)
    session.listen(mels(form))
    likely = [next(iter(row)) for row in language_probabilities(session, said, ROWS)]
    prompt = np.array([prompt_ids(said, language or code, task) for code in likely], np.int32)
    assert begun[0] == prompt.tolist()
    rows = decode(session, prompt, said, max_tokens=MAX_TOKENS)
    assert [list(row.tokens) for row in rows] == [
        [t for t in row if t != said.end] for row in wanted.tolist()
    ]
    assert len({row.tokens for row in rows}) > 3


LONG: tuple[dict[str, Any], ...] = (
    {"task": "transcribe"},
    {"language": "fr", "task": "transcribe"},
    {"language": "de", "task": "translate"},
    {"language": "ja", "task": "transcribe", "initial_prompt": "word " * 500},
)
"""One after another through one model: a language that is detected, one that is not, another task, a prompt."""
HEARD = {"torch": (0, 1, 2, 3, 0), "onnx": (0, 1, 2, 3, 0), "jax": (2, 0), "nnx": (0, 2)}
"""Which of them: XLA compiles for each length of prompt. Of the second form, those of the latter."""


Part = tuple[tuple[float, float] | None, tuple[int, ...]]


@cache
def long_form(form: str, number: int, tokenizer: Tokenizer) -> list[Part]:
    """What the library makes of a recording of several windows: times and texts of its segments.

    Of one that is all of a window the times are None: there the library leaves the first time out.
    """
    import torch

    said = rules(form)
    options = dict(LONG[number])
    text = options.pop("initial_prompt", None)
    if text is not None:
        ids = tokenizer.encode(f" {text.strip()}")
        options["prompt_ids"] = torch.tensor([said.start_of_previous, *ids])
    made, begun = generated(
        form, features(form, number, SECONDS), condition_on_prev_tokens=True, return_timestamps=True, temperature=0.0,
        return_segments=True, **options,
    )  # fmt: skip
    assert len(begun) > 2
    parts = made["segments"][0]
    windows = [id(part["result"]) for part in parts]
    found: list[Part] = []
    for part, window in zip(parts, windows, strict=True):
        tokens = part["tokens"].tolist()
        text_tokens = tuple(token for token in tokens if token < said.end)
        whole = windows.count(window) == 1 and any(token < said.end for token in tokens[-2:])
        found.append((None if whole else (float(part["start"]), float(part["end"])), text_tokens))
    return found


def transcript(made: Transcriber, number: int) -> Transcript:
    return made(
        recording(number, SECONDS), temperature=0.0, max_tokens=MAX_TOKENS, compression_ratio_threshold=None,
        log_probability_threshold=None, no_speech_threshold=None, **LONG[number],
    )  # fmt: skip


def same(made: Transcript, wanted: list[Part]) -> None:
    """Segment for segment and token for token; what the library hears after the recording's end is left out."""
    kept = [(times, tokens) for times, tokens in wanted if tokens and (times is None or times[0] < SECONDS)]
    assert [segment.tokens for segment in made.segments] == [tokens for _, tokens in kept]
    for segment, (times, _) in zip(made.segments, kept, strict=True):
        if times is not None:
            assert (segment.start, segment.end) == pytest.approx((times[0], min(times[1], SECONDS)), abs=1e-6)


@pytest.fixture(scope="module")
def wanted(pipelines: Pipelines) -> Callable[[str, int], list[Part]]:
    return lambda form, number: long_form(form, number, pipelines(form, "torch").tokenizer)


Wanted = Callable[[str, int], list[Part]]


@pytest.mark.parametrize(("form", "backend"), BOTH)
def test_long_recordings_one_after_another_have_the_tokens_of_the_library(
    pipelines: Pipelines, wanted: Wanted, form: str, backend: str
) -> None:
    numbers = HEARD[backend if form == FORMS[0] else "nnx"]
    for number in numbers:
        made = transcript(pipelines(form, backend), number)
        same(made, wanted(form, number))
        assert made.language == LONG[number].get(
            "language", next(iter(made.language_probabilities or {}), None)
        )
    parts = [part for number in numbers for part in wanted(form, number)]
    assert sum(times is not None for times, _ in parts) > 2
    assert sum(len(tokens) for _, tokens in parts) > 40


@pytest.mark.parametrize("backend", BACKENDS)
def test_four_threads_on_one_pipeline(pipelines: Pipelines, wanted: Wanted, backend: str) -> None:
    form, numbers = FORMS[0], (HEARD[backend] * 2)[:5]
    made = pipelines(form, backend)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: transcript(made, number), numbers))
    for number, one in zip(numbers, found, strict=True):
        same(one, wanted(form, number))

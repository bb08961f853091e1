"""Passes: functions from a program, or a function of it, to another that computes the same."""

from nest.ir.passes.columns import store_columns
from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.flatten import flatten
from nest.ir.passes.fuse import fuse
from nest.ir.passes.fuse_attention import fuse_attention
from nest.ir.passes.inline import inline
from nest.ir.passes.narrow import narrow
from nest.ir.passes.pack import pack_projections
from nest.ir.passes.quantize import quantize
from nest.ir.passes.shortlist import shortlist

__all__ = [
    "eliminate_dead_code",
    "flatten",
    "fuse",
    "fuse_attention",
    "inline",
    "narrow",
    "pack_projections",
    "quantize",
    "shortlist",
    "store_columns",
]

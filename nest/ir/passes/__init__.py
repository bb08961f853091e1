"""Passes: functions from a program, or a function of it, to another that computes the same."""

from nest.ir.passes.dce import eliminate_dead_code
from nest.ir.passes.inline import inline

__all__ = ["eliminate_dead_code", "inline"]

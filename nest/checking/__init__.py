"""Whether entries are right (`check`) and fit for a zoo (`lint`)."""

from __future__ import annotations

from nest.checking.check import check
from nest.checking.lint import SECTIONS, lint
from nest.checking.report import Finding, Report
from nest.checking.tensors import Checkpoints

__all__ = ["SECTIONS", "Checkpoints", "Finding", "Report", "check", "lint"]

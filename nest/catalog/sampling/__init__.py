"""Make the outputs of samples, which the pages show: this project's, and the reference library's."""

from __future__ import annotations

from nest.catalog.sampling._ours import answer, measure, write
from nest.catalog.sampling._reference import library_version, references

__all__ = ["answer", "library_version", "measure", "references", "write"]

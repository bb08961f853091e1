"""A program as a diagram: folded, laid out, drawn, and as data for the script that opens its boxes."""

from nest.catalog.diagram.diagram import Diagram, Entry, diagram

__all__ = ["Diagram", "Entry", "diagram"]

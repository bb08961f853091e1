"""A model as one readable file of a framework's source, which needs no nest."""

from nest.export.source.ejecting import BACKENDS, eject

__all__ = ["BACKENDS", "eject"]

"""Code to copy for an entry: its task in Python and in a terminal, and the model itself on each backend.

The catalog and `nest show` print the same text, and the tests run it.
"""

from __future__ import annotations

from nest.tasks.snippets.model import BACKENDS, model_code
from nest.tasks.snippets.subject import Subject
from nest.tasks.snippets.task import commands, installs, leaving, task_code

__all__ = ["BACKENDS", "Subject", "commands", "installs", "leaving", "model_code", "task_code"]

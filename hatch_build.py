"""What the wheel holds beyond the sources: the zoo, the sample recordings and pictures, the command's own module."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The command is a module of its own, outside `nest`, so that it can say when another package has that name.
COMMAND = {"nest/_command.py": "_nest_zoo_command.py"}
DATA = {"zoo": "nest/_zoo", "assets/audio": "nest/_assets", "assets/images": "nest/_assets"}


class Contents(BuildHookInterface[Any]):
    """An editable install needs the command only: the rest is found in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        key = "force_include_editable" if version == "editable" else "force_include"
        build_data[key].update(COMMAND if version == "editable" else {**DATA, **COMMAND})

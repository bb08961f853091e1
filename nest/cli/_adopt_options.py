"""Options of the commands for authors: `adopt`, `new`, `bind`."""

from __future__ import annotations

from argparse import ArgumentParser

from nest.cli._shared_options import offline

__all__ = ["adopt"]

_FROM = "a repository of the Hub (owner/name), or a folder with config.json and safetensors files"


def adopt(command: ArgumentParser) -> None:
    """Add what `nest adopt` takes."""
    command.add_argument("source", metavar="REPO_OR_DIR", help=_FROM)
    _revision(command)
    command.add_argument(
        "--write", metavar="DIR", help="write the entry there, as zoo/NAME, for a zoo of your own"
    )
    command.add_argument(
        "--no-weights",
        action="store_true",
        help="read configuration and headers only; do not fetch and bind weights",
    )
    offline(command)
    command.add_argument("--json", action="store_true", help="write JSON")


def _revision(command: ArgumentParser) -> None:
    command.add_argument(
        "--revision", metavar="REV", help="a commit, branch or tag of the repository; main if left out"
    )

"""Options of the commands for authors: `adopt`, `new`, `bind`."""

from __future__ import annotations

from argparse import ArgumentParser

from nest.cli._shared_options import NAME, offline, trust

__all__ = ["adopt", "bind", "new"]

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


def new(command: ArgumentParser) -> None:
    """Add what `nest new` takes."""
    command.add_argument(
        "name", metavar="NAME", help="the folder to make, which names the entry, such as zoo/my-model"
    )
    command.add_argument("--like", metavar="FAMILY", help="an entry or a family whose definition it has")
    command.add_argument("--from", dest="source", metavar="REPO_OR_DIR", help=_FROM)
    _revision(command)
    offline(command)
    command.add_argument("--json", action="store_true", help="write JSON")


def bind(command: ArgumentParser) -> None:
    """Add what `nest bind` takes."""
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument(
        "--suggest", action="store_true", help="propose a tensor for each parameter; write nothing"
    )
    command.add_argument(
        "--write", action="store_true", help="put what is certain and not bound yet into bindings.json"
    )
    offline(command)
    trust(command)
    command.add_argument("--json", action="store_true", help="write JSON")


def _revision(command: ArgumentParser) -> None:
    command.add_argument(
        "--revision", metavar="REV", help="a commit, branch or tag of the repository; main if left out"
    )

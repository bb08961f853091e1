"""Options of the commands about files and this machine: `pull`, `cache`, `catalog`, `env`."""

from __future__ import annotations

from argparse import ArgumentParser

__all__ = ["cache", "catalog", "env", "pull"]

_NAME = "an entry's name or alias, the Hub repository that it pins, or the path of its folder"


def pull(command: ArgumentParser) -> None:
    """Add what `nest pull` takes."""
    command.add_argument("names", metavar="NAME", nargs="*", default=[], help=_NAME)
    command.set_defaults(more="names")
    command.add_argument("--all", action="store_true", help="every entry of the zoo")
    command.add_argument(
        "--dry-run", action="store_true", help="say what would be fetched, from where; fetch nothing"
    )
    command.add_argument(
        "--local-dir", metavar="DIR", help="copy the files there too, to carry to a machine without a network"
    )
    command.add_argument(
        "--cache-dir",
        metavar="DIR",
        help="keep everything there, not in the usual caches (HF_HOME, NEST_CACHE)",
    )
    command.add_argument(
        "--lock", metavar="FILE", help="the file of digests that the entries do not pin (NEST_LOCK)"
    )
    command.add_argument(
        "--require-hashes", action="store_true", help="refuse files whose digest nobody has pinned"
    )
    command.add_argument("--offline", action="store_true", help="use what is on disk; never ask the network")
    command.add_argument("--json", action="store_true", help="write JSON")


def cache(command: ArgumentParser) -> None:
    """Add what `nest cache` takes."""
    command.add_argument(
        "action",
        metavar="ACTION",
        choices=("ls", "verify", "prune", "rm"),
        help="ls: what is here; verify: read all of it and compare it with its pins; prune: delete what is of no "
        "use; rm: delete the files of entries",
    )
    command.add_argument(
        "names", metavar="NAME", nargs="*", default=[], help=f"{_NAME}; all that are here if none"
    )
    command.set_defaults(more="names")
    command.add_argument(
        "--unnamed", action="store_true", help="prune: files of packages that no entry here names, too"
    )
    command.add_argument("--dry-run", action="store_true", help="prune and rm: say what would be deleted")
    command.add_argument("--json", action="store_true", help="write JSON")


def env(command: ArgumentParser) -> None:
    """Add what `nest env` takes."""
    command.add_argument("--json", action="store_true", help="write JSON")


def catalog(command: ArgumentParser) -> None:
    """Add what `nest catalog` takes."""
    command.add_argument(
        "action",
        metavar="ACTION",
        choices=("build", "sample"),
        help="build: write the pages of every entry of the zoo; sample: run the samples of entries, and write what "
        "came of them into their samples.json, with what the reference library makes of them",
    )
    command.add_argument("names", metavar="NAME", nargs="*", default=[], help=f"sample: {_NAME}")
    command.set_defaults(more="names")
    command.add_argument(
        "--out",
        metavar="DIR",
        default="docs/models",
        help="build: the folder to write, which holds nothing else; docs/models if left out",
    )
    command.add_argument("--backend", metavar="NAME", help="sample: what computes, as for nest run")
    command.add_argument(
        "--no-reference", action="store_true", help="sample: leave the reference library's side out"
    )
    command.add_argument("--json", action="store_true", help="write JSON")

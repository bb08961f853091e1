"""Whether another distribution has put files into this package's folder."""

from __future__ import annotations

from pathlib import Path

from nest.errors import NestError

__all__ = ["DISTRIBUTION", "check_environment", "overlapping"]

DISTRIBUTION = "nest-zoo"


def check_environment() -> None:
    """Refuse a folder that two distributions share: the later one has replaced files of the earlier one.

    Raises:
        NestError: names the other distributions.
    """
    others = overlapping()
    if others:
        raise NestError(
            f"{' and '.join(others)} and {DISTRIBUTION} both install a package named 'nest' into "
            f"{_site_packages()}, so files of one have replaced the other's. Only one of them can be used there: "
            f"install {DISTRIBUTION} in an environment of its own (python -m venv), or uninstall both and then "
            f"install the one you need."
        )


def overlapping(site_packages: Path | None = None) -> list[str]:
    """Name and version of every other distribution that owns files of a package `nest` beside this one."""
    # The lists of files are read as they lie: importlib.metadata would add tens of milliseconds to each command.
    folder = site_packages or _site_packages()
    found = [_label(info) for info in folder.glob("*.*-info") if _owns_nest(info)]
    return sorted(label for label in found if not _is_ours(label))


def _owns_nest(info: Path) -> bool:
    record, top_level = info / "RECORD", info / "top_level.txt"
    if record.is_file():
        content = record.read_bytes()
        return content.startswith(b"nest/") or b"\nnest/" in content
    return top_level.is_file() and b"nest" in top_level.read_bytes().split()


def _label(info: Path) -> str:
    """`name 1.2` of the folder `name-1.2.dist-info`, or `name-1.2-py3.11.egg-info`."""
    name, _, rest = info.stem.partition("-")
    return f"{name} {rest.partition('-')[0]}".strip()


def _is_ours(label: str) -> bool:
    return label.partition(" ")[0].replace("_", "-").lower() == DISTRIBUTION


def _site_packages() -> Path:
    return Path(__file__).resolve().parent.parent

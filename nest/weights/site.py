"""What a site allows: `config.toml` of the machine and of the user.

    sources = ["directory", "url"]       # what may be asked, in this order; all: directory, url, hub, package-index
    require_hashes = true                # refuse files whose digest nobody has pinned
    licenses = ["MIT", "Apache-2.0"]     # refuse entries under another licence

    [[mirror]]
    directory = "/mnt/models"            # OWNER/NAME/REVISION/FILE, or a cache of the Hub client
    [[mirror]]
    url = "https://models.example/{repo}/{revision}/{file}"

The machine's file holds for everyone on it: a user's can narrow it, and never widen it. This is a rule for people
who keep rules, not a wall: whoever can run Python can fetch without nest.
"""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nest.errors import ConfigError, FetchError
from nest.weights._files import user_path
from nest.weights.source import KINDS, Kind

if TYPE_CHECKING:
    from nest.registry import Entry
    from nest.weights._site_file import SiteFile

__all__ = ["Policy", "SiteMirror", "machine_file", "policy", "user_file"]


@dataclass(frozen=True)
class SiteMirror:
    """A mirror of the site: a URL with places to fill in, or a folder."""

    url: str | None = None
    directory: Path | None = None


@dataclass(frozen=True)
class Policy:
    """What the configuration files allow together, and which file each restriction is from."""

    sources: tuple[Kind, ...] = KINDS
    forbidden: dict[Kind, Path] = field(default_factory=dict)
    ordered_by: Path | None = None
    """The first file that names sources, if only to order all of them."""
    require_hashes: Path | None = None
    licenses: tuple[tuple[Path, frozenset[str]], ...] = ()
    mirrors: tuple[SiteMirror, ...] = ()
    files: tuple[Path, ...] = ()

    def check_license(self, entry: Entry) -> None:
        """Refuse an entry whose licence a file does not list.

        Raises:
            FetchError: names the licence and the file.
        """
        license_ = entry.manifest.model.license
        if (refusal := self.refuses_license(license_)) is not None:
            file, allowed = refusal
            raise FetchError(
                f"'{entry.name}' is under the licence {license_}, which {file} does not allow: its licenses are "
                f"{', '.join(sorted(allowed)) or 'none'}."
            )

    def refuses_license(self, license_: str) -> tuple[Path, frozenset[str]] | None:
        """The file that does not list a licence, and what it lists; None where it is allowed."""
        for file, allowed in self.licenses:
            if license_.lower() not in {name.lower() for name in allowed}:
                return file, allowed
        return None

    def why_not(self, kind: Kind) -> str:
        """Which file forbids a source, in words that follow its name."""
        return f"is not allowed by {self.forbidden[kind]}"


def policy() -> Policy:
    """What the machine's and the user's configuration allow together; everything where there is none.

    Raises:
        ConfigError: a file cannot be read, or is not valid; lists every fault with its line.
    """
    combined = Policy()
    for path, of_machine in ((machine_file(), True), (user_file(), False)):
        # The user's file is only missed where NEST_CONFIG names it.
        if _is_there(path, of_machine=of_machine) or (not of_machine and os.environ.get("NEST_CONFIG")):
            combined = _narrowed(combined, path, _read(path))
    return combined


_OTHER_MACHINE_FILE = Path("/etc/xdg/nest/config.toml")
_MACHINE_FILES = {
    "win32": Path("C:/ProgramData/nest/config.toml"),
    "darwin": Path("/Library/Application Support/nest/config.toml"),
}


def machine_file() -> Path:
    """The machine's file. No variable moves it: what it sets cannot be loosened."""
    return _MACHINE_FILES.get(sys.platform, _OTHER_MACHINE_FILE)


def user_file() -> Path:
    """`NEST_CONFIG` if set, else `nest/config.toml` in the platform's folder for settings."""
    if configured := os.environ.get("NEST_CONFIG"):
        return user_path(configured, "NEST_CONFIG").absolute()
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming") / "nest" / "config.toml"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "nest" / "config.toml"
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else home / ".config") / "nest" / "config.toml"


def _is_there(path: Path, *, of_machine: bool) -> bool:
    """Whether anything is in the file's place: what cannot be read has to be said, and is not 'no rules'.

    Raises:
        ConfigError: the machine's folder does not let anybody see.
    """
    try:
        os.lstat(path)
    except FileNotFoundError:
        return path.parent.is_symlink() and not path.parent.exists()  # the link to it leads nowhere
    except PermissionError as error:
        if of_machine:
            raise _unreadable(path, error) from error
        return False  # a home that is somebody else's
    except NotADirectoryError:
        return False
    except OSError as error:
        raise _unreadable(path, error) from error
    return True


def _unreadable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"The configuration {path} cannot be read: {error.strerror or error}.")


def _read(path: Path) -> SiteFile:
    from nest.weights._site_file import parse_site_file

    try:
        text = path.read_text(encoding="utf-8-sig")  # editors of Windows put a mark first
        data: dict[str, Any] = tomllib.loads(text)
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:  # of TOML, and of UTF-8
        raise ConfigError(f"The configuration {path} is not valid TOML: {error}.") from error
    return parse_site_file(path, text, data)


def _narrowed(before: Policy, path: Path, file: SiteFile) -> Policy:
    """`before`, with the restrictions of one more file; no restriction is ever dropped."""
    sources, forbidden = before.sources, dict(before.forbidden)
    if file.sources is not None:
        forbidden = {kind: path for kind in KINDS if kind not in file.sources} | forbidden
        ordered = before.sources if before.ordered_by else tuple(file.sources)
        sources = tuple(kind for kind in ordered if kind in file.sources and kind not in before.forbidden)
    mirrors = [_mirror(path, url, directory) for url, directory in file.mirrors]
    if before.ordered_by:
        # A URL of the user's could lead to anywhere that the machine's file does not mean.
        mirrors = [mirror for mirror in mirrors if mirror.url is None]
    licenses = [] if file.licenses is None else [(path, frozenset(file.licenses))]
    return Policy(
        sources=sources,
        forbidden=forbidden,
        ordered_by=before.ordered_by or (None if file.sources is None else path),
        require_hashes=before.require_hashes or (path if file.require_hashes else None),
        licenses=(*before.licenses, *licenses),
        mirrors=(*before.mirrors, *mirrors),
        files=(*before.files, path),
    )


def _mirror(path: Path, url: str | None, directory: str | None) -> SiteMirror:
    if directory is None:
        return SiteMirror(url=url)
    # Relative to the file, so that a folder with its configuration can be carried elsewhere.
    return SiteMirror(directory=path.parent / user_path(directory, f"A mirror's directory in {path}"))

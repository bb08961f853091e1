"""What a source of files is, and what goes wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit, urlunsplit

from nest.registry import FileSpec

__all__ = ["FOREIGN", "KINDS", "Kind", "Report", "Source", "SourceError", "without_password"]

Kind = Literal["directory", "url", "hub", "package-index"]
KINDS: tuple[Kind, ...] = ("directory", "url", "hub", "package-index")
"""In the order that they are asked, unless the site's configuration gives another: a site that has a mirror means it
to be asked before the Hub."""
FOREIGN = "not the publisher's own bytes"
"""What `Source.note` says of a file that has not the published digest."""


class Report(Protocol):
    """Told how many bytes came, or were here (`came=False`), or (negative) have to come again."""

    def __call__(self, count: int, /, *, came: bool = True) -> None: ...


class SourceError(Exception):
    """A source cannot give a file; the message says why, and another source may be tried.

    `answered` says that it is the source's own word, so that nothing is wrong with the network.
    """

    def __init__(self, message: str, *, answered: bool = False) -> None:
        super().__init__(message)
        self.answered = answered


def without_password(url: str) -> str:
    """The URL as it may be shown: without the user and password that it may hold."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class Source(Protocol):
    """Somewhere that an entry's files come from. Its text form says where, for a person."""

    @property
    def kind(self) -> Kind: ...

    @property
    def host(self) -> str | None:
        """The host that it asks; None where it asks no network."""

    def offers(self, name: str) -> bool:
        """Whether it may have the published file `name`."""

    def location(self, name: str) -> str:
        """The URL, path or package that the file comes from."""

    def local(self, spec: FileSpec) -> Path | None:
        """The file, verified, if it is on this machine; asks no network.

        Raises:
            DigestError: the copy here is not the pinned file.
        """

    def download(self, spec: FileSpec, report: Report) -> Path:
        """Fetch the file, verified.

        Raises:
            SourceError: it cannot be had from here.
            DigestError: what came is not the pinned file.
            FetchError: it cannot be stored.
        """

    def note(self, spec: FileSpec) -> str | None:
        """What a person should know about the file's bytes; None where they are the publisher's own."""

"""Hub repositories as names of entries: `openai/whisper-tiny` finds the entry that pins it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nest._suggest import nearest
from nest.errors import UnknownEntryError
from nest.registry.card import Card

__all__ = ["hub_id", "pinned_by", "unknown_repository"]

_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_ADDRESS = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/(?P<repo>\w[\w.-]*/\w[\w.-]*)(?:[/?#].*)?"
)


def hub_id(text: str) -> str | None:
    """The `owner/name` that a text is, or is the Hub address of; None for anything else."""
    if found := _ADDRESS.fullmatch(text):
        return found["repo"]
    return text if _REPOSITORY.fullmatch(text) else None


def pinned_by(repo: str, cards: Sequence[Card]) -> Card | None:
    """The entry whose weights are of `repo`, in any case of letters, as the Hub has it. The zoo's come first.

    Raises:
        UnknownEntryError: several entries pin it, and none is called as it is.
    """
    pinned = [card for card in cards if card.repo is not None and card.repo.lower() == repo.lower()]
    pinned = [card for card in pinned if card.trusted] or pinned
    if len(pinned) > 1:
        own = [card for card in pinned if card.name == repo.lower().partition("/")[2]]
        if not own:
            names = " and ".join(card.name for card in pinned)
            raise UnknownEntryError(f"'{repo}' is the repository of {names}: give one of these names.")
        pinned = own
    return pinned[0] if pinned else None


def unknown_repository(repo: str, cards: Sequence[Card]) -> UnknownEntryError:
    """What can be done about a repository that no entry pins."""
    entries = {card.repo: card.name for card in cards if card.repo is not None}
    close = [f"'{name}' (entry {entries[name]})" for name in nearest(repo, entries)]
    hint = f" Nearest: {', '.join(close)}." if close else ""
    return UnknownEntryError(
        f"No entry pins the Hub repository '{repo}', and there is no folder of that path.{hint} 'nest list' shows "
        f"the entries there are. A checkpoint of a family that the zoo has needs no entry: 'nest adopt {repo}' "
        f"recognises it, and nest.adopt('{repo}') loads it."
    )

"""An entry's files: from this machine, the Hub at the pinned commit, or a mirror; all verified."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from nest._collector import released
from nest._suggest import did_you_mean
from nest.errors import DigestError, FetchError
from nest.registry import Entry, FileSpec, Weights
from nest.weights._files import user_path
from nest.weights.cache import cache_root
from nest.weights.hub import hub_offline
from nest.weights.lock import LockFile
from nest.weights.site import Policy, policy
from nest.weights.source import Report, Source, SourceError
from nest.weights.sources import Sources

__all__ = ["Fetched", "check_pinned", "chosen_files", "fetch"]

_FILES_AT_ONCE = 4
_ADVICE = " Check the network (HF_ENDPOINT and proxies are used), or bring a copy (nest pull --local-dir)."


@dataclass(frozen=True)
class Fetched:
    """Verified files of an entry, by their published name.

    `origins` says where each one's bytes came from; `notes` what a person should know, such as bytes that are
    not the publisher's own.
    """

    files: dict[str, Path] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def fetch(
    entry: Entry,
    names: Iterable[str] | None = None,
    *,
    local_files_only: bool = False,
    token: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    lock: str | os.PathLike[str] | None = None,
    require_hashes: bool = False,
) -> Fetched:
    """Have files of `entry` on disk. What is here and intact needs no network, and none is asked.

    Args:
        entry: whose files.
        names: some of its `weights.files`; all required ones where None.
        local_files_only: take what is here, and never ask the network (as does `HF_HUB_OFFLINE=1`).
        token: for the Hub; where None, `HF_TOKEN` or the stored login.
        cache_dir: a folder for everything, in place of the Hub client's cache and of `NEST_CACHE`.
        progress: say on standard error what is fetched, and draw a bar. Where None, the bar is drawn on a terminal
            only.
        lock: the file that holds digests which the entry does not pin; where None, the one that `NEST_LOCK` names,
            or one in the cache.
        require_hashes: refuse files whose digest neither the entry nor a named lock file has.

    Raises:
        FetchError: no source has the file, the site does not allow it, or the cache cannot be written; says what
            each source answered.
        DigestError: the bytes that came are not the pinned ones.
        ConfigError: the site's configuration or the lock file is not valid.
        WeightsError: a mirror's file cannot be converted.
    """
    weights = entry.manifest.weights
    if weights is None:
        raise FetchError(f"Entry '{entry.name}' names no weights: its nest.toml has no table [weights].")
    rules = policy()
    rules.check_license(entry)
    folder = None if cache_dir is None else user_path(cache_dir, "The cache's folder").absolute()
    root = cache_root() if folder is None else folder / "nest"
    locked = LockFile.choose(lock, root)
    specs = [locked.pin(weights, spec) for spec in chosen_files(entry, names)]
    check_pinned(entry, specs, rules, locked, require_hashes=require_hashes)
    shown = (sys.stderr is not None and sys.stderr.isatty()) if progress is None else progress
    sources = Sources(weights, rules, root=root, cache_dir=folder, token=token, progress=shown)
    fetcher = _Fetcher(entry, weights, sources, rules, locked)
    missing = [spec for spec in specs if not fetcher.find(spec)]
    if missing and (local_files_only or hub_offline()):
        raise fetcher.not_here(missing)
    if missing:
        with released():
            fetcher.ask(missing, progress)
    return fetcher.result(specs)


def chosen_files(entry: Entry, names: Iterable[str] | None = None) -> list[FileSpec]:
    """The pins of the named files, or of all required ones.

    Raises:
        FetchError: the entry has no file of that name.
    """
    pinned = {spec.name: spec for spec in entry.manifest.weights.files} if entry.manifest.weights else {}
    if names is None:
        return [spec for spec in pinned.values() if spec.required]
    for name in (names := list(names)):
        if name not in pinned:
            raise FetchError(
                f"Entry '{entry.name}' has no file '{name}': its files are {', '.join(pinned)}."
                f"{did_you_mean(name, pinned)}"
            )
    return [pinned[name] for name in names]


def check_pinned(
    entry: Entry, specs: list[FileSpec], rules: Policy, locked: LockFile, *, require_hashes: bool
) -> None:
    """Under required hashes, the digest has to have come from a person: not from a first pull on this machine.

    Raises:
        FetchError: it has not.
    """
    if not (require_hashes or rules.require_hashes):
        return
    pinned = chosen_files(entry, [spec.name for spec in specs])
    known = specs if locked.named else pinned
    if unknown := [spec.name for spec in known if spec.sha256 is None]:
        whose = rules.require_hashes or "--require-hashes (require_hashes=True)"
        raise FetchError(
            f"No digest is known for {' and '.join(unknown)} of '{entry.name}', and {whose} refuses such files. A "
            f"lock file (--lock FILE, or NEST_LOCK) that somebody has checked can hold it."
        )


@dataclass
class _Fetcher:
    entry: Entry
    weights: Weights
    sources: Sources
    rules: Policy
    locked: LockFile
    taken: dict[str, tuple[Path, Source]] = field(default_factory=dict)
    damaged: dict[str, list[str]] = field(default_factory=dict)

    def find(self, spec: FileSpec) -> bool:
        """Take the file where it is on this machine and intact."""
        for source in self.sources.here:
            try:
                path = source.local(spec)
            except (DigestError, OSError) as error:
                self.damaged.setdefault(spec.name, []).append(str(error))
                continue
            if path is not None:
                self.taken[spec.name] = path, source
                return True
        return False

    def not_here(self, missing: list[FileSpec]) -> Exception:
        """The error where the network is not to be asked."""
        for spec in missing:
            if spec.name in self.damaged:
                fault = self._with_lock(spec, self.damaged[spec.name][0])
                return DigestError(
                    f"{fault}. To fetch it again, with the network: nest pull {self.entry.name}"
                )
        names = " and ".join(f"'{spec.name}'" for spec in missing)
        verb = "is" if len(missing) == 1 else "are"
        return FetchError(
            f"{names} of '{self.entry.name}' {verb} not in the cache ({self.sources.cache.root}), and the network is "
            f"not to be asked (local_files_only or --offline, or HF_HUB_OFFLINE is set). Fetch once with the "
            f"network: nest pull {self.entry.name}"
        )

    def ask(self, missing: list[FileSpec], progress: bool | None) -> None:
        """Fetch what is not here, a few files at once, and say so."""
        from nest.weights.at_once import at_once
        from nest.weights.progress import Meter, size_text

        sizes = [spec.size for spec in missing]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        if progress is not False and sys.stderr is not None:  # as under pythonw, or where it was closed
            for fault in (fault for spec in missing for fault in self.damaged.get(spec.name, [])):
                sys.stderr.write(f"To be fetched again: {fault}\n")
            names = " and ".join(spec.name for spec in missing)
            license_ = self.entry.manifest.model.license
            sys.stderr.write(f"Fetching {self.entry.name}: {names}, {size_text(total)}, licence {license_}\n")
            sys.stderr.flush()
        meter = Meter.on_terminal(self.entry.name, total, wanted=progress)
        try:
            at_once(
                lambda spec: self._ask_for(spec, meter.report),
                missing,
                workers=_FILES_AT_ONCE,
                stop=meter.stop,
            )
        finally:
            meter.close()

    def _ask_for(self, spec: FileSpec, report: Report) -> None:
        """Take the file from the first source that has it."""
        answers: list[tuple[Source, Exception]] = []
        for source in self.sources.allowed:
            if not source.offers(spec.name):
                continue
            try:
                self.taken[spec.name] = source.download(spec, report), source
                return
            except (SourceError, DigestError, FetchError) as error:
                answers.append((source, error))
        raise self._no_source(spec, answers)

    def _no_source(self, spec: FileSpec, answers: list[tuple[Source, Exception]]) -> Exception:
        unwritable = [str(error) for _, error in answers if isinstance(error, FetchError)]
        if answers and len(unwritable) == len(answers):
            return FetchError(" ".join(dict.fromkeys(unwritable)))
        said = [f"{source}: {self._with_lock(spec, error)}" for source, error in answers]
        said += [f"{kind}: {self.rules.why_not(kind)}" for kind in self.rules.forbidden]
        said += [f"the copy here: {text.rstrip('.')}" for text in self.damaged.get(spec.name, [])]
        other_bytes = any(isinstance(error, DigestError) for _, error in answers)
        answered = all(isinstance(error, SourceError) and error.answered for _, error in answers)
        return (DigestError if other_bytes else FetchError)(
            f"'{spec.name}' of '{self.entry.name}' could not be fetched. {'; '.join(said)}."
            f"{'' if answers and answered else _ADVICE}"
        )

    def _with_lock(self, spec: FileSpec, error: Exception | str) -> str:
        text = str(error).rstrip(".")
        pinned = chosen_files(self.entry, [spec.name])[0]
        if pinned.sha256 is not None or spec.sha256 is None or isinstance(error, SourceError):
            return text
        return f"{text} (the digest is that of {self.locked.path}, from when the file first came)"

    def result(self, specs: list[FileSpec]) -> Fetched:
        """What was taken, in the order of `specs`; digests that nobody knew are recorded."""
        fetched = Fetched()
        for spec in specs:
            path, source = self.taken[spec.name]
            fetched.files[spec.name] = path
            fetched.origins[spec.name] = str(source)
            notes = [source.note(spec), self._lock_note(spec, path, source)]
            fetched.notes.extend(note for note in notes if note is not None)
        return fetched

    def _lock_note(self, spec: FileSpec, path: Path, source: Source) -> str | None:
        if chosen_files(self.entry, [spec.name])[0].sha256 is not None or source.kind == "package-index":
            return None  # the entry pins it, or what the package has in its place
        where = f"the one recorded in {self.locked.path}"
        if spec.sha256 is not None:
            return f"{spec.name}: the entry pins no digest; this is {where}"
        digest, size = self.sources.verifier.digest(path), path.stat().st_size
        if not self.locked.record(self.weights, spec, sha256=digest, size=size):
            where = f"not recorded, because {self.locked.path} cannot be written"
            return f"{spec.name}: the entry pins no digest; {digest} of this first pull is {where}"
        return f"{spec.name}: the entry pins no digest; {digest} of this first pull is now {where}"

"""`nest cache`: what is here, whether it is intact, what is of no use, and how to be rid of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from nest.registry import Entry
from nest.registry import entries as all_entries
from nest.weights import fetch

from .conftest import Command, LoopbackHub, MakeEntry
from .loopback import sha256

WEIGHTS = b"the publisher's own bytes"
OTHER = b"the same model in another form"


@pytest.fixture
def hub_cache(tmp_path: Path) -> Path:
    return tmp_path / "hub-cache"


@pytest.fixture
def nest_cache(tmp_path: Path) -> Path:
    return tmp_path / "nest-cache"


@pytest.fixture
def entry(hub: LoopbackHub, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """The only entry of the zoo, with two files in the cache and one that is optional and not there."""
    hub.files.update({"w.bin": WEIGHTS, "tokens.json": b"{}"})
    mirror = (
        f'[[weights.mirror]]\npackage = "p==1"\nsha256 = "{"1" * 64}"\nsize = 1\nlicense = "MIT"\n'
        f'files = [{{ replaces = "w.bin", member = "m", sha256 = "{sha256(OTHER)}", size = {len(OTHER)} }}]\n'
    )
    made = make_entry({"w.bin": WEIGHTS, "tokens.json": None}, mirror)
    monkeypatch.setattr("nest.cli._cache.entries", lambda: [made])
    fetch(made, progress=False)
    return made


def data(command: Command, *arguments: str) -> Any:
    outcome = command("cache", *arguments, "--json")
    assert outcome.err == ""
    return json.loads(outcome.out)


class TestLs:
    def test_a_table(self, command: Command, entry: Entry, hub_cache: Path, nest_cache: Path) -> None:
        lines = command("cache", "ls").out.splitlines()
        assert lines[1].split(maxsplit=4) == ["some-model", "w.bin", "25", "B", "the Hub client's cache"]
        assert lines[2].split(maxsplit=4)[1:4] == ["tokens.json", "2", "B"]
        assert lines[3] == "2 files, 27 B"
        assert lines[4].split()[-1] == str(hub_cache)
        assert lines[5].split()[-1] == str(nest_cache)
        assert len(lines) == 6

    def test_as_json(self, command: Command, entry: Entry) -> None:
        found = data(command, "ls")
        assert [(file["file"], file["place"]) for file in found["files"]] == [
            ("w.bin", "hub"),
            ("tokens.json", "hub"),
        ]
        # The digest that the first pull recorded counts as a pin.
        assert found["files"][1]["pinned_sha256"] == sha256(b"{}")
        assert found["leftovers"] == []

    def test_nothing(self, command: Command, entry: Entry) -> None:
        command("cache", "rm", str(entry.directory))
        assert command("cache", "ls", str(entry.directory)).out.startswith("0 files, 0 B\n")


class TestVerify:
    def test_intact(self, command: Command, entry: Entry) -> None:
        outcome = command("cache", "verify")
        assert (outcome.code, outcome.err) == (0, "")
        assert [line.split()[1:] for line in outcome.out.splitlines()] == [
            ["w.bin", "intact"],
            ["tokens.json", "intact"],
        ]

    def test_damage_that_times_do_not_show_is_found_and_a_pull_heals_it(
        self, command: Command, entry: Entry, hub_cache: Path
    ) -> None:
        import os

        path = fetch(entry).files["w.bin"].resolve()
        before = path.stat()
        path.write_bytes(WEIGHTS[::-1])
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert fetch(entry).files["w.bin"].read_bytes() == WEIGHTS[::-1]  # the record is believed
        outcome = command("cache", "verify")
        assert outcome.code == 1
        assert outcome.out.splitlines()[0].split() == ["some-model", "w.bin", "damaged"]
        assert (
            outcome.err == "nest: error: Damaged files are here. To fetch them again: nest pull some-model\n"
        )
        command("pull", str(entry.directory))
        assert command("cache", "verify").code == 0

    def test_a_file_that_nobody_has_pinned(self, command: Command, entry: Entry, nest_cache: Path) -> None:
        (nest_cache / "lock.json").unlink()
        assert [file["state"] for file in data(command, "verify")] == ["intact", "not pinned"]

    def test_nothing(self, command: Command, entry: Entry) -> None:
        command("cache", "rm", str(entry.directory))
        assert command("cache", "verify").out == "Nothing is here.\n"


class TestPrune:
    def test_nothing(self, command: Command, entry: Entry) -> None:
        assert command("cache", "prune").out == "Deleted 0 B\n"
        assert data(command, "prune") == []

    @pytest.fixture
    def left(self, entry: Entry, hub_cache: Path, nest_cache: Path) -> dict[str, Path]:
        """One of each that is of no use, and some that are not nest's to judge."""
        blobs = hub_cache / "models--owner--model" / "blobs"
        made = {
            "broken": blobs / f"{'a' * 64}.incomplete",
            "twice": nest_cache / "mirrors" / ("1" * 32) / "w.bin",
            "unnamed": nest_cache / "mirrors" / ("2" * 32) / "w.bin",
            "stale": nest_cache / "verified" / "x.json",
            "the client's": blobs / f"{'b' * 64}.01234567.incomplete",
            "another repository's": hub_cache / "models--a--b" / "blobs" / f"{'c' * 64}.incomplete",
        }
        for path in made.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"12345")
        return made

    def test_records_that_are_links_in_a_circle(
        self, command: Command, entry: Entry, nest_cache: Path
    ) -> None:
        (nest_cache / "verified").mkdir(parents=True, exist_ok=True)
        (nest_cache / "verified" / "x.json").symlink_to("x.json")
        outcome = command("cache", "prune")
        assert (outcome.code, outcome.err) == (0, "")
        assert not (nest_cache / "verified" / "x.json").is_symlink()

    def test_what_is_of_no_use_goes_and_the_rest_stays(
        self, command: Command, entry: Entry, left: dict[str, Path]
    ) -> None:
        assert command("cache", "ls").out.splitlines()[-2:] == [
            "Of no use, 15 B: nest cache prune deletes it",
            "Of packages that no entry here names, 5 B: nest cache prune --unnamed deletes it",
        ]
        reasons = {Path(found["path"]).name: found["reason"] for found in data(command, "prune", "--dry-run")}
        assert reasons == {
            left["broken"].name: "a transfer that broke off",
            "w.bin": "the published file is in the Hub client's cache",
            "x.json": "the digest of a file that is gone",
        }
        assert all(path.exists() for path in left.values())
        outcome = command("cache", "prune")
        assert outcome.out.splitlines()[-1] == "Deleted 15 B"
        assert {name for name, path in left.items() if path.exists()} == {
            "the client's",
            "another repository's",
            "unnamed",
        }
        assert fetch(entry, local_files_only=True).files

    def test_files_of_unnamed_packages_go_only_when_asked(
        self, command: Command, entry: Entry, left: dict[str, Path]
    ) -> None:
        assert command("cache", "prune", "--unnamed").out.splitlines()[-1] == "Deleted 20 B"
        assert not left["unnamed"].exists()

    @pytest.mark.parametrize("more", [[], ["--unnamed"]])
    def test_of_one_entry_leaves_the_packages_of_the_others(
        self, command: Command, entry: Entry, nest_cache: Path, more: list[str]
    ) -> None:
        made = nest_cache / "mirrors" / ("1" * 32) / "other.bin"
        made.parent.mkdir(parents=True)
        made.write_bytes(OTHER)
        assert data(command, "prune", "whisper-tiny", *more) == []
        assert made.exists()

    def test_package_files_stay_while_an_entry_cannot_be_read(
        self,
        command: Command,
        left: dict[str, Path],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        (tmp_path / "zoo" / "broken").mkdir(parents=True)
        (tmp_path / "zoo" / "broken" / "nest.toml").write_text("[model")
        monkeypatch.setenv("NEST_ZOO", str(tmp_path / "zoo"))
        monkeypatch.setattr("nest.cli._cache.entries", all_entries)
        outcome = command("cache", "prune", "--unnamed")
        assert outcome.code == 1
        assert "nest: error: Which packages no entry names is not known, because not every" in outcome.err
        outcome = command("cache", "prune")
        assert outcome.code == 0
        assert outcome.err.startswith("nest: 'broken' was left out. Entry 'broken' is not valid.")
        assert outcome.err.count("was left out") == 1
        assert "Warning" not in outcome.err
        assert left["twice"].exists()
        assert left["unnamed"].exists()
        assert not left["stale"].exists()

    def test_looking_writes_nothing(
        self, command: Command, left: dict[str, Path], hub_cache: Path, nest_cache: Path
    ) -> None:
        before = {*hub_cache.rglob("*"), *nest_cache.rglob("*")}
        command("cache", "ls")
        command("cache", "prune", "--dry-run")
        assert {*hub_cache.rglob("*"), *nest_cache.rglob("*")} == before

    def test_a_folder_that_is_a_link_goes_and_what_it_leads_to_stays(
        self, command: Command, entry: Entry, nest_cache: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "w.bin").write_bytes(b"mine")
        (nest_cache / "mirrors").mkdir(parents=True)
        for name in ("1", "2"):
            (nest_cache / "mirrors" / (name * 32)).symlink_to(tmp_path / "elsewhere")
        assert command("cache", "prune", "--unnamed").code == 0
        assert (tmp_path / "elsewhere" / "w.bin").read_bytes() == b"mine"
        assert list((nest_cache / "mirrors").iterdir()) == []

    def test_a_transfer_that_is_going_on_stays(
        self, command: Command, left: dict[str, Path], hub_cache: Path
    ) -> None:
        lock = hub_cache / ".locks" / "models--owner--model" / f"{'a' * 64}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):
            command("cache", "prune")
            assert left["broken"].exists()
        command("cache", "prune")
        assert not left["broken"].exists()


class TestRm:
    def test_the_files_of_an_entry(
        self, command: Command, entry: Entry, hub_cache: Path, nest_cache: Path
    ) -> None:
        made = nest_cache / "mirrors" / ("1" * 32) / "w.bin"
        made.parent.mkdir(parents=True)
        made.write_bytes(OTHER)
        name = str(entry.directory)
        assert command("cache", "rm", name, "--dry-run").out == "some-model: would delete 3 files, 57 B\n"
        assert command("cache", "rm", name).out == "some-model: deleted 3 files, 57 B\n"
        assert [path for path in hub_cache.glob("models--*/**/*") if path.is_file()] == []
        assert not made.exists()
        assert json.loads(command("cache", "rm", name, "--json").out) == {
            "entry": "some-model",
            "removed": [],
            "size": 0,
        }

    def test_content_that_another_snapshot_points_to_stays(
        self, command: Command, entry: Entry, hub_cache: Path
    ) -> None:
        other = hub_cache / "models--owner--model" / "snapshots" / ("f" * 40) / "same.bin"
        other.parent.mkdir()
        other.symlink_to(f"../../blobs/{sha256(WEIGHTS)}")
        command("cache", "rm", str(entry.directory))
        assert other.read_bytes() == WEIGHTS

    def test_content_of_another_repository_stays(
        self, command: Command, entry: Entry, hub_cache: Path
    ) -> None:
        other = hub_cache / "models--a--b" / "blobs" / "x"
        other.parent.mkdir(parents=True)
        other.write_bytes(WEIGHTS)
        (link,) = hub_cache.glob("models--owner--model/snapshots/*/w.bin")
        link.unlink()
        link.symlink_to(other)
        assert command("cache", "rm", str(entry.directory)).code == 0
        assert not link.is_symlink()
        assert other.read_bytes() == WEIGHTS

    @pytest.mark.parametrize("what", ["file", "snapshots"])
    def test_a_link_out_of_the_cache_goes_and_what_it_leads_to_stays(
        self, command: Command, entry: Entry, hub_cache: Path, tmp_path: Path, what: str
    ) -> None:
        snapshots = hub_cache / "models--owner--model" / "snapshots"
        outside = tmp_path / "elsewhere"
        if what == "file":
            (link,) = snapshots.glob("*/w.bin")
            link.unlink()
            outside.write_bytes(b"mine")
            kept = outside
        else:
            link, kept = snapshots, next(snapshots.glob("*/w.bin")).resolve()
            snapshots.rename(outside)
            for pointer in outside.glob("*/*"):
                pointer.unlink()
                pointer.write_bytes(b"mine")
            kept = next(outside.glob("*/w.bin"))
        link.symlink_to(outside)
        assert command("cache", "rm", str(entry.directory)).code == 0
        assert kept.read_bytes() == b"mine"
        assert not link.is_symlink()

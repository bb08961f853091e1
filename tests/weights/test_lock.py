"""Files whose digest no entry pins: recorded when one first comes, compared ever after, or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nest.errors import ConfigError, DigestError, FetchError
from nest.weights import fetch

from .conftest import REPO, REVISION, LoopbackHub, MakeEntry
from .loopback import Fault, sha256

WEIGHTS = b"bytes that nobody has pinned"
KEY = f"{REPO}@{REVISION}/w.bin"


@pytest.fixture(autouse=True)
def served(hub: LoopbackHub) -> LoopbackHub:
    hub.files["w.bin"] = WEIGHTS
    return hub


def recorded(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(path.read_text())
    assert content["version"] == 1
    files = content["files"]
    assert isinstance(files, dict)
    return files


def test_a_first_pull_records_and_says_so(make_entry: MakeEntry, cache: Path) -> None:
    entry = make_entry({"w.bin": None})
    lock = cache / "nest" / "lock.json"
    (note,) = fetch(entry, cache_dir=cache).notes
    assert note == (
        f"w.bin: the entry pins no digest; {sha256(WEIGHTS)} of this first pull is now the one recorded in {lock}"
    )
    assert recorded(lock) == {KEY: {"sha256": sha256(WEIGHTS), "size": len(WEIGHTS)}}
    (note,) = fetch(entry, cache_dir=cache).notes
    assert note == f"w.bin: the entry pins no digest; this is the one recorded in {lock}"


def test_a_pinned_file_is_not_recorded(make_entry: MakeEntry, cache: Path) -> None:
    assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache).notes == []
    assert not (cache / "nest" / "lock.json").exists()


def test_other_bytes_are_refused_ever_after(served: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    entry = make_entry({"w.bin": None})
    path = fetch(entry, cache_dir=cache).files["w.bin"]
    path.resolve().unlink()
    served.files["w.bin"] = WEIGHTS[::-1]
    with pytest.raises(DigestError) as caught:
        fetch(entry, cache_dir=cache)
    assert f"expected the sha256 {sha256(WEIGHTS)}; it has {sha256(WEIGHTS[::-1])}" in str(caught.value)
    assert f"(the digest is that of {cache / 'nest' / 'lock.json'}, from when the file first came)" in str(
        caught.value
    )
    assert recorded(cache / "nest" / "lock.json")[KEY] == {"sha256": sha256(WEIGHTS), "size": len(WEIGHTS)}


def test_bytes_changed_in_the_cache_are_refused(make_entry: MakeEntry, cache: Path) -> None:
    entry = make_entry({"w.bin": None})
    fetch(entry, cache_dir=cache).files["w.bin"].write_bytes(WEIGHTS[::-1])
    with pytest.raises(DigestError, match=r"is not the pinned 'w\.bin'.*lock\.json"):
        fetch(entry, cache_dir=cache, local_files_only=True)


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_teams_own_file(
    make_entry: MakeEntry, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    lock = tmp_path / "team" / "nest.lock"
    if how == "variable":
        monkeypatch.setenv("NEST_LOCK", str(lock))
    given = str(lock) if how == "argument" else None
    entry = make_entry({"w.bin": None})
    fetch(entry, cache_dir=cache, lock=given)
    assert list(recorded(lock)) == [KEY]
    assert [path.name for path in lock.parent.iterdir()] == ["nest.lock"]
    assert not (cache / "nest" / "lock.json").exists()
    assert lock.read_text().splitlines() == [
        "{",
        '  "files": {',
        f'    "{KEY}": {{',
        f'      "sha256": "{sha256(WEIGHTS)}",',
        f'      "size": {len(WEIGHTS)}',
        "    }",
        "  },",
        '  "version": 1',
        "}",
    ]
    lock.write_text(lock.read_text().replace(sha256(WEIGHTS), "0" * 64))
    with pytest.raises(DigestError, match=r"team/nest\.lock"):
        fetch(entry, cache_dir=tmp_path / "another-machine", lock=given)


class TestRequireHashes:
    """What only this machine has seen is no pin; what a person has committed is one."""

    def test_a_first_pull_is_refused(
        self, served: LoopbackHub, make_entry: MakeEntry, cache: Path, tmp_path: Path
    ) -> None:
        entry = make_entry({"w.bin": None, "pinned": b""})
        with pytest.raises(FetchError) as caught:
            fetch(entry, cache_dir=cache, require_hashes=True, lock=tmp_path / "new.lock")
        assert str(caught.value) == (
            "No digest is known for w.bin of 'some-model', and --require-hashes (require_hashes=True) refuses such "
            "files. A lock file (--lock FILE, or NEST_LOCK) that somebody has checked can hold it."
        )
        assert served.requests == []

    def test_the_caches_own_record_does_not_count(self, make_entry: MakeEntry, cache: Path) -> None:
        entry = make_entry({"w.bin": None})
        fetch(entry, cache_dir=cache)
        with pytest.raises(FetchError, match=r"No digest is known for w\.bin"):
            fetch(entry, cache_dir=cache, require_hashes=True)

    def test_a_named_record_does(self, make_entry: MakeEntry, cache: Path, tmp_path: Path) -> None:
        entry = make_entry({"w.bin": None})
        fetch(entry, cache_dir=cache, lock=tmp_path / "nest.lock")
        assert fetch(entry, cache_dir=cache, lock=tmp_path / "nest.lock", require_hashes=True).files

    def test_a_site_can_ask_for_it(
        self, make_entry: MakeEntry, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "site.toml").write_text("require_hashes = true")
        monkeypatch.setenv("NEST_CONFIG", str(tmp_path / "site.toml"))
        with pytest.raises(FetchError, match=r"and .*/site\.toml refuses such files"):
            fetch(make_entry({"w.bin": None}), cache_dir=cache)

    def test_what_is_pinned_is_let_through(self, make_entry: MakeEntry, cache: Path) -> None:
        assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache, require_hashes=True).files


class TestServerThatContradictsItself:
    """Without a pin, what the server says of the file is compared with what came."""

    @pytest.mark.parametrize(
        ("headers", "words"),
        [
            (
                {"X-Repo-Commit": "f" * 40},
                f"it says that this is of the commit {'f' * 40}, not of {REVISION}",
            ),
            ({"ETag": f'"{"0" * 64}"'}, f"it states the sha256 {'0' * 64}, and what came has"),
        ],
    )
    def test_is_refused(
        self,
        served: LoopbackHub,
        make_entry: MakeEntry,
        cache: Path,
        headers: dict[str, str | None],
        words: str,
    ) -> None:
        served.faults["w.bin"] = Fault(headers=headers)
        with pytest.raises(FetchError, match=f"contradicts itself: {words}"):
            fetch(make_entry({"w.bin": None}), cache_dir=cache)
        assert [path for path in cache.glob("models--*/**/*") if path.is_file()] == []


@pytest.mark.parametrize(
    "content",
    ["{", '{"version": 2, "files": {}}', '{"version": 1, "files": {"a": {"sha256": 1, "size": 2}}}'],
)
def test_a_file_of_another_form(make_entry: MakeEntry, cache: Path, tmp_path: Path, content: str) -> None:
    lock = tmp_path / "nest.lock"
    lock.write_text(content)
    with pytest.raises(
        ConfigError, match=rf"The lock file {lock} cannot be read: .* Expected what nest pull"
    ):
        fetch(make_entry({"w.bin": None}), cache_dir=cache, lock=lock)


def test_a_cache_where_nothing_can_be_recorded(make_entry: MakeEntry, cache: Path) -> None:
    cache.mkdir()
    (cache / "nest").write_text("a file where the record would go")
    entry = make_entry({"w.bin": None})
    (note,) = fetch(entry, cache_dir=cache).notes
    assert "of this first pull is not recorded, because" in note
    with pytest.raises(
        ConfigError, match=rf"The lock file .* cannot be written: .* has the sha256 {sha256(WEIGHTS)}"
    ):
        fetch(entry, cache_dir=cache, lock=cache / "nest" / "team.lock")


_RECORD = """
import sys
from nest.registry import find
from nest.weights.lock import LockFile
from pathlib import Path
weights = find(sys.argv[1]).manifest.weights
lock = LockFile.choose(sys.argv[2], Path(sys.argv[3]))
for number in range(20):
    spec = weights.files[0].model_copy(update={"name": f"{sys.argv[4]}-{number}"})
    lock.record(weights, spec, sha256="0" * 64, size=number)
"""


def test_processes_that_record_at_once(make_entry: MakeEntry, tmp_path: Path) -> None:
    folder, lock = make_entry({"w.bin": None}).directory, tmp_path / "nest.lock"
    command = [sys.executable, "-c", _RECORD, str(folder), str(lock), str(tmp_path / "root")]
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen([*command, str(number)], cwd=root) for number in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    assert len(recorded(lock)) == 60


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"version": true, "files": {}}',
        '{"version": 1, "files": []}',
        f'{{"version": 1, "files": {{"a": {{"sha256": {"1" * 64}, "size": 1}}}}}}',
        f'{{"version": 1, "files": {{"a": {{"sha256": "{"1" * 64}", "size": -1}}}}}}',
    ],
)
def test_what_is_no_lock_file(make_entry: MakeEntry, cache: Path, tmp_path: Path, text: str) -> None:
    lock = tmp_path / "nest.lock"
    lock.write_text(text)
    with pytest.raises(
        ConfigError, match=r"The lock file .* cannot be read: .*Expected what nest pull --lock"
    ):
        fetch(make_entry({"w.bin": None}), cache_dir=cache, lock=lock)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lock": "~nosuchuser/x"}, "The lock file is '~nosuchuser/x': there is no home of that name."),
        ({"cache_dir": "~nosuchuser/x"}, "The cache's folder is '~nosuchuser/x'"),
    ],
)
def test_a_home_that_is_not_there(make_entry: MakeEntry, options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fetch(make_entry({"w.bin": None}), **options)  # type: ignore[arg-type]
    assert words in str(caught.value)

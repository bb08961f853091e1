"""`nest pull` against a loopback hub: what it writes, what it copies, and what it says it would do."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import threading
from pathlib import Path

import pytest

from nest.registry import Entry
from nest.weights import fetch

from .conftest import REPO, REVISION, Command, LoopbackHub, MakeEntry
from .loopback import Fault, sha256

WEIGHTS = b"the publisher's own bytes"
TOKENS = b"{}"


@pytest.fixture
def entry(hub: LoopbackHub, make_entry: MakeEntry) -> Entry:
    hub.files.update({"w.bin": WEIGHTS, "tokens.json": TOKENS})
    return make_entry({"w.bin": WEIGHTS, "tokens.json": TOKENS})


def test_what_came_and_where_from(command: Command, hub: LoopbackHub, entry: Entry) -> None:
    outcome = command("pull", str(entry.directory))
    assert outcome.code == 0
    assert outcome.err == "Fetching some-model: w.bin and tokens.json, 27 B, licence MIT\n"
    origin = f"{hub.endpoint}/{REPO} at {REVISION}"
    assert outcome.out == (
        f"some-model: verified\n  w.bin        25 B  from {origin}\n  tokens.json  2 B   from {origin}\n"
    )
    again = command("pull", str(entry.directory))
    assert (again.out, again.err) == (outcome.out, "")


def test_as_json(command: Command, hub: LoopbackHub, entry: Entry, tmp_path: Path) -> None:
    outcome = command("pull", str(entry.directory), "--json", "--cache-dir", str(tmp_path / "elsewhere"))
    (facts,) = json.loads(outcome.out)
    assert (facts["entry"], facts["license"], facts["notes"]) == ("some-model", "MIT", [])
    assert facts["files"][0] == {
        "name": "w.bin",
        "path": str(tmp_path / "elsewhere" / "models--owner--model" / "snapshots" / REVISION / "w.bin"),
        "size": 25,
        "pinned_sha256": sha256(WEIGHTS),
        "origin": f"{hub.endpoint}/{REPO} at {REVISION}",
    }


def test_offline(command: Command, hub: LoopbackHub, entry: Entry) -> None:
    outcome = command("pull", str(entry.directory), "--offline")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(
        "nest: error: 'w.bin' and 'tokens.json' of 'some-model' are not in the cache ("
    )
    assert hub.requests == []


def test_a_wrong_name_is_said_before_anything_is_fetched(
    command: Command, hub: LoopbackHub, entry: Entry
) -> None:
    outcome = command("pull", str(entry.directory), "whisper-teeny")
    assert outcome.code == 1
    assert outcome.err.startswith("nest: error: No entry is named 'whisper-teeny'.")
    assert hub.requests == []


def test_one_that_fails_among_several_is_named_and_the_others_come(
    command: Command, hub: LoopbackHub, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nest.cli._pull.find", {"good": entry, "bad": entry}.__getitem__)
    asked: list[Entry] = []

    def fetched(which: Entry, **options: object) -> object:
        asked.append(which)
        return fetch(which, ["none"] if len(asked) == 1 else None)

    monkeypatch.setattr("nest.cli._pull.fetch", fetched)
    outcome = command("pull", "bad", "good")
    assert outcome.code == 1
    assert outcome.err.startswith("nest: error: Entry 'some-model' has no file 'none'")
    assert outcome.out.startswith("some-model: verified\n")


def test_all(command: Command, entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nest.cli._pull.entries", lambda: [entry])
    assert command("pull", "--all").out.startswith("some-model: verified\n")


def test_all_names_what_it_leaves_out(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zoo" / "broken").mkdir(parents=True)
    (tmp_path / "zoo" / "broken" / "nest.toml").write_text("[model")
    monkeypatch.setenv("NEST_ZOO", str(tmp_path / "zoo"))
    outcome = command("pull", "--all", "--dry-run")
    assert (outcome.code, outcome.err.count("was left out")) == (0, 1)
    assert outcome.err.startswith("nest: 'broken' was left out. Entry 'broken' is not valid.")


def test_locks_and_required_hashes(
    command: Command, hub: LoopbackHub, make_entry: MakeEntry, tmp_path: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS
    folder, lock = str(make_entry({"w.bin": None}).directory), tmp_path / "nest.lock"
    refused = command("pull", folder, "--require-hashes", "--lock", str(lock))
    assert refused.code == 1
    assert refused.err.startswith(
        "nest: error: No digest is known for w.bin of 'some-model', and --require-h"
    )
    first = command("pull", folder, "--lock", str(lock))
    assert f"{sha256(WEIGHTS)} of this first pull is now" in first.out.replace("\n ", "")
    assert command("pull", folder, "--require-hashes", "--lock", str(lock)).code == 0


class TestCopies:
    """`--local-dir`: to carry to a machine without a network."""

    def test_load_offline_elsewhere(
        self, command: Command, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stick = tmp_path / "stick"
        outcome = command("pull", str(entry.directory), "--local-dir", str(stick))
        assert outcome.out.startswith("some-model: verified, and copied\n")
        assert outcome.out.endswith(
            f"To use {stick} elsewhere: NEST_CONFIG={stick}/config.toml nest run some-model --offline\n"
        )
        copy = stick / REPO / REVISION / "w.bin"
        assert copy.read_bytes() == WEIGHTS
        check = subprocess.run(
            ["sha256sum", "--check", "SHA256SUMS"], cwd=stick, capture_output=True, check=False
        )
        assert (check.returncode, check.stdout.count(b": OK")) == (0, 2)
        # Another machine: empty caches, no hub, the folder at another place.
        moved = stick.rename(tmp_path / "mount")
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setenv("NEST_CONFIG", str(moved / "config.toml"))
        fetched = fetch(entry, cache_dir=tmp_path / "empty", local_files_only=True)
        assert fetched.files["w.bin"] == moved / REPO / REVISION / "w.bin"

    def test_any_web_server_can_serve_them(
        self, command: Command, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        command("pull", str(entry.directory), "--local-dir", str(tmp_path / "models"))
        serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "models"))
        monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            site = tmp_path / "site.toml"
            url = f"http://127.0.0.1:{server.server_port}/{{repo}}/{{revision}}/{{file}}"
            site.write_text(f'sources = ["url"]\n[[mirror]]\nurl = "{url}"\n')
            monkeypatch.setenv("NEST_CONFIG", str(site))
            fetched = fetch(entry, cache_dir=tmp_path / "empty")
            server.shutdown()
        assert fetched.files["w.bin"].read_bytes() == WEIGHTS
        assert fetched.origins["w.bin"] == f"the mirror 127.0.0.1:{server.server_port}"

    def test_a_copy_that_is_there_stays_and_a_damaged_one_is_replaced(
        self, command: Command, entry: Entry, tmp_path: Path
    ) -> None:
        stick = tmp_path / "stick"
        command("pull", str(entry.directory), "--local-dir", str(stick))
        copy, other = stick / REPO / REVISION / "w.bin", stick / REPO / REVISION / "tokens.json"
        before = other.stat().st_ino
        copy.write_bytes(WEIGHTS[::-1])
        (stick / "config.toml").write_text("# ours\n")
        (stick / "SHA256SUMS").write_text(f"{'0' * 64}  of/another/entry\n")
        facts = json.loads(command("pull", str(entry.directory), "--local-dir", str(stick), "--json").out)
        assert facts[0]["files"][0]["copy"] == str(copy)
        assert copy.read_bytes() == WEIGHTS
        assert other.stat().st_ino == before
        assert (stick / "config.toml").read_text() == "# ours\n"
        assert (stick / "SHA256SUMS").read_text().count("\n") == 3

    def test_a_folder_that_cannot_be_written(self, command: Command, entry: Entry, tmp_path: Path) -> None:
        (tmp_path / "stick").write_text("a file")
        outcome = command("pull", str(entry.directory), "--local-dir", str(tmp_path / "stick"))
        assert outcome.code == 1
        assert "cannot be written: Not a directory. Make room or give permission there, or" in outcome.err


class TestDryRun:
    """`--dry-run`: for those who open firewalls and read licences."""

    def test_as_json(
        self, command: Command, hub: LoopbackHub, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("nest.weights.pip.index_host", lambda: "index.example")
        mirror = (
            f'[[weights.mirror]]\npackage = "p==1"\nsha256 = "{"0" * 64}"\nsize = 7\nlicense = "BSD-3"\n'
            f'files = [{{ replaces = "w.bin", member = "m", sha256 = "{"0" * 64}", size = 1 }}]\n'
        )
        entry = make_entry({"w.bin": WEIGHTS, "b": None}, mirror)
        first, second = json.loads(command("pull", str(entry.directory), "--dry-run", "--json").out)
        host = hub.endpoint.removeprefix("http://")
        url = f"{hub.endpoint}/{REPO}/resolve/{REVISION}"
        assert first == {
            "entry": "some-model",
            "host": host,
            "file": "w.bin",
            "size": 25,
            "sha256": sha256(WEIGHTS),
            "license": "MIT",
            "path": None,
            "sources": [
                {
                    "kind": "hub",
                    "host": host,
                    "location": f"{url}/w.bin",
                    "license": "MIT",
                    "size": 25,
                    "sha256": sha256(WEIGHTS),
                },
                {
                    "kind": "package-index",
                    "host": "index.example",
                    "location": "p==1: m",
                    "license": "BSD-3",
                    "size": 7,
                    "sha256": "0" * 64,
                },
            ],
        }
        assert (second["sha256"], second["size"], len(second["sources"])) == (None, None, 1)
        assert hub.requests == []
        lines = command("pull", str(entry.directory), "--dry-run").out.splitlines()
        assert f"MIT      {host}, then index.example  " in lines[1]

    def test_a_folder_is_looked_into_and_the_next_is_named(
        self,
        command: Command,
        hub: LoopbackHub,
        entry: Entry,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        site = tmp_path / "site.toml"
        monkeypatch.setenv("NEST_CONFIG", str(site))
        (tmp_path / "models" / REPO / REVISION).mkdir(parents=True)
        (tmp_path / "models" / REPO / REVISION / "w.bin").write_bytes(WEIGHTS)
        site.write_text(f'[[mirror]]\ndirectory = "{tmp_path / "models"}"\n')
        lines = command("pull", str(entry.directory), "--dry-run").out.splitlines()
        assert "here already" in lines[1]
        assert hub.endpoint.removeprefix("http://") in lines[2]
        assert lines[3] == "1 of 2 files would be fetched, 2 B."
        site.write_text(f'sources = ["directory"]\n{site.read_text()}')
        outcome = command("pull", str(entry.directory), "--dry-run")
        assert "no source" in outcome.out.splitlines()[2]
        assert outcome.out.splitlines()[3:] == ["0 of 2 files would be fetched, 0 B."]
        assert (outcome.code, outcome.err) == (
            1,
            "nest: error: 1 of 2 files could not be fetched: no source that is allowed has them.\n",
        )
        assert command("pull", str(entry.directory)).code == 1

    def test_offline(self, command: Command, hub: LoopbackHub, entry: Entry) -> None:
        words = "nest: error: 2 of 2 files could not be fetched: the network is not to be asked.\n"
        outcome = command("pull", str(entry.directory), "--dry-run", "--offline")
        assert "not here" in outcome.out.splitlines()[1]
        assert (outcome.code, outcome.err) == (1, words)
        outcome = command("pull", str(entry.directory), "--dry-run", "--offline", "--json")
        assert (len(json.loads(outcome.out)), outcome.code, outcome.err) == (2, 1, words)

    def test_required_hashes(self, command: Command, hub: LoopbackHub, make_entry: MakeEntry) -> None:
        entry = make_entry({"w.bin": None})
        options = ("pull", str(entry.directory), "--require-hashes")
        planned, real = command(*options, "--dry-run"), command(*options)
        assert (planned.code, planned.err) == (real.code, real.err)
        assert (planned.code, planned.out) == (1, "")

    def test_as_a_table(self, command: Command, hub: LoopbackHub, entry: Entry) -> None:
        hub.faults["tokens.json"] = Fault(404)
        command("pull", str(entry.directory))
        hub.requests.clear()
        fetch(entry, ["w.bin"])
        hub.requests.clear()
        outcome = command("pull", str(entry.directory), "--dry-run")
        lines = outcome.out.splitlines()
        assert lines[0].split() == ["ENTRY", "FILE", "SIZE", "LICENCE", "HOST", "SHA256"]
        assert lines[1].split() == [
            "some-model",
            "w.bin",
            "25",
            "B",
            "MIT",
            "here",
            "already",
            sha256(WEIGHTS),
        ]
        host = hub.endpoint.removeprefix("http://")
        assert lines[2].split() == ["some-model", "tokens.json", "2", "B", "MIT", host, sha256(TOKENS)]
        assert lines[3] == "1 of 2 files would be fetched, 2 B."
        assert hub.requests == []

    def test_what_the_site_forbids(
        self, command: Command, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "site.toml").write_text('sources = ["directory"]')
        monkeypatch.setenv("NEST_CONFIG", str(tmp_path / "site.toml"))
        assert (
            json.loads(command("pull", str(entry.directory), "--dry-run", "--json").out)[0]["sources"] == []
        )
        assert "no source" in command("pull", str(entry.directory), "--dry-run").out
        (tmp_path / "site.toml").write_text('licenses = ["Apache-2.0"]')
        outcome = command("pull", str(entry.directory), "--dry-run")
        assert (outcome.code, outcome.out) == (1, "")
        assert "is under the licence MIT, which" in outcome.err

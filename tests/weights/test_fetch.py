"""Fetching through the real Hub client against a loopback hub: what comes, what is refused, what is asked."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nest.errors import DigestError, FetchError
from nest.weights import cache_root, fetch

from .conftest import REPO, REVISION, LoopbackHub, MakeEntry

WEIGHTS = bytes(range(256)) * 64


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "hub"


def test_a_file_comes_from_the_hub_into_its_own_layout(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS
    fetched = fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    path = fetched.files["w.bin"]
    assert path == cache / "models--owner--model" / "snapshots" / REVISION / "w.bin"
    assert path.read_bytes() == WEIGHTS
    assert fetched.origins["w.bin"] == f"{hub.endpoint}/{REPO} at {REVISION}"
    assert fetched.notes == []


def test_what_is_cached_asks_no_network(hub: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    hub.files["w.bin"] = WEIGHTS
    entry = make_entry({"w.bin": WEIGHTS})
    first = fetch(entry, cache_dir=cache)
    hub.requests.clear()
    assert fetch(entry, cache_dir=cache) == first
    assert hub.requests == []


def test_only_named_files_come(hub: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    hub.files.update({"a": b"1", "sub/b": b"2"})
    assert list(fetch(make_entry({"a": b"1", "sub/b": b"2"}), ["sub/b"], cache_dir=cache).files) == ["sub/b"]
    assert not any(request.endswith("/a") for request in hub.requests)


def test_a_name_that_the_entry_does_not_pin(make_entry: MakeEntry, cache: Path) -> None:
    with pytest.raises(FetchError, match=r"has no file 'tokeniser\.json': .* Did you mean 'tokenizer\.json'"):
        fetch(make_entry({"tokenizer.json": b""}), ["tokeniser.json"], cache_dir=cache)


def test_other_bytes_are_refused_and_a_later_fetch_heals(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = "other bytes"
    entry = make_entry({"w.bin": WEIGHTS})
    with pytest.raises(DigestError) as caught:
        fetch(entry, cache_dir=cache)
    text = str(caught.value)
    assert "is not the pinned 'w.bin': expected the sha256 " in text
    assert str(cache) in text
    assert "It was not used. Delete it and fetch it again" in text
    with pytest.raises(DigestError):
        fetch(entry, cache_dir=cache, local_files_only=True)
    hub.faults.clear()
    assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS


def test_another_size_is_refused_without_hashing(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS[:-1]
    with pytest.raises(DigestError, match=rf"expected {len(WEIGHTS)} bytes; it has {len(WEIGHTS) - 1}\."):
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)


def test_a_download_that_is_cut_resumes(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = "cut once"
    assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS


def test_a_file_damaged_in_the_cache_is_fetched_again(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS
    entry = make_entry({"w.bin": WEIGHTS})
    path = fetch(entry, cache_dir=cache).files["w.bin"].resolve()
    path.write_bytes(b"\0" + WEIGHTS[1:])
    assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("404", "owner/model at 0123456789abcdef0123456789abcdef01234567 has no file 'w.bin'"),
        ("410", "owner/model has no commit 0123456789abcdef0123456789abcdef01234567 any more"),
        (
            "401",
            "owner/model is not there, or is private and the token does not admit it (status 401): check",
        ),
        ("403", "owner/model is gated: accept its terms at http://127.0.0.1"),
        ("no commit", "is missing the 'X-Repo-Commit' header"),
        ("500", "status 500"),
    ],
)
def test_a_refusal_says_what_the_hub_answered(
    hub: LoopbackHub,
    make_entry: MakeEntry,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    words: str,
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = fault
    with pytest.raises(FetchError) as caught:
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    text = str(caught.value)
    assert text.startswith("'w.bin' of 'some-model' could not be fetched. http://127.0.0.1:")
    assert words in text
    assert not list(cache.rglob("*.incomplete"))


def test_a_hub_that_refuses_connections_is_asked_once(
    make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waited to try again"))
    entry = make_entry({"w.bin": WEIGHTS})
    with pytest.raises(FetchError, match=rf"http://127\.0\.0\.1:{port} cannot be reached \(.*refused"):
        fetch(entry, cache_dir=cache)
    monkeypatch.setattr(
        "huggingface_hub.get_hf_file_metadata", lambda *_, **__: pytest.fail("it asked again")
    )
    with pytest.raises(FetchError, match="cannot be reached"):
        fetch(entry, cache_dir=cache)


def test_a_hub_that_never_answers_is_left(
    make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nest.weights.hub._PROBE_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(FetchError, match=r"cannot be reached \(.*timed out"):
            fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_offline_asks_nothing(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    hub.files["w.bin"] = WEIGHTS
    if how == "variable":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        FetchError, match=r"'w\.bin' of 'some-model' is not in the cache .* nest pull some-model"
    ):
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache, local_files_only=how == "argument")
    assert hub.requests == []


def test_a_warm_fetch_does_not_hash(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files["w.bin"] = WEIGHTS
    entry = make_entry({"w.bin": WEIGHTS})
    fetch(entry, cache_dir=cache)
    monkeypatch.setattr("nest.weights.digests.file_sha256", lambda _: pytest.fail("it hashed again"))
    fetch(entry, cache_dir=cache)


def test_a_cached_file_serves_where_no_record_can_be_written(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, tmp_path: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS
    (cache / "nest").parent.mkdir()
    (cache / "nest").write_text("a file where the records would go")
    fetched = fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert fetched.files["w.bin"].read_bytes() == WEIGHTS


def test_the_cache_root_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEST_CACHE", str(tmp_path))
    assert cache_root() == tmp_path
    monkeypatch.delenv("NEST_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "nest"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_root() == Path.home() / ".cache" / "nest"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_root() == Path.home() / "Library" / "Caches" / "nest"


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Root writes everywhere, so that a test of modes has to be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_cache_that_cannot_be_written(hub: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    hub.files["w.bin"] = WEIGHTS
    entry = make_entry({"w.bin": WEIGHTS})
    fetch(
        entry, cache_dir=cache
    )  # so that the client's modules, which the other user may not read, are loaded
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        with unprivileged():
            with pytest.raises(PermissionError):
                Path(name, "probe").touch()
            with pytest.raises(FetchError) as caught:
                fetch(entry, cache_dir=name)
        assert f"The cache {name} cannot be written: Permission denied" in str(caught.value)
        assert "set HF_HOME (or cache_dir=) to a folder that can be written" in str(caught.value)
        assert list(Path(name).iterdir()) == []

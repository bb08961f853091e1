"""Fetching through the real Hub client against a loopback hub: what comes, what is refused, what is asked."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest

from nest.errors import DigestError, FetchError
from nest.weights import cache_root, fetch

from .conftest import REPO, REVISION, LoopbackHub, MakeEntry
from .loopback import Fault, git_sha1, sha256

WEIGHTS = bytes(range(256)) * 64


def left(cache: Path) -> list[str]:
    """What lies in the Hub client's cache, locks aside."""
    return sorted(path.name for path in cache.glob("models--*/**/*") if not path.is_dir())


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return int(closed.getsockname()[1])


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
    assert hub.requests == [f"/{REPO}/resolve/{REVISION}/w.bin"]  # and nothing else
    assert hub.seen[0]["user-agent"] == "nest"


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
    hub.faults["w.bin"] = Fault(content=bytes(byte ^ 1 for byte in WEIGHTS))
    entry = make_entry({"w.bin": WEIGHTS})
    with pytest.raises(DigestError) as caught:
        fetch(entry, cache_dir=cache)
    text = str(caught.value)
    assert "is not the pinned 'w.bin': expected the sha256 " in text
    assert "It was deleted. Check the network" in text
    assert left(cache) == []
    hub.faults.clear()
    assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS


def test_another_size_is_refused_before_it_comes(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS[:-1]
    with pytest.raises(DigestError, match=rf"expected {len(WEIGHTS)} bytes; it has {len(WEIGHTS) - 1}\."):
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert left(cache) == []


def test_a_body_that_does_not_end_is_left(hub: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    hub.files["w.bin"] = WEIGHTS * 9
    hub.faults["w.bin"] = Fault(headers={"Content-Length": None})
    with pytest.raises(DigestError, match=rf"expected {len(WEIGHTS)} bytes; it has \d+\. It was not taken"):
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert left(cache) == []


def test_a_proxys_notice_is_called_one(hub: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = Fault(content=b"<html>Blocked</html>", headers={"Content-Type": "text/html"})
    with pytest.raises(DigestError, match="it is a web page, such as a proxy's notice"):
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_transfer_that_is_cut_goes_on(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, no_waiting: list[float], ranges: bool
) -> None:
    hub.ranges = ranges
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = Fault(share=0.5, times=1)
    assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS
    assert [asked.get("range") for asked in hub.seen] == [None, f"bytes={len(WEIGHTS) // 2}-"]
    assert no_waiting == [1.0]


def test_a_transfer_that_is_cut_again_and_again_is_given_up_and_continued_later(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, no_waiting: list[float]
) -> None:
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = Fault(share=0.5)
    entry = make_entry({"w.bin": WEIGHTS})
    with pytest.raises(FetchError) as caught:
        fetch(entry, cache_dir=cache)
    assert "the transfer broke off 5 times in a row (" in str(caught.value)
    assert f"{len(WEIGHTS) // 2} of {len(WEIGHTS)} bytes came, and are kept" in str(caught.value)
    assert left(cache) == [f"{sha256(WEIGHTS)}.incomplete"]
    hub.faults.clear()
    hub.seen.clear()
    assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS
    assert [asked["range"] for asked in hub.seen] == [f"bytes={len(WEIGHTS) // 2}-"]
    assert left(cache) == [sha256(WEIGHTS), "w.bin"]


@pytest.mark.parametrize("part", [b"something else", WEIGHTS[:-1] + b"!", WEIGHTS + b"more"])
def test_what_an_earlier_transfer_left_is_not_trusted(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, part: bytes
) -> None:
    hub.files["w.bin"] = WEIGHTS
    partial = cache / "models--owner--model" / "blobs" / f"{sha256(WEIGHTS)}.incomplete"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(part)
    assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS
    assert left(cache) == [sha256(WEIGHTS), "w.bin"]


def test_what_came_whole_before_the_process_died_is_not_asked_for_again(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    partial = cache / "models--owner--model" / "blobs" / f"{sha256(WEIGHTS)}.incomplete"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(WEIGHTS)
    assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS
    assert hub.requests == []


def test_a_file_damaged_in_the_cache_is_fetched_again(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS
    entry = make_entry({"w.bin": WEIGHTS})
    path = fetch(entry, cache_dir=cache).files["w.bin"].resolve()
    path.write_bytes(b"!" + WEIGHTS[1:])
    with pytest.raises(DigestError, match=f"{path.parent.parent}.* is not the pinned 'w.bin'"):
        fetch(entry, cache_dir=cache, local_files_only=True)
    assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            Fault(404),
            "owner/model at 0123456789abcdef0123456789abcdef01234567 has no file 'w.bin'",
        ),
        (Fault(410), "owner/model has no commit 0123456789abcdef0123456789abcdef01234567 any more"),
        (
            Fault(401),
            "owner/model is not there, or is private and the token does not admit it (status 401): check",
        ),
        (
            Fault(
                401, {"X-Error-Code": None, "X-Error-Message": "Invalid credentials in Authorization header"}
            ),
            "the token is refused (status 401): check HF_TOKEN",
        ),
        (Fault(403), "owner/model is gated: accept its terms at http://127.0.0.1"),
        (Fault(500), "status 500"),
        (Fault(429), "status 429: too many requests; wait, or set HF_TOKEN, which raises the limit"),
        (Fault(429, {"Retry-After": "600"}), "status 429; it asks to come back in 600 s"),
        (Fault(304), "status 304"),
    ],
)
def test_a_refusal_says_what_the_hub_answered(
    hub: LoopbackHub,
    make_entry: MakeEntry,
    cache: Path,
    no_waiting: list[float],
    fault: Fault,
    words: str,
) -> None:
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = fault
    with pytest.raises(FetchError) as caught:
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    text = str(caught.value)
    assert text.startswith("'w.bin' of 'some-model' could not be fetched. http://127.0.0.1:")
    assert words in text
    assert left(cache) == []


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (Fault(500, times=1), [1.0]),
        (Fault(503, times=3), [1.0, 2.0, 4.0]),
        (Fault(429, {"Retry-After": "7"}, times=1), [7.0]),
    ],
)
def test_a_refusal_that_passes_is_waited_for(
    hub: LoopbackHub,
    make_entry: MakeEntry,
    cache: Path,
    no_waiting: list[float],
    fault: Fault,
    waits: list[float],
) -> None:
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = fault
    assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS
    assert no_waiting == waits


def test_headers_that_a_proxy_dropped_are_not_missed(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = Fault(headers={"X-Repo-Commit": None, "ETag": None, "Content-Length": None})
    path = fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache).files["w.bin"]
    assert path.resolve().name == sha256(WEIGHTS)
    assert path.read_bytes() == WEIGHTS


def test_the_client_finds_what_was_fetched(hub: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    hub.files.update({"w.bin": WEIGHTS, "config.json": b"{}"})
    hub.small.add("config.json")
    files = fetch(make_entry({"w.bin": WEIGHTS, "config.json": b"{}"}), cache_dir=cache).files
    hub.requests.clear()
    for name, path in files.items():
        found = huggingface_hub.hf_hub_download(REPO, name, revision=REVISION, cache_dir=cache)
        assert found == str(path)
    assert hub.requests == []
    assert files["config.json"].resolve().name == git_sha1(b"{}")
    (repo,) = huggingface_hub.scan_cache_dir(cache).repos
    assert (repo.repo_id, repo.nb_files) == (REPO, 2)


def test_the_token_goes_to_the_hub_and_not_where_it_sends_to(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    store = LoopbackHub()
    store.start()
    store.files["w.bin"] = hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = Fault(location=f"{store.endpoint}/store/{REVISION}/w.bin")
    fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache, token="hf_secret")
    store.stop()
    assert hub.seen[0]["authorization"] == "Bearer hf_secret"
    assert "authorization" not in store.seen[0]


def test_a_password_in_the_endpoint_is_used_and_never_shown(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files["w.bin"] = WEIGHTS
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint.replace("http://", "http://me:secret@"))
    fetched = fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert hub.seen[0]["authorization"].startswith("Basic ")
    assert fetched.origins["w.bin"] == f"{hub.endpoint}/{REPO} at {REVISION}"
    hub.faults["w.bin"] = Fault(403)
    with pytest.raises(FetchError) as caught:
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache / "another")
    assert "secret" not in str(caught.value)


def test_a_range_that_was_not_asked_for(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, no_waiting: list[float]
) -> None:
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = Fault(416)
    with pytest.raises(FetchError, match=r": status 416\."):
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert left(cache) == []


@pytest.mark.parametrize("location", ["round", "http://127.0.0.1:0x/w.bin"])
def test_a_redirect_that_ends_nowhere(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, no_waiting: list[float], location: str
) -> None:
    hub.files["w.bin"] = WEIGHTS
    round_ = f"{hub.endpoint}/{REPO}/resolve/{REVISION}/w.bin"
    hub.faults["w.bin"] = Fault(location=round_ if location == "round" else location)
    with pytest.raises(FetchError, match=r": it is redirected to nowhere \(.+\)\. Check the network"):
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert (no_waiting, left(cache)) == ([], [])


def test_a_body_that_is_compressed_unasked(hub: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    hub.files["w.bin"] = WEIGHTS
    hub.faults["w.bin"] = Fault(content=gzip.compress(WEIGHTS), headers={"Content-Encoding": "gzip"})
    assert fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS
    assert hub.seen[0]["accept-encoding"] == "identity"


def test_a_folder_that_has_the_files_name(hub: LoopbackHub, make_entry: MakeEntry, cache: Path) -> None:
    hub.files["w.bin"] = WEIGHTS
    folder = cache / "models--owner--model" / "snapshots" / REVISION / "w.bin"
    folder.mkdir(parents=True)
    with pytest.raises(FetchError) as caught:
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert f"cannot be written: Is a directory ({folder})." in str(caught.value)
    assert [path.name for path in folder.parent.iterdir()] == ["w.bin"]


def test_a_redirect_to_a_host_that_is_blocked_names_it(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path
) -> None:
    hub.files.update({"w.bin": WEIGHTS, "small": b"1"})
    hub.faults["w.bin"] = Fault(location=f"http://127.0.0.1:{closed_port()}/w.bin")
    with pytest.raises(FetchError) as caught:
        fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert re.search(
        rf"{hub.endpoint} sends the file from 127\.0\.0\.1:\d+, which cannot be reached \(.*refused",
        str(caught.value),
    )
    # The Hub itself was reached, so that files which it serves itself still come.
    assert fetch(make_entry({"small": b"1"}), cache_dir=cache).files["small"].read_bytes() == b"1"


def test_a_hub_that_refuses_connections_is_asked_once(
    make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = f"http://127.0.0.1:{closed_port()}"
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waited to try again"))
    entry = make_entry({"w.bin": WEIGHTS})
    with pytest.raises(FetchError, match=rf"{re.escape(endpoint)} cannot be reached \(.*refused"):
        fetch(entry, cache_dir=cache)
    monkeypatch.setattr("nest.weights.transfer.transfer", lambda *_, **__: pytest.fail("it asked again"))
    with pytest.raises(FetchError, match="cannot be reached"):
        fetch(entry, cache_dir=cache)


def test_a_hub_that_never_answers_is_left(
    make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch, no_waiting: list[float]
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(FetchError, match=r"cannot be reached \(.*timed out\)"):
            fetch(make_entry({"w.bin": WEIGHTS}), cache_dir=cache)
    assert no_waiting == [1.0]


def test_files_come_at_once_and_one_that_fails_stops_the_others(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{number}.bin": bytes([number]) * 999 for number in range(6)}
    hub.files.update(files)
    entry = make_entry(files)
    fetched = fetch(entry, cache_dir=cache)
    assert list(fetched.files) == list(files)
    assert {name: path.read_bytes() for name, path in fetched.files.items()} == files
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    hub.faults = {"0.bin": Fault(share=0.5, stall=True), "1.bin": Fault(404)}
    with pytest.raises(FetchError, match=r"'1\.bin' of 'some-model' could not be fetched"):
        fetch(entry, cache_dir=cache.parent / "another")


def test_what_comes_is_said(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.files.update({"a": b"1", "b": b"22"})
    entry = make_entry({"a": b"1", "b": b"22"})
    fetch(entry, ["a"], cache_dir=cache)
    fetch(entry, cache_dir=cache)
    fetch(entry, cache_dir=cache)
    assert capsys.readouterr().err == (
        "Fetching some-model: a, 1 B, licence MIT\nFetching some-model: b, 2 B, licence MIT\n"
    )
    fetch(entry, cache_dir=cache.parent / "another", progress=False)
    assert capsys.readouterr().err == ""
    fetch(entry, cache_dir=cache.parent / "a-third", progress=True)
    assert "\r\x1b[Ksome-model  [" in capsys.readouterr().err


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


def test_a_cache_that_cannot_be_written(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other user may not look into the folder of the test, which is an error of its own.
    monkeypatch.setattr("nest.weights.site.machine_file", lambda: Path("/none/config.toml"))
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

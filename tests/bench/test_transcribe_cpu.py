"""`nest.bench.transcribe_cpu`: what is heard, turns of processes, and the table; contenders are scripted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nest.bench import transcribe_cpu
from nest.bench._hearers import Heard, Hearer, Turns
from nest.bench._hearing_report import report, row_of
from nest.bench._material import RATE, Spoken, material
from nest.bench.peers.speech import openai_name

from ..docs.markdown import ROOT

SCRIPTED = """
import sys
from nest.bench._hearing import serve

def load(threads):
    print("a library's own words")
    calls = []
    def hear(samples):
        calls.append(len(samples))
        if {dies!r} and len(samples) == 3:
            raise SystemExit
        return f"{says} {{len(samples)}} {{len(calls)}}"
    return hear

serve(load, sys.argv[1], 1, ("numpy",))
"""


def scripted(recordings: Path, says: str, *, dies: bool = False) -> Hearer:
    command = [sys.executable, "-c", SCRIPTED.format(says=says, dies=dies), str(recordings)]
    return Hearer(command, 1, {"PYTHONPATH": str(ROOT)})


def test_turns_go_on_without_those_that_end(tmp_path: Path) -> None:
    recordings = tmp_path / "recordings.npz"
    np.savez(recordings, *(np.zeros(n, np.float32) for n in (5, 3)))
    with Turns() as turns:
        turns.start("a", scripted(recordings, "a"))
        turns.start("b", scripted(recordings, "b", dies=True))
        turns.start("gone", Hearer([sys.executable, "-c", "pass"], 1, {}))
        turns.round(0)
        turns.round(1, backwards=True)
        turns.round(0)
    assert turns.failed == {"gone": "did not start", "b": "ended over recording 1"}
    assert list(turns.found) == ["a"]
    found = turns.found["a"]
    # The first call warms up, and is no turn.
    assert [turn["text"] for turn in found.turns[0]] == ["a 5 2", "a 5 4"]
    assert found.text(1) == "a 3 3"
    assert found.changed(0)
    assert len(found.seconds(0)) == 2
    assert found.peak_mib > 1
    assert set(found.ready) == {"load_s", "first_s", "versions", "peak_mib"}
    assert found.ready["versions"] == {"numpy": np.__version__}


def heard(texts: list[str], seconds: list[float], peak: float = 100.0) -> Heard:
    first, *others = texts
    turns = {0: [{"seconds": s, "busy_s": 2 * s, "text": first, "peak_mib": peak} for s in seconds]}
    turns |= {
        n: [{"seconds": 1.0, "busy_s": 1.0, "text": t, "peak_mib": 1.0}] for n, t in enumerate(others, 1)
    }
    return Heard({"load_s": 0.5, "first_s": 1.0, "versions": {}, "peak_mib": 1.0}, turns)


def test_rows_and_table() -> None:
    spoken = [
        Spoken("long", np.zeros(4 * RATE, np.float32), "one colour and two"),
        Spoken("b", np.zeros(RATE, np.float32), "say it", worse=False),
        Spoken("b in noise", np.zeros(RATE, np.float32), "say it"),
    ]
    turns = Turns()
    turns.found = {
        "faster-whisper f32": heard(["One color, and too.", "Say it", "Say"], [1.0, 2.0, 4.0]),
        "nest": heard(["One color and two", "Say it all", ""], [1.0, 1.0, 1.0], peak=200.0),
    }
    turns.failed = {"x": "did not start"}
    rows = [row_of(name, turns, spoken) for name in ("faster-whisper f32", "nest", "x")]
    theirs, ours, gone = rows
    assert (ours.median_s, ours.real_time_factor, ours.busy_s, ours.peak_mib) == (1.0, 0.25, 2.0, 200.0)
    # Of 1, 1/2 and 1/4 in each round, not of the medians.
    assert ours.of_peer == 0.5
    assert theirs.long is not None
    assert (theirs.long.errors, theirs.long.length) == (1, 4)
    assert ours.clips is not None
    assert (ours.clips.insertions, ours.clips.length) == (1, 2)
    assert ours.worse is not None
    assert (ours.worse.deletions, ours.worse.length) == (2, 2)
    assert (gone.median_s, gone.note) == (None, "did not start")
    facts = {
        "environment": {"date": "2026-11-30", "processor": "P", "cpus": 2, "numpy": "2"}, "threads": 2, "rounds": 3,
        "load_average": 0.1, "seconds": 4.0, "recordings": ["long", "b"],
    }  # fmt: skip
    lines = list(report(rows, facts, spoken[0]))
    assert lines[0].startswith("2026-11-30, P, 2 threads, 3 rounds in turn")
    cells = [cell.strip() for cell in lines[5].strip("|").split("|")]
    assert cells == [
        "nest", "1.00", "1.00", "1.00", "0.2500", "2.00", "0.50", "0.50", "200", "1 of 2 (50.0 %)",
        "0 of 4 (0.0 %)", "2 of 2 (100.0 %)", "",
    ]  # fmt: skip
    assert len({line.count("|") for line in lines[2:7]}) == 1
    assert lines[-1] == "faster-whisper f32, the long recording: '2' is 'too'."


def test_material_is_made_of_the_clips() -> None:
    found = {one.name: one for one in material(ROOT / "assets" / "audio")}
    long = found["long"]
    assert next(iter(found)) == "long"
    assert len(found) == 1 + 4 * 5 + 1
    assert len(long.samples) == pytest.approx(58.38 * RATE, abs=200)
    assert long.reference.count("made amiable himself") == 2
    clip, quiet = found["jfk"].samples, found["jfk, -20 dB"].samples
    assert np.allclose(quiet, 0.1 * clip, atol=1e-7)
    noise = found["jfk, noise at 5 dB"].samples.astype(np.float64) - clip
    assert 10 * np.log10(np.mean(clip.astype(np.float64) ** 2) / np.mean(noise**2)) == pytest.approx(
        5, abs=0.1
    )
    spectrum = np.abs(np.fft.rfft(found["jfk, 8 kHz"].samples))
    above = len(spectrum) * 4500 // 8000
    assert spectrum[above:].max() < 1e-3 * spectrum.max()
    assert found["jfk, 8 kHz"].samples.dtype == np.float32


@pytest.mark.parametrize(
    ("hub", "openai"),
    [
        ("model.encoder.conv1.weight", "encoder.conv1.weight"),
        ("model.encoder.embed_positions.weight", "encoder.positional_embedding"),
        ("model.encoder.layers.3.self_attn.k_proj.weight", "encoder.blocks.3.attn.key.weight"),
        ("model.encoder.layers.0.self_attn_layer_norm.bias", "encoder.blocks.0.attn_ln.bias"),
        ("model.encoder.layer_norm.weight", "encoder.ln_post.weight"),
        ("model.decoder.layers.1.encoder_attn.out_proj.bias", "decoder.blocks.1.cross_attn.out.bias"),
        ("model.decoder.layers.1.encoder_attn_layer_norm.weight", "decoder.blocks.1.cross_attn_ln.weight"),
        ("model.decoder.layers.1.final_layer_norm.weight", "decoder.blocks.1.mlp_ln.weight"),
        ("model.decoder.layers.1.fc2.weight", "decoder.blocks.1.mlp.2.weight"),
        ("model.decoder.embed_tokens.weight", "decoder.token_embedding.weight"),
        ("model.decoder.layer_norm.bias", "decoder.ln.bias"),
    ],
)
def test_names_of_the_peer_s_parameters(hub: str, openai: str) -> None:
    assert openai_name(hub) == openai


def test_a_peer_s_python_needs_nothing_of_nest_s() -> None:
    code = "import sys, nest.bench._peer_hearers; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert {"numpy", "pydantic", "onnxruntime"}.isdisjoint(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--peers VENV says where the peers are installed"),
        (["--only", "nobody"], "--only 'nobody' leaves nobody"),
        (["--only", "nest", "--rounds", "0"], "--rounds is at least 1"),
    ],
)
def test_wrong_usage(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["transcribe_cpu", *arguments])
    with pytest.raises(SystemExit):
        transcribe_cpu.main()
    assert message in capsys.readouterr().err

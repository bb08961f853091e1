"""Entries as StableHLO: a program with jax and without nest runs them by what `io.json` says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest

SCRIPT = """
import json
from pathlib import Path

import jax
import jax.export
import numpy as np
from safetensors.numpy import load_file

folder = Path(__file__).parent
io = json.loads((folder / "io.json").read_text())
params = load_file(folder / io["weights"])
dtypes = {"f32": "float32", "i32": "int32"}
states = {
    path: np.zeros(s["shape"], dtypes[s["dtype"]])
    for e in io["entries"].values()
    for group in ("kept", "written")
    for path, s in e[group].items()
}


def run(name, *arguments):
    facts = io["entries"][name]
    call = jax.export.deserialize(bytearray((folder / facts["file"]).read_bytes())).call
    given = [np.asarray(a, dtypes[x["dtype"]]) for a, x in zip(arguments, facts["arguments"], strict=True)]
    kept, written = ({path: states[path] for path in facts[group]} for group in ("kept", "written"))
    results, after = call(params, kept, written, *given)
    states.update(after)
    return results


given = np.load(folder / "given.npz")
got = {"encoded": run("encode", given["mel"])[0]}
run("listen", given["mel"][:1])
got["prefilled"] = run("prefill", given["tokens"], [3])[0]
got["stepped"] = run("step", [[7]], [3])[0]
bias = np.zeros(97, "float32")
by_name = {"tokens": given["tokens"], "lengths": [3], "out": np.zeros((1, 8)), "end": 5}
by_name |= {"bias": bias, "first_bias": bias}
got["ids"] = run("greedy", *(by_name[x["name"]] for x in io["entries"]["greedy"]["arguments"]))[0]
np.savez(folder / "got.npz", **got)
"""


@pytest.fixture(scope="module")
def folder(tiny: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stablehlo") / "tiny"
    nest.save(tiny("torch"), made, "stablehlo")
    return made


def test_a_program_without_nest_gets_the_model_s_results(
    folder: Path, tiny: Callable[..., Any], stranger: Callable[..., str]
) -> None:
    rng = np.random.default_rng(2)
    mel, tokens = (
        rng.standard_normal((2, 10, 26)).astype(np.float32),
        rng.integers(0, 97, (1, 3)).astype(np.int32),
    )
    np.savez(folder / "given.npz", mel=mel, tokens=tokens)
    (folder / "script.py").write_text(SCRIPT)
    stranger(folder / "script.py")
    with np.load(folder / "got.npz") as arrays:
        got = dict(arrays)
    model = tiny("reference", precision="f64")
    session = model.new_session()
    session.listen(mel[:1])
    # Two rows of encode, whose B is symbolic.
    want = {
        "encoded": model.encode(mel),
        "prefilled": session.prefill(tokens),
        "stepped": session.step([[7]], 3),
    }
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, atol=2e-5 * np.abs(array).max(), err_msg=name)
    np.testing.assert_array_equal(got["ids"], session.greedy(tokens, np.zeros((1, 8), np.int32), 5)[0])


def test_io_json_says_how_an_entry_is_called(folder: Path) -> None:
    io = json.loads((folder / "io.json").read_text())
    assert (io["version"], io["platforms"], io["weights"]) == (1, ["cpu", "cuda"], "model.safetensors")
    prefill = io["entries"]["prefill"]
    assert prefill["arguments"] == [
        {"name": "tokens", "dtype": "i32", "shape": [1, "S"]},
        {"name": "lengths", "dtype": "i32", "shape": [1]},
    ]
    assert prefill["rules"] == ["S <= Capacity", "S <= 17"]
    assert prefill["results"] == [{"dtype": "f32", "shape": [1, 97]}]
    assert set(prefill["kept"]) == {f"decoder_layers.{i}.cross_{k}" for i in range(4) for k in "kv"}
    assert prefill["written"]["decoder_layers.0.self_k"] == {"dtype": "f32", "shape": [1, 3, 17, 8]}
    assert {p.name for p in folder.iterdir()} >= {
        f"{n}.{k}" for n in io["entries"] for k in ("jax_export", "mlirbc")
    }


def test_the_platforms_are_a_choice(tiny: Callable[..., Any], tmp_path: Path) -> None:
    import jax.export

    nest.save(tiny("reference"), tmp_path, "stablehlo", platforms=["tpu"])
    exported = jax.export.deserialize(bytearray((tmp_path / "encode.jax_export").read_bytes()))
    assert exported.platforms == ("tpu",)

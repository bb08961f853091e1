"""`nest bench`: turns, medians, what is wrong has no speed, and what is kept."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.bench import sweep
from nest.bench._compare import fault
from nest.bench._contenders import Method, contender
from nest.bench._lane import Lane
from nest.bench._work import Work, figures, job_of
from nest.bench.entries import bench, methods_of, save, weights_of
from nest.errors import FetchError, MissingDependencyError
from nest.loading import program_of
from nest.registry import find, zoo_directory
from nest.registry.bench import BenchRun, read_bench

METHODS = methods_of(["torch", "jax"], ["exact"], graphs=False)
RIGHT = np.ones((1, 1000), np.float32)


class FakeLane:
    """Answers as a lane does: results, then times that rise by a millisecond a turn."""

    def __init__(self, result: Any, order: list[str], error: str | None = None) -> None:
        self.result, self.order, self.error, self.turn = result, order, error, 0

    def ask(self, what: str, **facts: Any) -> dict[str, Any]:
        self.order.append(f"{what} {facts['key']}")
        if what == "load":
            if self.error:
                return {"error": self.error}
            np.savez(facts["into"], embed=self.result)
            return {"load_s": 0.5, "first_s": 2.0, "peak_mib": 100.0}
        self.turn += 1
        return {"ms": {"embed": 10.0 * self.turn}, "peak_mib": 200.0} if what == "run" else {}


class LaneWithout(FakeLane):
    """A lane whose framework cannot be imported."""

    def ask(self, what: str, **facts: Any) -> dict[str, Any]:
        return {"error": "torch is not installed", "missing": "torch"}


def measured(
    results: dict[str, Any], rounds: int = 3, errors: dict[str, str] | None = None
) -> tuple[BenchRun, list[str]]:
    order: list[str] = []
    lanes = {m.key: FakeLane(results.get(m.key, RIGHT), order, (errors or {}).get(m.key)) for m in METHODS}
    work = Work("resnet-18", threads=1)
    return bench("resnet-18", METHODS, work, rounds=rounds, lane_of=lambda m: lanes[m.key]), order  # type: ignore[arg-type, return-value]


@pytest.fixture(autouse=True)
def no_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody reads the random weights of these runs."""
    monkeypatch.setattr("nest.bench.entries.lively_parameters", lambda *_: {})
    monkeypatch.setattr("nest.bench.entries.write_safetensors", lambda *_: None)


class TestRun:
    def test_medians_of_turns_that_alternate(self) -> None:
        run, order = measured({})
        assert [entry for entry in order if entry.startswith("run")] == [
            f"run {key}"
            for key in ("transformers-eager", "nest-torch", "nest-jax", "nest-jax", "nest-torch",
                        "transformers-eager", "transformers-eager", "nest-torch", "nest-jax")
        ]  # fmt: skip
        torch = next(method for method in run.methods if method.key == "nest-torch")
        assert torch.metrics == {
            "embed_ms": 20.0, "pictures_per_s": 50.0, "load_s": 0.5, "first_s": 2.0, "peak_mib": 200.0,
        }  # fmt: skip
        assert run.reference == "transformers-eager"
        assert {"device": "cpu", "dtype": "f32", "threads": 1, "batch": 1}.items() <= run.workload.items()
        assert "new_tokens" not in run.workload  # pictures have none

    def test_a_wrong_result_has_no_speed_and_no_turn(self) -> None:
        run, order = measured({"nest-jax": 2 * RIGHT})
        jax = next(method for method in run.methods if method.key == "nest-jax")
        assert jax.error == (
            "embed: max|Δ| 1.0e+00 to the reference, 1.0e+00 of the largest; allowed are 1.1e-06 of the largest"
        )
        assert (jax.metrics, jax.max_abs_diff) == ({}, 1.0)
        assert "run nest-jax" not in order

    def test_one_that_does_not_load_leaves_the_others(self) -> None:
        run, _ = measured({}, errors={"nest-torch": "out of memory"})
        errors = {method.key: method.error for method in run.methods}
        assert errors == {"transformers-eager": None, "nest-torch": "out of memory", "nest-jax": None}

    def test_a_framework_that_is_not_there_is_no_row(self) -> None:
        lane = LaneWithout(RIGHT, [])
        with pytest.raises(MissingDependencyError, match="torch is not installed"):
            bench("resnet-18", METHODS, Work("resnet-18"), lane_of=lambda _: lane)  # type: ignore[arg-type, return-value]

    def test_without_a_reference_the_first_that_works_is_it(self) -> None:
        run, _ = measured({}, errors={"transformers-eager": "not here"})
        assert run.reference == "nest-torch"

    def test_a_reference_that_is_not_finite_is_none(self) -> None:
        run, _ = measured({"transformers-eager": np.nan * RIGHT})
        assert run.reference == "nest-torch"
        assert {method.key: method.error for method in run.methods} == {
            "transformers-eager": "NaN or infinite",
            "nest-torch": None,
            "nest-jax": None,
        }

    def test_a_second_run_replaces_the_first_and_no_other_machine_s(self, tmp_path: Path) -> None:
        folder = tmp_path / "resnet-18"
        shutil.copytree(zoo_directory() / "resnet-18", folder)
        (folder / "bench.json").unlink(missing_ok=True)
        run, _ = measured({})
        elsewhere = run.model_copy(update={"environment": {**run.environment, "processor": "another"}})
        for one in (elsewhere, run, run):
            save(one, find(folder))
        kept = read_bench(folder, "x")
        assert [one.environment["processor"] == "another" for one in kept] == [False, True]


class TestFault:
    WORK = Work("whisper-tiny")

    def test_tokens_decide_in_f32_alone(self) -> None:
        entry, ids = find("whisper-tiny"), np.arange(24)[None]
        other = ids.copy()
        other[0, 20] = 7
        assert fault(entry, self.WORK, {"tokens": ids}, {"tokens": ids}).text is None
        found = fault(entry, self.WORK, {"tokens": other}, {"tokens": ids})
        assert found.text == "tokens: 23 of 24 are the reference's"
        assert fault(entry, replace(self.WORK, dtype="f16"), {"tokens": other}, {"tokens": ids}).text is None

    def test_what_is_not_finite_is_wrong(self) -> None:
        got = {"encode": np.array([[np.nan, 1.0]])}
        assert fault(find("whisper-tiny"), self.WORK, got, {"encode": np.ones((1, 2))}).text == (
            "encode: NaN or infinite"
        )

    @pytest.mark.parametrize(("off", "wrong"), [(4e-6, False), (1e-4, True)])
    def test_twice_the_tolerance_is_allowed_between_two(self, off: float, wrong: bool) -> None:
        right = np.ones((1, 2))
        found = fault(find("whisper-tiny"), self.WORK, {"encode": right + off}, {"encode": right})
        assert (found.text is not None) is wrong


class TestWork:
    @pytest.mark.parametrize(
        ("name", "kind", "output", "shapes"),
        [
            ("whisper-tiny", "speech", "encode", {"mel": (2, 80, 3000), "tokens": (2, 4)}),
            ("smollm2-135m-instruct", "decoder", "prefill", {"tokens": (2, 128)}),
            ("bge-small-en-v1.5", "text", "embed", {"tokens": (2, 64), "lengths": (2,), "types": (2, 64)}),
            ("siglip-base-patch16-224", "pictures", "embed_image", {"pixels": (2, 3, 224, 224), "mask": (2, 196)}),
        ],
    )  # fmt: skip
    def test_jobs(self, name: str, kind: str, output: str, shapes: dict[str, tuple[int, ...]]) -> None:
        entry = find(name)
        job = job_of(entry, program_of(entry), Work(name, batch=2))
        assert (job.kind, job.output) == (kind, output)
        assert {key: array.shape for key, array in job.arguments.items()} == shapes

    def test_figures_of_a_decoder(self) -> None:
        found = figures("decoder", Work("x", new_tokens=33), {"prefill": 100.0, "generate": 420.0})
        assert found["step_ms"] == 10.0
        assert found["tokens_per_s"] == pytest.approx(33 / 0.42)

    def test_graphs_are_of_torch_alone(self) -> None:
        titles = [method.title for method in methods_of(["torch", "jax"], ["exact", "fast"], graphs=True)]
        assert titles == [
            "transformers (eager)",
            "nest torch, CUDA graphs",
            "nest torch, fast, CUDA graphs",
            "nest jax",
            "nest jax, fast",
        ]

    def test_weights_that_cannot_be_had(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fetch(*_: Any, **__: Any) -> Any:
            raise FetchError("no network")

        monkeypatch.setattr("nest.bench.entries.fetch", fetch)
        assert weights_of("resnet-18", None, offline=True) == "random"
        with pytest.raises(FetchError):
            weights_of("resnet-18", "real", offline=True)


SMALL = {
    "smollm2-135m-instruct": ("prefill", "tokens"),
    "whisper-tiny.en": ("encode", "prefill", "tokens"),
    "bge-small-en-v1.5": ("embed",),
    "modernbert-base": ("embed",),
    "resnet-18": ("embed",),
    "vit-base-patch16-224": ("embed",),
    "clip-vit-base-patch32": ("embed",),
    "siglip-base-patch16-224": ("embed",),
}
"""What each kind of job gives."""


@pytest.mark.parametrize("name", SMALL)
def test_contenders_agree(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference library and every backend do one job: the entry's, at its tiny configuration."""
    pytest.importorskip("transformers")
    monkeypatch.setattr("nest.bench._contenders.CAPACITY", 16)
    folder = small(name, tmp_path)
    work = Work(str(folder), threads=1, prompt_tokens=7, new_tokens=5, text_tokens=9)
    weights = drawn(folder, tmp_path / "model.safetensors")
    right = contender(Method("transformers"), work, weights).results()
    assert set(right) == set(SMALL[name])
    for method in (Method("torch"), Method("torch", "fast"), Method("jax"), Method("onnx", "fast")):
        made = contender(method, work, weights)
        assert fault(find(folder), work, made.results(), right).text is None, method.title
        for piece in made.pieces.values():
            piece()


def small(name: str, folder: Path) -> Path:
    """A copy of an entry whose own size is the tiny one, over the definition of the zoo."""
    copied = folder / name
    shutil.copytree(zoo_directory() / name, copied, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    entry = find(name)
    text = (copied / "nest.toml").read_text("utf-8")
    # Its ids are of the whole vocabulary.
    text = re.sub(
        r"^\[generation\]\n.*?(?=^\[|\Z)",
        "[generation]\nend_of_text = 1\n\n",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    before, _, rest = text.partition("[generics]\n")
    _, bracket, after = rest.partition("\n[check]")
    generics = {**entry.manifest.generics, **entry.manifest.tiny}
    lines = [f"{key} = {_toml(value)}" for key, value in generics.items()]
    source = entry.manifest.source.path
    if not source.startswith("@"):
        before = before.replace(f'path = "{source}"', f'path = "@{name}/{source}"')
    (copied / "nest.toml").write_text(
        before + "[generics]\n" + "\n".join(lines) + "\n" + bracket + after, "utf-8"
    )
    return copied


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def drawn(folder: Path, file: Path) -> str:
    """A file of random weights."""
    from nest.ir.inventory import parameters
    from nest.ir.parammap import TensorSpec
    from nest.verify.weights import lively_parameters
    from nest.weights.writer import write_safetensors

    program = program_of(find(folder))
    values = lively_parameters(program)
    specs = {path: TensorSpec(tuple(spec.shape), "f32") for path, spec in parameters(program).items()}
    write_safetensors(file, specs, values.__getitem__)
    return str(file)


@pytest.mark.parametrize("name", ["clip-vit-base-patch32", "siglip-base-patch16-224"])
def test_the_library_places_square_pictures(name: str, tmp_path: Path) -> None:
    """At the model's own size the library takes places from ids that no checkpoint has."""
    pytest.importorskip("transformers")
    folder = small(name, tmp_path)
    manifest = folder / "nest.toml"
    grid = {key: find(folder).generics[key] for key in ("Patch", "Grid")}
    side = grid["Patch"] * grid["Grid"]
    text = re.sub(r"^(Height|Width) = \d+$", rf"\1 = {side}", manifest.read_text("utf-8"), flags=re.MULTILINE)
    manifest.write_text(text, "utf-8")
    work, weights = Work(str(folder), threads=1), drawn(folder, tmp_path / "model.safetensors")
    right = contender(Method("transformers"), work, weights).results()
    got = contender(Method("torch"), work, weights).results()
    assert np.isfinite(right["embed"]).all()
    assert fault(find(folder), work, got, right).text is None


def test_a_lane_tells_what_went_wrong_and_goes_on() -> None:
    lane = Lane(1)
    try:
        assert lane.ask("run", key="nobody") == {"error": "KeyError: 'nobody'"}
        assert lane.ask("drop", key="nobody") == {}
        assert lane.ask("device", backend="torch", device="cpu") == {}
    finally:
        lane.end()
    assert lane.ask("run", key="x") == {"error": "the process ended with code 0"}


class TestSweep:
    @pytest.fixture(autouse=True)
    def fakes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class NoLane:
            def __init__(self, *_: Any, **__: Any) -> None:
                pass

            def end(self) -> None:
                pass

        def fake(name: str, methods: Any, work: Work, **_: Any) -> BenchRun:
            run, _order = measured({})
            return run.model_copy(update={"workload": {**run.workload, "dtype": work.dtype}})

        monkeypatch.setattr(sweep, "Lane", NoLane)
        monkeypatch.setattr(sweep, "bench", fake)

    def test_sixteen_bits_first_and_one_file(self, tmp_path: Path) -> None:
        sweep.main(
            ["--out", str(tmp_path), "--device", "cpu", "--only", "resnet-50", "resnet-18", "qwen3-8b"]
        )
        made = json.loads((tmp_path / "bench.json").read_text("utf-8"))
        assert list(made["entries"]) == ["resnet-18", "resnet-50"]  # by size
        assert [run["workload"]["dtype"] for run in made["entries"]["resnet-18"]] == ["f16", "f32"]
        assert made["skipped"] == {"qwen3-8b ": "8.2e9 parameters, and at most 2.0e9 are measured"}

    def test_what_would_begin_too_late_is_skipped(self, tmp_path: Path) -> None:
        sweep.main(["--out", str(tmp_path), "--device", "cpu", "--only", "resnet-18", "--seconds", "0"])
        made = json.loads((tmp_path / "bench.json").read_text("utf-8"))
        assert made["entries"] == {}
        assert set(made["skipped"]) == {"resnet-18 f16", "resnet-18 f32"}

    def test_an_import_keeps_what_is_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = tmp_path / "resnet-18"
        shutil.copytree(zoo_directory() / "resnet-18", folder)
        (folder / "bench.json").unlink(missing_ok=True)
        run, _ = measured({})
        save(run, find(folder))
        monkeypatch.setattr(sweep, "find", lambda _: find(folder))
        other = {**run.model_dump(), "environment": {"processor": "another"}}
        (tmp_path / "all.json").write_text(json.dumps({"entries": {"resnet-18": [other]}}), "utf-8")
        sweep.main(["--import", str(tmp_path / "all.json")])
        assert [one.environment["processor"] for one in read_bench(folder, "x")] == [
            "another",
            run.environment["processor"],
        ]

"""`parity.json` and `bench.json`: what replaces what, what a bad file is told, and that nothing is half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nest.errors import InputError, ManifestError
from nest.registry import bench, find, names, parity
from nest.registry.bench import BenchRun, read_bench, write_bench
from nest.registry.parity import ParityRun, read_parity, write_parity

DIGEST = "0" * 64


def row(backend: str, difference: float = 1e-6, **facts: Any) -> dict[str, Any]:
    given = {"output": "encode", "backend": backend, "plan": "exact", "dtype": "f32", "batches": [1, 3]}
    return {**given, "difference": difference, **facts}


def matrix(*rows: dict[str, Any], **facts: Any) -> ParityRun:
    about = {"configuration": "tiny", "weights": "random", "input": "drawn", "program": DIGEST}
    return ParityRun.model_validate(
        {**about, "conditions": {"date": "2026-11-30"}, **facts, "rows": list(rows)}
    )


def speed(processor: str = "A", device: str = "cpu", ms: float = 1.0, **workload: Any) -> BenchRun:
    return BenchRun.model_validate(
        {
            "date": "2026-11-30",
            "environment": {"processor": processor, "cpus": 2, "torch": "2.13.0"},
            "workload": {"device": device, "dtype": "f32", "rounds": 5, **workload},
            "methods": [
                {"method": "nest torch", "kind": "nest", "metrics": {"encode_ms": ms}, "key": "nest-torch"}
            ],
            "reference": None,
        }
    )


def speeds(
    *keys: str, date: str = "2026-11-30", ms: float = 1.0, difference: float | None = None, **workload: Any
) -> dict[str, Any]:
    methods = [
        {
            "method": key,
            "kind": "reference" if key == "eager" else "nest",
            "key": key,
            "metrics": {"encode_ms": ms},
            "max_abs_diff": difference,
        }
        for key in keys
    ]
    return {**speed(**workload).model_dump(), "date": date, "methods": methods}


class TestParity:
    def test_a_file_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        runs = [matrix(row("torch"), row("jax", status="failed", reason="over 1.0e-12"))]
        write_parity(tmp_path, runs)
        assert read_parity(tmp_path, "x") == runs
        lines = (tmp_path / "parity.json").read_text("utf-8").splitlines()
        assert sum('"output": "encode"' in line for line in lines) == 2  # a row a line

    def test_an_entry_without_one_has_none(self, tmp_path: Path) -> None:
        assert read_parity(tmp_path, "x") == []

    def test_a_backend_measured_alone_leaves_the_others_rows(self) -> None:
        before = [matrix(row("torch"), row("jax"))]
        new, old = parity.merged(before, matrix(row("torch", 2e-6), conditions={"date": "2026-12-01"}))
        assert [r.difference for r in new.rows] == [2e-6]
        assert [r.backend for r in old.rows] == ["jax"]
        assert old.conditions["date"] == "2026-11-30"

    @pytest.mark.parametrize(
        "other",
        [{"configuration": "full"}, {"weights": "real"}, {"input": "audio"}],
        ids=["configuration", "weights", "input"],
    )
    def test_another_setting_lives_beside(self, other: dict[str, str]) -> None:
        before = [matrix(row("torch"), **other)]
        assert parity.merged(before, matrix(row("torch"))) == [matrix(row("torch")), *before]

    def test_another_type_and_plan_live_beside(self) -> None:
        before = [matrix(row("torch"), row("torch", plan="fast"), row("torch", dtype="f16"))]
        _, old = parity.merged(before, matrix(row("torch")))
        assert [(r.plan, r.dtype) for r in old.rows] == [("fast", "f32"), ("exact", "f16")]

    def test_a_run_that_is_replaced_wholly_goes(self) -> None:
        assert (
            len(parity.merged([matrix(row("torch"), row("torch", output="step"))], matrix(row("torch")))) == 1
        )


class TestBench:
    def test_another_machine_is_kept_beside(self) -> None:
        assert [run.machine[1] for run in bench.merged([speed("A")], speed("B"))] == ["B", "A"]

    def test_the_same_machine_and_work_is_replaced(self) -> None:
        # How often it was measured, and with which versions, makes no other work of it.
        (run,) = bench.merged([speed()], speed(ms=2.0, rounds=9))
        assert run.methods[0].metrics == {"encode_ms": 2.0}

    def test_a_method_measured_alone_leaves_the_others(self) -> None:
        before = {
            **speeds("eager", "torch", date="2026-11-29", rounds=5, load_average=0.2),
            "reference": "eager",
        }
        new = speeds("torch", "jax", date="2026-11-30", ms=2.0, rounds=9, load_average=0.1)
        (run,) = bench.merged([BenchRun.model_validate(before)], BenchRun.model_validate(new))
        assert {m.key: m.metrics["encode_ms"] for m in run.methods} == {
            "eager": 1.0,
            "torch": 2.0,
            "jax": 2.0,
        }
        assert (run.date, run.reference) == ("2026-11-30", "eager")
        assert (run.workload["rounds"], run.workload["load_average"]) == (5, 0.2)

    def test_the_newest_date_counts_whichever_came_last(self) -> None:
        late, early = "2026-11-30T01:00:00+00:00", "2026-11-30T02:00:00+02:00"
        runs = [BenchRun.model_validate(speeds(key, date=date)) for key, date in (("a", late), ("b", early))]
        assert bench.merged(runs[:1], runs[1])[0].date == late

    def test_a_distance_to_another_reference_is_not_shown(self) -> None:
        before = {**speeds("eager", "jax", difference=1e-6), "reference": "eager"}
        new = {**speeds("torch", difference=0.0), "reference": "torch"}
        (run,) = bench.merged([BenchRun.model_validate(before)], BenchRun.model_validate(new))
        assert run.reference == "eager"
        assert {m.key: m.max_abs_diff for m in run.methods} == {"eager": 1e-6, "jax": 1e-6, "torch": None}

    def test_other_versions_are_kept_apart(self) -> None:
        new = speed(ms=2.0)
        new = new.model_copy(update={"environment": {**new.environment, "torch": "2.14.0"}})
        assert bench.merged([speed()], new) == [new, speed()]

    def test_another_definition_s_run_goes(self) -> None:
        old, new = (
            BenchRun.model_validate({**speeds(key), "program": digit * 64}) for key, digit in ("a0", "b1")
        )
        assert bench.merged([old], new) == [new]

    @pytest.mark.parametrize("other", [{"device": "cuda"}, {"threads": 1}])
    def test_other_work_is_kept_beside(self, other: dict[str, Any]) -> None:
        assert len(bench.merged([speed()], speed(**other))) == 2

    def test_a_file_is_read_as_it_was_written(self, tmp_path: Path) -> None:
        write_bench(tmp_path, [speed("A"), speed("B")])
        assert read_bench(tmp_path, "x") == [speed("A"), speed("B")]

    def test_a_method_that_failed_has_no_speed(self, tmp_path: Path) -> None:
        data = speed().model_dump()
        data["methods"][0]["error"] = "other tokens"
        (tmp_path / "bench.json").write_text(json.dumps([data]), "utf-8")
        with pytest.raises(ManifestError, match="'nest torch' has an error and metrics"):
            read_bench(tmp_path, "x")

    def test_the_form_of_the_card(self, tmp_path: Path) -> None:
        """As another project's card has it: ISO dates, texts for counts, `null` where nothing failed."""
        run = {
            "date": "2026-09-28T19:33:54+00:00",
            "environment": {"python": "3.12.3", "gpus": "1"},
            "workload": {"device": "cuda", "offload_gib": 8.0, "batch": 1},
            "methods": [
                {
                    "method": "eager", "kind": "reference", "metrics": {"encode_ms": 2.5, "peak_vram_mib": 934.0},
                    "max_abs_diff": 0.0, "notes": "", "error": None, "key": "eager",
                }
            ],
            "reference": "eager",
        }  # fmt: skip
        (tmp_path / "bench.json").write_text(json.dumps([run]), "utf-8")
        assert read_bench(tmp_path, "x")[0].reference == "eager"


BAD: dict[str, tuple[str, Any, str]] = {
    "an object": ("parity.json", {}, "parity.json:1: expected a list of runs; came an object"),
    "no JSON": ("bench.json", "[", "bench.json:1: not valid JSON: "),
    "a misspelt key": ("parity.json", [{"configuraton": "tiny"}], "'[0].configuraton': unknown key. Did you mean"),
    "a row's status": (
        "parity.json",
        [{**matrix(row("torch")).model_dump(exclude_none=True), "rows": [row("torch", status="good")]}],
        "'[0].rows[0].status': input should be 'ok', 'failed' or 'left out'; came 'good'",
    ),
    "a speed that is none": (
        "bench.json",
        [{**speed().model_dump(), "methods": [{"method": "a", "kind": "nest", "key": "a", "metrics": {"ms": -1.0}}]}],
        "'[0].methods[0].metrics.ms': input should be greater than or equal to 0; came -1.0",
    ),
    "a speed that is too much": (
        "bench.json", [speeds("a", ms=1e308)],
        "'[0].methods[0].metrics.encode_ms': expected 0, or a figure from 1e-12 to 1e+15; came 1e+308",
    ),
    "a speed that is too little": ("bench.json", [speeds("a", ms=1e-300)], "came 1e-300"),
    "two methods of a key": (
        "bench.json", [speeds("a", "b", "a")], "'[0].methods': 2 methods have the key 'a'; expected one",
    ),
    "no such reference": (
        "bench.json", [{**speeds("a", "b"), "reference": "c"}],
        "'[0].reference': expected the key of a method: a, b; came 'c'",
    ),
    "a date in words": (
        "bench.json", [speeds("a", date="yesterday")],
        "'[0].date': expected an ISO date, such as '2026-11-30' or '2026-11-30T17:04:44+00:00'; came 'yesterday'",
    ),
    "a day that is none": ("bench.json", [speeds("a", date="2026-02-30")], "came '2026-02-30'"),
    "a date without hyphens": ("bench.json", [speeds("a", date="20261130")], "came '20261130'"),
    "a matrix's date": (
        "parity.json",
        [{**matrix(row("torch")).model_dump(exclude_none=True), "conditions": {"date": "30.11.2026"}}],
        "'[0].conditions': expected an ISO date",
    ),
    "two rows of a place": (
        "parity.json", [{**matrix(row("torch")).model_dump(exclude_none=True), "rows": [row("torch")] * 2}],
        "'[0].rows': 2 rows are of 'encode' on torch, exact, f32, batches [1, 3]; expected one",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("file", "content", "words"), BAD.values(), ids=BAD)
def test_a_bad_file_is_named_with_its_key(tmp_path: Path, file: str, content: Any, words: str) -> None:
    text = content if isinstance(content, str) else json.dumps(content, indent=1)
    (tmp_path / file).write_text(text, "utf-8")
    with pytest.raises(ManifestError) as raised:
        (read_parity if file == "parity.json" else read_bench)(tmp_path, "x")
    assert words in str(raised.value)
    assert file in str(raised.value)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bench(tmp_path, [speed("A")])

    def full(*_: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_bench(tmp_path, [speed("B")])
    assert read_bench(tmp_path, "x") == [speed("A")]
    assert [file.name for file in tmp_path.iterdir()] == ["bench.json"]


def test_what_the_zoo_has_is_read_and_written_alike(tmp_path: Path) -> None:
    """The committed files are as a save writes them, so that the next one changes what was measured alone."""
    seen = 0
    for name in names():
        folder = find(name).directory
        for file, read, write in (
            ("parity.json", read_parity, write_parity),
            ("bench.json", read_bench, write_bench),
        ):
            if (folder / file).is_file():
                write(tmp_path, read(folder, name))  # type: ignore[operator]
                assert (tmp_path / file).read_bytes() == (folder / file).read_bytes(), f"{name}/{file}"
                seen += 1
    assert seen >= 35


@pytest.mark.parametrize(
    ("check", "name"), [(bench.check_bench, "bench.json"), (parity.check_parity, "parity.json")]
)
def test_a_target_is_looked_at_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Any, name: str
) -> None:
    check(tmp_path, "x")
    assert list(tmp_path.iterdir()) == []  # a look leaves nothing

    def read_only(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", read_only)
    with pytest.raises(InputError, match=f"{name} cannot be written: Permission denied"):
        check(tmp_path, "x")
    (tmp_path / name).write_text("{", "utf-8")
    with pytest.raises(ManifestError, match=f"{name}:1: not valid JSON"):
        check(tmp_path, "x")

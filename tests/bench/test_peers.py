"""Peers of `nest bench`: scripted modules in place of them, in processes and in this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nest
from nest.bench import _environments
from nest.bench._compare import fault
from nest.bench._contenders import Method
from nest.bench._lane import Lane
from nest.bench._loaded import Given
from nest.bench._run import Run
from nest.bench._task import Task, ragged_texts, task_of
from nest.bench._work import Work
from nest.bench.entries import bench, methods_of
from nest.bench.peers import PEERS
from nest.bench.peers import speech as speech_peers
from nest.bench.peers import text as text_peers
from nest.bench.peers.load import absent, loaded, versions
from nest.errors import InputError
from nest.registry import find
from nest.registry.bench import BenchRun, merged, read_bench, write_bench

LLAMA = """
class Llama:
    def __init__(self, path, **options):
        self.path, self.options, self.kept = path, options, False

    def reset(self):
        self.kept = False

    def generate(self, prompt, temp, top_k):
        assert (temp, top_k, self.kept) == (0.0, 1, False)
        self.kept = True
        yield from range(prompt[0], 10**6)
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A folder that other Pythons find a scripted `llama_cpp` in, and nest."""
    (tmp_path / "llama_cpp.py").write_text(LLAMA, "utf-8")
    (tmp_path / "nest").symlink_to(Path(nest.__file__).parent, target_is_directory=True)
    np.savez(tmp_path / "task.npz", ids=np.array([7, 8], np.int32), count=np.int32(3))
    return tmp_path


def given(folder: Path, **others: Any) -> dict[str, Any]:
    return {
        "task": str(folder / "task.npz"), "facts": {}, "folder": str(folder), "weights": "model.gguf", "threads": 1,
        "device": "cpu", "batch": 1, **others,
    }  # fmt: skip


class TestLane:
    def test_a_peer_does_its_job_in_a_process_of_its_own(self, environment: Path) -> None:
        lane = Lane(1, path=str(environment))
        try:
            into = str(environment / "out.npz")
            said = lane.ask("load_peer", key="x", name="llama.cpp", given=given(environment), into=into)
            assert "error" not in said
            assert {"load_s", "first_s", "peak_mib"} <= said.keys()
            assert "peak_vram_mib" not in said
            with np.load(into) as results:
                assert results["ids"].tolist() == [7, 8, 9]
            assert list(lane.ask("run", key="x")["ms"]) == ["task"]
        finally:
            lane.end()

    def test_one_that_breaks_says_how_and_the_lane_goes_on(self, environment: Path) -> None:
        (environment / "llama_cpp.py").write_text("raise RuntimeError('no such   instruction')", "utf-8")
        lane = Lane(1, path=str(environment))
        try:
            said = lane.ask("load_peer", key="x", name="llama.cpp", given=given(environment), into="")
            assert said == {"error": "RuntimeError: no such instruction"}
            said = lane.ask("load_peer", key="x", name="whisper.cpp", given=given(environment), into="")
            assert "absent" in said
        finally:
            lane.end()

    def test_a_python_without_what_nest_depends_on_can_run_it(self) -> None:
        code = "import sys, nest.bench._lane, nest.bench.peers.load; print(*sys.modules)"
        made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        heavy = {"numpy", "pydantic", "torch", "transformers", "faster_whisper", "whisper", "llama_cpp"}
        assert heavy.isdisjoint(made.stdout.split())


class TestAbsent:
    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        names = {"llama_cpp", "pywhispercpp"}
        monkeypatch.setattr("nest.bench.peers.load.find_spec", lambda name: name if name in names else None)
        return names

    @pytest.mark.parametrize(
        ("name", "device", "weights", "why"),
        [
            ("openai-whisper", "cpu", "", "not installed"),
            (
                "llama.cpp",
                "cpu",
                "",
                "not measured: it needs a GGUF file, named by --peer-weights llama.cpp=PATH",
            ),
            ("whisper.cpp", "cuda", "x", "not measured: nothing is known of it on cuda"),
            ("llama.cpp", "cuda", "x", None),
        ],
    )
    def test_why(self, name: str, device: str, weights: str, why: str | None) -> None:
        assert absent(name, device, weights) == why

    def test_versions_of_what_is_a_distribution(self) -> None:
        assert versions("llama.cpp").keys() <= {"llama-cpp-python"}


class TestEnvironments:
    def test_the_first_that_has_a_peer(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        has = {"a": {"whisper"}, "b": {"whisper", "llama_cpp"}}
        monkeypatch.setattr(_environments, "_installed", lambda python: has[python.parents[1].name])
        folders = [tmp_path / "a", tmp_path / "b"]
        find_ = _environments.python_with
        assert find_("openai-whisper", folders) == tmp_path / "a" / "bin" / "python"
        assert find_("llama.cpp", folders) == tmp_path / "b" / "bin" / "python"
        assert find_("whisper.cpp", folders) is None

    def test_a_folder_without_a_python(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="is no virtual environment"):
            _environments.check_environments([tmp_path])

    def test_this_python_is_asked(self) -> None:
        assert _environments._installed(Path(sys.executable)) <= {peer.module for peer in PEERS.values()}


class TestSettings:
    """What each peer is asked for; modules are scripted."""

    def test_faster_whisper(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Any] = []

        class WhisperModel:
            def __init__(self, folder: str, **options: Any) -> None:
                asked.append((folder, options))

            def transcribe(self, samples: Any, **options: Any) -> Any:
                asked.append(options)
                return [SimpleNamespace(text=" And so"), SimpleNamespace(text=" it is.")], None

        monkeypatch.setitem(sys.modules, "faster_whisper", SimpleNamespace(WhisperModel=WhisperModel))
        facts = Given({"samples": np.zeros(8, np.float32)}, {}, "", "ct2", 2, "cpu", 1)
        assert speech_peers.faster_whisper(facts)() == {"text": "And so it is."}
        assert asked == [
            ("ct2", {"device": "cpu", "compute_type": "float32", "cpu_threads": 2}),
            {"language": "en", "beam_size": 1, "vad_filter": False},
        ]
        cuda = Given(facts.task, {}, "", "ct2", 2, "cuda", 1)
        speech_peers.faster_whisper(cuda, int8=True)
        assert asked[-1][1]["compute_type"] == "int8_float16"

    def test_llama_cpp(self, environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(environment))
        made = loaded("llama.cpp", given(environment))
        assert made.results()["ids"].tolist() == [7, 8, 9]
        assert made.results()["ids"].tolist() == [7, 8, 9]  # the prompt is read each time
        monkeypatch.delitem(sys.modules, "llama_cpp")
        assert made.load_s is not None

    def test_sentence_transformers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        config = SimpleNamespace(auto_model=SimpleNamespace(config=SimpleNamespace(hidden_size=3)))
        asked: list[Any] = []

        class Model:
            def __init__(self, **options: Any) -> None:
                asked.append(options)

            def encode(self, texts: list[str], **options: Any) -> Any:
                asked.append((texts, options))
                return np.ones((len(texts), 3), np.float32)

        modules = SimpleNamespace(
            Transformer=lambda *a, **k: asked.append((a, k)) or config,
            Pooling=lambda *a, **k: (a, k),
            Normalize=lambda: "unit",
        )
        library = SimpleNamespace(
            SentenceTransformer=Model, sentence_transformer=SimpleNamespace(modules=modules)
        )
        for name, module in (
            ("torch", SimpleNamespace(set_num_threads=lambda count: asked.append(count))),
            ("sentence_transformers", library),
            ("sentence_transformers.sentence_transformer", library.sentence_transformer),
        ):
            monkeypatch.setitem(sys.modules, name, module)
        facts = {"max_tokens": 256, "pooling": "mean", "normalize": True}
        job = text_peers.sentence_transformers(
            Given({"texts": np.array(["a", "b"])}, facts, "here", "", 2, "cpu", 8)
        )
        assert job()["vectors"].shape == (2, 3)
        assert asked == [
            2,
            (("here",), {"max_seq_length": 256}),
            {"modules": [config, ((3,), {"pooling_mode": "mean"}), "unit"], "device": "cpu"},
            (["a", "b"], {"batch_size": 8, "show_progress_bar": False}),
        ]


class FakeLane:
    """A lane whose contender says this, and takes these milliseconds in turn."""

    def __init__(
        self, results: dict[str, Any], ms: dict[str, list[float]], absent: str | None = None
    ) -> None:
        self.results, self.ms, self.absent, self.asked = results, ms, absent, []  # type: ignore[var-annotated]

    def ask(self, what: str, **facts: Any) -> dict[str, Any]:
        self.asked.append(what)
        if what in ("load", "load_peer"):
            if self.absent:
                return {"absent": self.absent}
            np.savez(facts["into"], **self.results)
            return {"load_s": 0.5, "first_s": 2.0, "peak_mib": 100.0, "versions": {"llama-cpp-python": "1"}}
        if what == "run":
            return {"ms": {name: times.pop(0) for name, times in self.ms.items()}, "peak_mib": 200.0}
        return {}


RIGHT = [5, 6, 7, 8]
NAME = "smollm2-135m-instruct"


def rows(
    *lanes: tuple[str, FakeLane], rounds: int = 2, beside: str | None = None
) -> dict[str, dict[str, Any]]:
    methods = [Method(name) for name, _ in lanes]
    work = Work(NAME, weights="real", new_tokens=4)
    task = Task(Path("task.npz"), Path("files"), {})
    known = {Method(name).key: lane for name, lane in lanes}
    run = Run(find(NAME), work, "decoder", None, known, lambda _: None, task, {"llama.cpp": "x"})  # type: ignore[arg-type]
    run.load(methods)
    run.turns(rounds)
    other = run.beside(beside)
    found = {m.key: run.row(m, other) for m in methods}
    BenchRun.model_validate(
        {"date": "2026-11-30", "environment": {}, "workload": {}, "methods": list(found.values())}
    )
    return found


class TestRun:
    def ours(self, ms: list[float] | None = None) -> FakeLane:
        times = {"prefill": [5.0, 5.0], "generate": [20.0, 30.0], "task": ms or [40.0, 60.0]}
        return FakeLane({"prefill": np.ones((1, 4), np.float32), "tokens": [1], "ids": RIGHT}, times)

    def test_spread_ratio_and_throughput(self) -> None:
        peer = FakeLane({"ids": RIGHT}, {"task": [80.0, 180.0]})
        found = rows(("torch", self.ours()), ("llama.cpp", peer))
        ours, theirs = found["nest-torch"], found["llama.cpp"]
        assert theirs["metrics"] == {
            "task_ms": 130.0, "task_tokens_per_s": 30.77, "load_s": 0.5, "first_s": 2.0, "peak_mib": 200.0,
        }  # fmt: skip
        assert (theirs["spread"], theirs["kind"]) == ({"task_ms": [80.0, 180.0]}, "peer")
        assert (ours["ratio"], theirs["ratio"]) == (1.0, 2.5)  # 80/40 and 180/60: of rounds, not of medians
        assert theirs["max_abs_diff"] is None  # ids have no distance
        assert theirs["notes"] == f"{PEERS['llama.cpp'].settings}; llama-cpp-python 1"

    def test_beside_another(self) -> None:
        peer = FakeLane({"ids": RIGHT}, {"task": [80.0, 120.0]})
        found = rows(("torch", self.ours()), ("llama.cpp", peer), beside="llama")
        assert (found["nest-torch"]["ratio"], found["llama.cpp"]["ratio"]) == (0.5, 1.0)

    def test_other_tokens_have_no_speed_and_no_turn(self) -> None:
        peer = FakeLane({"ids": [5, 6, 9, 8]}, {"task": [1.0, 1.0]})
        row = rows(("torch", self.ours()), ("llama.cpp", peer))["llama.cpp"]
        assert row["error"] == "tokens: the first 2 of 4 are the reference's"
        assert (row["metrics"], "run" in peer.asked) == ({}, False)

    def test_what_is_not_there_is_no_failure(self) -> None:
        peer = FakeLane({}, {}, absent="not installed")
        row = rows(("torch", self.ours()), ("llama.cpp", peer))["llama.cpp"]
        assert (row["absent"], row["error"], row["metrics"]) == ("not installed", None, {})
        assert "run" not in peer.asked

    def test_without_anything_to_compare_with_it_is_not_measured(self) -> None:
        ours = FakeLane({"prefill": np.ones((1, 4), np.float32)}, {"prefill": [1.0, 1.0]})
        peer = FakeLane({"ids": RIGHT}, {"task": [1.0, 1.0]})
        row = rows(("torch", ours), ("llama.cpp", peer))["llama.cpp"]
        assert row["absent"] == "not measured: nothing is there to compare its results with"

    def test_peers_of_another_job_and_random_weights(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nest.bench.entries.lively_parameters", lambda *_: {})
        monkeypatch.setattr("nest.bench.entries.write_safetensors", lambda *_: None)
        lane = FakeLane({"prefill": np.ones((1, 4), np.float32)}, {"prefill": [1.0], "generate": [9.0]})
        methods = methods_of(["torch"], ["exact"], graphs=False, library=False, peers=list(PEERS))
        run = bench(NAME, methods, Work(NAME), rounds=1, lane_of=lambda _: lane)  # type: ignore[arg-type, return-value]
        assert {m.key: m.absent for m in run.methods} == {
            "nest-torch": None,
            "llama.cpp": "not measured: it needs the entry's real weights and files",
        }


class TestText:
    WORK = Work("whisper-tiny.en")

    @pytest.mark.parametrize(
        ("came", "error"),
        [
            ("And so, my fellow Americans ask not", None),  # how a window is padded may decide a comma
            ("And so my fellow Americans ask knot", "text: word 7 of 7 is 'not', and came as 'knot'"),
            ("And so my fellow Americans", "text: word 6 of 7 is 'ask', and came as ''"),
        ],
    )
    def test_words_are_compared(self, came: str, error: str | None) -> None:
        right = {"text": np.array("And so my fellow Americans, ask not")}
        assert fault(find("whisper-tiny.en"), self.WORK, {"text": np.array(came)}, right).text == error

    def test_vectors_off_by_more_than_the_bound(self) -> None:
        entry, right = find("all-MiniLM-L6-v2"), {"vectors": np.eye(3, dtype=np.float32)}
        work = Work(entry.name, weights="real")
        assert fault(entry, work, {"vectors": right["vectors"] + np.float32(1e-7)}, right).text is None
        assert "vectors: max" in str(fault(entry, work, {"vectors": right["vectors"] + 1e-3}, right).text)

    def test_texts_of_a_job_are_the_same_each_time(self) -> None:
        assert ragged_texts(20, odd=False) == ragged_texts(20, odd=False)
        assert all(text.strip() for text in ragged_texts(20, odd=False))

    def test_random_weights_have_no_whole_job(self) -> None:
        with task_of(find(NAME), "decoder", Work(NAME)) as task:
            assert task is None


class TestFile:
    def run(self, **given: Any) -> BenchRun:
        method = {"method": "a", "kind": "nest", "key": "a", "metrics": {"task_ms": 1.0}, "ratio": 0.5}
        peer = {"method": "b", "kind": "peer", "key": "b"}
        return BenchRun.model_validate(
            {
                "date": "2026-11-30", "environment": {"processor": "x"}, "workload": {"batch": 1}, "beside": "b",
                "methods": [method, {**peer, **given}],
            }
        )  # fmt: skip

    def test_one_that_is_gone_keeps_its_figures(self) -> None:
        old = self.run(metrics={"task_ms": 2.0})
        (made,) = merged([old], self.run(absent="not installed"))
        assert {m.key: m.metrics for m in made.methods} == {"a": {"task_ms": 1.0}, "b": {"task_ms": 2.0}}

    def test_ratios_to_another_are_not_kept(self) -> None:
        old = self.run(metrics={"task_ms": 2.0})
        new = self.run().model_copy(update={"methods": [old.methods[1]], "beside": None})
        (made,) = merged([old], new)
        assert [m.ratio for m in made.methods] == [None, None]

    def test_an_absent_one_has_no_figures(self) -> None:
        with pytest.raises(ValueError, match="was not measured, and has metrics or an error"):
            self.run(absent="not installed", metrics={"task_ms": 1.0})

    def test_a_write_that_is_broken_off_leaves_the_old_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = write_bench(tmp_path / "mine.json", [self.run()])
        before = file.read_bytes()

        def broken(self: Path, *_: Any) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(Path, "replace", broken)
        with pytest.raises(KeyboardInterrupt):
            write_bench(file, [self.run(), self.run()])
        assert (file.read_bytes(), list(tmp_path.iterdir())) == (before, [file])
        assert len(read_bench(file, "x")) == 1

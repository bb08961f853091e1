"""`nest bench`: what is refused before anything is measured, and what is kept. Nothing is measured here."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nest.backends import installed
from nest.bench import _devices
from nest.bench.entries import LIBRARY
from nest.errors import CallError, MissingDependencyError
from nest.registry.bench import BenchRun
from nest.verify import _matrix

from .conftest import Command, Outcome


@pytest.fixture(autouse=True)
def frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are installed, as far as anybody asks."""
    monkeypatch.setattr(installed, "find_spec", lambda _: object())
    monkeypatch.setattr(_devices, "find_spec", lambda _: object())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The keys of the methods of each run that was asked for, empty for `verify`; all succeed at once."""
    runs: list[list[str]] = []

    def bench(name: str, methods: Any, work: Any, **_: Any) -> BenchRun:
        runs.append([method.key for method in methods])
        return result()

    monkeypatch.setattr("nest.bench.entries.bench", bench)
    monkeypatch.setattr("nest.cli._verify._measured", lambda *_: runs.append([]) or [])
    return runs


def result(error: str | None = None, kind: str = "nest") -> BenchRun:
    method = {"method": "a", "kind": kind, "key": "a", "error": error}
    return BenchRun.model_validate(
        {"date": "2026-11-30", "environment": {}, "workload": {}, "methods": [method]}
    )


def bench(command: Command, *arguments: str) -> Outcome:
    given = () if "--peers" in arguments else ("--peers", "none")
    return command("bench", *arguments, *given, "--weights", "random", "--plan", "exact")  # type: ignore[no-any-return]


class TestDevice:
    @pytest.fixture(autouse=True)
    def wrong(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        """The backends that do not compute on a GPU, with the reason."""
        wrong: dict[str, str] = {}

        def found(backends: Any, device: str) -> dict[str, str]:
            return {name: wrong[name] for name in backends if name in wrong and device == "cuda"}

        monkeypatch.setattr("nest.bench.entries.elsewhere", found)
        return wrong

    def test_a_backend_that_is_not_there_is_refused(
        self, command: Command, asked: list[list[str]], wrong: dict[str, str]
    ) -> None:
        wrong["jax"] = "jax computes on cpu here."
        outcome = bench(command, "resnet-18", "--device", "cuda", "--backend", "jax")
        assert (outcome.code, outcome.err) == (1, "nest: error: jax computes on cpu here.\n")
        assert asked == []
        assert bench(command, "resnet-18", "--backend", "jax").code == 0

    def test_where_none_was_named_the_others_are_measured(
        self, command: Command, asked: list[list[str]], wrong: dict[str, str]
    ) -> None:
        wrong |= {"jax": "no jax there.", "nnx": "no nnx there.", "onnx": "no onnx there."}
        outcome = bench(command, "resnet-18", "--device", "cuda")
        assert outcome.code == 0
        assert "nest: left out: no jax there.\n" in outcome.err
        assert asked == [["transformers-eager", "nest-torch"]]

    def test_without_any_it_is_an_error(
        self, command: Command, asked: list[list[str]], wrong: dict[str, str]
    ) -> None:
        wrong |= {name: f"no {name}." for name in (*installed.BACKENDS, LIBRARY)}
        outcome = bench(command, "resnet-18", "--device", "cuda")
        assert (outcome.code, asked) == (1, [])
        assert outcome.err == "nest: error: no torch. no jax. no nnx. no onnx.\n"


class TestCheckDevice:
    @pytest.fixture
    def module(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """What every framework is here."""
        module = SimpleNamespace(__version__="9")
        monkeypatch.setattr(_devices, "import_module", lambda _: module)
        return module

    @pytest.mark.parametrize("backend", ["torch", LIBRARY])
    def test_torch(self, module: SimpleNamespace, backend: str) -> None:
        module.cuda = SimpleNamespace(is_available=lambda: False)
        with pytest.raises(CallError, match=f"{backend} cannot be measured on cuda: torch 9 finds no CUDA"):
            _devices.check_device(backend, "cuda")
        _devices.check_device(backend, "cpu")
        module.cuda = SimpleNamespace(is_available=lambda: True)
        _devices.check_device(backend, "cuda")

    @pytest.mark.parametrize("backend", ["jax", "nnx"])
    @pytest.mark.parametrize(("has", "default"), [(False, "cpu"), (True, "cpu"), (True, "gpu")])
    def test_jax(self, module: SimpleNamespace, backend: str, has: bool, default: str) -> None:
        known = {name: SimpleNamespace(platform=name) for name in ("cpu", "gpu")}

        def devices(platform: str = "") -> list[Any]:
            if platform and not has:
                raise RuntimeError("Unknown backend cuda")
            return [known["gpu" if platform else default]]

        module.devices = devices
        if default == "gpu":
            _devices.check_device(backend, "cuda")
            return
        with pytest.raises(CallError, match=f"{backend} cannot be measured on cuda: jax 9 computes on cpu"):
            _devices.check_device(backend, "cuda")

    def test_onnx_has_a_message_of_its_own(self, module: SimpleNamespace) -> None:
        module.get_available_providers = lambda: ["CPUExecutionProvider"]
        with pytest.raises(CallError, match=r"no CUDAExecutionProvider, but CPUExec.*onnxruntime-gpu"):
            _devices.check_device("onnx", "cuda")
        module.get_available_providers = lambda: ["CUDAExecutionProvider"]
        _devices.check_device("onnx", "cuda")

    def test_a_process_of_its_own_is_asked_once_each(self) -> None:
        seen: list[str] = []

        class FakeLane:
            def __init__(self, threads: int, *, pinned: bool) -> None:
                assert not pinned

            def ask(self, what: str, *, backend: str, device: str) -> dict[str, Any]:
                seen.append(f"{what} {backend} {device}")
                return {"error": "no"} if backend == "jax" else {}

            def end(self) -> None:
                seen.append("end")

        assert _devices.elsewhere(["torch", "jax", "jax"], "cuda", FakeLane) == {"jax": "no"}  # type: ignore[arg-type]
        assert seen == ["device torch cuda", "device jax cuda", "end"]
        assert _devices.elsewhere(["torch"], "cpu", FakeLane) == {}  # type: ignore[arg-type]


class TestFrameworks:
    @pytest.mark.parametrize("verb", ["bench", "verify"])
    def test_one_that_is_not_installed_is_an_error(
        self, command: Command, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch, verb: str
    ) -> None:
        monkeypatch.setattr(installed, "find_spec", lambda name: None if name == "torch" else object())
        outcome = command(verb, "resnet-18", "--backend", "torch")
        assert (outcome.code, outcome.out, asked) == (1, "", [])
        assert outcome.err == (
            "nest: error: The package 'torch' is needed for the backend 'torch', and it is not installed. Install it "
            "with: pip install 'nest-zoo[torch]'\n"
        )

    def test_a_library_that_is_not_installed_is_left_out_in_words(
        self, command: Command, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_devices, "find_spec", lambda _: None)
        outcome = bench(command, "resnet-18", "--backend", "torch")
        assert outcome.code == 0
        assert "the reference library is left out: transformers or torch is not installed" in outcome.err
        assert asked == [["nest-torch"]]
        with pytest.raises(MissingDependencyError, match="--no-library"):
            _devices.check_frameworks([LIBRARY])


def test_a_framework_that_cannot_be_imported_is_no_row_of_a_matrix() -> None:
    def load(*_: Any) -> Any:
        raise MissingDependencyError("torch is broken")

    setting = SimpleNamespace(load=load)
    with pytest.raises(MissingDependencyError, match="torch is broken"):
        list(_matrix._on(setting, "torch", "f32", (), None))  # type: ignore[arg-type]


class TestPeers:
    def test_all_are_asked_where_none_is_named(self, command: Command, asked: list[list[str]]) -> None:
        outcome = command(
            "bench", "resnet-18", "--weights", "random", "--backend", "torch", "--plan", "exact"
        )
        assert outcome.code == 0
        assert asked == [
            [
                "transformers-eager", "transformers-compiled", "nest-torch", "faster-whisper", "faster-whisper-int8",
                "openai-whisper", "whisper.cpp", "sentence-transformers", "llama.cpp",
            ]
        ]  # fmt: skip

    def test_those_that_are_named(self, command: Command, asked: list[list[str]]) -> None:
        bench(command, "resnet-18", "--backend", "torch", "--peers", "llama.cpp,transformers-compiled")
        bench(command, "resnet-18", "--backend", "torch", "--peers", "llama.cpp", "--only", "LLAMA|torch")
        assert asked == [
            ["transformers-eager", "transformers-compiled", "nest-torch", "llama.cpp"],
            ["nest-torch", "llama.cpp"],
        ]

    def test_peers_alone_have_nothing_that_is_right(self, command: Command, asked: list[list[str]]) -> None:
        outcome = bench(command, "resnet-18", "--peers", "llama.cpp", "--only", "llama")
        assert (outcome.code, asked) == (1, [])
        assert "--only 'llama' leaves neither nest nor the reference library" in outcome.err

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (
                ("--peers", "vllm"),
                "there is no peer 'vllm': there are transformers-compiled, faster-whisper, ",
            ),
            (("--peer-weights", "llama.cpp"), "NAME=PATH is expected; came 'llama.cpp'"),
            (("--peer-weights", "llama.cpp=nowhere.gguf"), "there is no 'nowhere.gguf'"),
            (("--peer-weights", "torch=model.gguf"), "there is no peer 'torch'"),
            (("--batch", "1,none"), "a whole number, 1 or more, is expected; came 'none'"),
            (("resnet-50", "--out", "x.json"), "--out FILE keeps the runs of one entry"),
        ],
    )
    def test_usage(
        self, command: Command, asked: list[list[str]], arguments: tuple[str, ...], said: str
    ) -> None:
        outcome = command("bench", "resnet-18", *arguments)
        assert (outcome.code, asked) == (2, [])
        assert said in outcome.err

    def test_an_environment_without_a_python(
        self, command: Command, asked: list[list[str]], tmp_path: Path
    ) -> None:
        outcome = bench(command, "resnet-18", "--peers-from", str(tmp_path))
        assert (outcome.code, asked) == (1, [])
        assert f"{tmp_path} is no virtual environment" in outcome.err

    def test_a_peer_that_fails_is_no_fault_of_the_entry(
        self, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for kind, code in (("peer", 0), ("nest", 1)):
            monkeypatch.setattr(
                "nest.bench.entries.bench", lambda *_, kind=kind, **__: result("other text", kind)
            )
            assert bench(command, "resnet-18").code == code

    def test_one_run_for_each_batch(self, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        batches: list[int] = []
        monkeypatch.setattr(
            "nest.bench.entries.bench", lambda _, __, work, **___: batches.append(work.batch) or result()
        )
        assert bench(command, "resnet-18", "--batch", "1,8,8,32").code == 0
        assert batches == [1, 8, 32]

    def test_the_table_has_spread_ratio_and_what_was_not_measured(
        self, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        methods = [
            {
                "method": "a", "kind": "nest", "key": "a", "metrics": {"task_ms": 12.0, "load_s": 0.5},
                "spread": {"task_ms": [10.0, 20.0]}, "ratio": 1.0, "notes": "as it is",
            },
            {"method": "b", "kind": "peer", "key": "b", "absent": "not installed", "notes": "not shown"},
            {"method": "c", "kind": "peer", "key": "c", "error": "text: word 1"},
        ]  # fmt: skip
        run = BenchRun.model_validate(
            {"date": "2026-11-30", "environment": {}, "workload": {}, "methods": methods, "beside": "a"}
        )
        monkeypatch.setattr("nest.bench.entries.bench", lambda *_, **__: run)
        out = bench(command, "resnet-18").out
        assert "| method | task_ms | load_s | of a | max diff |  |" in out
        assert "| a | 12 (10 to 20) | 0.5 | 1.00 |  |  |" in out
        assert "| b |  |  |  |  | not installed |" in out
        assert "| c |  |  |  |  | **failed**: text: word 1 |" in out
        assert "a: as it is." in out
        assert "not shown" not in out


class TestSave:
    def test_another_file(self, command: Command, asked: list[list[str]], tmp_path: Path) -> None:
        file = tmp_path / "mine.json"
        assert bench(command, "resnet-18", "--out", str(file)).code == 0
        assert json.loads(file.read_text("utf-8"))[0]["methods"][0]["key"] == "a"
        file.write_text("[", "utf-8")
        outcome = bench(command, "resnet-18", "--out", str(file))
        assert (outcome.code, len(asked), file.read_text("utf-8")) == (1, 1, "[")

    @pytest.mark.parametrize(("verb", "file"), [("bench", "bench.json"), ("verify", "parity.json")])
    def test_a_bad_file_is_found_before(
        self, command: Command, asked: list[list[str]], stranger: Path, verb: str, file: str
    ) -> None:
        (stranger / file).write_text("[", "utf-8")
        outcome = command(verb, str(stranger), "--save")
        assert (outcome.code, asked) == (1, [])
        assert str(stranger / file) in outcome.err

    @pytest.mark.parametrize("verb", ["bench", "verify"])
    def test_an_unknown_second_name_is_found_before(
        self, command: Command, asked: list[list[str]], verb: str
    ) -> None:
        outcome = command(verb, "resnet-18", "resnet-81")
        assert (outcome.code, asked) == (1, [])
        assert "'resnet-81'" in outcome.err

    def test_a_run_of_which_everything_failed_is_not_kept(
        self, command: Command, stranger: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (stranger / "bench.json").unlink(missing_ok=True)
        monkeypatch.setattr("nest.bench.entries.bench", lambda *_, **__: result("out of memory"))
        outcome = bench(command, str(stranger), "--save", "--no-library")
        assert outcome.code == 1
        assert "every method failed, so nothing is saved" in outcome.err
        assert not (stranger / "bench.json").exists()
        monkeypatch.setattr("nest.bench.entries.bench", lambda *_, **__: result())
        assert bench(command, str(stranger), "--save", "--no-library").code == 0
        assert json.loads((stranger / "bench.json").read_text("utf-8"))[0]["methods"][0]["key"] == "a"

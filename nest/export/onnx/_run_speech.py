"""Write down what a recording says, with ONNX Runtime, numpy and tokenizers alone.

    python run.py talk.wav [--language en] [--task transcribe] [--stepwise] [--threads 2]

The recording is a WAV file of 16-bit samples at the model's rate. `io.json` beside this file says what each graph takes
and gives. A window of the recording is one call of `hear.onnx`; with --stepwise it is a call of `listen.onnx`, one of
`prefill.onnx` and one of `step.onnx` for each token, as a program does that looks at every token.
"""

from __future__ import annotations

import argparse
import json
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

FOLDER = Path(__file__).parent
SHORTEST = 0.1  # seconds; what is left of a recording after its last whole window may be too short for a word


class Graph:
    """One graph: called with its inputs by name, and with states that it reads and writes where they lie."""

    def __init__(self, facts: dict[str, Any], threads: int) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # a whole decode copies its caches, which is no news
        options.add_session_config_entry(
            "session.disable_prepacking", "1"
        )  # the weights stay one mapped file
        file = str(FOLDER / facts["file"])
        self.session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.dtypes = {x["name"]: np.dtype(x["dtype"]) for x in facts["inputs"]}
        self.results = [x["name"] for x in facts["outputs"]]
        self.states = facts.get("states", [])

    def __call__(self, states: dict[str, Any], **inputs: Any) -> list[Any]:
        binding = self.session.io_binding()
        for name, dtype in self.dtypes.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(inputs[name], dtype))
        for name in self.results:
            binding.bind_output(name)
        moved = {}
        for state in self.states:
            memory = states[state["state"]]
            if state["input"] is not None:
                binding.bind_ortvalue_input(state["input"], memory)
            if state["output"] is not None:
                if not state["in_place"]:
                    memory = moved[state["state"]] = ort.OrtValue.ortvalue_from_numpy(
                        np.zeros_like(memory.numpy())
                    )
                binding.bind_ortvalue_output(state["output"], memory)
        self.session.run_with_iobinding(binding)
        states.update(moved)
        return [x.numpy() for x in binding.get_outputs()[: len(self.results)]]


class Transcriber:
    """The whole job, from samples to text."""

    def __init__(self, threads: int, stepwise: bool) -> None:
        self.io = json.loads((FOLDER / "io.json").read_text(encoding="utf-8"))
        self.ids = self.io["generation"]
        self.mel = self.io["preprocess"]
        self.filters = np.load(FOLDER / self.mel["filters"])
        self.tokenizer = Tokenizer.from_file(str(FOLDER / self.io["tokenizer"]))
        self.threads = threads
        self.stepwise = stepwise
        self.graphs: dict[str, Graph] = {}

    def graph(self, name: str) -> Graph:
        if name not in self.graphs:
            self.graphs[name] = Graph(self.io["graphs"][name], self.threads)
        return self.graphs[name]

    def __call__(self, samples: Any, language: str | None, task: str) -> str:
        text = ""
        for window in self.windows(samples):
            mel = self.log_mel(window)
            if language is None and self.ids["languages"]:
                language = self.spoken(mel)
            prompt = self.prompt(language, task)
            limit = min(self.ids["max_tokens"], self.io["largest"]["Capacity"] - len(prompt))
            tokens = (self.step_by_step if self.stepwise else self.at_once)(mel, prompt, limit)
            text += self.tokenizer.decode([t for t in tokens if t < self.ids["end_of_text"]])
        return text.strip()

    def windows(self, samples: Any) -> Iterator[Any]:
        length = round(self.mel["window_seconds"] * self.mel["rate"])
        for start in range(0, len(samples), length):
            window = samples[start : start + length]
            if start == 0 or len(window) >= SHORTEST * self.mel["rate"]:
                yield window

    def log_mel(self, window: Any) -> Any:
        """Float32 [1, mels, frames] of a window, padded with silence to its full length."""
        length, hop = round(self.mel["window_seconds"] * self.mel["rate"]), self.mel["hop"]
        size = self.mel["n_fft"]
        padded = np.zeros(length)
        padded[: len(window)] = window
        padded = np.pad(padded, size // 2, "reflect")
        hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
        frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop][: length // hop]
        # In float64: the logarithm would show a float32 transform's rounding in quiet bands.
        power = np.abs(np.fft.rfft(frames * hann, axis=-1)) ** 2
        levels = np.log10(np.maximum(power @ self.filters, self.mel["floor"]))
        levels = np.maximum(levels, levels.max() - self.mel["range"])
        return ((levels + 4.0) / 4.0).T[None].astype(np.float32)

    def prompt(self, language: str | None, task: str) -> list[int]:
        ids = self.ids
        if not ids["languages"]:
            if language not in (None, "en") or task != "transcribe":
                sys.exit("This model transcribes English only.")
            return list(ids["prompt"])
        if language not in ids["languages"]:
            sys.exit(f"The languages are {', '.join(ids['languages'])}; '{language}' was asked for.")
        return [ids["start_of_transcript"], ids["languages"][language], ids[task], ids["no_timestamps"]]

    def spoken(self, mel: Any) -> str:
        """The most likely language of a window."""
        states = self.empty()
        self.graph("listen")(states, mel=mel)
        (logits,) = self.graph("prefill")(states, tokens=[[self.ids["start_of_transcript"]]], lengths=[1])
        languages: dict[str, int] = self.ids["languages"]
        return max(languages, key=lambda code: float(logits[0, languages[code]]))

    def bias(self, ids: list[int]) -> Any:
        """What keeps ids from being chosen: added to the logits, float32 [Vocab]."""
        shapes = {x["name"]: x["shape"] for x in self.io["graphs"]["hear"]["inputs"]}
        bias = np.zeros(shapes["bias"], np.float32)
        bias[ids] = -np.inf
        return bias

    def at_once(self, mel: Any, prompt: list[int], limit: int) -> list[int]:
        """One call: the encoder, the prompt, and every token until the text ends."""
        ids, counts, *_ = self.graph("hear")(
            {},
            mel=mel,
            tokens=[prompt],
            lengths=[len(prompt)],
            out=np.zeros((1, limit)),
            bias=self.bias(self.ids["suppress"]),
            first_bias=self.bias(self.ids["begin_suppress"]),
            end=self.ids["end_of_text"],
        )
        return list(map(int, ids[0, : counts[0]]))

    def step_by_step(self, mel: Any, prompt: list[int], limit: int) -> list[int]:
        """The same tokens, one call each; the caches go in as `past` and come out as `present`."""
        states = self.empty()
        self.graph("listen")(states, mel=mel)
        (logits,) = self.graph("prefill")(states, tokens=[prompt], lengths=[len(prompt)])
        bias = self.bias(self.ids["suppress"])
        token = int((logits[0] + bias + self.bias(self.ids["begin_suppress"])).argmax())
        tokens: list[int] = []
        while token != self.ids["end_of_text"]:
            tokens.append(token)
            if len(tokens) == limit:
                break
            (logits,) = self.graph("step")(states, token=[[token]], pos=[len(prompt) + len(tokens) - 1])
            token = int((logits[0] + bias).argmax())
        return tokens

    def empty(self) -> dict[str, Any]:
        """The states of one row, with caches as large as the model allows."""
        sizes = {"Batch": 1, **self.io["largest"]}
        known = {s["state"]: s for graph in self.io["graphs"].values() for s in graph.get("states", [])}
        arrays = {
            name: np.zeros([sizes.get(axis, axis) for axis in s["shape"]], s["dtype"])
            for name, s in known.items()
        }
        return {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}


def read_wav(path: str, rate: int) -> Any:
    """Float32 [samples], the mean of the channels."""
    with wave.open(path, "rb") as file:
        if file.getsampwidth() != 2 or file.getframerate() != rate:
            sys.exit(
                f"{path}: expected 16-bit samples at {rate} Hz; found {8 * file.getsampwidth()}-bit ones at "
                f"{file.getframerate()} Hz. Convert it: ffmpeg -i {path} -ar {rate} -sample_fmt s16 out.wav"
            )
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return (samples.reshape(-1, file.getnchannels()).mean(axis=1) / 32768).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write down what a recording says.")
    parser.add_argument("file", help="a WAV file of 16-bit samples")
    parser.add_argument("--language", help="a code such as 'en'; detected if left out")
    parser.add_argument("--task", default="transcribe", choices=["transcribe", "translate"])
    parser.add_argument("--stepwise", action="store_true", help="one call a token")
    parser.add_argument(
        "--threads", type=int, default=0, help="threads of one call; 0: as many as there are cores"
    )
    args = parser.parse_args()
    transcriber = Transcriber(args.threads, args.stepwise)
    samples = read_wav(args.file, transcriber.mel["rate"])
    print(transcriber(samples, args.language, args.task))


if __name__ == "__main__":
    main()

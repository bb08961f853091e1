"""How sessions of the runtime are made: providers, threads, options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import onnxruntime as ort

from nest._suggest import did_you_mean
from nest._timing import stretch
from nest.errors import CallError

__all__ = ["Options", "available_cores", "message"]

Provider = str | tuple[str, Mapping[str, Any]]

_LEVELS = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_CPU = "CPUExecutionProvider"


class Options:
    """What every session of a model has in common.

    Args:
        providers: names of execution providers in order of preference, or pairs of a name and its options; the CPU
            if left out.
        threads: for one call; as many as the process may use if left out.
        session_options: attributes of `onnxruntime.SessionOptions` by name, and configuration entries by their dotted
            name. `graph_optimization_level` also takes `"none"`, `"basic"`, `"extended"` and `"all"`.
        folder: what locations of external data are relative to.

    Raises:
        CallError: an option that there is not, or a provider that cannot be used here.
    """

    def __init__(
        self,
        *,
        providers: Sequence[Provider] | None,
        threads: int | None,
        session_options: Mapping[str, Any] | None,
        folder: Path,
    ) -> None:
        self.threads = _checked(threads) or available_cores()
        self.providers = [_named(p) for p in providers or [_CPU]]
        self._given = dict(session_options or {})
        self._folder = folder
        self.session_options()
        self._probe()

    def with_threads(self, threads: int | None) -> Options:
        """The same with other threads for one call; these very options where the number is None or theirs.

        Raises:
            CallError: the number is no positive integer.
        """
        if _checked(threads) in (None, self.threads):
            return self
        other = copy(self)
        other.threads = threads or self.threads
        return other

    def session_options(self, *, prepacked: bool = False) -> ort.SessionOptions:
        """New options for one session; `prepacked` lets the runtime keep weights in its own layout as well."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        # Failures are raised; the runtime's own log would say them a second time.
        options.log_severity_level = 4
        # Prepacked weights are a copy of all weights in every session, and faster for those of 8 bits alone.
        options.add_session_config_entry("session.disable_prepacking", "0" if prepacked else "1")
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(self._folder)
        )
        for name, value in self._given.items():
            _set(options, name, value)
        return options

    def session(self, model: bytes, label: str) -> ort.InferenceSession:
        """A session of a serialized model on the providers that were asked for.

        Raises:
            CallError: the runtime cannot run the model, or has put another provider in a requested one's place.
        """
        try:
            options = self.session_options(prepacked=any(op in model for op in _BYTES))
            if _ROUNDED in model and _PRECISE not in self._given:
                options.add_session_config_entry(_PRECISE, "1")
            with stretch(f"session {label.rpartition('.')[2]}"):
                session = ort.InferenceSession(model, options, providers=self.providers)
        except Exception as error:
            raise CallError(f"ONNX Runtime cannot make a session for {label}: {message(error)}") from error
        session.disable_fallback()
        got = session.get_providers()
        for name, _ in self.providers:
            if name not in got:
                raise CallError(
                    f"ONNX Runtime could not load the provider '{name}' and would run {label} on {', '.join(got)}. Its "
                    f"libraries are missing or do not fit; see onnxruntime's log, or ask for another provider."
                )
        return session

    def _probe(self) -> None:
        """Find out now what the first call would."""
        have = ort.get_available_providers()
        for name, _ in self.providers:
            if name not in have:
                raise CallError(
                    f"The installed onnxruntime has no provider '{name}'; it has {', '.join(have)}."
                    f" Providers for GPUs come with other builds, such as onnxruntime-gpu."
                )
        if [name for name, _ in self.providers] != [_CPU]:
            self.session(_identity(), "a probe")


_BYTES = (b"MatMulInteger", b"MatMulNBits")
"""Ops of weights of 8 bits or fewer, as they stand in a serialized graph."""


def _checked(threads: int | None) -> int | None:
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise CallError(f"threads is a positive integer, and {threads!r} was given.")
    return threads


_ROUNDED = b"MatMulIntegerToFloat"
"""The op whose inputs take all of 8 bits."""
_PRECISE = "session.x64quantprecision"
"""Lets processors without VNNI, as with AVX2, multiply bytes of one kind: of two kinds, they would cut off sums of
pairs that do not fit 16 bits, silently. On others it changes nothing."""


def _named(provider: Provider) -> tuple[str, dict[str, Any]]:
    if isinstance(provider, str):
        return provider, {}
    if isinstance(provider, tuple) and len(provider) == 2 and isinstance(provider[0], str):
        return provider[0], dict(provider[1])
    raise CallError(f"A provider is a name, or a pair of a name and its options; got {provider!r}.")


def _set(options: ort.SessionOptions, name: str, value: Any) -> None:
    if "." in name:
        options.add_session_config_entry(name, str(value))
        return
    known = [n for n in dir(options) if not n.startswith("_") and not callable(getattr(options, n))]
    if name not in known:
        raise CallError(
            f"onnxruntime.SessionOptions has no attribute '{name}'{did_you_mean(name, known)}; configuration entries "
            f"have dotted names, such as 'session.intra_op.allow_spinning'."
        )
    if name == "graph_optimization_level" and isinstance(value, str):
        if value not in _LEVELS:
            raise CallError(f"graph_optimization_level is one of {', '.join(_LEVELS)}; got '{value}'.")
        value = _LEVELS[value]
    try:
        setattr(options, name, value)
    except TypeError as error:
        raise CallError(f"onnxruntime.SessionOptions.{name} does not take {value!r}.") from error


def _identity() -> bytes:
    """A model that does nothing, in which a provider can show that it loads."""
    import onnx_ir as ir

    x = ir.val("x", ir.DataType.FLOAT, [1])
    node = ir.node("Identity", [x])
    y = node.outputs[0]
    y.name, y.type, y.shape = "y", ir.TensorType(ir.DataType.FLOAT), ir.Shape([1])
    graph = ir.Graph([x], [y], nodes=[node], opset_imports={"": 13}, name="probe")
    return bytes(ir.to_proto(ir.Model(graph, ir_version=8)).SerializeToString())


def available_cores() -> int:
    """How many cores this process may use: its affinity, and the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        cores = min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no control groups, or no quota ("max")
    return cores


def message(error: Exception) -> str:
    """What the runtime says, without its status codes and source lines."""
    text = " ".join(str(error).split())
    for start in ("Status Message: ", " was false. "):
        text = text.rpartition(start)[2]
    return text.rstrip(".") + "."

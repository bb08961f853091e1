"""A program's entries in ONNX Runtime: each lowered, and its session made, when it is first used."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import onnx_ir as ir
import onnxruntime as ort

from nest.backends.calls import EntryCall
from nest.backends.onnx.arrays import HostArrays
from nest.backends.onnx.lower import EntryGraph, lower
from nest.backends.onnx.options import Options
from nest.backends.onnx.weights import WeightFiles
from nest.ir.plan import Plan
from nest.ir.plan import plan as make_plan
from nest.ir.program import Program

__all__ = ["Prepared", "Runtime"]


@dataclass(frozen=True)
class Prepared:
    """An entry that is ready to run, by any number of threads."""

    label: str
    graph: EntryGraph
    session: ort.InferenceSession
    check: EntryCall


class Runtime:
    """The sessions of one model by one plan, over one set of weights.

    Args:
        program: whose entries are called.
        plan: what is run; the program itself if None.
    """

    def __init__(
        self, program: Program, weights: WeightFiles, options: Options, plan: Plan | None = None
    ) -> None:
        self.program = program
        self.plan = plan or make_plan(program)
        self.weights = weights
        self.options = options
        self.arrays = HostArrays()
        self._prepared: dict[str, Prepared] = {}
        self._lock = threading.Lock()

    def entry(self, name: str) -> Prepared:
        """An entry by name.

        Raises:
            CallError: there is no such entry, or the runtime cannot run it.
        """
        known = self._prepared.get(name)
        if known is None:
            with self._lock:
                known = self._prepared.get(name) or self._prepare(name)
                self._prepared[name] = known
        return known

    def _prepare(self, name: str) -> Prepared:
        check = EntryCall(self.program, name, self.arrays)
        fast = self.plan.name == "fast"
        graph = lower(self.plan.program, name, self.weights.tensor, contrib=fast)
        model = ir.to_proto(graph.model).SerializeToString()
        label = f"{self.program.name}.{name}"
        session = self.options.session(model, label)
        return Prepared(label, graph, session, check)

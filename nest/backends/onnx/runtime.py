"""A program's entries in ONNX Runtime: each lowered or found, and its session made, when it is first used."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import onnxruntime as ort

from nest._timing import stretch
from nest.backends.calls import EntryCall
from nest.backends.onnx.arrays import HostArrays
from nest.backends.onnx.graph_cache import GraphCache, sources_digest
from nest.backends.onnx.options import Options
from nest.backends.onnx.ports import Ports
from nest.backends.onnx.weights import WeightFiles
from nest.ir.plan import Plan
from nest.ir.plan import plan as make_plan
from nest.ir.printer import digest
from nest.ir.program import Program

if TYPE_CHECKING:
    from nest.backends.onnx.lower import EntryGraph

__all__ = ["Prepared", "Runtime"]


@dataclass(frozen=True)
class Prepared:
    """An entry that is ready to run, by any number of threads."""

    label: str
    graph: Ports
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
        self.cache = GraphCache()
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

    def lowered(self, name: str) -> EntryGraph:
        """An entry's graph, made anew.

        Raises:
            CallError: there is no such entry.
        """
        # Here, since a process that finds its graphs needs none of what makes them.
        from nest.backends.onnx.lower import lower

        EntryCall(self.program, name, self.arrays)
        fast = self.plan.name == "fast"
        return lower(self.plan.program, name, self.weights.tensor, contrib=fast)

    def _prepare(self, name: str) -> Prepared:
        check = EntryCall(self.program, name, self.arrays)
        with stretch(f"graph {name}"):
            ports, model = self._graph(name)
        label = f"{self.program.name}.{name}"
        return Prepared(label, ports, self.options.session(model, label), check)

    def _graph(self, name: str) -> tuple[Ports, bytes]:
        """An entry's graph as the runtime takes it, from the cache where it has it."""
        key = hashlib.sha256(f"{self._made_of} {name}".encode()).hexdigest()
        found = self.cache.get(key)
        if found is not None:
            return found[0], self.weights.present(found[1])
        with stretch(f"make the graph {name}"):
            import onnx_ir as ir

            graph = self.lowered(name)
            model = ir.to_proto(graph.model).SerializeToString()
        self.cache.put(key, graph.ports, self.weights.lasting(model))
        return graph.ports, model

    @cached_property
    def _made_of(self) -> str:
        """All that decides what the graphs are."""
        parts = (sources_digest(), self.plan.name, digest(self.plan.program), self.weights.layout())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

"""Names that an entry cannot have, because models or sessions of some backend mean something else by them."""

from __future__ import annotations

__all__ = ["TAKEN"]

TAKEN = frozenset(
    {"arrays", "axes", "backend", "broken", "caches", "call", "compilations", "constant", "device", "entry",
     "export", "fork", "function", "graph", "graphs", "interpreter", "load_state_dict", "model", "nest_info",
     "nest_methods", "new_session", "new_state", "new_states", "notes", "numpy", "params", "program",
     "providers", "quantization", "reorder", "restore", "run_entry", "runtime", "save", "source", "state", "state_dict",
     "symbols", "take_from", "threads", "truncate", "whole_decodes"}
)  # fmt: skip

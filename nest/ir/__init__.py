"""The typed program between definitions and backends. See `README.md` in this folder."""

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.inventory import default_capacity, parameters, states
from nest.ir.plan import Plan, plan
from nest.ir.printer import inspect_text, program_text
from nest.ir.program import BlockDef, Function, Node, Program, Signature, Value
from nest.ir.relation import Relation
from nest.ir.types import ParamSpec, StateSpec, TensorType

__all__ = [
    "BlockDef",
    "DType",
    "Dim",
    "Function",
    "Node",
    "ParamSpec",
    "Plan",
    "Program",
    "Relation",
    "Signature",
    "StateSpec",
    "TensorType",
    "Value",
    "default_capacity",
    "inspect_text",
    "parameters",
    "plan",
    "program_text",
    "states",
]

"""Functions inside an op, such as the body of a loop: traced on the spot, in the calling block's scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nest.ir.dtype import bool_
from nest.ir.program import Function, Parameter, Signature
from nest.ir.types import TensorType
from nest.layers._refs import BlockRef
from nest.layers._trace import Trace, current_trace, fail
from nest.layers.tensor import Tensor, as_tensor

__all__ = ["region"]


def region(
    outer: Trace, block: Any, function: Callable[..., Any], carry: Sequence[TensorType], role: str
) -> Function:
    """Trace `function(block, *carry)` as a condition (one Bool of rank 0) or a body (the carry's own types)."""
    if not isinstance(block, BlockRef) or block._path:
        raise fail(f"while_loop takes the block that it is called in as its first argument; got {block!r}.")
    code = getattr(function, "__code__", None)
    if code is None or code.co_freevars:
        captured = f": it captures {', '.join(code.co_freevars)}" if code is not None else ""
        raise fail(f"The {role} of while_loop is a plain function or method, not a closure{captured}.")
    names = code.co_varnames[1 : code.co_argcount]
    if len(names) != len(carry):
        raise fail(
            f"The {role} of while_loop takes the block and {len(carry)} tensors; it takes {len(names)} tensors."
        )
    parameters = tuple(Parameter(n, t) for n, t in zip(names, carry, strict=True))
    wanted = tuple(carry) if role == "body" else (TensorType((), bool_),)
    inner = Function(
        function.__name__,
        outer.function.block,
        Signature(parameters, wanted, (), single=role != "body"),
        code,
        None,
    )
    trace = Trace(outer.block, inner, code)
    trace.origins, trace.facts = outer.origins, outer.facts
    token = current_trace.set(trace)
    try:
        ref = BlockRef(trace, outer.block, (), block._scope)
        outcome = function(ref, *(Tensor(v) for v in inner.arguments))
        got = outcome if isinstance(outcome, tuple | list) else (outcome,)
        if len(got) != len(wanted):
            raise fail(f"The {role} of while_loop gives {len(wanted)} tensors, and gave {len(got)}.")
        for position, (want, value) in enumerate(zip(wanted, got, strict=True)):
            value = as_tensor(value, f"the {role} of while_loop", f"result {position}")
            if not trace.same_type(want, value.type):
                raise fail(
                    f"The {role} of while_loop gives another type for carry {position}.",
                    ("expected", want),
                    ("got", value.type),
                )
            inner.results = (*inner.results, value.value())
    finally:
        current_trace.reset(token)
    return inner

"""The ops: each declared once, with its signature, its shape rule and its formula.

A backend lowers an op by one rule of the same name. The reference backend's rules, in numpy, are the oracle.
"""

from nest.layers.ops.attention import attention, rope
from nest.layers.ops.contraction import conv, einsum, expert_linear, linear
from nest.layers.ops.control import while_loop
from nest.layers.ops.elementwise import (
    abs,
    add,
    cast,
    cos,
    div,
    equal,
    erf,
    exp,
    floordiv,
    gelu,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    mod,
    mul,
    neg,
    power,
    relu,
    rsqrt,
    sigmoid,
    silu,
    sin,
    sqrt,
    sub,
    tanh,
    where,
)
from nest.layers.ops.indexing import scatter_set, take, take_along
from nest.layers.ops.normalization import batch_norm, group_norm, layer_norm, rms_norm
from nest.layers.ops.reduction import (
    any,
    argmax,
    cumsum,
    logsumexp,
    max,
    max_pool,
    mean,
    min,
    peak,
    softmax,
    sum,
    top_k,
)
from nest.layers.ops.shape import (
    broadcast_to,
    concat,
    constant,
    full,
    iota,
    pad,
    permute,
    reshape,
    slice,
    stack,
)

__all__ = [
    "abs", "add", "any", "argmax", "attention", "batch_norm", "broadcast_to", "cast", "concat", "constant", "conv",
    "cos", "cumsum", "div", "einsum", "equal", "erf", "exp", "expert_linear", "floordiv", "full", "gelu",
    "group_norm", "iota", "layer_norm", "less", "less_equal", "linear", "log", "logical_and", "logical_not",
    "logical_or", "logsumexp", "max", "max_pool", "maximum", "mean", "min", "minimum", "mod", "mul", "neg", "pad",
    "peak", "permute", "power", "relu", "reshape", "rms_norm", "rope", "rsqrt", "scatter_set", "sigmoid", "silu", "sin",
    "slice", "softmax", "sqrt", "stack", "sub", "sum", "take", "take_along", "tanh", "top_k", "where", "while_loop",
]  # fmt: skip

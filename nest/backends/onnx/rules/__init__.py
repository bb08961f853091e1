"""One small function for each op: `RULES` by the op's name."""

# Importing a module registers its rules.
from nest.backends.onnx.rules import (
    attention,  # noqa: F401
    contraction,  # noqa: F401
    elementwise,  # noqa: F401
    indexing,  # noqa: F401
    normalization,  # noqa: F401
    quantized,  # noqa: F401
    reduction,  # noqa: F401
    shape,  # noqa: F401
    shortlist,  # noqa: F401
)
from nest.backends.onnx.rules._registry import RULES, Lowering

__all__ = ["RULES", "Lowering"]

"""One function over jax arrays for each op: `RULES` by the op's name."""

# Importing a module registers its rules.
from nest.backends.jax.rules import (
    attention,  # noqa: F401
    contraction,  # noqa: F401
    elementwise,  # noqa: F401
    indexing,  # noqa: F401
    normalization,  # noqa: F401
    reduction,  # noqa: F401
    shape,  # noqa: F401
)
from nest.backends.jax.rules._registry import RULES

__all__ = ["RULES"]

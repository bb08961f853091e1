"""Which platform a computation is traced for, where a rule has kernels for one."""

from __future__ import annotations

import jax

__all__ = ["current_platform"]


def current_platform() -> str:
    """Where what is traced will run: `"cpu"`, `"gpu"` or another; that of `jax.default_device`, if it is set."""
    device = jax.config.jax_default_device  # type: ignore[attr-defined]
    return jax.default_backend() if device is None else str(getattr(device, "platform", device))

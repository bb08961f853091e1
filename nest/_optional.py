"""Import optional packages at the moment they are needed, and say which extra brings a missing one."""

from __future__ import annotations

import importlib
from types import ModuleType

from nest.errors import MissingDependencyError


def need(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Return the imported `module`.

    Args:
        module: the dotted name to import, such as `"soundfile"`.
        extra: the extra of the `nest-zoo` distribution that installs it.
        purpose: what it is needed for, completing "... is needed to".

    Raises:
        MissingDependencyError: `module` is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise MissingDependencyError(
            f"The package '{missing}' is needed to {purpose}, and it is not installed. "
            f"Install it with: pip install 'nest-zoo[{extra}]'",
            name=missing,
        ) from error

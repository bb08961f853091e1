"""Import optional packages at the moment they are needed, and say which extra brings a missing one."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from nest._timing import stretch
from nest.errors import MissingDependencyError


def need_installed(module: str, *, extra: str, purpose: str) -> None:
    """Make sure that `module` can be imported, without importing it: see `need`."""
    if importlib.util.find_spec(module) is None:
        raise _missing(module, extra, purpose)


def need(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Return the imported `module`.

    Args:
        module: the dotted name to import, such as `"soundfile"`.
        extra: the extra of the `nest-zoo` distribution that installs it.
        purpose: what it is needed for, completing "... is needed to".

    Raises:
        MissingDependencyError: `module` is not installed, or is and cannot be imported.
    """
    try:
        if module in sys.modules:
            return importlib.import_module(module)
        with stretch(f"import {module}"):
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _missing(error.name or module, extra, purpose) from error
    except ImportError as error:  # a library that it needs is not there, or is of another version
        raise MissingDependencyError(
            f"The package '{module}' is needed to {purpose}; it is installed, and cannot be imported: {error}. Install "
            f"it anew: pip install --force-reinstall 'nest-zoo[{extra}]'",
            name=module,
        ) from error


def _missing(module: str, extra: str, purpose: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"The package '{module}' is needed to {purpose}, and it is not installed. "
        f"Install it with: pip install 'nest-zoo[{extra}]'",
        name=module,
    )

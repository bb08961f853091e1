"""Running a definition file, and taking its root class.

Each file runs once for each content, as a module under a private name that nothing else can have, so that
`inspect.getsource`, tracebacks and debuggers show it and no `model` module of the user is shadowed.
"""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from nest._suggest import did_you_mean
from nest.errors import DefinitionError, NestError

__all__ = ["load_root"]

_MODULES: dict[tuple[Path, str], ModuleType] = {}


def load_root(path: Path, root: str) -> type:
    """The class `root` of the definition file at `path`.

    Raises:
        DefinitionError: the file cannot be read, is not Python, raises while it runs, or has no such class.
    """
    module = _module(path)
    found = vars(module).get(
        root
    )  # what is written there: no attribute of modules, nothing made when asked for
    if not isinstance(found, type):
        classes = [name for name, value in vars(module).items() if _is_own_class(value, module)]
        raise DefinitionError(
            f"{path} has no class '{root}', which source.root of the entry names. "
            f"Its classes: {', '.join(classes) or 'none'}.{did_you_mean(root, classes)}"
        )
    return found


def _is_own_class(value: object, module: ModuleType) -> bool:
    return isinstance(value, type) and value.__module__ == module.__name__


def _module(path: Path) -> ModuleType:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise DefinitionError(f"The definition {path} cannot be read: {error.strerror or error}.") from error
    digest = hashlib.sha256(source).hexdigest()
    if (path, digest) not in _MODULES:
        _MODULES[path, digest] = _execute(path, source, digest)
    return _MODULES[path, digest]


def _execute(path: Path, source: bytes, digest: str) -> ModuleType:
    name = f"_nest_definition_{re.sub(r'[^0-9a-zA-Z]', '_', path.parent.name)}_{digest[:12]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    # Compiled here, not by importlib, whose bytecode cache compares times by seconds and writes to the zoo.
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise DefinitionError(f"{path}{line} is not valid Python: {error}.") from error
    sys.modules[name] = module  # dataclasses and inspect look the module up while it runs
    try:
        exec(code, vars(module))
    except (NestError, KeyboardInterrupt):
        sys.modules.pop(name, None)
        raise
    except BaseException as error:  # SystemExit too: a definition does not end the program that reads it
        sys.modules.pop(name, None)
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
        ]
        place = f"{path}:{lines[-1]}" if lines else str(path)
        raise DefinitionError(
            f"{place} failed while the definition was run: {type(error).__name__}: {error}"
        ) from error
    return module

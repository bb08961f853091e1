"""Generated source as an importable module, kept in a file so that tracebacks and debuggers show it."""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from nest.weights.cache import cache_root

__all__ = ["load_generated"]


def load_generated(source: str, label: str) -> ModuleType:
    """The module of a source text, made once for each text.

    The file is named by its content in nest's cache. Where the cache cannot be written the module lives in memory,
    with its lines known to `linecache`.
    """
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    name = f"nest_generated_{''.join(c if c.isalnum() else '_' for c in label)}_{digest}"
    known = sys.modules.get(name)
    if known is not None:
        return known
    path = _write(cache_root() / "generated" / f"{name}.py", source)
    filename = str(path) if path is not None else f"<{name}>"
    if path is None:
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    spec = importlib.util.spec_from_loader(name, loader=None, origin=filename)
    module = importlib.util.module_from_spec(spec) if spec is not None else ModuleType(name)
    module.__file__ = filename
    # Registered under its name, so that instances of its classes can be pickled.
    sys.modules[name] = module
    try:
        exec(compile(source, filename, "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _write(path: Path, source: str) -> Path | None:
    try:
        if path.read_text(encoding="utf-8") == source:
            return path
    except (OSError, UnicodeDecodeError):
        pass
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(source)
        Path(file.name).replace(path)
    except OSError:
        return None
    return path

"""What is prepared for jax comes into the cache whole, and is found where the cache was moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")

from jax.experimental.compilation_cache import compilation_cache  # noqa: E402

from nest.backends.jax.compile_cache import everything_kept  # noqa: E402

Prepare = Callable[[Path, float], None]


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Prepare]:
    """Compile something, as a new process would, with nest's cache in a folder; jax's settings come back."""
    names = (
        "jax_compilation_cache_dir",
        "jax_enable_compilation_cache",
        "jax_persistent_cache_enable_xla_caches",
    )
    before = {name: getattr(jax.config, name) for name in names}

    def run(folder: Path, factor: float) -> None:
        monkeypatch.setenv("NEST_CACHE", str(folder))
        jax.clear_caches()
        jax.config.update("jax_compilation_cache_dir", None)
        jax.config.update("jax_enable_compilation_cache", True)
        with everything_kept():
            jax.jit(lambda x: x * factor + 1)(1.0)
            if factor < 0:
                assert _files(folder, staged=True)
                raise KeyError

    yield run
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def test_what_is_cut_off_leaves_nothing(prepare: Prepare, tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        prepare(tmp_path, -2.5)
    assert _files(tmp_path) == _files(tmp_path, staged=True) == set()


def test_a_cache_is_found_where_it_was_moved(prepare: Prepare, tmp_path: Path) -> None:
    prepare(tmp_path / "a", 3.5)
    made = _files(tmp_path / "a")
    assert made
    (tmp_path / "a").rename(tmp_path / "b")
    prepare(tmp_path / "b", 3.5)
    assert _files(tmp_path / "b") == made


def _files(folder: Path, *, staged: bool = False) -> set[str]:
    return {p.name for p in folder.rglob("*-cache") if any(".stage-" in q for q in p.parts) == staged}

"""Pull into a cache that is a mount with a fault, mend it, pull again; prints what came of it as JSON.

    python -m tests.faults.mounted small|read-only ENTRY CACHE

Run in a mount namespace of its own, so that the mounts go with the process.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

from nest.cli import main
from nest.weights import transfer


def pull(entry: str) -> tuple[int, str, str]:
    """`nest pull ENTRY` in this process: exit code, standard output and error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["pull", entry])
    return code, out.getvalue(), err.getvalue()


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def probe(cache: Path) -> int:
    """The error number of a write, 0 where it succeeds: root ignores modes, but not a read-only mount."""
    try:
        (cache / "probe").write_bytes(b"x")
    except OSError as error:
        return error.errno or -1
    (cache / "probe").unlink()
    return 0


def run(fault: str, entry: str, cache: Path) -> dict[str, object]:
    """Pull under the fault, then with it mended."""
    from .conftest import describe

    asked = count_requests()
    cache.mkdir(exist_ok=True)
    if fault == "small":
        mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", str(cache))
    else:
        mount("--bind", str(cache), str(cache))
        mount("-o", "remount,bind,ro", str(cache))
    found = {"probe": probe(cache)}
    code, out, err = pull(entry)
    found |= {"code": code, "out": out, "err": err, "left": describe(cache), "requests": len(asked)}
    mount("-o", "remount,size=8m" if fault == "small" else "remount,bind,rw", str(cache))
    return found | {"again": pull(entry)[0], "found": describe(cache)}


def count_requests() -> list[str]:
    """A list that grows with every transfer that begins."""
    asked: list[str] = []
    real = transfer.transfer

    def counted(url: str, *arguments: object, **options: object) -> object:
        asked.append(url)
        return real(url, *arguments, **options)  # type: ignore[arg-type]

    transfer.transfer = counted  # type: ignore[assignment]
    return asked


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))

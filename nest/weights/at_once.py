"""Do a few things at once, and leave nothing waiting when one of them fails."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["at_once"]

_PATIENCE = 0.5
"""Seconds for a thread to notice; one that waits for a silent server is left to itself."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def at_once(
    do: Callable[[Item], Result], items: Sequence[Item], *, workers: int, stop: Callable[[], None]
) -> list[Result]:
    """`[do(item) for item in items]`, up to `workers` of them at a time.

    The first error is raised as soon as it happens, after `stop()`, which has to make the others give up. Their
    threads do not hold up the end of the process, as those of an executor would hold up Ctrl-C.
    """
    if len(items) <= 1:
        return [do(item) for item in items]
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, Result | None, BaseException | None]] = queue.SimpleQueue()
    for index in range(len(items)):
        todo.put(index)

    def work() -> None:
        while True:
            try:
                index = todo.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((index, do(items[index]), None))
            except BaseException as error:  # raised again where the caller waits
                done.put((index, None, error))
                return

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(items)))]
    for thread in threads:
        thread.start()
    results: dict[int, Result | None] = {}
    try:
        while len(results) < len(items):
            index, result, error = done.get()
            if error is not None:
                raise error
            results[index] = result
    except BaseException:
        stop()
        for thread in threads:
            thread.join(_PATIENCE)
        raise
    return [results[index] for index in range(len(items))]  # type: ignore[misc]

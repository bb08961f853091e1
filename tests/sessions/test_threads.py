"""Threads over one model: a session each, or turns on the model's own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ..speech import heard, mel_of, tokens_of

THREADS = 16


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What each of 16 threads made of its number; all begin together."""
    results: dict[int, Any] = {}
    failures: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def run(index: int) -> None:
        try:
            start.wait(timeout=60)
            results[index] = work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [results[i] for i in range(THREADS)]


def decoded(model: Any, index: int) -> list[int]:
    """A whole decode, and steps after it, in a session that is this call's own."""
    session = heard(model, seed=index)
    ids, _, _ = session.greedy(tokens_of(1, 3, seed=index), np.zeros((1, 8), np.int32), -1)
    tokens: list[int] = session.numpy(ids)[0].tolist()
    for pos in range(10, 15):
        logits = session.numpy(session.step([[tokens[-1]]], pos))
        tokens.append(int(logits.argmax()))
    return tokens


def test_sessions_share_no_caches(model: Any) -> None:
    alone = [decoded(model, index) for index in range(THREADS)]
    assert len({tuple(tokens) for tokens in alone}) > THREADS // 2
    assert at_once(lambda index: decoded(model, index)) == alone


def test_the_default_session_has_one_caller_at_a_time(model: Any) -> None:
    """A whole decode writes the caches as it goes: two at once would read each other's."""
    model.listen(mel_of(1))
    session = heard(model)

    def whole(caller: Any, index: int) -> list[int]:
        ids, _, _ = caller.greedy(tokens_of(1, 3, seed=index), np.zeros((1, 8), np.int32), -1)
        tokens: list[int] = session.numpy(ids)[0].tolist()
        return tokens

    alone = [whole(session, index) for index in range(THREADS)]
    assert at_once(lambda index: whole(model, index)) == alone


def test_calls_on_the_default_session_take_turns(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model.listen(mel_of(1))
    kind, inside, most = type(model.new_session()), [0], [0]
    call = kind.call

    def watched(self: Any, *args: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)  # room for others to come in, were there no lock
        try:
            return call(self, *args)
        finally:
            inside[0] -= 1

    monkeypatch.setattr(kind, "call", watched)
    at_once(lambda index: model.step([[index]], 0))
    assert most == [1]

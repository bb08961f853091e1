"""Decoders of text: logits of a whole prompt, and writing token by token over caches."""

from __future__ import annotations

from collections.abc import Callable

from nest.tasks.snippets.job import Arrays, Call, Decode, Job, Loss
from nest.tasks.snippets.subject import Subject
from nest.tasks.snippets.task import OPENING, QUESTION

__all__ = ["text"]

SLOTS = 256


def text(subject: Subject) -> Job:
    """Text generation."""
    chats = subject.entry.manifest.chat is not None
    given = f'chat_tokens("{QUESTION}")' if chats else f'tokenizer.encode("{OPENING}")'
    shown = "its tokenizer and chat template" if chats else "its tokenizer"

    def inputs(arrays: Arrays) -> list[str]:
        return [
            f"write = nest.pipeline(model)  # for {shown}",
            f"prompt = write.{given}",
            f"tokens = {arrays.ids('[prompt]')}  # [1, S]",
        ]

    forward = Call("logits", "forward", {"tokens": "tokens"}, {"B": 1})

    def decode(arrays: Arrays) -> Decode:
        logits = subject.shape("step", Batch=1)
        loop = [
            "answer, ends = [], write.rules.ends",
            "while (token := int(logits.argmax())) not in ends and len(answer) < 32:",
        ]
        session = [
            f"logits = session.prefill(tokens)  # {logits}, after the last token",
            *loop,
            "    at = len(prompt) + len(answer)",
            f"    logits = session.step([[token]], [at])  # {logits}",
            "    answer.append(token)",
        ]
        pure = [
            f"length = {arrays.ids('[len(prompt)]')}",
            f"logits, caches = prefill(params, caches, tokens, length)  # {logits}",
            *loop,
            f"    given = {arrays.ids('[[token]]')}, length + len(answer)",
            f"    logits, caches = step(params, caches, *given)  # {logits}",
            "    answer.append(token)",
        ]
        end = ["print(write.tokenizer.decode(answer))"]
        return Decode([*session, *end], [*pure, *end], f"Batch=1, Capacity={SLOTS}")

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        shifted = Call("logits", "forward", {"tokens": "tokens[:, :-1]"})
        return Loss([], ["tokens"], [f"logits = {call(shifted)}"], "tokens[:, 1:]", rows=False)

    return Job([], inputs, [forward], loss, decode=decode)

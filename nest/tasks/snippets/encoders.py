"""Encoders of text: vectors of sentences, and blanks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nest.tasks.snippets.job import Arrays, Call, Job, Loss
from nest.tasks.snippets.subject import Subject
from nest.tasks.snippets.task import masked

__all__ = ["blanks", "padded", "sentences"]


def padded(arrays: Arrays, rows: str, shape: str) -> list[str]:
    """Lines that make `tokens` and `lengths` of `rows`, code of a list of lists of ids."""
    if arrays.name == "torch":
        return [
            f"rows = list(map(torch.tensor, {rows}))",
            f"tokens = pad_sequence(rows, batch_first=True)  # {shape}",
            "lengths = torch.tensor([len(row) for row in rows])",
        ]
    return [
        f"rows = {rows}",
        "lengths = np.array([len(row) for row in rows], np.int32)",
        f"tokens = np.zeros((len(rows), lengths.max()), np.int32)  # {shape}",
        "for padded, row in zip(tokens, rows):",
        "    padded[: len(row)] = row",
    ]


def sentences(subject: Subject) -> Job:
    """Sentence embedding: pairs of texts that mean alike."""
    texts = [
        '    "A cat sleeps in the sun.", "The kitten is dozing.",',
        '    "Interest rates rose again.", "Borrowing has become dearer.",',
    ]

    def inputs(arrays: Arrays) -> list[str]:
        lines = ["texts = [  # in pairs", *texts, "]", "tokenizer = nest.pipeline(model).tokenizer"]
        return [*lines, *padded(arrays, "[e.ids for e in tokenizer(texts)]", "[4, S]")]

    given = {"tokens": "tokens", "lengths": "lengths"}
    embed = Call("vectors", "embed", given, {"B": 4})

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        before = [f"labels = {arrays.ids('[0, 1]')}  # which text goes with each"]
        body = [f"vectors = {call(embed)}", "logits = 20 * vectors[0::2] @ vectors[1::2].T"]
        return Loss(before, ["tokens", "lengths", "labels"], body, "labels")

    return Job(
        [],
        inputs,
        [Call("states", "encode", given, {"B": 4}), embed],
        loss,
        fills=lambda arrays: _fills(subject, "embed", arrays),
        after=lambda arrays: ["cosines = vectors @ vectors.T  # [4, 4]"],
    )


def blanks(subject: Subject) -> Job:
    """A blank in a text."""

    def inputs(arrays: Arrays) -> list[str]:
        return [
            "tokenizer = nest.pipeline(model).tokenizer",
            f'ids = tokenizer(["{masked(subject)}"])[0].ids',
            f"tokens = {arrays.ids('[ids]')}  # [1, S]",
            "blank = ids.index(tokenizer.mask_id)",
            f"places = {arrays.ids('[[blank]]')}  # [1, 1]",
        ]

    at = Call("logits", "mask_logits_at", {"tokens": "tokens", "places": "places"}, {"B": 1, "M": 1})

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        right = 'tokenizer([" capital"])[0].ids[1]'
        return Loss(
            [f"right = {right}", f"labels = {arrays.ids('[right]')}"],
            ["tokens", "places", "labels"],
            [f"logits = {call(at)}[:, 0]"],
            "labels",
        )

    return Job(
        [],
        inputs,
        [Call("states", "encode", {"tokens": "tokens"}, {"B": 1}), at],
        loss,
        fills=lambda arrays: _fills(subject, "mask_logits_at", arrays),
        after=lambda arrays: [
            "best = (-logits[0, 0]).argsort()[:3]",
            "print([tokenizer.token(int(i)) for i in best])",
        ],
    )


def _fills(subject: Subject, entry: str, arrays: Arrays) -> Mapping[str, str]:
    known = {"lengths": arrays.ids("[len(ids)]"), "types": f"{arrays.name}.zeros_like(tokens)"}
    return {name: known[name] for name in subject.parameters(entry) if name in known}

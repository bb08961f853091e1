"""Encoders of text: vectors of sentences, and blanks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nest.tasks.snippets.job import Arrays, Call, Job, Loss
from nest.tasks.snippets.subject import Subject
from nest.tasks.snippets.task import masked

__all__ = ["blanks", "padded", "sentences"]


def padded(arrays: Arrays, rows: str, end: str = "") -> list[str]:
    """Lines that make `tokens` and `lengths` of `rows`, lists of ids of unequal length."""
    if arrays.name == "torch":
        return [
            f"rows = [torch.tensor({rows}]",
            f"tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)  # {end}",
            "lengths = torch.tensor([len(row) for row in rows])",
        ]
    return [
        f"rows = [np.array({rows}]",
        "lengths = np.array([len(row) for row in rows], np.int32)",
        f"tokens = np.stack([np.pad(row, (0, max(lengths) - len(row))) for row in rows])  # {end}",
    ]


def sentences(subject: Subject) -> Job:
    """Sentence embedding: pairs of texts that mean alike."""
    texts = [
        '    "A cat sleeps in the sun.", "The kitten is dozing.",',
        '    "Interest rates rose again.", "Borrowing has become dearer.",',
    ]

    def inputs(arrays: Arrays) -> list[str]:
        dtype = "" if arrays.name == "torch" else ", np.int32"
        rows = f"e.ids{dtype}) for e in nest.pipeline(model).tokenizer(texts)"
        return ["texts = [  # in pairs", *texts, "]", *padded(arrays, rows, "[4, S]")]

    given = {"tokens": "tokens", "lengths": "lengths"}
    embed = Call("vectors", "embed", given, {"B": 4})

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        before = [f"labels = {arrays.ids('[0, 1]')}  # each text's partner, among those of the others"]
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
            f"places = {arrays.ids('[[ids.index(tokenizer.mask_id)]]')}  # [1, 1]: where the blank is",
        ]

    at = Call("logits", "mask_logits_at", {"tokens": "tokens", "places": "places"}, {"B": 1, "M": 1})

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        right = 'tokenizer([" capital"])[0].ids[1]'
        return Loss(
            [f"labels = {arrays.ids(f'[{right}]')}"],
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

"""Pictures: classes, vectors, and how well texts go with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nest.tasks.snippets.encoders import padded
from nest.tasks.snippets.job import Arrays, Call, Job, Loss
from nest.tasks.snippets.subject import Subject
from nest.tasks.snippets.task import CAPTIONS, PICTURE

__all__ = ["classes", "matches", "vectors"]

CLASSES = 10


def _pixels(subject: Subject, arrays: Arrays) -> list[str]:
    shape = ", ".join(str(subject.size(name)) for name in ("Channels", "Height", "Width"))
    lines = [f'pixels = task.encoder.pixels("{PICTURE}")[None]  # [1, {shape}]']
    made = arrays.of("pixels")
    return lines if made == "pixels" else [*lines, f"pixels = {made}"]


def _fills(subject: Subject, arrays: Arrays) -> Mapping[str, str]:
    """Of a vision transformer, which patches are to be seen: all."""
    entry = "embed_image" if "embed_image" in subject.program.entries else "forward"
    if "mask" not in subject.parameters(entry):
        return {}
    patch = subject.size("Patch")
    return {"mask": arrays.ones(1, (subject.size("Height") // patch) * (subject.size("Width") // patch))}


def classes(subject: Subject) -> Job:
    """Image classification."""

    def inputs(arrays: Arrays) -> list[str]:
        return [
            "task = nest.pipeline(model)  # for its preprocessing and labels",
            *_pixels(subject, arrays),
        ]

    forward = Call("logits", "forward", {"pixels": "pixels"}, {"B": 1})
    inner = "encode" if "encode" in subject.program.entries else "embed_image"
    states = Call("states" if inner == "encode" else "features", inner, {"pixels": "pixels"}, {"B": 1})

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        before = [f"labels = {arrays.ids('[7]')}  # what the picture shows"]
        return Loss(before, ["pixels", "labels"], [f"logits = {call(forward)}"], "labels")

    return Job(
        [],
        inputs,
        [forward, states],
        loss,
        fills=lambda arrays: _fills(subject, arrays),
        after=lambda arrays: ["print(task.labels[int(logits.argmax())])"],
    )


def vectors(subject: Subject) -> Job:
    """Image embedding, and a classifier over the vectors."""
    size = subject.size("D")

    def inputs(arrays: Arrays) -> list[str]:
        return ["task = nest.pipeline(model)  # for its preprocessing", *_pixels(subject, arrays)]

    embed = Call("vectors", "embed_image", {"pixels": "pixels"}, {"B": 1})

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        labels = f"labels = {arrays.ids('[7]')}  # what the picture shows"
        if arrays.backend == "torch":
            lines = [f"head = torch.nn.Linear({size}, {CLASSES})  # classes of your own", labels]
            lines.append("both = torch.nn.ModuleList([model, head])")
            return Loss(lines, [], [f"logits = head({call(embed)})"], "labels", model="both")
        if arrays.backend == "nnx":
            lines = ["", "", "class Classifier(nnx.Module):  # classes of your own"]
            lines += ["    def __init__(self, model, rngs):", "        self.model = model"]
            lines += [f"        self.head = nnx.Linear({size}, {CLASSES}, rngs=rngs)", ""]
            lines += ["    def __call__(self, pixels):"]
            lines += ["        return self.head(self.model.embed_image(pixels))", "", ""]
            lines += [labels, "classifier = Classifier(model, nnx.Rngs(0))"]
            body = ["logits = model(pixels)"]
            return Loss(lines, ["pixels", "labels"], body, "labels", model="classifier")
        lines = [f"head = jnp.zeros(({size}, {CLASSES}))  # classes of your own", labels]
        body = [f"logits = {call(embed)} @ head"]
        return Loss(lines, ["pixels", "labels"], body, "labels", inner="params, head")

    return Job(
        [],
        inputs,
        [embed, Call("states", "forward", {"pixels": "pixels"}, {"B": 1})],
        loss,
        fills=lambda arrays: _fills(subject, arrays),
        after=lambda arrays: ["patches = states[:, 1:]  # the first is the whole picture's"],
    )


def matches(subject: Subject) -> Job:
    """A picture and two texts."""
    manifest = subject.entry.manifest
    filled = manifest.tokenizer is not None and manifest.tokenizer.pad is not None
    texts = ", ".join(f'"{text}"' for text in CAPTIONS)

    def inputs(arrays: Arrays) -> list[str]:
        lines = [
            "task = nest.pipeline(model)  # for its preprocessing and tokenizer",
            *_pixels(subject, arrays),
        ]
        lines.append(f"texts = [{texts}]")
        if filled:
            shape = f"[2, {subject.size('MaxTokens')}]"
            return [*lines, f"tokens = {arrays.ids('task.tokenizer(texts)')}  # {shape}"]
        return [*lines, *padded(arrays, "task.tokenizer(texts)", "[2, S]")]

    given = {"tokens": "tokens", **({} if filled else {"lengths": "lengths"})}
    images = Call("images", "embed_image", {"pixels": "pixels"}, {"B": 1})
    captions = Call("captions", "embed_text", given, {"B": 2})
    pairs = {"images": "images", "texts": "captions"}
    match = Call("chances", "match", pairs, {"N": 1, "M": 2})

    def loss(arrays: Arrays, call: Callable[[Call], str]) -> Loss:
        paired = manifest.model.family == "siglip"  # which was trained on pairs, not to choose among texts
        made = f"{arrays.name}.{'tensor' if arrays.name == 'torch' else 'array'}([[1.0, 0.0]])"
        before = [f"labels = {made if paired else arrays.ids('[0]')}  # the first text goes with the picture"]
        body = [
            f"images = {call(images)}",
            f"captions = {call(captions)}",
            f"logits = {call(Call('logits', 'similarity', pairs))}",
        ]
        return Loss(before, ["pixels", *given, "labels"], body, "labels", pairs=paired)

    return Job([], inputs, [images, captions, match], loss, fills=lambda arrays: _fills(subject, arrays))

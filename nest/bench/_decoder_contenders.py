"""Who takes part in `nest.bench.decoder_cpu`: each gives a job, from a message to so many ids."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from nest.bench._turns import Job, serve

__all__ = ["CONTENDERS", "Work"]

_MESSAGE = "Tell me a story about a fox."


@dataclass(frozen=True)
class Work:
    """What everyone does: the answer to one message, `count` ids long."""

    entry: str
    count: int
    threads: int
    dtype: str = "f32"


def _nest(backend: str, plan: str, work: Work) -> Job:
    import nest

    if backend == "torch":
        import torch

        torch.set_num_threads(work.threads)
    options: dict[str, Any] = {"threads": work.threads} if backend == "onnx" else {}
    options |= {} if work.dtype == "f32" else {"dtype": work.dtype}
    task = nest.pipeline(work.entry, backend=backend, plan=plan, local_files_only=True, **options)
    return lambda: task.chat(_MESSAGE, max_tokens=work.count).tokens


def _library(work: Work) -> tuple[Any, list[int]]:
    """The reference library's model of the same weights, and the prompt's ids."""
    import torch

    import nest
    from nest.loading import program_of
    from nest.registry import find
    from nest.verify.library import library_of

    torch.set_num_threads(work.threads)
    task = nest.pipeline(work.entry, backend="torch", local_files_only=True)
    params = {path: tensor.detach().numpy() for path, tensor in task.model.state_dict().items()}
    entry = find(work.entry)
    model = library_of(entry, program_of(entry), params).model.eval()
    if work.dtype == "bf16":
        model = model.to(torch.bfloat16)
    return model, task.chat_tokens(_MESSAGE)


def _generate(work: Work) -> Job:
    import torch

    model, ids = _library(work)
    prompt = torch.tensor([ids])

    def job() -> Sequence[int]:
        made = model.generate(
            prompt, max_new_tokens=work.count, do_sample=False, eos_token_id=None, pad_token_id=0
        )
        tokens: list[int] = made[0, len(ids) :].tolist()
        return tokens

    return job


def _loop(compiled: bool, work: Work) -> Job:
    """Written by hand: the library's model a token at a time, its caches growing, or of a fixed size and compiled."""
    import torch
    from transformers.cache_utils import DynamicCache, StaticCache

    model, ids = _library(work)
    prompt, step = torch.tensor([ids]), model
    if compiled:
        step = torch.compile(model.forward, dynamic=False)

    def cache() -> Any:
        if compiled:
            return StaticCache(config=model.config, max_cache_len=len(ids) + work.count)
        return DynamicCache(config=model.config)

    @torch.no_grad()
    def job() -> Sequence[int]:
        held, given, at, tokens = cache(), prompt, 0, list[int]()
        while len(tokens) < work.count:
            # The prompt is read once, and is not worth a compilation of its own.
            call = step if tokens else model
            places = torch.arange(at, at + given.shape[1])[None]
            at += given.shape[1]
            made = call(given, position_ids=places, past_key_values=held, use_cache=True, logits_to_keep=1)
            given = made.logits[:, -1].argmax(-1, keepdim=True)
            tokens.append(int(given))
        return tokens

    return job


CONTENDERS: dict[str, Callable[[Work], Job]] = {
    "transformers, cached loop": partial(_loop, False),
    "transformers, compiled loop": partial(_loop, True),
    "transformers, generate()": _generate,
    "nest torch, exact": partial(_nest, "torch", "exact"),
    "nest torch, fast": partial(_nest, "torch", "fast"),
    "nest onnx, exact": partial(_nest, "onnx", "exact"),
    "nest onnx, fast": partial(_nest, "onnx", "fast"),
    "nest jax, exact": partial(_nest, "jax", "exact"),
    "nest jax, fast": partial(_nest, "jax", "fast"),
    "nest nnx, exact": partial(_nest, "nnx", "exact"),
}


def _main(name: str, threads: str, entry: str, count: str, dtype: str = "f32") -> None:
    serve(lambda: CONTENDERS[name](Work(entry, int(count), int(threads), dtype)), int(threads))


if __name__ == "__main__":
    _main(*sys.argv[1:])

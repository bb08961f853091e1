"""Text: vectors of sentences, and how a prompt goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from nest.bench._loaded import Given

__all__ = ["llama_cpp", "sentence_transformers"]


def sentence_transformers(given: Given) -> Callable[[], Mapping[str, Any]]:
    """sentence-transformers over the checkpoint's own files."""
    import torch
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer import modules
    except ImportError:  # before version 5.4
        from sentence_transformers import models as modules

    if given.device == "cpu":
        torch.set_num_threads(given.threads)
    body = modules.Transformer(given.folder, max_seq_length=int(given.facts["max_tokens"]))
    width = body.auto_model.config.hidden_size
    parts = [body, modules.Pooling(width, pooling_mode=given.facts["pooling"])]
    parts += [modules.Normalize()] if given.facts["normalize"] else []
    model = SentenceTransformer(modules=parts, device=given.device)
    texts = [str(one) for one in given.task["texts"]]

    def job() -> Mapping[str, Any]:
        return {"vectors": model.encode(texts, batch_size=given.batch, show_progress_bar=False)}

    return job


def llama_cpp(given: Given) -> Callable[[], Mapping[str, Any]]:
    """llama.cpp by llama-cpp-python: ids of the prompt in, new ids out."""
    from llama_cpp import Llama

    prompt, count = [int(one) for one in given.task["ids"]], int(given.task["count"])
    model = Llama(
        given.weights, n_ctx=len(prompt) + count, n_batch=len(prompt), n_threads=given.threads,
        n_threads_batch=given.threads, n_gpu_layers=-1 if given.device == "cuda" else 0, verbose=False,
    )  # fmt: skip

    def job() -> Mapping[str, Any]:
        model.reset()  # it would keep the caches of a prompt that it has read
        return {"ids": list(islice(model.generate(prompt, temp=0.0, top_k=1), count))}

    return job

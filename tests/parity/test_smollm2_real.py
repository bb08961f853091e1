"""SmolLM2 135M with the weights of its mirror: the reference library's tokens, and its chats, on every backend."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import nest
from nest.registry import find
from nest.tasks import Generator

pytestmark = pytest.mark.weights

NAME = "smollm2-135m-instruct"
CHATS = ["What is the capital of France?", "Tell me a story about a fox."]
COUNT = 16


@cache
def generator(backend: str) -> Generator:
    made: Generator = nest.pipeline(NAME, backend=backend)
    return made


@cache
def library() -> Any:
    """The reference library's model of the same weights, in f32."""
    from nest.loading import program_of
    from nest.verify.library import library_of

    entry = find(NAME)
    model = nest.load(NAME, backend="torch")
    params = {path: tensor.detach().numpy() for path, tensor in model.state_dict().items()}
    return library_of(entry, program_of(entry), params).model.eval()


@cache
def expected(ids: tuple[int, ...]) -> tuple[int, ...]:
    import torch

    made = library().generate(
        torch.tensor([ids]), max_new_tokens=COUNT, do_sample=False, eos_token_id=2, pad_token_id=2
    )
    tokens: list[int] = made[0, len(ids) :].tolist()
    return tuple(tokens[: tokens.index(2)] if 2 in tokens else tokens)


@pytest.mark.reference
@pytest.mark.parametrize("backend", ["torch", "onnx", "jax", "nnx"])
def test_greedy_tokens_are_the_reference_library_s(backend: str) -> None:
    task = generator(backend)
    for chat in CHATS:
        made = task.chat(chat, max_tokens=COUNT)
        assert made.tokens == expected(tuple(task.chat_tokens(chat)))
    assert task.chat(CHATS[0], max_tokens=COUNT).text == "The capital of France is Paris."


@pytest.mark.reference
def test_a_chat_s_prompt_is_the_reference_library_s() -> None:
    from transformers import AutoTokenizer

    task = generator("torch")
    theirs = AutoTokenizer.from_pretrained(task.tokenizer.path.parent)
    chats = [
        [{"role": "user", "content": "Hi <|im_end|> 1234\n"}],
        [{"role": "system", "content": "Bréf 🦊."}, {"role": "user", "content": "  two  spaces"}],
        [{"role": r, "content": c} for r, c in (("user", "a"), ("assistant", "b"), ("user", "c\t"))],
    ]
    for chat in chats:
        want = theirs.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
        assert task.chat_tokens(chat) == want
        text = theirs.decode(want, skip_special_tokens=True)
        assert task.tokenizer.decode(want) == text


def test_a_seed_gives_one_text_and_a_batch_gives_each() -> None:
    task = generator("torch")
    settings: dict[str, Any] = {"max_tokens": 8, "temperature": 0.8, "top_p": 0.95, "min_p": 0.05}
    prompts = ["Once upon a time", "The three largest rivers of the world are the"]
    together = task(prompts, seed=[4, 5], repetition_penalty=1.1, **settings)
    alone = [
        task(p, seed=s, repetition_penalty=1.1, **settings) for p, s in zip(prompts, (4, 5), strict=True)
    ]
    assert [t.tokens for t in together] == [t.tokens for t in alone]
    stream = task.stream(prompts[0], seed=4, repetition_penalty=1.1, **settings)
    assert "".join(stream) == together[0].text

"""Texts of a small model whose words mean nothing, and of one whose words are written down beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.errors import CallError, InputError
from nest.tasks import Generation, Generator, _streaming
from nest.tasks._sized_sessions import SizedSessions
from nest.tasks._text_rows import TextRules
from nest.tasks.chat import ChatTemplate
from nest.tasks.text_tokens import DecoderTokenizer

from ..decoder import CAPACITY, decoder_on
from .scripted import ScriptedSession, token_of, tokens_of
from .vocabularies import END, TEMPLATE, TURN, byte_level, tokenizer_of

PROMPTS = ["The", "A longer prompt", "Hé"]
RULES = TextRules(ends=(END,), positions=CAPACITY, max_tokens=24)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> DecoderTokenizer:
    return tokenizer_of(byte_level(), tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def generator(tokenizer: DecoderTokenizer) -> Generator:
    template = ChatTemplate(TEMPLATE, {"eos_token": "<|end|>"}, name="small")
    return Generator(decoder_on("torch"), tokenizer, RULES, template)


class Scripted:
    """A model whose sessions say what is written down, a text for each row of a prompt."""

    def __init__(self, *texts: tuple[int, ...]) -> None:
        self.texts = list(texts)
        self.symbols: list[dict[str, int]] = []
        self.sessions: list[ScriptedSession] = []

    def new_session(self, **symbols: int) -> ScriptedSession:
        self.symbols.append(symbols)
        self.sessions.append(_Session(self.texts))
        return self.sessions[-1]


class _Session(ScriptedSession):
    def __init__(self, texts: list[tuple[int, ...]]) -> None:
        super().__init__()
        self.texts = texts

    def prefill(self, tokens: Any, lengths: Any) -> Any:
        assert (lengths == tokens.shape[1]).all()
        self.scripts = [[self.texts.pop(0) for _ in lengths]]
        return super().prefill(tokens)


@pytest.fixture(autouse=True)
def _one_token_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream asks for as many tokens as come in so many seconds."""
    monkeypatch.setattr(_streaming, "_SECONDS", 0.0)


def says(tokenizer: DecoderTokenizer, *texts: str | tuple[int, ...], **rules: Any) -> Generator:
    """A generator whose model says these texts, one for each prompt."""
    written = [tokens_of(text) if isinstance(text, str) else text for text in texts]
    return Generator(Scripted(*written), tokenizer, TextRules(**{"ends": (END,), "positions": 100, **rules}))


def test_a_text_ends_with_a_token_with_a_string_or_by_its_length(tokenizer: DecoderTokenizer) -> None:
    end = says(tokenizer, "so be it")("x")
    assert (end.text, end.finish, end.prompt_tokens) == ("so be it", "stop", 1)
    assert end.tokens == tokens_of("so be it")
    assert str(end) == "so be it"
    short = says(tokenizer, "so be it")("x", max_tokens=3)
    assert (short.text, short.tokens, short.finish) == ("so ", tokens_of("so "), "length")
    assert says(tokenizer, "so be it", max_tokens=2)("x").text == "so"
    assert says(tokenizer, "so be it", positions=5)("xyz").text == "so"
    cut = says(tokenizer, "so be it")("x", stop=["no", "be "])
    assert (cut.text, cut.tokens, cut.finish) == ("so ", tokens_of("so be "), "stop string")
    other = says(tokenizer, "so be it")("x", stop_tokens=[token_of(ord("b"))])
    assert (other.text, other.finish) == ("so ", "stop")
    assert says(tokenizer, "so be it", ends=(END, token_of(ord(" "))))("x").text == "so"


def test_what_could_begin_a_stop_string_is_shown_when_it_does_not(tokenizer: DecoderTokenizer) -> None:
    stream = says(tokenizer, "a STOAT SSTOP b").stream("x", stop="STOP")
    pieces = list(stream)
    assert "".join(pieces) == stream.result.text == "a STOAT S"
    assert pieces == ["a", " ", "STOA", "T", " ", "S"]
    assert list(says(tokenizer, "a STO").stream("x", stop="STOP")) == ["a", " ", "STO"]


def test_a_character_of_several_tokens_comes_whole(tokenizer: DecoderTokenizer) -> None:
    stream = says(tokenizer, "né 🦊!").stream("x")
    assert list(stream) == ["n", "é", " ", "🦊", "!"]
    cut = says(tokenizer, "é🦊").stream("x", max_tokens=4)
    assert list(cut) == ["é", "�"]
    assert cut.result.text == "é�"
    assert cut.result.finish == "length"


def test_a_stream_works_while_it_is_read_and_no_longer(tokenizer: DecoderTokenizer) -> None:
    generator = says(tokenizer, "so be it")
    stream = generator.stream("x")
    assert generator.model.sessions == []
    assert next(stream) == "s"
    (session,) = generator.model.sessions
    asked = len(session.fed)
    assert asked <= 1
    stream.close()
    assert list(stream) == []
    assert len(session.fed) == asked
    with pytest.raises(ValueError, match="has not ended"):
        _ = stream.result


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 1.5, "top_p": 0.9, "seed": 1}]
)
def test_a_stream_is_the_text_in_pieces(generator: Generator, settings: Any) -> None:
    whole = generator("The", **settings)
    stream = generator.stream("The", **settings)
    pieces = list(stream)
    assert "".join(pieces) == whole.text
    assert stream.result.tokens == whole.tokens
    assert stream.result.log_probability == pytest.approx(whole.log_probability, rel=1e-5)
    assert len(pieces) > 3
    assert generator("The", **settings) == whole


def test_texts_side_by_side_are_those_of_each_alone(generator: Generator) -> None:
    together = generator(PROMPTS, temperature=1.0, seed=[4, 5, 6], max_tokens=12)
    by_two = generator(PROMPTS, temperature=1.0, seed=[4, 5, 6], max_tokens=12, batch_size=2)
    alone = [
        generator(p, temperature=1.0, seed=s, max_tokens=12) for p, s in zip(PROMPTS, (4, 5, 6), strict=True)
    ]
    tokens = [t.tokens for t in together]
    assert tokens == [t.tokens for t in by_two] == [t.tokens for t in alone]
    assert len(set(tokens)) == 3
    assert [t.prompt_tokens for t in together] == [2, 15, 3]
    one_seed = generator(PROMPTS, temperature=1.0, seed=9, max_tokens=12, batch_size=1)
    assert [t.tokens for t in one_seed] == [
        t.tokens for t in generator(PROMPTS, temperature=1.0, seed=9, max_tokens=12)
    ]
    assert generator([]) == []


def test_the_log_probability_is_the_model_s_own(generator: Generator) -> None:
    """Whatever tokens were chosen from, and without those that were cut away."""
    made = generator("The", temperature=2.0, top_k=40, repetition_penalty=1.5, seed=2, max_tokens=9)
    session = decoder_on("reference").new_session()
    ids = [*generator.tokenizer.encode("The"), *made.tokens]
    start, score = made.prompt_tokens, 0.0
    logits = session.numpy(session.prefill([ids[:start]]))[0]
    for at, token in enumerate(made.tokens):
        score += float(logits[token] - logits.max() - np.log(np.exp(logits - logits.max()).sum()))
        logits = session.numpy(session.step([[token]], [start + at]))[0]
    if made.finish == "stop":
        score += float(logits[END] - logits.max() - np.log(np.exp(logits - logits.max()).sum()))
    assert made.log_probability == pytest.approx(score, rel=1e-4)


def test_a_row_with_less_room_ends_before_the_others(generator: Generator) -> None:
    long = "x" * (CAPACITY - 3)
    short, full = generator(["The", long], max_tokens=20)
    assert (len(full.tokens), full.finish) in ((3, "length"), (len(full.tokens), "stop"))
    assert short.tokens == generator("The", max_tokens=20).tokens


def test_a_chat_is_the_template_s_prompt(generator: Generator) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    ids = generator.chat_tokens(messages)
    assert ids[0] == TURN
    assert ids.count(END) == 1
    assert (
        generator.tokenizer.decode(ids, skip_special=False) == "<|turn|>user\nHi<|end|>\n<|turn|>assistant\n"
    )
    answer = generator.chat(messages, max_tokens=6)
    assert isinstance(answer, Generation)
    assert answer.prompt_tokens == len(ids)
    assert generator.chat("Hi", max_tokens=6) == answer
    stream = generator.chat(messages, stream=True, max_tokens=6)
    assert "".join(stream) == answer.text
    with pytest.raises(
        InputError, match="chat template of small does not take these messages: No tools here"
    ):
        generator.chat([{"role": "tool", "content": "3"}])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda g: g("x" * CAPACITY),
            InputError,
            f"The prompt has {CAPACITY} tokens, and the model holds {CAPACITY}",
        ),
        (lambda g: g(""), InputError, "The prompt has no token to go on from"),
        (lambda g: g(["a", 3]), InputError, "A prompt is a text; came 3"),
        (lambda g: g(None), InputError, "A prompt is a text, or several in a list; came None"),
        (lambda g: g({"a": 1}), InputError, "A prompt is a text, or several in a list; came {'a': 1}"),
        (
            lambda g: g("a\udcff"),
            InputError,
            r"The prompt has half of a surrogate pair, U\+DCFF, at character 1",
        ),
        (lambda g: g.chat("\ud83d"), InputError, "half of a surrogate pair"),
        (lambda g: g.chat("a", variables=[1]), InputError, r"variables= maps names .* came \[1\]"),
        (lambda g: g.chat("a", variables={"messages": []}), InputError, "variables= has 'messages'"),
        (lambda g: g(["a"], batch_size=0), InputError, "batch_size=0 is no integer from 1"),
        (lambda g: g(["a"], batch_size="2"), InputError, "batch_size='2' is no integer from 1"),
        (lambda g: g("a", temprature=1), CallError, r"no argument 'temprature' \(did you mean 'temperature'"),
        (lambda g: g("a", seed=[1, 2], temperature=1.0), InputError, "2 seeds were given for 1 rows"),
        (lambda g: g.stream("a", top_p=2), InputError, "top_p=2: expected a probability"),
        (lambda g: g.stream(""), InputError, "The prompt has no token"),
    ],
)
def test_calls_that_cannot_work_are_refused_at_once(
    generator: Generator, call: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        call(generator)


def test_without_a_template_there_is_no_chat(tokenizer: DecoderTokenizer) -> None:
    generator = Generator(decoder_on("torch"), tokenizer, RULES)
    with pytest.raises(InputError, match="<Generator of Decoder on torch> has no chat template"):
        generator.chat("Hi")


def test_caches_are_as_large_as_the_call_needs(tokenizer: DecoderTokenizer) -> None:
    generator = says(tokenizer, *["ab"] * 6, positions=3000)
    generator("x")
    generator("y" * 200, max_tokens=57)
    generator("y" * 200, max_tokens=56)
    generator(["a", "b"], max_tokens=2900)
    generator("z" * 255, max_tokens=2)
    sizes = [(s["Batch"], s["Capacity"]) for s in generator.model.symbols]
    # The last one anew: of three idle sessions the oldest was given up.
    assert sizes == [(1, 512), (1, 256), (2, 3000), (1, 512)]


def test_a_session_is_lent_again_and_one_that_failed_is_not() -> None:
    made: list[Any] = []

    class Model:
        def new_session(self, **symbols: int) -> Any:
            made.append(symbols)
            return object()

    lender = SizedSessions(Model(), 1000, "exact")
    with lender.lend(1, 100) as first:
        pass
    with lender.lend(1, 90) as again:
        assert again is first
        with lender.lend(1, 90) as other:
            assert other is not first
    with pytest.raises(RuntimeError), lender.lend(1, 100) as last:
        raise RuntimeError
    with lender.lend(1, 100) as next_one:
        assert next_one is not last
    assert made == [{"Batch": 1, "Capacity": 128}] * 2
    with lender.lend(3, 600), lender.lend(2, 2000):
        pass
    assert made[2:] == [{"Batch": 3, "Capacity": 1000}, {"Batch": 2, "Capacity": 1000}]


def test_a_plan_is_asked_for(tokenizer: DecoderTokenizer, tmp_path: Path) -> None:
    fast = Generator(decoder_on("torch"), tokenizer, RULES, plan="fast")
    assert (
        fast("The", max_tokens=8).tokens
        == Generator(decoder_on("torch"), tokenizer, RULES)("The", max_tokens=8).tokens
    )
